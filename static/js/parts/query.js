// The query that an address carries: what is asked, where to look, and the same query as a request's body.

import { toMilliseconds } from '../core/time.js';

/** @typedef {Api<'TimeRange'>} TimeRange */

/** The parameters of an address that make its query. All others are settings of a view. */
const NAMES = ['q', 'clip', 'start', 'end', 'clip_id', 'image', 'at', 'upload', 'name', 'mod', 'like', 'unlike', 'sources'];
/** The parameters of which one must be there for a search. */
const SUBJECTS = ['q', 'clip', 'clip_id', 'image', 'upload', 'like'];
/** The parameters that leave something out. */
export const FILTERS = ['video', 'day', 'folder', 'tag', 'length'];
/** Lengths of videos to choose from: name, label, seconds from and below. @type {[string, string, number, number][]} */
export const LENGTHS = [
  ['s', 'Under 10 s', 0, 10], ['m', '10 s to 1 min', 10, 60], ['l', '1 to 10 min', 60, 600], ['xl', 'Over 10 min', 600, Infinity],
];
/** @type {Api<'SearchedSource'>[]} */
const SOURCES = ['visual', 'spoken', 'screen'];
export const EVERYWHERE = SOURCES.join();
/** Hits that are asked for at once. */
const LIMIT = 60;
/** Hits from which those of another order are taken. */
const SORTED_LIMIT = 300;
const GROUPS = 10;
const PER_GROUP = 5;

/** Files of queries live in this tab only; the address holds their number. */
class QueryFiles {
  constructor() {
    /** @type {File[]} */
    this.files = [];
  }

  /**
   * Keeps a file, and returns the parameters that search with it.
   * @param {File} file
   */
  keep(file) {
    this.files.push(file);
    return new URLSearchParams({ upload: String(this.files.length), name: file.name });
  }

  /**
   * @param {string|null} number
   * @returns {File|null} null if a page that was loaded anew has forgotten it
   */
  get(number) {
    return this.files[Number(number) - 1] ?? null;
  }
}

export const queryFiles = new QueryFiles();

/** @param {File} file */
export const isImage = (file) => file.type.startsWith('image/');

/**
 * Whether an address asks for anything.
 * @param {URLSearchParams} parameters
 */
export function isSearch(parameters) {
  return SUBJECTS.some((name) => (parameters.get(name) ?? '').trim() !== '');
}

/**
 * Whether it asks by words alone, perhaps with examples beside them.
 * @param {URLSearchParams} parameters
 */
export function isText(parameters) {
  return isSearch(parameters) && !['clip', 'clip_id', 'image', 'upload'].some((name) => parameters.get(name));
}

/**
 * The query alone, for an address of another view.
 * @param {URLSearchParams} parameters
 */
export function queryParameters(parameters) {
  const query = new URLSearchParams();
  if (!isSearch(parameters)) return query;
  for (const [name, value] of parameters) if (NAMES.includes(name) && value) query.append(name, value);
  return query;
}

/**
 * The address of a search: that of `parameters` with other values. An array repeats its name; null, '' and [] take it out.
 * @param {URLSearchParams} parameters
 * @param {Record<string, string|number|string[]|null>} [changes]
 */
export function searchPath(parameters, changes = {}) {
  const changed = new URLSearchParams(parameters);
  for (const [name, value] of Object.entries(changes)) {
    changed.delete(name);
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== '') changed.append(name, String(one));
  }
  const text = changed.toString();
  return text ? `/?${text}` : '/';
}

/**
 * The parameters that search with a range.
 * @param {{video_id: string, start: number, end: number}} range
 */
export function rangeParameters({ video_id: id, start, end }) {
  return new URLSearchParams({ clip: id, start: String(toMilliseconds(start)), end: String(toMilliseconds(end)) });
}

/**
 * The address that searches for more of what a range shows.
 * @param {{video_id: string, start: number, end: number}} range
 */
export const likePath = (range) => `/?${rangeParameters(range)}`;

/**
 * A range as an address writes an example.
 * @param {{video_id: string, start: number, end: number}} range
 */
export function writeExample({ video_id: id, start, end }) {
  return `${id}:${toMilliseconds(start)}-${toMilliseconds(end)}`;
}

/**
 * An example of an address in the API's words: `VIDEO:START-END`, or a text.
 * @param {string} written
 * @returns {{clip: TimeRange}|{text: string}}
 */
export function readExample(written) {
  const parts = /^([0-9a-f-]{36}):([\d.]+)-([\d.]+)$/i.exec(written);
  return parts ? { clip: { video_id: parts[1], start: Number(parts[2]), end: Number(parts[3]) } } : { text: written };
}

/**
 * What an address asks with, without its change and its further examples.
 * @param {URLSearchParams} parameters
 * @param {File|null} file
 * @returns {any} null if it has only examples
 */
function subjectOf(parameters, file) {
  const value = (/** @type {string} */ name) => parameters.get(name) ?? '';
  const number = (/** @type {string} */ name) => Number.parseFloat(value(name));
  if (value('clip')) return { clip: { video_id: value('clip'), start: number('start'), end: number('end') } };
  if (value('clip_id')) return { clip_id: value('clip_id') };
  if (value('image')) return { image: { video_id: value('image'), at: number('at') } };
  if (file) return isImage(file) ? { image: { upload: true } } : { upload: true };
  return value('q').trim() ? { text: value('q').trim() } : null;
}

/**
 * The query of an address in the API's words, with its file; null if that file is not in this tab any more.
 * @param {URLSearchParams} parameters
 * @returns {{query: any, file: File|null}|null}
 */
export function queryOf(parameters) {
  const file = parameters.get('upload') ? queryFiles.get(parameters.get('upload')) : null;
  if (parameters.get('upload') && !file) return null;
  const subject = subjectOf(parameters, file);
  const mod = (parameters.get('mod') ?? '').trim();
  const [like, unlike] = ['like', 'unlike'].map((name) => parameters.getAll(name).filter(Boolean).map(readExample));
  // Examples take no change: its words become one of them.
  if (like.length + unlike.length > 0) {
    const liked = [subject, mod && subject && !subject.text ? { text: mod } : null, ...like].filter(Boolean);
    return { query: { like: liked, ...(unlike.length > 0 ? { unlike } : {}) }, file };
  }
  return { query: mod && subject && !subject.text ? { ...subject, modification: mod } : subject, file };
}

/**
 * Where to look; null where the address leaves it to the server.
 * @param {URLSearchParams} parameters
 */
export function sourcesOf(parameters) {
  const named = (parameters.get('sources') ?? '').split(',');
  const chosen = SOURCES.filter((source) => named.includes(source));
  return chosen.length > 0 ? chosen : null;
}

/**
 * Whether the query can be compared with what is said: it has words, and no further examples.
 * @param {URLSearchParams} parameters
 */
export function canHear(parameters) {
  const hasExamples = parameters.has('like') || parameters.has('unlike');
  return !hasExamples && (isText(parameters) || (parameters.get('mod') ?? '').trim() !== '');
}

/**
 * The filter of an address; null without one.
 * @param {URLSearchParams} parameters
 * @returns {any}
 */
export function filterOf(parameters) {
  const all = [];
  const some = (/** @type {string} */ name) => parameters.getAll(name).filter(Boolean);
  const any = (/** @type {any[]} */ tests) => { if (tests.length > 0) all.push(tests.length === 1 ? tests[0] : { any: tests }); };
  if (some('video').length > 0) all.push({ field: 'video_id', in: some('video') });
  any(some('tag').map((tag) => ({ field: 'tags', eq: tag })));
  any(some('folder').map((folder) => ({ field: 'folder', under: folder })));
  any(some('day').map((day) => ({ field: 'recorded_at', gte: `${day}T00:00:00Z`, lt: `${nextDay(day)}T00:00:00Z` })).map(bounds));
  any(LENGTHS.filter(([name]) => some('length').includes(name)).map(([, , from, below]) => bounds({
    field: 'duration', gte: from, ...(below === Infinity ? {} : { lt: below }),
  })));
  return all.length === 0 ? null : all.length === 1 ? all[0] : { all };
}

/** A test has one operator: two bounds are two tests. @param {{field: string} & Record<string, any>} test */
function bounds({ field, ...operators }) {
  return { all: Object.entries(operators).map(([operator, value]) => ({ field, [operator]: value })) };
}

/** @param {string} day such as 2026-11-24 */
function nextDay(day) {
  const date = new Date(`${day}T00:00:00Z`);
  if (Number.isNaN(date.getTime())) return day;
  return new Date(date.getTime() + 86_400_000).toISOString().slice(0, 10);
}

/**
 * The body of POST /v1/search for an address, with its file; null if that file is not in this tab any more.
 * @param {URLSearchParams} parameters
 * @returns {{body: any, file: File|null}|null}
 */
export function searchOf(parameters) {
  const asked = queryOf(parameters);
  if (!asked) return null;
  const sources = canHear(parameters) ? sourcesOf(parameters) : null;
  const filter = filterOf(parameters);
  const grouped = parameters.get('group') === 'video';
  return {
    file: asked.file,
    body: {
      query: asked.query,
      near_duplicates: 'fold',
      facets: ['video', 'folder', 'tag', 'day'].map((by) => ({ by })),
      ...(sources ? { sources } : {}),
      ...(filter ? { filter } : {}),
      ...(grouped ? { group_by: 'video', per_group: PER_GROUP, limit: GROUPS } : { limit: parameters.get('sort') ? SORTED_LIMIT : LIMIT }),
    },
  };
}
