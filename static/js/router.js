// Turns the address into a view and back: links inside the page, history, scroll positions.

import { parseTime, toMilliseconds } from './time.js';

/** Where an address points to, or null for addresses that are not this page's. */
export function parse(url) {
  const parameters = url.searchParams;
  if (url.pathname === '/') return { name: 'home', parameters, key: url.search };
  const match = /^\/v\/([0-9a-fA-F-]{36})\/?$/.exec(url.pathname);
  if (!match) return null;
  return { name: 'video', id: match[1], at: parseTime(parameters.get('t') ?? ''), parameters };
}

/**
 * The address of a video, playing from `seconds`.
 * @param {URLSearchParams} [query] the query whose hits are shown in it
 */
export function videoPath(id, seconds, query = new URLSearchParams()) {
  const time = Number.isFinite(seconds) ? [['t', String(toMilliseconds(seconds))]] : [];
  const parameters = new URLSearchParams([...time, ...query]).toString();
  return parameters ? `/v/${id}?${parameters}` : `/v/${id}`;
}

export class Router {
  /** @param {(route: object|null, how: {back: boolean, control?: string}) => void} show */
  constructor(show) {
    this.show = show;
    this.shown = null;
  }

  start() {
    history.scrollRestoration = 'manual';
    document.addEventListener('click', (event) => this.followLink(event));
    document.addEventListener('scrollend', () => this.rememberScroll());
    window.addEventListener('popstate', (event) => {
      // A jump to an anchor inside the view is no other view.
      if (location.pathname + location.search === this.shown) return;
      this.showAddress({ back: true });
      requestAnimationFrame(() => scrollTo(0, event.state?.scroll ?? 0));
    });
    this.showAddress({ back: false });
  }

  showAddress(how) {
    this.shown = location.pathname + location.search;
    this.show(parse(new URL(location.href)), how);
  }

  /** Goes to an address of this page, with a history entry. */
  go(path) {
    this.rememberScroll();
    history.pushState({}, '', path);
    this.showAddress({ back: false });
    scrollTo(0, 0);
  }

  /**
   * Changes the address in place: for settings that Back should not step through.
   * @param {string} control selector of the setting that keeps the focus
   */
  replace(path, control) {
    history.replaceState(history.state, '', path);
    this.showAddress({ back: false, control });
  }

  rememberScroll() {
    history.replaceState({ ...history.state, scroll: scrollY }, '');
  }

  followLink(event) {
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target.closest?.('a[href]');
    if (!plain || event.defaultPrevented || !link || link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.hash || !parse(url)) return;
    event.preventDefault();
    this.go(url.pathname + url.search);
  }
}
