// Draws a query's score over the time of a video, with its hits as bands and the playhead; a press seeks.

import { el, fill, svg } from './dom.js';
import { formatRange, formatTime } from './time.js';

/** Height that the lowest score still has, so that it differs from "nothing is known". */
const FLOOR = 0.08;

/** The area under the scores as a path: one unit a step wide, 1 high; nothing where nothing is known. */
export function areaPath(scores) {
  const known = scores.filter((score) => score !== null);
  const low = Math.min(...known);
  const high = Math.max(...known);
  const height = (score) => (high > low ? FLOOR + (1 - FLOOR) * ((score - low) / (high - low)) : 0.5);
  let path = '';
  scores.forEach((score, step) => {
    if (score === null) return;
    const begins = step === 0 || scores[step - 1] === null;
    const ends = step + 1 === scores.length || scores[step + 1] === null;
    path += `${begins ? `M${step} 1` : ''}V${(1 - height(score)).toFixed(4)}H${step + 1}${ends ? 'V1Z' : ''}`;
  });
  return path;
}

export class Timeline {
  /**
   * @param {object} options
   * @param {number} options.duration seconds, over 0
   * @param {(seconds: number) => void} options.onSeek
   * @param {(place: number) => void} options.onHit
   */
  constructor({ duration, onSeek, onHit }) {
    Object.assign(this, { duration, onSeek, onHit });
    this.area = svg('path', { class: 'area' });
    this.picture = svg('svg', { role: 'img', preserveAspectRatio: 'none' }, this.area);
    this.bands = el('div', { 'aria-hidden': true });
    this.head = el('div', { class: 'head', 'aria-hidden': true });
    this.pointer = el('span', { class: 'pointer', 'aria-hidden': true, hidden: true });
    this.plot = el('div', { class: 'plot' }, this.picture, this.bands, this.head, this.pointer);
    this.marks = el('ol', { class: 'marks', 'aria-label': 'Hits in this video' });
    this.element = el('div', { class: 'timeline', id: 'timeline' }, this.plot, this.marks);
    this.listen();
  }

  listen() {
    this.plot.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.plot.setPointerCapture(event.pointerId);
      this.onSeek(this.timeAt(event.clientX));
    });
    this.plot.addEventListener('pointermove', (event) => {
      this.point(event.clientX);
      if (this.plot.hasPointerCapture(event.pointerId)) this.onSeek(this.timeAt(event.clientX));
    });
    this.plot.addEventListener('pointerleave', () => { this.pointer.hidden = true; });
  }

  /** Writes the time under the pointer. */
  point(clientX) {
    const at = this.timeAt(clientX);
    this.pointer.hidden = false;
    this.pointer.textContent = formatTime(at);
    this.pointer.style.left = this.percent(at);
  }

  timeAt(clientX) {
    const box = this.plot.getBoundingClientRect();
    return Math.min(1, Math.max(0, (clientX - box.left) / box.width)) * this.duration;
  }

  percent(seconds) {
    return `${(Math.min(Math.max(seconds / this.duration, 0), 1) * 100).toFixed(4)}%`;
  }

  /** @param {{step: number, scores: (number|null)[]}|null} scored null takes the scores away */
  setScores(scored) {
    const steps = scored ? this.duration / scored.step : 1;
    this.picture.setAttribute('viewBox', `0 0 ${steps} 1`);
    this.area.setAttribute('d', scored ? areaPath(scored.scores) : '');
  }

  /** @param {object[]} hits in the order of time */
  setHits(hits) {
    fill(this.bands, hits.map((hit) => this.place(el('div', { class: 'band' }), hit)));
    fill(this.marks, hits.map((hit, place) => this.mark(hit, place)));
  }

  /** Next and previous do the same by keyboard, so the marks are no stops of the Tab key. */
  mark(hit, place) {
    const label = `Hit ${place + 1}, ${formatRange(hit.start, hit.end)}`;
    const press = el('button', {
      type: 'button', tabindex: -1, 'aria-label': label, title: label, data: { rank: hit.rank },
      on: { click: () => this.onHit(place) },
    });
    return this.place(el('li', {}, press), hit);
  }

  place(element, { start, end }) {
    element.style.setProperty('--from', this.percent(start));
    element.style.setProperty('--to', this.percent(end));
    return element;
  }

  /** Shows one hit as the one that plays; -1: none. */
  setCurrent(place) {
    [...this.marks.children].forEach((mark, index) => mark.classList.toggle('current', index === place));
  }

  /** What the picture shows, in words. */
  setLabel(label) {
    this.picture.setAttribute('aria-label', label);
  }

  setHead(seconds) {
    this.head.style.left = this.percent(seconds);
  }
}
