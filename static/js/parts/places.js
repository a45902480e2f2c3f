// The left side of the library: kinds of videos, folders, tags, storage. Cards that are dropped on a folder move there.

import { all, get } from '../core/api.js';
import { button, el, fill, icon } from '../core/dom.js';
import { formatBytes, formatNumber } from '../core/words.js';
import { askText } from './labels.js';
import { kindQuery } from './videolist.js';

export const DRAGGED = 'application/x-reprise-videos';

/** The kinds of videos, by the value of `show` in the address. @type {[string, string, string][]} */
const KINDS = [
  ['', 'All videos', 'library'], ['week', 'Added this week', 'clock'], ['warning', 'With a warning', 'triangle-alert'],
  ['failed', 'Failed', 'circle-alert'], ['trash', 'Trash', 'trash-2'],
];

/** @param {string} path */
const nameOf = (path) => path.split('/').pop() ?? path;

async function countKinds() {
  const count = async (/** @type {string} */ kind) => (await get('/v1/videos', { query: { ...kindQuery(kind), limit: 1, count: true } })).total ?? undefined;
  const [week, warning, failed] = await Promise.all(['week', 'warning', 'failed'].map(count));
  return { week, warning, failed };
}

export class Places {
  /** @param {{move: (folder: string|null) => unknown}} host moves what is dragged, or what is selected */
  constructor(host) {
    this.host = host;
    /** @type {Map<string, Api<'FolderCount'>[]>} folders by the folder that they are in */
    this.folders = new Map();
    /** @type {Api<'TagCount'>[]} */
    this.tags = [];
    /** Folders that were made here: the service has one only once a video is in it. @type {string[]} */
    this.made = [];
    /** @type {Api<'Stats'>|null} */
    this.stats = null;
    this.parameters = new URLSearchParams();
    /** @type {Record<string, number|undefined>} videos of the kinds that the statistics do not count */
    this.counts = {};
    this.element = el('nav', { class: 'side only-l', 'aria-label': 'Folders and tags' });
    this.loads = 0;
  }

  /** Names of all known folders, for fields. */
  get names() {
    return [...this.made, ...[...this.folders.values()].flat().map(({ folder }) => folder)];
  }

  /** Reads folders down to the shown one, tags, sizes and the numbers of videos. */
  async load() {
    this.loads += 1;
    const number = this.loads;
    const shown = this.parameters.get('folder') ?? '';
    const parents = ['', ...shown.split('/').filter(Boolean).map((_, place, names) => names.slice(0, place + 1).join('/'))];
    const [tags, stats, counts, ...levels] = await Promise.all([all('/v1/tags', { most: 200 }), get('/v1/stats'), countKinds(),
      ...parents.map((parent) => all('/v1/folders', { query: { parent } }))]);
    if (number !== this.loads) return;
    this.tags = tags;
    this.stats = stats;
    this.counts = counts;
    this.folders = new Map(parents.map((parent, place) => [parent, levels[place]]));
    this.made = this.made.filter((folder) => !this.names.slice(this.made.length).includes(folder));
    this.draw();
  }

  /** @param {URLSearchParams} parameters of the address */
  show(parameters) {
    this.parameters = parameters;
    this.draw();
  }

  draw() {
    const kind = this.parameters.get('show') ?? '';
    const plain = !this.parameters.has('folder') && !this.parameters.has('tag');
    const numbers = /** @type {Record<string, number|undefined>} */ ({ '': this.stats?.videos, trash: this.stats?.videos_trashed, ...this.counts });
    const kinds = KINDS.map(([value, label, picture]) => this.link(value ? { show: value } : {}, label, picture, numbers[value], plain && kind === value));
    const tags = this.tags.map(({ tag, videos }) => this.link({ tag }, tag, 'tag', videos, this.parameters.get('tag') === tag));
    const add = button([icon('plus'), 'New folder'], () => this.addFolder(), { class: 'new' });
    const { media_bytes: bytes = 0, trashed_bytes: trashed = 0 } = this.stats ?? {};
    fill(this.element, kinds, el('div', { class: 'label' }, 'Folders'), this.level('', 0), add,
      tags.length > 0 && [el('div', { class: 'label' }, 'Tags'), tags],
      this.stats && el('p', { class: 'dim tiny num storage' }, `${formatBytes(bytes)} of video`, trashed > 0 && `, ${formatBytes(trashed)} of it in the trash`));
  }

  /**
   * @param {string} parent
   * @param {number} depth
   * @returns {Node[]}
   */
  level(parent, depth) {
    const stored = this.folders.get(parent) ?? [];
    const made = this.made.filter((folder) => folder.split('/').slice(0, -1).join('/') === parent && !stored.some((one) => one.folder === folder));
    const rows = [...stored.map(({ folder, total }) => ({ folder, total })), ...made.map((folder) => ({ folder, total: 0 }))];
    return rows.flatMap(({ folder, total }) => {
      const on = this.parameters.get('folder') === folder;
      const open = this.folders.has(folder);
      const link = this.link({ folder }, nameOf(folder), open ? 'folder-open' : 'folder', total, on);
      link.style.setProperty('--depth', String(depth));
      this.takeDrops(link, folder);
      return [link, ...(open ? this.level(folder, depth + 1) : [])];
    });
  }

  /**
   * @param {Record<string, string>} query
   * @param {string} label
   * @param {string} picture
   * @param {number|undefined} number
   * @param {boolean} on
   */
  link(query, label, picture, number, on) {
    const parameters = new URLSearchParams(query);
    for (const kept of ['sort', 'view']) if (this.parameters.has(kept)) parameters.set(kept, this.parameters.get(kept) ?? '');
    const text = parameters.toString();
    return el('a', { class: on ? 'on' : null, 'aria-current': on ? 'true' : null, href: text ? `/library?${text}` : '/library' },
      icon(picture), el('span', { class: 'clip1' }, label), number !== undefined && el('span', { class: 'count' }, formatNumber(number)));
  }

  /** @param {HTMLElement} link @param {string} folder */
  takeDrops(link, folder) {
    link.addEventListener('dragover', (event) => {
      if (!event.dataTransfer?.types.includes(DRAGGED)) return;
      event.preventDefault();
      link.classList.add('over');
    });
    link.addEventListener('dragleave', () => link.classList.remove('over'));
    link.addEventListener('drop', (event) => {
      if (!event.dataTransfer?.types.includes(DRAGGED)) return;
      event.preventDefault();
      link.classList.remove('over');
      this.host.move(folder);
    });
  }

  async addFolder() {
    const parent = this.parameters.get('folder');
    const name = await askText({ id: 'new-folder', title: 'New folder', label: 'It is kept once a video is in it.', value: parent ? `${parent}/` : '', act: 'Make' });
    if (!name) return;
    this.made.push(name.replace(/^\/+|\/+$/g, ''));
    this.draw();
  }
}
