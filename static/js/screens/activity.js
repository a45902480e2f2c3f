// Activity: what the server works on, what failed and why, and what ended.

import { all, get, isAbort, post } from '../core/api.js';
import { button, el, fill, icon } from '../core/dom.js';
import { jobs } from '../core/jobs.js';
import { announce } from '../core/problems.js';
import { count, formatNumber } from '../core/words.js';
import { changed, choice, load, selectOf, table, topBar } from '../parts/frame.js';
import { activeRow, failedRow, KINDS, pastRow, speedOf } from './activity/rows.js';

/** @typedef {Api<'Job'>} Job */

const PAGE = 50;
/** A new model queues many jobs: behind the first page more are read at once. */
const MOST_READ = 500;
const MOST_FAILED = 200;
/** Queued jobs that are shown: a new model queues one for each video. */
const MOST_QUEUED = 10;

class Activity {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Activity';
    this.note = el('span', { class: 'dim small num' });
    this.filters = el('div', { class: 'row wrap' });
    this.body = el('div');
    this.element = el('div', {}, topBar('Activity', this.note), el('div', { class: 'page measured gaps' }, this.filters, this.body));
    this.running = el('section', { id: 'running' });
    this.queued = el('section', { id: 'queued' });
    this.failures = el('section', { id: 'failed' });
    this.history = el('section', { id: 'history' });
    /** @type {Job[]} */
    this.failed = [];
    /** @type {Job[]} */
    this.past = [];
    /** @type {string|null|undefined} of the next page of the history; null after the last */
    this.cursor = null;
    /** @type {Map<string, ReturnType<typeof activeRow>>} */
    this.rows = new Map();
    this.kind = '';
    this.state = '';
    this.stop = new AbortController();
    this.onChange = () => this.drawActive();
    this.onEnded = (/** @type {any} */ { detail }) => this.ended(detail);
  }

  /** @param {import('../core/router.js').Route} route */
  show({ parameters }) {
    this.hide();
    this.stop = new AbortController();
    this.kind = parameters.get('kind') ?? '';
    this.state = parameters.get('state') ?? '';
    const to = (/** @type {Record<string, string>} */ changes) => changed('/activity', parameters, changes);
    const tab = parameters.get('tab');
    const tabs = /** @type {[string, string, boolean][]} */ ([['Jobs', ''], ['Alerts', 'alerts'], ['Webhooks', 'webhooks']].map(([text, name]) => [text, name ? `/activity?tab=${name}` : '/activity', name === (tab ?? '')]));
    fill(this.body);
    if (tab === 'alerts' || tab === 'webhooks') {
      fill(this.filters, choice('Part', tabs));
      load(this.body, this.stop.signal, async () => (await import('./activity/subscriptions.js')).subscriptions(tab, this.stop.signal));
      return;
    }
    fill(this.filters, choice('Part', tabs), el('span', { class: 'grow' }),
      choice('State', [['All', ''], ['Running', 'running'], ['Failed', 'failed'], ['History', 'ended']].map(([text, state]) => [text, to({ state }), state === this.state])),
      selectOf('Kind', [['', 'All kinds'], ...Object.entries(KINDS)], this.kind, (kind) => this.page.router.go(to({ kind }))));
    jobs.addEventListener('change', this.onChange);
    jobs.addEventListener('ended', this.onEnded);
    load(this.body, this.stop.signal, () => this.read());
    jobs.look();
  }

  hide() {
    this.stop.abort();
    jobs.removeEventListener('change', this.onChange);
    jobs.removeEventListener('ended', this.onEnded);
  }

  /** @param {string} part */
  wants(part) {
    return !this.state || this.state === part;
  }

  async read() {
    this.past = [];
    this.cursor = undefined;
    const query = { state: 'failed', kind: this.kind, limit: MOST_FAILED };
    [this.failed] = await Promise.all([
      this.wants('failed') ? all('/v1/jobs', { query, most: MOST_FAILED, signal: this.stop.signal }) : [],
      this.wants('ended') && this.more()]);
    this.drawFailed();
    this.drawPast();
    return el('div', { class: 'gaps' }, this.wants('running') && [this.running, this.queued], this.wants('failed') && this.failures, this.wants('ended') && this.history);
  }

  /** Reads on in the history. The list has jobs in all states: pages without an ended one are passed over. */
  async more() {
    const { length } = this.past;
    while (this.cursor !== null && this.past.length === length) {
      const query = { kind: this.kind, limit: this.cursor ? MOST_READ : PAGE, cursor: this.cursor };
      const page = await get('/v1/jobs', { query, signal: this.stop.signal });
      this.past.push(...page.items.filter((/** @type {Job} */ { state }) => state === 'succeeded' || state === 'cancelled'));
      this.cursor = page.next_cursor ?? null;
    }
  }

  drawActive() {
    const active = jobs.active.filter(({ kind }) => !this.kind || kind === this.kind);
    const [running, queued] = ['running', 'queued'].map((state) => active.filter((job) => job.state === state));
    this.note.textContent = [running.length > 0 && `${running.length} running`, this.failed.length > 0 && `${this.failed.length} failed`].filter(Boolean).join(', ');
    const speed = Math.round(running.reduce((sum, job) => sum + (speedOf(job) ?? 0), 0));
    this.drawList(this.running, running, 'Running', 'live', speed > 0 && `${formatNumber(speed)} frames/s in all`);
    this.drawList(this.queued, queued.slice(0, MOST_QUEUED), 'Queued', '', queued.length > MOST_QUEUED && `${queued.length - MOST_QUEUED} more wait`);
    this.queued.hidden = queued.length === 0;
    for (const id of this.rows.keys()) if (!active.some((job) => job.id === id)) this.rows.delete(id);
  }

  /**
   * Rows that stay keep their elements, so that the focus stays on their buttons.
   * @param {HTMLElement} section
   * @param {Job[]} items
   * @param {string} title
   * @param {string} dot
   * @param {string|false} [note]
   */
  drawList(section, items, title, dot, note) {
    const rows = items.map((job) => {
      const row = this.rows.get(job.id) ?? activeRow(job, () => this.cancel(job));
      this.rows.set(job.id, row);
      row.update(job);
      return row.element;
    });
    const list = section.querySelector('ul') ?? el('ul', { class: 'panel' });
    const head = heading(title, dot, items.length, note && el('span', { class: 'dim small num' }, note));
    if (list.parentNode) section.firstElementChild?.replaceWith(head);
    else fill(section, head, list);
    const isSame = rows.length > 0 && rows.length === list.children.length && rows.every((row, at) => list.children[at] === row);
    if (!isSame) fill(list, rows.length > 0 ? rows : el('li', { class: 'none' }, 'Nothing runs.'));
  }

  drawFailed() {
    const { failed } = this;
    const again = failed.filter(({ refused_file: refused }) => !refused);
    this.failures.hidden = failed.length === 0 && this.state !== 'failed';
    fill(this.failures, heading('Failed', 'bad', failed.length, again.length > 1 && button([icon('rotate-ccw', 's'), 'Retry all'], () => this.retry(again), { class: 'btn ghost' })),
      el('ul', { class: 'panel' }, failed.length > 0
        ? failed.map((job) => failedRow(job, () => this.retry([job]), this.page.addFiles)) : el('li', { class: 'none' }, 'Nothing failed.')));
    this.drawActive();
  }

  drawPast() {
    fill(this.history, heading('History', '', 0), this.past.length > 0
      ? el('div', { class: 'panel' }, table('History', ['Video', 'What', '>Frames', '>Took, with waiting', '>When'], this.past.map(pastRow), 'five'))
      : el('p', { class: 'panel none' }, 'Nothing has ended yet. Videos that you add show up here.'),
    this.cursor && button('Show more', () => this.more().then(() => this.drawPast(), (error) => { if (!isAbort(error)) this.page.toasts.problem(error); })));
  }

  /** @param {Job} job that has ended just now */
  ended(job) {
    if (this.kind && job.kind !== this.kind) return;
    const others = (/** @type {Job[]} */ list) => [job, ...list.filter(({ id }) => id !== job.id)];
    if (job.state === 'failed') {
      this.failed = others(this.failed);
      this.drawFailed();
      announce('A job has failed.');
    } else {
      this.past = others(this.past);
      this.drawPast();
    }
  }

  /** @param {Job} job */
  async cancel(job) {
    try {
      await post(`/v1/jobs/${job.id}/cancel`);
      jobs.look();
      this.page.toasts.show('Cancelled.', { undo: () => this.again(job) });
    } catch (error) {
      this.page.toasts.problem(error);
    }
  }

  /** @param {Job} job */
  async again(job) {
    jobs.look(await post(`/v1/jobs/${job.id}/retry`));
  }

  /**
   * Takes jobs from the list at once; those that can't be queued again come back.
   * @param {Job[]} which
   */
  async retry(which) {
    this.failed = this.failed.filter((job) => !which.includes(job));
    this.drawFailed();
    const results = await Promise.allSettled(which.map((job) => this.again(job)));
    const back = which.filter((_, at) => results[at].status === 'rejected');
    if (back.length === 0) return this.page.toasts.show(`${count(which.length, 'job')} queued again.`);
    this.failed = [...back, ...this.failed];
    this.drawFailed();
    this.page.toasts.problem(/** @type {any} */ (results.find(({ status }) => status === 'rejected')).reason);
  }
}

/**
 * @param {string} title
 * @param {string} dot
 * @param {number} number
 * @param {import('../core/dom.js').Children} [aside]
 */
const heading = (title, dot, number, aside) => el('div', { class: 'row section-head' }, el('h2', { class: 'row grow' },
  number > 0 && el('span', { class: `dot ${dot}` }), title, number > 0 && el('span', { class: 'count' }, number < 100 ? number : '100 or more')), aside);

/** @param {import('../main.js').Page} page */
export const make = (page) => new Activity(page);
