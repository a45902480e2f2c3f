// Reels.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Reels'));
  return { element, title: 'Reels', show() {}, hide() {} };
}
