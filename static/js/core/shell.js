// The frame around every screen: the rail with its badges, and the notice of the built-in model.

import { get } from './api.js';
import { el, fill, icon, iconButton } from './dom.js';
import { jobs } from './jobs.js';
import { keys } from './keys.js';
import { openMenu } from './menu.js';
import { reels } from './reels.js';
import { toasts } from './toast.js';

const DISMISSED = 'reprise_builtin_known';
/** What the notice said last; empty if there was nothing to say. */
const LIMIT = 'reprise_builtin_limit';
const THEME = 'reprise_theme';
const AWAY = 'That part of the page did not come. Try again when the server is back';
/** A browser's first screen waits at most so long for the notice: one that comes later moves what is drawn. */
const WAIT_MS = 500;

/** @type {{name: string, path: string, label: string, icon: string, key: string, extra?: boolean}[]} */
const PLACES = [
  { name: 'search', path: '/', label: 'Search', icon: 'search', key: 'S' },
  { name: 'library', path: '/library', label: 'Library', icon: 'library', key: 'L' },
  { name: 'reels', path: '/reels', label: 'Reels', icon: 'list-video', key: 'R' },
  { name: 'activity', path: '/activity', label: 'Activity', icon: 'activity', key: 'A' },
  { name: 'insights', path: '/insights', label: 'Insights', icon: 'chart-column', key: 'I', extra: true },
  { name: 'models', path: '/models', label: 'Models', icon: 'boxes', key: 'M', extra: true },
];

/** Which place of the rail a screen belongs to. @type {Record<string, string>} */
const PLACE_OF = { watch: 'search', reel: 'reels', shared: 'reels' };

export class Shell {
  /** @param {{go: (path: string) => void}} router */
  constructor(router) {
    this.router = router;
    /** @type {Map<string, HTMLAnchorElement>} */
    this.links = new Map();
    this.notice = /** @type {HTMLElement} */ (document.getElementById('model-notice'));
    /** @type {Promise<unknown>} ends when the notice is known, or nobody should wait for it any more */
    this.settled = Promise.resolve();
    showTheme(localStorage.getItem(THEME));
  }

  /** @param {boolean} [isGuest] whether somebody has no key: then there is nowhere else to go */
  start(isGuest = false) {
    const rail = /** @type {HTMLElement} */ (document.getElementById('rail'));
    // Its place stays, so that nothing moves.
    rail.classList.toggle('nowhere', isGuest);
    if (isGuest) return;
    const links = PLACES.map((place) => this.link(place));
    const more = el('button', { type: 'button', class: 'nav more', 'aria-haspopup': 'menu', on: { click: () => this.openMore(more) } },
      icon('ellipsis', 'l'), el('span', {}, 'More'));
    const foot = el('div', { class: 'foot' },
      iconButton('keyboard', 'Keyboard shortcuts', openKeys, { key: '?' }),
      iconButton('settings', 'Settings', ({ currentTarget }) => this.openSettings(/** @type {HTMLElement} */ (currentTarget)), { 'aria-haspopup': 'menu' }));
    rail.append(...links, more, foot);
    reels.addEventListener('change', () => this.badge('reels', reels.size, '', `${reels.size} in the open reel`));
    jobs.addEventListener('change', () => this.badge('activity', jobs.active.length, 'run', `${jobs.active.length} running`));
    this.addKeys();
    const noticed = this.loadNotice().catch(() => {});
    if (localStorage.getItem(LIMIT) === null) this.settled = Promise.race([noticed, new Promise((done) => setTimeout(done, WAIT_MS))]);
  }

  /** @param {typeof PLACES[number]} place */
  link({ name, path, label, icon: picture, key, extra }) {
    const link = el('a', { class: extra ? 'nav extra' : 'nav', href: path, title: `G ${key}` }, icon(picture, 'l'), el('span', {}, label));
    this.links.set(name, link);
    return link;
  }

  /**
   * Shows a number at a place of the rail; 0 shows none.
   * @param {string} name
   * @param {number} number
   * @param {string} kind
   * @param {string} label
   */
  badge(name, number, kind, label) {
    const link = this.links.get(name);
    link?.querySelector('.badge')?.remove();
    if (number > 0) link?.append(el('span', { class: `badge ${kind}`.trim(), 'aria-label': label, role: 'img' }, number > 99 ? '99+' : String(number)));
  }

  /** @param {string} screen */
  mark(screen) {
    const place = PLACE_OF[screen] ?? screen;
    for (const [name, link] of this.links) {
      if (name === place) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  addKeys() {
    keys.add('Anywhere', [
      { key: '?', label: 'This sheet', act: openKeys },
      ...PLACES.map(({ key, label, path }) => ({ key: `G ${key}`, label: `Go to ${label}`, act: () => this.router.go(path) })),
      { key: 'Shift+D', label: 'Light or dark', act: () => this.turnTheme() },
    ]);
  }

  turnTheme() {
    const isDark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    this.chooseTheme(isDark ? 'light' : 'dark');
  }

  get theme() {
    return localStorage.getItem(THEME);
  }

  /** @param {string|null} theme null follows the system */
  chooseTheme(theme) {
    if (theme) localStorage.setItem(THEME, theme);
    else localStorage.removeItem(THEME);
    showTheme(theme);
  }

  /** @param {HTMLElement} opener */
  openMore(opener) {
    openMenu(opener, [
      ...PLACES.filter(({ extra }) => extra).map(({ label, path, icon: picture }) => ({ label, icon: picture, act: () => this.router.go(path) })),
      { label: 'Light or dark', act: () => this.turnTheme() },
    ]);
  }

  /** @param {HTMLElement} opener */
  openSettings(opener) {
    import('./settings.js').then(({ openSettings }) => openSettings(this, opener), () => toasts.show(AWAY));
  }

  /** One line about a model that knows little; it leads to the models, and can be closed for good. */
  async loadNotice() {
    if (localStorage.getItem(DISMISSED)) return;
    // What was said last time stands there at once: a line that comes late moves the screen.
    const before = localStorage.getItem(LIMIT);
    if (before) this.showNotice(before);
    /** @type {Api<'SpaceList'>} */
    const { items } = await get('/v1/spaces');
    const active = items.filter(({ active_for: kinds }) => kinds.includes('text') || kinds.includes('clip'));
    const known = active.length > 0 && active.every(({ trained_on: on }) => on === 'unstated');
    if (known || active.length === 0) {
      localStorage.setItem(LIMIT, '');
      this.notice.hidden = true;
      return;
    }
    const limit = active.some(({ trained_on: on }) => on === 'nothing')
      ? 'This model has learned nothing yet: words mean nothing to it.'
      : 'The built-in model only knows drawings of sports.';
    if (limit !== before) this.showNotice(limit);
    localStorage.setItem(LIMIT, limit);
  }

  /** @param {string} limit */
  showNotice(limit) {
    fill(this.notice, icon('info'), el('span', { class: 'grow' }, limit, ' ', el('a', { class: 'link', href: '/models' }, 'Choose a model for your footage')),
      iconButton('x', 'Close this line', () => {
        localStorage.setItem(DISMISSED, '1');
        this.notice.hidden = true;
      }));
    this.notice.hidden = false;
  }
}

/** @param {string|null} theme */
function showTheme(theme) {
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

const openKeys = () => import('./keysheet.js').then(({ openKeySheet }) => openKeySheet(), () => toasts.show(AWAY));
