// Details of a video: title, tags, folder and metadata to change, the file's facts, and scores of this search.

import { ApiError, get, tagged } from '../../core/api.js';
import { button, el, fill, icon } from '../../core/dom.js';
import { describe } from '../../core/problems.js';
import { formatRange, formatTime } from '../../core/time.js';
import { toasts } from '../../core/toast.js';
import { formatBytes, formatNumber, titleOf } from '../../core/words.js';
import { forgetVideos } from '../../parts/videos.js';

/** @typedef {Api<'Video'>} Video */

/** @type {Record<string, string>} */
const FOUND_BY = { spoken: 'By what is said', screen: 'By what is written' };

export class Details {
  /** @param {Video} video @param {string|null} tag its ETag @param {(video: Video) => void} onChange */
  constructor(video, tag, onChange) {
    this.video = video;
    this.tag = tag;
    this.onChange = onChange;
    this.scores = el('section', { class: 'col', hidden: true });
    this.form = el('div', { class: 'facts-list' });
    this.element = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Details', id: 'details' }, this.form);
    this.draw();
  }

  draw() {
    const { video } = this;
    fill(this.form, this.scores, this.titleField(), this.tagsField(), this.folderField(), this.metadataField(), this.fileFacts(video));
  }

  /** @param {string} id @param {string} label @param {string} value @param {(value: string) => void} store */
  line(id, label, value, store, placeholder = '') {
    const input = el('input', { id, value, placeholder, maxlength: 500, on: { keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter') input.blur(); } } });
    input.addEventListener('change', () => store(input.value.trim()));
    return el('div', { class: 'col' }, el('label', { class: 'label', for: id }, label), el('div', { class: 'field' }, input));
  }

  titleField() {
    const shown = titleOf(this.video);
    return this.line('video-title', 'Title', shown, (title) => { if (title && title !== shown) this.change({ title }, 'title'); });
  }

  folderField() {
    return this.line('video-folder', 'Folder', this.video.folder ?? '', (folder) => this.change({ folder: folder || null }, 'folder'), 'none');
  }

  tagsField() {
    const { tags } = this.video;
    const input = el('input', { id: 'video-tag', placeholder: 'Add a tag', 'aria-label': 'Add a tag', maxlength: 60, list: 'known-tags', on: {
      focus: () => this.offerTags(),
      keydown: (/** @type {KeyboardEvent} */ event) => {
        const tag = input.value.replaceAll(',', ' ').trim();
        if (event.key !== 'Enter' || !tag) return;
        event.preventDefault();
        this.change({ tags: [...tags, tag] }, 'tags').then(() => document.getElementById('video-tag')?.focus());
      },
    } });
    this.offered = el('datalist', { id: 'known-tags' });
    return el('div', { class: 'col' }, el('span', { class: 'label' }, 'Tags'),
      tags.length > 0 && el('ul', { class: 'tags' }, tags.map((tag) => el('li', { class: 'chip' }, tag,
        button(icon('x', 's'), () => this.change({ tags: tags.filter((one) => one !== tag) }, 'tags'), { class: null, 'aria-label': `Take away ${tag}` })))),
      el('div', { class: 'field' }, input, this.offered));
  }

  async offerTags() {
    const { items } = await get('/v1/tags').catch(() => ({ items: [] }));
    if (this.offered) fill(this.offered, items.map((/** @type {Api<'TagCount'>} */ { tag }) => el('option', { value: tag })));
  }

  metadataField() {
    const text = Object.keys(this.video.metadata).length > 0 ? JSON.stringify(this.video.metadata, null, 2) : '';
    const box = el('textarea', { id: 'video-metadata', rows: 3, spellcheck: 'false', placeholder: '{"field": "value"}' });
    box.value = text;
    const problem = el('p', { class: 'small bad', role: 'alert' });
    box.addEventListener('change', () => {
      fill(problem);
      try {
        const metadata = box.value.trim() ? JSON.parse(box.value) : {};
        this.change({ metadata }, 'metadata');
      } catch {
        fill(problem, 'This is no JSON yet: look for a missing quote or comma.');
      }
    });
    return el('div', { class: 'col' }, el('label', { class: 'label', for: 'video-metadata' }, 'Metadata (JSON)'), el('div', { class: 'field' }, box), problem);
  }

  /** @param {Video} video */
  fileFacts(video) {
    const size = video.width && video.height ? `${video.width} × ${video.height}` : null;
    const rate = video.frame_rate && `${Math.round(video.frame_rate * 1000) / 1000} fps${video.variable_frame_rate ? ', varies' : ''}`;
    const date = (/** @type {string|null|undefined} */ text) => (text ? new Date(text).toLocaleString() : null);
    return facts('File', [
      ['Name', video.file_name], ['Length', formatTime(video.duration, { fraction: true })], ['Picture', size], ['Frames', rate && video.frames ? `${formatNumber(video.frames)} at ${rate}` : rate],
      ['Size', formatBytes(video.bytes)], ['Codec', video.codec], ['In browsers', video.plays_in_browsers === false ? 'as a version of it' : null],
      ['Recorded', date(video.recorded_at)], ['Added', date(video.created_at)], ['Faults', video.warnings.join('; ') || null], ['Id', el('span', { class: 'mono' }, video.id)],
    ]);
  }

  /**
   * The scores of the hit under the playhead.
   * @param {Api<'Hit'>|null} hit
   * @param {string|null} model name of the space whose scores these are
   */
  setHit(hit, model) {
    this.scores.hidden = hit === null;
    if (!hit) return;
    fill(this.scores, facts('Of this search', [
      ['Moment', formatRange(hit.start, hit.end)], ['Place in this video', String(hit.rank)], ['Score', hit.score.toFixed(4)],
      ...hit.evidence.map(({ source, score, z }) => /** @type {[string, string]} */ ([FOUND_BY[source] ?? 'By the picture', `${score.toFixed(4)}${z === null || z === undefined ? '' : `, z ${z.toFixed(2)}`}`])),
      ['Chance', hit.weak ? 'as high as unrelated footage often scores' : 'higher than unrelated footage'],
      ['Model', model],
    ]));
  }

  /**
   * Stores a change of the state that was seen; where somebody else changed it meanwhile, shows theirs.
   * @param {Api<'VideoChanges'>} changes
   * @param {'title'|'tags'|'folder'|'metadata'} what
   * @param {boolean} [isUndo]
   */
  async change(changes, what, isUndo = false) {
    const before = this.video;
    const path = `/v1/videos/${before.id}`;
    this.set({ ...before, .../** @type {Partial<Video>} */ (changes) }, this.tag);
    try {
      const { value, tag } = await tagged('PATCH', path, { json: changes, headers: this.tag ? { 'If-Match': this.tag } : {} });
      this.set(value, tag ?? (await tagged('GET', path)).tag);
      if (!isUndo) toasts.show(`Changed the ${what}.`, { undo: () => this.change({ [what]: before[what] }, what, true) });
    } catch (error) {
      this.set(before, this.tag);
      if (error instanceof ApiError && error.status === 412) {
        const { value, tag } = await tagged('GET', path);
        this.set(value, tag);
        toasts.show('Somebody else changed this video meanwhile. Here is theirs: change it again.');
      } else {
        toasts.show(`The ${what} stays as it was. ${describe(error)}`);
      }
    }
  }

  /** @param {Video} video @param {string|null} tag */
  set(video, tag) {
    this.video = video;
    this.tag = tag;
    forgetVideos([video.id]);
    this.draw();
    this.onChange(video);
  }
}

/** @param {string} title @param {[string, string|Node|null|undefined|false|0][]} rows those without a value are left out */
function facts(title, rows) {
  return el('section', { class: 'col' }, el('h2', {}, title), el('dl', {}, rows.filter(([, value]) => value).map(([name, value]) => [el('dt', {}, name), el('dd', {}, /** @type {string} */ (value))])));
}
