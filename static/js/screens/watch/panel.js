// The panel beside the player: its tabs, and the lists of hits and shots.

import { button, el, fill, icon, keyCap } from '../../core/dom.js';
import { openMenu } from '../../core/menu.js';
import { problemBox } from '../../core/problems.js';
import { formatTime } from '../../core/time.js';
import { formatLength } from '../../core/words.js';

/** @typedef {Api<'Hit'>} Hit */

/** @param {number} seconds */
const listTime = (seconds) => {
  const rounded = Math.floor(seconds * 10 + 1e-6) / 10;
  return `${formatTime(Math.floor(rounded))}.${Math.round((rounded % 1) * 10)}`;
};

/** @typedef {{name: string, label: string, view: HTMLElement, shown?: () => void}} Tab */

export class Panel {
  /** @param {Tab[]} tabs @param {(name: string) => void} onChoose */
  constructor(tabs, onChoose) {
    this.tabs = tabs;
    this.onChoose = onChoose;
    this.current = '';
    this.buttons = new Map(tabs.map(({ name, label }) => [name, button(label, () => this.choose(name), {
      role: 'tab', class: null, id: `tab-${name}`, 'aria-controls': `panel-${name}`,
    })]));
    const list = el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'In this video', on: { keydown: (/** @type {KeyboardEvent} */ event) => this.move(event) } }, [...this.buttons.values()]);
    for (const { name, view } of tabs) {
      for (const [key, value] of Object.entries({ id: `panel-${name}`, role: 'tabpanel', 'aria-labelledby': `tab-${name}` })) view.setAttribute(key, value);
      view.classList.add('tabview');
    }
    this.element = el('section', { class: 'panel sidepanel', 'aria-label': 'In this video' }, list, tabs.map(({ view }) => view));
  }

  /** @param {string} name @param {boolean} [byHand] */
  choose(name, byHand = true) {
    this.current = name;
    for (const { name: one, view, shown } of this.tabs) {
      const chosen = one === name;
      view.hidden = !chosen;
      const tab = this.buttons.get(one);
      tab?.setAttribute('aria-selected', String(chosen));
      tab?.setAttribute('tabindex', chosen ? '0' : '-1');
      if (chosen) shown?.();
    }
    if (byHand) this.onChoose(name);
  }

  /** @param {string} name @param {number|null} number */
  count(name, number) {
    const tab = this.buttons.get(name);
    if (tab) fill(tab, this.tabs.find((one) => one.name === name)?.label, number !== null && [' ', el('span', { class: 'count' }, String(number))]);
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const names = this.tabs.map(({ name }) => name);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = names[(names.indexOf(this.current) + step + names.length) % names.length];
    this.choose(next);
    this.buttons.get(next)?.focus();
  }
}

export class HitList {
  /** @param {{onHit: (place: number) => void, onOrder: (byTime: boolean) => void, onMore: () => void}} parts */
  constructor({ onHit, onOrder, onMore }) {
    this.onHit = onHit;
    this.onMore = onMore;
    this.asked = el('span', { class: 'small muted clip1 grow' });
    this.order = button('', () => openMenu(this.order, [
      { label: 'By time', checked: this.byTime, act: () => onOrder(true) },
      { label: 'Best first', checked: !this.byTime, act: () => onOrder(false) },
    ]), { class: 'btn ghost low', 'aria-haspopup': 'menu' });
    this.byTime = true;
    this.bar = el('div', { class: 'row tabbar' }, this.asked, this.order);
    this.list = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Hits', id: 'hits' });
    this.element = el('div', {}, this.bar, this.list);
  }

  /** What was asked, in words. @param {URLSearchParams} parameters */
  setQuery(parameters) {
    const [words, mod] = [parameters.get('q'), parameters.get('mod')];
    const start = Number.parseFloat(parameters.get('start') ?? '');
    const like = parameters.has('clip') && Number.isFinite(start) ? `like ${listTime(start)}` : parameters.get('name') ?? (parameters.has('image') ? 'like a picture' : words ?? 'like a clip');
    fill(this.asked, words && !mod ? el('b', { class: 'asked' }, words) : like, mod && [', ', el('b', { class: 'asked' }, mod)]);
  }

  /** @param {string} message */
  say(message) {
    this.bar.hidden = true;
    fill(this.list, el('p', { class: 'hint muted small' }, message));
  }

  /** @param {unknown} error @param {() => void} retry */
  fail(error, retry) {
    this.bar.hidden = true;
    fill(this.list, problemBox(error, retry));
  }

  wait() {
    this.bar.hidden = false;
    fill(this.list, [1, 2, 3, 4].map(() => el('div', { class: 'hitrow', 'aria-hidden': 'true' }, el('span', { class: 'rowthumb' }))));
  }

  /** @param {Hit[]} hits @param {boolean} byTime @param {number} more how many weaker ones are left out */
  set(hits, byTime, more) {
    this.byTime = byTime;
    this.bar.hidden = false;
    fill(this.order, icon('arrow-up-down', 's'), byTime ? 'By time' : 'Best first');
    fill(this.list, hits.map((hit, place) => this.row(hit, place)),
      more > 0 && button(`Show ${more} weaker`, this.onMore, { class: 'btn ghost more' }));
  }

  /** @param {Hit} hit @param {number} place */
  row(hit, place) {
    return el('a', { class: 'hitrow', href: '#', data: { hit: place }, on: { click: (/** @type {Event} */ event) => {
      event.preventDefault();
      this.onHit(place);
    } } }, thumb(hit.thumbnail_url), when(hit), place < 9 && keyCap(String(place + 1)));
  }

  /** @param {number} place -1: none */
  setCurrent(place) {
    markCurrent(this.list, place);
  }
}

/** A row's height until one was measured, and how many are drawn beyond the window. */
const ROW_PX = 56;
const SPARE = 8;

/** The shots of a video, which may be thousands: only those in sight are in the document. */
export class ShotList {
  /** @param {(clip: Api<'Clip'>) => void} onShot */
  constructor(onShot) {
    this.onShot = onShot;
    /** @type {Api<'Clip'>[]} */
    this.clips = [];
    this.current = -1;
    this.first = -1;
    this.rows = el('div', { class: 'shotrows' });
    this.list = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Shots', id: 'shots', on: { scroll: () => this.draw() } }, this.rows);
    this.element = el('div', {}, this.list);
  }

  /** @param {Api<'Clip'>[]} clips */
  set(clips) {
    this.clips = clips;
    this.first = -1;
    if (clips.length === 0) fill(this.rows, el('p', { class: 'hint muted small' }, 'No shots are known yet.'));
    this.shown();
  }

  /** The tab is chosen: only now its rows have a height. */
  shown() {
    this.draw();
    this.reveal();
  }

  get rowHeight() {
    return /** @type {HTMLElement|null} */ (this.rows.querySelector('.hitrow'))?.offsetHeight || ROW_PX;
  }

  draw() {
    const { clips, list } = this;
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(list.scrollTop / height) - SPARE);
    if (clips.length === 0 || list.clientHeight === 0 || first === this.first) return;
    // A row with the focus must not go: the list takes the focus then.
    if (this.rows.contains(document.activeElement)) list.focus({ preventScroll: true });
    this.first = first;
    const number = Math.ceil(list.clientHeight / height) + 2 * SPARE;
    this.rows.style.setProperty('height', `${clips.length * height}px`);
    this.rows.style.setProperty('padding-top', `${first * height}px`);
    fill(this.rows, clips.slice(first, first + number).map((clip, offset) => this.row(clip, first + offset)));
    markCurrent(list, this.current, false);
  }

  /** @param {Api<'Clip'>} clip @param {number} place */
  row(clip, place) {
    return el('a', { class: 'hitrow', href: '#', data: { hit: place }, on: { click: (/** @type {Event} */ event) => {
      event.preventDefault();
      this.onShot(clip);
    } } }, thumb(clip.thumbnail_url), when(clip), clip.given && el('span', { class: 'dim tiny' }, 'yours'));
  }

  /** @param {number} place */
  setCurrent(place) {
    if (place === this.current) return;
    this.current = place;
    this.reveal();
  }

  reveal() {
    if (this.list.clientHeight === 0) return;
    if (this.current >= 0 && !this.list.matches(':hover, :focus-within')) this.list.scrollTop = this.current * this.rowHeight - this.list.clientHeight / 3;
    this.draw();
    markCurrent(this.list, this.current, false);
  }
}

/** @param {{start: number, end: number}} span */
const when = ({ start, end }) => el('span', {}, el('span', { class: 'num strong' }, listTime(start)), el('span', { class: 'dim num' }, ` · ${formatLength(end - start)}`));

/** @param {string} address */
const thumb = (address) => el('img', { class: 'rowthumb', alt: '', loading: 'lazy', decoding: 'async', src: address });

/** Marks a row and shows it, unless somebody scrolls there. @param {HTMLElement} list @param {number} place @param {boolean} [scroll] */
function markCurrent(list, place, scroll = true) {
  const now = list.querySelector('.hitrow.now');
  const next = /** @type {HTMLElement|null} */ (list.querySelector(`[data-hit="${place}"]`));
  if (now === next) return;
  now?.classList.remove('now');
  now?.removeAttribute('aria-current');
  next?.classList.add('now');
  next?.setAttribute('aria-current', 'true');
  if (next && scroll && !list.matches(':hover, :focus-within')) list.scrollTop = next.offsetTop - list.offsetTop - list.clientHeight / 2;
}
