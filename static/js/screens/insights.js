// Insights: what is searched and how fast, what is stored, and a map of the library.

import { get } from '../core/api.js';
import { el, fill } from '../core/dom.js';
import { count, formatBytes, formatNumber } from '../core/words.js';
import { changed, choice, load, table, topBar } from '../parts/frame.js';
import { chart, legend } from './insights/charts.js';
import { figures } from './insights/figures.js';
import { MapPanel } from './insights/map.js';
import { searchList } from './insights/searches.js';

/** @typedef {import('../core/dom.js').Children} Children */

const RANGES = [7, 30, 90];
/** @type {Record<string, string>} */
const LEVELS = { video: 'whole videos', clip: 'shots', moment: 'moments', passage: 'spoken passages' };

class Insights {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Insights';
    this.period = el('div');
    this.list = el('div');
    this.numbers = el('div', { class: 'dash', id: 'numbers' });
    this.stored = el('div', { class: 'dash' });
    this.map = new MapPanel(page);
    this.element = el('div', {}, topBar('Insights', this.period), el('div', { class: 'page gaps' }, this.list, this.numbers, this.map.element, this.stored));
    this.parameters = new URLSearchParams();
    this.days = 0;
    this.stop = new AbortController();
  }

  /** @param {import('../core/router.js').Route} route */
  show({ parameters }) {
    const isNew = this.stop.signal.aborted;
    const days = RANGES.find((number) => String(number) === parameters.get('days')) ?? 30;
    this.parameters = parameters;
    if (isNew || days !== this.days) {
      this.stop.abort();
      this.stop = new AbortController();
      this.days = days;
      load(this.numbers, this.stop.signal, () => this.readNumbers());
      load(this.stored, this.stop.signal, () => this.readStored());
      this.map.show();
    }
    fill(this.period, choice('Period', RANGES.map((number) => [`${number} days`, this.to({ days: String(number) }), number === days])));
    const list = parameters.get('list');
    this.list.hidden = !list;
    fill(this.list, list && searchList(list, days, this.to({ list: null }), this.stop.signal));
    this.list.querySelector('h2')?.focus();
  }

  hide() {
    this.stop.abort();
    this.map.hide();
  }

  /** @param {Record<string, string|null>} changes */
  to(changes) {
    return changed('/insights', this.parameters, changes);
  }

  async readNumbers() {
    const all = await figures(this.days, this.stop.signal);
    const { latency_ms: latency, searches, without_results: nothing, days } = all;
    const dates = days.map(({ day }) => day);
    const inMs = (/** @type {number} */ value) => `${formatNumber(value)} ms`;
    const inHours = (/** @type {number} */ value) => (value > 0 && value < 3600 ? `${formatNumber(value / 60)} min` : `${formatNumber(value / 3600)} h`);
    const series = (/** @type {string} */ name, /** @type {string} */ tone, /** @type {(day: typeof days[number]) => number|undefined} */ value, write = formatNumber) => ({ name, tone, values: days.map((day) => value(day) ?? null), write });
    const used = [series('found nothing', 's1', (day) => day.without_results), series('answered', 's3', (day) => day.searches - day.without_results)];
    const times = [series('half', 's3', (day) => day.latency_ms?.p50, inMs), series('95 %', 's2', (day) => day.latency_ms?.p95, inMs), series('99 %', 's1', (day) => day.latency_ms?.p99, inMs)];
    const added = [series('videos', 's2', (day) => day.videos_added), series('of footage', '', (day) => day.seconds_added, inHours)];
    const link = (/** @type {string} */ list) => this.to({ list });
    const go = (/** @type {string} */ path) => this.page.router.go(path);
    return [
      !all.complete && el('p', { class: 'span-12 small dim' }, 'Too much to count all of it: only the newest is counted.'),
      stat('Searches', formatNumber(searches), '', `${formatNumber(searches / this.days)} a day`, link('all')),
      stat('Half are faster than', latency ? formatNumber(latency.p50) : '–', 'ms', latency ? `95 % under ${inMs(latency.p95)}, 99 % under ${inMs(latency.p99)}` : 'no searches yet', link('slow')),
      stat('Found nothing', searches > 0 ? formatNumber((nothing / searches) * 100) : '–', '%', count(nothing, 'search', 'searches'), link('nothing')),
      stat('Added', formatNumber(all.videos_added), all.videos_added === 1 ? 'video' : 'videos', `${inHours(all.seconds_added)} of footage`, '/library'),
      panel('Searches a day', 6, legend(used), chart('Searches a day', dates, used, true, link, go)),
      panel('Time to answer', 6, legend(times), chart('Time to answer', dates, times, false, link, go)),
      panel('Most searched', 4, 'searches', this.texts(all.most_searched, 'Nothing was searched by words in this time.')),
      panel('Found nothing', 4, el('a', { class: 'link small', href: link('nothing') }, 'or only weak hits'), this.texts(all.nothing_found, 'Every search found something.')),
      panel('Added a day', 4, legend(added), chart('Videos added a day', dates, added, true, null)),
    ];
  }

  /**
   * @param {import('./insights/figures.js').Text[]} texts
   * @param {string} none
   */
  texts(texts, none) {
    return texts.length === 0 ? el('p', { class: 'none' }, none) : el('ol', {}, texts.slice(0, 6).map(({ text, searches }) => el('li', {},
      el('a', { class: 'hbar', href: this.to({ list: `text:${text}` }), title: text }, el('i', { vars: { '--share': searches / texts[0].searches } }), el('span', { class: 'clip1' }, text), el('span', { class: 'count' }, formatNumber(searches))))));
  }

  async readStored() {
    /** @type {Api<'Stats'>} */
    const { engine, index, ...stats } = await get('/v1/stats', { signal: this.stop.signal });
    /** @type {[string, string, number][]} */
    const used = [['Videos', 's2', stats.media_bytes], ['In the trash', 's1', stats.trashed_bytes], ['Vectors, in memory', 's3', index.reduce((sum, { bytes }) => sum + bytes, 0)]];
    const sum = used.reduce((total, [, , bytes]) => total + bytes, 0);
    const state = engine.trouble ?? (typeof engine.behind !== 'number' ? 'does not answer' : engine.behind > 0 ? `${count(engine.behind, 'change')} behind` : 'up to date');
    return [
      panel('Vectors and index', 7, `Engine: ${engine.kind === 'builtin' ? 'built in' : engine.kind}, ${state}`, index.length > 0
        ? table('Vectors and index', ['Space', 'Level', '>Vectors', '>Recall at 10', '>Memory'], index.map((level) => [level.space, LEVELS[level.level], formatNumber(level.live), recall(level), formatBytes(level.bytes)]))
        : el('p', { class: 'none' }, 'Nothing is indexed yet, or your key reaches some videos only.')),
      panel('Storage', 5, formatBytes(sum), el('div', { class: 'stack', 'aria-hidden': 'true' }, used.map(([, tone, bytes]) => el('i', { class: tone, vars: { '--share': bytes / (sum || 1) } }))),
        el('ul', { class: 'small stored' }, used.map(([name, tone, bytes]) => el('li', { class: 'row' }, el('span', { class: `key ${tone} grow` }, name), el('span', { class: 'num muted' }, formatBytes(bytes)))),
          el('li', { class: 'dim' }, `${count(stats.videos, 'video')}, ${count(stats.clips, 'shot')}, ${count(stats.passages, 'spoken passage')}; ${stats.videos_trashed} in the trash`))),
    ];
  }
}

/** @param {Api<'SearchedLevel'>} level */
function recall({ graph, recall_at_10: share, keys_equal: equal }) {
  if (equal === false) return el('span', { class: 'bad' }, 'differs from the catalog');
  return graph ? share?.toFixed(3) ?? 'not checked yet' : 'exact';
}

/** @param {string[]} texts label, value, unit, note, address */
const stat = (...[label, value, unit, note, href]) => el('a', { class: 'panel stat span-3', href }, el('span', { class: 'small muted' }, label),
  el('b', {}, value, el('span', { class: 'muted unit' }, ` ${unit}`)), el('span', { class: 'tiny num dim' }, note));

/**
 * @param {string} title
 * @param {number} span columns of 12
 * @param {Children} aside
 * @param {...Children} body
 */
const panel = (title, span, aside, ...body) => el('section', { class: `panel span-${span}` }, el('h2', {}, title, typeof aside === 'string' ? el('small', {}, aside) : aside), ...body);

/** @param {import('../main.js').Page} page */
export const make = (page) => new Insights(page);
