// Follows jobs: server-sent events for a few, polling in turn for the rest.
// A browser opens about six connections to one server; events for every queued job would starve the page.

import { getJob, jobEventsUrl } from './api.js';

const STREAMS = 2;
const POLL_MS = 1000;
const TERMINAL = new Set(['succeeded', 'failed', 'cancelled']);

/** Whether a job's state is its last. */
export function isTerminal(job) {
  return TERMINAL.has(job.state);
}

export class JobFollower {
  constructor() {
    /** @type {Map<string, {listeners: Set<Function>, last: object|null, stream: EventSource|null, streamable: boolean}>} */
    this.followed = new Map();
    this.timer = null;
  }

  /**
   * Calls `listener(job)` at each change until the job ends or the returned function is called.
   * A listener that comes late hears the last known state at once.
   */
  follow(id, listener) {
    let entry = this.followed.get(id);
    if (!entry) {
      entry = { listeners: new Set(), last: null, stream: null, streamable: true };
      this.followed.set(id, entry);
    }
    entry.listeners.add(listener);
    if (entry.last) listener(entry.last);
    this.schedule();
    return () => {
      entry.listeners.delete(listener);
      if (entry.listeners.size === 0 && this.followed.get(id) === entry) this.forget(id);
    };
  }

  forget(id) {
    this.followed.get(id)?.stream?.close();
    this.followed.delete(id);
    this.schedule();
  }

  heard(id, job) {
    const entry = this.followed.get(id);
    if (!entry) return;
    entry.last = job;
    for (const listener of [...entry.listeners]) listener(job);
    if (isTerminal(job)) this.forget(id);
  }

  /** Gives free streams to the oldest jobs without one, and polls while some have none. */
  schedule() {
    let streams = 0;
    let waiting = 0;
    for (const entry of this.followed.values()) if (entry.stream) streams += 1;
    for (const [id, entry] of this.followed) {
      if (entry.stream) continue;
      if (streams < STREAMS && entry.streamable) {
        this.open(id, entry);
        streams += 1;
      } else {
        waiting += 1;
      }
    }
    if (waiting > 0 && this.timer === null) this.timer = setTimeout(() => this.poll(), POLL_MS);
  }

  open(id, entry) {
    const stream = new EventSource(jobEventsUrl(id));
    entry.stream = stream;
    stream.addEventListener('job', (event) => this.heard(id, JSON.parse(event.data)));
    stream.addEventListener('error', () => {
      // CONNECTING: the browser is coming back by itself. CLOSED: the server refused; ask it the plain way.
      if (stream.readyState !== EventSource.CLOSED || entry.stream !== stream) return;
      entry.stream = null;
      entry.streamable = false;
      this.schedule();
    });
  }

  /** Asks for the next job without a stream, then puts it at the end of the line. */
  async poll() {
    this.timer = null;
    const next = [...this.followed].find(([, entry]) => !entry.stream);
    if (next) {
      const [id, entry] = next;
      this.followed.delete(id);
      this.followed.set(id, entry);
      try {
        this.heard(id, await getJob(id));
      } catch (error) {
        if (error.status === 404) this.forget(id);
      }
    }
    this.schedule();
  }
}
