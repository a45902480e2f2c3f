// Watch: one video with its hits, marks and transcript; and what to do where it can't be watched.

import { ApiError, get, isAbort, post, tagged } from '../core/api.js';
import { button, el, fill, icon, iconButton, keyCap } from '../core/dom.js';
import { hasEnded, jobs } from '../core/jobs.js';
import { keys } from '../core/keys.js';
import { problemBox } from '../core/problems.js';
import { formatTime } from '../core/time.js';
import { toasts } from '../core/toast.js';
import { count, formatEstimate, titleOf } from '../core/words.js';
import { isSearch, queryParameters } from '../parts/query.js';
import { forgetVideos } from '../parts/videos.js';
import { bindings } from './watch/keys.js';

/** @typedef {import('../core/router.js').Route} Route */

/** Where the search screen keeps recent searches. */
const RECENT = 'reprise_recent';

/**
 * The recent search with this query, and what it found, such as "17 moments".
 * @param {string} query
 * @returns {{path: string, found: string}|null}
 */
function recentSearch(query) {
  try {
    /** @type {{path: string, found: string}[]} */
    const searches = JSON.parse(localStorage.getItem(RECENT) ?? '[]');
    return searches.find(({ path }) => String(queryParameters(new URLSearchParams(path.slice(2)))) === query) ?? null;
  } catch {
    return null;
  }
}

class Watch {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Video';
    /** @type {import('./watch/viewer.js').Viewer|null} */
    this.viewer = null;
    this.id = '';
    this.stop = new AbortController();
    this.unbind = () => {};
    this.follow = () => this.showJob();
    this.back = el('a', { class: 'btn ghost', href: '/', id: 'back', title: 'Back  Esc', on: { click: (/** @type {MouseEvent} */ event) => this.goBack(event) } });
    this.heading = el('h1', { class: 'clip1' }, 'Video');
    this.facts = el('span', { class: 'dim small num clip1 only-l facts' });
    this.number = el('span', { class: 'small num muted nowrap', id: 'hit-number' });
    this.steps = el('span', { class: 'row' }, this.number,
      iconButton('chevron-left', 'Previous hit', () => this.viewer?.stepHit(-1), { key: 'P' }), iconButton('chevron-right', 'Next hit', () => this.viewer?.stepHit(1), { key: 'N' }));
    this.add = button([icon('list-plus'), 'Add to reel ', keyCap('R')], () => this.viewer?.addToReel(), { class: 'btn only-l', id: 'add-to-reel' });
    this.more = iconButton('ellipsis', 'More', () => this.openMore(), { 'aria-haspopup': 'menu', id: 'more' });
    this.state = el('div', { class: 'watch-state', hidden: true });
    this.body = el('div', { class: 'watch-body' });
    this.element = el('div', { class: 'watch' }, el('header', { class: 'top' }, this.back, this.heading, this.facts, el('span', { class: 'grow' }), this.steps, this.add, this.more), this.state, this.body);
  }

  /** @param {Route} route */
  show(route) {
    this.route = route;
    this.showBack(route.parameters);
    if (this.viewer && this.id === route.id) {
      this.viewer.update(route);
      return;
    }
    this.hide();
    this.id = route.id;
    this.stop = new AbortController();
    this.unbind = keys.add('Player and marks', bindings(() => this.viewer, { back: () => this.goBack() }));
    jobs.addEventListener('change', this.follow);
    this.load(route);
  }

  hide() {
    this.stop.abort();
    this.viewer?.close();
    this.viewer = null;
    this.unbind();
    jobs.removeEventListener('change', this.follow);
    fill(this.body);
    this.state.hidden = true;
  }

  /** @param {Route} route */
  async load(route) {
    const { signal } = this.stop;
    for (const part of [this.steps, this.add, this.more]) part.hidden = true;
    fill(this.facts);
    try {
      // The player's files and the video's facts come at the same time: the first frame is near.
      const [{ Viewer }, { value, tag }] = await Promise.all([import('./watch/viewer.js'), tagged('GET', `/v1/videos/${route.id}`, { signal })]);
      if (signal.aborted) return;
      const viewer = new Viewer(this.page, value, tag);
      this.viewer = viewer;
      viewer.addEventListener('change', () => this.showTop());
      fill(this.body, viewer.element);
      for (const part of [this.add, this.more]) part.hidden = false;
      viewer.start(this.route ?? route);
      this.showTop();
      this.showJob();
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) this.showProblem(error);
    }
  }

  showTop() {
    const { viewer } = this;
    if (!viewer) return;
    const { video, hits, current } = viewer;
    const title = titleOf(video);
    this.heading.textContent = title;
    this.heading.title = title;
    this.title = title;
    document.title = `${title} · reprise`;
    const rate = video.frame_rate && `${Math.round(video.frame_rate * 100) / 100} fps`;
    this.facts.textContent = [video.duration !== null && formatTime(video.duration), rate, viewer.shots.length > 0 && count(viewer.shots.length, 'shot')].filter(Boolean).join(' · ');
    this.steps.hidden = hits.length === 0;
    this.number.textContent = current < 0 ? count(hits.length, 'hit') : `Hit ${current + 1} of ${hits.length}`;
  }

  /** @param {URLSearchParams} parameters */
  showBack(parameters) {
    const query = queryParameters(parameters);
    const asked = isSearch(query);
    const search = asked ? recentSearch(String(query)) : null;
    this.back.href = search?.path ?? (asked ? `/?${query}` : '/library');
    const label = search && /moment/.test(search.found) ? search.found : asked ? 'Results' : 'Library';
    this.back.setAttribute('aria-label', `Back: ${label}`);
    fill(this.back, icon('arrow-left'), el('span', { class: 'only-l' }, label));
  }

  /** Back in the history where that leads to the same place, so that it is as it was left. @param {Event} [event] */
  goBack(event) {
    const { navigation } = /** @type {any} */ (window);
    const before = navigation?.entries?.()[(navigation.currentEntry?.index ?? 0) - 1]?.url;
    const target = new URL(this.back.href);
    const isThere = before && new URL(before).pathname === target.pathname
      && queryParameters(new URL(before).searchParams).toString() === queryParameters(target.searchParams).toString();
    if (isThere) {
      event?.preventDefault();
      history.back();
    } else if (!event) {
      this.page.router.go(target.pathname + target.search);
    }
  }

  async openMore() {
    const { openMore } = await import('./watch/more.js');
    if (this.viewer) openMore(this.more, this.viewer, this.page);
  }

  /** Says how far the ingest of a video is that can't be searched yet, or why it failed. */
  async showJob() {
    const { viewer } = this;
    const { signal } = this.stop;
    if (!viewer || viewer.video.state === 'ready' || !viewer.video.job_id) return;
    const id = viewer.video.job_id;
    /** @type {Api<'Job'>|null} */
    const job = jobs.known.get(id) ?? await get(`/v1/jobs/${id}`).catch(() => null);
    if (signal.aborted || !job) return;
    this.state.hidden = false;
    if (job.state === 'succeeded' && this.route) return this.again();
    if (job.state === 'failed' || job.state === 'cancelled') {
      fill(this.state, problemBox({ message: job.reason ? `This video can't be searched: ${job.reason}` : 'Reading this video was stopped.' }, () => this.retry(job)));
      return;
    }
    const done = Math.round(job.progress * 100);
    fill(this.state, el('div', { class: 'notice', role: 'status' }, icon('clock'),
      el('span', {}, job.state === 'queued' ? 'Waiting to be read. It plays, but is not found yet.' : `Being read: ${done} %${job.eta_s === null || job.eta_s === undefined ? '' : `, ${formatEstimate(job.eta_s)} left`}. It plays, but is not found yet.`),
      el('span', { class: 'bar go grow' }, el('i', { vars: { width: `${done}%` } }))));
    if (!hasEnded(job) && !jobs.known.has(job.id)) jobs.look(job);
  }

  /** @param {Api<'Job'>} job */
  async retry(job) {
    try {
      jobs.look(await post(`/v1/jobs/${job.id}/retry`));
      this.showJob();
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** Loads the same video anew. */
  again() {
    if (!this.route) return;
    const { route } = this;
    const parameters = new URLSearchParams(location.search);
    forgetVideos([route.id]);
    this.hide();
    this.show({ ...route, parameters });
  }

  /** @param {unknown} error */
  async showProblem(error) {
    this.state.hidden = false;
    this.heading.textContent = 'Video';
    if (!(error instanceof ApiError) || error.status !== 404) {
      fill(this.state, problemBox(error, () => this.again()));
      return;
    }
    const { id } = this;
    const { whereIs } = await import('./watch/gone.js');
    const { title, body } = await whereIs(id, this.stop.signal, () => this.again());
    if (id !== this.id) return;
    this.heading.textContent = title;
    fill(this.state, body);
  }

  /** Subtitles go to this video; other files to the library. @param {File[]} files */
  takeFiles(files) {
    return this.viewer?.transcript.takeFiles(files) ?? false;
  }
}

/** @param {import('../main.js').Page} page */
export const make = (page) => new Watch(page);
