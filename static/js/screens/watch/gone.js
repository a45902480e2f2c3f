// What is said of a video that can't be watched because it is not there: it lies in the trash, or is gone.

import { all, post } from '../../core/api.js';
import { button, el, icon } from '../../core/dom.js';
import { toasts } from '../../core/toast.js';
import { titleOf } from '../../core/words.js';

/**
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {() => void} again shows the video once it is restored
 */
export async function whereIs(id, signal, again) {
  /** @type {Api<'Video'>[]} */
  const trashed = await all('/v1/videos', { query: { trashed: true }, signal }).catch(() => []);
  const video = trashed.find((one) => one.id === id);
  if (!video) {
    return { title: 'Not here', body: el('div', { class: 'empty' }, icon('film', 'l'), el('h2', {}, 'This video is gone'),
      el('p', { class: 'muted' }, 'It was deleted for good, or the address is mistyped.'), el('a', { class: 'btn', href: '/library' }, 'To the library')) };
  }
  const restore = () => post(`/v1/videos/${id}/restore`).then(() => {
    toasts.show('Restored the video.');
    again();
  }, (error) => toasts.problem(error));
  return { title: titleOf(video), body: el('div', { class: 'empty' }, icon('trash-2', 'l'), el('h2', {}, 'This video is in the trash'),
    el('p', { class: 'muted' }, video.purge_at ? `It can be restored until ${new Date(video.purge_at).toLocaleDateString()}.` : ''),
    button([icon('undo-2'), 'Restore'], restore, { class: 'btn primary' })) };
}
