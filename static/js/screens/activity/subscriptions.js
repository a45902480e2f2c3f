// Alerts with what they found, and webhooks with their last deliveries.

import { all, get, post, remove } from '../../core/api.js';
import { button, el, icon, iconButton } from '../../core/dom.js';
import { videoPath } from '../../core/router.js';
import { formatTime } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { count, formatInstant } from '../../core/words.js';
import { load, videoTitle } from '../../parts/frame.js';

/** A deletion reaches the server when its undo is gone. */
const UNDO_MS = 8000;
/** @type {Record<string, string>} */
const NONE = {
  alerts: 'No alert yet. An alert is a search that every new video is asked; programs make them through the API.',
  webhooks: 'No webhook yet. A webhook tells another program when a video is ready or an alert found something; programs make them through the API.',
};

/**
 * @param {'alerts'|'webhooks'} kind
 * @param {AbortSignal} signal
 */
export async function subscriptions(kind, signal) {
  const items = await all(`/v1/${kind}`, { query: { limit: 200 }, most: 1000, signal });
  return items.length > 0 ? el('ul', { class: 'panel', id: kind }, items.map((item) => (kind === 'alerts' ? alertRow(item, signal) : hookRow(item, signal))))
    : el('p', { class: 'panel none' }, NONE[kind]);
}

/** @param {Api<'Alert'>} alert @param {AbortSignal} signal */
function alertRow(alert, signal) {
  const found = el('div', { class: 'col' });
  const details = el('details', { class: 'twin small', on: { toggle: () => {
    if (details.open && !found.firstChild) load(found, signal, async () => {
      /** @type {Api<'MatchPage'>} */
      const { items } = await get(`/v1/alerts/${alert.id}/matches`, { signal });
      return items.map(({ video_id: id, hits, matched_at: at }) => {
        const link = el('a', { class: 'link', href: videoPath(id, hits[0].start) }, 'A video');
        videoTitle(id).then((title) => { link.textContent = title ?? 'A deleted video'; });
        return el('p', { class: 'num' }, link, ` from ${formatTime(hits[0].start)}, ${count(hits.length, 'moment')} · ${formatInstant(at)}`);
      });
    });
  } } }, el('summary', {}, `Found something in ${count(alert.matches, 'video')}`), found);
  return row(alert.name, `/v1/alerts/${alert.id}`, 'eye', null, [
    alert.waiting > 0 && el('p', { class: 'small muted' }, `${count(alert.waiting, 'new video')} not asked yet`),
    alert.trouble && el('p', { class: 'small bad' }, alert.trouble), alert.matches > 0 ? details : el('p', { class: 'small muted' }, 'Found nothing yet')]);
}

/** @param {Api<'Webhook'>} hook @param {AbortSignal} signal */
function hookRow(hook, signal) {
  const sent = el('div', { class: 'small' }, el('p', { class: 'muted' }, 'Reading what was sent'));
  const path = `/v1/webhooks/${hook.id}`;
  const read = () => load(sent, signal, async () => {
    /** @type {Api<'DeliveryPage'>} */
    const { items } = await get(`${path}/deliveries`, { query: { limit: 5 }, signal });
    if (items.length === 0) return el('p', { class: 'muted' }, 'Nothing was sent yet');
    return items.map(({ state, type, status, reason, updated_at: at }) => el('p', { class: state === 'failed' ? 'bad' : 'muted' },
      [formatInstant(at), type, state, status && `answer ${status}`, reason].filter(Boolean).join(' · ')));
  });
  read();
  const test = button('Send a test', () => post(`${path}/test`).then(() => setTimeout(read, 1500), (error) => toasts.problem(error)));
  return row(hook.url, path, 'share-2', test, [el('p', { class: 'small muted' }, [hook.description, hook.events.join(', ')].filter(Boolean).join(' · ')),
    hook.disabled_at && el('p', { class: 'small bad' }, `Gets nothing since ${formatInstant(hook.disabled_at)}: ${hook.disabled_reason ?? 'switched off'}`), sent]);
}

/**
 * @param {string} name
 * @param {string} path
 * @param {string} picture
 * @param {Node|null} action
 * @param {import('../../core/dom.js').Children} lines
 */
function row(name, path, picture, action, lines) {
  const deletion = () => {
    item.hidden = true;
    const back = () => { item.hidden = false; };
    const timer = setTimeout(() => remove(path).catch((error) => {
      back();
      toasts.problem(error);
    }), UNDO_MS);
    toasts.show(`${name} deleted.`, { undo: () => {
      clearTimeout(timer);
      back();
    } });
  };
  const item = el('li', { class: 'job' }, el('span', { class: 'ph' }, icon(picture, 'l')), el('div', { class: 'col tight' }, el('b', { class: 'name' }, name), lines),
    el('div', { class: 'row' }, action, iconButton('trash-2', `Delete ${name}`, deletion)));
  return item;
}
