// Charts of days: bars or curves as SVG, the values under the pointer, and the same as a table.

import { el, fill, svg } from '../../core/dom.js';
import { table } from '../../parts/frame.js';

const WIDTH = 600;
const TOP = 10;
const BASE = 130;

/**
 * @typedef {object} Series
 * @property {string} name
 * @property {string} tone `s1`, `s2` or `s3`; '' is in the table alone
 * @property {(number|null)[]} values one for each day; null: none
 * @property {(value: number) => string} write
 */

/** @param {string} day */
export const shortDay = (day) => new Date(`${day}T00:00Z`).toLocaleDateString([], { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** @param {Series[]} series */
export const legend = (series) => el('small', { class: 'row' }, series.filter(({ tone }) => tone).map(({ name, tone }) => el('span', { class: `key ${tone}` }, name)));

/**
 * @param {string} label
 * @param {string[]} days dates
 * @param {Series[]} series bars are stacked, the first below
 * @param {boolean} hasBars
 * @param {((day: string) => string)|null} link address of a day's searches
 * @param {(path: string) => void} [go]
 */
export function chart(label, days, series, hasBars, link, go) {
  const drawn = series.filter(({ tone }) => tone);
  const highest = Math.max(...days.map((_, at) => {
    const values = drawn.map(({ values: all }) => all[at] ?? 0);
    return hasBars ? values.reduce((sum, value) => sum + value) : Math.max(...values);
  })) || 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  const most = power * ([1, 2, 4].find((factor) => factor * power >= highest) ?? 10);
  const y = (/** @type {number} */ value) => BASE - (value / most) * (BASE - TOP);
  const step = WIDTH / days.length;
  const bars = () => days.map((_, at) => {
    let below = 0;
    return drawn.map(({ tone, values }) => {
      const foot = y(below);
      below += values[at] ?? 0;
      return values[at] ? svg('rect', { class: tone, x: (at + 0.1) * step, y: y(below), width: step * 0.8, height: foot - y(below) }) : null;
    });
  });
  // Days beside days without searches are short lines of their own.
  const curve = (/** @type {(number|null)[]} */ values) => values.map((value, at) => (value === null ? ''
    : (values[at - 1] ?? null) === null ? `M${at * step} ${y(value)}h${step / 2}` : `L${(at + 0.5) * step} ${y(value)}`)).join('');
  const hair = svg('path', { class: 'hair' });
  const drawing = svg('svg', { viewBox: `0 0 ${WIDTH} 140`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${label}; the table below has the values` },
    svg('path', { class: 'line', d: [TOP, 70, BASE].map((line) => `M0 ${line}H${WIDTH}`).join('') }),
    hasBars ? bars() : drawn.map(({ tone, values }) => svg('path', { class: `curve ${tone}`, d: curve(values) })), hair);
  const tip = el('div', { class: 'tip num', hidden: true });
  const dayAt = (/** @type {MouseEvent} */ { clientX }) => {
    const { left, width } = drawing.getBoundingClientRect();
    return Math.max(0, Math.min(days.length - 1, Math.floor(((clientX - left) / width) * days.length)));
  };
  const written = (/** @type {Series} */ { values, write }, /** @type {number} */ at) => (values[at] === null ? '–' : write(/** @type {number} */ (values[at])));
  drawing.addEventListener('pointermove', (event) => {
    const at = dayAt(event);
    hair.setAttribute('d', `M${(at + 0.5) * step} ${TOP}V${BASE}`);
    fill(tip, el('b', {}, shortDay(days[at])), series.map((one) => el('span', { class: `key ${one.tone}` }, `${one.name} ${written(one, at)}`)));
    tip.style.setProperty('--at', String((at + 0.5) / days.length));
    tip.hidden = false;
  });
  drawing.addEventListener('pointerleave', () => {
    tip.hidden = true;
    hair.removeAttribute('d');
  });
  if (link && go) drawing.addEventListener('click', (event) => go(link(days[dayAt(event)])));
  const twin = el('details', { class: 'twin small', on: { toggle: () => {
    if (twin.children.length > 1) return;
    twin.append(table(label, ['Day', ...series.map(({ name }) => `>${name}`)], [...days.keys()].reverse().map((at) => [
      link ? el('a', { class: 'link', href: link(days[at]) }, shortDay(days[at])) : shortDay(days[at]), ...series.map((one) => written(one, at))]), 'tall'));
  } } }, el('summary', {}, 'As a table'));
  return el('figure', { class: 'chart' },
    el('div', { class: 'plot' }, drawing, [most, most / 2, 0].map((value, at) => el('span', { class: `dim tiny num y y${at}`, 'aria-hidden': 'true' }, drawn[0].write(value))), tip),
    el('div', { class: 'row spread dim tiny num x', 'aria-hidden': 'true' }, [0, 0.25, 0.5, 0.75, 1].map((share) => el('span', {}, shortDay(days[Math.round(share * (days.length - 1))])))), twin);
}
