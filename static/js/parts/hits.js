// What is known about a hit: where it opens, what was said, its addresses, and what was done with it.

import { addressOf, headers } from '../core/api.js';
import { videoPath } from '../core/router.js';
import { titleOf } from '../core/words.js';
import { videoHere } from './videos.js';

/** @typedef {Api<'Hit'>} Hit */

const LEAD_IN_S = 1;

/**
 * The best that is said of a hit; null if it was found by its pictures alone.
 * @param {Hit} hit
 */
export function spokenEvidence(hit) {
  return hit.evidence.find(({ text }) => text) ?? null;
}

/**
 * When a hit opens, seconds: where it is said, else where it is seen best, else its start.
 * @param {Hit} hit
 */
export function opensAt(hit) {
  return spokenEvidence(hit)?.start ?? hit.peak ?? hit.start;
}

/**
 * From when it plays: the server's moment, a lead-in before it opens.
 * @param {Hit} hit
 */
export function playsFrom(hit) {
  const proposed = Number.parseFloat(new URL(hit.page_url, location.href).searchParams.get('t') ?? '');
  return Number.isFinite(proposed) ? proposed : Math.max(0, opensAt(hit) - LEAD_IN_S);
}

/**
 * The address at which a hit plays, with the query that found it.
 * @param {Hit} hit
 * @param {URLSearchParams} [query]
 */
export const hitPath = (hit, query) => videoPath(hit.video_id, playsFrom(hit), query);

/** @param {Hit} hit @returns {Api<'Range'>} */
export const rangeOf = ({ video_id: id, start, end }) => ({ video_id: id, start, end });

/**
 * What a hit's video is called, as far as it is known: a bare number needs its video's folder.
 * @param {{title: string, video_id?: string}} hit
 */
export function hitTitle({ title, video_id: id = '' }) {
  const video = videoHere(id);
  if (video) return titleOf(video);
  return /[\s,]/.test(title) ? title : titleOf({ title, file_name: `${title}.x` });
}

/** The hits that a hit stands for. @param {Hit} hit @returns {Hit[]} */
export const foldedOf = (hit) => [...(hit.folded ?? []), ...(hit.merged ?? [])];

/** @param {Hit} hit */
export const previewOf = (hit) => `/v1/clips/${hit.clip_id}/preview`;

/**
 * Tells the server what was done with a hit. Nobody waits for it, and it outlives the page.
 * @param {string|null|undefined} searchId null where the server keeps no log
 * @param {Hit} hit
 * @param {Api<'Verdict'>} verdict
 */
export function tell(searchId, hit, verdict) {
  if (!searchId) return;
  fetch(addressOf(`/v1/searches/${searchId}/feedback`), {
    method: 'POST', keepalive: true, headers: headers({ 'Content-Type': 'application/json' }),
    body: JSON.stringify({ clip_id: hit.clip_id, verdict }),
  }).catch(() => {});
}
