// Pairs subtitle files with videos by their names, and asks about the pairs that are in doubt.

import { put } from '../core/api.js';
import { ask } from '../core/dialog.js';
import { el } from '../core/dom.js';
import { languageName, languageOfFile } from '../core/languages.js';

/**
 * @template V
 * @typedef {{file: File, video: V|null, sure: boolean}} Pair `video`: the best guess, if there is any
 */

/** @param {string} name */
const stem = (name) => name.replace(/\.(srt|vtt)$/i, '').replace(/\.[a-z]{2,3}(-[a-z0-9]{2,8})*$/i, '').toLowerCase();
/** @param {string} name */
const videoStem = (name) => name.replace(/\.[^.]+$/, '').toLowerCase();
/** @param {string} name */
const words = (name) => name.replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
/** @param {string} name */
const lastNumber = (name) => name.match(/\d+/g)?.map(Number).at(-1) ?? null;

/**
 * The same name is sure; the same words, or the same number, is a guess.
 * @template V
 * @param {File[]} subtitles
 * @param {V[]} videos
 * @param {(video: V) => string} nameOf the name of the video's file
 * @returns {Pair<V>[]}
 */
export function pair(subtitles, videos, nameOf) {
  const named = videos.map((video) => ({ video, name: videoStem(nameOf(video)) }));
  return subtitles.map((file) => {
    const own = file.name.replace(/\.(srt|vtt)$/i, '').toLowerCase();
    const same = named.filter(({ name }) => name === stem(file.name) || name === own);
    if (same.length === 1) return { file, video: same[0].video, sure: true };
    const number = lastNumber(stem(file.name));
    const close = named.find(({ name }) => words(name) === words(stem(file.name)))
      ?? named.find(({ name }) => number !== null && lastNumber(name) === number) ?? (named.length === 1 ? named[0] : undefined);
    return { file, video: same[0]?.video ?? close?.video ?? null, sure: false };
  });
}

/**
 * Asks about pairs in doubt. Answers the pairs to make; null when the dialog is closed without an answer.
 * @template V
 * @param {Pair<V>[]} doubtful
 * @param {V[]} videos
 * @param {(video: V) => string} labelOf
 * @returns {Promise<{file: File, video: V}[]|null>}
 */
export function askPairs(doubtful, videos, labelOf) {
  const selects = doubtful.map(({ file, video }) => el('select', { class: 'field', 'aria-label': `Video of ${file.name}` },
    el('option', { value: '' }, 'Leave out'), videos.map((one, place) => el('option', { value: place, selected: one === video }, labelOf(one)))));
  const rows = doubtful.map(({ file }, place) => el('tr', {}, el('td', {}, el('b', {}, file.name),
    el('div', { class: 'dim tiny' }, languageName(languageOfFile(file.name)))), el('td', {}, selects[place])));
  return ask({
    id: 'pairs', title: 'To which videos do these subtitles belong?', class: '', act: 'Add',
    body: [el('table', { class: 'tbl' }, el('thead', {}, el('tr', {}, el('th', {}, 'Subtitles'), el('th', {}, 'Video'))), el('tbody', {}, rows))],
    read: () => doubtful.flatMap(({ file }, place) => (selects[place].value === '' ? [] : [{ file, video: videos[Number(selects[place].value)] }])),
  });
}

/**
 * Stores a subtitle file with a video. The file's name says the language.
 * @param {string} id
 * @param {File} file
 * @returns {Promise<Api<'Track'>>}
 */
export function putSubtitles(id, file) {
  return put(`/v1/videos/${id}/subtitles/${languageOfFile(file.name)}`, { body: file, headers: { 'Content-Type': 'application/octet-stream' } });
}
