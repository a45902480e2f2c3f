// Search.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Search'));
  return { element, title: 'Search', show() {}, hide() {} };
}
