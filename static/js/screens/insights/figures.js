// The figures of a range of days, and what counts as a search that found little.

import { get } from '../../core/api.js';

/** Rows of the log that a list looks through at most. */
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
export function figures(days, signal) {
  return get('/v1/insights', { query: rangeOf(days), signal });
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
