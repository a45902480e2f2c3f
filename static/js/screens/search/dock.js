// The chosen hits, and what can be done with them: into the reel, tagged, exported.

import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { toasts } from '../../core/toast.js';
import { count, formatLength, formatNumber } from '../../core/words.js';
import { forgetVideos, videoOf } from '../../parts/videos.js';

/** @typedef {Api<'Hit'>} Hit */

export class Dock {
  /** @param {{view: import('./results.js').Results|null, found: HTMLElement, facets: import('./facets.js').FacetPanel, addToReel: (hits: Hit[]) => void}} screen */
  constructor(screen) {
    this.screen = screen;
    /** @type {Map<string, Hit>} by the id of its span */
    this.chosen = new Map();
    this.last = '';
    this.element = el('div', { class: 'dock', role: 'region', 'aria-label': 'Selection', hidden: true });
  }

  get size() {
    return this.chosen.size;
  }

  get hits() {
    return [...this.chosen.values()];
  }

  /** @param {Hit} hit */
  has(hit) {
    return this.chosen.has(hit.clip_id);
  }

  /** @param {Hit} hit @param {boolean} [range] chooses all from the last one to this */
  toggle(hit, range = false) {
    const all = this.screen.view?.items ?? [];
    const [from, to] = [this.last, hit.clip_id].map((id) => all.findIndex((one) => one.hit.clip_id === id)).sort((one, other) => one - other);
    if (range && from >= 0) for (const one of all.slice(from, to + 1)) this.chosen.set(one.hit.clip_id, one.hit);
    else if (!this.chosen.delete(hit.clip_id)) this.chosen.set(hit.clip_id, hit);
    this.last = hit.clip_id;
    this.draw();
  }

  chooseAll() {
    for (const { hit } of this.screen.view?.items ?? []) this.chosen.set(hit.clip_id, hit);
    this.draw();
  }

  clear() {
    if (this.size === 0) return;
    if (this.element.contains(document.activeElement)) document.getElementById('main')?.focus({ preventScroll: true });
    this.chosen.clear();
    this.draw();
  }

  draw() {
    const { hits } = this;
    this.element.hidden = hits.length === 0;
    this.screen.found.classList.toggle('choosing', hits.length > 0);
    this.screen.view?.markChosen();
    if (hits.length === 0) return;
    fill(this.element, el('span', { class: 'mini only-l' }, hits.slice(0, 3).map((hit) => el('img', { src: hit.thumbnail_url, alt: '' }))),
      el('span', { class: 'small num picked' }, `${formatNumber(hits.length)} selected `,
        el('span', { class: 'dim only-l' }, `· ${formatLength(hits.reduce((sum, { start, end }) => sum + end - start, 0))}`)),
      el('span', { class: 'sep only-l' }),
      button([icon('list-plus'), 'Add to reel ', keyCap('R')], () => this.screen.addToReel(hits), { class: 'btn primary' }),
      button([icon('tag'), el('span', { class: 'only-l' }, 'Tag')], () => this.tag(hits), { class: 'btn ghost', 'aria-label': 'Tag' }),
      button([icon('download'), el('span', { class: 'only-l' }, 'Export')], async () => (await import('./export.js')).openExport(hits, this.screen.view?.answer?.search_id), { class: 'btn ghost', 'aria-label': 'Export' }),
      iconButton('x', 'Clear selection', () => this.clear(), { key: 'Esc' }));
  }

  /** Changes the tags of the hits' videos. @param {Hit[]} hits */
  async tag(hits) {
    const ids = [...new Set(hits.map((hit) => hit.video_id))];
    const { askTags, tag } = await import('../../parts/labels.js');
    try {
      const videos = await Promise.all(ids.map(videoOf));
      const tags = await askTags(videos);
      if (!tags) return;
      const undo = await tag(videos, tags.add, tags.take);
      const changed = () => {
        forgetVideos(ids);
        this.screen.facets.labels = undefined;
      };
      changed();
      toasts.show([`Tagged ${count(ids.length, 'video')} `, el('b', {}, tags.add.join(', '))], { undo: () => undo().then(changed) });
    } catch (error) {
      toasts.problem(error);
    }
  }
}
