// The start of a search: the box, the last searches of this browser, examples, and what there is to search.

import { get } from '../../core/api.js';
import { button, el, fill, icon } from '../../core/dom.js';
import { count, formatNumber } from '../../core/words.js';
import { queryParameters } from '../../parts/query.js';

const RECENT = 'reprise_recent';
const KEPT = 20;
const SHOWN = 6;

/** @typedef {{path: string, text: string, like: string, picture: string, found: string}} Recent */

/** @returns {Recent[]} */
export function recentSearches() {
  try {
    return JSON.parse(localStorage.getItem(RECENT) ?? '[]');
  } catch {
    return [];
  }
}

/** @param {Recent} search */
export function remember(search) {
  // Other filters and orders make no other search.
  const query = (/** @type {string} */ path) => String(queryParameters(new URLSearchParams(path.slice(2))));
  const others = recentSearches().filter(({ path }) => query(path) !== query(search.path));
  localStorage.setItem(RECENT, JSON.stringify([search, ...others].slice(0, KEPT)));
}

export class Home {
  /** @param {import('../../main.js').Page} page @param {import('./ask.js').Ask} ask */
  constructor(page, ask) {
    this.page = page;
    this.ask = ask;
    this.recent = el('section', { class: 'recent', 'aria-label': 'Recent searches' });
    this.examples = el('div', { class: 'row wrap examples' });
    /** @type {{title: string, href: string}[]|undefined} */
    this.known = undefined;
    this.counts = el('p', { class: 'dim small num' });
    this.start = [el('h1', {}, 'Find a moment'),
      el('div', { class: 'wide' }, ask.element,
        el('p', { class: 'dim small only-l hint' }, 'Two words or two pages. ', el('kbd', {}, '⇧'), ' ', el('kbd', {}, '↵'), ' for a new line.')),
      this.examples, this.recent, this.counts];
    this.element = el('div', { class: 'page home' }, this.start);
  }

  async show() {
    this.drawRecent();
    const [stats, examples] = await Promise.all([get('/v1/stats'), this.known ?? get('/examples.json')]);
    this.known = /** @type {{title: string, href: string}[]} */ (examples);
    const isNew = stats.videos === 0;
    if (isNew !== this.element.classList.contains('new')) {
      this.element.classList.toggle('new', isNew);
      fill(this.element, isNew ? this.firstRun() : this.start);
    }
    const all = stats.videos_ready === stats.videos ? 'all searchable' : `${formatNumber(stats.videos_ready)} videos searchable`;
    this.counts.textContent = [count(stats.videos, 'video'), `${count(stats.clips, 'clip')}, ${all}`].join(' · ');
    fill(this.examples, this.known.map(({ title, href }) => el('a', { class: 'chip', href }, title)));
  }

  drawRecent() {
    const searches = recentSearches().slice(0, SHOWN);
    this.recent.hidden = searches.length === 0;
    const clear = () => {
      const all = localStorage.getItem(RECENT) ?? '[]';
      localStorage.removeItem(RECENT);
      this.drawRecent();
      this.page.toasts.show('The recent searches are cleared.', { undo: () => {
        localStorage.setItem(RECENT, all);
        this.drawRecent();
      } });
    };
    fill(this.recent, el('div', { class: 'row' }, el('h2', { class: 'small muted grow' }, 'Recent'), button('Clear', clear, { class: 'btn ghost' })),
      searches.map(({ path, text, like, picture, found }) => el('a', { class: 'row', href: path },
        picture ? el('img', { src: picture, alt: '', width: 32, height: 32 }) : el('span', { class: 'dim sign' }, icon('history')),
        el('span', { class: 'clip1 grow' }, text, like && el('span', { class: 'dim' }, text ? ` · ${like}` : like)),
        el('span', { class: 'dim small num' }, found))));
  }

  /** What a library without videos shows. */
  firstRun() {
    const chooser = (/** @type {string} */ label, /** @type {string} */ picture, /** @type {Record<string, any>} */ props, classes = 'btn') => {
      const input = el('input', { type: 'file', multiple: true, hidden: true, 'aria-label': label, ...props, on: { change: () => this.page.addFiles([...input.files ?? []]) } });
      return [button([icon(picture), label], () => input.click(), { class: classes }), input];
    };
    return [el('h1', {}, 'Nothing here yet'),
      el('p', { class: 'muted' }, 'Add videos, and every moment in them can be found: by words, by a clip, or by a clip and what should be different.'),
      el('div', { class: 'drop wide' }, icon('upload', 'l'), el('b', {}, 'Drop videos or a folder here'),
        el('span', { class: 'muted small' }, 'Subtitles beside them (.srt, .vtt) come along. MP4, MOV, MKV, MXF and more.'),
        el('span', { class: 'row wrap' }, chooser('Choose videos', 'plus', { accept: 'video/*,.srt,.vtt,.mkv,.mxf' }, 'btn primary'),
          chooser('Choose a folder', 'folder', { webkitdirectory: true }))),
      el('p', { class: 'dim small' }, 'Or first ', el('a', { class: 'link', href: '/models' }, 'choose a model'), ': the built-in one knows only drawings of sports.')];
  }
}
