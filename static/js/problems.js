// Shows what went wrong, in the server's own words, and announces things to screen readers.

import { button, el } from './dom.js';

/** Says something through the page's live region. */
export function announce(message) {
  const region = document.getElementById('announcer');
  region.textContent = '';
  // A region that gets the same text twice stays silent: let it be empty for one frame.
  requestAnimationFrame(() => { region.textContent = message; });
}

/** One sentence for small places. */
export function describe(error) {
  const parts = (error.errors || []).map((item) => item.detail).filter((detail) => detail && detail !== error.message);
  return [error.message, ...parts].join(' – ');
}

/** A box with everything the server said; `retry` adds a button. */
export function problemBox(error, retry) {
  const items = (error.errors || []).map(({ pointer, detail }) =>
    el('li', {}, pointer ? `${pointer}: ${detail}` : detail));
  return el('div', { class: 'problem', role: 'alert' },
    error.title && error.title !== error.message && el('p', {}, el('strong', {}, error.title)),
    el('p', {}, error.message),
    items.length > 0 && el('ul', {}, items),
    error.requestId && el('p', { class: 'small' }, `Request ${error.requestId}`),
    retry && button('Try again', retry, { class: 'button small' }));
}
