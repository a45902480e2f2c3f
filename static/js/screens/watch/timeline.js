// The timeline: ruler, filmstrip with cuts and marks, score of the query with its hits, and the whole video below.

import { el, fill, svg } from '../../core/dom.js';
import { formatRange, formatTime } from '../../core/time.js';

/** @typedef {{start: number|null, end: number|null}} Marks */
/** @typedef {{start: number, end: number}} Span */

/** Distances of the ruler's numbers, seconds. */
const STEPS = [0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
const LABEL_PX = 84;
const LEAST_SPAN_S = 0.8;
const CURVE_POINTS = 360;
const CURVE_HEIGHT = 44;
const CURVE_TOP = 6;

/** @param {number} number @param {number} low @param {number} high */
const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

export class Timeline {
  /**
   * @param {object} parts
   * @param {number} parts.duration seconds, over 0
   * @param {number} parts.frameLength seconds
   * @param {(seconds: number) => void} parts.onSeek
   * @param {(marks: Marks) => void} parts.onMarks
   * @param {(place: number) => void} parts.onHit
   */
  constructor({ duration, frameLength, onSeek, onMarks, onHit }) {
    this.onSeek = onSeek;
    this.onMarks = onMarks;
    this.onHit = onHit;
    this.duration = duration;
    this.frameLength = frameLength;
    this.from = 0;
    this.to = duration;
    this.time = 0;
    /** @type {import('../../parts/filmstrip.js').Filmstrip|null} */
    this.strip = null;
    /** @type {number[]} */
    this.cuts = [];
    /** @type {Api<'Timeline'>|null} */
    this.scored = null;
    /** @type {Span[]} */
    this.hits = [];
    this.current = -1;
    /** @type {Marks} */
    this.marks = { start: null, end: null };
    this.drawing = 0;
    this.ruler = el('div', { class: 'ruler', 'aria-hidden': 'true' });
    this.canvas = el('canvas', { class: 'pictures', 'aria-hidden': 'true' });
    this.shots = el('div', { class: 'shots', 'aria-hidden': 'true' });
    this.veils = [el('div', { class: 'veil' }), el('div', { class: 'veil' })];
    this.film = el('div', { class: 'film' }, this.canvas, this.shots, this.veils);
    this.inHandle = this.handle('In', 'start');
    this.outHandle = this.handle('Out', 'end');
    this.range = el('div', { class: 'range', hidden: true }, this.inHandle, this.outHandle);
    this.area = svg('path', { class: 'area' });
    this.line = svg('path', { class: 'ln' });
    const picture = svg('svg', { viewBox: `0 0 1000 ${CURVE_HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, this.area, this.line);
    this.bands = el('div', { class: 'bands', 'aria-hidden': 'true' });
    this.curve = el('div', { class: 'curve' }, picture, this.bands);
    this.head = el('div', { class: 'head', 'aria-hidden': 'true' });
    this.pointer = el('span', { class: 'pointer num', 'aria-hidden': 'true', hidden: true });
    this.view = el('div', { class: 'view' });
    this.ticks = el('div', { class: 'bands' });
    this.over = el('div', { class: 'over', 'aria-hidden': 'true' }, this.ticks, this.view);
    this.element = el('div', { class: 'tl', id: 'timeline', role: 'group' }, this.ruler, this.film, this.range, this.curve, this.head, this.pointer, this.over);
    this.sizes = new ResizeObserver(() => this.redraw());
    this.sizes.observe(this.element);
    this.listen();
  }

  /** @param {string} name @param {'start'|'end'} edge */
  handle(name, edge) {
    return el('b', {
      role: 'slider', tabindex: 0, 'aria-label': name, title: `${name}: arrows move it by a frame, with ⇧ by a second`, 'aria-valuemin': 0,
      'aria-valuemax': this.duration, data: { edge }, on: { keydown: (/** @type {KeyboardEvent} */ event) => this.nudge(event, edge) },
    });
  }

  listen() {
    const { element } = this;
    element.addEventListener('pointerdown', (event) => this.press(event));
    element.addEventListener('pointermove', (event) => this.point(event.clientX));
    element.addEventListener('pointerleave', () => { this.pointer.hidden = true; });
    element.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0 || !(event.target instanceof Element)) return;
    const { target } = event;
    const band = /** @type {HTMLElement|null} */ (target.closest('[data-hit]'));
    if (band) this.onHit(Number(band.dataset.hit));
    else if (target instanceof HTMLElement && target.dataset.edge) this.drag(event, this.dragEdge(/** @type {'start'|'end'} */ (target.dataset.edge)));
    else if (this.over.contains(target)) this.drag(event, this.dragView(event));
    else this.drag(event, (x) => this.onSeek(this.timeAt(x)));
  }

  /** @param {PointerEvent} event @param {(x: number) => void} move */
  drag(event, move) {
    const { element } = this;
    const follow = (/** @type {PointerEvent} */ moved) => move(moved.clientX);
    const stop = () => {
      element.removeEventListener('pointermove', follow);
      for (const name of ['pointerup', 'pointercancel']) element.removeEventListener(name, stop);
    };
    // The handle keeps the focus for the arrows; text elsewhere must not be selected.
    if (!(event.target instanceof HTMLElement && event.target.dataset.edge)) event.preventDefault();
    element.setPointerCapture(event.pointerId);
    element.addEventListener('pointermove', follow);
    for (const name of ['pointerup', 'pointercancel']) element.addEventListener(name, stop);
    move(event.clientX);
  }

  /** @param {'start'|'end'} edge */
  dragEdge(edge) {
    return (/** @type {number} */ x) => this.moveEdge(edge, this.timeAt(x));
  }

  /** @param {PointerEvent} event */
  dragView(event) {
    const box = this.over.getBoundingClientRect();
    const at = (/** @type {number} */ x) => clamp((x - box.left) / box.width, 0, 1) * this.duration;
    const span = this.to - this.from;
    const pressed = at(event.clientX);
    const inside = pressed >= this.from && pressed <= this.to;
    const grip = inside ? pressed - this.from : span / 2;
    return (/** @type {number} */ x) => this.show(at(x) - grip, at(x) - grip + span);
  }

  /** Moves a mark to a frame's edge; it can't pass the other one. @param {'start'|'end'} edge @param {number} seconds */
  moveEdge(edge, seconds) {
    const { start, end } = this.marks;
    const { frameLength: frame } = this;
    const time = Math.round(seconds / frame) * frame;
    const low = edge === 'end' && start !== null ? start + frame : 0;
    const high = edge === 'start' && end !== null ? end - frame : this.duration;
    this.onMarks({ ...this.marks, [edge]: Math.floor(clamp(time, low, Math.max(low, high)) * 1000 + 0.001) / 1000 });
  }

  /** @param {KeyboardEvent} event @param {'start'|'end'} edge */
  nudge(event, edge) {
    const step = event.shiftKey ? 1 : this.frameLength;
    const at = this.marks[edge] ?? 0;
    const to = { ArrowRight: at + step, ArrowUp: at + step, ArrowLeft: at - step, ArrowDown: at - step, Home: 0, End: this.duration }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.moveEdge(edge, to + 0.0015);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const along = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) this.zoom(1.0025 ** event.deltaY, this.timeAt(event.clientX));
    else if (along !== 0 && Math.abs(along) >= Math.abs(event.deltaY) * (event.shiftKey ? 0 : 1)) this.pan((along / this.element.clientWidth) * (this.to - this.from));
    else return;
    event.preventDefault();
  }

  /** @param {number} x of the pointer */
  timeAt(x) {
    const box = this.element.getBoundingClientRect();
    return clamp(this.from + ((x - box.left) / box.width) * (this.to - this.from), 0, this.duration);
  }

  /** @param {number} x */
  point(x) {
    this.pointer.hidden = false;
    this.pointer.textContent = formatTime(Math.floor(this.timeAt(x) * 10) / 10, { fraction: true });
    this.pointer.style.setProperty('left', `${x - this.element.getBoundingClientRect().left}px`);
  }

  /** @param {number} factor under 1 shows less, larger @param {number} [at] the time that stays in its place */
  zoom(factor, at = clamp(this.time, this.from, this.to)) {
    const span = clamp((this.to - this.from) * factor, Math.min(LEAST_SPAN_S, this.duration), this.duration);
    const share = (at - this.from) / (this.to - this.from);
    this.show(at - share * span, at - share * span + span);
  }

  /** @param {number} seconds */
  pan(seconds) {
    this.show(this.from + seconds, this.to + seconds);
  }

  /** Shows a stretch with room around it. @param {Span} span */
  fit({ start, end }) {
    const room = Math.max((end - start) * 0.35, 0.5);
    this.show(start - room, end + room);
  }

  showAll() {
    this.show(0, this.duration);
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const span = Math.min(this.duration, to - from);
    this.from = clamp(from, 0, this.duration - span);
    this.to = this.from + span;
    this.redraw();
  }

  /** A video that was not read yet tells its length when it opens. @param {number} duration */
  setDuration(duration) {
    if (duration === this.duration || !(duration > 0)) return;
    this.duration = duration;
    this.showAll();
  }

  /** @param {import('../../parts/filmstrip.js').Filmstrip|null} strip */
  setStrip(strip) {
    this.strip = strip;
    this.redraw();
  }

  /** @param {number[]} cuts */
  setCuts(cuts) {
    this.cuts = cuts;
    this.redraw();
  }

  /** @param {Api<'Timeline'>|null} scored */
  setScores(scored) {
    this.scored = scored;
    this.redraw();
  }

  /** @param {Span[]} hits in the order that their numbers have */
  setHits(hits) {
    this.hits = hits;
    this.redraw();
  }

  /** @param {number} place -1: none */
  setCurrent(place) {
    if (place === this.current) return;
    this.current = place;
    for (const band of /** @type {NodeListOf<HTMLElement>} */ (this.bands.querySelectorAll('[data-hit]'))) {
      band.classList.toggle('now', Number(band.dataset.hit) === place);
    }
  }

  /** @param {Marks} marks */
  setMarks(marks) {
    this.marks = marks;
    for (const [handle, at] of /** @type {[HTMLElement, number|null][]} */ ([[this.inHandle, marks.start], [this.outHandle, marks.end]])) {
      handle.hidden = at === null;
      handle.setAttribute('aria-valuenow', String(at ?? 0));
      handle.setAttribute('aria-valuetext', formatTime(at ?? 0, { fraction: true }));
    }
    this.placeMarks();
  }

  /** @param {number} seconds @param {boolean} playing then the view turns its page where the head would leave it */
  setTime(seconds, playing) {
    this.time = seconds;
    const span = this.to - this.from;
    if (playing && span < this.duration && (seconds > this.to || seconds < this.from)) this.show(seconds - span * 0.05, seconds + span * 0.95);
    this.placeHead();
  }

  /** Brings a time into view. @param {number} seconds */
  reveal(seconds) {
    if (seconds < this.from || seconds > this.to) this.pan(seconds - (this.from + this.to) / 2);
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  /** @param {number} seconds */
  percent(seconds) {
    return `${(((seconds - this.from) / (this.to - this.from)) * 100).toFixed(3)}%`;
  }

  draw() {
    this.element.setAttribute('aria-label', `Timeline, ${formatTime(this.from)} to ${formatTime(this.to)} of ${formatTime(this.duration)}`);
    this.drawRuler();
    this.strip?.draw(this.canvas, this.from, this.to);
    this.drawCuts();
    this.drawCurve();
    this.drawHits();
    this.placeMarks();
    this.placeHead();
    // It keeps its room: hits may come.
    this.over.classList.toggle('idle', this.to - this.from >= this.duration && this.hits.length === 0);
    this.put(this.view, this.from / this.duration, (this.to - this.from) / this.duration);
  }

  /** @param {HTMLElement} node @param {number} left share of the width @param {number} width share of the width */
  put(node, left, width) {
    node.style.setProperty('left', `${(left * 100).toFixed(3)}%`);
    node.style.setProperty('width', `${(Math.max(0, width) * 100).toFixed(3)}%`);
    return node;
  }

  drawRuler() {
    const span = this.to - this.from;
    const most = Math.max(2, this.element.clientWidth / LABEL_PX);
    const step = STEPS.find((one) => span / one <= most) ?? STEPS[STEPS.length - 1];
    const labels = [];
    for (let place = Math.floor(this.from / step); place * step <= this.to; place += 1) {
      const at = place * step;
      const label = el('span', {}, formatTime(Math.round(at * 10) / 10, { fraction: true }));
      label.style.setProperty('left', this.percent(at));
      labels.push(label);
    }
    // Lines between the numbers are one repeated picture.
    const width = (step / span) * 100;
    this.ruler.style.setProperty('--step', `${(width * this.element.clientWidth) / 100}px`);
    this.ruler.style.setProperty('--from', `${((Math.floor(this.from / step) * step - this.from) / span) * this.element.clientWidth}px`);
    fill(this.ruler, labels);
  }

  drawCuts() {
    const inside = this.cuts.filter((at) => at > this.from && at < this.to);
    // More lines than this are a texture and no help.
    const few = inside.length > this.element.clientWidth / 8 ? [] : inside;
    fill(this.shots, few.map((at) => {
      const cut = el('i', { class: 'shot' });
      cut.style.setProperty('left', this.percent(at));
      return cut;
    }));
  }

  drawCurve() {
    const { scored } = this;
    const points = scored ? this.points(scored) : [];
    const known = points.flatMap(({ score }) => (score === null ? [] : [score]));
    const low = Math.min(...known);
    const high = Math.max(...known);
    const y = (/** @type {number} */ score) => (high > low ? CURVE_TOP + (1 - (score - low) / (high - low)) * (CURVE_HEIGHT - CURVE_TOP - 4) : CURVE_HEIGHT / 2);
    let line = '';
    let area = '';
    let first = 0;
    points.forEach(({ x, score }, place) => {
      if (score === null) return;
      const begins = (points[place - 1]?.score ?? null) === null;
      if (begins) first = x;
      const at = `${x.toFixed(1)} ${y(score).toFixed(1)}`;
      line += `${begins ? 'M' : 'L'}${at}`;
      area += `${begins ? 'M' : 'L'}${at}`;
      if ((points[place + 1]?.score ?? null) === null) area += `L${x.toFixed(1)} ${CURVE_HEIGHT}L${first.toFixed(1)} ${CURVE_HEIGHT}Z`;
    });
    this.line.setAttribute('d', line);
    this.area.setAttribute('d', area);
  }

  /** The scores in view; many are joined to their best. @param {Api<'Timeline'>} scored */
  points({ step, scores }) {
    const first = Math.max(0, Math.floor(this.from / step) - 1);
    const last = Math.min(scores.length, Math.ceil(this.to / step) + 1);
    const join = Math.max(1, Math.ceil((last - first) / CURVE_POINTS));
    const points = [];
    for (let place = first - (first % join); place < last; place += join) {
      const some = scores.slice(place, place + join).filter((score) => score !== null);
      const at = (place + join / 2) * step;
      points.push({ x: ((at - this.from) / (this.to - this.from)) * 1000, score: some.length > 0 ? Math.max(...some) : null });
    }
    return points;
  }

  drawHits() {
    const span = this.to - this.from;
    fill(this.bands, this.hits.map(({ start, end }, place) => (end < this.from || start > this.to ? null
      : this.put(el('i', { class: place === this.current ? 'hit now' : 'hit', data: { hit: place }, title: formatRange(start, end) }), (start - this.from) / span, (end - start) / span))));
    fill(this.ticks, this.hits.map(({ start, end }) => this.put(el('i', { class: 'hit' }), start / this.duration, (end - start) / this.duration)));
  }

  placeMarks() {
    const { start, end } = this.marks;
    const span = this.to - this.from;
    const share = (/** @type {number} */ at) => (at - this.from) / span;
    this.range.hidden = start === null && end === null;
    this.range.classList.toggle('half', start === null || end === null);
    const left = start ?? end ?? 0;
    const right = end ?? start ?? 0;
    this.put(this.range, share(left), share(right) - share(left));
    const veiled = start !== null && end !== null;
    for (const veil of this.veils) veil.hidden = !veiled;
    this.put(this.veils[0], 0, clamp(share(left), 0, 1));
    this.put(this.veils[1], clamp(share(right), 0, 1), 1 - clamp(share(right), 0, 1));
  }

  placeHead() {
    const share = (this.time - this.from) / (this.to - this.from);
    this.head.hidden = share < 0 || share > 1;
    this.head.style.setProperty('transform', `translateX(${share * this.element.clientWidth}px)`);
  }

  close() {
    this.sizes.disconnect();
    cancelAnimationFrame(this.drawing);
  }
}
