// How the library shows a video: as a card, and as a row of a table.

import { get } from '../core/api.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { jobs } from '../core/jobs.js';
import { describe } from '../core/problems.js';
import { formatTime } from '../core/time.js';
import { count, formatBytes, formatEstimate, formatInstant, titleOf } from '../core/words.js';

/** @typedef {Api<'Video'>} Video */

/**
 * What a card asks its screen.
 * @typedef {object} Host
 * @property {(video: Video) => boolean} isChosen
 * @property {(video: Video, range: boolean) => void} choose
 * @property {(video: Video, opener: HTMLElement) => void} openMenu
 * @property {(video: Video) => void} retry
 * @property {(video: Video) => void} restore
 * @property {(video: Video, event: DragEvent) => void} drag
 */

/** @type {Map<string, string>} why the job of a failed video failed, by job */
const reasons = new Map();

/** The second line: what there is to know, or what is being done. @param {Video} video @param {Host} host */
export function stateLine(video, host) {
  const line = el('div', { class: 'dim tiny num state' });
  if (video.deleted_at) {
    const days = Math.max(0, Math.ceil((Date.parse(video.purge_at ?? '') - Date.now()) / 86_400_000));
    fill(line, el('span', { class: 'grow' }, `Goes for good in ${count(days, 'day')}`), button('Restore', () => host.restore(video), { class: 'btn low', 'aria-label': `Restore ${titleOf(video)}` }));
  } else if (video.state === 'failed') {
    const why = el('span', { class: 'bad' }, 'It could not be read.');
    fill(line, why, button([icon('rotate-ccw', 's'), 'Retry'], () => host.retry(video), { class: 'btn low', 'aria-label': `Retry ${titleOf(video)}` }));
    reasonOf(video).then((reason) => { if (reason) fill(why, describe({ message: reason })); }, () => {});
  } else if (video.state === 'pending') {
    const job = jobs.active.find(({ video_id: id }) => id === video.id);
    const done = job ? job.progress : 0;
    const filled = el('i');
    filled.style.setProperty('width', `${done * 100}%`);
    fill(line, el('div', { class: 'bar go', role: 'progressbar', 'aria-label': `Making ${titleOf(video)} searchable`, 'aria-valuenow': Math.round(done * 100), 'aria-valuemin': 0, 'aria-valuemax': 100 }, filled),
      el('span', {}, job?.state === 'running' ? `${Math.round(done * 100)} %${job.eta_s ? `, ${formatEstimate(job.eta_s)} left` : ''}` : 'Waits for its turn'));
  } else {
    const parts = [count(video.clips, 'shot'), formatBytes(video.bytes)];
    fill(line, el('span', { class: 'clip1' }, parts.join(' · ')),
      video.warnings.length > 0 && el('span', { class: 'warn', title: video.warnings.join('\n') }, icon('triangle-alert', 's'), el('span', { class: 'sr' }, `Warning: ${video.warnings.join(' ')}`)));
  }
  return line;
}

/** @param {Video} video */
async function reasonOf({ job_id: id }) {
  if (!id) return '';
  const known = reasons.get(id) ?? (/** @type {Api<'Job'>} */ (await get(`/v1/jobs/${id}`))).reason ?? '';
  reasons.set(id, known);
  return known;
}

/** @param {Video} video @param {Host} host */
function pick(video, host) {
  const chosen = host.isChosen(video);
  return el('button', {
    type: 'button', class: 'pick', 'aria-pressed': String(chosen), 'aria-label': `Select ${titleOf(video)}`,
    on: { click: (/** @type {MouseEvent} */ event) => host.choose(video, event.shiftKey) },
  }, icon('check'));
}

/** @param {Video} video */
const pathOf = (video) => (video.deleted_at ? null : `/v/${video.id}`);

/** The picture over a blurred copy of itself: no black bars. A deleted video's paths answer 404. @param {Video} video */
function pictures(video) {
  if (video.deleted_at || video.frames === null) return [icon('file-video', 'l')];
  const picture = (/** @type {string} */ kind) => el('img', { class: kind, src: video.thumbnail_url, alt: '', loading: 'lazy', draggable: 'false' });
  return [picture('back'), picture('front')];
}

/** @param {Video} video @param {Host} host */
export function card(video, host) {
  const title = titleOf(video);
  const path = pathOf(video);
  const inside = [el('span', { class: 'sr' }, path ? title : `Select ${title}`), pictures(video), video.duration !== null && el('span', { class: 'at' }, formatTime(video.duration))];
  const thumb = path ? el('a', { class: 'thumb', href: path }, inside)
    : el('button', { type: 'button', class: 'thumb', on: { click: () => host.choose(video, false) } }, inside);
  return el('div', { class: host.isChosen(video) ? 'card chosen' : 'card', draggable: 'true', data: { id: video.id, state: video.state }, on: { dragstart: (/** @type {DragEvent} */ event) => host.drag(video, event) } },
    thumb, pick(video, host),
    path && el('span', { class: 'acts' }, iconButton('ellipsis', `More about ${title}`, (event) => host.openMenu(video, /** @type {HTMLElement} */ (event.currentTarget)), { class: '', 'aria-haspopup': 'menu' })),
    el('div', { class: 'cap' }, el('b', { class: 'clip1', title }, title)), stateLine(video, host));
}

/** @param {Video} video @param {Host} host */
export function row(video, host) {
  const title = titleOf(video);
  const chosen = host.isChosen(video);
  const path = pathOf(video);
  const check = el('button', {
    type: 'button', class: chosen ? 'check on' : 'check', role: 'checkbox', 'aria-checked': String(chosen), 'aria-label': `Select ${title}`,
    on: { click: (/** @type {MouseEvent} */ event) => host.choose(video, event.shiftKey) },
  }, icon('check'));
  const wide = video.state !== 'ready' || video.deleted_at;
  return el('tr', { class: chosen ? 'chosen' : null, draggable: 'true', data: { id: video.id, state: video.state }, on: { dragstart: (/** @type {DragEvent} */ event) => host.drag(video, event) } },
    el('td', { class: 'tick' }, check),
    el('td', { class: 'tick' }, el('span', { class: 'thumb small-thumb' }, pictures(video))),
    el('td', {}, path ? el('a', { class: 'name', href: path }, title) : el('span', { class: 'name' }, title), el('div', { class: 'dim tiny' }, video.folder?.split('/').join(' / ')), wide && stateLine(video, host)),
    el('td', { class: 'r' }, formatTime(video.duration)), el('td', { class: 'r muted' }, video.state === 'ready' ? String(video.clips) : ''),
    el('td', {}, el('span', { class: 'row' }, video.tags.map((one) => el('span', { class: 'chip low' }, one)))),
    el('td', { class: 'r muted' }, formatInstant(video.created_at)), el('td', { class: 'r muted' }, formatBytes(video.bytes)),
    el('td', { class: 'tick' }, path && iconButton('ellipsis', `More about ${title}`, (event) => host.openMenu(video, /** @type {HTMLElement} */ (event.currentTarget)), { 'aria-haspopup': 'menu' })));
}
