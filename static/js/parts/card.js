// The card of a hit or a clip: picture, time, title, length, and what was said. Its buttons say what they are for by
// `data-act`; one listener on the list acts for all of them.

import { button, el, icon } from '../core/dom.js';
import { whenSlow } from '../core/scrolling.js';
import { formatTime } from '../core/time.js';
import { formatLength, titleOf } from '../core/words.js';
import { hitTitle, opensAt, spokenEvidence } from './hits.js';
import { videoLater } from './videos.js';

/** @typedef {Api<'Hit'>} Hit */

/** Shapes that differ less than this count as one. */
const SAME_SHAPE = 0.04;

/** @type {Record<string, string>} */
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** @param {string} html */
const unescaped = (html) => html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ENTITIES[name]);

/**
 * The server's escaped HTML as text and `<mark>`. Any other markup is shown as the text that it is.
 * @param {string} html
 */
export function snippetNodes(html) {
  return html.split(/<mark>(.*?)<\/mark>/s)
    .map((part, place) => (place % 2 ? el('mark', {}, unescaped(part)) : unescaped(part)));
}

/**
 * What a card offers. Each is a button with `data-act`.
 * @typedef {'pick'|'like'|'unlike'|'reel'} Act
 */

/** @type {Record<Act, [icon: string, label: string, key: string]>} */
const ACTS = {
  pick: ['check', 'Select', 'X'],
  unlike: ['x', 'Not like this', '⇧L'],
  like: ['scan-search', 'More like this', 'L'],
  reel: ['list-plus', 'Add to reel', 'R'],
};

/**
 * A card.
 * @param {object} card
 * @param {string} card.href where it leads
 * @param {string} card.title
 * @param {string} card.picture address of its picture
 * @param {number} card.at the time that is printed on it, seconds
 * @param {number} card.length seconds
 * @param {Act[]} [card.acts]
 * @param {(Node|string)[]|null} [card.said] what was said, or is written
 * @param {boolean} [card.isWritten] whether it is written
 * @param {number} [card.pile] how many hits it stands for, itself included
 * @param {boolean} [card.chosen]
 * @param {boolean} [card.eager] its picture is in sight from the start
 * @param {boolean} [card.bare] without its title: a heading has it
 * @returns {HTMLElement}
 */
export function card({ href, title, picture, at, length, acts = ['pick', 'like', 'reel'], said, isWritten = false, pile = 1, chosen = false, eager = false, bare = false }) {
  const name = `${title}, ${formatTime(at)}`;
  const image = el('img', { alt: '', loading: eager ? 'eager' : 'lazy', decoding: 'async', draggable: 'false' });
  const link = el('a', { class: 'thumb', href, 'aria-label': pile > 1 ? `${name}, ${pile} alike` : name },
    image, el('span', { class: 'at' }, formatTime(at)));
  const made = el('div', { class: ['card', pile > 1 && 'pile', chosen && 'chosen'].filter(Boolean).join(' ') },
    el('div', { class: 'frame' }, link,
      pile > 1 && button([icon('square-stack', 's'), String(pile)], null, {
        class: 'more', data: { act: 'unfold' }, 'aria-label': `Show all ${pile}`, title: `${pile - 1} more of the same moment  E`,
      })),
    !bare && el('div', { class: 'cap' }, el('b', { class: 'clip1' }, title), el('span', { class: 'num' }, formatLength(length))),
    said && el('p', { class: 'snip' }, icon(isWritten ? 'file-text' : 'mic', 's'), ' ', said));
  const complete = () => {
    image.src = picture;
    link.after(...actButtons(acts, made.querySelector('b')?.textContent ?? title, made.matches('.chosen')));
  };
  // A card that flies by leaves its list before anybody could see its picture or press its buttons.
  if (eager) complete();
  else whenSlow(complete, () => made.parentNode !== null);
  return made;
}

/** @param {Act[]} acts @param {string} title @param {boolean} chosen */
function actButtons(acts, title, chosen) {
  const others = acts.filter((act) => act !== 'pick');
  return [
    ...(acts.includes('pick') ? [actButton('pick', title, { class: 'pick', 'aria-pressed': String(chosen) })] : []),
    ...(others.length > 0 ? [el('span', { class: 'acts' }, others.map((act) => actButton(act, title)))] : []),
  ];
}

/** @param {Act} act @param {string} title @param {Record<string, any>} [props] */
function actButton(act, title, props = {}) {
  const [picture, label, key] = ACTS[act];
  // The list is one tab stop: arrows and letters reach what it holds.
  return button(icon(picture), null, { class: '', tabindex: '-1', 'aria-label': `${label}: ${title}`, title: `${label}  ${key}`, data: { act }, ...props });
}

/**
 * The card of a hit.
 * @param {Hit} hit
 * @param {{href: string, acts?: Act[], pile?: number, chosen?: boolean, eager?: boolean, bare?: boolean}} how
 */
export function hitCard(hit, how) {
  const spoken = spokenEvidence(hit);
  const made = card({
    title: hitTitle(hit), picture: hit.thumbnail_url, at: opensAt(hit), length: hit.end - hit.start,
    said: spoken?.text ? snippetNodes(spoken.text) : null, isWritten: spoken?.source === 'screen', ...how,
  });
  made.dataset.clip = hit.clip_id;
  if (!how.bare) nameLater(hit, made.querySelector('b'));
  return made;
}

/**
 * Writes the name of a hit's video when its folder is known: only bare numbers take it.
 * @param {{title: string, video_id: string}} hit
 * @param {Element|null} place
 */
export function nameLater(hit, place) {
  if (!place || !/^\d+$/.test(hit.title)) return;
  const old = hitTitle(hit);
  videoLater(hit.video_id).then((video) => {
    const name = titleOf(video);
    place.textContent = name;
    // The card's link and buttons are named after it, too.
    for (const one of name === old ? [] : (place.closest('.card')?.querySelectorAll('[aria-label]') ?? [])) {
      one.setAttribute('aria-label', one.getAttribute('aria-label')?.replace(old, name) ?? name);
    }
  }, () => {});
}

/** The shape that most pictures of a list have, and the others fitted into it. */
export class Shapes {
  /**
   * @param {HTMLElement} list gets `--ratio`
   * @param {number} ratio what is supposed before the pictures are there
   */
  constructor(list, ratio) {
    this.list = list;
    /** @type {Map<number, number>} how many pictures have a shape */
    this.seen = new Map();
    this.set(ratio);
    // `load` does not bubble.
    list.addEventListener('load', (event) => { if (event.target instanceof HTMLImageElement) this.look(event.target); }, true);
    list.addEventListener('error', (event) => { if (event.target instanceof HTMLImageElement) event.target.remove(); }, true);
  }

  /** @param {number} ratio */
  set(ratio) {
    this.ratio = ratio;
    this.list.style.setProperty('--ratio', String(ratio));
  }

  /** @param {HTMLImageElement} image */
  look(image) {
    if (!image.naturalHeight || image.matches('.back')) return;
    const ratio = Math.round((image.naturalWidth / image.naturalHeight) * 100) / 100;
    this.seen.set(ratio, (this.seen.get(ratio) ?? 0) + 1);
    const [most] = [...this.seen].sort((one, other) => other[1] - one[1])[0];
    if (most !== this.ratio && (this.seen.get(most) ?? 0) > (this.seen.get(/** @type {number} */ (this.ratio)) ?? 0)) {
      this.set(most);
      for (const one of this.list.querySelectorAll('img')) if (one.complete) this.fit(one);
    }
    this.fit(image);
  }

  /** A picture of another shape lies whole over a blurred copy of itself. @param {HTMLImageElement} image */
  fit(image) {
    const thumb = image.closest('.thumb');
    if (!thumb || image.matches('.back') || !image.naturalHeight) return;
    const other = Math.abs(image.naturalWidth / image.naturalHeight / /** @type {number} */ (this.ratio) - 1) > SAME_SHAPE;
    thumb.querySelector('.back')?.remove();
    image.classList.toggle('front', other);
    if (other) thumb.prepend(el('img', { class: 'back', src: image.src, alt: '' }));
  }
}
