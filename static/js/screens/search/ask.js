// The search box: a line that grows with its text, where to look, a file as the query, examples as tokens.

import { button, el, fill, icon, iconButton, keyCap } from '../../core/dom.js';
import { openMenu } from '../../core/menu.js';
import { count } from '../../core/words.js';
import { EVERYWHERE } from '../../parts/query.js';

/** @type {[value: string, label: string][]} */
export const SOURCES = [['', 'Everywhere'], ['visual', 'Seen'], ['spoken', 'Said'], ['screen', 'Written']];
/** Fewest words of a text whose number is shown. */
const LONG = 12;
const grows = CSS.supports('field-sizing', 'content');

/**
 * How many words a text has.
 * @param {string} text
 */
export function countWords(text) {
  return text.trim() === '' ? 0 : text.trim().split(/\s+/).length;
}

export class Ask {
  /**
   * @param {object} acts
   * @param {(text: string) => void} acts.onAsk
   * @param {(file: File) => void} acts.onFile
   * @param {(sources: string) => void} acts.onSources
   * @param {() => unknown} acts.onDown the caret leaves the text downwards
   * @param {boolean} [big] the box of the start
   */
  constructor({ onAsk, onFile, onSources, onDown }, big = false) {
    this.onSources = onSources;
    this.sources = '';
    /** What a search without a choice looks in. */
    this.usual = SOURCES[0][1];
    this.parts = { text: '', number: 0 };
    this.box = el('textarea', { rows: 1, 'aria-label': 'Search in all videos', enterkeyhint: 'search', autocomplete: 'off', on: {
      input: () => this.measure(),
      keydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'ArrowDown' && this.box.selectionStart === this.box.value.length && onDown() !== false) event.preventDefault();
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        onAsk(this.box.value);
      },
    } });
    const file = el('input', { type: 'file', accept: 'video/*,image/*', hidden: true, 'aria-label': 'A video or an image', on: { change: () => {
      if (file.files?.[0]) onFile(file.files[0]);
      file.value = '';
    } } });
    this.words = el('span', { class: 'dim small num words' });
    this.tokens = el('span', { class: 'tokens' });
    this.where = button('', () => this.choose(), { class: 'btn ghost where', title: 'Where to look', 'aria-haspopup': 'menu' });
    const add = () => file.click();
    const clip = big ? button([icon('paperclip'), 'Add a clip'], add, { class: 'btn ghost' })
      : iconButton('paperclip', 'Search with a clip or an image', add);
    const go = el('button', { type: 'submit', class: big ? 'btn primary' : 'btn primary sq', title: 'Search  ↵', 'aria-label': 'Search' },
      big ? ['Search ', keyCap('↵')] : icon('corner-down-left'));
    this.element = el('form', { class: big ? 'ask big' : 'ask', role: 'search', on: { submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      onAsk(this.box.value);
    } } },
    !big && icon('search'), this.tokens, this.box,
    el('span', { class: 'tools' }, big ? [clip, this.where, el('span', { class: 'grow' }), this.words] : [this.words, this.where, clip], go), file);
    this.set({});
  }

  /**
   * @param {object} state
   * @param {string} [state.text]
   * @param {string} [state.sources]
   * @param {boolean} [state.change] the text changes a clip that stands beside it
   * @param {boolean} [state.hears] whether there is a choice where to look
   * @param {Node[]} [state.tokens]
   */
  set({ text = '', sources = '', change = false, hears = true, tokens = [] }) {
    if (this.box.value.trim() !== text) this.box.value = text;
    this.sources = sources;
    this.usual = SOURCES[change ? 1 : 0][1];
    this.box.placeholder = change ? 'nothing: find it as it is' : 'Describe what is shown or said, or drop a clip';
    this.element.classList.toggle('changes', change);
    fill(this.tokens, change && el('span', { class: 'token plus only-l' }, 'The same, but'), tokens);
    this.where.hidden = !hears;
    const label = sources === EVERYWHERE ? SOURCES[0][1] : SOURCES.filter(([value]) => value && sources.split(',').includes(value)).map(([, name]) => name).join(', ') || this.usual;
    fill(this.where, this.element.classList.contains('big') && icon('eye'), label, ' ', icon('chevron-down', 's'));
    this.measure();
  }

  /** Says in how many parts a text was read. @param {string} text @param {number} number */
  setParts(text, number) {
    this.parts = { text, number };
    this.measure();
  }

  measure() {
    const words = countWords(this.box.value);
    const parts = this.parts.number > 1 && this.parts.text === this.box.value.trim() ? `, read in ${this.parts.number} parts` : '';
    this.words.textContent = words >= LONG ? count(words, 'word') + parts : '';
    if (grows) return;
    this.box.style.setProperty('height', 'auto');
    this.box.style.setProperty('height', `${this.box.scrollHeight}px`);
  }

  choose() {
    const everywhere = this.usual === 'Seen' ? EVERYWHERE : '';
    openMenu(this.where, SOURCES.map(([value, label]) => ({
      label, checked: this.where.textContent?.trim() === label, act: () => this.onSources(value || everywhere),
    })));
  }
}
