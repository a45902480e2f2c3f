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
