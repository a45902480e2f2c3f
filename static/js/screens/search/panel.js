// The clip that is asked with, always in sight, and the hit beside it in step.

import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { videoPath } from '../../core/router.js';
import { formatRange, formatTime } from '../../core/time.js';
import { titleOf } from '../../core/words.js';
import { get } from '../../core/api.js';
import { InStep } from '../../parts/loop.js';
import { isImage, queryFiles, queryParameters } from '../../parts/query.js';
import { videoOf } from '../../parts/videos.js';

/** @typedef {import('../../parts/loop.js').Played} Played */

/** @type {[number, string][]} */
export const SPEEDS = [[0.25, '¼×'], [0.5, '½×'], [1, '1×']];
const SPEED = 'reprise_loop_speed';
export const loopSpeed = () => Number(localStorage.getItem(SPEED)) || 1;

/**
 * Buttons for the speed of loops.
 * @param {(speed: number) => void} onChange
 */
export function speedButtons(onChange) {
  const box = el('div', { class: 'seg', role: 'group', 'aria-label': 'Speed of both' });
  const draw = () => fill(box, SPEEDS.map(([speed, label]) => el('button', { type: 'button', 'aria-pressed': String(loopSpeed() === speed), on: { click: () => {
    localStorage.setItem(SPEED, String(speed));
    for (const one of box.children) one.setAttribute('aria-pressed', String(one.textContent === label));
    onChange(speed);
  } } }, label)));
  return draw();
}

/**
 * What the address asks with as something to play, with its name and where it leads; null for words.
 * @param {URLSearchParams} parameters
 * @returns {Promise<{played: Played, name: string, short: string, href: string|null, image?: string}|null>}
 */
export async function subjectOf(parameters) {
  const number = (/** @type {string} */ name) => Number.parseFloat(parameters.get(name) ?? '') || 0;
  const file = queryFiles.get(parameters.get('upload'));
  if (file) {
    const src = URL.createObjectURL(file);
    return { played: { start: 0, end: 0, src }, name: file.name, short: file.name, href: null, ...(isImage(file) ? { image: src } : {}) };
  }
  const clip = parameters.get('clip_id') ? await get(`/v1/clips/${parameters.get('clip_id')}`) : null;
  const id = clip?.video_id ?? parameters.get('clip') ?? parameters.get('image');
  if (!id) return null;
  const at = number('at');
  const [start, end] = clip ? [clip.start, clip.end] : parameters.get('image') ? [at, at] : [number('start'), number('end')];
  const title = titleOf(await videoOf(id));
  return {
    played: { video_id: id, start, end, preview: clip?.preview_url, poster: clip?.thumbnail_url },
    name: `${title} · ${end > start ? formatRange(start, end) : formatTime(start, { fraction: true })}`,
    short: `${title}, ${formatTime(start)}`,
    href: videoPath(id, start),
  };
}

export class Panel {
  /** @param {{onRemove: () => void, onCompare: () => void}} acts */
  constructor({ onRemove, onCompare }) {
    this.onRemove = onRemove;
    this.asked = '';
    this.name = '';
    /** @type {Awaited<ReturnType<typeof subjectOf>>} */
    this.subject = null;
    this.step = new InStep(loopSpeed());
    /** @type {import('../../parts/loop.js').Loop|null} */
    this.beside = null;
    this.play = iconButton('pause', 'Pause', () => this.pause(!this.step.paused), { class: 'x play' });
    this.query = el('figure');
    /** The clip inside the box, where the window has no room beside it. */
    this.mini = button('', onCompare, { class: 'mini-query only-s', 'aria-label': 'Compare with the query' });
    this.hit = el('figure', { hidden: true });
    this.element = el('div', { class: 'col', hidden: true }, el('div', { class: 'pair' }, this.query, this.hit),
      el('div', { class: 'row' }, speedButtons((speed) => this.step.setSpeed(speed)), el('span', { class: 'grow' }),
        button([icon('columns-2'), 'Compare ', keyCap('C')], onCompare, { class: 'btn ghost' })));
  }

  /** Shows what an address asks with; the same is not loaded again. @param {URLSearchParams} parameters */
  show(parameters) {
    const query = queryParameters(parameters);
    for (const name of ['q', 'mod', 'sources', 'like', 'unlike']) query.delete(name);
    this.element.hidden = query.size === 0;
    if (String(query) === this.asked) this.step.setPaused(this.step.paused);
    else this.loaded = this.load(query);
  }

  /** @param {URLSearchParams} query the clip or picture alone, without words */
  async load(query) {
    this.close();
    this.asked = String(query);
    // Its place is kept at once, so that the filters below do not move when the query or the first hit comes.
    this.hit.hidden = false;
    const subject = query.size > 0 ? await subjectOf(query).catch(() => null) : null;
    if (String(query) !== this.asked) return;
    this.subject = subject;
    this.hit.hidden = !subject;
    if (!subject) return;
    const { played, name, href, image } = subject;
    const media = image ? el('img', { src: image, alt: '' }) : this.step.add(played).element;
    if (matchMedia('(max-width: 760px)').matches) return fill(this.mini, media);
    fill(this.query, media, el('figcaption', { class: 'q' }, 'Query'),
      el(href ? 'a' : 'span', { class: 'tag b num', href }, name),
      iconButton('x', 'Remove the clip', this.onRemove, { class: 'x' }), !image && this.play);
    this.pause(this.step.paused);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.step.setPaused(paused);
    const label = paused ? 'Play' : 'Pause';
    fill(this.play, icon(label.toLowerCase()));
    this.play.setAttribute('aria-label', label);
    this.play.title = label;
  }

  /**
   * Plays a hit beside the query.
   * @param {Played} played
   * @param {string} name
   * @param {string} title
   */
  showHit(played, name, title) {
    if (!this.asked || this.element.offsetParent === null || this.name === name) return;
    this.name = name;
    this.hit.hidden = false;
    this.beside = this.step.add(played, this.beside);
    fill(this.hit, this.beside.element, el('figcaption', {}, title), el('span', { class: 'tag b num' }, name));
  }

  /** Stops the loops; they go on with `show`. */
  rest() {
    for (const loop of this.step.loops) loop.pause();
  }

  close() {
    this.step.close();
    this.step = new InStep(loopSpeed());
    this.beside = null;
    this.name = '';
    this.asked = '';
    this.hit.hidden = true;
    fill(this.query);
  }
}
