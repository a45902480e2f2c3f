// A video's sprite sheets as pictures for any stretch of time: the timeline's filmstrip, thumbnails, a reel's track.

import { get } from '../core/api.js';
import { el } from '../core/dom.js';

/** @type {Map<string, Promise<Filmstrip|null>>} */
const known = new Map();

/** The filmstrip of a video; null where it has no pictures. @param {string} id */
export function filmstripOf(id) {
  let strip = known.get(id);
  if (!strip) {
    strip = get(`/v1/videos/${id}/sprites`).then((sheets) => new Filmstrip(sheets), () => {
      known.delete(id);
      return null;
    });
    known.set(id, strip);
  }
  return strip;
}

export class Filmstrip {
  /** @param {Api<'SpriteSheets'>} sheets */
  constructor(sheets) {
    this.sheets = sheets;
    /** @type {Map<string, Promise<HTMLImageElement|null>>} */
    this.images = new Map();
  }

  /** Width of a picture over its height. */
  get aspect() {
    return this.sheets.tile_width / this.sheets.tile_height;
  }

  /** Which picture is on screen at a time, and where it stands. @param {number} seconds */
  tileAt(seconds) {
    const { interval, tiles, columns, rows, sheets } = this.sheets;
    const number = Math.min(tiles - 1, Math.max(0, Math.floor(seconds / interval + 1e-6)));
    const place = number % (columns * rows);
    return { number, sheet: sheets[Math.floor(number / (columns * rows))], column: place % columns, row: Math.floor(place / columns) };
  }

  /**
   * A box that shows the picture of a time, as its background; the style sheet gives it its size and aspect.
   * @param {number} seconds
   * @param {string} [classes]
   */
  box(seconds, classes = 'tile') {
    const { sheet, column, row } = this.tileAt(seconds);
    const { columns, rows } = this.sheets;
    const share = (/** @type {number} */ place, /** @type {number} */ of) => (of > 1 ? (100 * place) / (of - 1) : 0);
    const box = el('span', { class: classes, 'aria-hidden': 'true' });
    box.style.setProperty('background-image', `url("${sheet}")`);
    box.style.setProperty('background-size', `${columns * 100}% ${rows * 100}%`);
    box.style.setProperty('background-position', `${share(column, columns)}% ${share(row, rows)}%`);
    box.style.setProperty('aspect-ratio', `${this.aspect}`);
    return box;
  }

  /** @param {string} path @returns {Promise<HTMLImageElement|null>} */
  image(path) {
    let image = this.images.get(path);
    if (!image) {
      const element = new Image();
      element.src = path;
      image = element.decode().then(() => element, () => {
        this.images.delete(path);
        return null;
      });
      this.images.set(path, image);
    }
    return image;
  }

  /**
   * Draws the stretch from `start` to `end` over the whole canvas, as pictures side by side. Pictures that are still
   * loading come when they are there, unless something else was drawn meanwhile.
   * @param {HTMLCanvasElement} canvas
   * @param {number} start
   * @param {number} end
   */
  draw(canvas, start, end) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const context = canvas.getContext('2d');
    if (!context || width === 0 || height === 0 || !(end > start)) return;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const drawn = `${start}-${end}-${w}`;
    canvas.dataset.drawn = drawn;
    const tileWidth = h * this.aspect;
    const { tile_width: sw, tile_height: sh } = this.sheets;
    // Pictures keep their place in time while the view moves: the grid starts at time 0.
    const perTile = (tileWidth / w) * (end - start);
    for (let place = Math.floor(start / perTile); place * perTile < end; place += 1) {
      const x = ((place * perTile - start) / (end - start)) * w;
      const { sheet, column, row } = this.tileAt((place + 0.5) * perTile);
      this.image(sheet).then((image) => {
        if (image && canvas.dataset.drawn === drawn) context.drawImage(image, column * sw, row * sh, sw, sh, Math.round(x), 0, Math.ceil(tileWidth), h);
      });
    }
  }
}
