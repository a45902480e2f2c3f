// Addresses of searches, for screens that lead to one.

import { rangeParameters, writeExample } from './query.js';

/** Most examples that one search takes. */
const MOST_EXAMPLES = 16;

/**
 * The address that makes a logged search again; null where the log holds too little of it.
 * @param {Api<'LoggedSearch'>} search
 */
export function againPath({ query, kind }) {
  const { text, video_id: id, start, end, uploaded, examples } = query;
  if (examples) return againWithExamples(examples);
  if (kind === 'text') return text ? `/?${new URLSearchParams({ q: text })}` : null;
  if (!['clip', 'composed'].includes(kind) || !id || uploaded || typeof start !== 'number' || typeof end !== 'number') return null;
  const parameters = rangeParameters({ video_id: id, start, end });
  if (text) parameters.set('mod', text);
  return `/?${parameters}`;
}

/** @param {Api<'LoggedExamples'>} examples */
function againWithExamples({ like, unlike }) {
  const parameters = new URLSearchParams();
  for (const [side, examples] of /** @type {const} */ ([['like', like], ['unlike', unlike]])) {
    for (const example of examples) {
      const asked = written(example);
      if (!asked) return null;
      parameters.append(side, asked);
    }
  }
  return `/?${parameters}`;
}

/**
 * An example for an address; null where the log holds too little of it.
 * @param {Api<'LoggedExample'>} example
 */
function written({ text, video_id: id, start, end }) {
  if (text) return text;
  return id && typeof start === 'number' && typeof end === 'number' ? writeExample({ video_id: id, start, end }) : null;
}

/**
 * The address of a search for more like some ranges: up to 16 of them, evenly drawn.
 * @param {Api<'TimeRange'>[]} ranges
 */
export function likeAll(ranges) {
  const number = Math.min(MOST_EXAMPLES, ranges.length);
  return `/?${new URLSearchParams(Array.from({ length: number }, (_, at) => ['like', writeExample(ranges[Math.floor(((at + 0.5) * ranges.length) / number)])]))}`;
}
