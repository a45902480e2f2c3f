// Changes of many videos at once, each with its undo: tags, folder, deletion; and the dialog of one video's details.

import { all, patch, post, remove, tagged } from '../core/api.js';
import { ask, openDialog } from '../core/dialog.js';
import { button, el, fill, iconButton } from '../core/dom.js';
import { describe } from '../core/problems.js';
import { count, titleOf } from '../core/words.js';

/** @typedef {Api<'Video'>} Video */
/** Most videos that the API changes at a time. */
const MOST = 500;

/**
 * @param {string[]} ids
 * @param {Partial<Api<'ManyVideoChanges'>>} changes
 */
async function change(ids, changes) {
  for (let from = 0; from < ids.length; from += MOST) await patch('/v1/videos', { json: { ids: ids.slice(from, from + MOST), ...changes } });
}

/**
 * Moves videos. Returns what moves them back.
 * @param {Video[]} videos
 * @param {string|null} folder
 */
export async function move(videos, folder) {
  const before = Map.groupBy(videos, (video) => video.folder ?? null);
  await change(videos.map(({ id }) => id), { folder });
  return async () => {
    for (const [old, group] of before) await change(group.map(({ id }) => id), { folder: old });
  };
}

/**
 * Adds and removes tags. Returns what undoes it.
 * @param {Video[]} videos
 * @param {string[]} add
 * @param {string[]} take
 */
export async function tag(videos, add, take) {
  await change(videos.map(({ id }) => id), { add_tags: add, remove_tags: take });
  const before = Map.groupBy(videos, ({ tags }) => JSON.stringify(tags));
  return async () => {
    for (const [old, group] of before) {
      const had = /** @type {string[]} */ (JSON.parse(old));
      const lost = take.filter((one) => has(had, one));
      await change(group.map(({ id }) => id), { remove_tags: add.filter((one) => !has(had, one)), add_tags: lost });
    }
  };
}

/** @param {string[]} tags @param {string} one */
const has = (tags, one) => tags.some((tagName) => tagName.toLowerCase() === one.toLowerCase());

/**
 * Runs a request for each video, a few at a time.
 * @param {Video[]} videos
 * @param {(video: Video) => Promise<unknown>} act
 */
async function forEach(videos, act) {
  const waiting = [...videos];
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (let video = waiting.shift(); video; video = waiting.shift()) await act(video);
  }));
}

/** @param {Video[]} videos */
export const trash = (videos) => forEach(videos, ({ id }) => remove(`/v1/videos/${id}`));
/** @param {Video[]} videos */
export const restore = (videos) => forEach(videos, ({ id }) => post(`/v1/videos/${id}/restore`));

/**
 * Asks for one line of text.
 * @param {{id: string, title: string, label: string, value?: string, act: string, choices?: string[], most?: number}} parts
 *   `choices`: what the field offers
 * @returns {Promise<string|null>} null when it was closed
 */
export function askText({ id, title, label, value = '', act, choices = [], most = 300 }) {
  const input = el('input', { value, list: `${id}-list`, maxlength: most, autocomplete: 'off', 'aria-label': label });
  const body = [el('label', { class: 'field' }, input), el('datalist', { id: `${id}-list` }, choices.map((one) => el('option', { value: one })))];
  return ask({ id, title, body, act, hint: label, read: () => input.value.trim() });
}

/**
 * Asks for tags to add and to take away.
 * @param {Video[]} videos
 */
export async function askTags(videos) {
  /** @type {Api<'TagCount'>[]} */
  const known = await all('/v1/tags', { most: 500 }).catch(() => []);
  const present = [...new Map(videos.flatMap(({ tags }) => tags).map((one) => [one.toLowerCase(), one])).values()];
  const label = 'New tags, with commas between them';
  const input = el('input', { list: 'tags-list', 'aria-label': label, placeholder: label, autocomplete: 'off' });
  const chips = present.map((one) => {
    const chip = button(one, () => chip.setAttribute('aria-pressed', String(!chip.classList.toggle('off'))), { class: 'chip on', 'aria-pressed': 'true' });
    return chip;
  });
  return ask({
    id: 'tags', title: `Tags of ${count(videos.length, 'video')}`, act: 'Save', hint: present.length > 0 ? 'Press a tag to take it away.' : '',
    body: [el('label', { class: 'field' }, input), el('datalist', { id: 'tags-list' }, known.map((one) => el('option', { value: one.tag }))),
      present.length > 0 && el('div', { class: 'row wrap', role: 'group', 'aria-label': 'Tags to keep' }, chips)],
    read: () => ({ add: input.value.split(',').map((one) => one.trim()).filter(Boolean), take: present.filter((_, place) => chips[place].classList.contains('off')) }),
  });
}

/** What a text is as JSON; undefined for a text that is none. @param {string} text */
function asJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * A line of metadata. Its value is JSON where it can be read as such, else text: 12 is a number, "12" is a text.
 * @param {string} [name]
 * @param {unknown} [value]
 */
function field(name = '', value = '') {
  const plain = typeof value === 'string' && asJson(value) === undefined;
  const key = el('input', { value: name, 'aria-label': 'Name', placeholder: 'Name' });
  const content = el('input', { value: plain ? value : JSON.stringify(value), 'aria-label': `Value of ${name || 'the field'}`, placeholder: 'Text, number, true or JSON' });
  const kind = el('span', { class: 'dim tiny' });
  const say = () => {
    kind.textContent = { number: 'number', boolean: 'yes or no', object: 'JSON' }[/** @type {string} */ (typeof asJson(content.value))] ?? 'text';
  };
  content.addEventListener('input', say);
  say();
  const element = el('div', { class: 'metarow' }, el('label', { class: 'field' }, key), el('label', { class: 'field' }, content, kind),
    iconButton('x', `Take out ${name || 'this field'}`, () => element.remove()));
  const read = () => {
    const json = asJson(content.value);
    return json === undefined ? content.value : json;
  };
  return { element, key, read };
}

/**
 * Edits a video's title, tags, folder, date and metadata.
 * @param {string} id
 * @param {(video: Video) => void} saved
 */
export async function editDetails(id, saved) {
  const { value, tag: version } = await tagged('GET', `/v1/videos/${id}`);
  /** @type {Video} */
  const video = value;
  const inputs = {
    title: el('input', { value: video.title, maxlength: 500, required: true }),
    folder: el('input', { value: video.folder ?? '', maxlength: 300, placeholder: 'None' }),
    tags: el('input', { value: video.tags.join(', '), placeholder: 'None' }),
    recorded: el('input', { value: video.recorded_at ?? '', placeholder: '2026-11-25 or with a time' }),
  };
  let fields = Object.entries(video.metadata).map(([name, content]) => field(name, content));
  const list = el('div', { class: 'col' }, fields.map(({ element }) => element));
  const problem = el('p', { class: 'bad small grow', role: 'alert' });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      fields = fields.filter(({ element }) => element.isConnected);
      const metadata = Object.fromEntries(fields.filter(({ key }) => key.value.trim()).map(({ key, read }) => [key.value.trim(), read()]));
      const json = {
        title: inputs.title.value, folder: inputs.folder.value.trim() || null, recorded_at: inputs.recorded.value.trim() || null,
        tags: inputs.tags.value.split(',').map((one) => one.trim()).filter(Boolean), metadata,
      };
      saved(await patch(`/v1/videos/${id}`, { json, headers: { 'If-Match': version ?? '*' } }));
      dialog.close();
    } catch (error) {
      const { status } = /** @type {any} */ (error);
      fill(problem, status === 412 ? 'Somebody changed this video meanwhile. Close this and open it again to see how.' : describe(error));
    }
  };
  const line = (/** @type {string} */ label, /** @type {HTMLElement} */ input) => el('label', { class: 'detail' }, el('span', {}, label), el('span', { class: 'field' }, input));
  const dialog = openDialog({
    id: 'details',
    title: titleOf(video),
    body: [el('form', { class: 'col', on: { submit } },
      line('Title', inputs.title), line('Folder', inputs.folder), line('Tags', inputs.tags), line('Recorded', inputs.recorded),
      el('h3', {}, 'Metadata'), list,
      el('div', { class: 'row dialog-foot' }, button('Add a field', () => {
        const added = field();
        fields.push(added);
        list.append(added.element);
        added.key.focus();
      }, { class: 'btn ghost' }), problem, el('button', { class: 'btn primary' }, 'Save')))],
  });
}
