// Plays the hit under the pointer, muted; the pointer's x scrubs through it.

import { el } from '../core/dom.js';
import { onRest } from '../core/scrolling.js';
import { still } from './loop.js';

const HOVER_MS = 150;
/** The pointer rests this long, and what it scrubbed through plays on. */
const REST_MS = 500;
/** The pointer scrubs after it moved so far, in CSS pixels. */
const MOVED_PX = 6;

export class Previews {
  /**
   * @param {HTMLElement} list holds cards
   * @param {(card: HTMLElement) => string|null} addressOf a card's preview
   * @param {(card: HTMLElement) => void} [onHover]
   */
  constructor(list, addressOf, onHover = () => {}) {
    this.addressOf = addressOf;
    this.onHover = onHover;
    /** @type {HTMLElement|null} */
    this.card = null;
    /** @type {HTMLVideoElement|null} */
    this.video = null;
    this.timer = 0;
    this.rest = 0;
    this.from = 0;
    list.addEventListener('pointerover', (event) => { if (event.pointerType !== 'touch') this.enter(event); });
    list.addEventListener('pointerleave', () => this.stop());
    list.addEventListener('pointermove', (event) => this.scrub(event));
    // Nothing hovers on a touch screen: what is in the middle plays.
    this.close = matchMedia('(hover: none)').matches
      ? onRest(() => { if (list.isConnected) this.enterAt(innerWidth / 4, innerHeight / 2); }) : () => {};
  }

  /** @param {number} x @param {number} y */
  enterAt(x, y) {
    this.enter({ target: document.elementFromPoint(x, y), clientX: x });
  }

  /** @param {{target: EventTarget|null, clientX: number}} event */
  enter(event) {
    const card = event.target instanceof Element ? /** @type {HTMLElement|null} */ (event.target.closest('.card')) : null;
    if (card === this.card) return;
    this.stop();
    if (!card) return;
    this.card = card;
    this.from = event.clientX;
    this.timer = window.setTimeout(() => {
      this.onHover(card);
      if (!still()) this.play(card);
    }, HOVER_MS);
  }

  /** @param {HTMLElement} card */
  play(card) {
    const thumb = card.querySelector('.thumb');
    const address = this.addressOf(card);
    if (!thumb || !address) return;
    this.card = card;
    const bar = el('i', { class: 'scrub' });
    const video = el('video', { class: 'moving', playsinline: true, loop: true, tabindex: -1, 'aria-hidden': 'true', disablepictureinpicture: true });
    video.muted = true;
    video.addEventListener('timeupdate', () => { bar.style.setProperty('width', `${(100 * video.currentTime) / (video.duration || 1)}%`); });
    // The picture stays until the first frame is there.
    video.addEventListener('playing', () => video.classList.add('ready'), { once: true });
    video.addEventListener('error', () => { if (this.video === video) this.stop(); });
    video.src = address;
    this.video = video;
    thumb.append(video, bar);
    video.play().catch(() => {});
  }

  /** @param {PointerEvent} event */
  scrub(event) {
    const { video, card } = this;
    if (event.pointerType === 'touch' || !video || !card || !(video.duration > 0)) return;
    if (Math.abs(event.clientX - this.from) < MOVED_PX) return;
    const box = card.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    video.pause();
    video.currentTime = share * video.duration * 0.98;
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => {
      this.from = event.clientX;
      video.play().catch(() => {});
    }, REST_MS);
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.rest);
    this.card?.querySelector('.scrub')?.remove();
    this.card = null;
    if (!this.video) return;
    this.video.removeAttribute('src');
    this.video.load();
    this.video.remove();
    this.video = null;
  }
}
