// One video while it is watched: joins player, timeline, panel and query box, and keeps marks and time in the address.

import { all, get, search } from '../../core/api.js';
import { el } from '../../core/dom.js';
import { announce } from '../../core/problems.js';
import { reels } from '../../core/reels.js';
import { timeOf, videoPath } from '../../core/router.js';
import { formatRange, formatTime, parseTime, toMilliseconds } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { titleOf } from '../../core/words.js';
import { filmstripOf } from '../../parts/filmstrip.js';
import { opensAt, playsFrom, rangeOf, tell } from '../../parts/hits.js';
import { Player } from '../../parts/player.js';
import { isSearch, queryOf, queryParameters, searchOf } from '../../parts/query.js';
import { TextBoxes } from '../../parts/textbox.js';
import { Transport } from '../../parts/transport.js';
import { Compose } from './compose.js';
import { HitList, Panel, ShotList } from './panel.js';
import { Timeline } from './timeline.js';
import { Transcript } from './transcript.js';

/** @typedef {Api<'Hit'>} Hit */
/** @typedef {import('../../core/router.js').Route} Route */

const HITS = 60;
/** Hits that are listed even if an unrelated gallery would often score as high. */
const LEAST_HITS = 9;
const POINTS = 2000;
const NOTE_MS = 400;
/** A hit counts as passed this long after its start, so that P goes to the one before, seconds. */
const PASSED_S = 0.6;

export class Viewer extends EventTarget {
  /** @param {import('../../main.js').Page} page @param {Api<'Video'>} video @param {string|null} tag its ETag */
  constructor(page, video, tag) {
    super();
    this.page = page;
    this.video = video;
    this.tag = tag;
    /** @type {import('./details.js').Details|null} made when they are first shown */
    this.details = null;
    this.detailsView = el('div');
    /** @type {string|null} name of the space of the scores */
    this.model = null;
    this.stop = new AbortController();
    this.parameters = new URLSearchParams();
    /** @type {string|null} */
    this.asked = null;
    /** @type {string|null} */
    this.searchId = null;
    /** @type {Hit[]} best first */
    this.found = [];
    /** @type {Hit[]} in the order of their numbers */
    this.hits = [];
    this.byTime = true;
    this.showsWeak = false;
    this.current = -1;
    /** @type {Api<'Clip'>[]} */
    this.shots = [];
    /** @type {import('./timeline.js').Marks} */
    this.marks = { start: null, end: null };
    this.noting = 0;
    this.player = new Player(video, { label: titleOf(video) });
    const { player } = this;
    this.boxes = new TextBoxes(player);
    this.stage = el('div', { class: 'stage' });
    this.transport = new Transport(player, {
      onPrevious: () => this.stepHit(-1), onNext: () => this.stepHit(1), onLoop: () => this.toggleLoop(), stage: () => this.stage,
    });
    this.stage.append(player.element, this.transport.element);
    player.element.addEventListener('click', () => player.toggle());
    this.timeline = new Timeline({
      duration: player.duration || 1, frameLength: player.frameLength,
      onSeek: (seconds) => player.seek(seconds), onMarks: (marks) => this.setMarks(marks), onHit: (place) => this.toHit(place),
    });
    this.compose = new Compose({
      video, go: (path) => this.leave(path), onClear: () => this.clearMarks(),
      findHere: (words) => this.leave(videoPath(video.id, player.frameTime, new URLSearchParams({ q: words }))),
    });
    this.hitList = new HitList({
      onHit: (place) => this.toHit(place),
      onOrder: (byTime) => {
        this.byTime = byTime;
        this.order();
      },
      onMore: () => {
        this.showsWeak = true;
        this.order();
      },
    });
    this.shotList = new ShotList((clip) => this.seek(clip.start));
    this.transcript = new Transcript(video, {
      onSeek: (seconds) => this.seek(seconds), onMark: (start, end) => this.setMarks({ start, end }), onTracks: () => player.loadTracks(), onCorrect: () => player.pause(),
    });
    this.panel = new Panel([
      { name: 'hits', label: 'Hits', view: this.hitList.element },
      { name: 'transcript', label: 'Transcript', view: this.transcript.element, shown: () => this.transcript.shown(player.time) },
      { name: 'shots', label: 'Shots', view: this.shotList.element, shown: () => this.shotList.shown() },
      { name: 'details', label: 'Details', view: this.detailsView, shown: () => this.showDetails().catch((error) => toasts.problem(error)) },
    ], () => this.noteSoon());
    this.element = el('div', { class: 'desk' }, this.stage, this.panel.element, el('div', { class: 'under' }, this.timeline.element, this.compose.element));
    player.addEventListener('time', () => this.showTime());
    player.addEventListener('open', () => this.timeline.setDuration(player.duration));
    player.addEventListener('change', () => { if (player.paused) this.noteSoon(); });
  }

  /** @param {Api<'Video'>} video */
  changed(video) {
    this.video = video;
    this.tell();
  }

  async showDetails() {
    const { Details } = await import('./details.js');
    if (!this.details) {
      this.details = new Details(this.video, this.tag, (changed) => this.changed(changed));
      this.detailsView.append(this.details.element);
    }
    this.details.setHit(this.hits[this.current] ?? null, this.model);
  }

  tell() {
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Route} route */
  start(route) {
    this.update(route, true);
    this.loadParts();
  }

  /** Takes another address of the same video. @param {Route} route @param {boolean} [first] */
  update(route, first = false) {
    const { parameters } = route;
    this.parameters = parameters;
    const [start, end] = ['in', 'out'].map((name) => parseTime(parameters.get(name) ?? ''));
    this.setMarks({ start, end }, false);
    const at = timeOf(parameters) ?? (first ? start : null);
    if (at !== null) this.seek(at);
    else if (first) this.player.seek(0);
    const query = queryParameters(parameters).toString();
    const isOther = query !== this.asked;
    if (isOther) {
      this.asked = query;
      this.ask();
    }
    const tab = parameters.get('tab') ?? (isOther ? this.firstTab() : null);
    if (tab) this.panel.choose(tab, false);
    if (first && start !== null && end !== null) this.timeline.fit({ start, end });
  }

  firstTab() {
    return isSearch(this.parameters) ? 'hits' : 'transcript';
  }

  async loadParts() {
    const { id } = this.video;
    const { signal } = this.stop;
    filmstripOf(id).then((strip) => {
      if (signal.aborted || !strip) return;
      this.timeline.setStrip(strip);
      this.compose.strip = strip;
      if (this.range) this.compose.setRange(this.range);
    });
    this.transcript.load(signal).then((some) => {
      if (!some && this.panel.current === 'transcript' && !this.parameters.has('tab')) this.panel.choose('shots', false);
    });
    try {
      /** @type {Api<'Clip'>[]} */
      const clips = await all(`/v1/videos/${id}/clips`, { signal });
      this.shots = clips.filter(({ level }) => level === 'clip');
    } catch {
      // The video plays without them.
    }
    if (signal.aborted) return;
    this.shotList.set(this.shots);
    this.panel.count('shots', this.shots.length);
    this.timeline.setCuts(this.cuts);
    this.showTime();
    this.tell();
  }

  /** Asks for the hits of the address's query in this video, and for its score over time. */
  async ask() {
    const parameters = queryParameters(this.parameters);
    this.found = [];
    this.showsWeak = false;
    this.searchId = null;
    this.timeline.setScores(null);
    this.transcript.setWords(parameters.get('q') ?? parameters.get('mod') ?? '');
    if (!isSearch(parameters)) {
      this.order();
      this.hitList.say('Nothing is asked yet. Search for words below, or mark a stretch and find more like it.');
      this.panel.count('hits', null);
      return;
    }
    this.hitList.setQuery(parameters);
    this.hitList.wait();
    const asked = this.asked;
    const isOld = () => this.stop.signal.aborted || asked !== this.asked;
    this.score(parameters).then((scored) => {
      if (isOld()) return;
      this.timeline.setScores(scored);
      this.model = scored?.space ?? null;
    });
    parameters.set('video', this.video.id);
    const request = searchOf(parameters);
    if (!request) {
      this.hitList.say('The file of this query is not in this tab any more. Choose it again on the search page.');
      return;
    }
    const { near_duplicates: _folding, facets: _facets, ...body } = request.body;
    try {
      const answer = await search({ ...body, limit: HITS }, request.file, this.stop.signal);
      if (isOld()) return;
      this.searchId = answer.search_id ?? null;
      this.found = answer.results;
      this.order();
      if (timeOf(this.parameters) === null && this.found.length > 0 && !this.parameters.has('in')) this.seek(playsFrom(this.found[0]));
    } catch (error) {
      if (!isOld()) this.hitList.fail(error, () => this.ask());
    }
  }

  /** @param {URLSearchParams} parameters @returns {Promise<Api<'Timeline'>|null>} */
  async score(parameters) {
    const query = queryOf(parameters)?.query;
    const { text, clip, clip_id: clipId, modification } = query ?? {};
    if (!text && !clip && !clipId) return null;
    const asked = text ? { text } : { ...(clip ? { clip_video_id: clip.video_id, start: clip.start, end: clip.end } : { clip_id: clipId }), modification };
    return get(`/v1/videos/${this.video.id}/timeline`, { query: { ...asked, points: POINTS }, signal: this.stop.signal }).catch(() => null);
  }

  /** Puts the hits in their order; their numbers follow it. */
  order() {
    const strong = this.found.filter(({ weak }) => !weak).length;
    const shown = this.showsWeak ? this.found : this.found.slice(0, Math.max(LEAST_HITS, strong));
    this.hits = this.byTime ? [...shown].sort((one, other) => one.start - other.start) : shown;
    if (this.found.length === 0) this.hitList.say('Nothing in this video matches.');
    else this.hitList.set(this.hits, this.byTime, this.found.length - shown.length);
    this.panel.count('hits', this.hits.length);
    this.timeline.setHits(this.hits);
    this.transcript.setHits(this.hits);
    this.current = -1;
    this.showTime();
    this.tell();
  }

  showTime() {
    const { player } = this;
    const time = player.frameTime;
    this.timeline.setTime(player.time, !player.paused);
    const current = this.hits.findIndex(({ start, end }) => time >= start - 0.002 && time < end);
    this.boxes.show(this.hits[current] ?? null, time);
    if (current !== this.current) {
      this.current = current;
      this.hitList.setCurrent(current);
      this.details?.setHit(this.hits[current] ?? null, this.model);
      this.tell();
    }
    this.timeline.setCurrent(current);
    this.shotList.setCurrent(this.shots.indexOf(/** @type {Api<'Clip'>} */ (this.shotAt(time))));
    // The frame on screen may begin before the line that was gone to.
    this.transcript.setTime(player.time);
    if (player.paused) this.noteSoon();
  }

  /** @param {number} seconds */
  seek(seconds) {
    this.player.seek(seconds);
    this.timeline.reveal(seconds);
  }

  /** @param {number} place */
  toHit(place) {
    const hit = this.hits[place];
    if (!hit) return false;
    this.seek(opensAt(hit));
    announce(`Hit ${place + 1} of ${this.hits.length}, ${formatTime(hit.start)}`);
    tell(this.searchId, hit, 'opened');
    return true;
  }

  /** To the next hit in time, or the one before. @param {number} direction */
  stepHit(direction) {
    const { time } = this.player;
    const sorted = [...this.hits].sort((one, other) => one.start - other.start);
    const next = direction > 0
      ? sorted.find((hit) => opensAt(hit) > time + 0.05)
      : sorted.findLast((hit) => opensAt(hit) < time - (this.player.paused ? 0.05 : PASSED_S));
    return next ? this.toHit(this.hits.indexOf(next)) : false;
  }

  get cuts() {
    return this.shots.filter(({ given }) => !given).map(({ start }) => start).filter((start) => start > 0);
  }

  /** @param {number} direction */
  stepCut(direction) {
    const { time } = this.player;
    const cuts = [0, ...this.cuts, Math.max(0, this.player.duration - this.player.frameLength)];
    const next = direction > 0 ? cuts.find((at) => at > time + 0.01) : cuts.findLast((at) => at < time - 0.01);
    if (next !== undefined) this.seek(next);
  }

  /** @param {number} time */
  shotAt(time) {
    return this.shots.find(({ start, end, given }) => !given && time >= start - 0.002 && time < end) ?? null;
  }

  /** The marked range; null unless both marks are set. */
  get range() {
    const { start, end } = this.marks;
    return start !== null && end !== null ? { start, end } : null;
  }

  /** @param {import('./timeline.js').Marks} marks @param {boolean} [note] */
  setMarks({ start, end }, note = true) {
    this.marks = start !== null && end !== null && end <= start ? { start, end: null } : { start, end };
    this.timeline.setMarks(this.marks);
    this.compose.setRange(this.range);
    if (this.player.loop) this.player.loop = this.range;
    this.transport.showState();
    if (note) this.noteSoon();
  }

  markIn() {
    const start = toMilliseconds(this.player.frameTime);
    const { end } = this.marks;
    this.setMarks({ start, end: end !== null && end > start ? end : null });
    announce(`In at ${formatTime(start, { fraction: true })}`);
  }

  /** The frame on screen is the last one of the range: its end is exclusive. */
  markOut() {
    const { player } = this;
    const end = Math.min(player.duration, toMilliseconds(Math.floor((player.frame + 1) * player.frameLength * 1000 + 0.001) / 1000));
    const { start } = this.marks;
    this.setMarks({ start: start !== null && start < end ? start : null, end });
    announce(`Out at ${formatTime(end, { fraction: true })}`);
  }

  markShot() {
    const shot = this.shotAt(this.player.frameTime);
    if (!shot) return false;
    this.setMarks({ start: shot.start, end: shot.end });
    announce(`Marked ${formatRange(shot.start, shot.end)}`);
    return true;
  }

  clearMarks() {
    if (this.marks.start === null && this.marks.end === null) return false;
    const before = this.marks;
    this.player.loop = null;
    this.setMarks({ start: null, end: null });
    toasts.show('Cleared the marks.', { undo: () => this.setMarks(before) });
    return true;
  }

  /** @param {'start'|'end'} edge */
  goTo(edge) {
    const at = this.marks[edge];
    if (at === null) return false;
    this.seek(edge === 'end' ? at - this.player.frameLength : at);
    return true;
  }

  /** Plays the range again and again: the marked one, else the hit or the shot under the playhead. */
  toggleLoop() {
    const { player } = this;
    player.loop = player.loop ? null : this.chosen();
    if (player.loop && (player.time < player.loop.start || player.time >= player.loop.end)) player.seek(player.loop.start);
    if (player.loop) player.play();
    this.transport.showState();
  }

  /** What R adds: the marked range, else the hit, else the shot under the playhead. */
  chosen() {
    const hit = this.hits[this.current];
    const found = this.range ?? (hit && { start: hit.start, end: hit.end }) ?? this.shotAt(this.player.frameTime);
    return found ? { start: found.start, end: found.end } : null;
  }

  async addToReel() {
    const chosen = this.chosen();
    if (!chosen) {
      toasts.show('Nothing is marked here. I and O mark a stretch.');
      return;
    }
    const hit = this.hits[this.current];
    try {
      const undo = await reels.add([{ video_id: this.video.id, ...chosen }]);
      toasts.show(`Added ${formatRange(chosen.start, chosen.end)} to ${reels.open?.name ?? 'the reel'}.`, { undo });
      if (hit && rangeOf(hit).start === chosen.start) tell(this.searchId, hit, 'relevant');
    } catch (error) {
      toasts.problem(error);
    }
  }

  zoomToMarks() {
    const range = this.range ?? this.chosen();
    if (range) this.timeline.fit(range);
  }

  /** The address of what is seen now. */
  get path() {
    const parameters = queryParameters(this.parameters);
    for (const [name, at] of /** @type {[string, number|null][]} */ ([['in', this.marks.start], ['out', this.marks.end]])) {
      if (at !== null) parameters.set(name, String(at));
    }
    if (this.panel.current !== this.firstTab()) parameters.set('tab', this.panel.current);
    return videoPath(this.video.id, this.player.frameTime, parameters);
  }

  noteSoon() {
    clearTimeout(this.noting);
    this.noting = window.setTimeout(() => this.note(), NOTE_MS);
  }

  note() {
    clearTimeout(this.noting);
    // Another address may be shown already, while its screen is still loading.
    if (!this.stop.signal.aborted && location.pathname === `/v/${this.video.id}`) this.page.router.note(this.path);
  }

  /** Goes elsewhere; Back returns to what is seen now. @param {string} path */
  leave(path) {
    this.note();
    this.page.router.go(path);
  }

  close() {
    clearTimeout(this.noting);
    this.stop.abort();
    this.player.close();
    this.timeline.close();
    this.compose.close();
  }
}
