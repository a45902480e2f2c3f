// Reels: the list of stored reels.

import { get, post, remove } from '../core/api.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { problemBox } from '../core/problems.js';
import { reels } from '../core/reels.js';
import { count, formatInstant, formatLength } from '../core/words.js';

/** @typedef {Api<'ReelSummary'>} Summary */

/** @param {import('../main.js').Page} page */
export function make(page) {
  const body = el('div', { class: 'page' });
  const element = el('div', {}, el('header', { class: 'top' }, el('h1', {}, 'Reels'), el('span', { class: 'grow' }),
    button([icon('plus'), 'New reel'], () => {
      reels.close();
      page.toasts.show('The next moment that you add begins a new reel: press R on it.');
      show();
    }, { class: 'btn primary' })), body);

  /** @param {Summary} reel */
  async function discard(reel) {
    try {
      /** @type {Api<'Reel'>} */
      const whole = await get(`/v1/reels/${reel.id}`);
      await remove(`/v1/reels/${reel.id}`, { headers: { 'If-Match': reel.etag } });
      const wasOpen = reels.open?.id === reel.id;
      if (wasOpen) reels.close();
      page.toasts.show(`Deleted “${reel.name}”.`, {
        undo: async () => {
          const made = await post('/v1/reels', { json: { name: whole.name, ranges: whole.ranges } });
          if (wasOpen) await reels.choose(made.id);
          await show();
        },
      });
    } catch (error) {
      page.toasts.problem(error);
    }
    await show();
  }

  /** @param {Summary} reel */
  const row = (reel) => {
    const open = reels.open?.id === reel.id;
    return el('li', { class: 'hitrow reel-item', data: { id: reel.id } }, icon('list-video'),
      el('a', { class: 'clip1', href: `/reels/${reel.id}` }, el('b', {}, reel.name), open && el('span', { class: 'chip low' }, 'Open'),
        el('span', { class: 'dim tiny num' }, `${count(reel.ranges, 'clip')} · ${formatLength(reel.duration)} · ${formatInstant(reel.updated_at)}`)),
      el('span', { class: 'row' }, !open && button('Add to this one', () => reels.choose(reel.id).then(show, (error) => page.toasts.problem(error)), { class: 'btn ghost only-l' }),
        iconButton('trash-2', `Delete ${reel.name}`, () => discard(reel))));
  };

  async function show() {
    try {
      const { items } = await reels.list();
      fill(body, items.length > 0 ? el('ul', { class: 'panel reel-list' }, items.map(row))
        : el('div', { class: 'empty' }, el('h2', {}, 'No reels yet'),
          el('p', {}, 'A reel is a list of moments, to play, share or export. Press R on a moment of a search, or on the marked stretch of a video: the first one begins a reel.'),
          el('a', { class: 'btn primary', href: '/' }, 'Search for moments')));
    } catch (error) {
      fill(body, problemBox(error, show));
    }
  }

  return { element, title: 'Reels', show, hide() {} };
}
