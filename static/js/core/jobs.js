// Follows jobs: one poll for all that anybody on the page waits for.

import { ApiError, all, get } from './api.js';

const POLL_MS = 1000;
const IDLE_POLL_MS = 8000;
/** @type {Api<'JobState'>[]} */
const ENDED = ['succeeded', 'failed', 'cancelled'];

/** @param {Api<'Job'>} job */
export const hasEnded = (job) => ENDED.includes(job.state);

/**
 * Sends `change` after each look, and `ended` with a job as its detail when one ends that was running or queued.
 */
class Jobs extends EventTarget {
  constructor() {
    super();
    /** @type {Map<string, Api<'Job'>>} running and queued jobs by id, and those that ended just now */
    this.known = new Map();
    this.timer = 0;
    this.started = false;
  }

  start() {
    if (this.started) return;
    this.started = true;
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.look(); });
    this.look();
  }

  /** Running and queued jobs. */
  get active() {
    return [...this.known.values()].filter((job) => !hasEnded(job));
  }

  /**
   * Looks at once, for a job that was just made.
   * @param {Api<'Job'>|null} [job]
   */
  look(job = null) {
    if (job) this.known.set(job.id, job);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.poll(), job ? POLL_MS : 0);
  }

  async poll() {
    if (!document.hidden) {
      try {
        await this.read();
      } catch {
        // The connection's line says that the server is away; the next look is not far.
      }
    }
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.poll(), this.active.length > 0 ? POLL_MS : IDLE_POLL_MS);
  }

  async read() {
    const [running, queued] = await Promise.all(['running', 'queued'].map((state) =>
      all('/v1/jobs', { query: { state, limit: 100 }, most: 100 })));
    /** @type {Map<string, Api<'Job'>>} */
    const now = new Map([...running, ...queued].map((job) => [job.id, job]));
    const gone = this.active.filter((job) => !now.has(job.id));
    this.known = now;
    const ended = await Promise.all(gone.map((job) => this.ending(job.id)));
    this.dispatchEvent(new Event('change'));
    for (const job of ended) if (job) this.dispatchEvent(new CustomEvent('ended', { detail: job }));
  }

  /**
   * The job as it ended; null if it is gone or goes on.
   * @param {string} id
   * @returns {Promise<Api<'Job'>|null>}
   */
  async ending(id) {
    try {
      const job = await get(`/v1/jobs/${id}`);
      if (hasEnded(job)) return job;
      this.known.set(id, job);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    return null;
  }
}

export const jobs = new Jobs();
