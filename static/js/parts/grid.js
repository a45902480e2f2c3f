// A grid of cards that may be very long: only chunks near the window are in the document. The others are boxes of
// their height. While somebody scrolls, one row of cards is drawn in each frame of the screen. The grid is one tab stop;
// arrows move inside.

import { el } from '../core/dom.js';
import { drawsRows } from '../core/scrolling.js';

/** Rows in a chunk. */
const ROWS = 3;
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

/** @param {DOMRectReadOnly} rect */
const middleOf = ({ top, bottom }) => (top + bottom) / 2;

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
    /** @type {Map<HTMLElement, number>} chunks near the window that still lack rows, and how far from its middle they came */
    this.due = new Map();
    this.frame = 0;
    this.list = el('div', { class: 'chunks', role: 'list', 'aria-label': label || null });
    this.end = el('div', { class: 'grid-end', 'aria-hidden': 'true' });
    this.element = el('div', { class: 'isolate' }, this.list, this.end);
    this.near = new IntersectionObserver((seen) => seen.forEach((entry) => this.toggle(entry)), { rootMargin: `${NEAR_PX}px 0px` });
    this.atEnd = new IntersectionObserver((seen) => { if (seen.some(({ isIntersecting }) => isIntersecting)) onEnd(); }, { rootMargin: `${NEAR_PX}px 0px` });
    this.width = 0;
    this.sizes = new ResizeObserver(([{ contentRect }]) => this.resize(contentRect.width));
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
    const last = /** @type {HTMLElement|null} */ (this.list.lastElementChild);
    const isFull = this.items.length % this.perChunk === 0;
    this.items = [...this.items, ...items];
    // A last chunk that is not full keeps its cards. New ones follow them.
    if (last?.firstChild && !isFull) this.drawLater(last, 0);
    this.addChunks(this.list.children.length, !last);
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

  /**
   * Measures the columns when the width changes. The height changes with each row that is drawn, and says nothing of them.
   * @param {number} width of the grid, in CSS pixels
   */
  resize(width) {
    if (width === this.width) return;
    this.width = width;
    this.measure();
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
    let height = this.guessHeight();
    for (let place = from; place * this.perChunk < this.items.length; place += 1) {
      const chunk = el('div', { class: 'grid', role: 'presentation', data: { chunk: place } });
      this.list.append(chunk);
      if (place === from && inSight) {
        this.draw(chunk);
        height = this.guessHeight();
      } else {
        chunk.style.setProperty('height', `${height}px`);
      }
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
  toggle({ target, isIntersecting, boundingClientRect, rootBounds }) {
    const chunk = /** @type {HTMLElement} */ (target);
    if (isIntersecting && !chunk.firstChild) {
      this.drawLater(chunk, Math.abs(middleOf(boundingClientRect) - middleOf(rootBounds ?? boundingClientRect)));
    } else if (!isIntersecting && chunk.isConnected && !chunk.contains(document.activeElement)) {
      this.due.delete(chunk);
      if (!chunk.firstChild) return;
      chunk.style.setProperty('height', `${boundingClientRect.height}px`);
      chunk.replaceChildren();
    }
  }

  /**
   * @param {HTMLElement} chunk
   * @param {number} distance of its middle from that of the window, in CSS pixels
   */
  drawLater(chunk, distance) {
    this.due.set(chunk, distance);
    this.drawSoon();
  }

  drawSoon() {
    drawsRows(this, true);
    this.frame ||= requestAnimationFrame(() => this.drawDue());
  }

  /** Draws no row in the next frame. */
  stopDrawing() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    drawsRows(this, false);
  }

  /** Draws the next row of the chunk that came nearest to the middle of the window, and the others in the frames after. */
  drawDue() {
    // The distances are those of the observer: to measure here would lay the page out once more in this frame.
    const [nearest] = [...this.due].sort((one, other) => one[1] - other[1]);
    this.stopDrawing();
    if (nearest) this.drawRow(nearest[0]);
    if (this.due.size > 0) this.drawSoon();
  }

  /** @param {HTMLElement} chunk */
  drawRow(chunk) {
    const [first, drawn] = [Number(chunk.dataset.chunk) * this.perChunk, chunk.children.length];
    const whole = Math.min(this.perChunk, this.items.length - first);
    const until = Math.min(drawn + this.columns, whole);
    chunk.append(...this.cards(first + drawn, first + until));
    if (until === whole) this.settle(chunk);
    this.stop(this.current)?.setAttribute('tabindex', '0');
  }

  /** @param {HTMLElement} chunk */
  draw(chunk) {
    const first = Number(chunk.dataset.chunk) * this.perChunk;
    const focused = chunk.contains(document.activeElement);
    chunk.replaceChildren(...this.cards(first, first + this.perChunk));
    this.settle(chunk);
    this.stop(this.current)?.setAttribute('tabindex', '0');
    if (focused) this.stop(this.current)?.focus({ preventScroll: true });
  }

  /** A chunk that has all its cards is as high as they are. @param {HTMLElement} chunk */
  settle(chunk) {
    this.due.delete(chunk);
    chunk.style.removeProperty('height');
  }

  /**
   * The cards of some places.
   * @param {number} from
   * @param {number} until the place after the last one
   */
  cards(from, until) {
    return this.items.slice(from, until).map((item, offset) => {
      const card = this.make(item, from + offset);
      card.setAttribute('role', 'listitem');
      card.dataset.place = String(from + offset);
      for (const inside of card.querySelectorAll('a, button, input')) inside.setAttribute('tabindex', '-1');
      return card;
    });
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
    if (chunk && !this.card(place)) this.draw(chunk);
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
    this.due.clear();
    this.stopDrawing();
    this.near.disconnect();
    this.atEnd.disconnect();
    this.sizes.disconnect();
  }
}
