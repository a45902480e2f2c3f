// Shows what went wrong: what happened, why, what to do; and says things to screen readers.

import { button, el, icon } from './dom.js';

/**
 * Says something through the page's live region.
 * @param {string} message
 */
export function announce(message) {
  const region = document.getElementById('announcer');
  if (!region) return;
  region.textContent = '';
  // A region that gets the same text twice stays silent: let it be empty for one frame.
  requestAnimationFrame(() => { region.textContent = message; });
}

/**
 * One sentence for small places.
 * @param {any} error
 */
export function describe(error) {
  const message = sentence(error?.message ?? String(error));
  const parts = (error?.errors ?? []).map((/** @type {{detail: string}} */ item) => sentence(item.detail));
  return [message, ...parts.filter((/** @type {string} */ part) => part && part !== message)].join(' ');
}

/** @param {string} text */
function sentence(text) {
  if (!text) return '';
  const capital = text[0].toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}

/**
 * A box with the reason of a failure, a way to try again, and its details to copy.
 * @param {any} error
 * @param {(() => void)|null} [retry]
 */
export function problemBox(error, retry = null) {
  const details = JSON.stringify({
    status: error.status, title: error.title, detail: error.message, errors: error.errors, request_id: error.requestId,
  }, null, 2);
  const copy = button('Copy the details', () => navigator.clipboard?.writeText(details), { class: 'btn ghost' });
  return el('div', { class: 'problem', role: 'alert' },
    icon('circle-alert'),
    el('p', { class: 'grow' }, describe(error)),
    retry && button('Try again', retry),
    error.status !== undefined && copy);
}
