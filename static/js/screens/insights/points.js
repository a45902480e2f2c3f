// The points of the map: read page by page, and found by their place.

import { get } from '../../core/api.js';

const CELLS = 100;

/** @typedef {{space: string, ids: string[], videos: string[], x: number[], y: number[], start: number[], end: number[]}} Points one value for each shot */

/**
 * Reads the map; no points while the server makes it for the first time.
 * @param {AbortSignal} signal
 */
export async function readMap(signal) {
  /** @type {Points} */
  const points = { space: '', ids: [], videos: [], x: [], y: [], start: [], end: [] };
  /** @type {Api<'Map'>} */
  let page;
  let refreshing = false;
  let cursor;
  do {
    page = await get('/v1/map', { query: { limit: 20_000, cursor }, signal });
    const { videos, video_ids: ids } = page;
    points.space = page.space;
    points.videos = points.videos.concat(videos.map((place) => ids[place]));
    for (const name of /** @type {const} */ (['x', 'y', 'start', 'end'])) points[name] = points[name].concat(page[name]);
    points.ids = points.ids.concat(page.ids);
    refreshing ||= page.refreshing;
    cursor = page.next_cursor;
  } while (cursor);
  return { points: page.made_at ? points : null, made: page.made_at, refreshing, problem: page.problem };
}

/** @param {number} value -1 to 1 */
const cellOf = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(((value + 1) / 2) * CELLS)));

/** Finds points by place, through a grid. */
export class Nearby {
  /** @param {Points} points */
  constructor(points) {
    this.points = points;
    /** @type {number[][]} */
    this.cells = Array.from({ length: CELLS * CELLS }, () => []);
    points.x.forEach((x, point) => { this.cells[cellOf(points.y[point]) * CELLS + cellOf(x)].push(point); });
  }

  /**
   * The nearest point that fits; -1 if none is within the radius.
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {(right: number, up: number) => boolean} [fits]
   */
  nearest(x, y, radius, fits = () => true) {
    let best = -1;
    let least = radius * radius;
    for (let row = cellOf(y - radius); row <= cellOf(y + radius); row += 1) {
      for (let column = cellOf(x - radius); column <= cellOf(x + radius); column += 1) {
        for (const point of this.cells[row * CELLS + column]) {
          const [right, up] = [this.points.x[point] - x, this.points.y[point] - y];
          const distance = right * right + up * up;
          if (distance >= least || !fits(right, up)) continue;
          best = point;
          least = distance;
        }
      }
    }
    return best;
  }

  /**
   * The points inside an outline: those from which a ray to the right crosses it an odd number of times.
   * @param {[number, number][]} corners
   */
  inside(corners) {
    const { x, y } = this.points;
    return this.cells.flat().filter((point) => {
      let isInside = false;
      corners.forEach(([ax, ay], at) => {
        const [bx, by] = corners.at(at - 1) ?? [0, 0];
        if (ay > y[point] !== by > y[point] && x[point] < ((bx - ax) * (y[point] - ay)) / (by - ay) + ax) isInside = !isInside;
      });
      return isInside;
    });
  }
}
