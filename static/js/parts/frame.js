// What the plain screens share: the top bar, loading and failing, tables, choices, names of videos.

import { ApiError, get, isAbort } from '../core/api.js';
import { connection } from '../core/connection.js';
import { button, el, fill, icon, keyCap } from '../core/dom.js';
import { problemBox } from '../core/problems.js';
import { titleOf } from '../core/words.js';

/** @typedef {import('../core/dom.js').Children} Children */

/** @param {string} title @param {...Children} rest */
export const topBar = (title, ...rest) => el('header', { class: 'top' }, el('h1', {}, title),
  el('a', { class: 'field jump only-l', href: '/' }, icon('search'), el('span', { class: 'grow' }, 'Search in all videos'), keyCap('/')), ...rest);

/**
 * Fills a box with what `make` gives: grey boxes until then, the reason where it fails. A server that was away is asked
 * again when it is back.
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 * @param {() => Promise<Children>} make
 */
export async function load(into, signal, make) {
  if (!into.firstChild || into.querySelector('.problem')) {
    fill(into, el('div', { class: 'col late', role: 'status', 'aria-label': 'Loading' }, [1, 2, 3].map(() => el('div', { class: 'skel' }))));
  }
  try {
    const made = await make();
    if (!signal.aborted) fill(into, made);
  } catch (error) {
    if (isAbort(error) || signal.aborted) return;
    const again = () => { if (!signal.aborted) load(into, signal, make); };
    // The line on top says that the server is away: what is shown stays, or grey boxes.
    if (connection.away) connection.whenBack(again);
    else fill(into, failure(error, 'read', again));
  }
}

/**
 * Why something failed. A key that may not do it is told which scope it lacks.
 * @param {any} error
 * @param {string} scope
 * @param {() => void} again
 */
function failure(error, scope, again) {
  if (error.status !== 401 && error.status !== 403) return problemBox(error, again);
  return el('div', { class: 'problem', role: 'alert' }, icon('circle-alert'),
    el('p', { class: 'grow' }, `This needs an API key with the scope “${scope}”. Whoever runs the server makes one with `, el('code', {}, `reprise keys add --scope ${scope}`), '.'),
    error.status === 401 && button('Enter a key', again));
}

/**
 * @param {string} label
 * @param {string[]} head names of the columns; `>` before one aligns it to the right
 * @param {Children[][]} rows
 * @param {string} [classes]
 */
export function table(label, head, rows, classes = '') {
  const side = head.map((name) => (name[0] === '>' ? 'r' : null));
  return el('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': label }, el('table', { class: `tbl ${classes}` },
    el('thead', {}, el('tr', {}, head.map((name, at) => el('th', { scope: 'col', class: side[at] }, name.replace('>', ''))))),
    el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((cell, at) => el('td', { class: side[at] }, cell)))))));
}

/**
 * A choice among a few addresses.
 * @param {string} label
 * @param {[string, string, boolean][]} choices text, address, whether it is the current one
 */
export const choice = (label, choices) => el('nav', { class: 'seg', 'aria-label': label },
  choices.map(([text, href, isNow]) => el('a', { href, 'aria-current': isNow ? 'true' : null }, text)));

/**
 * @param {string} label
 * @param {[string, string, boolean?][]} options value, text, whether it can't be chosen now
 * @param {string} value
 * @param {(value: string) => void} choose
 */
export function selectOf(label, options, value, choose) {
  const select = el('select', { 'aria-label': label, on: { change: () => choose(select.value) } },
    options.map(([name, text, disabled]) => el('option', { value: name, selected: name === value, disabled }, text)));
  return el('span', { class: 'field pick' }, select, icon('chevron-down', 's'));
}

/**
 * An address of a screen with other parameters; null takes one away.
 * @param {string} path
 * @param {URLSearchParams} parameters
 * @param {Record<string, string|null>} changes
 */
export function changed(path, parameters, changes) {
  const next = new URLSearchParams(parameters);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return next.size > 0 ? `${path}?${next}` : path;
}

/** @type {Map<string, Promise<string|null>>} */
const titles = new Map();

/**
 * The title of a video, asked for once; null if it is deleted.
 * @param {string} id
 */
export function videoTitle(id) {
  const title = titles.get(id) ?? get(`/v1/videos/${id}`).then(titleOf, (error) => {
    if (error instanceof ApiError && error.status === 404) return null;
    titles.delete(id);
    return 'A video';
  });
  titles.set(id, title);
  return title;
}
