// Models.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Models'));
  return { element, title: 'Models', show() {}, hide() {} };
}
