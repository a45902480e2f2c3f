// The library: every video as a card with its state, its running job, and what can be done with it.

import { cancelJob, deleteVideo, getJob, getVideo, listExamples, listVideos, retryJob } from './api.js';
import { confirmAction } from './dialogs.js';
import { button, el, fill, picture } from './dom.js';
import { isTerminal } from './jobs.js';
import { announce, describe, problemBox } from './problems.js';
import { formatClock, formatRemaining, formatTime } from './time.js';

const PAGE = 500;
const SHOWN = 48;
const REFRESH_MS = 10000;

const STAGES = { probe: 'reading the file', decode: 'looking at every frame', finish: 'saving' };

/** "encoding, 42 %, 3 min left"; "failed, will be tried again at 14:05:10: no memory" */
export function describeJob(job) {
  if (job.state === 'queued' && job.retry_at) {
    return `failed, will be tried again at ${formatClock(job.retry_at)}${job.reason ? `: ${job.reason}` : ''}`;
  }
  if (job.state === 'queued') return job.attempts > 0 ? 'waiting for another attempt' : 'waiting for a free worker';
  const parts = [STAGES[job.stage] ?? job.stage ?? 'starting'];
  if (job.progress > 0) parts.push(`${Math.floor(job.progress * 100)} %`);
  if (Number.isFinite(job.eta_s)) parts.push(`${formatRemaining(job.eta_s)} left`);
  return parts.join(', ');
}

/** The facts line of a video. */
export function describeMedia(video) {
  const clips = video.clips === 1 ? '1 clip' : `${video.clips} clips`;
  return [
    video.width && video.height ? `${video.width} × ${video.height}` : null,
    video.frame_rate ? `${Math.round(video.frame_rate * 100) / 100} fps` : null,
    video.codec,
    video.state === 'ready' ? clips : null,
  ].filter(Boolean);
}

/** Warnings of a video behind a summary; null without any. */
export function warningList(video) {
  const warnings = video.warnings || [];
  if (warnings.length === 0) return null;
  const label = warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`;
  return el('details', { class: 'warnings' }, el('summary', {}, label),
    el('ul', {}, warnings.map((warning) => el('li', {}, typeof warning === 'string' ? warning : JSON.stringify(warning)))));
}

class VideoCard {
  constructor(video, library) {
    this.library = library;
    this.unfollow = null;
    this.followedJob = null;
    this.spoken = '';
    this.element = el('li', { class: 'card video' });
    this.update(video);
  }

  update(video) {
    const shown = this.video;
    this.video = video;
    // Only what changed is drawn again: a redraw would steal the focus from a button in the card.
    if (!shown || JSON.stringify(shown) !== JSON.stringify(video)) this.draw();
    const ended = this.job?.id === video.job_id && this.job && isTerminal(this.job);
    if (video.state === 'pending' && video.job_id && !ended) this.follow(video.job_id);
    if (video.state === 'failed' && video.job_id && !this.reason) this.loadReason(video.job_id);
  }

  draw() {
    const { video } = this;
    const thumbnail = video.state === 'ready' ? video.thumbnail_url : null;
    const stamp = Number.isFinite(video.duration) && el('span', { class: 'stamp' }, formatTime(video.duration));
    this.progress = el('progress', { max: 1, 'aria-label': `Analysis of ${video.title}`, hidden: true });
    this.status = el('p', { class: 'state' });
    this.actions = el('div', { class: 'actions' });
    this.element.dataset.id = video.id;
    this.element.dataset.state = video.state;
    fill(this.element,
      picture(thumbnail, video.state === 'failed' ? 'no picture' : 'not analysed yet', stamp),
      el('div', { class: 'body' },
        el('h3', {}, el('a', { href: `/v/${video.id}` }, video.title)),
        el('p', { class: 'facts' }, describeMedia(video).map((fact) => el('span', {}, fact))),
        this.status, this.progress, warningList(video), this.actions));
    this.drawState();
  }

  /** The part that a running job changes several times a second. */
  drawState() {
    const { video, job } = this;
    const pending = video.state === 'pending';
    this.element.dataset.job = job?.state ?? '';
    this.progress.hidden = !pending || !job || isTerminal(job);
    if (pending && job && job.progress > 0) this.progress.value = job.progress;
    else this.progress.removeAttribute('value');
    this.status.className = `state ${video.state}`;
    this.status.hidden = video.state === 'ready';
    this.status.textContent = this.stateText();
    this.drawActions();
  }

  stateText() {
    const { video, job } = this;
    if (video.state === 'ready') return '';
    if (job?.state === 'cancelled') return 'Cancelled before it was analysed';
    if (video.state === 'failed') return this.reason ? `Failed: ${this.reason}` : 'Failed';
    return job ? describeJob(job) : 'waiting';
  }

  drawActions() {
    const { video, job } = this;
    const pending = video.state === 'pending';
    const wanted = [
      pending && job && !isTerminal(job) && 'cancel',
      (video.state === 'failed' || (pending && (job?.state === 'cancelled' || job?.retry_at))) && 'retry',
      'delete',
    ].filter(Boolean);
    if (this.actions.dataset.shown === wanted.join()) return;
    this.actions.dataset.shown = wanted.join();
    const make = {
      cancel: () => this.action('Cancel', () => cancelJob(this.video.job_id)),
      retry: () => this.action('Try again', () => this.retry()),
      delete: () => this.action('Delete', () => this.remove()),
    };
    fill(this.actions, wanted.map((name) => make[name]()));
  }

  action(label, work) {
    const control = button(label, async () => {
      control.disabled = true;
      try {
        await work();
      } catch (error) {
        this.status.hidden = false;
        this.status.textContent = describe(error);
        announce(describe(error));
      } finally {
        control.disabled = false;
      }
    }, { class: 'button small plain', 'aria-label': `${label}: ${this.video.title}`, 'data-action': label.toLowerCase() });
    return control;
  }

  follow(jobId) {
    if (this.followedJob === jobId) return;
    this.unfollow?.();
    this.followedJob = jobId;
    this.unfollow = this.library.jobs.follow(jobId, (job) => this.heard(job));
  }

  async heard(job) {
    this.job = job;
    this.drawState();
    this.speak(job);
    if (!isTerminal(job)) return;
    this.followedJob = null;
    this.reason = job.reason;
    try {
      const video = await getVideo(this.video.id);
      this.library.videos.set(video.id, video);
      this.update(video);
      announce(`${this.video.title}: ${this.video.state === 'ready' ? 'ready to search' : this.stateText()}`);
    } catch (error) {
      if (error.status === 404) this.library.drop(this.video.id);
    }
  }

  /** Screen readers hear each new stage, not each percent. */
  speak(job) {
    const now = `${job.state} ${job.stage} ${job.retry_at ?? ''}`;
    if (now === this.spoken || isTerminal(job)) return;
    this.spoken = now;
    announce(`${this.video.title}: ${describeJob(job)}`);
  }

  async loadReason(jobId) {
    try {
      this.job = await getJob(jobId);
      this.reason = this.job.reason;
      this.drawState();
    } catch {
      // The state says "Failed"; the reason is gone with its job.
    }
  }

  async retry() {
    const job = await retryJob(this.video.job_id);
    this.reason = null;
    this.job = job?.id ? job : null;
    this.update(await getVideo(this.video.id));
    this.follow(this.job?.id ?? this.video.job_id);
  }

  async remove() {
    const sure = await confirmAction(`Delete ${this.video.title}?`,
      'It goes to the trash, with its clips and everything known about it. ' +
        'The server empties the trash after 7 days, unless its operator chose otherwise.', 'Delete');
    if (!sure) return;
    await deleteVideo(this.video.id);
    announce(`${this.video.title} is deleted.`);
    this.library.drop(this.video.id);
  }

  close() {
    this.unfollow?.();
    this.element.remove();
  }
}

export class Library {
  constructor({ jobs, chooseFiles }) {
    this.jobs = jobs;
    this.title = 'Library';
    /** All videos by id, in the server's order: oldest first. @type {Map<string, object>} */
    this.videos = new Map();
    /** Those on the page. @type {Map<string, VideoCard>} */
    this.cards = new Map();
    this.limit = SHOWN;
    this.lastCursor = null;
    this.timer = null;
    this.count = el('span', { class: 'count' });
    this.grid = el('ul', { class: 'grid', id: 'library' });
    this.problem = el('div');
    this.examples = el('nav', { class: 'examples', 'aria-label': 'Examples', hidden: true });
    this.more = button('Show more', () => {
      this.limit += SHOWN;
      this.draw();
    });
    this.more.hidden = true;
    this.empty = el('div', { class: 'empty', hidden: true },
      el('h2', {}, 'No videos yet'),
      el('p', {}, 'Drop video files anywhere on this page. They are cut into clips and become searchable by words, by a clip, or by a clip and a change.'),
      button('Choose files', chooseFiles, { class: 'button primary' }));
    this.element = el('div', {},
      el('div', { class: 'heading' }, el('h1', { tabindex: -1 }, 'Library'), this.count),
      this.problem, this.examples, this.empty, this.grid, el('div', { class: 'center' }, this.more));
    document.addEventListener('visibilitychange', () => this.schedule(0));
  }

  show() {
    this.shown = true;
    this.load(null);
  }

  hide() {
    this.shown = false;
    clearTimeout(this.timer);
  }

  /** A demo offers queries once its videos are analysed; other servers have none. */
  async drawExamples() {
    const examples = await listExamples().catch(() => []);
    this.examples.hidden = examples.length === 0;
    fill(this.examples, el('span', { class: 'muted' }, 'Try:'),
      examples.map((example) => el('a', { href: example.href }, example.title)));
    this.offered = examples.length > 0;
  }

  /** Videos can come from elsewhere (the command line, another tab): look for newer ones now and then. */
  schedule(delay = REFRESH_MS) {
    clearTimeout(this.timer);
    if (this.shown && document.visibilityState === 'visible') this.timer = setTimeout(() => this.load(this.lastCursor), delay);
  }

  /** Reads the list from a cursor (null: the start) to its end; the newest are on the last page. */
  async load(cursor) {
    const present = new Set();
    try {
      for (let next = cursor, more = true; more;) {
        this.lastCursor = next;
        const page = await listVideos({ limit: PAGE, cursor: next });
        for (const video of page.items) {
          this.videos.set(video.id, video);
          present.add(video.id);
        }
        next = page.next_cursor;
        more = Boolean(next);
      }
      if (cursor === null) this.forgetAllBut(present);
      fill(this.problem);
      const pending = [...this.videos.values()].some((video) => video.state === 'pending');
      // One look more after the last job: the examples come when all is analysed.
      if (!this.loaded || ((pending || this.pending) && !this.offered)) this.drawExamples();
      this.pending = pending;
      this.loaded = true;
      this.draw();
    } catch (error) {
      fill(this.problem, problemBox(error, () => this.load(null)));
    }
    this.schedule();
  }

  forgetAllBut(present) {
    for (const id of [...this.videos.keys()]) if (!present.has(id)) this.videos.delete(id);
  }

  /** Brings the page up to date, newest first, without moving cards that stand right. */
  draw() {
    const wanted = [...this.videos.values()].reverse().slice(0, this.limit);
    const ids = new Set(wanted.map((video) => video.id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      card.close();
      this.cards.delete(id);
    }
    let place = this.grid.firstElementChild;
    for (const video of wanted) {
      const { element } = this.cardOf(video);
      if (element === place) place = place.nextElementSibling;
      else this.grid.insertBefore(element, place);
    }
    const count = this.videos.size;
    this.empty.hidden = count > 0 || !this.loaded;
    this.more.hidden = count <= this.limit;
    this.count.textContent = count === 0 ? '' : count === 1 ? '1 video' : `${count} videos`;
  }

  cardOf(video) {
    const known = this.cards.get(video.id);
    if (known) {
      known.update(video);
      return known;
    }
    const card = new VideoCard(video, this);
    this.cards.set(video.id, card);
    return card;
  }

  /** A video that was just uploaded; answers whether the library is what the person sees. */
  add(video, job) {
    this.videos.set(video.id, video);
    this.draw();
    if (job && video.state === 'pending') this.cards.get(video.id)?.follow(job.id);
    return Boolean(this.shown);
  }

  drop(id) {
    this.videos.delete(id);
    this.draw();
  }
}
