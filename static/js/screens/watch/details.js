// The details.
import { el } from '../../core/dom.js';
export class Details {
  /** @param {Api<'Video'>} video @param {string|null} tag @param {(video: Api<'Video'>) => void} onChange */
  constructor(video, tag, onChange) { this.video = video; this.tag = tag; this.onChange = onChange; this.element = el('div', {}); }
  /** @param {Api<'SearchAnswer'>} _answer */
  setAnswer(_answer) {}
  /** @param {Api<'Hit'>|null} _hit */
  setHit(_hit) {}
}
