// What is said in a video, as a list of its tracks: add a file, replace one, delete one.

import { deleteSubtitles, listSubtitles, putSubtitles } from './api.js';
import { confirmAction } from './dialogs.js';
import { button, el, fill } from './dom.js';
import { UNKNOWN, isSubtitleFile, languageName, languageOfFile } from './languages.js';
import { announce, describe } from './problems.js';

const SHOWN_WARNINGS = 20;

/** "embedded" and "upload" are where a track is from; anything else is the name of its file. */
const PROVENANCES = { embedded: 'in the video’s file', upload: 'added here' };

export class SubtitlePanel {
  /** @param {() => void} onChange after a track was added, replaced or deleted */
  constructor(video, onChange) {
    Object.assign(this, { video, onChange });
    this.tracks = [];
    this.list = el('ul', { class: 'tracks' });
    this.message = el('div', { role: 'status' });
    this.language = el('input', {
      type: 'text', name: 'language', size: 8, autocomplete: 'off', placeholder: 'en', id: 'subtitle-language',
    });
    this.element = el('section', { class: 'subtitles', 'aria-label': 'Subtitles' },
      el('h2', {}, 'Subtitles'), this.list, this.form(), this.message);
  }

  form() {
    const input = el('input', { class: 'visually-hidden', type: 'file', id: 'subtitle-file', accept: '.srt,.vtt', multiple: true });
    input.addEventListener('change', () => {
      const files = [...input.files];
      input.value = '';
      this.add(files);
    });
    return el('div', { class: 'row' },
      el('label', { class: 'button small' }, 'Add .srt or .vtt', input),
      el('label', { class: 'small row' }, el('span', { class: 'muted' }, 'Language, if not in the file’s name'), this.language));
  }

  async load() {
    try {
      this.tracks = (await listSubtitles(this.video.id)).items;
      fill(this.list, this.tracks.length === 0
        ? el('li', { class: 'muted' }, 'None yet. Drop a file here, and what is said can be found.')
        : this.tracks.map((track) => this.row(track)));
    } catch (error) {
      this.say(describe(error));
    }
  }

  row(track) {
    const { language, cues, provenance, url } = track;
    const name = languageName(language);
    const facts = [cues === 1 ? '1 cue' : `${cues} cues`, PROVENANCES[provenance] ?? provenance].join(', ');
    // Only what is said has an address of its own.
    const remove = url && button('Delete', () => this.remove(track), {
      class: 'button small plain', 'aria-label': `Delete the subtitles: ${name}`, 'data-action': 'delete-subtitles',
    });
    return el('li', { class: 'row', data: { language } },
      el('strong', {}, name), el('span', { class: 'muted small' }, facts), remove, this.warnings(track));
  }

  warnings({ warnings }) {
    if (!warnings?.length) return null;
    const more = warnings.length - SHOWN_WARNINGS;
    return el('details', { class: 'warnings' },
      el('summary', {}, warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`),
      el('ul', {}, warnings.slice(0, SHOWN_WARNINGS).map((warning) => el('li', {}, warning)),
        more > 0 && el('li', {}, `and ${more} more`)));
  }

  /** Takes subtitle files that were dropped on the page, and answers the others. */
  take(files) {
    this.add(files.filter(isSubtitleFile));
    return files.filter((file) => !isSubtitleFile(file));
  }

  /** One after the other: two of one language replace each other, and the person is asked. */
  async add(files) {
    for (const file of files) await this.store(file);
  }

  async store(file) {
    const named = languageOfFile(file.name);
    const language = named === UNKNOWN ? this.language.value.trim() || UNKNOWN : named;
    try {
      if (!await this.mayStore(language, file)) return;
      this.say(`${file.name} is being read…`);
      const track = await putSubtitles(this.video.id, language, file);
      this.say(`${file.name} can be searched: ${track.cues === 1 ? '1 cue' : `${track.cues} cues`}.`);
      await this.changed();
    } catch (error) {
      this.say(`${file.name}: ${describe(error)}`);
    }
  }

  async mayStore(language, file) {
    const stored = this.tracks.find((track) => track.url && track.language.toLowerCase() === language.toLowerCase());
    if (!stored) return true;
    return confirmAction(`Replace the subtitles: ${languageName(stored.language)}?`,
      `The ${stored.cues} cues that are there give way to those of ${file.name}.`, 'Replace');
  }

  async remove({ language }) {
    const name = languageName(language);
    const sure = await confirmAction(`Delete the subtitles: ${name}?`, 'What they say can’t be found any more.', 'Delete');
    if (!sure) return;
    try {
      await deleteSubtitles(this.video.id, language);
      this.say(`${name} is deleted.`);
      await this.changed();
    } catch (error) {
      this.say(describe(error));
    }
  }

  async changed() {
    await this.load();
    this.onChange();
  }

  say(message) {
    fill(this.message, el('p', { class: 'muted small' }, message));
    announce(message);
  }
}
