// The open reel: ranges that are collected from anywhere on the page, stored by the server at once.

import { ApiError, get, remove, tagged } from './api.js';

/** @typedef {Api<'Range'>} Range */

const OPEN = 'reprise_open_reel';
const FIRST_NAME = 'New reel';
/** How often a change is made again on the state that somebody else left. */
const TRIES = 4;

class Reels extends EventTarget {
  constructor() {
    super();
    /** @type {Api<'Reel'>|null} the open reel; null while there is none */
    this.open = null;
    /** @type {string|null} */
    this.tag = null;
    /** Changes run one after the other. */
    this.queue = Promise.resolve();
  }

  /** Number of ranges in the open reel. */
  get size() {
    return this.open?.ranges.length ?? 0;
  }

  /** Opens the reel that this browser had open. */
  async load() {
    const id = localStorage.getItem(OPEN);
    if (!id) return;
    try {
      await this.choose(id);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.close();
      else throw error;
    }
  }

  /**
   * Makes a stored reel the open one.
   * @param {string} id
   */
  async choose(id) {
    const { value, tag } = await tagged('GET', `/v1/reels/${id}`);
    this.set(value, tag);
  }

  /** Leaves no reel open. The stored one stays. */
  close() {
    this.set(null, null);
  }

  /**
   * Stores a new reel and opens it.
   * @param {string} [name]
   * @param {Range[]} [ranges]
   */
  async make(name = FIRST_NAME, ranges = []) {
    const { value, tag } = await tagged('POST', '/v1/reels', { json: { name, ranges } });
    this.set(value, tag);
  }

  /**
   * Appends ranges to the open reel; makes one where none is open. Returns what takes them out again.
   * @param {Range[]} ranges
   * @returns {Promise<() => Promise<void>>}
   */
  async add(ranges) {
    await this.change((reel) => ({ ...reel, ranges: [...reel.ranges, ...ranges] }));
    const id = this.open?.id;
    return async () => {
      if (this.open?.id !== id) return;
      await this.change((reel) => ({ ...reel, ranges: without(reel.ranges, ranges) }));
    };
  }

  /**
   * Changes the open reel and stores it. `edit` may run again on a newer state, so it must not keep what it saw.
   * @param {(reel: {name: string, ranges: Range[]}) => {name: string, ranges: Range[]}} edit
   */
  change(edit) {
    const changed = this.queue.then(() => this.store(edit));
    this.queue = changed.catch(() => {});
    return changed;
  }

  /** @param {(reel: {name: string, ranges: Range[]}) => {name: string, ranges: Range[]}} edit */
  async store(edit) {
    if (!this.open) {
      const { name, ranges } = edit({ name: FIRST_NAME, ranges: [] });
      return this.make(name, ranges);
    }
    const before = this.open;
    const { name, ranges } = edit(before);
    // Shown at once; put back if the server refuses.
    this.set({ ...before, name, ranges }, this.tag);
    // A reel has at least one range: without any it goes.
    if (ranges.length === 0) return this.discard(before);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { name: newName, ranges: newRanges } = attempt === 1 ? { name, ranges } : edit(/** @type {Api<'Reel'>} */ (this.open));
        const { value, tag } = await tagged('PUT', `/v1/reels/${before.id}`, {
          json: { name: newName, ranges: newRanges }, headers: { 'If-Match': this.tag ?? '*' },
        });
        return this.set(value, tag);
      } catch (error) {
        const isOld = error instanceof ApiError && error.status === 412;
        if (!isOld || attempt === TRIES) {
          this.set(before, this.tag);
          throw error;
        }
        await this.choose(before.id);
      }
    }
  }

  /**
   * @param {Api<'Reel'>|null} reel
   * @param {string|null} tag
   */
  set(reel, tag) {
    this.open = reel;
    this.tag = tag;
    if (reel) localStorage.setItem(OPEN, reel.id);
    else localStorage.removeItem(OPEN);
    this.dispatchEvent(new Event('change'));
  }

  /**
   * Takes a reel away that its last range was taken out of.
   * @param {Api<'Reel'>} reel
   */
  async discard(reel) {
    try {
      await remove(`/v1/reels/${reel.id}`, { headers: { 'If-Match': this.tag ?? '*' } });
      this.close();
    } catch (error) {
      this.set(reel, this.tag);
      throw error;
    }
  }

  /** All stored reels, newest first, without their ranges. @returns {Promise<Api<'ReelPage'>>} */
  list() {
    return get('/v1/reels', { query: { limit: 100 } });
  }
}

/**
 * Ranges without the last of each that is to go.
 * @param {Range[]} ranges
 * @param {Range[]} gone
 */
function without(ranges, gone) {
  const left = [...ranges];
  for (const one of gone) {
    const place = left.findLastIndex((range) => range.video_id === one.video_id && range.start === one.start && range.end === one.end);
    if (place >= 0) left.splice(place, 1);
  }
  return left;
}

export const reels = new Reels();
