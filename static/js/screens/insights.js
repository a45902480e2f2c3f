// Insights.

import { el } from '../core/dom.js';

export function make() {
  const element = el('div', { class: 'page' }, el('h1', {}, 'Insights'));
  return { element, title: 'Insights', show() {}, hide() {} };
}
