// A grid of cards that may be very long: only chunks near the window are in the document. The others are boxes of
// their height. While somebody scrolls, one chunk is drawn in each frame of the screen. The grid is one tab stop; arrows
// move inside.

import { el } from '../core/dom.js';

/** Rows in a chunk. */
const ROWS = 2;
/** Chunks within this distance of the window are drawn, in CSS pixels. */
const NEAR_PX = 1200;
/** Columns of the grid that was measured last: the next one most likely has as many. */
let usualColumns = 1;

/**
 * @template T
 * @typedef {object} Parts
 * @property {(item: T, place: number) => HTMLElement} make draws a card. Its first link or button takes the focus.
 * @property {() => void} [onEnd] the end came near: a good time to load more
 * @property {(item: T, place: number) => void} [onFocus]
 * @property {string} [label] what the list contains, for screen readers
 */

/** @template T */
export class Grid {
  /** @param {Parts<T>} parts */
  constructor({ make, onEnd = () => {}, onFocus = () => {}, label = '' }) {
    this.make = make;
    this.onFocus = onFocus;
    /** @type {T[]} */
    this.items = [];
    this.columns = usualColumns;
    this.current = 0;
    /** @type {Set<HTMLElement>} chunks near the window that are not drawn yet */
    this.due = new Set();
    this.frame = 0;
    this.list = el('div', { class: 'chunks', role: 'list', 'aria-label': label || null });
    this.end = el('div', { class: 'grid-end', 'aria-hidden': 'true' });
    this.element = el('div', { class: 'isolate' }, this.list, this.end);
    this.near = new IntersectionObserver((seen) => seen.forEach((entry) => this.toggle(entry)), { rootMargin: `${NEAR_PX}px 0px` });
    this.atEnd = new IntersectionObserver((seen) => { if (seen.some(({ isIntersecting }) => isIntersecting)) onEnd(); }, { rootMargin: `${NEAR_PX}px 0px` });
    this.sizes = new ResizeObserver(() => this.measure());
    this.element.addEventListener('keydown', (event) => this.move(event));
    this.element.addEventListener('focusin', (event) => this.noteFocus(event));
    this.sizes.observe(this.element);
    this.atEnd.observe(this.end);
  }

  /**
   * Shows other items.
   * @param {T[]} items
   */
  set(items) {
    this.items = items;
    this.current = Math.min(this.current, Math.max(0, items.length - 1));
    this.rebuild();
  }

  /**
   * Adds items at the end.
   * @param {T[]} items
   */
  append(items) {
    const kept = Math.floor(this.items.length / this.perChunk);
    const focused = this.list.contains(document.activeElement);
    this.items = [...this.items, ...items];
    // Only a last chunk that was not full may be in sight.
    const inSight = this.list.children.length > kept || kept === 0;
    while (this.list.children.length > kept) this.dropChunk(/** @type {HTMLElement} */ (this.list.lastElementChild));
    this.addChunks(kept, inSight);
    // The last chunk may have been drawn anew with the focus in it.
    if (focused && !this.list.contains(document.activeElement)) this.stop(this.current)?.focus({ preventScroll: true });
    this.askForMore();
  }

  /**
   * Shows changed items in the places of the old ones, without a jump.
   * @param {T[]} items
   */
  update(items) {
    this.items = items;
    this.current = Math.min(this.current, Math.max(0, items.length - 1));
    const chunks = Math.ceil(items.length / this.perChunk);
    while (this.list.children.length > chunks) this.dropChunk(/** @type {HTMLElement} */ (this.list.lastElementChild));
    this.redraw();
    this.addChunks(this.list.children.length, false);
  }

  /** Draws the cards near the window anew: their state has changed. */
  redraw() {
    for (const chunk of /** @type {HTMLElement[]} */ ([...this.list.children])) {
      if (chunk.firstChild) this.draw(chunk);
    }
  }

  /** The observer reports changes only: an end that stays in sight must be looked at again. */
  askForMore() {
    this.atEnd.unobserve(this.end);
    this.atEnd.observe(this.end);
  }

  get perChunk() {
    return this.columns * ROWS;
  }

  /** Reads how many columns the style sheet makes of this width; other columns make other chunks. */
  measure() {
    // A grid that was taken out of the page has no width; it keeps its cards for its return.
    if (this.element.offsetWidth === 0) return;
    const probe = el('div', { class: 'grid' });
    this.list.append(probe);
    const columns = getComputedStyle(probe).gridTemplateColumns.split(' ').length;
    probe.remove();
    if (columns === this.columns) return;
    this.columns = columns;
    usualColumns = columns;
    this.rebuild();
  }

  rebuild() {
    while (this.list.firstElementChild) this.dropChunk(/** @type {HTMLElement} */ (this.list.firstElementChild));
    this.addChunks(0, true);
    this.askForMore();
  }

  /**
   * @param {number} from
   * @param {boolean} inSight whether the first of them is seen at once; the observer would draw it a frame later
   */
  addChunks(from, inSight) {
    for (let place = from; place * this.perChunk < this.items.length; place += 1) {
      const chunk = el('div', { class: 'grid', role: 'presentation', data: { chunk: place } });
      this.list.append(chunk);
      if (place === from && inSight) this.draw(chunk);
      else chunk.style.setProperty('height', `${this.guessHeight()}px`);
      this.near.observe(chunk);
    }
  }

  /** The height of a chunk that was never drawn: that of the first one. */
  guessHeight() {
    return this.list.firstElementChild?.getBoundingClientRect().height ?? 0;
  }

  /** @param {HTMLElement} chunk */
  dropChunk(chunk) {
    this.near.unobserve(chunk);
    this.due.delete(chunk);
    chunk.remove();
  }

  /** @param {IntersectionObserverEntry} entry */
  toggle({ target, isIntersecting, boundingClientRect }) {
    const chunk = /** @type {HTMLElement} */ (target);
    if (!isIntersecting) this.due.delete(chunk);
    if (isIntersecting && !chunk.firstChild) {
      this.due.add(chunk);
      this.frame ||= requestAnimationFrame(() => this.drawDue());
    } else if (!isIntersecting && chunk.firstChild && chunk.isConnected && !chunk.contains(document.activeElement)) {
      chunk.style.setProperty('height', `${boundingClientRect.height}px`);
      chunk.replaceChildren();
    }
  }

  /** Draws the chunk that is nearest to the middle of the window, and the others in the frames after. */
  drawDue() {
    /** @param {HTMLElement} chunk */
    const distance = (chunk) => {
      const { top, bottom } = chunk.getBoundingClientRect();
      return Math.abs(top + bottom - window.innerHeight);
    };
    const [nearest] = [...this.due].sort((one, other) => distance(one) - distance(other));
    if (nearest) this.draw(nearest);
    this.frame = this.due.size > 0 ? requestAnimationFrame(() => this.drawDue()) : 0;
  }

  /** @param {HTMLElement} chunk */
  draw(chunk) {
    this.due.delete(chunk);
    const first = Number(chunk.dataset.chunk) * this.perChunk;
    const focused = chunk.contains(document.activeElement);
    const cards = this.items.slice(first, first + this.perChunk).map((item, offset) => {
      const card = this.make(item, first + offset);
      card.setAttribute('role', 'listitem');
      card.dataset.place = String(first + offset);
      for (const inside of card.querySelectorAll('a, button, input')) inside.setAttribute('tabindex', '-1');
      return card;
    });
    chunk.replaceChildren(...cards);
    chunk.style.removeProperty('height');
    this.stop(this.current)?.setAttribute('tabindex', '0');
    if (focused) this.stop(this.current)?.focus({ preventScroll: true });
  }

  /**
   * The card of a place, if it is in the document.
   * @param {number} place
   * @returns {HTMLElement|null}
   */
  card(place) {
    return this.list.querySelector(`[data-place="${place}"]`);
  }

  /**
   * What takes the focus in a card.
   * @param {number} place
   * @returns {HTMLElement|null}
   */
  stop(place) {
    return this.card(place)?.querySelector('a, button') ?? null;
  }

  /**
   * Moves the focus to a card and shows it.
   * @param {number} place
   */
  focus(place) {
    if (place < 0 || place >= this.items.length) return;
    const chunk = /** @type {HTMLElement|undefined} */ (this.list.children[Math.floor(place / this.perChunk)]);
    if (chunk && !chunk.firstChild) this.draw(chunk);
    this.stop(this.current)?.setAttribute('tabindex', '-1');
    this.current = place;
    const stop = this.stop(place);
    stop?.setAttribute('tabindex', '0');
    stop?.focus();
  }

  /** @param {FocusEvent} event */
  noteFocus(event) {
    const card = event.target instanceof Element ? event.target.closest('[data-place]') : null;
    if (!(card instanceof HTMLElement)) return;
    const place = Number(card.dataset.place);
    if (place !== this.current) {
      this.stop(this.current)?.setAttribute('tabindex', '-1');
      this.current = place;
      this.stop(place)?.setAttribute('tabindex', '0');
    }
    this.onFocus(this.items[place], place);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }[event.key];
    const target = { Home: 0, End: this.items.length - 1 }[event.key] ?? (step === undefined ? null : this.current + step);
    if (target === null || !(event.target instanceof Element) || !event.target.closest('[data-place]')) return;
    event.preventDefault();
    this.focus(target);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.near.disconnect();
    this.atEnd.disconnect();
    this.sizes.disconnect();
  }
}
