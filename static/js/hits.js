// What the address's query finds in one video: its score over time, its hits, and steps from hit to hit.

import { getTimeline, search } from './api.js';
import { button, el, fill } from './dom.js';
import { opensAt, playsFrom, snippetNodes, spokenEvidence } from './evidence.js';
import { announce, describe } from './problems.js';
import { isSearch, queryOf, queryParameters, sourcesOf, timelineQuery } from './query.js';
import { formatTime } from './time.js';
import { Timeline } from './timeline.js';

const HITS = 10;
/** Asked for: many clips and moments in them may show the same slide. */
const ASKED = 200;
const SAME_S = 1;
/** Share of the video below which two places can't be told apart on the timeline. */
const SAME_SHARE = 0.01;
const POINTS = 600;
/** For so long after its first moment a hit counts as just reached: one step back goes to the hit before it. */
const REACHED_S = 3;
/** A seek may end a little before where it was sent. */
const SLACK_S = 0.05;

/** The best hits without repeats: of what is seen, near a better hit; of what is said, the same words once more. */
export function distinctHits(ranked, duration) {
  const overlap = (one, other) => one.start < other.end && other.start < one.end;
  const repeats = (hit, better) => {
    const apart = Math.abs(opensAt(hit) - opensAt(better));
    const near = spokenEvidence(hit) ? 0 : duration * SAME_SHARE;
    return apart < near || (apart < SAME_S && overlap(hit, better));
  };
  const kept = [];
  for (const hit of ranked) if (!kept.some((better) => repeats(hit, better))) kept.push(hit);
  return kept.slice(0, HITS);
}

export class VideoHits {
  /**
   * @param {object} options
   * @param {object} options.video as GET /v1/videos/{id}
   * @param {() => number} options.now the time on screen
   * @param {(seconds: number) => void} options.onSeek goes there and stays or plays as before
   * @param {(seconds: number) => void} options.onPlay goes there and plays
   */
  constructor({ video, files, now, onSeek, onPlay }) {
    Object.assign(this, { video, files, now, onPlay });
    this.stop = new AbortController();
    this.hits = [];
    this.chosen = -1;
    this.timeline = new Timeline({
      duration: Math.max(video.duration ?? 0, 0.001), onSeek, onHit: (place) => this.go(place),
    });
    this.status = el('p', { class: 'hit-status' });
    this.steps = el('div', { class: 'row' },
      button(['Previous hit ', el('kbd', {}, 'p')], () => this.step(-1), { class: 'button small', id: 'previous-hit', 'aria-keyshortcuts': 'p' }),
      button(['Next hit ', el('kbd', {}, 'n')], () => this.step(1), { class: 'button small', id: 'next-hit', 'aria-keyshortcuts': 'n' }));
    this.element = el('section', { class: 'video-hits', 'aria-label': 'Hits in this video', hidden: true },
      this.timeline.element, this.steps, this.status);
  }

  /** Shows what the query of an address finds here; the same query is not asked twice. */
  show(parameters) {
    const asked = String(queryParameters(parameters));
    if (asked === this.asked) return;
    this.asked = asked;
    this.parameters = parameters;
    this.again();
  }

  /** Asks again: what is said in the video may have changed. */
  async again() {
    this.close();
    this.stop = new AbortController();
    const wanted = isSearch(this.parameters) ? queryOf(this.parameters, this.files) : null;
    this.element.hidden = !wanted;
    if (!wanted) return;
    this.setHits([]);
    this.timeline.setScores(null);
    fill(this.status, 'Searching this video…');
    try {
      await this.ask(wanted, this.stop.signal);
    } catch (error) {
      if (error.name !== 'AbortError') fill(this.status, describe(error));
    }
  }

  async ask({ query, file }, signal) {
    const body = {
      query, limit: ASKED, filter: { field: 'video_id', eq: this.video.id }, ...sourcesOf(this.parameters),
    };
    const answer = await search(body, file, signal);
    this.setHits(distinctHits(answer.results, this.video.duration ?? 0));
    const words = timelineQuery(query);
    // Pictures that had no say in the ranking have none in the picture of it.
    if (words && answer.query_info?.weights?.visual) {
      const scored = await getTimeline(this.video.id, { ...words, points: POINTS }, signal);
      this.timeline.setScores(scored);
      this.label('The score of the query over the video. ');
    }
  }

  setHits(hits) {
    this.hits = [...hits].sort((one, other) => playsFrom(one) - playsFrom(other));
    this.chosen = -1;
    this.drawn = null;
    this.timeline.setHits(this.hits);
    this.steps.hidden = this.hits.length === 0;
    this.label('');
    this.setHead(this.now());
  }

  label(scores) {
    const best = this.hits.find((hit) => hit.rank === 1);
    const found = best ? `${this.count()}, the best at ${formatTime(opensAt(best))}` : this.count();
    this.timeline.setLabel(`${scores}${found}`);
  }

  count() {
    return this.hits.length === 1 ? '1 hit in this video' : `${this.hits.length || 'No'} hits in this video`;
  }

  setHead(seconds) {
    this.timeline.setHead(seconds);
    const current = this.playing(seconds);
    if (current === this.drawn) return;
    this.drawn = current;
    this.timeline.setCurrent(current);
    fill(this.status, current < 0 ? this.count() : this.describe(current));
  }

  describe(place) {
    const hit = this.hits[place];
    const said = spokenEvidence(hit);
    return [`Hit ${place + 1} of ${this.hits.length}, ${formatTime(opensAt(hit))}`,
      said && [': ', el('span', { class: 'evidence' }, '“', snippetNodes(said.text), '”')]];
  }

  /** The hit that was just reached; -1 for none. Two may begin together: the chosen one counts. */
  reached(now) {
    const isReached = (hit) => hit && playsFrom(hit) - SLACK_S <= now && now < playsFrom(hit) + REACHED_S;
    return isReached(this.hits[this.chosen]) ? this.chosen : this.hits.findLastIndex(isReached);
  }

  /** The hit that is on screen, or was just reached; -1 for none. */
  playing(now) {
    const reached = this.reached(now);
    return reached >= 0 ? reached : this.hits.findLastIndex((hit) => hit.start <= now && now < hit.end);
  }

  /** Goes to the next hit (1) or the previous one (-1) in the order of time. */
  step(direction) {
    if (this.element.hidden) return;
    const now = this.now();
    const reached = this.reached(now);
    if (reached >= 0) this.go(reached + direction);
    else if (direction > 0) this.go(this.hits.findIndex((hit) => playsFrom(hit) > now));
    else this.go(this.hits.findLastIndex((hit) => playsFrom(hit) < now));
  }

  go(place) {
    const hit = this.hits[place];
    if (!hit) {
      announce('There is no further hit in this video.');
      return;
    }
    this.chosen = place;
    this.onPlay(playsFrom(hit));
    this.setHead(this.now());
    announce(this.status.textContent);
  }

  close() {
    this.stop.abort();
  }
}
