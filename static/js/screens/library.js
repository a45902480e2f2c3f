// Library: all videos, found by folder, tag and name, and changed one or many at a time.

import { get, isAbort, post } from '../core/api.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { hasEnded, jobs } from '../core/jobs.js';
import { keys } from '../core/keys.js';
import { openMenu } from '../core/menu.js';
import { problemBox } from '../core/problems.js';
import { reels } from '../core/reels.js';
import { count, titleOf } from '../core/words.js';
import { Grid } from '../parts/grid.js';
import { askTags, askText, editDetails, move, restore, tag, trash } from '../parts/labels.js';
import { DRAGGED, Places } from '../parts/places.js';
import { chooseFiles, pairStored, uploads } from '../parts/uploads.js';
import { card, row, stateLine } from '../parts/videocard.js';
import { SORTS, VideoList } from '../parts/videolist.js';

/** @typedef {Api<'Video'>} Video */

/** Pause in typing after which the list is read. */
const TYPING_MS = 150;
/** Videos that come within this time are listed together. */
const ADDED_MS = 300;
/** Rows that the table draws at a time. */
const ROWS = 150;

class Library {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Library';
    this.list = new VideoList();
    /** @type {Video[]} what is shown, in order */
    this.shown = [];
    /** @type {Set<string>} */
    this.chosen = new Set();
    this.anchor = '';
    this.parameters = new URLSearchParams();
    this.drawn = 0;
    this.isReadingMore = false;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.later = undefined;
    /** @type {Video[]} */
    this.dragged = [];
    this.removeKeys = () => {};
    this.places = new Places({ move: (folder) => this.moveTo(this.dragged, folder) });
    this.grid = new Grid({ make: (/** @type {Video} */ video) => card(video, this), onEnd: () => this.more(), label: 'Videos' });
    this.total = el('span', { class: 'dim small num' });
    this.filter = el('input', { placeholder: 'Filter by name, tag, folder', on: { input: () => this.note({ q: this.filter.value }, TYPING_MS) } });
    this.sort = button('', () => this.openSort(), { class: 'btn ghost', 'aria-haspopup': 'menu', id: 'library-sort' });
    this.views = ['grid', 'list'].map((view) => el('button', {
      type: 'button', 'aria-label': view === 'grid' ? 'Grid' : 'List', on: { click: () => this.note({ view: view === 'grid' ? '' : 'list' }) },
    }, icon(view === 'grid' ? 'layout-grid' : 'list', 's')));
    this.small = el('select', { class: 'field only-s places', 'aria-label': 'Folder or tag', on: { change: () => this.page.router.go(`/library${this.small.value}`) } });
    this.body = el('div', { class: 'library-body' });
    this.tbody = el('tbody');
    this.table = el('div', { class: 'panel table-scroll' }, el('table', { class: 'tbl videos' }, el('thead', {}, el('tr', {},
      ['Select', 'Picture'].map((name) => el('th', {}, el('span', { class: 'sr' }, name))), el('th', {}, 'Title'), el('th', { class: 'r' }, 'Length'),
      el('th', { class: 'r' }, 'Shots'), el('th', {}, 'Tags'), el('th', { class: 'r' }, 'Added'), el('th', { class: 'r' }, 'Size'), el('th', {}, el('span', { class: 'sr' }, 'More')))), this.tbody));
    this.table.addEventListener('keydown', (event) => this.moveInTable(event));
    this.end = el('div', { 'aria-hidden': 'true' });
    this.atEnd = new IntersectionObserver((seen) => { if (seen.some(({ isIntersecting }) => isIntersecting)) this.drawMoreRows(); }, { rootMargin: '800px 0px' });
    this.chosenCount = el('span', { class: 'small num chosen-count' });
    const act = (/** @type {string} */ picture, /** @type {string} */ label, /** @type {(videos: Video[]) => unknown} */ run, inTrash = false, kind = '') =>
      button([icon(picture), el('span', { class: 'only-l' }, label)], () => run.call(this, this.picked), { class: `btn ghost ${kind}`, 'aria-label': label, data: { trash: inTrash } });
    this.dock = el('div', { class: 'dock', role: 'region', 'aria-label': 'Selection', hidden: true }, this.chosenCount, el('span', { class: 'sep only-l' }),
      act('tag', 'Tag', this.tagThem), act('folder', 'Move', this.askMove), act('captions', 'Subtitles', this.addSubtitles), act('trash-2', 'Delete', this.discard, false, 'danger'), act('undo-2', 'Restore', this.bringBack, true),
      iconButton('x', 'Clear selection', () => this.clearChoice(), { key: 'Esc' }));
    this.add = button([icon('plus'), 'Add videos'], () => this.openAdd(), { class: 'btn primary', 'aria-haspopup': 'menu', id: 'add-videos' });
    this.element = el('div', { class: 'library' },
      el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Library'), this.total,
        el('a', { class: 'field jump only-l', href: '/' }, icon('search'), el('span', { class: 'grow' }, 'Search in all videos'), el('kbd', { 'aria-hidden': 'true' }, '/')),
        el('span', { class: 'only-s grow' }), this.add),
      el('div', { class: 'lib' }, this.places.element,
        el('div', { class: 'found' },
          el('div', { class: 'toolbar' }, el('label', { class: 'field filter' }, icon('list-filter', 's'), el('span', { class: 'sr' }, 'Filter by name, tag, folder'), this.filter, el('kbd', { class: 'only-l', 'aria-hidden': 'true' }, 'F')),
            this.small, el('span', { class: 'grow' }), this.sort, el('div', { class: 'seg', role: 'group', 'aria-label': 'View' }, this.views)),
          this.body, this.end)),
      this.dock);
    uploads.addEventListener('added', (event) => this.readOne(/** @type {CustomEvent<string>} */ (event).detail));
    jobs.addEventListener('change', () => this.redrawPending());
    jobs.addEventListener('ended', (event) => {
      const { video_id: id } = /** @type {CustomEvent<Api<'Job'>>} */ (event).detail;
      if (id && this.list.videos.some((video) => video.id === id)) this.readOne(id);
    });
  }

  get isTrash() {
    return this.parameters.get('show') === 'trash';
  }

  /** @param {import('../core/router.js').Route} route */
  show(route) {
    this.parameters = new URLSearchParams(route.parameters);
    uploads.folder = this.parameters.get('folder') ?? '';
    if (this.filter.value !== (this.parameters.get('q') ?? '')) this.filter.value = this.parameters.get('q') ?? '';
    if (VideoList.key(this.parameters) !== this.list.asked) this.chosen.clear();
    else this.refresh();
    this.places.show(this.parameters);
    this.removeKeys();
    this.addKeys();
    this.load();
    this.places.load().catch(() => {});
  }

  hide() {
    uploads.folder = '';
    this.removeKeys();
  }

  addKeys() {
    this.removeKeys = keys.add('Library', [
      { key: 'X', label: 'Select', act: () => this.chooseFocused(false) },
      { key: 'Shift+X', label: 'Select up to here', act: () => this.chooseFocused(true) },
      { key: 'Ctrl+A', label: 'Select all', act: () => this.chooseAll() },
      { key: 'R', label: 'Add to reel', act: () => this.addToReel() },
      { key: 'F', label: 'Filter', act: () => this.filter.focus() },
      { key: 'Delete', label: 'Delete', act: () => (this.chosen.size > 0 && !this.isTrash ? this.discard(this.picked) : false) },
      { key: 'Escape', label: '', act: () => (this.chosen.size > 0 ? this.clearChoice() : false) },
    ]);
  }

  /** Reads the list, and shows it if it is another one now. */
  async load() {
    clearTimeout(this.later);
    const isOther = VideoList.key(this.parameters) !== this.list.asked;
    const skeleton = isOther && setTimeout(() => fill(this.body, el('div', { class: 'grid' }, Array.from({ length: 12 }, () => el('div', { class: 'skel card-skel' })))), 150);
    try {
      if (await this.list.read(this.parameters)) this.refresh();
    } catch (error) {
      if (isAbort(error)) return;
      this.list.asked = '';
      fill(this.body, problemBox(error, () => this.load()));
    } finally {
      if (skeleton) clearTimeout(skeleton);
    }
  }

  /** Reads the list after a while; a second call within it waits anew. @param {number} wait in milliseconds */
  loadLater(wait) {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.load(), wait);
  }

  /** Reads and shows the next page. */
  async more() {
    if (this.isReadingMore) return;
    this.isReadingMore = true;
    try {
      const videos = (await this.list.more()).filter((video) => this.isHere(video));
      if (videos.length === 0) return;
      this.shown = [...this.shown, ...videos];
      if (this.isList) this.drawRows();
      else this.grid.append(videos);
    } catch (error) {
      if (!isAbort(error)) this.page.toasts.problem(error);
    } finally {
      this.isReadingMore = false;
    }
  }

  get isList() {
    return this.parameters.get('view') === 'list';
  }

  /** Whether a video is still in the folder and has the tag; one that was moved away just now is not. @param {Video} video */
  isHere(video) {
    const [folder, tagName] = ['folder', 'tag'].map((name) => this.parameters.get(name)?.toLowerCase());
    return (!folder || `${video.folder?.toLowerCase()}/`.startsWith(`${folder}/`)) && (!tagName || video.tags.some((one) => one.toLowerCase() === tagName));
  }

  /** Draws the list. */
  refresh() {
    this.shown = this.list.videos.filter((video) => this.isHere(video));
    const { isList } = this;
    const { label } = SORTS[this.parameters.get('sort') ?? ''] ?? SORTS.newest;
    this.views.forEach((view, place) => { view.setAttribute('aria-pressed', String(isList === (place === 1))); });
    fill(this.sort, icon('arrow-up-down'), el('span', { class: 'only-l' }, label));
    this.sort.setAttribute('aria-label', `Sort: ${label}`);
    this.total.textContent = count(this.list.total - (this.list.videos.length - this.shown.length), 'video');
    this.places.show(this.parameters);
    this.drawSmallPlaces();
    this.drawDock();
    const focused = /** @type {HTMLElement|null|undefined} */ (this.body.contains(document.activeElement) ? document.activeElement?.closest('[data-id]') : null)?.dataset.id;
    this.drawn = 0;
    fill(this.tbody);
    if (this.shown.length === 0) {
      fill(this.body, this.empty());
    } else if (isList) {
      if (this.table.parentNode !== this.body) fill(this.body, this.table);
      this.drawRows();
    } else {
      if (this.grid.element.parentNode !== this.body) fill(this.body, this.grid.element);
      this.grid.measure();
      this.grid.set(this.shown);
    }
    const place = this.shown.findIndex(({ id }) => id === focused);
    if (place >= 0 && !isList) this.grid.focus(place);
  }

  drawRows() {
    const next = this.shown.slice(this.drawn, this.drawn + ROWS);
    this.drawn += next.length;
    this.tbody.append(...next.map((video) => row(video, this)));
    // The observer reports changes only: an end that stays in sight must be looked at again.
    this.atEnd.unobserve(this.end);
    this.atEnd.observe(this.end);
  }

  /** Draws what comes next in the table, and reads more once all is drawn. */
  drawMoreRows() {
    if (!this.isList) return;
    if (this.drawn < this.shown.length) this.drawRows();
    else this.more();
  }

  /** Below 760 px the left side is a list to choose from. */
  drawSmallPlaces() {
    const links = /** @type {HTMLAnchorElement[]} */ ([...this.places.element.querySelectorAll('a')]);
    fill(this.small, links.map((link) => el('option', { value: link.search, selected: link.classList.contains('on') }, link.querySelector('.clip1')?.textContent ?? '')));
  }

  empty() {
    const filtered = ['folder', 'tag', 'q'].some((name) => this.parameters.has(name)) || (this.parameters.has('show') && !this.isTrash);
    if (this.isTrash && !filtered) return el('div', { class: 'empty' }, el('h2', {}, 'The trash is empty'), el('p', {}, 'Deleted videos stay here for some days and can be brought back.'));
    if (filtered) {
      return el('div', { class: 'empty' }, el('h2', {}, 'No video is like this'), el('p', {}, 'No video passes what is set here: its name, folder, tag or kind.'),
        el('a', { class: 'btn', href: '/library' }, 'Show all videos'));
    }
    return el('div', { class: 'empty first-run' }, el('h2', {}, 'Nothing here yet'),
      el('p', {}, 'Add videos, and every moment in them can be found: by words, by a clip, or by a clip and what should be different.'),
      el('div', { class: 'drop' }, icon('upload', 'l'), el('b', {}, 'Drop videos or a folder here'),
        el('span', { class: 'muted small' }, 'Subtitles beside them (.srt, .vtt) come along. MP4, MOV, MKV, MXF and more.'),
        el('span', { class: 'row wrap' }, button([icon('plus'), 'Choose videos'], () => chooseFiles(this.page.addFiles), { class: 'btn primary' }),
          button([icon('folder'), 'Choose a folder'], () => chooseFiles(this.page.addFiles, { folder: true })))),
      el('a', { class: 'link', href: '/models' }, 'Choose a model first'));
  }

  /**
   * Changes what the address says and shows it; Back does not step through it.
   * @param {Record<string, string>} changes
   * @param {number} [wait] before another list is read, in milliseconds
   */
  note(changes, wait = 0) {
    for (const [name, value] of Object.entries(changes)) {
      if (value) this.parameters.set(name, value);
      else this.parameters.delete(name);
    }
    const text = this.parameters.toString();
    this.page.router.note(text ? `/library?${text}` : '/library');
    if (VideoList.key(this.parameters) === this.list.asked) this.refresh();
    else this.loadLater(wait);
  }

  openSort() {
    const now = this.parameters.get('sort') ?? 'newest';
    openMenu(this.sort, Object.entries(SORTS).map(([sort, { label }]) => ({ label, checked: sort === now, act: () => this.note({ sort: sort === 'newest' ? '' : sort }) })));
  }

  openAdd() {
    openMenu(this.add, [
      { label: 'Choose videos', icon: 'file-video', act: () => chooseFiles(this.page.addFiles) },
      { label: 'Choose a folder', icon: 'folder', act: () => chooseFiles(this.page.addFiles, { folder: true }) },
    ]);
  }

  /** @param {Video} video @param {HTMLElement} opener */
  openMenu(video, opener) {
    openMenu(opener, [
      { label: 'Edit the details', icon: 'pencil', act: () => this.attempt(() => editDetails(video.id, (changed) => this.replace([changed]))) },
      { label: 'Tag', icon: 'tag', act: () => this.tagThem([video]) },
      { label: 'Move', icon: 'folder', act: () => this.askMove([video]) },
      { label: 'Add subtitles', icon: 'captions', act: () => this.addSubtitles([video]) },
      { label: 'More like this', icon: 'scan-search', act: () => this.page.router.go(`/?clip=${video.id}&start=0&end=${video.duration ?? 1}`) },
      null,
      { label: 'Delete', icon: 'trash-2', act: () => this.discard([video]) },
    ]);
  }

  // What is chosen

  /** The chosen videos that are shown, in order. */
  get picked() {
    return this.shown.filter(({ id }) => this.chosen.has(id));
  }

  /** @param {Video} video */
  isChosen(video) {
    return this.chosen.has(video.id);
  }

  /** @param {Video} video @param {boolean} range */
  choose(video, range) {
    const from = this.shown.findIndex(({ id }) => id === this.anchor);
    const to = this.shown.indexOf(video);
    if (range && from >= 0) for (const one of this.shown.slice(Math.min(from, to), Math.max(from, to) + 1)) this.chosen.add(one.id);
    else if (!this.chosen.delete(video.id)) this.chosen.add(video.id);
    this.anchor = video.id;
    this.drawChoice();
  }

  /** @param {boolean} range */
  chooseFocused(range) {
    const video = this.focused;
    if (!video) return false;
    this.choose(video, range);
    return true;
  }

  /** The video whose card or row has the focus. */
  get focused() {
    const inside = document.activeElement?.closest('[data-id]');
    return inside instanceof HTMLElement ? this.shown.find(({ id }) => id === inside.dataset.id) : undefined;
  }

  /** Appends the chosen videos, or the focused one, to the open reel, each as a whole. */
  addToReel() {
    const { focused } = this;
    const ranges = (this.chosen.size > 0 ? this.picked : focused ? [focused] : [])
      .flatMap(({ id, state, duration }) => (state === 'ready' && duration ? [{ video_id: id, start: 0, end: duration }] : []));
    if (this.isTrash || ranges.length === 0) return false;
    this.attempt(async () => {
      const undo = await reels.add(ranges);
      this.page.toasts.show([`Added ${count(ranges.length, 'video')} to `, el('b', {}, reels.open?.name ?? 'the reel')], { undo });
    });
    return true;
  }

  /** Selects the whole list, of which the page may have read the start only. */
  async chooseAll() {
    await this.attempt(() => this.list.rest());
    this.refresh();
    for (const { id } of this.shown) this.chosen.add(id);
    this.drawChoice();
  }

  clearChoice() {
    this.chosen.clear();
    this.drawChoice();
  }

  /** Marks what is chosen in place: the cards stay, and the focus with them. */
  drawChoice() {
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (this.body.querySelectorAll('[data-id]'))) {
      const on = this.chosen.has(part.dataset.id ?? '');
      part.classList.toggle('chosen', on);
      part.querySelector('.pick')?.setAttribute('aria-pressed', String(on));
      const check = part.querySelector('.check');
      check?.classList.toggle('on', on);
      check?.setAttribute('aria-checked', String(on));
    }
    this.drawDock();
  }

  drawDock() {
    const number = this.picked.length;
    if (number === 0 && this.dock.contains(document.activeElement)) this.element.querySelector('h1')?.focus();
    this.dock.hidden = number === 0;
    this.body.classList.toggle('choosing', number > 0);
    this.chosenCount.textContent = `${number} selected`;
    for (const part of this.dock.querySelectorAll('[data-trash]')) part.toggleAttribute('hidden', part.getAttribute('data-trash') !== String(this.isTrash));
  }

  // Changes

  /** @param {() => Promise<unknown>} act */
  async attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!isAbort(error)) this.page.toasts.problem(error);
    }
  }

  /**
   * Shows a change at once, makes it, and offers to undo it; a failure shows what the server has.
   * @param {Video[]} changed as they will be
   * @param {string} message
   * @param {() => Promise<() => Promise<unknown>>} act
   */
  async change(changed, message, act) {
    this.list.stop();
    this.replace(changed);
    try {
      const undo = await act();
      this.page.toasts.show(message, { undo: () => undo().finally(() => this.again()) });
    } catch (error) {
      this.page.toasts.problem(error);
    }
    await this.again();
  }

  again() {
    this.places.load().catch(() => {});
    return this.load();
  }

  /** @param {Video[]} videos */
  async tagThem(videos) {
    const answer = await askTags(videos);
    if (!answer || answer.add.length + answer.take.length === 0) return;
    const { add, take } = answer;
    const changed = videos.map((video) => ({ ...video, tags: [...new Set([...video.tags.filter((one) => !take.includes(one)), ...add])].sort() }));
    await this.change(changed, `Changed the tags of ${count(videos.length, 'video')}.`, () => tag(videos, add, take));
  }

  /** @param {Video[]} videos */
  async askMove(videos) {
    const folder = await askText({ id: 'move', title: `Move ${count(videos.length, 'video')}`, label: 'Folder. Empty: out of all folders.', value: videos[0].folder ?? '', act: 'Move', choices: this.places.names });
    if (folder !== null) await this.moveTo(videos, folder || null);
  }

  /** @param {Video[]} videos @param {string|null} folder */
  async moveTo(videos, folder) {
    await this.change(videos.map((video) => ({ ...video, folder })), `Moved ${count(videos.length, 'video')} ${folder ? `to ${folder}` : 'out of their folders'}.`, () => move(videos, folder));
  }

  /** @param {Video[]} videos */
  addSubtitles(videos) {
    chooseFiles((files) => this.attempt(() => pairStored(this.page, files, videos)), { accept: '.srt,.vtt' });
  }

  /** @param {Video[]} videos */
  drop(videos) {
    this.list.drop(videos);
    for (const { id } of videos) this.chosen.delete(id);
  }

  /** @param {Video[]} videos */
  async discard(videos) {
    this.drop(videos);
    const what = videos.length === 1 ? `“${titleOf(videos[0])}”` : count(videos.length, 'video');
    await this.change([], `Moved ${what} to the trash.`, async () => {
      await trash(videos);
      return () => restore(videos);
    });
  }

  /** @param {Video[]} videos */
  async bringBack(videos) {
    this.drop(videos);
    await this.change([], `Restored ${count(videos.length, 'video')}.`, async () => {
      await restore(videos);
      return () => trash(videos);
    });
  }

  /** @param {Video} video */
  restore(video) {
    return this.bringBack([video]);
  }

  /** @param {Video} video */
  retry(video) {
    this.replace([{ ...video, state: 'pending' }]);
    return this.attempt(async () => {
      const job = await post(`/v1/jobs/${video.job_id}/retry`);
      if (hasEnded(job)) await this.readOne(video.id);
      else jobs.look(job);
    });
  }

  /** @param {Video} video @param {DragEvent} event */
  drag(video, event) {
    this.dragged = this.chosen.has(video.id) ? this.picked : [video];
    event.dataTransfer?.setData(DRAGGED, this.dragged.map(({ id }) => id).join(' '));
  }

  /** @param {Video[]} changed */
  replace(changed) {
    this.list.replace(changed);
    this.refresh();
  }

  /**
   * Reads a video anew, or for the first time.
   * @param {string} id
   */
  async readOne(id) {
    const video = await get(`/v1/videos/${id}`).catch(() => null);
    if (!video || this.isTrash) return;
    if (this.list.videos.some((one) => one.id === id)) {
      this.replace([video]);
    } else if (this.list.asked) {
      this.loadLater(ADDED_MS);
      this.places.load().catch(() => {});
    }
  }

  /** Shows the progress of videos that are being read. */
  redrawPending() {
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (this.body.querySelectorAll('[data-state="pending"]'))) {
      const video = this.shown.find(({ id }) => id === part.dataset.id);
      if (video) part.querySelector('.state')?.replaceWith(stateLine(video, this));
    }
  }

  /** @param {KeyboardEvent} event */
  moveInTable(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const names = /** @type {HTMLElement[]} */ ([...this.tbody.querySelectorAll('a.name')]);
    const row0 = event.target instanceof Element ? event.target.closest('tr') : null;
    const at = names.findIndex((name) => row0?.contains(name));
    if (!step || at < 0) return;
    event.preventDefault();
    names[at + step]?.focus();
  }
}

/** @param {import('../main.js').Page} page */
export const make = (page) => new Library(page);
