// Modal questions: confirm a deletion or a replacement, and ask for the API key.
// Built on <dialog>, which brings focus trapping and Escape.

import { button, el } from './dom.js';

/** Shows a dialog built by `build(close)` and resolves with what it was closed with; Escape is null. */
function show(label, build) {
  return new Promise((resolve) => {
    let result = null;
    const dialog = el('dialog', { 'aria-label': label });
    const close = (value) => {
      result = value;
      dialog.close();
    };
    dialog.append(build(close));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks a yes/no question; the safe answer has the focus. */
export async function confirmAction(question, detail, action) {
  const yes = await show(question, (close) => el('form', { method: 'dialog' },
    el('h2', {}, question),
    detail && el('p', { class: 'muted' }, detail),
    el('div', { class: 'row' },
      button('Keep it', () => close(false), { autofocus: true }),
      button(action, () => close(true), { class: 'button primary', 'data-confirm': true }))));
  return yes === true;
}

/** Asks for the API key; null if the person gave none. */
export function askApiKey() {
  const input = el('input', {
    type: 'password', name: 'key', required: true, autocomplete: 'current-password', autofocus: true,
  });
  return show('API key', (close) => el('form', {
    on: {
      submit: (event) => {
        event.preventDefault();
        close(input.value.trim() || null);
      },
    },
  },
  el('h2', {}, 'This server needs its API key'),
  el('label', { class: 'field' }, el('span', {}, 'API key, kept for this tab only'), input),
  el('div', { class: 'row' },
    button('Cancel', () => close(null)),
    el('button', { type: 'submit', class: 'button primary' }, 'Continue'))));
}
