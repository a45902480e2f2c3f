// Boxes on the picture around the lines of text for which a hit was found, while they are on screen.

import { el, fill } from '../core/dom.js';

/** Space around the letters, as a part of a line's height. */
const MARGIN = 0.2;

export class TextBoxes {
  /** @param {import('./player.js').Player} player */
  constructor(player) {
    this.media = player.media;
    this.element = el('div', { class: 'text-boxes', 'aria-hidden': 'true' });
    player.element.append(this.element);
    /** @type {Api<'TextBox'>[]} */
    this.boxes = [];
    this.drawn = '';
    // A paused player shows no further frame after the picture's size is known, or after it has changed its place.
    for (const name of ['loadedmetadata', 'resize', 'emptied']) this.media.addEventListener(name, () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.media);
  }

  /** @param {Api<'Hit'>|null} hit the open one @param {number} time in seconds of the video */
  show(hit, time) {
    const lines = (hit?.evidence ?? []).filter(({ box, start, end }) => box && time >= (start ?? 0) && time < (end ?? Infinity));
    this.boxes = lines.flatMap(({ box }) => box ?? []);
    this.draw();
  }

  draw() {
    const isOpen = this.media.videoWidth > 0;
    const places = isOpen ? this.boxes.map((box) => this.place(box)) : [];
    // Most frames change nothing.
    const drawn = JSON.stringify(places);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    fill(this.element, ...places.map((vars) => el('i', { vars })));
  }

  /** Where a box lies on the element: the picture keeps its shape inside it. @param {Api<'TextBox'>} box */
  place({ left, top, width, height }) {
    const { clientWidth, clientHeight, videoWidth, videoHeight } = this.media;
    const scale = Math.min(clientWidth / videoWidth, clientHeight / videoHeight);
    const [wide, high] = [videoWidth * scale, videoHeight * scale];
    const margin = height * high * MARGIN;
    const px = (/** @type {number} */ value) => `${Math.round(value)}px`;
    return {
      left: px((clientWidth - wide) / 2 + left * wide - margin), top: px((clientHeight - high) / 2 + top * high - margin),
      width: px(width * wide + 2 * margin), height: px(height * high + 2 * margin),
    };
  }
}
