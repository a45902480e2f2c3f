// Reel.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Reel'));
  return { element, title: 'Reel', show() {}, hide() {} };
}
