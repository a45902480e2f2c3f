// One search: asks, and shows what came: the count, the strong hits, the weak ones, or that there are none.

import { isAbort, search } from '../../core/api.js';
import { connection } from '../../core/connection.js';
import { button, el, fill, icon, iconButton } from '../../core/dom.js';
import { announce, problemBox } from '../../core/problems.js';
import { openMenu } from '../../core/menu.js';
import { count, formatNumber } from '../../core/words.js';
import { Shapes, hitCard } from '../../parts/card.js';
import { Grid } from '../../parts/grid.js';
import { foldedOf, hitPath, opensAt } from '../../parts/hits.js';
import { Previews } from '../../parts/preview.js';
import { EVERYWHERE, FILTERS, canHear, filterOf, isText, queryParameters, searchOf, sourcesOf } from '../../parts/query.js';
import { countWords } from './ask.js';
import { filterChips } from './facets.js';

/** @typedef {Api<'Hit'>} Hit */
/** A card's hit, and the hits that it stands for. @typedef {{hit: Hit, alike: Hit[], from?: Item}} Item */
/** @typedef {import('./groups.js').Groups} Groups */
/** @typedef {Grid<Item>|Groups} List */

const WAIT_MS = 150;
const RATIO = 'reprise_ratio';
/** Groups that are shown at most: their cards all stay in the document. */
const MOST_GROUPS = 80;
/** @type {[value: string, label: string][]} */
const SORTS = [['', 'Best first'], ['time', 'By time'], ['newest', 'Newest video']];

/** @type {Record<string, (one: Hit, other: Hit) => number>} */
const ORDERS = {
  time: (one, other) => one.video_id.localeCompare(other.video_id) || one.start - other.start,
  // A video's id begins with the time of its making.
  newest: (one, other) => other.video_id.localeCompare(one.video_id) || one.rank - other.rank,
};

/**
 * What the results ask of their screen.
 * @typedef {object} Host
 * @property {(changes: Record<string, string|string[]|null>) => void} change searches with other parameters
 * @property {(hit: Hit) => boolean} isChosen
 * @property {(item: Item) => void} onHot the pointer or the focus came to a hit
 * @property {() => void} toggleFacets
 * @property {(step: number) => void} resize
 * @property {() => boolean} showsFacets
 * @property {(view: Results) => void} done there is something to be seen: hits, or a failure
 */

export class Results {
  /** @param {URLSearchParams} parameters @param {Host} host */
  constructor(parameters, host) {
    this.parameters = parameters;
    this.host = host;
    this.sort = parameters.get('sort') ?? '';
    this.query = queryParameters(parameters);
    this.stop = new AbortController();
    /** @type {List[]} */
    this.lists = [];
    /** @type {Item|null} the hit that had the focus or the pointer last */
    this.left = null;
    this.aborted = false;
    this.failed = false;
    /** Whether the server was away: the search runs on its return. */
    this.away = false;
    /** Whether more was found than is shown or will be. */
    this.isCut = false;
    this.shown = 0;
    this.folded = 0;
    this.strong = 0;
    this.heading = el('h1', { class: 'num' }, 'Searching');
    this.facts = el('span', { class: 'dim small num only-l only-w' });
    this.head = el('div');
    this.body = el('div', { class: 'hits' });
    this.element = el('div', { class: 'results' }, this.toolbar(), this.head, this.body);
    this.shapes = new Shapes(this.element, Number(localStorage.getItem(RATIO)) || 1);
    // The next search begins with the shape that these pictures have.
    this.element.addEventListener('load', () => localStorage.setItem(RATIO, String(this.shapes.ratio)), true);
    this.previews = new Previews(this.body, (card) => `/v1/clips/${card.dataset.clip}/preview`, (card) => {
      const item = this.at(card)?.item;
      if (item) host.onHot(item);
    });
    this.body.addEventListener('focusin', (event) => {
      const card = /** @type {HTMLElement} */ (event.target).closest('.card');
      if (card instanceof HTMLElement && card !== this.previews.card && card.matches(':has(:focus-visible)')) this.previews.enter({ target: card, clientX: 0 });
    });
  }

  toolbar() {
    const { host, parameters } = this;
    const grouped = parameters.get('group') === 'video';
    const label = SORTS.find(([value]) => value === this.sort)?.[1] ?? SORTS[0][1];
    const sort = button([icon('arrow-up-down'), label], () => openMenu(sort, SORTS.map(([value, name]) => ({
      label: name, checked: value === this.sort, act: () => host.change({ sort: value || null }),
    }))), { class: 'btn ghost only-l', 'aria-haspopup': 'menu' });
    this.filter = button([icon('list-filter'), 'Filter ', el('kbd', { class: 'only-l only-w', 'aria-hidden': 'true' }, 'F')], () => host.toggleFacets(), { class: 'btn ghost filter' });
    return el('div', { class: 'toolbar' }, this.heading, this.facts, el('span', { class: 'grow' }), this.filter, !grouped && sort,
      button([icon('group'), el('span', { class: 'only-l' }, 'Group by video')], () => host.change({ group: grouped ? null : 'video', sort: null }),
        { class: grouped ? 'btn ghost on' : 'btn ghost', 'aria-label': 'Group by video', 'aria-pressed': String(grouped) }),
      iconButton('layout-grid', 'Smaller cards', () => host.resize(-1), { key: '−', class: 'btn ghost sq only-l smaller' }),
      iconButton('layout-grid', 'Larger cards', () => host.resize(1), { key: '+', class: 'btn ghost sq only-l' }));
  }

  /** Asks for the first page. */
  async load() {
    const asked = searchOf(this.parameters);
    if (!asked) {
      this.fail(new Error('The query’s file is gone: a page that was loaded again forgets it. Choose it again with the paperclip'));
      return this.host.done(this);
    }
    const timer = setTimeout(() => this.drawSkeleton(), WAIT_MS);
    try {
      this.answer = await search(asked.body, asked.file, this.stop.signal);
      // Few look at their hits by video.
      const Groups = this.answer.groups ? (await import('./groups.js')).Groups : null;
      // Pictures of another shape than was supposed would move all cards. Nothing waits after this, or the skeleton would move.
      if (!localStorage.getItem(RATIO)) await this.askShape(this.answer);
      this.stop.signal.throwIfAborted();
      this.draw(this.answer, Groups);
    } catch (error) {
      if (!isAbort(error)) this.fail(error, () => this.load());
      else this.aborted = true;
    } finally {
      clearTimeout(timer);
      if (!this.aborted) this.host.done(this);
    }
  }

  /** @param {any} error @param {(() => void)|null} [retry] */
  fail(error, retry = null) {
    this.failed = true;
    this.away = error.status === 0;
    this.heading.textContent = 'The search failed';
    fill(this.head);
    fill(this.body, problemBox(error, retry));
    if (error.status === 0 && retry) connection.whenBack(retry);
  }

  drawSkeleton() {
    if (!this.element.isConnected) return;
    const cards = Array.from({ length: 12 }, () => el('div', { class: 'card waits' }, el('div', { class: 'thumb' }), el('div', { class: 'cap' }, '\u00a0')));
    // In the head, which is filled anew: a note above the hits must not push what was drawn.
    fill(this.head, el('div', { class: 'hits', 'aria-hidden': 'true' }, el('div', { class: 'grid' }, cards)));
    fill(this.body);
  }

  /** @param {Api<'SearchAnswer'>} answer @param {typeof import('./groups.js').Groups|null} Groups what shows the answer's groups, if it has some */
  draw(answer, Groups) {
    this.failed = false;
    this.away = false;
    fill(this.body);
    fill(this.head, filterChips(this.parameters, this.host.change));
    this.cursor = this.sort ? null : answer.next_cursor;
    if (answer.groups && Groups) this.drawGroups(new Groups({ make: (item, place) => this.make(item, place), onFocus: (item) => this.host.onHot(item), query: this.query }), answer.groups);
    else this.drawHits(this.sort in ORDERS ? [...answer.results].sort(ORDERS[this.sort]) : answer.results);
    const text = this.parameters.get('q') ?? this.parameters.get('mod') ?? '';
    this.filter?.classList.toggle('on', this.host.showsFacets());
    if (this.shown === 0) this.drawNothing(text).catch((error) => fill(this.body, problemBox(error)));
    else if (this.strong === 0) this.drawWeak(text);
    if (this.sort && answer.next_cursor) this.drawCut(this.head, `Only the best ${formatNumber(this.shown)}`, 'moment', answer.facets?.counted);
    this.say();
    announce(this.heading.textContent ?? '');
  }

  /** Asks for the pictures' shape. An unknown one is not remembered: the next search would begin with it. @param {Api<'SearchAnswer'>} answer */
  async askShape(answer) {
    const ratio = await (await import('./shape.js')).shapeOf(answer);
    if (!ratio) return;
    this.shapes.set(ratio);
    localStorage.setItem(RATIO, String(ratio));
  }

  /** Whether more was found than is shown now. */
  get isMore() {
    return Boolean(this.cursor) || this.isCut;
  }

  /**
   * Says that more was found than is listed. The server counts the best hits only, so there may be more than it counted.
   * @param {HTMLElement} place
   * @param {string} listed
   * @param {string} noun
   * @param {number} [counted]
   */
  drawCut(place, listed, noun, counted = 0) {
    this.isCut = true;
    const all = `${this.answer?.facets?.complete ? '' : 'at least '}${count(counted, noun)}`;
    place.append(el('div', { class: 'weak-note panel cut', role: 'note' }, icon('info'), el('p', {}, `${listed}${counted > 0 ? ` of ${all}` : ''} are listed. A filter brings others.`)));
  }

  say() {
    const { shown, strong, answer } = this;
    const more = this.isMore ? '+' : '';
    const weak = shown - strong;
    if (shown === 0) this.heading.textContent = 'Nothing found';
    else if (answer?.groups) this.heading.textContent = `${count(shown, 'moment')} in ${count(this.groups ?? 0, 'video')}${more}`;
    else if (strong === 0) this.heading.textContent = 'Nearest moments';
    else this.heading.textContent = `${formatNumber(strong)}${weak === 0 ? more : ''} ${strong === 1 && !(more && weak === 0) ? 'moment' : 'moments'}`;
    this.facts.textContent = [this.folded > 0 && `${count(this.folded, 'hit')} folded`, this.answer && `${Math.round(this.answer.timings_ms.total)} ms`]
      .filter(Boolean).join(', ');
  }

  /** @param {string} label @param {() => void} onEnd */
  newGrid(label, onEnd = () => {}) {
    /** @type {Grid<Item>} */
    const grid = new Grid({ label, make: (item, place) => this.make(item, place), onFocus: (item) => this.host.onHot(item), onEnd });
    this.lists.push(grid);
    return grid;
  }

  /** @param {Item} item @param {number} place */
  make(item, place) {
    const made = hitCard(item.hit, {
      href: hitPath(item.hit, this.query), pile: item.alike.length + 1, chosen: this.host.isChosen(item.hit), eager: place < 12,
      acts: ['pick', 'unlike', 'like', 'reel'], bare: Boolean(this.answer?.groups),
    });
    if (item.from) made.classList.add('unfolded');
    return made;
  }

  /** @param {Hit[]} hits */
  drawHits(hits) {
    const items = this.take(hits);
    const weak = items.filter(({ hit }) => hit.weak);
    const strong = items.filter(({ hit }) => !hit.weak);
    this.main = this.newGrid('Moments', () => { if (!this.weaker) this.more(); });
    if (strong.length > 0 || weak.length === 0) {
      this.body.append(this.main.element);
      this.main.set(strong);
    }
    if (weak.length > 0) this.addWeak(weak);
  }

  /** Hits as items, counted. @param {Hit[]} hits @returns {Item[]} */
  take(hits) {
    this.shown += hits.length;
    this.strong += hits.filter(({ weak }) => !weak).length;
    const items = hits.map((hit) => ({ hit, alike: foldedOf(hit) }));
    this.folded += items.reduce((sum, { alike }) => sum + alike.length, 0);
    return items;
  }

  /** @param {Item[]} items */
  addWeak(items) {
    if (this.weaker) return this.weaker.append(items);
    this.weaker = this.newGrid('Weaker moments', () => this.more());
    this.body.append(el('section', { class: 'weaker' }, this.strong > 0 && el('h2', { class: 'line' }, 'Weaker'), this.weaker.element));
    this.weaker.set(items);
  }

  /** @param {Groups} list @param {Api<'Group'>[]} groups */
  drawGroups(list, groups) {
    this.lists.push(list);
    this.takeGroups(list, groups);
    const end = el('div', { class: 'grid-end' });
    const watch = new IntersectionObserver((seen) => { if (seen.some(({ isIntersecting }) => isIntersecting)) this.more(); }, { rootMargin: '800px' });
    this.body.append(list.element, end);
    watch.observe(end);
    this.again = () => {
      watch.unobserve(end);
      watch.observe(end);
    };
  }

  /** @param {Groups} list @param {Api<'Group'>[]} groups */
  takeGroups(list, groups) {
    list.append(groups);
    this.take(groups.flatMap(({ results }) => results));
    this.groups = (this.groups ?? 0) + groups.length;
    if (this.groups < MOST_GROUPS || !this.cursor) return;
    this.cursor = null;
    const videos = this.answer?.facets?.counts.find(({ by }) => by === 'video');
    this.drawCut(this.body, `Only the first ${formatNumber(this.groups)}`, 'video', videos && videos.values.length + videos.other_values);
  }

  /** The next page, when its end comes near. */
  async more() {
    if (!this.cursor || this.loading || !this.element.isConnected) return;
    this.loading = true;
    try {
      const answer = await search({ cursor: this.cursor }, null, this.stop.signal);
      this.cursor = answer.next_cursor;
      this.takePage(answer);
      this.say();
    } catch (error) {
      if (isAbort(error)) return;
      this.cursor = null;
      this.body.append(problemBox(error, () => this.host.change({})));
    } finally {
      this.loading = false;
    }
    this.again?.();
  }

  /** @param {Api<'SearchAnswer'>} answer */
  takePage(answer) {
    if (answer.groups) return this.takeGroups(/** @type {Groups} */ (this.lists[0]), answer.groups);
    const items = this.take(answer.results);
    const first = this.weaker ? 0 : items.findIndex(({ hit }) => hit.weak);
    const strong = first < 0 ? items : items.slice(0, first);
    if (strong.length > 0) this.main?.append(strong);
    if (first >= 0 && items.length > first) this.addWeak(items.slice(first));
  }

  /** What else could be tried: [label, changes]. @param {string} text @returns {[string, Record<string, string|string[]|null>][]} */
  waysOn(text) {
    const { parameters } = this;
    const name = isText(parameters) ? 'q' : 'mod';
    const without = Object.fromEntries(FILTERS.map((filter) => [filter, []]));
    const sources = sourcesOf(parameters);
    const bare = text.replace(/["“”„]/g, '').trim();
    const words = text.split(/\s+/);
    return /** @type {any[]} */ ([
      filterOf(parameters) && ['Look in all videos', without],
      canHear(parameters) && sources && ['Look everywhere', { sources: isText(parameters) ? null : EVERYWHERE }],
      bare !== text.trim() && ['Without the quotes', { [name]: bare }],
      name === 'mod' && text && ['Without the change', { mod: null }],
      name === 'q' && bare === text.trim() && words.length > 4 && ['With fewer words', { [name]: words.slice(0, Math.ceil(words.length / 2)).join(' ') }],
    ]).filter(Boolean);
  }

  /** @param {[string, Record<string, string|string[]|null>][]} ways */
  wayButtons(ways) {
    return ways.length > 0 && el('div', { class: 'row wrap' }, ways.map(([label, changes], place) => button(label, () => this.host.change(changes), { class: place === 0 ? 'btn on' : 'btn' })));
  }

  /** @param {string} text */
  drawWeak(text) {
    const long = countWords(text) > 30;
    this.head.append(el('div', { class: 'weak-note panel', role: 'status' }, icon('info'),
      el('p', { class: 'grow' }, el('b', {}, 'None stands out. '),
        `Much else in the library matches about as well.${long ? ' A shorter text often finds more.' : ''}`),
      this.wayButtons(this.waysOn(text))));
  }

  /** @param {string} text */
  async drawNothing(text) {
    const { drawNothing } = await import('./nothing.js');
    drawNothing(this, text);
  }

  /** The list, place and item of a card. @param {Element|null} card */
  at(card) {
    const place = Number(card?.getAttribute('data-place') ?? -1);
    const list = this.lists.find((one) => card && one.element.contains(card));
    return list?.items[place] ? { list, place, item: list.items[place] } : null;
  }

  /** Shows all hits of a pile in the order of time, or folds them again. @param {NonNullable<ReturnType<Results['at']>>} spot */
  unfold({ list, place, item }) {
    if (!(list instanceof Grid)) return;
    const { from } = item;
    if (from) {
      const first = list.items.findIndex((one) => one.from === from);
      const rest = list.items.filter((one) => one.from !== from);
      list.update([...rest.slice(0, first), from, ...rest.slice(first)]);
      list.focus(first);
    } else if (item.alike.length > 0) {
      const all = [item.hit, ...item.alike].sort((one, other) => one.video_id.localeCompare(other.video_id) || opensAt(one) - opensAt(other));
      const open = all.map((hit) => ({ hit, alike: [], from: item }));
      list.update([...list.items.slice(0, place), ...open, ...list.items.slice(place + 1)]);
      list.focus(place + all.indexOf(item.hit));
    }
  }

  /** All items, in order. @returns {Item[]} */
  get items() {
    return this.lists.flatMap((list) => /** @type {Item[]} */ (list.items));
  }

  /** Marks the cards that are chosen. */
  markChosen() {
    for (const card of /** @type {NodeListOf<HTMLElement>} */ (this.body.querySelectorAll('.card[data-place]'))) {
      const item = this.at(card)?.item;
      const on = item ? this.host.isChosen(item.hit) : false;
      card.classList.toggle('chosen', on);
      card.querySelector('.pick')?.setAttribute('aria-pressed', String(on));
    }
  }

  measure() {
    for (const list of this.lists) if (list instanceof Grid) list.measure();
  }

  rest() {
    this.previews.stop();
    if (!this.answer) this.stop.abort();
  }

  close() {
    this.stop.abort();
    this.previews.stop();
    this.previews.close();
    for (const list of this.lists) if (list instanceof Grid) list.close();
  }
}
