// Facts about videos, each asked for once: hits name their video by its id alone.

import { get } from '../core/api.js';

/** Requests at once: pictures come first. */
const AT_ONCE = 2;

/** @type {Map<string, Promise<Api<'Video'>>>} */
const known = new Map();
/** @type {Map<string, Api<'Video'>>} those that have come */
const here = new Map();
/** @type {(() => void)[]} */
const waiting = [];
let running = 0;

/**
 * A video. A failure is forgotten, so that the next caller asks again.
 * @param {string} id
 * @returns {Promise<Api<'Video'>>}
 */
export function videoOf(id) {
  let video = known.get(id);
  if (!video) {
    video = get(`/v1/videos/${id}`);
    known.set(id, video);
    video.then((one) => here.set(id, one), () => known.delete(id));
  }
  return video;
}

/** A video, if it has come already. @param {string} id */
export const videoHere = (id) => here.get(id) ?? null;

/**
 * A video that nobody waits for: asked a few at a time.
 * @param {string} id
 * @returns {Promise<Api<'Video'>>}
 */
export function videoLater(id) {
  if (known.has(id)) return videoOf(id);
  return new Promise((resolve, reject) => {
    waiting.push(() => videoOf(id).then(resolve, reject).finally(() => {
      running -= 1;
      next();
    }));
    next();
  });
}

function next() {
  while (running < AT_ONCE && waiting.length > 0) {
    running += 1;
    waiting.shift()?.();
  }
}

/**
 * Forgets videos that were changed.
 * @param {string[]} ids
 */
export function forgetVideos(ids) {
  for (const id of ids) {
    known.delete(id);
    here.delete(id);
  }
}
