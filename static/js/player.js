// Plays one video and speaks the API's clock: picks the original or the rendition, seeks, explains failures.

import { listSubtitles, probeMedia, renditionUrl } from './api.js';
import { el, fill } from './dom.js';
import { languageName } from './languages.js';
import { announce, describe } from './problems.js';
import { MediaClock } from './time.js';

const RETRY_MS = 3000;
/** Answers that mean "not yet": the rendition is still being made, or the server is full. */
const NOT_YET = new Set([429, 503, 504]);
const FIRST_FRAME_MS = 1500;

/** The element's time of the first frame that it shows; null where the browser does not tell in time. */
function firstFrameTime(media) {
  if (!media.requestVideoFrameCallback) return Promise.resolve(null);
  return new Promise((resolve) => {
    setTimeout(() => resolve(null), FIRST_FRAME_MS);
    media.requestVideoFrameCallback((now, frame) => resolve(frame.mediaTime));
  });
}

export class Player {
  /** @param {object} video as GET /v1/videos/{id} */
  constructor(video) {
    this.video = video;
    this.target = null;
    this.late = null;
    this.wantsPlay = false;
    this.closed = false;
    this.media = el('video', { controls: true, playsinline: true, preload: 'auto', id: 'player', 'aria-label': video.title });
    this.overlay = el('div', { class: 'overlay', hidden: true });
    this.element = el('div', { class: 'player' }, this.media, this.overlay);
    if (video.width && video.height) this.media.style.setProperty('--shape', `${video.width} / ${video.height}`);
    this.media.addEventListener('loadedmetadata', () => this.opened());
    this.media.addEventListener('durationchange', () => this.seekLate());
    this.media.addEventListener('error', () => this.failed());
    if (video.plays_in_browsers === false) this.useRendition();
    else this.useOriginal();
  }

  useOriginal() {
    this.setOpen(false);
    this.rendition = false;
    this.clock = new MediaClock(this.video.media_offset ?? 0);
    this.media.src = this.video.media_url;
  }

  useRendition() {
    this.setOpen(false);
    this.rendition = true;
    this.clock = new MediaClock(0);
    this.say('Making a version your browser can play…');
    this.media.src = this.video.rendition_url ?? renditionUrl(this.video.id);
  }

  /** Whether the source's clock is known, so that it can be told where to go. */
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
    if (!this.rendition && this.clock.offset > 0) await this.measureClock();
    this.setOpen(true);
    this.showCaptions();
    if (this.target !== null) this.seek(this.target, { play: this.wantsPlay });
  }

  /** Some browsers play on the container's clock, others start theirs at the first sample: the first frame tells. */
  async measureClock() {
    const first = await firstFrameTime(this.media);
    const plausible = first !== null && first <= this.clock.offset + 0.05;
    if (plausible) this.clock = new MediaClock(first);
  }

  /** Offers what is said as captions, on the element's clock. The browser loads a track when it is switched on. */
  async showCaptions() {
    if (!this.open) return;
    const { offset } = this.clock;
    // Without them the video plays all the same.
    const tracks = await listSubtitles(this.video.id).catch(() => ({ items: [] }));
    if (this.closed || offset !== this.clock.offset) return;
    const shown = [...this.media.textTracks].find((track) => track.mode === 'showing')?.language;
    this.media.querySelectorAll('track').forEach((old) => old.remove());
    for (const { language, url } of tracks.items.filter((track) => track.url)) {
      const src = `${url}?offset=${offset}`;
      const track = el('track', { kind: 'captions', srclang: language, label: languageName(language), src });
      this.media.append(track);
      if (language === shown) track.track.mode = 'showing';
    }
  }

  keepPlace() {
    if (this.open && this.media.currentTime > 0) this.target ??= this.time;
    this.wantsPlay ||= !this.media.paused;
  }

  async failed() {
    if (this.closed || !this.media.getAttribute('src')) return;
    if (!this.rendition) {
      this.keepPlace();
      this.useRendition();
      return;
    }
    try {
      await probeMedia(this.media.getAttribute('src'));
      if (!this.retried) {
        // The rendition got ready between the two requests.
        this.retried = true;
        this.useRendition();
      } else {
        this.say('Your browser could not play this video.');
      }
    } catch (error) {
      if (NOT_YET.has(error.status)) setTimeout(() => { if (!this.closed) this.useRendition(); }, RETRY_MS);
      else this.say(describe(error));
    }
  }

  /** Words over the picture; null takes them away. */
  say(message) {
    this.overlay.hidden = message === null;
    fill(this.overlay, message && el('p', {}, message));
    if (message) announce(message);
  }

  /** The API's time of what is on screen, seconds. */
  get time() {
    const shown = this.target ?? this.clock.fromElement(this.media.currentTime);
    return Math.min(shown, this.video.duration ?? Infinity);
  }

  /** Shows the frame at `seconds`, as soon as the source is open. */
  seek(seconds, { play = false } = {}) {
    const last = Number.isFinite(this.video.duration) ? Math.max(0, this.video.duration - 0.001) : Infinity;
    const wanted = Math.min(Math.max(0, seconds), last);
    this.wantsPlay = play;
    if (!this.open) {
      this.target = wanted;
      return;
    }
    this.target = null;
    const at = this.clock.toElement(wanted);
    this.late = at > this.media.duration ? at : null;
    this.media.currentTime = at;
    // Browsers may refuse to start with sound before the first click on a page: then it waits at its frame.
    if (play) this.media.play().catch(() => {});
  }

  /** A source may tell its length too short at first, which cuts a seek; it corrects itself while it loads. */
  seekLate() {
    if (this.late === null || this.media.duration < this.late) return;
    this.media.currentTime = this.late;
    this.late = null;
  }

  togglePlay() {
    if (this.media.paused) this.media.play().catch(() => {});
    else this.media.pause();
  }

  /** Lets go of the connection and the decoder. */
  close() {
    this.closed = true;
    this.media.pause();
    this.media.removeAttribute('src');
    this.media.load();
  }
}
