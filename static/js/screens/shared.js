// Shared.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Shared'));
  return { element, title: 'Shared', show() {}, hide() {} };
}
