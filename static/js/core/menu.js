// Menus: a list of actions below the button that opens it.

import { el, icon, keyCap } from './dom.js';

/**
 * @typedef {object} Item
 * @property {string} label
 * @property {string} [icon]
 * @property {string} [key] printed beside it
 * @property {boolean} [checked] a choice, and whether it is made
 * @property {() => unknown} act
 */

let number = 0;

/**
 * Opens a menu at a button. Arrows move, Enter acts, Escape closes; the focus returns to the button.
 * @param {HTMLElement} opener
 * @param {(Item|null)[]} items null draws a line
 */
export function openMenu(opener, items) {
  number += 1;
  const menu = el('div', { class: 'menu', role: 'menu', popover: 'auto', id: `menu-${number}` },
    items.map((item) => (item ? entry(item, () => menu.hidePopover()) : el('hr'))));
  menu.addEventListener('keydown', (event) => move(event, menu));
  menu.addEventListener('toggle', (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== 'closed') return;
    opener.setAttribute('aria-expanded', 'false');
    if (menu.contains(document.activeElement)) opener.focus();
    menu.remove();
  });
  opener.setAttribute('aria-expanded', 'true');
  // In a dialog the rest of the page is inert; elsewhere it belongs to the opener's landmark.
  (opener.closest('dialog, main, nav') ?? document.body).append(menu);
  menu.showPopover();
  place(menu, opener);
  (/** @type {HTMLElement|null} */ (menu.querySelector('[aria-checked="true"]') ?? menu.firstElementChild))?.focus();
}

/**
 * @param {Item} item
 * @param {() => void} close
 */
function entry(item, close) {
  const role = item.checked === undefined ? 'menuitem' : 'menuitemradio';
  const act = () => {
    close();
    item.act();
  };
  return el('button', {
    type: 'button', role, tabindex: -1, 'aria-checked': item.checked === undefined ? null : String(item.checked), on: { click: act },
  }, item.icon && icon(item.icon), el('span', { class: 'grow' }, item.label), item.checked && icon('check'), item.key && keyCap(item.key));
}

/**
 * @param {HTMLElement} menu
 * @param {HTMLElement} opener
 */
function place(menu, opener) {
  const at = opener.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + 4 + height <= innerHeight || at.top < height;
  menu.style.setProperty('left', `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`);
  menu.style.setProperty('top', `${below ? at.bottom + 4 : at.top - height - 4}px`);
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} menu
 */
function move(event, menu) {
  const entries = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('button')]);
  const now = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: entries.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  entries[(next + entries.length) % entries.length]?.focus();
}
