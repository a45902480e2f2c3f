// The shape of a library's pictures before the first of them is there. Results remember it, so each browser asks once.

import { videoOf } from '../../parts/videos.js';

/**
 * Width by height of the first hit's video; null without a hit or a size, or if the request fails: also when the page is left meanwhile.
 * @param {Api<'SearchAnswer'>} answer
 */
export async function shapeOf({ results, groups }) {
  const hit = results[0] ?? groups?.[0]?.results[0];
  const video = hit ? await videoOf(hit.video_id).catch(() => null) : null;
  return video?.width && video.height ? Math.round((video.width / video.height) * 100) / 100 : null;
}
