// Search: the box, the results of the address, the clip that is asked with, and what is done with the hits.

import { button, el, fill, icon } from '../core/dom.js';
import { jobs } from '../core/jobs.js';
import { keys } from '../core/keys.js';
import { reels } from '../core/reels.js';
import { formatRange, formatTime } from '../core/time.js';
import { toasts } from '../core/toast.js';
import { count, formatNumber, titleOf } from '../core/words.js';
import { hitTitle, previewOf, rangeOf, tell } from '../parts/hits.js';
import { canHear, isSearch, isText, likePath, queryFiles, readExample, searchPath, writeExample } from '../parts/query.js';
import { videoOf } from '../parts/videos.js';
import { Ask } from './search/ask.js';
import { Dock } from './search/dock.js';
import { FacetPanel } from './search/facets.js';
import { Home, remember } from './search/home.js';
import { Panel } from './search/panel.js';
import { Results } from './search/results.js';

/** @typedef {Api<'Hit'>} Hit */
/** @typedef {import('./search/results.js').Item} Item */

const KEPT_SEARCHES = 8;
const CHANGES = 'reprise_changes';
const KEPT_CHANGES = 8;
const FACETS = 'reprise_facets_closed';
const SIZE = 'reprise_card';
/** Widths of cards, rem. */
const SIZES = [7, 8.5, 10.5, 13.5, 17, 22];

class SearchScreen {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Search';
    this.parameters = new URLSearchParams();
    /** @type {Map<string, Results>} the last searches by address, the newest last */
    this.kept = new Map();
    /** @type {Results|null} */
    this.view = null;
    /** @type {(() => void)|undefined} */
    this.removeKeys = undefined;
    /** @type {Item|null} the hit under the pointer or with the focus */
    this.hot = null;
    const acts = {
      onAsk: (/** @type {string} */ text) => this.askFor(text.trim()),
      onFile: (/** @type {File} */ file) => this.searchWith(file),
      onSources: (/** @type {string} */ sources) => this.change({ sources }),
      onDown: () => this.enterList(),
    };
    this.home = new Home(page, new Ask({ ...acts, onSources: (sources) => this.home.ask.set({ text: this.home.ask.box.value.trim(), sources }) }, true));
    this.ask = new Ask(acts);
    this.panel = new Panel({ onRemove: () => this.removeClip(), onCompare: () => this.compare() });
    this.facets = new FacetPanel((changes) => this.change(changes));
    this.dock = new Dock(this);
    this.changes = el('div', { class: 'row changes', role: 'group', 'aria-label': 'Last changes' });
    this.top = el('header', { class: 'top' });
    this.inner = el('header', { class: 'top inner' });
    this.body = el('div');
    this.aside = el('aside', { class: 'aside', 'aria-label': 'Query and filters' }, this.panel.element, this.facets.element);
    this.found = el('div', { class: 'found' }, this.inner, this.body);
    this.split = el('div', { class: 'split' }, this.aside, this.found);
    this.looking = el('div', { class: 'looking' }, this.top, this.split, this.dock.element);
    this.element = el('div', { class: 'search' });
    this.body.addEventListener('click', (event) => this.clicked(event));
    this.body.addEventListener('contextmenu', (event) => this.pressedLong(event));
    jobs.addEventListener('ended', () => { if (this.home.element.isConnected) this.home.show().catch(() => {}); });
    this.resize(0);
  }

  /** @param {import('../core/router.js').Route} route @param {{back: boolean}} how */
  show(route, { back }) {
    this.parameters = route.parameters;
    this.removeKeys ??= keys.add('Results', this.bindings());
    const hint = document.querySelector('#drop-hint p');
    if (hint) hint.textContent = isSearch(route.parameters) ? 'Drop one file to search with it, several to add them to the library' : 'Drop to add to the library';
    if (isSearch(route.parameters)) this.showResults(route.key, back);
    else this.showHome();
  }

  showHome() {
    this.title = 'Search';
    this.view?.rest();
    this.panel.rest();
    if (this.home.element.parentElement !== this.element) {
      fill(this.element, this.home.element);
      this.home.ask.set({});
    }
    this.home.show().catch((error) => toasts.problem(error));
    if (!matchMedia('(pointer: coarse)').matches) this.home.ask.box.focus({ preventScroll: true });
  }

  /** @param {string} key @param {boolean} back */
  showResults(key, back) {
    const { parameters } = this;
    const text = isText(parameters);
    this.title = parameters.get('q') || parameters.get('mod') || 'Like a clip';
    this.place(text);
    this.ask.set({
      text: parameters.get(text ? 'q' : 'mod') ?? '', sources: parameters.get('sources') ?? '', change: !text,
      hears: canHear(parameters), tokens: this.tokens(),
    });
    this.drawChanges(text);
    this.panel.show(parameters);
    if (this.looking.parentElement !== this.element) {
      const fromHome = this.home.element.contains(document.activeElement);
      fill(this.element, this.looking);
      if (fromHome) this.ask.box.focus({ preventScroll: true });
    }
    const known = this.kept.get(key);
    if (known?.answer) this.swap(key, known, back);
    else this.load(key, known?.aborted || known?.failed ? undefined : known);
  }

  /** The box is above everything for words, and beside the clip that they change. @param {boolean} text */
  place(text) {
    const target = text ? this.top : this.inner;
    const focused = this.ask.element.contains(document.activeElement);
    if (this.ask.element.parentElement !== target) target.prepend(this.ask.element);
    if (!text) this.inner.append(this.changes);
    this.top.hidden = !text;
    this.inner.hidden = text;
    this.aside.classList.toggle('query', !text);
    if (focused) this.ask.box.focus();
    this.showFacets();
  }

  /** Whether the facets are beside the results. */
  get facetsOpen() {
    return localStorage.getItem(FACETS) === null;
  }

  showFacets() {
    const open = this.facetsOpen;
    this.facets.element.hidden = !open;
    this.split.classList.toggle('alone', !open && isText(this.parameters));
    this.view?.filter?.classList.toggle('on', open);
  }

  /** In a narrow window the facets are a sheet. */
  async toggleFacets() {
    if (matchMedia('(max-width: 760px)').matches) {
      const { openDialog } = await import('../core/dialog.js');
      this.facets.element.hidden = false;
      this.sheet = openDialog({ id: 'filters', title: 'Filter', body: [this.facets.element], onClose: () => {
        this.aside.append(this.facets.element);
        this.sheet = null;
      } });
      return;
    }
    if (this.facetsOpen) localStorage.setItem(FACETS, '1');
    else localStorage.removeItem(FACETS);
    this.showFacets();
    this.view?.measure();
  }

  /** @param {string} key @param {Results} [waiting] a search of this address that runs already */
  load(key, waiting) {
    const view = waiting ?? new Results(this.parameters, {
      change: (changes) => this.change(changes), isChosen: (hit) => this.dock.has(hit), onHot: (item) => this.heat(item),
      done: (done) => {
        // Old results stay in sight while the server is away.
        if (this.wanted !== done || (done.away && this.view !== done && this.view?.answer)) return;
        this.swap(key, done, false);
        this.remember(done);
      },
      toggleFacets: () => this.toggleFacets(), resize: (step) => this.resize(step), showsFacets: () => this.facetsOpen,
    });
    this.keep(key, view);
    this.wanted = view;
    if (this.view !== view) this.view?.rest();
    // Old results stay, dimmed, until the new ones are there.
    if (this.view?.element.isConnected && this.view.answer) this.view.element.classList.add('stale');
    else this.swap(key, view, false);
    if (!waiting) view.load();
  }

  /** @param {string} key @param {Results} view */
  keep(key, view) {
    this.kept.delete(key);
    this.kept.set(key, view);
    for (const old of this.kept.keys()) {
      if (this.kept.size <= KEPT_SEARCHES) break;
      this.forget(old);
    }
  }

  /** The view that is shown is closed when another one takes its place. @param {string} key */
  forget(key) {
    const one = this.kept.get(key);
    this.kept.delete(key);
    if (one !== this.view) one?.close();
  }

  /** Ends the view that was shown: it rests as long as it is kept. */
  leave() {
    this.view?.rest();
    if (this.view && ![...this.kept.values()].includes(this.view)) this.view.close();
  }

  /** Shows a search that has something to show. @param {string} key @param {Results} view @param {boolean} back */
  swap(key, view, back) {
    this.wanted = view;
    this.keep(key, view);
    if (this.view !== view) {
      this.leave();
      this.dock.clear();
      this.hot = null;
    }
    view.element.classList.remove('stale');
    this.view = view;
    if (view.element.parentElement !== this.body) fill(this.body, view.element);
    view.measure();
    view.markChosen();
    this.showFacets();
    if (view.answer) {
      this.facets.show(view.parameters, view.answer.facets ?? null);
      this.ask.setParts(this.ask.box.value.trim(), view.answer.query_info.windows);
    }
    if (back) {
      const list = view.lists.find((one) => one.items[one.current] === view.left) ?? view.lists[0];
      requestAnimationFrame(() => { if (view.left) list?.stop(list.current)?.focus({ preventScroll: true }); });
    } else if (view.answer) {
      const first = view.items[0];
      if (first && this.panel.asked) this.heat(first);
    }
  }

  hide() {
    this.view?.rest();
    if (this.wanted !== this.view) this.wanted?.stop.abort();
    this.panel.rest();
    this.removeKeys?.();
    this.removeKeys = undefined;
    this.facets.labels = undefined;
    const hint = document.querySelector('#drop-hint p');
    if (hint) hint.textContent = 'Drop to add to the library';
  }

  /** @param {File[]} files */
  takeFiles(files) {
    const [file] = files;
    if (!isSearch(this.parameters) || files.length !== 1 || !/^(video|image)\//.test(file.type)) return false;
    this.searchWith(file);
    return true;
  }

  /** @param {File} file */
  searchWith(file) {
    const query = queryFiles.keep(file);
    const text = isText(this.parameters) ? '' : this.parameters.get('mod');
    this.page.router.go(searchPath(query, { mod: text ?? '' }));
  }

  /** @param {string} text */
  askFor(text) {
    const fromHome = !isSearch(this.parameters);
    if (fromHome) {
      if (text) this.page.router.go(searchPath(new URLSearchParams({ q: text }), { sources: this.home.ask.sources }));
      return;
    }
    const words = isText(this.parameters);
    if (words && !text && !this.parameters.has('like')) return;
    if (!words && text) this.rememberChange(text);
    this.change({ [words ? 'q' : 'mod']: text }, true);
  }

  /** @param {Record<string, string|string[]|null>} changes @param {boolean} [again] asks even if nothing changed */
  change(changes, again = false) {
    const path = searchPath(this.parameters, changes);
    const same = path === location.pathname + location.search;
    if (same && !again && this.view?.answer) return;
    if (same || !this.kept.get(path)?.answer || again) this.forget(path);
    if (same) this.showResults(path, false);
    else this.page.router.go(path);
  }

  removeClip() {
    const words = this.parameters.get('mod');
    this.page.router.go(words ? searchPath(new URLSearchParams({ q: words })) : '/');
  }

  /** Further examples of the query, as tokens that can be taken out. */
  tokens() {
    const examples = ['like', 'unlike'].flatMap((name) => this.parameters.getAll(name).map((written, place, all) => {
      const example = readExample(written);
      const words = name === 'like' ? 'Like' : 'Not like';
      const label = el('span', {}, `${words} ${'text' in example ? `“${example.text}”` : 'a moment'}`);
      if ('clip' in example) {
        videoOf(example.clip.video_id).then((video) => { label.textContent = `${words} ${titleOf(video)}, ${formatTime(example.clip.start)}`; }, () => {});
      }
      const others = all.filter((_, one) => one !== place);
      return el('span', { class: `token ${name}` }, label,
        button(icon('x', 's'), () => this.change({ [name]: others }), { class: 'out', 'aria-label': `Take out: ${words.toLowerCase()} this` }));
    }));
    return isText(this.parameters) ? examples : [this.panel.mini, ...examples];
  }

  /** @returns {string[]} */
  lastChanges() {
    try {
      return JSON.parse(localStorage.getItem(CHANGES) ?? '[]');
    } catch {
      return [];
    }
  }

  /** @param {string} text */
  rememberChange(text) {
    localStorage.setItem(CHANGES, JSON.stringify([text, ...this.lastChanges().filter((one) => one !== text)].slice(0, KEPT_CHANGES)));
  }

  /** @param {boolean} text */
  drawChanges(text) {
    const now = this.parameters.get('mod') ?? '';
    const all = text ? [] : this.lastChanges();
    this.changes.hidden = all.length === 0;
    fill(this.changes, all.map((one) => button(one, () => this.change({ mod: one === now ? null : one }),
      { class: one === now ? 'chip on' : 'chip', 'aria-pressed': String(one === now) })));
  }

  /** Keeps a search for the start. @param {Results} view */
  async remember(view) {
    const { parameters } = view;
    if (!view.answer || parameters.get('upload')) return;
    await this.panel.loaded;
    const subject = isText(parameters) ? null : this.panel.subject;
    const first = view.items[0]?.hit;
    remember({
      path: searchPath(parameters), text: (parameters.get('q') ?? parameters.get('mod') ?? '').slice(0, 200),
      like: subject ? `like ${subject.short}` : '', picture: subject ? (subject.played.poster || first?.thumbnail_url || '') : '',
      found: view.strong > 0 ? `${formatNumber(view.strong)}${view.isMore && view.strong === view.shown ? '+' : ''} ${view.strong === 1 ? 'moment' : 'moments'}` : 'nothing close',
    });
  }

  /** A hit came under the pointer or got the focus. @param {Item} item */
  heat(item) {
    this.hot = item;
    if (!this.view) return;
    this.view.left = item;
    const { hit } = item;
    if (this.panel.asked) videoOf(hit.video_id).then(() => { if (this.hot === item) this.showBeside(item); }, () => {});
  }

  /** @param {Item} item */
  showBeside(item) {
    const { hit } = item;
    this.panel.showHit({ ...rangeOf(hit), poster: hit.thumbnail_url, preview: previewOf(hit) },
      `${hitTitle(hit)} · ${formatRange(hit.start, hit.end)}`, `Hit ${(this.view?.items.indexOf(item) ?? 0) + 1}`);
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const target = event.target instanceof Element ? event.target : null;
    const spot = this.view?.at(target?.closest('[data-place]') ?? null);
    if (!spot || !target) return;
    this.heat(spot.item);
    const act = target.closest('[data-act]')?.getAttribute('data-act');
    if (act) this.act(act, spot.item.hit, event.shiftKey);
    else if (target.closest('a.thumb')) tell(this.view?.answer?.search_id, spot.item.hit, 'opened');
  }

  /** A long press chooses, on a touch screen. @param {MouseEvent} event */
  pressedLong(event) {
    const spot = /** @type {PointerEvent} */ (event).pointerType === 'touch' && this.view?.at(/** @type {Element} */ (event.target).closest('[data-place]'));
    if (!spot) return;
    event.preventDefault();
    this.dock.toggle(spot.item.hit);
  }

  /** @param {string} act @param {Hit} hit @param {boolean} [range] */
  act(act, hit, range = false) {
    if (act === 'pick') this.dock.toggle(hit, range);
    else if (act === 'like') this.page.router.go(likePath(hit));
    else if (act === 'unlike') this.unlike(hit);
    else if (act === 'reel') this.addToReel([hit]);
    else if (act === 'unfold') this.unfold();
  }

  /** @param {Hit} hit */
  unlike(hit) {
    tell(this.view?.answer?.search_id, hit, 'not_relevant');
    const before = searchPath(this.parameters);
    this.change({ unlike: [...this.parameters.getAll('unlike'), writeExample(rangeOf(hit))], sources: null });
    toasts.show('Searching for less like this.', { undo: () => this.page.router.go(before) });
  }

  /** @param {Hit[]} hits */
  async addToReel(hits) {
    try {
      const undo = await reels.add(hits.map(rangeOf));
      for (const hit of hits) tell(this.view?.answer?.search_id, hit, 'relevant');
      toasts.show([`Added ${count(hits.length, 'moment')} to `, el('b', {}, reels.open?.name ?? 'the reel')], { undo });
    } catch (error) {
      toasts.problem(error);
    }
  }

  unfold() {
    const spot = this.spot();
    if (!spot || !this.view || (!spot.item.from && spot.item.alike.length === 0)) return false;
    this.view.unfold(spot);
  }

  /** Moves the focus from nowhere, or from the box, into the hits. */
  enterList() {
    const list = this.view?.element.isConnected && !document.activeElement?.closest('a, button, input') && this.view.lists.find(({ items }) => items.length > 0);
    return list ? list.focus(list.current) : false;
  }

  /** The hit that keys act on: the focused one, else the one under the pointer. */
  spot() {
    const { view } = this;
    if (!view?.element.isConnected) return null;
    const focused = document.activeElement?.closest('[data-place]') ?? null;
    const spot = view.at(focused) ?? view.at(view.body.querySelector('[data-place]:hover'));
    if (spot) return spot;
    for (const list of view.lists) {
      const place = /** @type {Item[]} */ (list.items).indexOf(/** @type {Item} */ (this.hot));
      if (place >= 0) return { list, place, item: list.items[place] };
    }
    return null;
  }

  async compare(look = false) {
    const { view } = this;
    const spot = this.spot();
    const item = spot?.item ?? view?.items[0];
    if (!view || !item) return false;
    const { openCompare } = await import('./search/compare.js');
    // The hits may come before the details of what they are compared with.
    if (!look) await this.panel.loaded;
    if (!view.element.isConnected || document.querySelector('dialog[open]')) return false;
    openCompare({
      items: view.items, item, title: this.parameters.get('mod') ?? '', subject: look || !this.panel.asked ? null : this.panel.subject ?? null,
      onMove: (moved) => { this.heat(moved); }, onLike: (hit) => this.act('like', hit), onReel: (hit) => this.act('reel', hit),
      onClose: (last) => this.focusItem(last),
    });
  }

  /** @param {Item} item */
  focusItem(item) {
    for (const list of this.view?.lists ?? []) {
      const place = /** @type {Item[]} */ (list.items).indexOf(item);
      if (place >= 0) list.focus(place);
    }
  }

  /** @param {number} step */
  resize(step) {
    const now = Number(localStorage.getItem(SIZE) ?? (innerWidth >= 1900 ? 4 : 2));
    const size = Math.min(SIZES.length - 1, Math.max(0, now + step));
    if (step) localStorage.setItem(SIZE, String(size));
    this.body.style.setProperty('--card', `${SIZES[size]}rem`);
    this.view?.measure();
  }

  /** @returns {import('../core/keys.js').Binding[]} */
  bindings() {
    const on = (/** @type {(hit: Hit) => unknown} */ act) => () => {
      const spot = this.spot();
      return spot ? act(spot.item.hit) : false;
    };
    const focused = () => Boolean(document.activeElement?.closest('.hits [data-place]'));
    const searching = () => this.looking.isConnected;
    const grow = () => (searching() ? this.resize(1) : false);
    return [
      { key: 'ArrowDown', label: 'Into the hits', act: () => this.enterList() },
      { key: 'Space', label: 'Look', act: () => (focused() ? void this.compare(true) : false) },
      { key: 'X', label: 'Select', act: on((hit) => this.dock.toggle(hit)) },
      { key: 'Shift+X', label: 'Select up to here', act: on((hit) => this.dock.toggle(hit, true)) },
      { key: 'Ctrl+A', label: 'Select all', act: () => (searching() ? this.dock.chooseAll() : false) },
      { key: 'R', label: 'Add to reel', act: () => (this.dock.size > 0 ? void this.addToReel(this.dock.hits) : on((hit) => void this.addToReel([hit]))()) },
      { key: 'L', label: 'More like this', act: on((hit) => this.act('like', hit)) },
      { key: 'Shift+L', label: 'Not like this', act: on((hit) => this.unlike(hit)) },
      { key: 'C', label: 'Compare', act: () => (searching() ? void this.compare() : false) },
      { key: 'E', label: 'Unfold', act: () => this.unfold() },
      { key: 'F', label: 'Filter', act: () => (searching() ? void this.toggleFacets() : false) },
      { key: '-', label: 'Smaller cards', act: () => (searching() ? this.resize(-1) : false) },
      { key: '+', label: 'Larger cards', act: grow },
      { key: '=', label: '', act: grow },
      { key: 'Escape', label: 'Clear the selection', act: () => (this.dock.size > 0 ? this.dock.clear() : false) },
    ];
  }
}

/** @param {import('../main.js').Page} page */
export const make = (page) => new SearchScreen(page);
