// Asks for an API key where the server needs one. The key is kept until the tab is closed.

import { openDialog } from './dialog.js';
import { el } from './dom.js';

/**
 * Asks a person for a key; null if they give none.
 * @param {boolean} wrong whether a key was sent and refused
 * @returns {Promise<string|null>}
 */
export function askKey(wrong) {
  return new Promise((resolve) => {
    const input = el('input', { type: 'password', id: 'key', name: 'key', autocomplete: 'current-password', required: true, 'aria-describedby': 'key-help' });
    /** @type {string|null} */
    let given = null;
    const form = el('form', { class: 'col keyform', on: { submit: (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      given = input.value.trim() || null;
      dialog.close();
    } } },
      el('p', { id: 'key-help', class: 'muted' }, wrong
        ? 'The server does not know this key, or it has expired.'
        : 'This server needs an API key. Whoever runs it makes one with “reprise keys add”.'),
      el('label', { for: 'key', class: 'label' }, 'API key'),
      el('div', { class: 'field' }, input),
      el('button', { type: 'submit', class: 'btn primary' }, 'Continue'));
    const dialog = openDialog({ id: 'key-needed', title: 'A key is needed', class: 'narrow', body: [form], onClose: () => resolve(given) });
    input.focus();
  });
}
