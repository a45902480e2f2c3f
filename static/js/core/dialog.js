// Dialogs: a title, contents, and a way out. The focus returns to where it was.

import { el, iconButton } from './dom.js';

/**
 * Opens a dialog over the page. Escape, the button and a click beside it close it.
 * @param {object} parts
 * @param {string} parts.id also names the keys that act in it
 * @param {string} parts.title
 * @param {(Node|string|null|false)[]} parts.body
 * @param {string} [parts.class]
 * @param {() => void} [parts.onClose]
 * @returns {HTMLDialogElement}
 */
export function openDialog({ id, title, body, class: classes = '', onClose }) {
  const dialog = el('dialog', { class: `sheet ${classes}`.trim(), id, 'aria-labelledby': `${id}-title` });
  const head = el('header', { class: 'row spread' },
    el('h2', { id: `${id}-title`, tabindex: -1 }, title), iconButton('x', 'Close', () => dialog.close()));
  dialog.append(el('div', { class: 'box' }, head, ...body));
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => {
    dialog.remove();
    onClose?.();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Asks something by a form in a dialog. Enter, or the button named `act`, answers with what `read` says then.
 * @template T
 * @param {{id: string, title: string, body: (Node|string|null|false)[], class?: string, act: string, hint?: string, read: () => T}} parts
 * @returns {Promise<T|null>} null when it was closed
 */
export function ask({ id, title, body, class: classes = 'narrow', act, hint = '', read }) {
  return new Promise((resolve) => {
    /** @type {T|null} */
    let answer = null;
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      answer = read();
      dialog.close();
    };
    const form = el('form', { class: 'col', on: { submit } }, body,
      el('div', { class: 'row dialog-foot' }, el('span', { class: 'dim small grow' }, hint), el('button', { class: 'btn primary' }, act)));
    const dialog = openDialog({ id, title, class: classes, body: [form], onClose: () => resolve(answer) });
    const field = form.querySelector('input');
    field?.focus();
    field?.select();
  });
}
