// A video's own page: the player, what the query finds in it, a range to search with, its clips and subtitles.

import { getJob, getVideo, listClips } from './api.js';
import { button, el, fill, picture } from './dom.js';
import { VideoHits } from './hits.js';
import { isTerminal } from './jobs.js';
import { describeJob, describeMedia, warningList } from './library.js';
import { Player } from './player.js';
import { problemBox } from './problems.js';
import { queryParameters } from './query.js';
import { RangeMarker } from './range.js';
import { SubtitlePanel } from './subtitles.js';
import { formatRange, formatTime, toMilliseconds } from './time.js';

const CLIPS = 200;
const JUMP_S = 5;

export class WatchView {
  constructor({ id, at, parameters }, { router, jobs, spaces, files }) {
    Object.assign(this, { id, at, parameters, router, jobs, spaces, files });
    this.title = 'Video';
    this.stop = new AbortController();
    this.rows = [];
    this.clips = [];
    this.heading = el('h1', { tabindex: -1 }, 'Loading…');
    this.facts = el('p', { class: 'facts' });
    this.stage = el('div', { class: 'stack' });
    this.side = el('section', { class: 'clips', 'aria-label': 'Clips' });
    this.element = el('div', {},
      el('div', { class: 'heading' }, this.heading, this.facts),
      el('div', { class: 'watch' }, this.stage, this.side));
  }

  show() {
    document.addEventListener('keydown', this.onKey);
    this.load();
  }

  hide() {
    document.removeEventListener('keydown', this.onKey);
    this.close();
  }

  close() {
    this.stop.abort();
    this.unfollow?.();
    this.hits?.close();
    this.player?.close();
  }

  /** The same video at another time, or with another query: no reload. */
  goTo({ at, parameters }) {
    const isOtherQuery = String(queryParameters(parameters)) !== String(queryParameters(this.parameters));
    const stays = isOtherQuery && at === this.at;
    Object.assign(this, { at, parameters });
    this.hits?.show(parameters);
    if (this.player && at !== null && !stays) this.player.seek(at, { play: true });
  }

  /** Dropped subtitles are for this video; answers the other files. */
  takeFiles(files) {
    return this.subtitles ? this.subtitles.take(files) : files;
  }

  async load() {
    try {
      const video = await getVideo(this.id, this.stop.signal);
      this.video = video;
      this.title = video.title;
      this.heading.textContent = video.title;
      document.title = `${video.title} – reprise`;
      this.drawFacts();
      if (video.state === 'ready') this.drawReady();
      else await this.drawUnready();
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.heading.textContent = error.status === 404 ? 'No such video' : 'Something is wrong';
      fill(this.stage, problemBox(error, error.status === 404 ? null : () => this.load()));
    }
  }

  drawFacts() {
    const { video } = this;
    fill(this.facts, Number.isFinite(video.duration) && el('span', {}, formatTime(video.duration)),
      describeMedia(video).map((fact) => el('span', {}, fact)), warningList(video));
  }

  /** Not searchable yet, or never: say why, and come back when the job ends. */
  async drawUnready() {
    const job = this.video.job_id ? await getJob(this.video.job_id) : null;
    const status = el('p', { class: 'state' });
    fill(this.stage, el('div', { class: 'empty' }, status));
    if (this.video.state === 'failed' || !job) {
      fill(this.stage, el('div', { class: 'problem' },
        el('p', {}, `This video could not be analysed${job?.reason ? `: ${job.reason}` : '.'}`)));
      return;
    }
    this.unfollow = this.jobs.follow(job.id, (now) => {
      status.textContent = now.state === 'cancelled' ? 'The analysis was cancelled.' : describeJob(now);
      if (isTerminal(now) && now.state !== 'cancelled' && !this.stop.signal.aborted) this.load();
    });
  }

  drawReady() {
    const { video } = this;
    this.player = new Player(video);
    this.clock = el('span', { class: 'clock muted' });
    this.range = new RangeMarker({
      duration: Math.max(video.duration ?? 0, 0.001),
      frame: video.frame_rate > 0 ? 1 / video.frame_rate : 0.04,
      now: () => this.player.time,
      onSeek: (at) => this.player.seek(at),
      onChange: (range) => { this.searchButton.disabled = !range; },
    });
    this.hits = new VideoHits({
      video,
      files: this.files,
      now: () => this.player.time,
      onSeek: (at) => this.player.seek(at, { play: !this.player.media.paused }),
      onPlay: (at) => this.player.seek(at, { play: true }),
    });
    this.subtitles = new SubtitlePanel(video, () => {
      this.player.showCaptions();
      this.hits.again();
    });
    fill(this.stage, this.player.element, this.hits.element, this.rangePanel(), this.subtitles.element);
    for (const event of ['timeupdate', 'seeking', 'loadedmetadata']) {
      this.player.media.addEventListener(event, () => this.drawTime());
    }
    if (this.at !== null) this.player.seek(this.at, { play: true });
    this.drawTime();
    this.hits.show(this.parameters);
    this.subtitles.load();
    this.loadClips();
  }

  rangePanel() {
    this.searchButton = el('button', { type: 'submit', class: 'button primary', disabled: true, id: 'search-range' }, 'Search this');
    const input = el('input', { type: 'text', name: 'modification', placeholder: 'the same, but at night' });
    const field = el('label', { class: 'field' }, el('span', {}, 'What should be different (optional)'), input);
    return el('section', { class: 'range', 'aria-label': 'Search by a range of this video' },
      this.range.element,
      el('form', {
        on: {
          submit: (event) => {
            event.preventDefault();
            this.searchRange(input.value.trim());
          },
        },
      }, this.spaces.canCompose() && field, this.searchButton, this.clock));
  }

  searchRange(modification) {
    if (!this.range.value) return;
    const { start, end } = this.range.value;
    const query = new URLSearchParams({ clip: this.id, start, end });
    if (modification) query.set('mod', modification);
    this.router.go(`/?${query}`);
  }

  drawTime() {
    const now = this.player.time;
    this.clock.textContent = formatTime(toMilliseconds(now), { fraction: true });
    this.range.setHead(now);
    this.hits.setHead(now);
    const current = this.clips.findIndex((clip) => clip.start <= now && now < clip.end);
    if (current === this.current) return;
    this.rows[this.current]?.removeAttribute('aria-current');
    this.rows[current]?.setAttribute('aria-current', 'true');
    this.current = current;
  }

  async loadClips() {
    const list = el('ol', { class: 'clip-list' });
    const more = button('Show more clips', () => load(), { class: 'button small' });
    const count = el('span', { class: 'muted small' });
    fill(this.side, el('h2', {}, 'Clips ', count), list, more);
    let cursor = null;
    const load = async () => {
      more.disabled = true;
      try {
        const page = await listClips(this.id, { limit: CLIPS, cursor, signal: this.stop.signal });
        cursor = page.next_cursor;
        this.addClips(page.items, list);
        count.textContent = cursor ? `${this.clips.length} of ${this.video.clips}` : String(this.clips.length);
        more.hidden = !cursor;
      } catch (error) {
        if (error.name !== 'AbortError') this.side.append(problemBox(error));
      } finally {
        more.disabled = false;
      }
    };
    await load();
  }

  addClips(clips, list) {
    for (const clip of clips) {
      const row = this.clipRow(clip);
      this.rows.push(row);
      list.append(row);
    }
    this.clips.push(...clips);
    this.range.setClips(this.clips);
    this.current = undefined;
    this.drawTime();
  }

  clipRow(clip) {
    const range = formatRange(clip.start, clip.end);
    return el('li', { class: 'clip', data: { start: clip.start, end: clip.end } },
      el('button', {
        type: 'button', class: 'jump', 'aria-label': `Play ${range}`,
        on: { click: () => this.player.seek(clip.start, { play: true }) },
      },
      picture(clip.thumbnail_url, ''),
      el('span', { class: 'when' }, range, clip.given && el('span', { class: 'muted small' }, ' given'))),
      button('Mark', () => this.range.set(clip.start, clip.end), { class: 'button small plain', 'aria-label': `Mark ${range}` }));
  }

  /** Keys of the player; a field or a control that has the focus keeps its own. */
  onKey = (event) => {
    if (!this.player || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector('dialog[open]')) return;
    const target = event.target;
    if (target.matches('input, textarea, select')) return;
    const anywhere = {
      '[': () => this.range.markStart(),
      ']': () => this.range.markEnd(),
      Escape: () => this.range.clear(),
      ',': () => this.step(-this.range.frame),
      '.': () => this.step(this.range.frame),
      n: () => this.hits.step(1),
      p: () => this.hits.step(-1),
    };
    const unclaimed = {
      ' ': () => this.player.togglePlay(),
      ArrowLeft: () => this.player.seek(this.player.time - JUMP_S, { play: !this.player.media.paused }),
      ArrowRight: () => this.player.seek(this.player.time + JUMP_S, { play: !this.player.media.paused }),
    };
    const claimed = target.matches('button, a, summary, video');
    const action = anywhere[event.key] ?? (claimed ? null : unclaimed[event.key]);
    if (!action) return;
    event.preventDefault();
    action();
  };

  /** One frame on or back, standing still. */
  step(seconds) {
    this.player.media.pause();
    this.player.seek(this.player.time + seconds);
  }
}
