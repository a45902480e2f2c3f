// A muted, looping player of a range: of a stored video, or of a file of this tab.

import { el } from '../core/dom.js';
import { MediaClock } from '../core/time.js';
import { videoOf } from './videos.js';

/**
 * What is played.
 * @typedef {object} Played
 * @property {string} [video_id]
 * @property {number} start seconds of the video
 * @property {number} end the same as `start` shows a still frame
 * @property {string|null} [poster] address of a picture
 * @property {string|null} [preview] address of an MP4 of the range, for videos that the browser can't play
 * @property {string} [src] address of a file; then there is no video
 */

export const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

export class Loop {
  /**
   * @param {Played} played
   * @param {object} [options]
   * @param {number} [options.speed]
   * @param {boolean} [options.hold] waits at its end until `restart`, so that two stay in step
   * @param {() => void} [options.onEnd] called at each end
   * @param {() => void} [options.onFrame] called for each frame
   */
  constructor(played, { speed = 1, hold = false, onEnd = () => {}, onFrame = () => {} } = {}) {
    this.played = played;
    this.hold = hold;
    this.onEnd = onEnd;
    this.onFrame = onFrame;
    this.wants = false;
    this.held = false;
    this.clock = new MediaClock(0);
    this.start = played.start;
    this.end = played.end;
    this.video = el('video', { playsinline: true, 'aria-hidden': 'true', tabindex: -1, poster: played.poster || null, preload: 'auto', disablepictureinpicture: true });
    // Autoplay rules look at the property; the attribute is only its default.
    this.video.muted = true;
    this.setSpeed(speed);
    this.element = this.video;
    this.video.addEventListener('timeupdate', () => this.look());
    this.video.addEventListener('ended', () => this.atEnd());
    this.ready = this.open().catch(() => {});
  }

  async open() {
    const { video_id: id, src, preview, start, end } = this.played;
    let address = src;
    if (!src && id) {
      const video = await videoOf(id);
      if (video.plays_in_browsers !== false || !preview) {
        this.clock = new MediaClock(video.media_offset ?? 0);
        address = video.media_url;
      } else {
        // A preview's own clock begins with the range.
        this.clock = new MediaClock(-start);
        address = preview;
      }
    }
    if (this.closed || !address) return;
    await new Promise((resolve, reject) => {
      this.video.addEventListener('loadedmetadata', resolve, { once: true });
      this.video.addEventListener('error', reject, { once: true });
      this.video.src = /** @type {string} */ (address);
    });
    if (src && !(end > start)) this.end = this.video.duration;
    this.seek(this.start);
    if (this.wants) this.play();
  }

  /** Length in seconds. */
  get length() {
    return Math.max(0, this.end - this.start);
  }

  /** Seconds since the start. */
  get passed() {
    return Math.min(this.length, Math.max(0, this.clock.fromElement(this.video.currentTime) - this.start));
  }

  get paused() {
    return !this.wants;
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.video.defaultPlaybackRate = speed;
    this.video.playbackRate = speed;
  }

  play() {
    this.wants = true;
    if (this.length === 0 || this.video.readyState === 0 || this.held) return;
    this.video.play().catch(() => {});
    if (!this.watching) this.watch();
  }

  pause() {
    this.wants = false;
    this.video.pause();
  }

  /** Goes back to the start. */
  restart() {
    this.held = false;
    this.seek(this.start);
    if (this.wants) this.play();
  }

  /** @param {number} seconds of the video */
  seek(seconds) {
    this.video.currentTime = this.clock.toElement(Math.min(Math.max(this.start, seconds), Math.max(this.start, this.end - 0.01)));
  }

  /** Frames are watched where the browser tells of them: `timeupdate` comes four times a second only. */
  watch() {
    if (!this.video.requestVideoFrameCallback) return;
    this.watching = true;
    const step = () => {
      if (this.closed) return;
      this.onFrame();
      this.look();
      this.video.requestVideoFrameCallback(step);
    };
    this.video.requestVideoFrameCallback(step);
  }

  look() {
    if (this.held || this.video.paused || this.video.seeking) return;
    if (this.clock.fromElement(this.video.currentTime) >= this.end - 0.02) this.atEnd();
  }

  atEnd() {
    if (this.held || this.length === 0) return;
    if (this.hold) {
      this.held = true;
      this.video.pause();
    } else {
      this.restart();
    }
    this.onEnd();
  }

  close() {
    this.closed = true;
    this.video.pause();
    this.video.removeAttribute('src');
    this.video.load();
  }
}

/** Two loops in step: both begin at their start, and the shorter one waits at its end for the other. */
export class InStep {
  /** @param {number} speed */
  constructor(speed) {
    this.speed = speed;
    /** Whether the shorter one is slowed down to the length of the other. */
    this.stretch = false;
    /** @type {Loop[]} */
    this.loops = [];
    this.paused = still();
  }

  /**
   * Adds a loop, or puts it in the place of another.
   * @param {Played} played
   * @param {Loop|null} [old]
   * @param {() => void} [onFrame]
   */
  add(played, old = null, onFrame = () => {}) {
    if (old) this.drop(old);
    const loop = new Loop(played, { speed: this.speed, hold: true, onEnd: () => this.ended(), onFrame });
    this.loops.push(loop);
    loop.ready.then(() => { if (this.loops.includes(loop)) this.restart(); });
    return loop;
  }

  /** @param {Loop} loop */
  drop(loop) {
    this.loops = this.loops.filter((one) => one !== loop);
    loop.close();
  }

  ended() {
    if (this.loops.every((loop) => loop.held || loop.length === 0)) this.restart();
  }

  restart() {
    this.setSpeed(this.speed);
    for (const loop of this.loops) {
      loop.restart();
      if (this.paused) loop.pause();
      else loop.play();
    }
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    const longest = Math.max(...this.loops.map(({ length }) => length));
    for (const loop of this.loops) {
      const share = this.stretch && longest > 0 ? Math.max(0.1, loop.length / longest) : 1;
      loop.setSpeed(Math.max(0.07, speed * share));
    }
  }

  /** @param {boolean} paused */
  setPaused(paused) {
    this.paused = paused;
    for (const loop of this.loops) {
      if (paused) loop.pause();
      else loop.play();
    }
  }

  /** One frame back (-1) or on (1). @param {number} direction */
  step(direction) {
    this.setPaused(true);
    for (const loop of this.loops) {
      loop.held = false;
      loop.seek(loop.start + Math.max(0, loop.passed + direction / 25));
    }
  }

  close() {
    for (const loop of this.loops) loop.close();
    this.loops = [];
  }
}
