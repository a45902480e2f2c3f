// Turns the address into a route and back: links inside the page, history, scroll positions.

import { onRest } from './scrolling.js';
import { parseTime, toMilliseconds } from './time.js';

/**
 * @typedef {object} Route
 * @property {'search'|'watch'|'library'|'reels'|'reel'|'shared'|'activity'|'insights'|'models'} name
 * @property {string} id of the video or the reel; '' where the screen shows none
 * @property {URLSearchParams} parameters
 * @property {string} key the address: path and parameters
 */

/** @type {[RegExp, Route['name']][]} */
const SCREENS = [
  [/^\/$/, 'search'],
  [/^\/v\/([0-9a-fA-F-]{36})\/?$/, 'watch'],
  [/^\/library\/?$/, 'library'],
  [/^\/reels\/?$/, 'reels'],
  [/^\/reels\/([0-9a-fA-F-]{36})\/?$/, 'reel'],
  [/^\/shared\/([0-9a-fA-F-]{36})\/?$/, 'shared'],
  [/^\/activity\/?$/, 'activity'],
  [/^\/insights\/?$/, 'insights'],
  [/^\/models\/?$/, 'models'],
];

/**
 * Where an address points to, or null for addresses that are not this page's.
 * @param {URL} url
 * @returns {Route|null}
 */
export function parse(url) {
  for (const [pattern, name] of SCREENS) {
    const match = pattern.exec(url.pathname);
    if (match) return { name, id: match[1] ?? '', parameters: url.searchParams, key: url.pathname + url.search };
  }
  return null;
}

/**
 * The time that an address of a video names as `t`: `129`, `2m9s` or `2:09`. Null without one.
 * @param {URLSearchParams} parameters
 */
export function timeOf(parameters) {
  return parseTime(parameters.get('t') ?? '');
}

/**
 * The address of a video.
 * @param {string} id
 * @param {number|null} [seconds] where it plays from
 * @param {URLSearchParams} [query] the query whose hits are shown in it, and marks
 */
export function videoPath(id, seconds = null, query = new URLSearchParams()) {
  const parameters = new URLSearchParams(query);
  parameters.delete('t');
  const all = new URLSearchParams(seconds === null ? [] : [['t', String(toMilliseconds(seconds))]]);
  for (const [name, value] of parameters) all.append(name, value);
  const text = all.toString();
  return text ? `/v/${id}?${text}` : `/v/${id}`;
}

export class Router {
  /** @param {(route: Route|null, how: {back: boolean}) => void} show */
  constructor(show) {
    this.show = show;
    /** @type {string|null} */
    this.shown = null;
    /** @type {number|null} where Back leads to, in pixels, until the window is there */
    this.returning = null;
  }

  start() {
    history.scrollRestoration = 'manual';
    document.addEventListener('click', (event) => this.followLink(event));
    onRest(() => this.rememberScroll());
    window.addEventListener('popstate', () => {
      // A jump to an anchor inside a screen is no other screen.
      if (location.pathname + location.search === this.shown) return;
      this.returning = history.state?.scroll ?? 0;
      this.showAddress({ back: true });
    });
    this.showAddress({ back: false });
  }

  /** @param {{back: boolean}} how */
  showAddress(how) {
    this.shown = location.pathname + location.search;
    this.show(parse(new URL(location.href)), how);
  }

  /**
   * Goes to an address of this page, with a history entry.
   * @param {string} path
   */
  go(path) {
    this.rememberScroll();
    this.returning = null;
    history.pushState({}, '', path);
    scrollTo(0, 0);
    this.showAddress({ back: false });
  }

  /**
   * Changes the address in place, for state that Back should not step through. Shows nothing anew: the screen that
   * calls this has done it already.
   * @param {string} path
   */
  note(path) {
    history.replaceState(history.state, '', path);
    this.shown = location.pathname + location.search;
  }

  /** Scrolls to where the address was left. */
  returnScroll() {
    if (this.returning !== null) scrollTo(0, this.returning);
    this.returning = null;
  }

  /** The entry that Back leads to keeps its position until the window is there. */
  rememberScroll() {
    if (this.returning === null) history.replaceState({ ...history.state, scroll: scrollY }, '');
  }

  /** @param {MouseEvent} event */
  followLink(event) {
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    if (!plain || event.defaultPrevented || !(link instanceof HTMLAnchorElement)) return;
    if (link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.hash || !parse(url)) return;
    event.preventDefault();
    this.go(url.pathname + url.search);
  }
}
