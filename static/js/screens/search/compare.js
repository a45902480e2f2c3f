// Looks at hits large: beside the query's clip in step, or alone.

import { openDialog } from '../../core/dialog.js';
import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { keys } from '../../core/keys.js';
import { formatRange, formatTime } from '../../core/time.js';
import { formatNumber } from '../../core/words.js';
import { hitTitle, previewOf, rangeOf } from '../../parts/hits.js';
import { InStep, still } from '../../parts/loop.js';
import { loopSpeed, speedButtons } from './panel.js';

/** Pictures around the shown one in the strip. */
const AROUND = 8;

/** @typedef {import('./results.js').Item} Item */

/**
 * @param {object} what
 * @param {Item[]} what.items
 * @param {Item} what.item
 * @param {string} what.title
 * @param {Awaited<ReturnType<import('./panel.js').subjectOf>>} what.subject null looks at the hit alone
 * @param {(item: Item) => void} what.onMove
 * @param {(hit: Api<'Hit'>) => void} what.onLike
 * @param {(hit: Api<'Hit'>) => void} what.onReel
 * @param {(item: Item) => void} what.onClose
 */
export function openCompare({ items, item, title, subject, onMove, onLike, onReel, onClose }) {
  const id = subject ? 'compare' : 'look';
  const step = new InStep(loopSpeed());
  let place = items.indexOf(item);
  /** @type {import('../../parts/loop.js').Loop|null} */
  let hitLoop = null;
  const bars = [el('i'), el('i')];
  const clock = el('span', { class: 'tc num' });
  const draw = () => {
    step.loops.forEach((loop, one) => bars[subject && !subject.image ? one : 1]?.style.setProperty('width', `${loop.length ? (100 * loop.passed) / loop.length : 0}%`));
    clock.textContent = formatTime(hitLoop?.passed ?? 0, { fraction: true });
  };
  const query = subject && el('figure', {}, subject.image ? el('img', { src: subject.image, alt: '' }) : step.add(subject.played, null, draw).element,
    el('figcaption', { class: 'tag q' }, 'Query'), el('span', { class: 'tag b num' }, subject.name));
  const figure = el('figure');
  const strip = el('div', { class: 'row strip', role: 'group', 'aria-label': 'Hits' });
  const play = iconButton('pause', 'Pause', () => pause());
  const stretch = el('div', { class: 'seg', role: 'group', 'aria-label': 'Lengths' }, ['From the start', 'Stretch to fit'].map((label, one) => el('button', {
    type: 'button', 'aria-pressed': String(one === 0), on: { click: () => {
      step.stretch = one === 1;
      [...stretch.children].forEach((other, at) => { other.setAttribute('aria-pressed', String(at === one)); });
      step.restart();
    } },
  }, label)));

  function pause(paused = !step.paused) {
    step.setPaused(paused);
    fill(play, icon(paused ? 'play' : 'pause'));
    play.setAttribute('aria-label', paused ? 'Play' : 'Pause');
    play.title = paused ? 'Play' : 'Pause';
  }

  function frame(/** @type {number} */ way) {
    pause(true);
    step.step(way);
    draw();
  }

  function show(/** @type {number} */ to) {
    if (!items[to]) return;
    place = to;
    const { hit } = items[place];
    const oldLoop = hitLoop;
    hitLoop = step.add({ ...rangeOf(hit), poster: hit.thumbnail_url, preview: previewOf(hit) }, oldLoop, draw);
    fill(figure, hitLoop.element, el('figcaption', { class: 'tag' }, `Hit ${place + 1} of ${formatNumber(items.length)}`),
      el('span', { class: 'tag b num' }, `${hitTitle(hit)} · ${formatRange(hit.start, hit.end)}`));
    const first = Math.max(0, Math.min(place - AROUND, items.length - 2 * AROUND));
    const hadFocus = strip.contains(document.activeElement);
    fill(strip, items.slice(first, first + 2 * AROUND).map(({ hit: one }, at) => button(el('img', { src: one.thumbnail_url, alt: '' }), () => show(first + at), {
      class: first + at === place ? 'thumb at-now' : 'thumb', 'aria-label': `Hit ${first + at + 1}`, 'aria-pressed': String(first + at === place),
    })));
    const now = /** @type {HTMLElement|null} */ (strip.querySelector('.at-now'));
    if (hadFocus) now?.focus();
    else now?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    onMove(items[place]);
  }

  const close = (/** @type {(() => void)} */ then) => {
    dialog.close();
    then();
  };
  const like = () => close(() => onLike(items[place].hit));
  const reel = () => onReel(items[place].hit);
  const body = [
    el('div', { class: subject ? 'stagepair' : 'stagepair one' }, query, figure),
    el('div', { class: 'row wrap' }, iconButton('step-back', 'Frame back', () => frame(-1)), play, iconButton('step-forward', 'Frame on', () => frame(1)), clock,
      el('div', { class: 'grow bars' }, subject && !subject.image && el('div', { class: 'bar go' }, bars[0]), el('div', { class: 'bar' }, bars[1])),
      subject && stretch, speedButtons((speed) => step.setSpeed(speed))),
    strip,
  ];
  const removeKeys = keys.add(id, [
    { key: 'ArrowLeft', label: 'Hit before', act: () => show(place - 1) }, { key: 'ArrowRight', label: 'Next hit', act: () => show(place + 1) },
    { key: 'L', label: 'More like this', act: like }, { key: 'R', label: 'Add to reel', act: reel },
    { key: 'C', label: 'Close', act: () => dialog.close() },
    { key: 'Space', label: 'Play', act: () => (document.activeElement?.matches('button') ? false : pause()) },
  ]);
  const dialog = openDialog({ id, title: subject ? 'Compare' : 'Look', class: 'compare', body, onClose: () => {
    removeKeys();
    step.close();
    onClose(items[place]);
  } });
  dialog.querySelector('h2')?.after(el('p', { class: 'grow dim clip1' }, title),
    button([icon('scan-search'), el('span', { class: 'only-l' }, 'More like this '), keyCap('L')], like, { class: 'btn ghost', title: 'More like this  L' }),
    button([icon('list-plus'), el('span', { class: 'only-l' }, 'Add to reel '), keyCap('R')], reel, { class: 'btn', title: 'Add to reel  R' }));
  /** @type {HTMLElement|null} */ (dialog.querySelector('h2'))?.focus();
  show(place);
  pause(still());
}
