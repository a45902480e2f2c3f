// Speech that a program writes down: asks for it, says how far it is, and says whose lines are listed.

import { post } from '../../core/api.js';
import { button, el, fill, icon, iconButton } from '../../core/dom.js';
import { jobs } from '../../core/jobs.js';
import { toasts } from '../../core/toast.js';
import { formatEstimate } from '../../core/words.js';

/** @typedef {Api<'Job'>} Job */

export class Scribe {
  /** @param {import('./transcript.js').Transcript} transcript */
  constructor(transcript) {
    this.transcript = transcript;
    /** @type {string|null} the model of this server */
    this.transcriber = null;
    this.element = el('div', {});
    const { signal } = transcript;
    jobs.addEventListener('change', () => this.draw(), { signal });
    jobs.addEventListener('ended', (event) => this.ended(/** @type {CustomEvent<Job>} */ (event).detail), { signal });
  }

  /** @param {Job} job */
  isOurs({ kind, video_id: video }) {
    return kind === 'transcribe' && video === this.transcript.video.id;
  }

  /** The transcription of this video that waits or runs. */
  get job() {
    return jobs.active.find((job) => this.isOurs(job));
  }

  get hasMachines() {
    return this.transcript.tracks.some(({ machine, kind }) => machine && kind === 'speech');
  }

  /** The button where nothing is known of what is said. */
  offer() {
    return this.transcriber !== null && !this.job && button([icon('mic'), 'Transcribe'], () => this.ask(), { class: 'btn primary', title: `Written down by ${this.transcriber}` });
  }

  /** What the menu offers. @returns {import('../../core/menu.js').Item[]} */
  get items() {
    const label = this.hasMachines ? 'Transcribe again' : 'Transcribe';
    return this.transcriber !== null && !this.job ? [{ label, icon: 'mic', act: () => this.ask() }] : [];
  }

  draw() {
    const { job } = this;
    const { track } = this.transcript;
    if (job) {
      const done = Math.round(job.progress * 100);
      const left = job.eta_s ? `, ${formatEstimate(job.eta_s)} left` : '';
      fill(this.element, el('div', { class: 'notice', role: 'status' }, icon('mic'),
        el('span', {}, job.state === 'queued' ? 'Waits to be transcribed.' : `Being transcribed: ${done} %${left}.`),
        el('span', { class: 'bar go grow' }, el('i', { vars: { width: `${done}%` } })), iconButton('x', 'Stop transcribing', () => this.stop(job))));
    } else {
      fill(this.element, track?.machine && el('p', { class: 'row small muted by-machine' }, icon('mic', 's'), `Written by ${track.provenance}, a program. E corrects a line.`));
    }
  }

  async ask() {
    try {
      const { job } = await post(`/v1/videos/${this.transcript.video.id}/transcribe`, { json: { replace: this.hasMachines } });
      jobs.look(job);
      this.transcript.draw();
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** @param {Job} job */
  async stop(job) {
    try {
      await post(`/v1/jobs/${job.id}/cancel`);
      toasts.show('Stopped transcribing.', { undo: async () => {
        jobs.look(await post(`/v1/jobs/${job.id}/retry`));
        this.transcript.draw();
      } });
      jobs.look();
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** @param {Job} job */
  async ended(job) {
    if (!this.isOurs(job)) return;
    if (job.state === 'failed') toasts.show(`The video was not transcribed: ${job.reason ?? 'the reason is not known'}.`);
    if (job.state === 'succeeded') toasts.show(job.note ? `${job.note[0].toUpperCase()}${job.note.slice(1)}.` : 'Transcribed what is said.');
    await this.transcript.reload();
  }
}
