// Exports chosen hits: asks for a format, follows the job, offers the file.

import { get, post } from '../../core/api.js';
import { openDialog } from '../../core/dialog.js';
import { el, fill, icon } from '../../core/dom.js';
import { jobs } from '../../core/jobs.js';
import { problemBox } from '../../core/problems.js';
import { count, formatBytes, formatLength } from '../../core/words.js';
import { rangeOf, tell } from '../../parts/hits.js';

const POLL_MS = 700;
/** @type {[string, string][]} */
const FORMATS = [['mp4', 'One film (MP4)'], ['edl', 'Edit list (EDL)'], ['otio', 'OpenTimelineIO'], ['fcpxml', 'Final Cut (FCPXML)'], ['csv', 'Table (CSV)'], ['json', 'JSON'], ['vtt', 'Chapters (WebVTT)']];

/** @param {Api<'Hit'>[]} hits @param {string|null|undefined} searchId */
export function openExport(hits, searchId) {
  const choices = FORMATS.map(([value, label], place) => el('label', { class: 'row' }, el('input', { type: 'radio', name: 'format', value, checked: place === 0 }), label));
  const state = el('div', { class: 'col', 'aria-live': 'polite' });
  const make = el('button', { type: 'submit', class: 'btn primary' }, 'Export');
  const form = el('form', { class: 'col', on: { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    make.disabled = true;
    run(String(new FormData(form).get('format'))).catch((error) => fill(state, problemBox(error))).finally(() => { make.disabled = false; });
  } } },
  el('p', { class: 'muted small num' }, `${count(hits.length, 'moment')}, ${formatLength(hits.reduce((sum, { start, end }) => sum + end - start, 0))}`),
  el('fieldset', { class: 'col formats' }, el('legend', { class: 'label' }, 'Format'), choices), make, state);
  let open = true;
  openDialog({ id: 'export', title: 'Export', class: 'narrow', body: [form], onClose: () => { open = false; } });

  /** @param {string} format */
  async function run(format) {
    /** @type {Api<'Export'>} */
    let made = await post('/v1/exports', { json: { format, ranges: hits.map(rangeOf) } });
    jobs.look();
    for (const hit of hits) tell(searchId, hit, 'exported');
    while (open && !made.file && !['failed', 'cancelled'].includes(made.state)) {
      fill(state, el('div', { class: 'bar go' }, el('i', { vars: { width: `${100 * made.progress}%` } })), el('p', { class: 'dim small' }, 'It goes on if you close this: see Activity.'));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      made = await get(`/v1/exports/${made.id}`);
    }
    make.hidden = Boolean(made.file);
    if (!made.file) return fill(state, problemBox(new Error(made.reason ?? 'The export failed.')));
    fill(state, el('a', { class: 'btn primary', href: made.file.url, download: made.file.name }, icon('download'), `Download ${made.file.name}, ${formatBytes(made.file.bytes)}`),
      made.left_out.length > 0 && el('p', { class: 'muted small' }, `${count(made.left_out.length, 'moment')} left out: ${made.left_out[0].reason}`));
  }
}
