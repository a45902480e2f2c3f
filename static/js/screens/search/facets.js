// What narrows a search: videos, folders, tags and days with what the server counted, lengths, and where it was found.

import { get } from '../../core/api.js';
import { button, el, fill, icon } from '../../core/dom.js';
import { formatNumber, titleOf } from '../../core/words.js';
import { nameLater } from '../../parts/card.js';
import { hitTitle } from '../../parts/hits.js';
import { EVERYWHERE, FILTERS, LENGTHS, canHear, isText, sourcesOf } from '../../parts/query.js';
import { videoOf } from '../../parts/videos.js';
import { SOURCES } from './ask.js';

/** Values that are shown at first. */
const FEW = 6;

/** @typedef {{value: string, label: string|Node, count?: number}} Value */

/** Chips of the filters that are on. @param {URLSearchParams} parameters @param {(changes: Record<string, string[]>) => void} change */
export function filterChips(parameters, change) {
  const on = FILTERS.flatMap((name) => parameters.getAll(name).map((value) => ({ name, value })));
  if (on.length === 0) return null;
  const chips = on.map(({ name, value }) => {
    const label = el('span', {}, name === 'length' ? (LENGTHS.find(([length]) => length === value)?.[1] ?? value) : name === 'video' ? 'One video' : value);
    if (name === 'video') videoOf(value).then((video) => { label.textContent = titleOf(video); }, () => {});
    return el('span', { class: 'chip on' }, label, button(icon('x', 's'), () => change({ [name]: parameters.getAll(name).filter((one) => one !== value) }),
      { class: '', 'aria-label': `Remove the filter ${value}` }));
  });
  const none = Object.fromEntries(FILTERS.map((name) => [name, []]));
  return el('div', { class: 'row wrap chips', role: 'group', 'aria-label': 'Filters that are on' }, chips, button('Clear all', () => change(none), { class: 'btn ghost low' }));
}

export class FacetPanel {
  /** @param {(changes: Record<string, string[]|string|null>) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.element = el('div', { class: 'facets' });
    /** @type {Set<string>} facets that are shown whole */
    this.whole = new Set();
    /** @type {Promise<any>|undefined} */
    this.labels = undefined;
  }

  /** @param {URLSearchParams} parameters @param {Api<'Facets'>|null} facets */
  async show(parameters, facets) {
    this.labels ??= Promise.all([get('/v1/folders'), get('/v1/tags', { query: { limit: 100 } })]).catch(() => { this.labels = undefined; });
    const shown = {};
    this.shown = shown;
    this.draw(parameters, facets, this.known);
    const labels = await this.labels;
    if (!labels || labels === this.known) return;
    this.known = labels;
    if (this.shown === shown) this.draw(parameters, facets, labels);
  }

  /** @param {URLSearchParams} parameters @param {Api<'Facets'>|null} facets @param {any} labels */
  draw(parameters, facets, labels) {
    const counts = (/** @type {string} */ by) => facets?.counts.find((one) => one.by === by)?.values ?? [];
    const days = counts('day').map(({ value, hits }) => ({ value: String(value), label: String(value), count: hits }));
    const videos = counts('video').map(({ value, title, hits }) => {
      const label = el('span', { class: 'clip1' }, hitTitle({ title: title ?? '', video_id: String(value) }));
      return { value: String(value), label, count: hits, name: () => nameLater({ title: title ?? '', video_id: String(value) }, label) };
    });
    // All folders and tags are here, those of the hits first; what the server has not listed may have hits all the same.
    const labelled = (/** @type {'folder'|'tag'} */ by, /** @type {{value: string, label: string}[]} */ all) => {
      const facet = facets?.counts.find((one) => one.by === by);
      const known = new Map(facet?.values.map(({ value, hits }) => [String(value).toLowerCase(), hits]));
      const rest = facet?.other_values === 0 ? 0 : undefined;
      return all.map((one) => ({ ...one, count: known.get(one.value.toLowerCase()) ?? rest })).sort((one, other) => (other.count ?? 0) - (one.count ?? 0));
    };
    fill(this.element, canHear(parameters) && this.sources(parameters),
      this.facet('video', 'Video', videos, parameters),
      this.facet('folder', 'Folder', labelled('folder', (labels?.[0].items ?? []).map((/** @type {any} */ { folder, name }) => ({ value: folder, label: name }))), parameters),
      this.facet('tag', 'Tag', labelled('tag', (labels?.[1].items ?? []).map((/** @type {any} */ { tag }) => ({ value: tag, label: tag }))), parameters),
      this.facet('day', 'Recorded', days, parameters),
      this.facet('length', 'Length of video', LENGTHS.map(([value, label]) => ({ value, label })), parameters));
  }

  /** @param {URLSearchParams} parameters */
  sources(parameters) {
    // A change of a clip is looked for in what is seen, if nothing else is said.
    const now = sourcesOf(parameters)?.join(',') ?? (isText(parameters) ? EVERYWHERE : SOURCES[1][0]);
    const choices = SOURCES.map(([named, label]) => {
      const value = named || (isText(parameters) ? null : EVERYWHERE);
      return this.row(label, now === (value ?? EVERYWHERE), () => this.onChange({ sources: value }), undefined, 'radio');
    });
    return el('section', { class: 'facet' }, el('h2', { class: 'h' }, 'Found in'), el('ul', {}, choices));
  }

  /**
   * @param {string} name of the parameter
   * @param {string} label
   * @param {(Value & {name?: () => void})[]} values
   * @param {URLSearchParams} parameters
   */
  facet(name, label, values, parameters) {
    const chosen = parameters.getAll(name);
    const missing = chosen.filter((one) => !values.some(({ value }) => value === one) && name !== 'video').map((value) => ({ value, label: value }));
    /** @type {(Value & {name?: () => void})[]} */
    const all = [...missing, ...values];
    if (all.length === 0) return null;
    const isWhole = this.whole.has(name);
    const shown = isWhole ? all : all.slice(0, FEW);
    for (const one of shown) one.name?.();
    const rows = shown.map(({ value, label: text, count }) => this.row(text, chosen.includes(value), () => this.onChange({
      [name]: chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value],
    }), count));
    const more = all.length > FEW && button(isWhole ? 'Fewer' : `${formatNumber(all.length - FEW)} more`, () => {
      if (isWhole) this.whole.delete(name);
      else this.whole.add(name);
      section.replaceWith(/** @type {Node} */ (this.facet(name, label, values, parameters)));
    }, { class: 'btn ghost low' });
    const section = el('section', { class: 'facet' }, el('h2', { class: 'h' }, label, all.length > FEW && el('span', { class: 'count' }, formatNumber(all.length))), el('ul', {}, rows), more);
    return section;
  }

  /** @param {string|Node} label @param {boolean} on @param {() => void} act @param {number} [count] @param {string} [role] */
  row(label, on, act, count, role = 'checkbox') {
    return el('li', {}, button([el('span', { class: on ? 'check on' : 'check' }, on && icon('check')), typeof label === 'string' ? el('span', { class: 'clip1' }, label) : label,
      count !== undefined && el('span', { class: 'count' }, formatNumber(count))], act, { class: on ? 'pickrow on' : 'pickrow', role, 'aria-checked': String(on) }));
  }
}
