// Marks a stretch of a video: a track with two handles (pointer and keys), and buttons for the playing moment.

import { button, el, fill } from './dom.js';
import { announce } from './problems.js';
import { formatRange, formatTime, toMilliseconds } from './time.js';

/** How far a key moves a handle, seconds. */
const STEPS = { ArrowLeft: -0.1, ArrowDown: -0.1, ArrowRight: 0.1, ArrowUp: 0.1, PageDown: -10, PageUp: 10 };

export class RangeMarker {
  /**
   * @param {object} options
   * @param {number} options.duration seconds, over 0
   * @param {number} options.frame length of a frame, seconds: the shortest range
   * @param {() => number} options.now the time on screen
   * @param {(seconds: number) => void} options.onSeek
   * @param {(range: {start: number, end: number}|null) => void} options.onChange
   */
  constructor({ duration, frame, now, onSeek, onChange }) {
    Object.assign(this, { duration, frame, now, onSeek, onChange });
    this.clips = [];
    this.value = null;
    this.boundaries = el('div', { 'aria-hidden': true });
    this.marked = el('div', { class: 'marked', hidden: true });
    this.head = el('div', { class: 'head', 'aria-hidden': true });
    this.handles = { start: this.handle('start', 'Start of the range'), end: this.handle('end', 'End of the range') };
    this.track = el('div', { class: 'track', role: 'group', 'aria-label': 'Timeline' },
      el('div', { class: 'rail' }), this.boundaries, this.marked, this.head, this.handles.start, this.handles.end);
    this.track.addEventListener('pointerdown', (event) => this.drag(event, this.track, (at) => this.onSeek(at)));
    this.text = el('span', { class: 'times', id: 'marked-range' });
    this.clearButton = button('Clear', () => this.clear(), { class: 'button small plain' });
    this.element = el('div', { class: 'stack' }, this.track,
      el('div', { class: 'row' },
        button(['Mark start ', el('kbd', {}, '[')], () => this.markStart(), { class: 'button small', id: 'mark-start' }),
        button(['Mark end ', el('kbd', {}, ']')], () => this.markEnd(), { class: 'button small', id: 'mark-end' }),
        this.text, this.clearButton));
    this.draw();
  }

  handle(side, label) {
    const handle = el('button', {
      type: 'button', class: 'handle', role: 'slider', 'aria-label': label, 'aria-valuemin': 0,
      'aria-valuemax': this.duration, data: { side },
    });
    handle.addEventListener('pointerdown', (event) => {
      event.stopPropagation();
      this.drag(event, handle, (at) => this.move(side, at));
    });
    handle.addEventListener('keydown', (event) => this.key(event, side));
    return handle;
  }

  /** Follows a pointer from its press to its release. */
  drag(event, target, onMove) {
    if (event.button !== 0) return;
    const move = (at) => onMove(this.timeAt(at.clientX));
    target.setPointerCapture(event.pointerId);
    target.addEventListener('pointermove', move);
    target.addEventListener('lostpointercapture', () => target.removeEventListener('pointermove', move), { once: true });
    if (target === this.track) move(event);
  }

  timeAt(clientX) {
    const box = this.track.getBoundingClientRect();
    return Math.min(1, Math.max(0, (clientX - box.left) / box.width)) * this.duration;
  }

  key(event, side) {
    const bounds = { Home: 0, End: this.duration };
    if (event.key in bounds) this.move(side, bounds[event.key]);
    else if (event.key in STEPS) this.move(side, this.value[side] + STEPS[event.key] * (event.shiftKey ? 10 : 1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Moves one side, never past the other, and shows what is there. */
  move(side, at) {
    const { start, end } = this.value;
    if (side === 'start') this.set(Math.min(at, end - this.frame), end);
    else this.set(start, Math.max(at, start + this.frame));
    this.onSeek(side === 'start' ? this.value.start : Math.max(this.value.start, this.value.end - this.frame));
  }

  clipAt(seconds) {
    return this.clips.find((clip) => clip.start <= seconds && seconds < clip.end) ?? null;
  }

  /** The range starts with the frame on screen; without an end it runs to the end of its clip. */
  markStart() {
    const start = this.now();
    const keep = this.value && this.value.end > start;
    this.set(start, keep ? this.value.end : this.clipAt(start)?.end ?? this.duration);
  }

  /** The range ends with the frame on screen; without a start it runs from the start of its clip. */
  markEnd() {
    const shown = this.now();
    const keep = this.value && this.value.start <= shown;
    this.set(keep ? this.value.start : this.clipAt(shown)?.start ?? 0, shown + this.frame);
  }

  set(start, end) {
    const from = toMilliseconds(Math.min(Math.max(0, start), Math.max(0, this.duration - this.frame)));
    const to = toMilliseconds(Math.min(Math.max(end, from + this.frame), this.duration));
    this.value = { start: from, end: to };
    this.draw();
    announce(`Marked ${formatRange(from, to)}`);
    this.onChange(this.value);
  }

  clear() {
    this.value = null;
    this.draw();
    this.onChange(null);
  }

  setClips(clips) {
    this.clips = clips;
    fill(this.boundaries, clips.filter((clip) => clip.start > 0).map((clip) => {
      const line = el('div', { class: 'boundary' });
      line.style.left = this.percent(clip.start);
      return line;
    }));
  }

  setHead(seconds) {
    this.head.style.left = this.percent(seconds);
  }

  percent(seconds) {
    return `${(Math.min(Math.max(seconds / this.duration, 0), 1) * 100).toFixed(4)}%`;
  }

  draw() {
    const { value } = this;
    for (const [side, handle] of Object.entries(this.handles)) {
      handle.hidden = !value;
      if (!value) continue;
      handle.style.left = this.percent(value[side]);
      handle.setAttribute('aria-valuenow', value[side]);
      handle.setAttribute('aria-valuetext', formatTime(value[side], { fraction: true }));
    }
    this.marked.hidden = !value;
    this.clearButton.hidden = !value;
    this.text.textContent = value ? formatRange(value.start, value.end) : 'Mark a range to search for more of it';
    this.text.classList.toggle('muted', !value);
    if (!value) return;
    this.marked.style.left = this.percent(value.start);
    this.marked.style.width = `calc(${this.percent(value.end)} - ${this.percent(value.start)})`;
  }
}
