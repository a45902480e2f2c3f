// The menu of a video: links and code to take along, the file, and where it is kept.

import { post, storedKey } from '../../core/api.js';
import { el } from '../../core/dom.js';
import { openMenu } from '../../core/menu.js';
import { videoPath } from '../../core/router.js';
import { formatTime, toMilliseconds } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { formatInstant } from '../../core/words.js';
import { queryParameters } from '../../parts/query.js';

/** The longest time for which the server signs an address, seconds. */
const SIGNED_S = 7 * 24 * 3600;

/**
 * Code that plays a stretch on another page: of the version, and on the clock, that plays here. A server that asks for keys
 * signs the address, because a page elsewhere sends none.
 * @param {import('./viewer.js').Viewer} viewer
 * @param {{start: number, end: number|null}} stretch
 * @returns {Promise<{code: string, until: string|null}>} `until`: when the address ends
 */
async function embedOf({ video, player }, { start, end }) {
  let path = player.rendition ? `${video.media_url}?rendition=web` : video.media_url;
  let until = null;
  if (storedKey()) {
    /** @type {Api<'MediaLinks'>} */
    const signed = await post('/v1/media-links', { json: { paths: [path], seconds: SIGNED_S } });
    path = signed.items[0].url;
    until = signed.expires_at;
  }
  const from = toMilliseconds(player.clock.toElement(start));
  const to = end === null ? '' : `,${toMilliseconds(player.clock.offset + end)}`;
  const source = `${new URL(path, location.href).href}#t=${from}${to}`;
  return { code: `<video controls src="${source.replaceAll('&', '&amp;')}"></video>`, until };
}

/**
 * @param {string} what
 * @param {() => Promise<{text: string, more?: string}>} make
 */
async function copy(what, make) {
  try {
    const { text, more = '' } = await make();
    const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    toasts.show(copied ? `Copied ${what}.${more}` : `The browser did not let the page copy ${what}.`);
  } catch (error) {
    toasts.problem(error);
  }
}

/**
 * @param {HTMLElement} opener
 * @param {import('./viewer.js').Viewer} viewer
 * @param {import('../../main.js').Page} page
 */
export function openMore(opener, viewer, page) {
  const { video } = viewer;
  const at = viewer.player.frameTime;
  const chosen = viewer.chosen();
  const link = (/** @type {URLSearchParams} */ parameters, /** @type {number|null} */ time) =>
    copy('the link', async () => ({ text: new URL(videoPath(video.id, time, parameters), location.href).href }));
  const embed = async () => {
    const { code, until } = await embedOf(viewer, chosen ?? { start: at, end: null });
    return { text: code, more: until ? ` It works until ${formatInstant(until)}.` : '' };
  };
  openMenu(opener, [
    { label: 'Add to reel', icon: 'list-plus', key: 'R', act: () => viewer.addToReel() },
    null,
    { label: `Copy link at ${formatTime(at)}`, icon: 'copy', act: () => link(queryParameters(viewer.parameters), at) },
    ...(chosen ? [{ label: 'Copy link of the range', icon: 'copy', act: () => link(new URLSearchParams({ in: String(chosen.start), out: String(chosen.end) }), chosen.start) }] : []),
    { label: 'Copy code to embed', icon: 'share-2', act: () => copy('the code', embed) },
    null,
    { label: 'Download the original', icon: 'download', act: () => el('a', { href: video.media_url, download: video.file_name }).click() },
    { label: 'Open in the library', icon: 'library', act: () => page.router.go(video.folder ? `/library?${new URLSearchParams({ folder: video.folder })}` : '/library') },
    { label: 'Details', icon: 'info', act: () => viewer.panel.choose('details') },
  ]);
}
