// The transcript: follows the playback, finds words, seeks and marks by its lines, and keeps subtitle files.

import { addressOf, all, get, put, remove, send } from '../../core/api.js';
import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { isSubtitleFile, languageName, languageOfFile } from '../../core/languages.js';
import { openMenu } from '../../core/menu.js';
import { problemBox } from '../../core/problems.js';
import { formatTime } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { count } from '../../core/words.js';
import { titlesOf } from './chapters.js';

/** @typedef {Api<'TranscriptLine'>} Line */

const MOST_LINES = 20_000;
const FORMATS = ['srt', 'vtt'];
/** Words shorter than this are in every line. */
const LEAST_LETTERS = 4;
const ENDINGS = /(?:ing|ed|es|en|s|e)$/;
/** @param {string} text */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** What finds the words of a query in a text, in other forms, too; null without words. @param {string} words */
function patternOf(words) {
  const long = (words.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length >= LEAST_LETTERS);
  const stems = long.map((word) => escaped(word.toLowerCase().replace(ENDINGS, (ending) => (word.length - ending.length >= 3 ? '' : ending))));
  return stems.length > 0 ? new RegExp(`((?<![\\p{L}\\p{N}])(?:${stems.join('|')})[\\p{L}\\p{N}]*)`, 'giu') : null;
}

export class Transcript {
  /**
   * @param {Api<'Video'>} video
   * @param {{onSeek: (seconds: number) => void, onMark: (start: number, end: number) => void, onTracks: () => void, onCorrect: () => void}} parts
   */
  constructor(video, { onSeek, onMark, onTracks, onCorrect }) {
    this.video = video;
    this.onSeek = onSeek;
    this.onMark = onMark;
    this.onTracks = onTracks;
    this.onCorrect = onCorrect;
    /** @type {Line[]} all lines */
    this.all = [];
    /** @type {Line[]} those that are listed */
    this.lines = [];
    /** @type {HTMLElement[]} */
    this.rows = [];
    /** @type {Api<'Track'>[]} */
    this.tracks = [];
    this.choice = '';
    /** @type {import('./scribe.js').Scribe|null} where a program writes down speech, or has */
    this.scribe = null;
    /** @type {AbortSignal|undefined} */
    this.signal = undefined;
    this.current = -1;
    this.follows = true;
    /** @type {RegExp|null} */
    this.pattern = null;
    /** @type {{start: number, end: number}[]} */
    this.hits = [];
    /** @type {number[]} lines in which the words were found */
    this.found = [];
    this.place = -1;
    this.pressed = -1;
    this.dragged = -1;
    this.input = el('input', { type: 'search', id: 'find-in-transcript', placeholder: 'Find here', 'aria-label': 'Find in the transcript', on: {
      input: () => this.find(), keydown: (/** @type {KeyboardEvent} */ event) => this.typed(event),
    } });
    this.number = el('span', { class: 'count', role: 'status' });
    this.followButton = button('', () => this.setFollows(!this.follows), { class: 'btn ghost follow', 'aria-pressed': 'true' });
    this.more = iconButton('ellipsis', 'Languages and files', () => this.openMore(), { 'aria-haspopup': 'menu' });
    this.bar = el('div', { class: 'row tabbar' }, el('label', { class: 'field grow' }, icon('search', 's'), this.input, this.number, keyCap('Ctrl F')), this.followButton, this.more);
    this.list = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Transcript', id: 'transcript', on: {
      wheel: () => this.setFollows(false), touchmove: () => this.setFollows(false),
      pointerdown: (/** @type {PointerEvent} */ event) => this.press(event), pointerover: (/** @type {PointerEvent} */ event) => this.drag(event),
      click: (/** @type {MouseEvent} */ event) => this.click(event), dblclick: (/** @type {Event} */ event) => this.placeOf(event) >= 0 && this.correct(this.placeOf(event)), keydown: (/** @type {KeyboardEvent} */ event) => this.move(event),
    } });
    this.head = el('div', {});
    this.element = el('div', {}, this.bar, this.head, this.list);
    this.setFollows(true);
  }

  get hasLines() {
    return this.all.length > 0;
  }

  /** Loads the lines. Returns whether there are any. @param {AbortSignal} [signal] */
  async load(signal = this.signal) {
    this.signal = signal;
    const path = `/v1/videos/${this.video.id}`;
    try {
      const [lines, { items: tracks, transcriber }] = await Promise.all([all(`${path}/transcript`, { signal, most: MOST_LINES }), get(`${path}/subtitles`, { signal })]);
      this.all = lines;
      this.tracks = tracks;
      if (!this.track) this.choice = this.firstChoice();
      if (transcriber || this.tracks.some(({ machine }) => machine)) await this.callScribe(transcriber);
      if (signal?.aborted) return false;
      this.draw();
    } catch (error) {
      if (!signal?.aborted) fill(this.list, problemBox(error, () => this.load()));
    }
    return this.hasLines;
  }

  /** @param {string|null|undefined} transcriber */
  async callScribe(transcriber) {
    const { Scribe } = await import('./scribe.js');
    this.scribe ??= new Scribe(this);
    this.scribe.transcriber = transcriber ?? null;
    fill(this.head, this.scribe.element);
  }

  /** The track that is listed. */
  get track() {
    return this.tracks.find((track) => nameOf(track) === this.choice);
  }

  firstChoice() {
    const speech = this.tracks.filter(({ kind }) => kind === 'speech');
    const first = speech.find(({ language }) => navigator.language.startsWith(language)) ?? speech[0] ?? this.tracks[0];
    return first ? nameOf(first) : '';
  }

  draw() {
    this.bar.hidden = !this.hasLines;
    this.scribe?.draw();
    if (!this.hasLines) {
      fill(this.list, el('div', { class: 'hint col' }, el('p', { class: 'muted small' }, 'Nothing is known of what is said here.'),
        button([icon('upload'), 'Add a subtitle file'], () => this.choose()), this.scribe?.offer()));
      return;
    }
    this.current = -1;
    // What is read in the picture stands between what is said, at its time.
    this.lines = this.all.filter((line) => nameOf(line) === this.choice || (line.kind === 'ocr' && this.choice.startsWith('speech')));
    let title = '';
    const titles = titlesOf(this.lines);
    this.rows = this.lines.map((line, place) => this.row(line, place));
    fill(this.list, this.lines.map((line, place) => {
      // A whole slide in one line begins with its title.
      const heading = line.kind === 'ocr' && line.text.includes('\n') ? line.text.split('\n')[0] : title;
      if (titles.has(line)) return el('h2', { class: 'chapter' }, this.rows[place]);
      if (heading === title) return this.rows[place];
      title = heading;
      return [el('h2', { class: 'cue chap' }, el('span', {}), el('span', {}, title)), this.rows[place]];
    }));
    this.find();
    this.showHits();
  }

  /** @param {Line} line @param {number} place */
  row(line, place) {
    return el('a', { class: line.kind === 'ocr' ? 'cue seen' : 'cue', href: '#', draggable: 'false', tabindex: -1, data: { place } },
      el('span', { class: 'num' }, formatTime(line.start)), el('span', {}, this.words(line)));
  }

  /** A line's text with what was searched in it. @param {Line} line @param {RegExp|null} [pattern] */
  words({ kind, text }, pattern = this.pattern) {
    const shown = kind === 'ocr' ? text.split('\n').slice(1).join(' ') || text : text;
    return pattern ? shown.split(pattern).map((part, place) => (place % 2 ? el('mark', {}, part) : part)) : shown;
  }

  /** @param {string} words of the query */
  setWords(words) {
    this.pattern = patternOf(words);
    this.find();
  }

  /** @param {{start: number, end: number}[]} hits */
  setHits(hits) {
    this.hits = hits;
    this.showHits();
  }

  showHits() {
    this.rows.forEach((row, place) => {
      const { start, end } = this.lines[place];
      row.classList.toggle('hit', this.hits.some((hit) => hit.start < end && hit.end > start));
    });
  }

  /** @param {number} time */
  setTime(time) {
    if (this.rows.length === 0 || this.element.hidden) return;
    const isSeen = this.choice.startsWith('ocr');
    const place = this.lines.findLastIndex(({ start, kind }) => start <= time + 0.01 && (kind === 'ocr') === isSeen);
    if (place === this.current) return;
    this.rows[this.current]?.classList.remove('now');
    this.rows[this.current]?.removeAttribute('aria-current');
    this.current = place;
    this.rows[place]?.classList.add('now');
    this.rows[place]?.setAttribute('aria-current', 'true');
    if (this.follows) this.reveal(place);
  }

  /** @param {number} time */
  shown(time) {
    this.current = -1;
    this.setTime(time);
  }

  /** @param {number} place */
  reveal(place) {
    const row = this.rows[place];
    if (row?.isConnected) this.list.scrollTop = row.offsetTop - this.list.offsetTop - this.list.clientHeight / 3;
  }

  /** @param {boolean} follows */
  setFollows(follows) {
    this.follows = follows;
    this.followButton.setAttribute('aria-pressed', String(follows));
    this.followButton.classList.toggle('asked', follows);
    fill(this.followButton, icon('mic', 's'), follows ? 'Following' : 'Follow');
    if (follows) this.reveal(this.current);
  }

  focusFind() {
    this.input.focus();
    this.input.select();
  }

  find() {
    const typed = this.input.value.trim();
    const pattern = typed ? new RegExp(`(${escaped(typed)})`, 'giu') : this.pattern;
    this.found = [];
    this.rows.forEach((row, place) => {
      const line = this.lines[place];
      // A pattern that is global keeps its place between tests.
      if (pattern) pattern.lastIndex = 0;
      const isFound = typed !== '' && Boolean(pattern?.test(line.text));
      if (isFound) this.found.push(place);
      fill(/** @type {Element} */ (row.lastElementChild), this.words(line, pattern));
    });
    this.place = typed ? this.found.findIndex((place) => place >= this.current) : -1;
    if (this.place < 0 && this.found.length > 0) this.place = 0;
    this.showFound();
  }

  showFound() {
    const typed = this.input.value.trim() !== '';
    this.number.textContent = !typed ? '' : this.found.length === 0 ? 'none' : `${this.place + 1} of ${this.found.length}`;
    this.rows.forEach((row, place) => row.classList.toggle('at', typed && this.found[this.place] === place));
    if (!typed || this.found.length === 0) return;
    this.setFollows(false);
    this.reveal(this.found[this.place]);
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.key === 'Enter' && this.found.length > 0) {
      event.preventDefault();
      this.place = (this.place + (event.shiftKey ? -1 : 1) + this.found.length) % this.found.length;
      this.showFound();
      this.onSeek(this.lines[this.found[this.place]].start);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (this.input.value === '') this.list.focus();
      this.input.value = '';
      this.find();
    }
  }

  /** @param {Event} event */
  placeOf(event) {
    const row = event.target instanceof Element ? /** @type {HTMLElement|null} */ (event.target.closest('[data-place]')) : null;
    return row ? Number(row.dataset.place) : -1;
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0 || event.pointerType === 'touch') return;
    this.pressed = this.placeOf(event);
    this.dragged = this.pressed;
    addEventListener('pointerup', () => this.release(), { once: true });
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const place = this.placeOf(event);
    if (this.pressed < 0 || place < 0 || event.buttons !== 1) return;
    this.dragged = place;
    const [from, to] = [Math.min(this.pressed, place), Math.max(this.pressed, place)];
    this.rows.forEach((row, one) => row.classList.toggle('marking', from !== to && one >= from && one <= to));
  }

  release() {
    const [from, to] = [Math.min(this.pressed, this.dragged), Math.max(this.pressed, this.dragged)];
    for (const row of this.rows) row.classList.remove('marking');
    if (from >= 0 && from !== to) this.onMark(this.lines[from].start, Math.min(this.lines[to].end, this.video.duration ?? Infinity));
    this.pressed = -1;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const place = this.placeOf(event);
    if (place < 0) return;
    event.preventDefault();
    if (this.dragged < 0 || this.dragged === place) this.onSeek(this.lines[place].start);
    this.dragged = -1;
  }

  /** Arrows go through the lines while one of them, or the list, has the focus. @param {KeyboardEvent} event */
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.shiftKey || event.altKey || this.rows.length === 0) return;
    event.preventDefault();
    this.setFollows(false);
    const from = this.placeOf(event);
    const next = Math.max(0, Math.min(this.rows.length - 1, from < 0 ? Math.max(0, this.current) : from + step));
    this.rows[next].focus({ preventScroll: true });
    this.reveal(next);
  }

  /** Lets a line be corrected where it stands: the one with the focus, else the one that is said now. @param {number} [place] */
  correct(place = this.rows.indexOf(/** @type {HTMLElement} */ (document.activeElement))) {
    const at = place < 0 ? this.current : place;
    if (!this.rows[at]) return false;
    this.setFollows(false);
    this.onCorrect();
    import('./correct.js').then(({ correctLine }) => correctLine(this, at), (error) => toasts.problem(error));
    return true;
  }

  openMore() {
    const { track } = this;
    openMenu(this.more, [
      ...this.tracks.map((one) => ({ label: labelOf(one), checked: nameOf(one) === this.choice, act: () => {
        this.choice = nameOf(one);
        this.draw();
      } })),
      null,
      ...(track ? FORMATS.map((format) => ({ label: `Download as .${format}`, icon: 'download', act: () => this.download(track, format) })) : []),
      ...(track ? [{ label: 'Correct the line', icon: 'pencil', key: 'E', act: () => this.correct() }] : []),
      ...(this.scribe?.items ?? []),
      { label: 'Add a subtitle file', icon: 'upload', act: () => this.choose() },
      ...(track ? [{ label: `Delete ${labelOf(track)}`, icon: 'trash-2', act: () => this.remove(track) }] : []),
    ]);
  }

  /** @param {Api<'Track'>} track @param {string} format */
  download({ kind, language }, format) {
    const href = addressOf(this.pathOf(language), { kind, format });
    el('a', { href, download: `${this.video.file_name.replace(/\.[^.]+$/, '')}.${language}.${format}` }).click();
  }

  choose() {
    const input = el('input', { type: 'file', accept: '.srt,.vtt,text/vtt' });
    input.addEventListener('change', () => { if (input.files) this.takeFiles([...input.files]); });
    input.click();
  }

  /** Stores subtitle files with this video; other files are for the library. @param {File[]} files */
  takeFiles(files) {
    if (files.length === 0 || !files.every(isSubtitleFile)) return false;
    this.store(files.map((file) => ({ language: languageOfFile(file.name), body: file })));
    return true;
  }

  /** @param {{language: string, body: Blob}[]} tracks */
  async store(tracks) {
    try {
      for (const { language, body } of tracks) {
        // What browsers call these files differs; the server looks into them.
        const stored = await put(this.pathOf(language), { body: new Blob([body], { type: 'application/octet-stream' }) });
        this.choice = nameOf(stored);
        toasts.show(`Added ${labelOf(stored)}: ${count(stored.cues, 'line')}.`, { undo: () => this.remove(stored) });
      }
      await this.reload();
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** @param {Api<'Track'>} track */
  async remove(track) {
    try {
      const { kind, language } = track;
      // Only speech can be put back.
      const kept = kind === 'speech' ? await (await send('GET', this.pathOf(language))).blob() : null;
      await remove(this.pathOf(language), { query: { kind } });
      toasts.show(`Deleted ${labelOf(track)}.`, kept ? { undo: () => this.store([{ language, body: kept }]) } : {});
      await this.reload();
    } catch (error) {
      toasts.problem(error);
    }
  }

  /** @param {string} language */
  pathOf(language) {
    return `/v1/videos/${this.video.id}/subtitles/${encodeURIComponent(language)}`;
  }

  async reload() {
    await this.load();
    this.onTracks();
  }
}

/** @param {{kind: string, language: string}} track */
const nameOf = ({ kind, language }) => `${kind} ${language}`;

/** @param {Api<'Track'>} track */
function labelOf({ kind, language, machine, provenance }) {
  const name = languageName(language) ?? language;
  return { speech: machine ? `${name}, by ${provenance}` : name, caption: `Descriptions, ${name}`, ocr: `In the picture, ${name}` }[kind];
}
