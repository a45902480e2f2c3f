// Addresses of searches, for screens that lead to one.

import { toMilliseconds } from '../core/time.js';

/** Most examples that one search takes. */
const MOST_EXAMPLES = 16;

/**
 * The address that makes a logged search again; null where the log holds too little of it.
 * @param {Api<'LoggedSearch'>} search
 */
export function againPath({ query, kind }) {
  const { text, video_id: video, start, end, uploaded } = query;
  const parameters = new URLSearchParams();
  if (kind === 'text' && text) {
    parameters.set('q', text);
  } else if ((kind === 'clip' || kind === 'composed') && video && !uploaded && typeof start === 'number' && typeof end === 'number') {
    parameters.set('clip', video);
    parameters.set('start', String(toMilliseconds(start)));
    parameters.set('end', String(toMilliseconds(end)));
    if (text) parameters.set('mod', text);
  } else {
    return null;
  }
  return `/?${parameters}`;
}

/**
 * The address of a search for more like some ranges: up to 16 of them, evenly drawn.
 * @param {string[]} ranges each as `VIDEO:START-END`
 */
export function likeAll(ranges) {
  const number = Math.min(MOST_EXAMPLES, ranges.length);
  const drawn = Array.from({ length: number }, (_, place) => ['like', ranges[Math.floor(((place + 0.5) * ranges.length) / number)]]);
  return `/?${new URLSearchParams(drawn)}`;
}
