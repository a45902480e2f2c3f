// Activity.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Activity'));
  return { element, title: 'Activity', show() {}, hide() {} };
}
