// The list of keys, which `?` opens.

import { openDialog } from './dialog.js';
import { el, icon } from './dom.js';
import { keys } from './keys.js';

/** The list of keys that act on this screen. Keys that do the same share a line. */
export function openKeySheet() {
  // Pressed twice before this file was there.
  if (document.getElementById('keys')) return;
  const sections = keys.scopes.map(({ name, bindings }) => {
    const rows = [...Map.groupBy(bindings.filter(({ label }) => label), ({ label }) => label)].map(([label, same]) =>
      el('div', { class: 'keyrow' }, el('span', {}, label), same.flatMap(({ key }) => key.split(/ |\+(?=.)/)).map((one) => el('kbd', {}, printed(one)))));
    return el('section', { hidden: rows.length === 0, data: { group: name } }, el('h3', {}, name), rows);
  });
  for (const section of sections) {
    const first = sections.find(({ dataset }) => dataset.group === section.dataset.group);
    if (first === section || !first) continue;
    first.append(...section.querySelectorAll('.keyrow'));
    section.hidden = true;
  }
  const find = el('input', { placeholder: 'Find a key', 'aria-label': 'Find a key', on: { input: () => {
    for (const row of table.querySelectorAll('.keyrow')) /** @type {HTMLElement} */ (row).hidden = !row.textContent?.toLowerCase().includes(find.value.toLowerCase());
    for (const section of sections) section.hidden = !section.querySelector('.keyrow:not([hidden])');
  } } });
  const table = el('div', { class: 'keytable' }, sections);
  const dialog = openDialog({ id: 'keys', title: 'Keyboard', class: 'keys', body: [table] });
  dialog.querySelector('header')?.lastElementChild?.before(el('label', { class: 'field find' }, icon('search', 's'), find));
}

/** @param {string} key */
function printed(key) {
  const signs = /** @type {Record<string, string>} */ ({ ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Shift: '⇧', Escape: 'Esc', Enter: '↵', '-': '−' });
  return signs[key] ?? key;
}
