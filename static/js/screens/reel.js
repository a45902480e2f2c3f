// Reel: its clips in order, played as a list, trimmed and arranged, shared and exported.

import { get, remove } from '../core/api.js';
import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { keys } from '../core/keys.js';
import { problemBox } from '../core/problems.js';
import { reels } from '../core/reels.js';
import { videoPath } from '../core/router.js';
import { formatRange, formatTime, toMilliseconds } from '../core/time.js';
import { toasts } from '../core/toast.js';
import { count, formatLength, titleOf } from '../core/words.js';
import { askText } from '../parts/labels.js';
import { ListPlayer } from '../parts/listplayer.js';
import { openExports, openShare } from '../parts/reelout.js';
import { videoOf } from '../parts/videos.js';

/** @typedef {Api<'Range'>} Range */
/** @typedef {Api<'Video'>} Video */

const EMPTY = 'A reel is a list of moments. Press R on a moment of a search, or on the marked stretch of a video: it goes to the open reel.';

/** @type {Map<string, Promise<Api<'SpriteSheets'>|null>>} */
const sheets = new Map();
/** @param {string} id */
function sheetsOf(id) {
  const known = sheets.get(id) ?? get(`/v1/videos/${id}/sprites`).catch(() => null);
  sheets.set(id, known);
  return known;
}

/** Reels that were stored anew by undo, by their old id: earlier changes are taken back there. @type {Map<string, string>} */
const heirs = new Map();

/** @param {string} id @returns {string} */
const heirOf = (id) => (heirs.has(id) ? heirOf(heirs.get(id) ?? '') : id);

/**
 * Changes a reel, whichever is open by now.
 * @param {string} id
 * @param {(reel: {name: string, ranges: Range[]}) => {name: string, ranges: Range[]}} edit
 */
async function changeIn(id, edit) {
  const now = reels.open?.id;
  if (now !== heirOf(id)) await reels.choose(heirOf(id));
  await reels.change(edit);
  if (now && now !== heirOf(id)) await reels.choose(now);
}

class Reel {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Reel';
    this.id = '';
    this.tab = 'clips';
    this.dragged = -1;
    /** @type {Map<string, Video>} */
    this.videos = new Map();
    this.removeKeys = () => {};
    this.player = new ListPlayer(async ({ video_id: id }, broken) => {
      const { plays_in_browsers: plays, rendition_url: rendition, media_url: url, media_offset: offset } = await videoOf(id);
      return (plays === false || broken) && rendition ? { url: rendition, offset: 0 } : { url, offset: offset ?? 0 };
    }, (range) => this.frameOf(range));
    this.player.addEventListener('change', () => this.follow());
    this.name = el('h1', { class: 'clip1' });
    this.facts = el('span', { class: 'dim small num only-l', role: 'status' });
    this.rows = el('div', { class: 'scroll', role: 'list', tabindex: 0, 'aria-label': 'Clips' });
    this.tabs = ['clips', 'notes'].map((tab) => el('button', { type: 'button', role: 'tab', id: `tab-${tab}`, on: { click: () => this.openTab(tab) } }));
    this.sum = el('span', { class: 'small num' });
    this.ruler = el('div', { class: 'ruler', 'aria-hidden': 'true' });
    this.track = el('div', { class: 'track', role: 'group', 'aria-label': 'Track' });
    this.head = el('div', { class: 'head reel-head' });
    this.line = el('div', { class: 'compose reelline' });
    const label = (/** @type {string} */ text) => el('span', { class: 'only-l' }, text);
    this.desk = el('div', { class: 'desk' },
      el('div', { class: 'stage' }, this.player.screen, this.player.transport),
      el('section', { class: 'panel sidepanel', 'aria-label': 'Clips in this reel' }, el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Clips or notes' }, this.tabs), this.rows,
        el('div', { class: 'row side-foot' }, el('a', { class: 'btn ghost', href: '/' }, icon('plus'), 'Add from search'), el('span', { class: 'grow' }), this.sum)),
      el('div', { class: 'under' }, el('div', { class: 'tl' }, this.ruler, this.track, this.head), this.line));
    this.body = el('div', {}, this.desk);
    this.actions = [button([icon('undo-2'), 'Undo'], () => toasts.undo(), { class: 'btn ghost only-l' }),
      button([icon('share-2'), label('Share')], () => openShare(this.reel), { 'aria-label': 'Share', 'aria-haspopup': 'dialog' }),
      button([icon('download'), 'Export'], () => openExports(this.reel), { class: 'btn primary', title: 'Export  ⇧E', 'aria-haspopup': 'dialog' })];
    this.element = el('div', { class: 'library' }, el('header', { class: 'top' }, this.name, iconButton('pencil', 'Rename', () => this.rename()), this.facts, el('span', { class: 'grow' }), this.actions), this.body);
    this.ruler.addEventListener('pointerdown', (event) => this.player.seekList(((event.clientX - this.ruler.getBoundingClientRect().left) / this.ruler.offsetWidth) * this.total));
    reels.addEventListener('change', () => { if (this.shown && reels.open?.id === this.id) this.draw(); });
    new ResizeObserver(() => this.drawFilm()).observe(this.track);
  }

  get reel() {
    return /** @type {Api<'Reel'>} */ (reels.open);
  }

  get ranges() {
    return reels.open?.id === this.id ? this.reel.ranges : [];
  }

  get total() {
    return this.ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  }

  /** @param {Range} range */
  frameOf(range) {
    return 1 / (this.videos.get(range.video_id)?.frame_rate ?? 25);
  }

  /** @param {import('../core/router.js').Route} route */
  async show({ id }) {
    this.removeKeys();
    this.shown = true;
    this.id = id;
    this.addKeys();
    try {
      if (reels.open?.id !== id) await reels.choose(id);
      if (!this.shown || this.id !== id) return;
      this.drawnIds = '';
      this.draw();
      this.player.go(0);
    } catch (error) {
      const missing = /** @type {any} */ (error).status === 404;
      fill(this.name, 'Reel');
      fill(this.body, missing ? this.empty('This reel is gone', 'It was deleted, or your key does not reach its videos.') : problemBox(error, () => this.page.router.showAddress({ back: false })));
    }
  }

  hide() {
    this.shown = false;
    this.removeKeys();
    this.player.pause();
  }

  /** @param {string} title @param {string} text */
  empty(title, text) {
    return el('div', { class: 'empty' }, el('h2', {}, title), el('p', {}, text), el('a', { class: 'btn primary', href: '/' }, 'Search for moments'), el('a', { class: 'btn ghost', href: '/reels' }, 'All reels'));
  }

  addKeys() {
    this.removeKeys = keys.add('Reel', [
      { key: 'Alt+ArrowUp', label: 'Move up', act: () => this.move(this.player.place, this.player.place - 1) },
      { key: 'Alt+ArrowDown', label: 'Move down', act: () => this.move(this.player.place, this.player.place + 1) },
      { key: 'I', label: 'In here', act: () => this.trim(this.player.place, { start: this.player.time }) },
      { key: 'O', label: 'Out here', act: () => this.trim(this.player.place, { end: this.player.time + (this.player.range ? this.frameOf(this.player.range) : 0) }) },
      { key: 'Delete', label: 'Take out', act: () => this.takeOut(this.player.place) },
      { key: 'Shift+E', label: 'Export', act: () => (this.ranges.length > 0 ? openExports(this.reel) : false) },
      ...this.player.bindings,
    ]);
  }

  draw() {
    const { ranges } = this;
    fill(this.name, this.reel.name);
    document.title = `${this.reel.name} · reprise`;
    this.title = this.reel.name;
    this.facts.textContent = `${count(ranges.length, 'clip')} · ${formatLength(this.total)}`;
    this.player.set(ranges);
    for (const action of this.actions.slice(1)) action.disabled = ranges.length === 0;
    // The desk stays where it is, so that the focus does.
    if (ranges.length === 0) fill(this.body, this.empty('Nothing is in this reel', EMPTY));
    else if (this.desk.parentNode !== this.body) fill(this.body, this.desk);
    this.drawRows();
    this.drawTrack();
    this.drawLine();
    this.follow();
    const missing = [...new Set(ranges.map(({ video_id: id }) => id))].filter((id) => !this.videos.has(id));
    Promise.all(missing.map((id) => videoOf(id).then((video) => this.videos.set(id, video)))).then(() => { if (missing.length > 0) this.draw(); }, () => {});
  }

  /** @param {string} id */
  titleOf(id) {
    const video = this.videos.get(id);
    return video ? titleOf(video) : '…';
  }

  /** @param {string} tab */
  openTab(tab) {
    this.tab = tab;
    this.drawRows();
  }

  drawRows() {
    const focused = this.rows.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).closest('[data-place]') : null;
    this.tabs.forEach((button0, place) => {
      fill(button0, place === 0 ? ['Clips ', el('span', { class: 'count' }, this.ranges.length)] : 'Notes');
      button0.setAttribute('aria-selected', String(this.tab === (place === 0 ? 'clips' : 'notes')));
    });
    fill(this.sum, el('b', {}, formatLength(this.total)), el('span', { class: 'dim' }, ' total'));
    fill(this.rows, this.ranges.map((range, place) => (this.tab === 'clips' ? this.row(range, place) : this.note(range, place))));
    const again = focused instanceof HTMLElement ? this.rows.children[this.player.place]?.querySelector('button, input') : null;
    if (again instanceof HTMLElement) again.focus();
    this.markRow();
  }

  /** @param {Range} range @param {number} place */
  row(range, place) {
    const row = el('div', { role: 'listitem', draggable: 'true', data: { place } },
      el('button', { type: 'button', class: 'reelrow', on: { click: () => this.player.go(place) } }, icon('grip-vertical', 's'), el('span', { class: 'num dim' }, place + 1),
        el('img', { src: `/v1/videos/${range.video_id}/thumbnail`, alt: '', loading: 'lazy', draggable: 'false' }),
        el('span', { class: 'grow' }, el('span', { class: 'clip1' }, range.note || this.titleOf(range.video_id)), el('span', { class: 'dim tiny num' }, formatRange(range.start, range.end))),
        el('span', { class: 'num muted' }, formatLength(range.end - range.start))));
    this.takeDrops(row, place);
    return row;
  }

  /** @param {Range} range @param {number} place */
  note(range, place) {
    const input = el('input', { value: range.note ?? '', maxlength: 1000, placeholder: this.titleOf(range.video_id), 'aria-label': `Note of clip ${place + 1}`, on: { change: () => this.edit(place, { note: input.value }, 'Changed the note.') } });
    return el('div', { class: 'reelrow', role: 'listitem', data: { place } }, el('span'), el('span', { class: 'num dim' }, place + 1), el('label', { class: 'field note-field' }, input));
  }

  /** Dragging a row or a block puts it at the place of another. @param {HTMLElement} part @param {number} place */
  takeDrops(part, place) {
    part.addEventListener('dragstart', (event) => {
      this.dragged = place;
      event.dataTransfer?.setData('application/x-reprise-range', String(place));
    });
    part.addEventListener('dragover', (event) => {
      if (!event.dataTransfer?.types.includes('application/x-reprise-range')) return;
      event.preventDefault();
      part.classList.add('over');
    });
    part.addEventListener('dragleave', () => part.classList.remove('over'));
    part.addEventListener('drop', (event) => {
      event.preventDefault();
      this.move(this.dragged, place);
    });
  }

  drawTrack() {
    const held = /** @type {HTMLElement|null} */ (this.track.contains(document.activeElement) ? document.activeElement : null);
    const side = held?.dataset.side;
    fill(this.track, this.ranges.map((range, place) => {
      const on = place === this.player.place;
      const block = el('div', { class: on ? 'seg-clip on' : 'seg-clip', draggable: String(!on), data: { place } }, el('div', { class: 'film-tiles', 'aria-hidden': 'true' }), el('span', {}, place + 1));
      block.style.setProperty('flex-grow', String(range.end - range.start));
      block.addEventListener('click', (event) => {
        if (event.target instanceof Element && event.target.closest('b')) return;
        this.player.go(place);
      });
      this.takeDrops(block, place);
      if (on) block.append(this.handle(range, place, 'start'), this.handle(range, place, 'end'));
      return block;
    }));
    if (side) /** @type {HTMLElement|null} */ (this.track.querySelector(`[data-side="${side}"]`))?.focus();
    const { total } = this;
    const step = [0.5, 1, 2, 5, 10, 30, 60, 300, 600].find((one) => total / one <= 12) ?? 1800;
    fill(this.ruler, Array.from({ length: Math.floor(total / step) + 1 }, (_, number) => {
      const marks = [el('i', { class: 'big' }), el('span', {}, formatTime(number * step, { fraction: step < 1 }))];
      for (const mark of marks) mark.style.setProperty('left', `${((number * step) / total) * 100}%`);
      return marks;
    }));
    this.drawnPlace = this.player.place;
    this.drawFilm();
  }

  /** Fills each block with small pictures of its range. */
  async drawFilm() {
    for (const block of /** @type {HTMLElement[]} */ ([...this.track.children])) {
      const range = this.ranges[Number(block.dataset.place)];
      const film = block.querySelector('.film-tiles');
      const sprites = range && await sheetsOf(range.video_id);
      if (!sprites || !film) continue;
      const { columns, rows, interval, tiles, tile_width: width, tile_height: height } = sprites;
      const scale = block.clientHeight / height;
      const shown = Math.max(1, Math.ceil(block.clientWidth / (width * scale)));
      fill(film, Array.from({ length: Math.min(shown, 60) }, (_, number) => {
        const at = range.start + ((number + 0.5) / shown) * (range.end - range.start);
        const tile = Math.min(tiles - 1, Math.round(at / interval));
        const inSheet = tile % (columns * rows);
        const picture = el('i');
        picture.style.setProperty('width', `${width * scale}px`);
        picture.style.setProperty('background-image', `url(${sprites.sheets[Math.floor(tile / (columns * rows))]})`);
        picture.style.setProperty('background-size', `${columns * width * scale}px auto`);
        picture.style.setProperty('background-position', `${-(inSheet % columns) * width * scale}px ${-Math.floor(inSheet / columns) * height * scale}px`);
        return picture;
      }));
    }
  }

  /**
   * A handle that trims.
   * @param {Range} range
   * @param {number} place
   * @param {'start'|'end'} side
   */
  handle(range, place, side) {
    const length = this.videos.get(range.video_id)?.duration ?? range.end;
    const handle = el('b', {
      class: side === 'start' ? 'l' : 'r', role: 'slider', tabindex: 0, 'aria-label': side === 'start' ? `In of clip ${place + 1}` : `Out of clip ${place + 1}`,
      'aria-valuemin': 0, 'aria-valuemax': length, 'aria-valuenow': range[side], 'aria-valuetext': formatTime(range[side], { fraction: true }), data: { side },
    });
    handle.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.altKey) return;
      event.preventDefault();
      this.trim(place, { [side]: range[side] + step * this.frameOf(range) * (event.shiftKey ? 10 : 1) });
    });
    handle.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.player.pause();
      handle.setPointerCapture(event.pointerId);
      const perPixel = this.total / this.track.clientWidth;
      let value = range[side];
      const frame = this.frameOf(range);
      const moved = (/** @type {PointerEvent} */ { clientX }) => {
        value = this.within(range, side, Math.round((range[side] + (clientX - event.clientX) * perPixel) / frame) * frame);
        this.player.seek(side === 'start' ? value : value - frame);
        const block = handle.parentElement;
        block?.style.setProperty('flex-grow', String(side === 'start' ? range.end - value : value - range.start));
        fill(this.line, el('b', { class: 'num' }, formatRange(side === 'start' ? value : range.start, side === 'end' ? value : range.end)));
      };
      handle.addEventListener('pointermove', moved);
      handle.addEventListener('pointerup', () => {
        handle.removeEventListener('pointermove', moved);
        if (value !== range[side]) this.trim(place, { [side]: value });
      }, { once: true });
    });
    return handle;
  }

  /** A time that leaves one frame at least. @param {Range} range @param {'start'|'end'} side @param {number} time */
  within(range, side, time) {
    const frame = this.frameOf(range);
    const length = this.videos.get(range.video_id)?.duration ?? range.end;
    const [low, high] = side === 'start' ? [0, range.end - frame] : [range.start + frame, Math.max(length, range.end)];
    return toMilliseconds(Math.min(high, Math.max(low, time)));
  }

  /** The line below the track: the current clip and what can be done with it. */
  drawLine() {
    const { place, range } = this.player;
    if (!range) return;
    const video = this.videos.get(range.video_id);
    const frame = this.frameOf(range);
    const nudge = (/** @type {string} */ label, /** @type {'start'|'end'} */ side, /** @type {number} */ by) =>
      el('button', { type: 'button', on: { click: () => this.trim(place, { [side]: range[side] + by * frame }) } }, label);
    fill(this.line, el('span', { class: 'small num' }, el('b', {}, `Clip ${place + 1} `), el('span', { class: 'muted' }, formatRange(range.start, range.end))),
      el('div', { class: 'seg only-l', role: 'group', 'aria-label': 'Trim by a frame' }, nudge('In −1', 'start', -1), nudge('In +1', 'start', 1), nudge('Out −1', 'end', -1), nudge('Out +1', 'end', 1)),
      video?.duration && el('span', { class: 'dim small only-l only-w' }, `${formatLength(range.start)} of material before, ${formatLength(Math.max(0, video.duration - range.end))} after`),
      el('span', { class: 'grow' }),
      button([icon('copy'), 'Duplicate'], () => this.change((ranges) => ranges.toSpliced(place, 0, range), 'Duplicated the clip.'), { class: 'btn ghost only-l' }),
      el('a', { class: 'btn ghost', href: videoPath(range.video_id, range.start), 'aria-label': 'Open in its video' }, icon('external-link'), el('span', { class: 'only-l' }, 'Open in its video')),
      button([icon('trash-2'), 'Take out'], () => this.takeOut(place), { class: 'btn ghost danger', title: 'Take out  Del' }));
  }

  /** Follows the player: head, current row and block. */
  follow() {
    const { place } = this.player;
    const before = place * 3 + 6;
    const widths = this.track.clientWidth - 12 - (this.ranges.length - 1) * 3;
    this.head.style.setProperty('left', `${before + (this.total ? this.player.passed / this.total : 0) * widths}px`);
    if (place === this.drawnPlace || this.ranges.length === 0) return;
    this.drawTrack();
    this.drawLine();
    this.markRow();
  }

  markRow() {
    const { place } = this.player;
    [...this.rows.children].forEach((row, number) => {
      (row.querySelector('.reelrow') ?? row).classList.toggle('on', number === place);
    });
    if (this.player.range) this.player.tag.textContent = `${place + 1} of ${this.ranges.length} · ${this.titleOf(this.player.range.video_id)}`;
  }

  // Changes

  /**
   * @param {(ranges: Range[]) => Range[]} edit
   * @param {string} message
   */
  async change(edit, message) {
    const { id, ranges: before } = this.reel;
    try {
      await reels.change((reel) => ({ name: reel.name, ranges: edit(reel.ranges) }));
      toasts.show(message, { undo: () => changeIn(id, ({ name }) => ({ name, ranges: before })) });
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** @param {number} place @param {Partial<Range>} changes @param {string} message */
  edit(place, changes, message) {
    return this.change((ranges) => ranges.with(place, { ...ranges[place], ...changes }), message);
  }

  /** @param {number} place @param {{start?: number, end?: number}} to */
  trim(place, to) {
    const range = this.ranges[place];
    const side = to.start === undefined ? 'end' : 'start';
    const value = range && this.within(range, side, to[side] ?? 0);
    if (!range || value === range[side]) return;
    this.player.pause();
    this.player.seek(side === 'start' ? value : value - this.frameOf(range));
    return this.edit(place, { [side]: value }, `Trimmed clip ${place + 1}.`);
  }

  /** @param {number} from @param {number} to */
  move(from, to) {
    const range = this.ranges[from];
    if (!range || to < 0 || to >= this.ranges.length || from === to) return;
    this.player.place = to;
    return this.change((ranges) => ranges.toSpliced(from, 1).toSpliced(to, 0, range), `Moved clip ${from + 1} to place ${to + 1}.`);
  }

  /** A reel can't be stored empty: with its last clip it goes, and undo stores it anew. @param {number} place */
  async takeOut(place) {
    const { reel } = this;
    if (!this.ranges[place]) return;
    if (this.ranges.length > 1) {
      await this.change((ranges) => ranges.toSpliced(place, 1), `Took out clip ${place + 1}.`);
      if (this.player.range) this.player.go(this.player.place);
      return;
    }
    try {
      await remove(`/v1/reels/${reel.id}`, { headers: { 'If-Match': reels.tag ?? '*' } });
      this.player.set([]);
      reels.close();
      for (const action of this.actions.slice(1)) action.disabled = true;
      fill(this.body, this.empty('Nothing is in this reel any more', EMPTY));
      toasts.show('Took out the last clip; the reel went with it.', {
        undo: async () => {
          await reels.make(reel.name, reel.ranges);
          heirs.set(reel.id, this.reel.id);
          if (this.shown) this.page.router.go(`/reels/${this.reel.id}`);
        },
      });
    } catch (error) {
      toasts.problem(error);
    }
  }

  async rename() {
    const { id, name } = this.reel;
    const answer = await askText({ id: 'rename', title: 'Rename the reel', label: 'Name', value: name, act: 'Rename', most: 200 });
    if (!answer || answer === name || this.reel.id !== id) return;
    try {
      await reels.change(({ ranges }) => ({ name: answer, ranges }));
      toasts.show(`Renamed to “${answer}”.`, { undo: () => changeIn(id, ({ ranges }) => ({ name, ranges })) });
    } catch (error) {
      toasts.problem(error);
    }
  }
}

/** @param {import('../main.js').Page} page */
export const make = (page) => new Reel(page);
