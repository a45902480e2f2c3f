// The clock of a source that a media element plays.

import { MediaClock } from '../core/time.js';

const FIRST_FRAME_MS = 1500;
/** How much later than said the first frame may be, seconds: by more it is no first frame. */
const LATE_S = 0.05;

/**
 * The element's time of the first frame that it shows; null where the browser does not tell in time.
 * @param {HTMLVideoElement} media
 * @returns {Promise<number|null>}
 */
function firstFrameTime(media) {
  if (!media.requestVideoFrameCallback) return Promise.resolve(null);
  return new Promise((resolve) => {
    setTimeout(() => resolve(null), FIRST_FRAME_MS);
    media.requestVideoFrameCallback((_, frame) => resolve(frame.mediaTime));
  });
}

/**
 * The clock of a source that was just opened. Some browsers play on the container's clock, others start theirs at the
 * first sample: the first frame tells.
 * @param {HTMLVideoElement} media
 * @param {number} offset the first frame's time on the container's clock, seconds
 */
export async function clockOf(media, offset) {
  const first = offset > 0 ? await firstFrameTime(media) : null;
  return new MediaClock(first !== null && first <= offset + LATE_S ? first : offset);
}
