// The list of videos that an address of the library asks for: read from the service in its order, a page at a time.

import { get } from '../core/api.js';

/** Videos of one request. */
const PAGE = 200;
/** Most videos of one request. */
const LARGEST_PAGE = 1000;
const WEEK_MS = 7 * 86_400_000;

/** The orders by the value of `sort` in the address. @type {Record<string, {label: string, order: string}>} */
export const SORTS = {
  newest: { label: 'Newest first', order: 'newest' },
  oldest: { label: 'Oldest first', order: 'oldest' },
  name: { label: 'By name', order: 'title' },
  length: { label: 'Longest first', order: 'longest' },
  size: { label: 'Largest first', order: 'largest' },
};

/**
 * What a list of one kind asks for.
 * @param {string} kind the value of `show` in the address
 * @returns {Record<string, string|boolean>}
 */
export function kindQuery(kind) {
  switch (kind) {
    case 'week': return { added_since: new Date(Date.now() - WEEK_MS).toISOString() };
    case 'warning': return { warnings: true };
    case 'failed': return { state: 'failed' };
    case 'trash': return { trashed: true };
    default: return {};
  }
}

export class VideoList {
  constructor() {
    /** @type {Api<'Video'>[]} the videos that were read, in order */
    this.videos = [];
    /** How many videos the whole list has. */
    this.total = 0;
    /** What the list was asked for. */
    this.asked = '';
    /** @type {string|null} where the next page begins; null once all videos were read */
    this.cursor = null;
    this.query = /** @type {Record<string, string|number|boolean|null>} */ ({});
    this.reading = new AbortController();
    /** How often the list was read from its start. */
    this.reads = 0;
  }

  /** @param {URLSearchParams} parameters of the address */
  static key(parameters) {
    return JSON.stringify(['folder', 'tag', 'show', 'q', 'sort'].map((name) => parameters.get(name)));
  }

  /** Stops what is being read. */
  stop() {
    this.reading.abort();
  }

  /**
   * Reads a list from its start. A list that is read again is read as far as it was before.
   * @param {URLSearchParams} parameters of the address
   * @returns {Promise<boolean>} whether the videos are others now
   */
  async read(parameters) {
    this.stop();
    this.reading = new AbortController();
    const { signal } = this.reading;
    const key = VideoList.key(parameters);
    const sort = SORTS[parameters.get('sort') ?? ''] ?? SORTS.newest;
    const query = { folder: parameters.get('folder'), tag: parameters.get('tag'), text: parameters.get('q'), order: sort.order, ...kindQuery(parameters.get('show') ?? '') };
    const reach = key === this.asked ? this.videos.length : 0;
    /** @type {Api<'VideoPage'>} */
    let page = await get('/v1/videos', { query: { ...query, limit: Math.min(Math.max(reach, PAGE), LARGEST_PAGE), count: true }, signal });
    const videos = [...page.items];
    const total = page.total ?? videos.length;
    while (page.next_cursor && videos.length < reach) {
      page = await get('/v1/videos', { query: { ...query, limit: Math.min(Math.max(reach - videos.length, PAGE), LARGEST_PAGE), cursor: page.next_cursor }, signal });
      videos.push(...page.items);
    }
    const changed = key !== this.asked || total !== this.total || JSON.stringify(videos) !== JSON.stringify(this.videos);
    Object.assign(this, { videos, total, query, asked: key, cursor: page.next_cursor ?? null, reads: this.reads + 1 });
    return changed;
  }

  /**
   * Reads the next page.
   * @param {number} [limit]
   * @returns {Promise<Api<'Video'>[]>} its videos
   */
  async more(limit = PAGE) {
    const { cursor, reads, reading: { signal } } = this;
    if (cursor === null) return [];
    /** @type {Api<'VideoPage'>} */
    const page = await get('/v1/videos', { query: { ...this.query, limit, cursor }, signal });
    signal.throwIfAborted();
    // Meanwhile the list was read anew, or another call has read this page.
    if (reads !== this.reads || cursor !== this.cursor) return [];
    this.videos.push(...page.items);
    this.cursor = page.next_cursor ?? null;
    return page.items;
  }

  /** Puts changed videos in the places of the old ones. @param {Api<'Video'>[]} changed */
  replace(changed) {
    const byId = new Map(changed.map((video) => [video.id, video]));
    this.videos = this.videos.map((video) => byId.get(video.id) ?? video);
  }

  /** @param {Api<'Video'>[]} gone */
  drop(gone) {
    const left = this.videos.filter((video) => !gone.includes(video));
    this.total -= this.videos.length - left.length;
    this.videos = left;
  }

  /** Reads all that is left. */
  async rest() {
    while (this.cursor !== null) await this.more(LARGEST_PAGE);
  }
}
