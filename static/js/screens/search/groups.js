// Hits by video: each video with where its hits lie, and its cards. Moves like a grid: one tab stop, arrows inside.

import { el } from '../../core/dom.js';
import { videoPath } from '../../core/router.js';
import { formatTime } from '../../core/time.js';
import { count } from '../../core/words.js';
import { nameLater } from '../../parts/card.js';
import { hitTitle } from '../../parts/hits.js';
import { videoLater } from '../../parts/videos.js';

/** @typedef {import('./results.js').Item} Item */

export class Groups {
  /** @param {{make: (item: Item, place: number) => HTMLElement, onFocus: (item: Item) => void, query: URLSearchParams}} parts */
  constructor({ make, onFocus, query }) {
    this.make = make;
    this.query = query;
    /** @type {Item[]} */
    this.items = [];
    this.current = 0;
    this.element = el('div', { class: 'groups isolate' });
    this.element.addEventListener('keydown', (event) => this.move(event));
    this.element.addEventListener('focusin', (event) => {
      const place = Number(/** @type {HTMLElement} */ (event.target).closest('[data-place]')?.getAttribute('data-place') ?? -1);
      if (place < 0) return;
      this.setCurrent(place);
      onFocus(this.items[place]);
    });
  }

  /** @param {Api<'Group'>[]} groups */
  append(groups) {
    for (const group of groups) {
      const first = this.items.length;
      const items = group.results.map((hit) => ({ hit, alike: [] }));
      this.items.push(...items);
      this.element.append(this.section(group, items, first));
    }
    this.setCurrent(this.current);
  }

  /** @param {Api<'Group'>} group @param {Item[]} items @param {number} first */
  section({ video_id: id, results }, items, first) {
    const name = el('a', { href: videoPath(id, null, this.query) }, hitTitle(results[0]));
    const length = el('span', { class: 'dim small num only-l length' });
    const ticks = el('div', { class: 'ticks only-l', role: 'img', 'aria-label': `Where the hits are in ${hitTitle(results[0])}` });
    nameLater(results[0], name);
    videoLater(id).then(({ duration }) => {
      if (!duration) return;
      length.textContent = formatTime(duration);
      ticks.append(...results.map(({ start, end }) => el('i', { vars: { left: `${(100 * start) / duration}%`, width: `${(100 * (end - start)) / duration}%` } })));
    }, () => {});
    return el('section', { class: 'group' },
      el('div', { class: 'row' }, el('h2', { class: 'clip1' }, name), el('span', { class: 'dim small num' }, count(results.length, 'moment')),
        el('span', { class: 'grow' }), ticks, length),
      el('div', { class: 'grid', role: 'list' }, items.map((item, place) => this.draw(item, first + place))));
  }

  /** @param {Item} item @param {number} place */
  draw(item, place) {
    const card = this.make(item, place);
    card.setAttribute('role', 'listitem');
    card.dataset.place = String(place);
    for (const inside of card.querySelectorAll('a, button')) inside.setAttribute('tabindex', '-1');
    return card;
  }

  /** @param {number} place @returns {HTMLElement|null} */
  card(place) {
    return this.element.querySelector(`[data-place="${place}"]`);
  }

  /** @param {number} place @returns {HTMLElement|null} */
  stop(place) {
    return this.card(place)?.querySelector('a') ?? null;
  }

  /** @param {number} place */
  setCurrent(place) {
    this.stop(this.current)?.setAttribute('tabindex', '-1');
    this.current = place;
    this.stop(place)?.setAttribute('tabindex', '0');
  }

  /** @param {number} place */
  focus(place) {
    if (!this.stop(place)) return;
    this.setCurrent(place);
    this.stop(place)?.focus();
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const cards = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('[data-place]')]);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const row = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.focus(this.current + step);
    else if (row) this.focus(below(cards, this.current, row));
    else return;
    event.preventDefault();
  }
}

/** The nearest card in the next row (1) or the one before (-1). @param {HTMLElement[]} cards @param {number} from @param {number} way */
function below(cards, from, way) {
  const boxes = cards.map((card) => card.getBoundingClientRect());
  const here = boxes[from];
  const rows = boxes.map(({ top }) => (top - here.top) * way).filter((far) => far > 4);
  const next = Math.min(...rows);
  let best = from;
  let least = Infinity;
  boxes.forEach(({ top, left }, place) => {
    if (Math.abs((top - here.top) * way - next) < 4 && Math.abs(left - here.left) < least) {
      best = place;
      least = Math.abs(left - here.left);
    }
  });
  return best;
}
