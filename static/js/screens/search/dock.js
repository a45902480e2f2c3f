// The chosen hits, and what can be done with them: into the reel, tagged, exported.

import { patch } from '../../core/api.js';
import { openDialog } from '../../core/dialog.js';
import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { toasts } from '../../core/toast.js';
import { count, formatLength, formatNumber } from '../../core/words.js';
import { forgetVideos, videoOf } from '../../parts/videos.js';

/** @typedef {Api<'Hit'>} Hit */

export class Dock {
  /** @param {{view: import('./results.js').Results|null, found: HTMLElement, addToReel: (hits: Hit[]) => void}} screen */
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
      button([icon('tag'), 'Tag'], () => this.tag(hits), { class: 'btn ghost' }),
      button([icon('download'), 'Export'], async () => (await import('./export.js')).openExport(hits, this.screen.view?.answer?.search_id), { class: 'btn ghost' }),
      iconButton('x', 'Clear selection', () => this.clear(), { key: 'Esc' }));
  }

  /** Asks for a tag, and gives it to the videos of hits. @param {Hit[]} hits */
  tag(hits) {
    const ids = [...new Set(hits.map((hit) => hit.video_id))];
    const input = el('input', { id: 'new-tag', maxlength: 60, required: true, autocomplete: 'off' });
    const form = el('form', { class: 'col', on: { submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      dialog.close();
      this.addTag(ids, input.value.trim());
    } } },
    el('label', { for: 'new-tag', class: 'label' }, `Tag of ${count(ids.length, 'video')}`), el('div', { class: 'field' }, input),
    el('button', { type: 'submit', class: 'btn primary' }, 'Tag'));
    const dialog = openDialog({ id: 'tagging', title: 'Tag', class: 'narrow', body: [form] });
    input.focus();
  }

  /** @param {string[]} ids @param {string} tag */
  async addTag(ids, tag) {
    if (!tag) return;
    const hasTag = (/** @type {string[]} */ tags) => tags.some((one) => one.toLowerCase() === tag.toLowerCase());
    const change = (/** @type {any} */ changes) => patch('/v1/videos', { json: changes }).then(() => forgetVideos(ids));
    try {
      // Undo must not take it from those that had it before.
      const videos = await Promise.all(ids.map(videoOf));
      const news = videos.filter(({ tags }) => !hasTag(tags)).map(({ id }) => id);
      if (news.length > 0) await change({ ids: news, add_tags: [tag] });
      toasts.show([`Tagged ${count(ids.length, 'video')} `, el('b', {}, tag)], { undo: () => news.length > 0 && change({ ids: news, remove_tags: [tag] }) });
    } catch (error) {
      toasts.problem(error);
    }
  }
}
