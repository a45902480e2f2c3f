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
 * The address of a search for more like some clips: up to 16, evenly drawn.
 * @param {string[]} clips ids
 */
export function likePath(clips) {
  const parameters = new URLSearchParams();
  const number = Math.min(MOST_EXAMPLES, clips.length);
  for (let place = 0; place < number; place += 1) {
    parameters.append('like', clips[Math.floor(((place + 0.5) * clips.length) / number)]);
  }
  return `/?${parameters}`;
}
