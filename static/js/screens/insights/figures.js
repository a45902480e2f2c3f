// The figures of a range of days: those of GET /v1/insights, or counted here where the server is older.

import { ApiError, all, get } from '../../core/api.js';

/** Rows that are read at most to count here. */
export const MOST_ROWS = 5000;
const DAY_MS = 86_400_000;

/** @typedef {Api<'LoggedSearch'>} LoggedSearch */
/** @typedef {{searches: number, without_results: number, latency_ms: {p50: number, p95: number, p99: number}|null, videos_added: number, seconds_added: number}} Sums */
/** @typedef {{text: string, searches: number}} Text */
/** @typedef {Sums & {complete: boolean, days: (Sums & {day: string})[], most_searched: Text[], nothing_found: Text[]}} Figures */

/** @param {number} days today (UTC) is the last; `until` is exclusive */
export function rangeOf(days) {
  const date = (/** @type {number} */ ago) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  return { since: date(days - 1), until: date(-1) };
}

/**
 * @param {number} days
 * @param {AbortSignal} signal
 * @returns {Promise<Figures>}
 */
export async function figures(days, signal) {
  const { since, until } = rangeOf(days);
  try {
    return await get('/v1/insights', { query: { since, until }, signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  /** @type {[LoggedSearch[], Api<'Video'>[]]} */
  const [searches, videos] = await Promise.all([
    all('/v1/searches', { query: { since, until, limit: 1000 }, most: MOST_ROWS, signal }), all('/v1/videos', { most: MOST_ROWS, signal })]);
  const dates = Array.from({ length: days }, (_, at) => new Date(Date.parse(since) + at * DAY_MS).toISOString().slice(0, 10));
  const of = (/** @type {string} */ start) => sumsOf(searches.filter(({ at }) => at.startsWith(start)), videos.filter(({ created_at: at }) => (start ? at.startsWith(start) : at >= since)));
  return {
    ...of(''), days: dates.map((day) => ({ day, ...of(day) })), complete: Math.max(searches.length, videos.length) < MOST_ROWS,
    most_searched: textsOf(searches), nothing_found: textsOf(searches.filter(({ shown }) => shown === 0)),
  };
}

/**
 * Whether a search found nothing, or its best hit stands no further above the background than the best of as many
 * unrelated spans would.
 * @param {LoggedSearch} search
 */
export function foundLittle({ hits, live, shown }) {
  const best = Math.max(0, ...(hits[0]?.evidence ?? []).map(({ z }) => z ?? Number.POSITIVE_INFINITY));
  return shown === 0 || (live >= 50 && best < Math.sqrt(2 * Math.log(live)));
}

/** Equal texts are one: case and white space do not count. @param {string|null|undefined} text */
export const plain = (text) => (text ?? '').trim().toLowerCase().replace(/\s+/g, ' ');

/** @param {LoggedSearch[]} searches @param {Api<'Video'>[]} videos @returns {Sums} */
function sumsOf(searches, videos) {
  const times = searches.map(({ timings_ms: { total } }) => total).sort((a, b) => a - b);
  const under = (/** @type {number} */ share) => times[Math.ceil(share * times.length) - 1];
  return {
    searches: times.length, without_results: searches.filter(({ shown }) => shown === 0).length,
    latency_ms: times.length > 0 ? { p50: under(0.5), p95: under(0.95), p99: under(0.99) } : null,
    videos_added: videos.length, seconds_added: videos.reduce((sum, { duration }) => sum + (duration ?? 0), 0),
  };
}

/** The most frequent texts. @param {LoggedSearch[]} searches @returns {Text[]} */
const textsOf = (searches) => [...Map.groupBy(searches.filter(({ kind, query }) => kind === 'text' && query.text), ({ query }) => plain(query.text)).values()]
  .map((group) => ({ text: group[0].query.text ?? '', searches: group.length })).sort((a, b) => b.searches - a.searches);
