// Library.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Library'));
  return { element, title: 'Library', show() {}, hide() {} };
}
