// A shared reel, for somebody with its link and no key: the clips, in order, and nothing else of the library.

import { el, fill, icon } from '../core/dom.js';
import { keys } from '../core/keys.js';
import { formatRange } from '../core/time.js';
import { count, formatLength } from '../core/words.js';
import { ListPlayer } from '../parts/listplayer.js';

export function make() {
  let removeKeys = () => {};
  /** @type {ListPlayer|null} */
  let player = null;
  const screen = { element: el('div', { class: 'library' }), title: 'Shared reel', show, hide };

  /** @param {import('../core/router.js').Route} route */
  async function show({ id, parameters }) {
    hide();
    const query = parameters.toString();
    const answer = await fetch(`/v1/reels/${id}?${query}`).catch(() => null);
    if (!answer?.ok) {
      const [why, what] = answer ? ['This link has ended', 'It has expired, was revoked, or the reel is gone. Ask whoever sent it for a new one.'] : ['The server does not answer', 'Try again in a moment.'];
      fill(screen.element, el('div', { class: 'empty' }, el('h1', {}, why), el('p', {}, what)));
      return;
    }
    /** @type {Api<'Reel'>} */
    const reel = await answer.json();
    const mediaOf = (/** @type {string} */ video, /** @type {string} */ what = 'media') => `/v1/videos/${video}/${what}?${query}`;
    const videos = new Map(reel.videos.map((video) => [video.id, video]));
    const list = new ListPlayer(async ({ video_id: id }, broken) => {
      const video = videos.get(id);
      return broken || video?.plays_in_browsers === false ? { url: `${mediaOf(id)}&rendition=web`, offset: 0 } : { url: mediaOf(id), offset: video?.media_offset ?? 0 };
    });
    player = list;
    const rows = reel.ranges.map(({ video_id: video, start, end, note }, place) => el('li', {},
      el('button', { type: 'button', class: 'reelrow', on: { click: () => list.go(place) } }, el('span', { class: 'num dim' }, place + 1), el('img', { src: mediaOf(video, 'thumbnail'), alt: '', loading: 'lazy' }),
        el('span', { class: 'grow' }, el('span', { class: 'clip1' }, note || `Clip ${place + 1}`), el('span', { class: 'dim tiny num' }, formatRange(start, end))), el('span', { class: 'num muted' }, formatLength(end - start))),
      el('a', { class: 'btn ghost sq', href: mediaOf(video), download: '', 'aria-label': `Download the video of clip ${place + 1}`, title: 'Download the whole video' }, icon('download'))));
    list.addEventListener('change', () => {
      rows.forEach((row, place) => { row.firstElementChild?.classList.toggle('on', place === list.place); });
      list.tag.textContent = `${list.place + 1} of ${list.ranges.length}`;
    });
    fill(screen.element, el('header', { class: 'top' }, el('h1', { class: 'clip1' }, reel.name), el('span', { class: 'dim small num' }, `${count(reel.ranges.length, 'clip')} · ${formatLength(reel.duration)}`)),
      el('div', { class: 'desk' }, el('div', { class: 'stage' }, list.screen, list.transport),
        el('section', { class: 'panel sidepanel', 'aria-label': 'Clips' }, el('ol', { class: 'scroll shared-clips', tabindex: 0, 'aria-label': 'Clips' }, rows))));
    screen.title = reel.name;
    document.title = `${reel.name} · reprise`;
    list.set(reel.ranges);
    list.go(0);
    removeKeys = keys.add('Player', list.bindings);
  }

  function hide() {
    removeKeys();
    player?.close();
    player = null;
  }

  return screen;
}
