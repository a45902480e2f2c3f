// Plays ranges of videos one after the other: two video elements take turns, so that the next one is ready.

import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { formatTime, MediaClock } from '../core/time.js';
import { clockOf } from './clock.js';

/** @typedef {Api<'Range'>} Range */
/** @typedef {{video: HTMLVideoElement, clock: MediaClock, range: Range|null}} Side */

const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4];
/** How early a range may end, in seconds: half a frame of most videos. */
const SLACK = 0.02;

export class ListPlayer extends EventTarget {
  /**
   * @param {(range: Range, broken: boolean) => Promise<{url: string, offset: number}>} sourceOf `broken`: the first address
   *   does not play here
   * @param {(range: Range) => number} frameOf how long a frame is
   */
  constructor(sourceOf, frameOf = () => 0.04) {
    super();
    this.sourceOf = sourceOf;
    this.frameOf = frameOf;
    /** @type {Range[]} */
    this.ranges = [];
    this.place = 0;
    this.wants = false;
    this.speed = 1;
    /** @type {Side[]} */
    this.sides = [0, 1].map(() => {
      const side = { video: el('video', { playsinline: true, preload: 'auto', class: 'away' }), clock: new MediaClock(0), range: null };
      side.video.addEventListener('timeupdate', () => this.look(side));
      side.video.addEventListener('ended', () => this.look(side, true));
      side.video.addEventListener('error', () => { if (side === this.side) this.tag.textContent = 'This video does not play here.'; });
      return side;
    });
    this.front = 0;
    this.tag = el('span', { class: 'tag' });
    this.screen = el('div', { class: 'screen' }, this.sides.map(({ video }) => video), this.tag);
    this.clockText = el('span', { class: 'tc' });
    this.of = el('span', { class: 'dim only-l' });
    this.playButton = iconButton('play', 'Play', () => this.toggle(), { key: 'Space' });
    this.speedButton = button('1×', () => this.faster(1), { class: 'btn ghost num', title: 'Speed  < >' });
    this.sound = iconButton('volume-2', 'Sound', () => this.mute(), { key: 'M', 'aria-pressed': 'true' });
    this.transport = el('div', { class: 'transport', role: 'group', 'aria-label': 'Player' },
      iconButton('skip-back', 'Previous clip', () => this.go(this.place - 1), { key: 'P' }),
      iconButton('step-back', 'Frame back', () => this.step(-1), { key: '←', class: 'btn ghost sq only-l' }), this.playButton,
      iconButton('step-forward', 'Frame on', () => this.step(1), { key: '→', class: 'btn ghost sq only-l' }),
      iconButton('skip-forward', 'Next clip', () => this.go(this.place + 1), { key: 'N' }),
      el('span', { class: 'row' }, this.clockText, this.of), el('span', { class: 'grow' }), this.speedButton, this.sound,
      iconButton('maximize', 'Full screen', () => this.fullScreen(), { key: '⇧F' }));
  }

  get side() {
    return this.sides[this.front];
  }

  get range() {
    return this.ranges[this.place];
  }

  /** Where the current range is on screen, in seconds of its video. */
  get time() {
    return this.side.clock.fromElement(this.side.video.currentTime);
  }

  /** Seconds since the list's start. */
  get passed() {
    const before = this.ranges.slice(0, this.place).reduce((sum, { start, end }) => sum + end - start, 0);
    return this.range ? before + Math.min(this.range.end - this.range.start, Math.max(0, this.time - this.range.start)) : 0;
  }

  /** Takes other ranges; the one on screen stays there if it is among them. @param {Range[]} ranges */
  set(ranges) {
    this.ranges = ranges;
    this.place = Math.max(0, Math.min(this.place, ranges.length - 1));
    if (this.range && this.side.range?.video_id === this.range.video_id) this.side.range = this.range;
    if (!this.range) this.pause();
    this.told();
  }

  /**
   * Shows a range.
   * @param {number} place
   * @param {number} [at] seconds of its video
   */
  async go(place, at = this.ranges[place]?.start) {
    if (!this.ranges[place]) return;
    this.place = place;
    const { range } = this;
    const other = this.sides[1 - this.front];
    if (other.range === range && this.side.range !== range) this.front = 1 - this.front;
    const side = this.side;
    this.sides.forEach(({ video }, number) => { video.classList.toggle('away', number !== this.front); });
    this.sides[1 - this.front].video.pause();
    await this.load(side, range, at);
    if (this.wants && this.side === side) side.video.play().catch(() => {});
    this.told();
    const next = this.ranges[this.place + 1];
    if (next) await this.load(this.sides[1 - this.front], next, next.start);
  }

  /** @param {Side} side @param {Range} range @param {number} at @returns {Promise<void>} */
  async load(side, range, at, broken = false) {
    const { url, offset } = await this.sourceOf(range, broken);
    if (side.video.getAttribute('src') !== url) {
      side.clock = new MediaClock(offset);
      side.video.src = url;
      side.video.playbackRate = this.speed;
      const plays = await new Promise((resolve) => {
        side.video.addEventListener('loadedmetadata', () => resolve(true), { once: true });
        side.video.addEventListener('error', () => resolve(false), { once: true });
      });
      if (!plays && !broken) return this.load(side, range, at, true);
      side.clock = await clockOf(side.video, offset);
    }
    side.range = range;
    const target = side.clock.toElement(at);
    if (Math.abs(side.video.currentTime - target) > 0.001) side.video.currentTime = target;
  }

  /** Ends a range in time. @param {Side} side */
  look(side, ended = false) {
    if (side !== this.side || side.video.seeking) return;
    this.told();
    if (side.video.paused && !ended) return;
    if (!this.range || (!ended && this.time < this.range.end - SLACK)) return;
    if (this.place + 1 < this.ranges.length) this.go(this.place + 1);
    else this.pause();
  }

  /** While it plays, each frame is looked at: `timeupdate` comes four times a second only. */
  watch() {
    if (!this.wants) return;
    this.look(this.side);
    requestAnimationFrame(() => this.watch());
  }

  play() {
    if (!this.range) return;
    if (this.place === this.ranges.length - 1 && this.time >= this.range.end - 2 * SLACK) this.place = 0;
    this.wants = true;
    this.go(this.place, this.time >= this.range.start && this.time < this.range.end - SLACK && this.side.range === this.range ? this.time : this.range.start);
    this.watch();
  }

  pause() {
    this.wants = false;
    this.side.video.pause();
    this.told();
  }

  toggle() {
    if (this.wants) this.pause();
    else this.play();
  }

  /** Frames back or on, inside the range. @param {number} frames */
  step(frames) {
    if (!this.range) return;
    this.pause();
    const frame = this.frameOf(this.range);
    this.seek(Math.min(this.range.end - frame, Math.max(this.range.start, this.time + frames * frame)));
  }

  /** @param {number} seconds of the current video */
  seek(seconds) {
    this.side.video.currentTime = this.side.clock.toElement(seconds);
  }

  /** @param {number} seconds since the list's start */
  seekList(seconds) {
    let left = seconds;
    for (const [place, { start, end }] of this.ranges.entries()) {
      if (left < end - start || place === this.ranges.length - 1) return this.go(place, Math.min(end - SLACK, start + left));
      left -= end - start;
    }
  }

  /** @param {number} by */
  faster(by) {
    const next = SPEEDS.indexOf(this.speed) + by;
    this.speed = SPEEDS[next] ?? (by > 0 ? 0.25 : SPEEDS[0]);
    for (const { video } of this.sides) video.playbackRate = this.speed;
    this.speedButton.textContent = `${this.speed}×`;
  }

  mute() {
    const muted = !this.side.video.muted;
    for (const { video } of this.sides) video.muted = muted;
    this.sound.setAttribute('aria-pressed', String(!muted));
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.screen.requestFullscreen?.();
  }

  told() {
    const total = this.ranges.reduce((sum, { start, end }) => sum + end - start, 0);
    this.clockText.textContent = formatTime(this.passed, { fraction: true });
    this.of.textContent = `/ ${formatTime(total, { fraction: true })}`;
    const act = this.wants ? 'Pause' : 'Play';
    if (this.playButton.getAttribute('aria-label') !== act) {
      this.playButton.setAttribute('aria-label', act);
      fill(this.playButton, icon(act.toLowerCase()));
    }
    this.dispatchEvent(new Event('change'));
  }

  /** @returns {import('../core/keys.js').Binding[]} */
  get bindings() {
    return [
      { key: 'Space', label: 'Play, pause', act: (event) => (event.target instanceof HTMLButtonElement ? false : this.toggle()) },
      { key: 'K', label: 'Play, pause', act: () => this.toggle() },
      { key: 'J', label: 'A second back', act: () => this.step(-Math.round(1 / (this.range ? this.frameOf(this.range) : 1))) },
      { key: 'L', label: 'A second on', act: () => this.step(Math.round(1 / (this.range ? this.frameOf(this.range) : 1))) },
      { key: 'ArrowLeft', label: 'A frame back', act: () => this.step(-1) },
      { key: 'ArrowRight', label: 'A frame on', act: () => this.step(1) },
      { key: 'P', label: 'Previous clip', act: () => this.go(this.place - 1) },
      { key: 'N', label: 'Next clip', act: () => this.go(this.place + 1) },
      { key: '<', label: 'Slower', act: () => this.faster(-1) },
      { key: '>', label: 'Faster', act: () => this.faster(1) },
      { key: 'M', label: 'Sound', act: () => this.mute() },
      { key: 'Shift+F', label: 'Full screen', act: () => this.fullScreen() },
    ];
  }

  close() {
    this.pause();
    for (const { video } of this.sides) {
      video.removeAttribute('src');
      video.load();
    }
  }
}
