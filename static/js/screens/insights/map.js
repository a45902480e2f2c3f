// The panel of the library's map: its states and colours, the shot under the pointer, the lasso's search, a list.

import { all } from '../../core/api.js';
import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { jobs } from '../../core/jobs.js';
import { keys } from '../../core/keys.js';
import { announce } from '../../core/problems.js';
import { reels } from '../../core/reels.js';
import { videoPath } from '../../core/router.js';
import { formatTime } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { count, formatEstimate, titleOf } from '../../core/words.js';
import { load, selectOf } from '../../parts/frame.js';
import { likeAll } from '../../parts/searchlink.js';
import { readMap } from './points.js';
import { MapView } from './view.js';

const ASK_AGAIN_MS = 4000;
const ROWS = 100;
/** @type {[string, string][]} */
const KEYS = [['ArrowLeft', 'From shot to shot'], ['ArrowUp', 'From shot to shot'], ['ArrowDown', 'From shot to shot'], ['ArrowRight', 'From shot to shot'],
  ['Enter', 'Open'], ['-', 'Zoom'], ['+', 'Zoom'], ['Escape', 'Clear the choice']];
/** The largest folders have the colours of the charts. */
const TOKENS = ['--s2', '--s1', '--s3', '--ok'];

export class MapPanel {
  /** @param {import('../../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.body = el('div');
    this.element = el('section', { class: 'panel span-12', id: 'map' }, this.body);
    this.card = el('div', { class: 'map-card', hidden: true });
    this.bar = el('div', { class: 'map-bar', hidden: true });
    this.rows = el('ul', { class: 'cols num' });
    this.list = el('details', { class: 'twin small', on: { toggle: () => this.fillList() } }, el('summary', {}, 'As a list'), this.rows);
    /** @type {MapView|null} */
    this.view = null;
    /** @type {Map<string, Api<'Video'>>} */
    this.videos = new Map();
    this.by = '';
    /** @type {number[]} */
    this.picked = [];
    this.timer = 0;
    this.stop = new AbortController();
    const paint = () => this.paint();
    // A canvas does not follow the theme by itself.
    new MutationObserver(paint).observe(document.documentElement, { attributeFilter: ['data-theme'] });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  }

  show() {
    this.hide();
    this.stop = new AbortController();
    this.unbind = keys.add('Map', [...KEYS.map(([key, label]) => ({ key, label, act: () => this.view?.key(key) ?? false })),
      { key: 'R', label: 'Add to reel', act: () => this.collect() }]);
    if (!this.view) this.load();
  }

  hide() {
    this.unbind?.();
    this.stop.abort();
    clearTimeout(this.timer);
  }

  load() {
    load(this.body, this.stop.signal, async () => {
      const [{ points, made, refreshing, problem }, videos] = await Promise.all([readMap(this.stop.signal), all('/v1/videos', { most: 100_000, signal: this.stop.signal })]);
      this.videos = new Map(videos.map((video) => [video.id, video]));
      if (refreshing) this.timer = window.setTimeout(() => this.load(), ASK_AGAIN_MS * (points ? 5 : 1));
      // The same map is not drawn again, so that its zoom and its choice stay.
      if (points && this.view && made === this.made) return [...this.body.children];
      this.made = made;
      if (points && points.x.length > 0) return this.draw(points, refreshing);
      const job = jobs.active.find(({ kind }) => kind === 'map');
      return [el('h2', {}, 'Map of the library'), el('div', { class: 'map making' }, problem
        ? el('p', { class: 'bad' }, `The map could not be made: ${problem}. The next try is ten minutes later.`)
        : el('p', {}, refreshing ? `The map is being made${job?.eta_s ? `: ${formatEstimate(job.eta_s)} left` : ''}. Like shots come to lie side by side.` : 'There is no shot to lay out yet.'))];
    });
  }

  /**
   * @param {import('./points.js').Points} points
   * @param {boolean} refreshing
   */
  draw(points, refreshing) {
    const view = new MapView(points, { hover: (...at) => this.hover(...at), open: (point) => this.page.router.go(this.pathOf(point)), chosen: (chosen) => this.chosen(chosen) });
    this.view = view;
    const hasFolders = points.videos.some((id) => this.videos.get(id)?.folder);
    this.by ||= hasFolders ? 'folder' : 'video';
    const lasso = button('Lasso', () => {
      view.isLasso = !view.isLasso;
      lasso.setAttribute('aria-pressed', String(view.isLasso));
      lasso.classList.toggle('on', view.isLasso);
    }, { class: 'btn ghost', 'aria-pressed': 'false', title: 'Draw around shots to search for more like them' });
    this.chosen([]);
    this.paint();
    return [el('h2', { class: 'wrap' }, 'Map of the library', el('span', { class: 'row wrap' },
      el('small', { class: 'num' }, `${count(points.x.length, 'shot')} by likeness · ${points.space}${refreshing ? ' · being made anew' : ''}`),
      hasFolders && selectOf('Colour', [['folder', 'Colour: folder'], ['video', 'Colour: video']], this.by, (by) => {
        this.by = by;
        this.paint();
      }),
      lasso, button('−', () => view.zoom(1 / 1.5), { class: 'btn ghost sq', 'aria-label': 'Zoom out' }), iconButton('plus', 'Zoom in', () => view.zoom(1.5)))),
    el('div', { class: 'map-frame' }, view.element, this.card, this.bar),
    el('p', { class: 'tiny dim only-l' }, 'Drag moves, Ctrl and the wheel zoom, Shift and drag draws a lasso.'), this.list];
  }

  /** Gives every point the colour of its folder, the largest first, or of its video. */
  paint() {
    const { view } = this;
    if (!view) return;
    const { x, y, videos } = view.points;
    const names = videos.map((id) => (this.by === 'folder' ? this.videos.get(id)?.folder ?? '' : id));
    /** @type {Map<string, [number, number, number]>} number and sums of places */
    const groups = new Map();
    names.forEach((name, point) => {
      const [size, right, up] = groups.get(name) ?? [0, 0, 0];
      groups.set(name, [size + 1, right + x[point], up + y[point]]);
    });
    const order = [...groups].sort(([, [a]], [, [b]]) => b - a);
    const probe = el('i');
    document.body.append(probe);
    const tone = new Map(order.map(([name], at) => {
      probe.style.color = this.by === 'folder' && at < TOKENS.length ? `var(${TOKENS[at]})` : `light-dark(hsl(${at * 137.5} 42% 44%), hsl(${at * 137.5} 45% 66%))`;
      return [name, getComputedStyle(probe).color];
    }));
    probe.remove();
    view.colours = names.map((name) => tone.get(name) ?? '');
    view.labels = this.by === 'folder' ? order.filter(([name]) => name).slice(0, 8).map(([name, [size, right, up]]) => [name.split('/').pop() ?? '', right / size, up / size]) : [];
    view.redraw();
  }

  /** @param {number} point @returns {[string, string]} title and time */
  about(point) {
    const { videos, start } = /** @type {MapView} */ (this.view).points;
    const video = this.videos.get(videos[point]);
    return [video ? titleOf(video) : 'A video', formatTime(start[point])];
  }

  /** @param {number} point */
  rangeOf(point) {
    const { videos, start, end } = /** @type {MapView} */ (this.view).points;
    return { video_id: videos[point], start: start[point], end: end[point] };
  }

  /** @param {number} point */
  pathOf(point) {
    const { videos, start } = /** @type {MapView} */ (this.view).points;
    return videoPath(videos[point], start[point]);
  }

  /** @param {number} point @param {number} x @param {number} y */
  hover(point, x, y) {
    this.card.hidden = point < 0;
    if (point < 0 || !this.view) return;
    const { points, element } = this.view;
    const [title, time] = this.about(point);
    fill(this.card, el('img', { src: `/v1/clips/${points.ids[point]}/thumbnail`, alt: '' }),
      el('div', { class: 'row small' }, el('b', { class: 'clip1 grow' }, title), el('span', { class: 'num muted' }, time)));
    this.card.style.left = `${x + 170 > element.clientWidth ? Math.max(4, x - 164) : x + 14}px`;
    this.card.style.top = `${Math.max(4, Math.min(y - 60, element.clientHeight - 140))}px`;
    if (document.activeElement === element) announce(`${title}, ${time}`);
  }

  /** Adds the shots of the lasso, else the one under the pointer, to the open reel. */
  collect() {
    const hot = this.view?.hot ?? -1;
    const points = this.picked.length > 0 ? this.picked : hot >= 0 ? [hot] : [];
    if (points.length === 0) return false;
    reels.add(points.map((point) => this.rangeOf(point))).then(
      (undo) => toasts.show([`Added ${count(points.length, 'shot')} to `, el('b', {}, reels.open?.name ?? 'the reel')], { undo }),
      (error) => toasts.problem(error));
  }

  /** @param {number[]} points */
  chosen(points) {
    this.picked = points;
    this.bar.hidden = points.length === 0;
    const find = el('a', { class: 'btn primary', href: likeAll(points.map((point) => this.rangeOf(point))) }, icon('scan-search'), 'Find more like these');
    const add = button([icon('list-plus'), el('span', { class: 'only-l' }, 'Add to reel '), keyCap('R')], () => this.collect(), { 'aria-label': 'Add to reel' });
    fill(this.bar, el('span', { class: 'num' }, count(points.length, 'shot')), find, add, iconButton('x', 'Clear the choice', () => this.view?.choose([])));
    if (points.length > 0) find.focus();
    this.fillList();
  }

  /** The shots of the lasso, or all, as links; neighbours follow each other. */
  fillList() {
    fill(this.rows);
    if (this.list.open) this.moreRows(this.picked.length > 0 ? this.picked : this.view?.nearby.cells.flat() ?? []);
  }

  /** @param {number[]} points */
  moreRows(points) {
    const more = el('li', {}, button('Show more', () => {
      more.remove();
      this.moreRows(points.slice(ROWS));
    }));
    this.rows.append(...points.slice(0, ROWS).map((point) => {
      const [title, time] = this.about(point);
      return el('li', {}, el('a', { class: 'link', href: this.pathOf(point) }, title), ` ${time}`);
    }));
    if (points.length > ROWS) this.rows.append(more);
  }
}
