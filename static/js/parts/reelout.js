// A reel for others: exports with their options and progress, and links for people without a key.

import { get, post, remove } from '../core/api.js';
import { openDialog } from '../core/dialog.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { describe } from '../core/problems.js';
import { toasts } from '../core/toast.js';
import { count, formatBytes, formatEstimate, formatInstant } from '../core/words.js';

/** @type {[string, string, string][]} what may be made: a name, what it is for, and what is asked for */
const FORMATS = [
  ['MP4, one file', 'cut to the frame', '{"format":"mp4","cut":"exact","files":"one"}'], ['MP4, a file for each clip', 'in one zip', '{"format":"mp4","cut":"exact","files":"each"}'],
  ['MP4, copied', 'at once, cut at key frames', '{"format":"mp4","cut":"copy","files":"each"}'], ['EDL', 'CMX 3600', '{"format":"edl"}'],
  ['OTIO', 'Resolve, Premiere, Hiero', '{"format":"otio"}'], ['FCPXML', 'Final Cut Pro', '{"format":"fcpxml"}'],
  ['CSV', 'a table', '{"format":"csv"}'], ['JSON', 'a table', '{"format":"json"}'], ['VTT', 'chapters of the MP4', '{"format":"vtt"}'],
];
const RATES = ['23.976', '24', '25', '29.97', '30', '50', '59.94', '60'];
const POLL_MS = 1000;
const RUNS = ['queued', 'running'];

/** @param {string} value @param {string} label */
const option = (value, label, selected = false) => el('option', { value, selected }, label);

/** @param {Api<'Reel'>} reel */
export function openExports(reel) {
  const format = el('select', { class: 'field grow', 'aria-label': 'Format' }, FORMATS.map(([name, hint, asked]) => option(asked, `${name}: ${hint}`)));
  const rate = el('select', { class: 'field', 'aria-label': 'Frame rate' }, option('', 'Rate of the first video'), RATES.map((one) => option(one, `${one} frames/s`)));
  const drop = el('input', { type: 'checkbox', checked: true });
  const dropLine = el('label', { class: 'row small' }, drop, 'Drop-frame timecode');
  const list = el('div', { class: 'col', role: 'list', 'aria-label': 'Exports' });
  const problem = el('p', { class: 'bad small grow', role: 'alert' });
  let timer = 0;
  const choose = () => { dropLine.hidden = /mp4|vtt/.test(format.value) || !/29.97|59.94/.test(rate.value); };
  format.addEventListener('change', choose);
  rate.addEventListener('change', choose);
  choose();

  async function make() {
    fill(problem);
    try {
      const json = { ...JSON.parse(format.value), reel_id: reel.id, title: reel.name, frame_rate: rate.value || null, drop_frame: dropLine.hidden || drop.checked ? null : false };
      await post('/v1/exports', { json });
    } catch (error) {
      fill(problem, describe(error));
    }
    await read();
  }

  /** @param {() => Promise<unknown>} act */
  const attempt = (act) => act().then(read, (error) => { fill(problem, describe(error)); });

  /** @param {Api<'Export'>} one */
  function line(one) {
    const filled = el('i');
    filled.style.setProperty('width', `${one.progress * 100}%`);
    const said = { queued: 'Waits for its turn', running: `${Math.round(one.progress * 100)} %${one.eta_s ? `, ${formatEstimate(one.eta_s)} left` : ''}`, succeeded: `${formatBytes(one.file?.bytes ?? 0)} · until ${formatInstant(one.expires_at ?? one.created_at)}`, failed: describe({ message: one.reason ?? 'it failed' }), cancelled: 'Cancelled' }[one.state];
    return el('div', { class: 'export', role: 'listitem', data: { state: one.state } }, icon(one.format === 'mp4' ? 'film' : 'file-text'),
      el('div', { class: 'grow' }, el('b', {}, `${one.title}, ${one.format.toUpperCase()}`), el('div', { class: one.state === 'failed' ? 'bad tiny' : 'dim tiny num' }, said, one.left_out.length > 0 && ` · left out: ${one.left_out.map(({ range, reason }) => `clip ${range + 1} (${reason})`).join(', ')}`),
        RUNS.includes(one.state) && el('div', { class: 'bar go', role: 'progressbar', 'aria-label': one.title, 'aria-valuenow': Math.round(one.progress * 100) }, filled)),
      RUNS.includes(one.state) ? button('Cancel', () => attempt(() => post(`/v1/jobs/${one.id}/cancel`)), { class: 'btn low' })
        : [one.file && el('a', { class: 'btn low', href: one.file.url, download: one.file.name }, icon('download', 's'), 'Download'), iconButton('x', `Remove ${one.title}, ${one.format.toUpperCase()}`, () => attempt(() => remove(`/v1/exports/${one.id}`)))]);
  }

  async function read() {
    clearTimeout(timer);
    if (!dialog.open) return;
    /** @type {Api<'ExportPage'>} */
    const { items } = await get('/v1/exports', { query: { limit: 30 } });
    const state = JSON.stringify(items.map((one) => [one.id, one.state, one.progress]));
    // Lines that did not change keep the focus.
    if (state !== list.dataset.shown) fill(list, items.map(line));
    list.dataset.shown = state;
    if (items.some((one) => RUNS.includes(one.state))) timer = window.setTimeout(() => read().catch(() => {}), POLL_MS);
  }

  const dialog = openDialog({
    id: 'exports', title: `Export “${reel.name}”`, onClose: () => clearTimeout(timer),
    body: [el('div', { class: 'row wrap' }, format, rate, button([icon('download'), 'Export'], make, { class: 'btn primary' })), dropLine, problem, el('h3', {}, 'Made so far'), list],
  });
  attempt(async () => {});
}

const ENDS = { 86400: 'In a day', 604800: 'In a week', 2592000: 'In 30 days', 7776000: 'In 90 days' };

/** @param {Api<'Reel'>} reel */
export function openShare(reel) {
  const field = el('input', { readonly: true, 'aria-label': 'Link', placeholder: 'No link was made yet' });
  const ends = el('select', { class: 'field' }, Object.entries(ENDS).map(([seconds, label]) => option(seconds, label, seconds === '2592000')));
  const problem = el('p', { class: 'small', role: 'status' });
  /** @param {() => Promise<string>} act */
  const attempt = (act) => act().then((said) => fill(problem, said), (error) => fill(problem, describe(error)));
  const make = async () => {
    /** @type {Api<'ReelLink'>} */
    const link = await post(`/v1/reels/${reel.id}/links`, { json: { seconds: Number(ends.value) } });
    field.value = `${location.origin}/shared/${reel.id}?${link.query}`;
    field.select();
    const copied = await navigator.clipboard?.writeText(field.value).then(() => true, () => false);
    return `${copied ? 'Copied.' : 'Copy it from the field.'} It ends on ${new Date(link.expires_at).toLocaleDateString()}.`;
  };
  openDialog({
    id: 'share', title: 'Share this reel', class: 'narrow',
    body: [el('div', { class: 'col' }, el('div', { class: 'row' }, el('label', { class: 'field grow' }, field), button([icon('copy'), 'Make and copy'], () => attempt(make), { class: 'btn primary' })),
      el('label', { class: 'row' }, el('span', { class: 'grow' }, 'Ends'), ends), problem,
      el('p', { class: 'dim tiny' }, `Anyone with the link can watch the ${count(reel.ranges.length, 'clip')}, in order. Whoever looks closely can also open and download the whole videos that they come from: to give away less, export an MP4.`),
      button('Revoke all links', () => attempt(async () => {
        await remove(`/v1/reels/${reel.id}/links`);
        field.value = '';
        toasts.show('No link to this reel works any more.');
        return '';
      }), { class: 'btn ghost danger' }))],
  });
}
