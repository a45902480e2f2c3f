// Draws the map on a canvas, zooms and pans it, and follows pointer and arrow keys.

import { el } from '../../core/dom.js';
import { Nearby } from './points.js';

const REACH_PX = 16;
const CLICK_PX = 4;
/** With more points than this, a move shifts the last picture and draws anew only when it stops. */
const MANY = 20_000;
const SETTLE_MS = 90;
/** @type {Record<string, (right: number, up: number) => boolean>} */
const TOWARDS = {
  ArrowRight: (right, up) => right > 1e-6 && Math.abs(up) <= right,
  ArrowLeft: (right, up) => right < -1e-6 && Math.abs(up) <= -right,
  ArrowUp: (right, up) => up > 1e-6 && Math.abs(right) <= up,
  ArrowDown: (right, up) => up < -1e-6 && Math.abs(right) <= -up,
};

export class MapView {
  /**
   * @param {import('./points.js').Points} points
   * @param {{hover: (point: number, x: number, y: number) => void, open: (point: number) => void, chosen: (points: number[]) => void}} parts
   */
  constructor(points, parts) {
    this.parts = parts;
    this.points = points;
    this.nearby = new Nearby(points);
    this.element = el('canvas', { class: 'map', tabindex: 0, role: 'application', 'aria-label': 'Map of the library. Arrow keys go from shot to shot, Enter opens one, plus and minus zoom. The list below has the same shots.' });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.element.getContext('2d'));
    this.picture = document.createElement('canvas');
    /** @type {string[]} the colour of each point */
    this.colours = [];
    /** @type {[string, number, number][]} */
    this.labels = [];
    this.view = { zoom: 1, x: 0, y: 0 };
    /** What the picture shows; zoom 0: nothing that can be used. */
    this.drawn = { zoom: 0, x: 0, y: 0 };
    this.hot = -1;
    this.isLasso = false;
    /** @type {[number, number][]} */
    this.outline = [];
    /** @type {Set<number>} */
    this.picked = new Set();
    this.frame = 0;
    this.settle = 0;
    new ResizeObserver(() => this.redraw()).observe(this.element);
    this.listen();
  }

  get size() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const up = Math.min(width, height) * 0.47 * this.view.zoom;
    // A wide window is used by stretching the plane a little.
    return { width, height, up, right: up * Math.max(1, Math.min(1.8, width / height)) };
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toScreen(x, y) {
    const { width, height, up, right } = this.size;
    return [width / 2 + (x - this.view.x) * right, height / 2 - (y - this.view.y) * up];
  }

  /** @param {number} left @param {number} top @returns {[number, number]} */
  toMap(left, top) {
    const { width, height, up, right } = this.size;
    return [this.view.x + (left - width / 2) / right, this.view.y - (top - height / 2) / up];
  }

  /** Draws all points anew. */
  redraw() {
    this.drawn.zoom = 0;
    this.refresh();
  }

  refresh() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.element.clientWidth > 0) this.draw();
    });
  }

  draw() {
    const { context, element, picture, view, drawn } = this;
    const ratio = devicePixelRatio;
    const isSame = drawn.zoom === view.zoom && drawn.x === view.x && drawn.y === view.y;
    const waits = !isSame && drawn.zoom > 0 && this.points.x.length > MANY;
    if (!isSame && !waits) this.drawPicture(ratio);
    element.width = picture.width;
    element.height = picture.height;
    if (waits) {
      const grow = view.zoom / drawn.zoom;
      const [left, top] = this.toScreen(drawn.x, drawn.y);
      context.drawImage(picture, left * ratio - (picture.width / 2) * grow, top * ratio - (picture.height / 2) * grow, picture.width * grow, picture.height * grow);
      clearTimeout(this.settle);
      this.settle = window.setTimeout(() => this.redraw(), SETTLE_MS);
    } else {
      context.drawImage(picture, 0, 0);
    }
    context.scale(ratio, ratio);
    this.drawOver(context);
  }

  /** @param {number} ratio */
  drawPicture(ratio) {
    const { points: { x, y }, picture, colours, picked, view } = this;
    const { width, height, up, right } = this.size;
    picture.width = Math.round(width * ratio);
    picture.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (picture.getContext('2d'));
    context.scale(ratio, ratio);
    const radius = (x.length > MANY ? 1 : 2.8) * Math.min(2.5, view.zoom ** 0.3);
    for (let point = 0; point < x.length; point += 1) {
      const left = width / 2 + (x[point] - view.x) * right;
      const top = height / 2 - (y[point] - view.y) * up;
      if (left < -8 || left > width + 8 || top < -8 || top > height + 8) continue;
      if (context.fillStyle !== colours[point]) context.fillStyle = colours[point];
      context.globalAlpha = picked.size > 0 && !picked.has(point) ? 0.25 : 0.8;
      if (x.length > MANY) {
        context.fillRect(left - radius, top - radius, 2 * radius, 2 * radius);
      } else {
        context.beginPath();
        context.arc(left, top, radius, 0, 7);
        context.fill();
      }
    }
    this.drawn = { ...view };
  }

  /** What changes while the picture stays: names, the point under the pointer, the lasso. @param {CanvasRenderingContext2D} context */
  drawOver(context) {
    const { color, backgroundColor, fontFamily } = getComputedStyle(this.element);
    Object.assign(context, { font: `600 12px ${fontFamily}`, textAlign: 'center', lineWidth: 4, strokeStyle: backgroundColor, fillStyle: color });
    for (const [text, x, y] of this.labels) {
      const [left, top] = this.toScreen(x, y);
      context.strokeText(text, left, top - 8);
      context.fillText(text, left, top - 8);
    }
    context.lineWidth = 2;
    context.strokeStyle = color;
    context.beginPath();
    for (const corner of this.outline) context.lineTo(...this.toScreen(...corner));
    context.closePath();
    context.stroke();
    if (this.hot < 0) return;
    context.beginPath();
    context.arc(...this.toScreen(this.points.x[this.hot], this.points.y[this.hot]), 6, 0, 7);
    context.fillStyle = this.colours[this.hot];
    context.fill();
    context.stroke();
  }

  /**
   * Zooms, and keeps a place of the canvas where it is.
   * @param {number} factor
   * @param {number} [left]
   * @param {number} [top]
   */
  zoom(factor, left = this.size.width / 2, top = this.size.height / 2) {
    const [x, y] = this.toMap(left, top);
    this.view.zoom = Math.max(1, Math.min(60, this.view.zoom * factor));
    const [nowX, nowY] = this.toMap(left, top);
    this.moveTo(this.view.x + x - nowX, this.view.y + y - nowY);
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    const room = 1.1 - 1.1 / this.view.zoom;
    this.view.x = Math.max(-room, Math.min(room, x));
    this.view.y = Math.max(-room, Math.min(room, y));
    this.element.classList.toggle('zoomed', room > 0);
    this.refresh();
  }

  listen() {
    const { element } = this;
    element.addEventListener('wheel', (event) => {
      // Without Ctrl the wheel scrolls the page.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY);
    });
    element.addEventListener('pointerdown', (event) => { if (event.button === 0) this.press(event); });
    element.addEventListener('pointermove', (event) => { if (event.buttons === 0) this.find(event); });
    for (const name of ['pointerleave', 'blur']) element.addEventListener(name, () => this.heat(-1));
  }

  /** @param {PointerEvent} event */
  press(event) {
    const { element } = this;
    const draws = this.isLasso || event.shiftKey;
    let [left, top, way] = [event.offsetX, event.offsetY, 0];
    element.setPointerCapture(event.pointerId);
    const stop = new AbortController();
    element.addEventListener('pointermove', ({ offsetX, offsetY }) => {
      const { up, right } = this.size;
      way += Math.abs(offsetX - left) + Math.abs(offsetY - top);
      if (draws) this.outline.push(this.toMap(offsetX, offsetY));
      else this.moveTo(this.view.x - (offsetX - left) / right, this.view.y + (offsetY - top) / up);
      [left, top] = [offsetX, offsetY];
      this.refresh();
    }, { signal: stop.signal });
    for (const name of ['pointerup', 'pointercancel']) {
      element.addEventListener(name, (end) => {
        stop.abort();
        const { outline } = this;
        this.outline = [];
        if (name === 'pointercancel') {
          this.refresh();
        } else if (way > CLICK_PX) {
          if (draws) this.choose(this.nearby.inside(outline));
        } else {
          this.find(/** @type {PointerEvent} */ (end));
          if (this.hot >= 0) this.parts.open(this.hot);
          else this.choose([]);
        }
      }, { signal: stop.signal });
    }
  }

  /** @param {number[]} points */
  choose(points) {
    this.picked = new Set(points);
    this.redraw();
    this.parts.chosen(points);
  }

  /** @param {PointerEvent} event */
  find({ offsetX, offsetY }) {
    this.heat(this.nearby.nearest(...this.toMap(offsetX, offsetY), REACH_PX / this.size.up));
  }

  /** @param {number} point */
  heat(point) {
    if (point === this.hot) return;
    this.hot = point;
    this.element.classList.toggle('over', point >= 0);
    this.parts.hover(point, ...this.toScreen(this.points.x[point], this.points.y[point]));
    this.refresh();
  }

  /** Acts on a key; false while the map hasn't the focus. @param {string} key */
  key(key) {
    if (document.activeElement !== this.element) return false;
    if (key === '+') this.zoom(1.5);
    else if (key === '-') this.zoom(1 / 1.5);
    else if (key === 'Enter' && this.hot >= 0) this.parts.open(this.hot);
    else if (key === 'Escape') this.choose([]);
    else if (TOWARDS[key]) this.step(TOWARDS[key]);
    return true;
  }

  /** @param {(right: number, up: number) => boolean} towards */
  step(towards) {
    const { x, y } = this.points;
    const from = this.hot < 0 ? [this.view.x, this.view.y] : [x[this.hot], y[this.hot]];
    let next = -1;
    for (let radius = 0.05; radius < 4 && next < 0; radius *= 4) next = this.nearby.nearest(from[0], from[1], radius, this.hot < 0 ? undefined : towards);
    if (next < 0) return;
    const [left, top] = this.toScreen(x[next], y[next]);
    if (left < 0 || top < 0 || left > this.size.width || top > this.size.height) this.moveTo(x[next], y[next]);
    this.heat(next);
  }
}
