// Uploads: what is waiting, running and stopped, and the tray that shows it on every screen.

import { all, post, send } from '../core/api.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { isSubtitleFile } from '../core/languages.js';
import { announce } from '../core/problems.js';
import { count, formatBytes, formatEstimate, formatNumber, titleOf } from '../core/words.js';
import { folderOf } from './dropped.js';
import { askPairs, pair, putSubtitles } from './pairs.js';
import { Upload } from './tus.js';

const KEPT = 'reprise_uploads';
const AT_ONCE = 2;
/** Rows in the tray; further ones are a count. */
const SHOWN = 6;
const VIDEO = /\.(mp4|m4v|mov|mkv|webm|avi|mxf|mpe?g|m2ts|mts|ts|wmv|flv|ogv|3gp|vob|y4m|gif)$/i;
const STAGES = /** @type {Record<string, string>} */ ({ probe: 'Reading the file', decode: 'Finding shots', features: 'Reading pictures', finish: 'Making it searchable' });

class Uploads extends EventTarget {
  constructor() {
    super();
    /** @type {Upload[]} */
    this.items = [];
    /** The folder that the library shows: files go there. */
    this.folder = '';
    this.folded = matchMedia('(max-width: 760px)').matches;
    /** @type {Map<Upload, ReturnType<typeof row>>} */
    this.rows = new Map();
    this.head = el('b', { class: 'small grow' });
    this.pauseAll = button('', () => this.togglePause(), { class: 'btn ghost low' });
    this.fold = iconButton('chevron-down', 'Fold', () => this.toggleFold(), { class: 'btn ghost sq low' });
    this.close = iconButton('x', 'Close', () => this.clear(), { class: 'btn ghost sq low' });
    this.body = el('div', { class: 'ups', role: 'list' });
    this.rest = el('div', { class: 'up muted' });
    this.element = el('section', { class: 'tray', 'aria-label': 'Uploads', hidden: true },
      el('div', { class: 'row tray-head' }, this.head, this.pauseAll, this.fold, this.close), this.body, this.rest);
    document.body.append(this.element);
    addEventListener('beforeunload', (event) => { if (this.unsent.length > 0) event.preventDefault(); });
    this.restore();
  }

  /** Uploads that would stop with the page. */
  get unsent() {
    return this.items.filter(({ state }) => ['sending', 'waiting', 'retrying'].includes(state));
  }

  /** Uploads of an earlier page: the server knows how far they came. */
  async restore() {
    /** @type {import('./tus.js').Kept[]} */
    let kept = [];
    try {
      kept = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    } catch {
      // What can't be read can't be resumed.
    }
    for (const one of kept) {
      const upload = new Upload(one, null);
      await upload.askOffset().catch(() => {});
      if (upload.url && !upload.videoId && !this.items.some(({ url }) => url === upload.url)) this.take(upload);
    }
    this.keep();
  }

  keep() {
    const kept = this.items.filter(({ url, videoId, state }) => url && !videoId && state !== 'refused').map(({ kept: one }) => one);
    if (kept.length > 0) localStorage.setItem(KEPT, JSON.stringify(kept));
    else localStorage.removeItem(KEPT);
  }

  /** @param {Upload} upload */
  take(upload) {
    this.items.push(upload);
    upload.addEventListener('change', () => this.changed());
    upload.addEventListener('added', () => this.dispatchEvent(new CustomEvent('added', { detail: upload.videoId })));
    this.changed();
  }

  /**
   * A video to send, or one to go on with.
   * @param {File} file
   * @param {File[]} subtitles
   */
  add(file, subtitles) {
    const earlier = this.items.find((upload) => upload.state === 'needs-file' && upload.isOf(file));
    if (earlier) {
      Object.assign(earlier, { file, subtitles });
      earlier.set('waiting');
      return;
    }
    const folder = [this.folder, folderOf(file)].filter(Boolean).join('/').slice(0, 300);
    const upload = new Upload({ name: file.name, size: file.size, modified: file.lastModified, folder, url: '' }, file);
    upload.subtitles = subtitles;
    if (file.size === 0) Object.assign(upload, { state: 'refused', reason: 'The file is empty.' });
    else if (!VIDEO.test(file.name) && !file.type.startsWith('video/')) Object.assign(upload, { state: 'refused', reason: 'Not a video.' });
    this.take(upload);
  }

  /** Starts what may start, then draws. */
  changed() {
    const running = this.items.filter(({ state }) => state === 'sending').length;
    const next = this.items.find(({ state }) => state === 'waiting');
    if (next && running < AT_ONCE) {
      next.send();
      return;
    }
    this.keep();
    this.draw();
  }

  togglePause() {
    const running = this.unsent;
    if (running.length > 0) for (const upload of running) upload.pause();
    else for (const upload of this.items) if (upload.state === 'paused') upload.set('waiting');
  }

  toggleFold() {
    this.folded = !this.folded;
    this.draw();
  }

  /** Takes ended uploads off the tray. */
  clear() {
    this.items = this.items.filter(({ state }) => !['done', 'refused'].includes(state));
    this.draw();
  }

  /** @param {Upload} upload */
  remove(upload) {
    upload.drop();
    this.items = this.items.filter((one) => one !== upload);
    this.changed();
  }

  draw() {
    this.element.hidden = this.items.length === 0;
    const running = this.unsent;
    const busy = this.items.filter(({ state }) => !['done', 'refused'].includes(state)).length;
    const left = running.reduce((sum, { size, offset }) => sum + size - offset, 0);
    const speed = running.reduce((sum, upload) => sum + (upload.state === 'sending' ? upload.speed : 0), 0);
    const title = busy ? `Adding ${count(busy, 'video')}` : 'Uploads';
    if (this.said !== title && this.items.length > 0) announce(title);
    this.said = title;
    fill(this.head, title, speed > 0 && el('span', { class: 'dim num' }, ` · ${formatEstimate(left / speed)} left`));
    const paused = this.items.some(({ state }) => state === 'paused');
    this.pauseAll.hidden = running.length === 0 && !paused;
    fill(this.pauseAll, icon(running.length ? 'pause' : 'rotate-ccw', 's'), running.length ? 'Pause all' : 'Resume all');
    this.close.hidden = busy > 0;
    this.element.classList.toggle('folded', this.folded);
    this.fold.setAttribute('aria-expanded', String(!this.folded));
    const shown = [...this.items].sort((a, b) => order(a) - order(b)).slice(0, SHOWN);
    for (const [upload, { element }] of this.rows) {
      if (shown.includes(upload)) continue;
      element.remove();
      this.rows.delete(upload);
    }
    for (const upload of shown) {
      const one = this.rows.get(upload) ?? row(upload, this);
      this.rows.set(upload, one);
      if (!one.element.isConnected) this.body.append(one.element);
      one.update();
    }
    this.rest.hidden = this.items.length <= SHOWN;
    this.rest.textContent = `${formatNumber(this.items.length - shown.length)} more`;
  }

  /** @type {string} */
  said = '';

  /** @param {Upload} upload */
  chooseAgain(upload) {
    chooseFiles((files) => {
      const same = files.find((file) => upload.isOf(file));
      if (same) this.add(same, []);
      else upload.set('needs-file', 'Another file: choose the one that was begun.');
    });
  }
}

/** What needs a look stands first. @param {Upload} upload */
function order({ state }) {
  return ['needs-file', 'refused', 'sending', 'retrying', 'paused', 'processing', 'waiting', 'done'].indexOf(state);
}

/**
 * A line of the tray. Its parts stay, so that the focus does.
 * @param {Upload} upload
 * @param {Uploads} uploads
 */
function row(upload, uploads) {
  const side = el('span', { class: 'dim tiny num' });
  const filled = el('i');
  const bar = el('div', { class: 'bar go', role: 'progressbar', 'aria-label': upload.name, 'aria-valuemin': 0, 'aria-valuemax': 100 }, filled);
  const detail = el('span', { class: 'dim tiny num said' });
  const act = button('', () => actOn(upload, uploads), { class: 'btn ghost low' });
  const away = iconButton('x', `Dismiss ${upload.name}`, () => uploads.remove(upload), { class: 'btn ghost sq low' });
  const name = el('span', { class: 'clip1', title: upload.name }, upload.name);
  const element = el('div', { class: 'up', role: 'listitem' }, name, el('span', { class: 'row acts' }, side, act, away), bar, detail);
  const update = () => {
    const { state } = upload;
    const done = state === 'processing' ? upload.job?.progress ?? 0 : upload.offset / Math.max(1, upload.size);
    element.dataset.state = state;
    bar.hidden = ['done', 'refused', 'waiting'].includes(state);
    bar.setAttribute('aria-valuenow', String(Math.round(done * 100)));
    filled.style.setProperty('width', `${done * 100}%`);
    side.textContent = sideOf(upload);
    detail.textContent = detailOf(upload);
    const label = { sending: 'Pause', retrying: 'Pause', waiting: 'Pause', paused: 'Resume', refused: upload.jobId ? 'Try again' : 'Send anyway', 'needs-file': 'Choose the file', processing: '', done: '' }[state];
    act.hidden = label === '' || (state === 'refused' && upload.size === 0);
    act.textContent = state === 'refused' && upload.reason !== 'Not a video.' ? 'Try again' : label;
    act.setAttribute('aria-label', `${act.textContent}: ${upload.name}`);
    away.hidden = state === 'processing';
    if (upload.videoId && !name.querySelector('a')) fill(name, el('a', { class: 'link', href: `/v/${upload.videoId}` }, upload.name));
  };
  return { element, update };
}

/** @param {Upload} upload */
function sideOf({ state, size, offset, speed, job, duplicate }) {
  if (state === 'sending' && speed > 0) return formatEstimate((size - offset) / speed);
  if (state === 'processing' && job?.eta_s) return formatEstimate(job.eta_s);
  if (state === 'paused' || state === 'needs-file') return `Stopped at ${Math.floor((offset / Math.max(1, size)) * 100)} %`;
  if (state === 'done') return duplicate ? 'Was here already' : 'Added';
  return state === 'waiting' ? 'Waiting' : '';
}

/** @param {Upload} upload */
function detailOf({ state, size, offset, speed, job, reason, subtitles }) {
  const more = subtitles.length > 0 ? ` · ${count(subtitles.length, 'subtitle file')}` : '';
  if (state === 'needs-file') return reason || 'Choose the same file again to go on.';
  if (state === 'retrying') return `${reason} It goes on by itself.`;
  if (state === 'sending') return `${formatBytes(offset)} of ${formatBytes(size)}${speed ? `, ${formatBytes(speed)}/s` : ''}${more}`;
  if (state !== 'processing') return reason;
  const stage = job?.state === 'queued' ? 'Waits for its turn' : STAGES[job?.stage ?? ''] ?? 'Checking the file';
  return job?.frames_total ? `${stage}, ${formatNumber(job.frames_done)} of ${formatNumber(job.frames_total)} frames${more}` : stage + more;
}

/**
 * @param {Upload} upload
 * @param {Uploads} uploads
 */
async function actOn(upload, uploads) {
  if (upload.state === 'needs-file') return uploads.chooseAgain(upload);
  if (upload.state === 'refused' && upload.jobId) {
    await post(`/v1/jobs/${upload.jobId}/retry`);
    return upload.finish();
  }
  if (upload.state === 'paused' || upload.state === 'refused') return upload.set('waiting');
  upload.pause();
}

export const uploads = new Uploads();

/**
 * Opens the system's picker.
 * @param {(files: File[]) => void} take
 * @param {{folder?: boolean, accept?: string}} [what]
 */
export function chooseFiles(take, { folder = false, accept = '' } = {}) {
  const input = el('input', { type: 'file', multiple: true, webkitdirectory: folder, accept: accept || null, hidden: true });
  input.addEventListener('change', () => {
    take([...(input.files ?? [])]);
    input.remove();
  });
  input.addEventListener('cancel', () => input.remove());
  document.body.append(input);
  input.click();
}

/**
 * Adds videos and their subtitles. Subtitles that come without videos are paired with those of the library.
 * @param {import('../main.js').Page} page
 * @param {File[]} files
 */
export async function addFiles(page, files) {
  const real = files.filter(({ name }) => !name.startsWith('.') && name !== 'Thumbs.db');
  const subtitles = real.filter(isSubtitleFile);
  const videos = real.filter((file) => !isSubtitleFile(file));
  if (videos.length === 0) {
    if (subtitles.length > 0) await pairStored(page, subtitles, await all('/v1/videos'));
    return;
  }
  const pairs = pair(subtitles, videos, ({ name }) => name);
  const sure = /** @type {{file: File, video: File}[]} */ (pairs.filter((one) => one.sure));
  const doubtful = pairs.filter((one) => !one.sure);
  // The videos need not wait for the answer: subtitles can follow.
  const asked = doubtful.length > 0 ? await askPairs(doubtful, videos, ({ name }) => name) ?? [] : [];
  for (const video of videos) uploads.add(video, [...sure, ...asked].filter((one) => one.video === video).map(({ file }) => file));
}

/**
 * Adds subtitles to videos that are stored.
 * @param {import('../main.js').Page} page
 * @param {File[]} files
 * @param {Api<'Video'>[]} videos
 */
export async function pairStored(page, files, videos) {
  const pairs = videos.length === 1 ? files.map((file) => ({ file, video: videos[0], sure: true })) : pair(files, videos, ({ file_name: name }) => name);
  const sure = /** @type {{file: File, video: Api<'Video'>}[]} */ (pairs.filter((one) => one.sure));
  const doubtful = pairs.filter((one) => !one.sure);
  const asked = doubtful.length > 0 ? await askPairs(doubtful, videos, titleOf) ?? [] : [];
  const made = [...sure, ...asked];
  if (made.length === 0) return;
  /** @type {(() => Promise<unknown>)[]} */
  const undos = [];
  for (const { file, video } of made) {
    try {
      const track = await putSubtitles(video.id, file);
      undos.push(() => send('DELETE', `/v1/videos/${video.id}/subtitles/${track.language}`));
    } catch (error) {
      page.toasts.problem(error);
      return;
    }
  }
  page.toasts.show(`Added ${count(made.length, 'subtitle file')} to ${count(new Set(made.map(({ video }) => video.id)).size, 'video')}.`,
    { undo: () => Promise.all(undos.map((undo) => undo())) });
}
