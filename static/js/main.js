// Starts the page: makes the parts, and shows the screen that the address names.

import { onKeyNeeded } from './core/api.js';
import { connection } from './core/connection.js';
import { el, fill, readIcons } from './core/dom.js';
import { jobs } from './core/jobs.js';
import { keys } from './core/keys.js';
import { askKey } from './core/needkey.js';
import { reels } from './core/reels.js';
import { Router } from './core/router.js';
import { Shell } from './core/shell.js';
import { toasts } from './core/toast.js';
import { filesOf } from './parts/dropped.js';

/** @typedef {import('./core/router.js').Route} Route */

/**
 * What a screen is.
 * @typedef {object} Screen
 * @property {HTMLElement} element with one `h1`, which takes the focus when the screen is shown first
 * @property {string} title for the window
 * @property {(route: Route, how: {back: boolean}) => void} show draws the route. Called again when only parameters change,
 *   and when Back returns to a kept screen
 * @property {() => void} hide stops requests, players and keys; `show` may follow
 * @property {(files: File[]) => boolean} [takeFiles] takes files that are dropped on it; false gives them to the library
 */

/** @typedef {{router: Router, shell: Shell, toasts: typeof toasts, addFiles: (files: File[]) => void}} Page */

/** @type {Record<Route['name'], () => Promise<{make: (page: Page) => Screen}>>} */
const SCREENS = {
  search: () => import('./screens/search.js'),
  watch: () => import('./screens/watch.js'),
  library: () => import('./screens/library.js'),
  reels: () => import('./screens/reels.js'),
  reel: () => import('./screens/reel.js'),
  shared: () => import('./screens/shared.js'),
  activity: () => import('./screens/activity.js'),
  insights: () => import('./screens/insights.js'),
  models: () => import('./screens/models.js'),
};

class App {
  constructor() {
    this.main = /** @type {HTMLElement} */ (document.getElementById('main'));
    this.router = new Router((route, how) => this.show(route, how));
    this.shell = new Shell(this.router);
    /** @type {Map<string, Screen>} screens made so far, by name: each keeps its state while others are shown */
    this.screens = new Map();
    /** @type {Screen|null} */
    this.screen = null;
    /** @type {WeakMap<Screen, Element>} what had the focus when a screen was left */
    this.focus = new WeakMap();
    this.shows = 0;
    /** @type {Page} */
    this.page = { router: this.router, shell: this.shell, toasts, addFiles: (files) => this.addFiles(files) };
  }

  start() {
    onKeyNeeded(askKey);
    connection.start();
    document.body.append(toasts.element);
    document.getElementById('notices')?.append(connection.element);
    // Somebody with a link to a reel has no key: nothing may ask for one.
    const isGuest = location.pathname.startsWith('/shared/');
    this.shell.start(isGuest);
    keys.start(document);
    keys.add('Anywhere', [
      { key: '/', label: 'Search', act: () => this.focusSearch() },
      { key: 'Ctrl+Z', label: 'Undo', act: () => toasts.undo() },
    ]);
    this.router.start();
    if (isGuest) return;
    reels.load().catch((error) => toasts.problem(error));
    jobs.start();
    this.takeDrops();
    // Uploads that an earlier page left behind show themselves.
    if (localStorage.getItem('reprise_uploads')) import('./parts/uploads.js');
  }

  /** Goes to the search box of this screen, or of the search. */
  focusSearch() {
    const box = /** @type {HTMLTextAreaElement|null} */ (this.main.querySelector('.ask textarea, .jump input'));
    if (box) {
      box.focus();
      box.select();
    } else {
      this.router.go('/');
    }
  }

  /**
   * @param {Route|null} route
   * @param {{back: boolean}} how
   */
  async show(route, how) {
    this.shows += 1;
    const number = this.shows;
    this.shell.mark(route?.name ?? '');
    const screen = route ? await this.screenFor(route.name) : new Missing();
    await this.shell.settled;
    // Another address was shown meanwhile.
    if (number !== this.shows) return;
    const isSame = screen === this.screen;
    if (!isSame) this.leave();
    this.screen = screen;
    if (!isSame) fill(this.main, screen.element);
    if (route) screen.show(route, how);
    document.title = screen.title ? `${screen.title} · reprise` : 'reprise';
    if (how.back) requestAnimationFrame(() => this.router.returnScroll());
    if (!isSame) this.placeFocus(screen, how.back);
  }

  leave() {
    if (!this.screen) return;
    const focused = document.activeElement;
    if (focused && this.main.contains(focused)) this.focus.set(this.screen, focused);
    this.screen.hide();
  }

  /**
   * Back returns to what was left; elsewhere the heading is where reading starts.
   * @param {Screen} screen
   * @param {boolean} back
   */
  placeFocus(screen, back) {
    if (this.shows === 1 || screen.element.contains(document.activeElement)) return;
    const left = back ? this.focus.get(screen) : null;
    const target = left?.isConnected ? left : screen.element.querySelector('h1');
    if (target instanceof HTMLElement) {
      if (target.tabIndex < 0) target.tabIndex = -1;
      target.focus({ preventScroll: true });
    }
  }

  /**
   * @param {Route['name']} name
   * @returns {Promise<Screen>}
   */
  async screenFor(name) {
    const made = this.screens.get(name);
    if (made) return made;
    const { make } = await SCREENS[name]();
    const screen = this.screens.get(name) ?? make(this.page);
    this.screens.set(name, screen);
    return screen;
  }

  /**
   * Adds files to the library, from any screen.
   * @param {File[]} files
   */
  async addFiles(files) {
    const { addFiles } = await import('./parts/uploads.js');
    addFiles(this.page, files);
  }

  takeDrops() {
    const hint = /** @type {HTMLElement} */ (document.getElementById('drop-hint'));
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files') ?? false;
    addEventListener('dragover', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      hint.hidden = false;
    });
    addEventListener('dragleave', (event) => { if (!event.relatedTarget) hint.hidden = true; });
    addEventListener('drop', async (event) => {
      if (!hasFiles(event) || event.defaultPrevented) return;
      event.preventDefault();
      hint.hidden = true;
      // The browser empties the transfer after the first await, hence no import here.
      const files = await filesOf(/** @type {DataTransfer} */ (event.dataTransfer));
      if (!this.screen?.takeFiles?.(files)) await this.addFiles(files);
    });
  }
}

/** An address that this page does not have. */
class Missing {
  constructor() {
    this.title = 'Not found';
    this.element = el('div', { class: 'empty' }, el('h1', {}, 'Nothing is here'),
      el('p', {}, 'The address may be mistyped, or what it showed is gone.'), el('a', { class: 'btn', href: '/' }, 'To the search'));
  }

  show() {}

  hide() {}
}

// Icons are decoration: without them the page still works.
await readIcons().catch(() => {});
new App().start();
