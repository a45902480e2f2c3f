// The query box below the timeline: with marks "the same, but …", without them a search for words.

import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { openMenu } from '../../core/menu.js';
import { formatTime } from '../../core/time.js';
import { count } from '../../core/words.js';
import { Loop, still } from '../../parts/loop.js';
import { rangeParameters } from '../../parts/query.js';

const CHANGES = 'reprise_changes';
const KEPT = 20;
const CHIPS = 3;
const LOOP_AFTER_MS = 600;

/** Changes that were asked for lately, newest first. @returns {string[]} */
export function recentChanges() {
  try {
    const changes = JSON.parse(localStorage.getItem(CHANGES) ?? '[]');
    return Array.isArray(changes) ? changes.filter((change) => typeof change === 'string') : [];
  } catch {
    return [];
  }
}

/** @param {string} change */
export function rememberChange(change) {
  localStorage.setItem(CHANGES, JSON.stringify([change, ...recentChanges().filter((one) => one !== change)].slice(0, KEPT)));
}

export class Compose {
  /**
   * @param {object} parts
   * @param {Api<'Video'>} parts.video
   * @param {(path: string) => void} parts.go
   * @param {(words: string) => void} parts.findHere searches for words in this video
   * @param {() => void} parts.onClear
   */
  constructor({ video, go, findHere, onClear }) {
    this.video = video;
    this.go = go;
    this.findHere = findHere;
    this.onClear = onClear;
    /** @type {{start: number, end: number}|null} */
    this.range = null;
    /** @type {import('../../parts/filmstrip.js').Filmstrip|null} */
    this.strip = null;
    /** @type {Loop|null} */
    this.loop = null;
    this.timer = 0;
    this.everywhere = false;
    this.source = el('div', { class: 'src' });
    this.before = el('span', { class: 'before' });
    this.box = el('textarea', { rows: 1, id: 'change', maxlength: 2000, on: {
      keydown: (/** @type {KeyboardEvent} */ event) => this.typed(event), input: () => this.showChips(),
    } });
    this.chips = el('span', { class: 'row chips only-l only-w' });
    this.scope = button('', () => this.chooseScope(), { class: 'btn ghost only-l', 'aria-haspopup': 'menu' });
    this.element = el('form', { class: 'compose', on: { submit: (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.find();
    } } }, this.source, el('div', { class: 'ask' }, this.before, this.box, this.chips, this.scope,
      el('button', { type: 'submit', class: 'btn primary', id: 'find' }, icon('search'), 'Find ', el('kbd', { class: 'only-l', 'aria-hidden': 'true' }, '↵'))));
    this.setRange(null);
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.find();
    }
  }

  /** @param {{start: number, end: number}|null} range */
  setRange(range) {
    const changedKind = (range === null) !== (this.range === null);
    this.range = range;
    if (changedKind || range === null) this.showKind();
    clearTimeout(this.timer);
    this.loop?.close();
    this.loop = null;
    if (range) this.showRange(range);
    else fill(this.source, el('span', { class: 'dim small only-l' }, keyCap('I'), ' ', keyCap('O'), ' mark a stretch, ', keyCap('S'), ' the shot'));
  }

  showKind() {
    const { range } = this;
    this.element.setAttribute('aria-label', range ? 'Find more like the marked stretch' : 'Find by words');
    fill(this.before, range ? el('span', { class: 'token plus' }, 'The same, but') : icon('search'));
    this.box.placeholder = range ? 'nothing: find it as it is' : 'Search in this video';
    this.box.setAttribute('aria-label', range ? 'What should be different' : this.box.placeholder);
    this.scope.hidden = range !== null;
    this.showScope();
    this.showChips();
  }

  /** @param {{start: number, end: number}} range */
  showRange({ start, end }) {
    const length = end - start;
    const frames = Math.max(1, Math.round(length * (this.video.frame_rate ?? 25)));
    const picture = el('span', { class: 'thumb-range' }, this.strip?.box((start + end) / 2));
    const exact = (/** @type {number} */ at) => formatTime(at, { fraction: true });
    fill(this.source, picture, el('div', {},
      el('div', { class: 'num small strong', id: 'marked' }, `${exact(start)} – ${exact(end)}`),
      el('div', { class: 'dim tiny num' }, `${formatSeconds(length)}, ${count(frames, 'frame')}`)),
      iconButton('x', 'Clear the marks', () => this.onClear(), { key: 'Alt X' }));
    if (still() || this.video.plays_in_browsers === false) return;
    this.timer = window.setTimeout(() => {
      const loop = new Loop({ video_id: this.video.id, start, end });
      this.loop = loop;
      loop.play();
      loop.video.addEventListener('playing', () => picture.append(loop.element), { once: true });
    }, LOOP_AFTER_MS);
  }

  showChips() {
    const typed = this.box.value.trim();
    const some = this.range ? recentChanges().filter((change) => change !== typed).slice(0, CHIPS) : [];
    fill(this.chips, some.map((change) => button(change, () => {
      this.box.value = change;
      this.box.focus();
      this.showChips();
    }, { class: 'chip clip1', title: change })));
  }

  chooseScope() {
    const choose = (/** @type {boolean} */ everywhere) => () => {
      this.everywhere = everywhere;
      this.showScope();
    };
    openMenu(this.scope, [
      { label: 'In this video', checked: !this.everywhere, act: choose(false) },
      { label: 'In all videos', checked: this.everywhere, act: choose(true) },
    ]);
  }

  showScope() {
    fill(this.scope, this.everywhere ? 'In all videos' : 'In this video', icon('chevron-down', 's'));
    if (this.range) return;
    this.box.placeholder = this.everywhere ? 'Search in all videos' : 'Search in this video';
    this.box.setAttribute('aria-label', this.box.placeholder);
  }

  focus() {
    this.box.focus();
    this.box.select();
  }

  find() {
    const words = this.box.value.trim();
    if (this.range) {
      const parameters = rangeParameters({ video_id: this.video.id, ...this.range });
      if (words) {
        parameters.set('mod', words);
        rememberChange(words);
      }
      this.go(`/?${parameters}`);
    } else if (words && this.everywhere) {
      this.go(`/?${new URLSearchParams({ q: words })}`);
    } else if (words) {
      this.findHere(words);
    } else {
      this.box.focus();
    }
  }

  close() {
    clearTimeout(this.timer);
    this.loop?.close();
  }
}

/** @param {number} seconds */
const formatSeconds = (seconds) => (seconds < 60 ? `${Number(seconds.toFixed(2))} s` : formatTime(seconds));
