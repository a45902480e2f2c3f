// Rows of jobs: at work, failed, ended.

import { get } from '../../core/api.js';
import { button, el, fill, icon, iconButton } from '../../core/dom.js';
import { videoPath } from '../../core/router.js';
import { formatBytes, formatEstimate, formatInstant, formatNumber } from '../../core/words.js';
import { videoTitle } from '../../parts/frame.js';

/** @typedef {Api<'Job'>} Job */

/** @type {Record<string, string>} */
export const KINDS = { ingest: 'Adding a video', fill: 'Reading with a new model', export: 'Export', evaluation: 'Evaluation', map: 'Map', transcribe: 'Transcribing', read_text: 'Reading text' };
/** @type {Record<string, string>} */
const DONE = { ingest: 'added', fill: 'read with a new model', export: 'exported', evaluation: 'evaluated', map: 'laid out', transcribe: 'transcribed', read_text: 'text read' };
/** @type {Record<string, string>} */
const STEPS = { ingest: 'probe Open,decode Read and cut,finish Store', fill: 'probe Open,decode Read,finish Store', export: 'probe Open,film Clips,join Join,write Write', evaluation: 'search Search,finish Sum up', map: 'read Read,project Lay out,place Place', transcribe: 'listen Listen,finish Store', read_text: 'probe Open,read Read,finish Store' };
/** What to do about reasons that are known. @type {[RegExp, string][]} */
const REMEDIES = [
  [/cut off|moov|truncat/i, 'Copy it again from its source and add it again: its end is missing.'],
  [/no known video|not a video/i, 'Check that it is a film. A rare format must be converted first.'],
  [/too large|longer than/i, 'Cut it into parts, or ask whoever runs the server to allow more.'],
  [/disk is full|no space/i, 'Make room on the server, for example in the trash. Then retry.'],
  [/memory/i, 'Free memory on the server, then retry.'],
  [/is not loaded/i, 'Load the model on the page Models, then retry.'],
  [/file is gone/i, 'The stored file was removed from the disk: add the video again.'],
  [/no range is left/i, 'Its videos are deleted: restore them from the trash, then retry.'],
];

/** Frames a second, as the server's estimate has it. @param {Job} job */
export const speedOf = ({ eta_s: left, frames_done: done, frames_total: total }) => (left && total && total > done ? (total - done) / left : null);

/** What a job works on; its title comes later. @param {Job} job */
function nameOf({ id, kind, video_id: video, refused_file: refused }) {
  const name = el('b', { class: 'clip1 name' }, refused?.file_name ?? KINDS[kind] ?? kind);
  if (video) {
    videoTitle(video).then((title) => fill(name, title ? el('a', { href: videoPath(video) }, title) : 'A deleted video'));
  } else if (kind === 'export') {
    get(`/v1/exports/${id}`).then((/** @type {Api<'Export'>} */ { title, file }) =>
      fill(name, file ? el('a', { class: 'link', href: file.url, download: file.name }, title) : title), () => {});
  }
  return name;
}

/** @param {Job} job */
function picture({ video_id: id, kind }) {
  const box = el('span', { class: 'ph' }, icon(kind === 'export' ? 'film' : kind === 'map' ? 'boxes' : 'file-video', 'l'));
  if (!id) return box;
  const image = el('img', { src: `/v1/videos/${id}/thumbnail`, alt: '', loading: 'lazy', on: { error: () => image.replaceWith(box) } });
  return image;
}

/**
 * A running or queued job; `update` takes its new state.
 * @param {Job} first
 * @param {() => void} cancel
 */
export function activeRow(first, cancel) {
  const [note, steps, left, since, reason] = [el('span', { class: 'dim small num clip1' }), el('div', { class: 'steps' }),
    el('div', { class: 'num left' }), el('div', { class: 'dim tiny num' }), el('p', { class: 'small muted' })];
  const name = nameOf(first);
  const stages = (STEPS[first.kind] ?? '').split(',').map((step) => {
    const [stage, ...words] = step.split(' ');
    const bar = el('div', { class: 'bar' }, el('i'));
    steps.append(el('span', {}, words.join(' '), bar));
    return stage;
  });
  const element = el('li', { class: 'job' }, picture(first), el('div', { class: 'col' }, el('div', { class: 'row' }, name, note), steps, reason),
    el('div', { class: 'row' }, el('div', { class: 'times' }, left, since), iconButton('x', `Cancel: ${KINDS[first.kind]}`, cancel)));
  const update = (/** @type {Job} */ job) => {
    const { state, stage, frames_done: done, frames_total: total, eta_s: eta } = job;
    const waits = state === 'queued';
    const speed = speedOf(job);
    note.textContent = [KINDS[job.kind], !waits && total && `${formatNumber(done)} of ${formatNumber(total)} frames`, !waits && speed && `${formatNumber(Math.round(speed))} frames/s`].filter(Boolean).join(' · ');
    left.textContent = waits ? 'waits' : eta ? `${formatEstimate(eta)} left` : '';
    since.textContent = waits && job.retry_at ? `next try ${formatInstant(job.retry_at)}` : `since ${formatInstant(job.created_at)}`;
    reason.textContent = waits && job.reason ? `${job.reason}; it is tried again by itself.` : '';
    steps.hidden = waits;
    const at = stages.indexOf(stage === 'features' ? 'decode' : stage);
    [...steps.children].forEach((step, place) => {
      step.className = place < at ? 'done' : place === at ? 'at' : '';
      const share = place < at ? 1 : place > at ? 0 : total ? done / total : job.progress;
      /** @type {any} */ (step.querySelector('i')).style.width = `${Math.round(100 * Math.min(1, share))}%`;
      step.lastElementChild?.classList.toggle('go', place === at);
    });
  };
  return { element, update };
}

/**
 * @param {Job} job
 * @param {() => void} retry
 * @param {(files: File[]) => void} addFiles
 */
export function failedRow(job, retry, addFiles) {
  const { refused_file: refused } = job;
  const reason = job.reason || 'the reason is not known';
  const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1] ?? (refused ? 'Check the file, then choose it again.' : 'Retry. If it fails again, see the server’s log.');
  const size = refused ? (refused.bytes ? formatBytes(refused.bytes) : 'cut off') : KINDS[job.kind];
  const choose = () => {
    const input = el('input', { type: 'file', accept: 'video/*', on: { change: () => addFiles([...(input.files ?? [])]) } });
    input.click();
  };
  return el('li', { class: 'job' }, picture(job),
    el('div', { class: 'col tight' }, el('div', { class: 'row' }, nameOf(job), el('span', { class: 'dim small num clip1' }, `${size} · ${formatInstant(job.updated_at)}`)),
      el('p', { class: 'small bad' }, `${reason[0].toUpperCase()}${reason.slice(1)}.`), el('p', { class: 'small muted' }, remedy)),
    el('div', { class: 'row' }, refused ? button([icon('upload'), 'Choose the file again'], choose) : button([icon('rotate-ccw'), 'Retry'], retry)));
}

/** @param {Job} job @returns {import('../../core/dom.js').Children[]} cells */
export function pastRow(job) {
  const took = (Date.parse(job.updated_at) - Date.parse(job.created_at)) / 1000;
  return [nameOf(job), job.state === 'cancelled' ? 'cancelled' : DONE[job.kind] ?? job.kind, job.frames_done > 0 ? formatNumber(job.frames_done) : '–',
    took < 60 ? `${formatNumber(took)} s` : formatEstimate(took), formatInstant(job.updated_at)];
}
