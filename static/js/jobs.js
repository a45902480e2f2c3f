// Follows jobs: server-sent events for those that run, polling for those that wait.
// A browser opens about six connections to one server; events for every queued job would starve the page.

import { getJob, jobEventsUrl, listRunningJobs } from './api.js';

const STREAMS = 2;
const POLL_MS = 1500;
const TERMINAL = new Set(['succeeded', 'failed', 'cancelled']);

/** Whether a job's state is its last. */
export function isTerminal(job) {
  return TERMINAL.has(job.state);
}

export class JobFollower {
  constructor() {
    /** @type {Map<string, {listeners: Set<Function>, last: object|null, stream: EventSource|null, refused: boolean}>} */
    this.followed = new Map();
    this.timer = null;
  }

  /**
   * Calls `listener(job)` at each change until the job ends or the returned function is called.
   * A listener that comes late hears the last known state at once.
   */
  follow(id, listener) {
    const entry = this.followed.get(id) ?? { listeners: new Set(), last: null, stream: null, refused: false };
    this.followed.set(id, entry);
    entry.listeners.add(listener);
    if (entry.last) listener(entry.last);
    this.arrange();
    return () => {
      entry.listeners.delete(listener);
      if (entry.listeners.size === 0 && this.followed.get(id) === entry) this.forget(id);
    };
  }

  forget(id) {
    this.followed.get(id)?.stream?.close();
    this.followed.delete(id);
    this.arrange();
  }

  heard(job) {
    const entry = this.followed.get(job.id);
    if (!entry) return;
    entry.last = job;
    for (const listener of [...entry.listeners]) listener(job);
    if (isTerminal(job)) this.forget(job.id);
  }

  /** Gives the streams to the jobs that run, then to the oldest, which run next; polls while others wait. */
  arrange() {
    const waits = ([, entry]) => (entry.last?.state === 'running' ? 0 : 1);
    const ranked = [...this.followed].filter(([, entry]) => !entry.refused)
      .sort((one, other) => waits(one) - waits(other) || (one[0] < other[0] ? -1 : 1));
    const chosen = new Set(ranked.slice(0, STREAMS).map(([id]) => id));
    for (const [id, entry] of this.followed) {
      if (chosen.has(id) && !entry.stream) this.open(id, entry);
      if (!chosen.has(id) && entry.stream) {
        entry.stream.close();
        entry.stream = null;
      }
    }
    if (this.unstreamed().length > 0 && this.timer === null) this.timer = setTimeout(() => this.poll(), POLL_MS);
  }

  unstreamed() {
    return [...this.followed].filter(([, entry]) => !entry.stream).map(([id]) => id);
  }

  open(id, entry) {
    const stream = new EventSource(jobEventsUrl(id));
    entry.stream = stream;
    stream.addEventListener('job', (event) => this.heard(JSON.parse(event.data)));
    stream.addEventListener('error', () => {
      // CONNECTING: the browser is coming back by itself. CLOSED: the server refused; ask it the plain way.
      if (stream.readyState !== EventSource.CLOSED || entry.stream !== stream) return;
      entry.stream = null;
      entry.refused = true;
      this.arrange();
    });
  }

  /** Asks which jobs run, and for one waiting job, each in its turn: it may have ended between two looks. */
  async poll() {
    const [id] = this.unstreamed();
    try {
      for (const job of await listRunningJobs()) this.heard(job);
      const entry = this.followed.get(id);
      if (entry && !entry.stream) {
        this.followed.delete(id);
        this.followed.set(id, entry);
        this.heard(await getJob(id));
      }
    } catch (error) {
      if (error.status === 404) this.forget(id);
    }
    this.timer = null;
    this.arrange();
  }
}
