// The loaded models in a dialog: how far each is filled, what it answers, and a form that adds one by name.

import { activateSpace, addModel, listModels } from './api.js';
import { button, el, fill } from './dom.js';
import { announce, describe } from './problems.js';
import { KINDS, canAnswer } from './spaces.js';

/** How often the list is looked at while something is being loaded or filled. */
const LOOK_MS = 1000;

export class ModelsDialog {
  /** @param {() => Promise<void>} onChange after a model was added or made active */
  constructor(onChange) {
    this.onChange = onChange;
    this.dialog = null;
  }

  open() {
    this.list = el('ul', { class: 'models' });
    this.message = el('p', { class: 'muted small', role: 'status' });
    this.name = el('input', {
      type: 'text', name: 'model', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'org/name',
    });
    this.dialog = el('dialog', { 'aria-label': 'Models' },
      el('h2', {}, 'Models'), this.list, this.form(), this.message,
      el('div', { class: 'row' }, button('Close', () => this.dialog.close(), { autofocus: true })));
    this.dialog.addEventListener('close', () => {
      clearTimeout(this.timer);
      this.dialog.remove();
      this.dialog = null;
    });
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.look();
  }

  form() {
    const submit = (event) => {
      event.preventDefault();
      this.add(this.name.value.trim());
    };
    return el('form', { on: { submit } },
      el('label', { class: 'field' }, el('span', {}, 'Add a model of the Hugging Face hub, or a folder under a model root'), this.name),
      el('div', { class: 'row' }, el('button', { type: 'submit', class: 'button primary' }, 'Add')));
  }

  /** Shows the list as it is now, and again while it changes by itself. */
  async look() {
    clearTimeout(this.timer);
    const { dialog } = this;
    let answer;
    try {
      answer = await listModels();
    } catch (error) {
      if (this.dialog === dialog) this.say(describe(error));
      return;
    }
    if (!dialog || this.dialog !== dialog) return;
    this.draw(answer);
    const changes = answer.loading.length > 0 || answer.items.some((space) => space.coverage < 1);
    if (changes) this.timer = setTimeout(() => this.look(), LOOK_MS);
  }

  draw(answer) {
    const shown = JSON.stringify(answer);
    // Only what changed is drawn again: a redraw would steal the focus from a button.
    if (this.list.dataset.shown === shown) return;
    this.list.dataset.shown = shown;
    fill(this.list,
      answer.items.map((space) => this.row(space)),
      answer.loading.map((model) => el('li', { class: 'muted' }, `${model} is being loaded`)),
      answer.unavailable.map(({ model, reason }) => el('li', {}, el('strong', {}, model), ' ', el('span', { class: 'muted small' }, reason))));
  }

  row(space) {
    const answers = KINDS.filter((kind) => space.active_for.includes(kind.name)).map((kind) => kind.label);
    const others = KINDS.filter((kind) => canAnswer(space, kind.name) && !space.active_for.includes(kind.name));
    const percent = `${Math.floor(space.coverage * 100)} %`;
    return el('li', { data: { space: space.name } },
      el('strong', {}, space.model),
      el('p', { class: 'facts' },
        el('span', {}, space.name),
        el('span', {}, `${percent} filled`),
        el('span', {}, answers.length > 0 ? `answers ${answers.join(', ')}` : 'answers only where it is named')),
      space.coverage < 1 && el('progress', { max: 1, value: space.coverage, 'aria-label': `How far ${space.model} is filled` }),
      el('div', { class: 'actions' }, others.map((kind) => button(`Use for ${kind.label}`,
        () => this.activate(space, kind), { class: 'button small', 'data-activate': kind.name }))));
  }

  async add(model) {
    this.say(`${model} is being loaded. If it has to be downloaded, that takes a while; it goes on when this is closed.`);
    const added = this.change(() => addModel(model), (space) => `${space.model} is loaded. Videos are filled into it in the background.`);
    this.look();
    if (await added) this.name.value = '';
  }

  async activate(space, kind) {
    await this.change(() => activateSpace(space.name, [kind.name]), () => `${space.model} answers ${kind.label} now.`);
  }

  /** Does it, and says in words how it went. */
  async change(act, words) {
    try {
      const space = await act();
      this.say(words(space));
      await this.onChange();
      return true;
    } catch (error) {
      this.say(describe(error));
      return false;
    } finally {
      this.look();
    }
  }

  say(message) {
    this.message.textContent = message;
    announce(message);
  }
}
