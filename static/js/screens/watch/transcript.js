// The transcript.
import { el, fill } from '../../core/dom.js';
export class Transcript {
  /** @param {Api<'Video'>} video @param {{onSeek: (s: number) => void, onMark: (a: number, b: number) => void, onTracks: () => void}} parts */
  constructor(video, parts) { this.video = video; this.parts = parts; this.element = el('div', {}); fill(this.element); }
  /** @param {AbortSignal} _signal */
  async load(_signal) { return false; }
  /** @param {number} _t */
  shown(_t) {}
  /** @param {number} _t */
  setTime(_t) {}
  /** @param {string} _w */
  setWords(_w) {}
  /** @param {Api<'Hit'>[]} _h */
  setHits(_h) {}
  /** @type {boolean} */ hasLines = false;
  focusFind() {}
  /** @param {File[]} _f */
  takeFiles(_f) { return false; }
}
