// One video on the API's clock: original or rendition, seeks, frame steps, speed, subtitles, and why it does not play.

import { get, send } from '../core/api.js';
import { el, fill } from '../core/dom.js';
import { languageName } from '../core/languages.js';
import { announce, describe } from '../core/problems.js';
import { MediaClock } from '../core/time.js';
import { clockOf } from './clock.js';

const RETRY_MS = 3000;
/** Answers that mean "not yet": the rendition is still being made, or the server is full. */
const NOT_YET = new Set([429, 503, 504]);
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4];
/** Browsers can't play backwards: J seeks this often, ms. */
const BACK_MS = 125;
const GUESSED_RATE = 25;

export { SPEEDS };

/**
 * Sends `time` when another frame is shown, `change` when it starts, stops, or its speed, sound or subtitles change, and
 * `open` when it can be told where to go.
 */
export class Player extends EventTarget {
  /** @param {Api<'Video'>} video @param {{label?: string, poster?: string|null}} [options] */
  constructor(video, { label = 'Video', poster = video.thumbnail_url } = {}) {
    super();
    this.video = video;
    /** @type {number|null} where to go as soon as the source is open */
    this.target = null;
    /** @type {number|null} */
    this.late = null;
    this.wantsPlay = false;
    this.closed = false;
    this.open = false;
    this.rendition = false;
    this.retried = false;
    this.clock = new MediaClock(0);
    this.backwards = 0;
    /** @type {{start: number, end: number}|null} played again and again */
    this.loop = null;
    this.media = el('video', { playsinline: true, preload: 'auto', id: 'player', 'aria-label': label, disablepictureinpicture: true });
    this.poster = el('img', { class: 'poster', alt: '', src: poster, hidden: !poster });
    this.overlay = el('div', { class: 'over-video', hidden: true });
    this.element = el('div', { class: 'screen', 'aria-busy': 'true' }, this.media, this.poster, this.overlay);
    this.listen();
    if (video.plays_in_browsers === false) this.useRendition();
    else this.useOriginal();
  }

  listen() {
    const { media } = this;
    media.addEventListener('loadedmetadata', () => this.opened());
    media.addEventListener('durationchange', () => this.seekLate());
    media.addEventListener('error', () => this.failed());
    for (const name of ['play', 'pause', 'ratechange', 'volumechange', 'ended']) media.addEventListener(name, () => this.tell('change'));
    for (const name of ['timeupdate', 'seeked']) media.addEventListener(name, () => this.shown());
    media.addEventListener('loadeddata', () => { if (!media.requestVideoFrameCallback) this.poster.hidden = true; });
    // This reports a frame as soon as it is on screen; `timeupdate` comes four times a second only.
    const step = () => {
      if (this.closed) return;
      if (this.open && this.target === null) this.poster.hidden = true;
      this.shown();
      media.requestVideoFrameCallback(step);
    };
    media.requestVideoFrameCallback?.(step);
  }

  /** @param {string} name */
  tell(name) {
    this.dispatchEvent(new Event(name));
  }

  shown() {
    const { loop } = this;
    if (loop && !this.media.paused && !this.media.seeking && this.time >= loop.end - this.frameLength / 2) this.seek(loop.start, { play: true });
    this.tell('time');
  }

  useOriginal() {
    this.setOpen(false);
    this.clock = new MediaClock(this.video.media_offset ?? 0);
    this.media.src = this.video.media_url;
  }

  useRendition() {
    this.setOpen(false);
    this.rendition = true;
    this.clock = new MediaClock(0);
    this.say('Making a version your browser can play…');
    this.media.src = this.video.rendition_url ?? `/v1/videos/${this.video.id}/media?rendition=web`;
  }

  /** @param {boolean} open whether the source's clock is known, so that it can be told where to go */
  setOpen(open) {
    this.open = open;
    this.element.setAttribute('aria-busy', String(!open));
  }

  async opened() {
    // A browser that knows the sound but not the picture plays the sound alone.
    if (!this.rendition && this.media.videoWidth === 0) {
      this.keepPlace();
      this.useRendition();
      return;
    }
    this.say(null);
    if (!this.rendition) {
      const clock = await clockOf(this.media, this.clock.offset);
      if (this.rendition) return;
      this.clock = clock;
    }
    this.setOpen(true);
    const { target } = this;
    if (target !== null) this.seek(target, { play: this.wantsPlay });
    this.tell('open');
    this.loadTracks();
  }

  /** Offers what is said as captions, on the element's clock. The browser loads a track when it is switched on. */
  async loadTracks() {
    const { offset } = this.clock;
    /** @type {Api<'TrackList'>} without them the video plays all the same */
    const { items } = await get(`/v1/videos/${this.video.id}/subtitles`).catch(() => ({ items: [] }));
    if (this.closed || offset !== this.clock.offset) return;
    const shown = this.subtitle;
    for (const old of this.media.querySelectorAll('track')) old.remove();
    for (const { kind, language, url } of items) {
      if (kind !== 'speech') continue;
      const track = el('track', { kind: 'captions', srclang: language, label: languageName(language), src: `${url}?offset=${offset}` });
      this.media.append(track);
      if (language === shown) track.track.mode = 'showing';
    }
    this.tell('change');
  }

  /** Languages of the subtitles. */
  get languages() {
    return [...this.media.textTracks].map(({ language }) => language);
  }

  /** @returns {string|null} language of the subtitles that are shown */
  get subtitle() {
    return [...this.media.textTracks].find(({ mode }) => mode === 'showing')?.language ?? null;
  }

  set subtitle(language) {
    for (const track of this.media.textTracks) track.mode = track.language === language ? 'showing' : 'disabled';
    this.tell('change');
  }

  toggleSubtitles() {
    this.subtitle = this.subtitle === null ? this.languages.find((one) => navigator.language.startsWith(one)) ?? this.languages[0] ?? null : null;
  }

  keepPlace() {
    if (this.open && this.media.currentTime > 0) this.target ??= this.time;
    this.wantsPlay ||= !this.media.paused;
  }

  async failed() {
    const source = this.media.getAttribute('src');
    if (this.closed || !source) return;
    if (!this.rendition) {
      this.keepPlace();
      this.useRendition();
      return;
    }
    try {
      await send('GET', source, { headers: { Range: 'bytes=0-0' } });
      // It got ready between the two requests.
      if (!this.retried) this.useRendition();
      else this.say('Your browser could not play this video.');
      this.retried = true;
    } catch (error) {
      if (NOT_YET.has(/** @type {any} */ (error).status)) setTimeout(() => { if (!this.closed) this.useRendition(); }, RETRY_MS);
      else this.say(describe(error));
    }
  }

  /** @param {string|null} message over the picture; null takes it away */
  say(message) {
    this.overlay.hidden = message === null;
    fill(this.overlay, message && el('p', {}, message));
    if (message) announce(message);
  }

  get duration() {
    return this.video.duration ?? (Number.isFinite(this.media.duration) ? this.media.duration : 0);
  }

  get frameLength() {
    return 1 / (this.video.frame_rate ?? GUESSED_RATE);
  }

  /** The API's time of what is on screen, seconds. */
  get time() {
    const shown = this.target ?? this.clock.fromElement(this.media.currentTime);
    return Math.min(shown, this.duration || Infinity);
  }

  /** Number of the frame on screen, from 0. The API floors times to the millisecond, hence the slack. */
  get frame() {
    return Math.floor((this.time + 0.0015) / this.frameLength);
  }

  /** When the frame on screen begins, seconds. */
  get frameTime() {
    return this.video.variable_frame_rate ? this.time : Math.floor(this.frame * this.frameLength * 1000 + 0.001) / 1000;
  }

  get paused() {
    return this.media.paused && this.backwards === 0;
  }

  /**
   * Shows the frame at `seconds`, as soon as the source is open.
   * @param {number} seconds
   * @param {{play?: boolean}} [options] `play` starts it; without it a playing video plays on
   */
  seek(seconds, { play = false } = {}) {
    const last = this.duration > 0 ? Math.max(0, this.duration - 0.001) : Infinity;
    const wanted = Math.min(Math.max(0, seconds), last);
    if (!this.open) {
      this.wantsPlay = play;
      this.target = wanted;
      return;
    }
    this.target = null;
    const at = this.clock.toElement(wanted);
    this.late = at > this.media.duration ? at : null;
    this.media.currentTime = at;
    if (play) this.play();
    this.tell('time');
  }

  /** A source may tell its length too short at first, which cuts a seek; it corrects itself while it loads. */
  seekLate() {
    if (this.late === null || this.media.duration < this.late) return;
    this.media.currentTime = this.late;
    this.late = null;
  }

  play() {
    this.stopBack();
    this.wantsPlay = true;
    // Browsers may refuse to start with sound before the first click on a page: then it waits at its frame.
    if (this.open) this.media.play().catch(() => this.tell('change'));
  }

  pause() {
    this.stopBack();
    this.wantsPlay = false;
    this.media.pause();
  }

  toggle() {
    if (this.paused) this.play();
    else this.pause();
  }

  /** @param {number} frames to go, back under 0 */
  step(frames) {
    this.pause();
    // The middle of the frame, where its times are not whole milliseconds.
    this.seek((this.frame + frames) * this.frameLength);
  }

  get speed() {
    return this.media.playbackRate;
  }

  set speed(speed) {
    this.media.playbackRate = speed;
  }

  /** @param {number} direction 1 the next faster speed, -1 the next slower one */
  changeSpeed(direction) {
    const next = direction > 0 ? SPEEDS.find((speed) => speed > this.speed) : SPEEDS.findLast((speed) => speed < this.speed);
    if (next) this.speed = next;
  }

  /** L: plays on; pressed again, faster. */
  forward() {
    if (this.media.paused) this.play();
    else this.changeSpeed(1);
  }

  /** J: plays backwards; pressed again, faster. */
  back() {
    this.media.pause();
    const speed = Math.min(8, this.backwards * 2 || 1);
    this.stopBack();
    this.backwards = speed;
    this.backTimer = setInterval(() => {
      if (this.time <= 0) this.pause();
      else if (!this.media.seeking) this.seek(this.time - (speed * BACK_MS) / 1000);
    }, BACK_MS);
    this.tell('change');
  }

  stopBack() {
    clearInterval(this.backTimer);
    if (this.backwards > 0) {
      this.backwards = 0;
      this.tell('change');
    }
  }

  toggleSound() {
    this.media.muted = !this.media.muted;
  }

  /** Lets go of the connection and the decoder. */
  close() {
    this.pause();
    this.closed = true;
    this.media.removeAttribute('src');
    this.media.load();
  }
}
