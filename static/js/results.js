// Draws the hits of a search: cards with picture, range, score and a preview that plays on hover or focus.

import { previewUrl } from './api.js';
import { el, picture } from './dom.js';
import { opensAt, playsFrom, snippetNodes, spokenEvidence } from './evidence.js';
import { videoPath } from './router.js';
import { formatRange, formatTime, toMilliseconds } from './time.js';

const HOVER_MS = 150;
const SOURCES = { visual: 'seen', spoken: 'said', full_video: 'as a whole' };

/** The address at which a hit plays, with the query that found it. */
export function hitPath(hit, query) {
  return videoPath(hit.video_id, playsFrom(hit), query);
}

/** The search for more of what a hit shows. */
export function likePath(hit) {
  const query = new URLSearchParams({ clip: hit.video_id, start: toMilliseconds(hit.start), end: toMilliseconds(hit.end) });
  return `/?${query}`;
}

function evidence(hit) {
  const spoken = spokenEvidence(hit);
  return spoken && el('p', { class: 'evidence' }, '“', snippetNodes(spoken.text), '”');
}

/** Which sources found a hit, each with its place among what that source found. */
function foundBy(hit) {
  const badge = ({ source, rank }) => el('span', { class: 'source', data: { source }, title: `number ${rank} of ${SOURCES[source]}` }, SOURCES[source]);
  return (hit.evidence || []).filter(({ source }) => source in SOURCES).map(badge);
}

/** Raw scores, never percentages: they are comparable within one answer only. */
function scoreText(score) {
  return Number.isFinite(score) ? score.toFixed(4) : '–';
}

/** Plays the clip's preview over the picture while the pointer or the focus is on the card. */
function previewOn(card, box, clipId) {
  let timer = null;
  let media = null;
  const stop = () => {
    clearTimeout(timer);
    if (!media) return;
    media.removeAttribute('src');
    media.load();
    media.remove();
    media = null;
  };
  const start = () => {
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (media) return;
      media = el('video', { loop: true, playsinline: true, 'aria-hidden': true, tabindex: -1, class: 'preview' });
      // `muted` as an attribute is only the default for new elements: autoplay rules look at the property.
      media.muted = true;
      media.addEventListener('error', stop);
      media.src = previewUrl(clipId);
      box.append(media);
      media.play().catch(() => {});
    }, HOVER_MS);
  };
  card.addEventListener('pointerenter', (event) => { if (event.pointerType === 'mouse') start(); });
  card.addEventListener('pointerleave', () => { if (!card.contains(document.activeElement)) stop(); });
  card.addEventListener('focusin', start);
  card.addEventListener('focusout', (event) => { if (!card.contains(event.relatedTarget)) stop(); });
}

/** One hit; `showTitle` is false inside a group that is headed by its video. */
function hitCard(hit, { showTitle, query }) {
  const whole = hit.level === 'video';
  const range = whole ? `full video, ${formatTime(hit.end - hit.start)}` : formatRange(hit.start, hit.end);
  const box = picture(hit.thumbnail_url, 'no picture',
    el('span', { class: 'stamp opens', title: 'Where it opens' }, formatTime(opensAt(hit))),
    el('span', { class: 'stamp' }, range));
  const name = showTitle ? hit.title : range;
  const link = el('a', { href: hitPath(hit, query), 'aria-label': `${hit.title}, ${range}` }, name);
  const card = el('li', { class: 'card hit', data: { video: hit.video_id, start: hit.start, end: hit.end, level: hit.level } },
    box,
    el('div', { class: 'body' },
      el('h3', {}, link),
      el('p', { class: 'facts' },
        el('span', {}, `#${hit.rank}`),
        showTitle && el('span', {}, range),
        el('span', { class: 'score', title: 'Comparable within this answer only' }, `score ${scoreText(hit.score)}`),
        foundBy(hit)),
      evidence(hit),
      el('div', { class: 'actions' },
        el('a', { class: 'button small plain', href: likePath(hit), 'aria-label': `More like ${hit.title}, ${range}` }, 'More like this'))));
  if (hit.clip_id && !whole) previewOn(card, box, hit.clip_id);
  return card;
}

/** A grid of hits that later pages are appended to. */
export class HitGrid {
  /** @param {{showTitle?: boolean, query?: URLSearchParams}} options `query`: what found them, for their addresses */
  constructor({ showTitle = true, query } = {}) {
    this.look = { showTitle, query };
    this.element = el('ul', { class: 'grid hits' });
  }

  append(hits) {
    for (const hit of hits) this.element.append(hitCard(hit, this.look));
  }
}

/** One group of hits under the name of their video. */
export function groupSection(group, query) {
  const title = group.results[0]?.title ?? 'Untitled';
  const grid = new HitGrid({ showTitle: false, query });
  grid.append(group.results);
  return el('section', { class: 'group', data: { video: group.video_id } },
    el('h2', {}, el('a', { href: videoPath(group.video_id, null, query) }, title), ' ',
      el('span', { class: 'muted small score' }, `best score ${scoreText(group.score)}`)),
    grid.element);
}

const QUERY_FACTS = [
  ['kind', 'Kind of query'], ['tokens_total', 'Tokens'], ['tokens_used', 'Tokens used'], ['windows', 'Windows of text'],
  ['frames', 'Frames looked at'], ['fusion', 'Fusion'],
];
const INDEX_FACTS = [['space', 'Space'], ['generation', 'Generation'], ['live', 'Vectors searched'], ['exact', 'Exact search']];

function factRows(source, facts) {
  const says = (value) => value !== null && value !== undefined && value !== 0;
  return facts.filter(([key]) => says(source?.[key]))
    .flatMap(([key, label]) => [el('dt', {}, label), el('dd', {}, String(source[key]))]);
}

/** The small print of an answer: what was asked of which space, and how long it took. */
export function aboutAnswer(answer) {
  const { query_info: query, index, timings_ms: timings } = answer;
  const total = timings?.total;
  const steps = Object.entries(timings || {}).filter(([name]) => name !== 'total')
    .map(([name, value]) => `${name} ${value.toFixed(1)} ms`).join(', ');
  return el('details', { class: 'about' },
    el('summary', {}, Number.isFinite(total) ? `About this search: ${total.toFixed(0)} ms` : 'About this search'),
    el('dl', {}, factRows(query, QUERY_FACTS), factRows(index, INDEX_FACTS),
      steps && [el('dt', {}, 'Time spent'), el('dd', {}, steps)]));
}
