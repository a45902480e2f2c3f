// One resumable upload: sends a file in parts by the tus protocol, tries again by itself, goes on from the server's offset.

import { ApiError, get, isAbort, send } from '../core/api.js';
import { connection } from '../core/connection.js';
import { hasEnded, jobs } from '../core/jobs.js';
import { describe } from '../core/problems.js';
import { putSubtitles } from './pairs.js';

/**
 * `needs-file`: the page was loaded anew, and only the person can open the file again.
 * @typedef {'waiting'|'sending'|'retrying'|'paused'|'needs-file'|'processing'|'done'|'refused'} UploadState
 * @typedef {{name: string, size: number, modified: number, folder: string, url: string}} Kept what outlives the page
 */

const PART = 1 << 20;
const LARGEST_PART = 64 << 20;
/** A part should take about this long: long enough to be quick, short enough to show progress. */
const PART_S = 1.5;
const WAITS_S = [1, 2, 4, 8, 15, 30];
const TUS = { 'Tus-Resumable': '1.0.0' };

/** @param {string} text */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

export class Upload extends EventTarget {
  /**
   * @param {Kept} kept
   * @param {File|null} file
   */
  constructor({ name, size, modified, folder, url }, file) {
    super();
    this.name = name;
    this.size = size;
    this.modified = modified;
    this.folder = folder;
    this.url = url;
    this.file = file;
    /** @type {UploadState} */
    this.state = file ? 'waiting' : 'needs-file';
    this.offset = 0;
    /** Bytes a second, smoothed. */
    this.speed = 0;
    this.part = PART;
    this.tries = 0;
    this.reason = '';
    this.videoId = '';
    this.jobId = '';
    this.duplicate = false;
    /** @type {File[]} */
    this.subtitles = [];
    /** @type {Api<'Job'>|null} */
    this.job = null;
    /** @type {AbortController|null} */
    this.sending = null;
    this.timer = 0;
    this.follow = this.follow.bind(this);
  }

  /** @returns {Kept} */
  get kept() {
    return { name: this.name, size: this.size, modified: this.modified, folder: this.folder, url: this.url };
  }

  /**
   * @param {UploadState} state
   * @param {string} [reason]
   */
  set(state, reason = '') {
    this.state = state;
    this.reason = reason;
    this.dispatchEvent(new Event('change'));
  }

  /** @param {File} file */
  isOf(file) {
    return file.name === this.name && file.size === this.size && file.lastModified === this.modified;
  }

  /** Sends until all is there, it is paused, or the server is away. */
  async send() {
    clearTimeout(this.timer);
    this.set('sending');
    this.sending = new AbortController();
    try {
      if (this.url) await this.askOffset();
      if (!this.url) await this.begin();
      while (!this.videoId) await this.sendPart();
      await this.finish();
    } catch (error) {
      if (!isAbort(error)) this.failed(/** @type {any} */ (error));
    } finally {
      this.sending = null;
    }
  }

  async begin() {
    const fields = { filename: this.name, ...(this.folder ? { folder: this.folder } : {}) };
    const said = Object.entries(fields).map(([name, value]) => `${name} ${base64(value)}`).join(',');
    const answer = await this.ask('POST', '/v1/uploads', { 'Upload-Length': String(this.size), 'Upload-Metadata': said });
    this.url = new URL(answer.headers.get('Location') ?? '', location.href).pathname;
    this.offset = 0;
    this.dispatchEvent(new Event('change'));
  }

  /** Where the server is. An upload that it has forgotten begins anew. */
  async askOffset() {
    try {
      this.read(await this.ask('HEAD', this.url));
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 410)) throw error;
      this.url = '';
    }
  }

  async sendPart() {
    const from = performance.now();
    const before = this.offset;
    const body = /** @type {File} */ (this.file).slice(before, before + this.part);
    this.read(await this.ask('PATCH', this.url, { 'Upload-Offset': String(before), 'Content-Type': 'application/offset+octet-stream' }, body));
    const seconds = (performance.now() - from) / 1000;
    const speed = (this.offset - before) / Math.max(seconds, 0.001);
    this.speed = this.speed ? this.speed * 0.7 + speed * 0.3 : speed;
    this.part = Math.round(Math.min(LARGEST_PART, Math.max(PART / 4, this.speed * PART_S)));
    this.tries = 0;
    if (!this.videoId && this.offset >= this.size) await this.askOffset();
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Response} answer */
  read(answer) {
    this.offset = Number(answer.headers.get('Upload-Offset') ?? this.offset);
    this.videoId = answer.headers.get('Reprise-Video-Id') ?? '';
    this.jobId = answer.headers.get('Reprise-Job-Id') ?? '';
    this.duplicate = answer.headers.get('Reprise-Duplicate') === 'true';
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Record<string, string>} [headers]
   * @param {Blob} [body]
   */
  ask(method, path, headers = {}, body) {
    return send(method, path, { headers: { ...TUS, ...headers }, body, signal: this.sending?.signal });
  }

  /** @param {any} error */
  failed(error) {
    const { status } = error;
    if (status === 404 && this.url) this.url = '';
    // A wrong offset, a lock, too many at once, a server that restarts: all pass.
    if (!(error instanceof ApiError) || (status >= 400 && status < 500 && ![404, 408, 409, 423, 429].includes(status))) {
      this.url = '';
      this.set('refused', describe(error));
      return;
    }
    const wait = error.retryAfter ?? WAITS_S[Math.min(this.tries, WAITS_S.length - 1)];
    this.tries += 1;
    this.set('retrying', status === 0 ? 'The server does not answer.' : describe(error));
    const again = () => { if (this.state === 'retrying') this.set('waiting'); };
    this.timer = window.setTimeout(again, wait * 1000);
    connection.addEventListener('back', again, { once: true });
  }

  /** All bytes are there: adds the subtitles, follows the job that makes the video searchable. */
  async finish() {
    this.set('processing');
    this.dispatchEvent(new Event('added'));
    for (const file of this.subtitles) {
      await putSubtitles(this.videoId, file).catch((error) => { this.reason = `${file.name}: ${describe(error)}`; });
    }
    const job = this.jobId ? await get(`/v1/jobs/${this.jobId}`).catch(() => null) : null;
    if (!job || hasEnded(job)) {
      this.ended(job);
      return;
    }
    this.job = job;
    jobs.addEventListener('change', this.follow);
    jobs.addEventListener('ended', this.follow);
    jobs.look(job);
  }

  /** @param {Event} event */
  follow(event) {
    const ended = event instanceof CustomEvent ? /** @type {Api<'Job'>} */ (event.detail) : null;
    if (ended?.id === this.jobId) {
      this.ended(ended);
      return;
    }
    this.job = jobs.known.get(this.jobId) ?? this.job;
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Api<'Job'>|null} job */
  ended(job) {
    jobs.removeEventListener('change', this.follow);
    jobs.removeEventListener('ended', this.follow);
    this.job = job;
    if (job && job.state !== 'succeeded') this.set('refused', describe({ message: job.reason || 'it was cancelled' }));
    else this.set('done', this.reason);
  }

  pause() {
    clearTimeout(this.timer);
    this.sending?.abort();
    this.set('paused');
  }

  /** Ends it for good, on the server too. */
  drop() {
    clearTimeout(this.timer);
    this.sending?.abort();
    if (this.url && !this.videoId) send('DELETE', this.url, { headers: TUS }).catch(() => {});
  }
}
