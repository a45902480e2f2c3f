// The figures of a range of days, from the log of searches and the list of videos.

import { all } from '../../core/api.js';

/** Rows that are read at most; the page says so where that cuts. */
export const MOST_ROWS = 5000;
const MOST_TEXTS = 8;
const DAY_MS = 86_400_000;

/** @typedef {Api<'LoggedSearch'>} LoggedSearch */
/** @typedef {{searches: number, nothing: number, latency: {p50: number, p95: number, p99: number}|null}} Sums */
/** @typedef {{text: string, hash: string, searches: number}} Text */

/**
 * The last days, today included; `until` is exclusive.
 * @param {number} number
 */
export function rangeOf(number) {
  const date = (/** @type {number} */ ago) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  return { since: date(number - 1), until: date(-1), days: Array.from({ length: number }, (_, at) => date(number - 1 - at)) };
}

/**
 * @param {ReturnType<typeof rangeOf>} range
 * @param {AbortSignal} signal
 */
export async function figures({ since, until, days }, signal) {
  /** @type {[LoggedSearch[], Api<'Video'>[]]} */
  const [searches, videos] = await Promise.all([
    all('/v1/searches', { query: { since, until, limit: 1000 }, most: MOST_ROWS, signal }), all('/v1/videos', { most: MOST_ROWS, signal })]);
  const asked = Map.groupBy(searches, ({ at }) => at.slice(0, 10));
  const added = Map.groupBy(videos, ({ created_at: at }) => at.slice(0, 10));
  return {
    /** Whether all rows are counted, not only the newest. */
    complete: searches.length < MOST_ROWS && videos.length < MOST_ROWS,
    sums: sumsOf(searches),
    days: days.map((day) => ({
      ...sumsOf(asked.get(day) ?? []), videos: added.get(day)?.length ?? 0, seconds: (added.get(day) ?? []).reduce((sum, { duration }) => sum + (duration ?? 0), 0),
    })),
    frequent: textsOf(searches),
    unanswered: textsOf(searches.filter(foundLittle)),
  };
}

/**
 * Whether a search found nothing, or its best hit stands no further above the background than the best of as many random ones.
 * @param {LoggedSearch} search
 */
export function foundLittle({ hits, live, shown }) {
  const best = Math.max(...(hits[0]?.evidence ?? []).map(({ z }) => z ?? Number.POSITIVE_INFINITY));
  return shown === 0 || (live > 100 && best < Math.sqrt(2 * Math.log(live)) && best > 0);
}

/** @param {LoggedSearch[]} searches @returns {Sums} */
function sumsOf(searches) {
  const times = searches.map(({ timings_ms: { total } }) => total).sort((a, b) => a - b);
  const under = (/** @type {number} */ share) => times[Math.ceil(share * times.length) - 1];
  return {
    searches: times.length, nothing: searches.filter(({ shown }) => shown === 0).length,
    latency: times.length > 0 ? { p50: under(0.5), p95: under(0.95), p99: under(0.99) } : null,
  };
}

/** The most frequent texts. @param {LoggedSearch[]} searches @returns {Text[]} */
function textsOf(searches) {
  const texts = Map.groupBy(searches.filter(({ kind, query }) => kind === 'text' && query.text), ({ query }) => query.hash);
  return [...texts].map(([hash, group]) => ({ text: group[0].query.text ?? '', hash, searches: group.length }))
    .sort((a, b) => b.searches - a.searches).slice(0, MOST_TEXTS);
}
