// Watch.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Watch'));
  return { element, title: 'Watch', show() {}, hide() {} };
}
