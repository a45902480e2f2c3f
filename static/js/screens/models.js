// Models: who answers which question, what is on the server, what can be added.

import { get, post } from '../core/api.js';
import { button, el, icon } from '../core/dom.js';
import { jobs } from '../core/jobs.js';
import { describe } from '../core/problems.js';
import { count, formatBytes, formatEstimate } from '../core/words.js';
import { load, selectOf, table, topBar } from '../parts/frame.js';

/** @typedef {Api<'Space'>} Space */
/** @typedef {Api<'Model'>} Model */
/** @typedef {import('../core/dom.js').Children} Children */

const POLL_MS = 2000;
/** @type {[string, string, string, string, (space: Space) => boolean][]} kind, heading, word, icon, which models can */
const KINDS = [
  ['text', 'Words', 'words', 'search', ({ can }) => can.text && can.frames],
  ['clip', 'A clip', 'clips', 'film', ({ can }) => can.frames],
  ['composed', 'A clip and a change', 'changes', 'columns-2', ({ can }) => can.composed],
  ['spoken', 'What is said', 'what is said', 'mic', ({ can }) => can.text && !can.frames],
];
/** @type {Record<string, string>} what the weights don't know */
const LIMITS = { nothing: 'Has learned nothing', rendered_clips: 'Only knows drawings of sports' };
/** @type {Record<number, string>} */
const REMEDIES = {
  424: 'Check the server’s network, or name a folder on the server that holds the model.',
  507: 'Make room on the server’s disk, then try again: what has come is kept.',
};
const HEAD = ['Model', 'Good for', '>Size', 'Licence', 'State'];

class Models {
  /** @param {import('../main.js').Page} page */
  constructor(page) {
    this.page = page;
    this.title = 'Models';
    this.body = el('div');
    this.input = el('input', { id: 'model-name', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'organisation/name, or a folder on the server' });
    this.element = el('div', {}, topBar('Models', button([icon('plus'), 'Other model'], () => this.input.focus())), el('div', { class: 'page measured gaps' }, this.body, this.form()));
    /** @type {Map<string, string>} models that were asked for here: '' while they come, then why they did not */
    this.asked = new Map();
    this.timer = 0;
    this.stop = new AbortController();
    /** What is drawn, so that an open list or a focused button stays while nothing changes. */
    this.drawn = '';
    /** @type {Map<string, [number, number]>} when each model was first looked at, in seconds, and how much it had read */
    this.seen = new Map();
  }

  show() {
    this.hide();
    this.stop = new AbortController();
    this.drawn = '';
    this.load();
  }

  hide() {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  load() {
    clearTimeout(this.timer);
    const { signal } = this.stop;
    return load(this.body, signal, async () => {
      /** @type {[Api<'SpaceList'>, Api<'ModelList'>, Api<'Stats'>]} */
      const [spaces, { items: models }, stats] = await Promise.all([get('/v1/spaces', { signal }), get('/v1/models', { signal }), get('/v1/stats', { signal })]);
      if ([...this.asked.values()].includes('') || spaces.loading.length > 0 || spaces.items.some(({ coverage }) => coverage < 1)) this.timer = window.setTimeout(() => this.load(), POLL_MS);
      const state = JSON.stringify([spaces, models, stats.videos_ready, [...this.asked]]);
      if (state === this.drawn) return [...this.body.children];
      this.drawn = state;
      return this.draw(spaces, models, stats.videos_ready);
    });
  }

  /**
   * @param {Api<'SpaceList'>} spaces
   * @param {Model[]} models
   * @param {number} videos
   */
  draw({ items, unavailable }, models, videos) {
    // The tiny model is for tests, and of no use to anybody's footage.
    const others = models.filter(({ state, model }) => state !== 'loaded' && model !== 'builtin:tiny');
    const section = (/** @type {string} */ id, /** @type {string} */ title, /** @type {Children} */ body) => el('section', { id }, el('h2', { class: 'section-head' }, title), body);
    return el('div', { class: 'gaps' }, firstSteps(items, videos),
      section('answers', 'Which model answers', el('div', { class: 'answers' }, KINDS.map((kind) => this.answer(kind, items)))),
      section('here', 'On this server', el('div', { class: 'panel' }, table('On this server', HEAD, [
        ...items.map((space) => this.spaceCells(space, models.find(({ spaces }) => spaces.includes(space.name)))),
        ...unavailable.map(({ model, reason }) => [el('b', {}, model), el('span', { class: 'bad' }, `Did not load at this start: ${reason}`), '', '', this.loader(model, 'Load again')]),
      ], 'fixed models'))),
      section('recommended', 'Recommended', [el('div', { class: 'panel' }, table('Recommended', HEAD, others.map((model) => this.modelCells(model)), 'fixed models')),
        el('p', { class: 'dim small note' }, 'A download goes on where it stopped. The model that answers now goes on answering until you switch.')]));
  }

  /** How long a model reads on, at the pace since it was first looked at, or as the server estimates: in words, '' if not known. @param {Space} space */
  timeLeft({ id, coverage, fill }) {
    const now = performance.now() / 1000;
    const [since, before] = this.seen.get(id) ?? [now, coverage];
    this.seen.set(id, [since, before]);
    if (fill.measuring) return 'measuring the time';
    if (fill.state === 'filling' && coverage > before) return formatEstimate(((1 - coverage) * (now - since)) / (coverage - before));
    return fill.estimated_seconds ? formatEstimate(fill.estimated_seconds) : '';
  }

  /** @param {Space} space @param {Model} [model] @returns {Children[]} */
  spaceCells(space, model) {
    const { can, dim, precision, devices, videos, clips, passages } = space;
    return [[el('b', {}, nameOf(space)), el('div', { class: 'dim tiny num' }, can.frames ? `${count(videos, 'video')}, ${count(clips, 'shot')}` : count(passages, 'passage')),
      el('div', { class: 'dim tiny num' }, `${dim} values, ${precision}, on ${devices.join(', ').replace('cpu', 'the processor').replace('cuda:', 'graphics card ')}`)],
    capital(model?.purpose), model?.bytes ? formatBytes(model.bytes) : '–', licenceOf(model?.licence), this.fillOf(space)];
  }

  /** What a space has read, and the button that pauses or resumes it. @param {Space} space @returns {Children} */
  fillOf(space) {
    const { coverage, fill, active_for: kinds } = space;
    const uses = KINDS.filter(([kind]) => kinds.some((one) => one === kind)).map(([, , word]) => word).join(', ');
    if (fill.state === 'complete') return el('span', { class: uses ? 'row small ok' : 'row small muted' }, icon('circle-check'), uses ? `Answers ${uses}` : 'Has read everything, not in use');
    const paused = fill.state === 'paused';
    const isNew = paused && coverage === 0;
    const word = isNew ? 'Start' : paused ? 'Resume' : 'Pause';
    if (paused) this.seen.delete(space.id);
    return [progress(isNew ? 'Waits for you: it has read nothing yet.' : `${paused ? 'Paused' : 'Reading'}, ${percent(space)}. It answers over that part.`, paused ? '' : this.timeLeft(space), coverage, nameOf(space)),
      button([icon(paused ? 'play' : 'pause'), word], () => this.turn(space, paused ? 'resume' : 'pause'), { class: 'btn end', 'aria-label': `${word} reading by ${nameOf(space)}` }),
      paused && el('p', { class: 'dim tiny' }, timeOf(space))];
  }

  /** @param {Space} space @param {'pause'|'resume'} act */
  async turn(space, act) {
    try {
      await post(`/v1/spaces/${space.id}/${act}`);
      jobs.look();
    } catch (error) {
      this.page.toasts.show(reasonOf(error));
      this.drawn = '';
    }
    this.load();
  }

  /**
   * @param {typeof KINDS[number]} kind
   * @param {Space[]} spaces
   */
  answer([kind, name, word, picture, can], spaces) {
    const able = spaces.filter(can);
    const active = able.find(({ active_for: kinds }) => kinds.some((one) => one === kind));
    const waits = able.find((space) => space !== active && space.coverage < 1);
    const limit = active && LIMITS[active.trained_on];
    /** @type {[string, string, boolean?][]} */
    const options = able.map((space) => [space.id, space === active || space.coverage === 1 ? nameOf(space) : `${nameOf(space)} (${percent(space)} read)`, space !== active && space.coverage < 1]);
    return el('div', { class: 'panel answer' }, el('div', { class: 'row' }, icon(picture), el('h3', {}, name)),
      selectOf(`Model for ${name}`, active ? options : [['', 'None'], ...options], active?.id ?? '', (id) => this.activate(kind, word, able.find((space) => space.id === id), active)),
      el('p', { class: limit ? 'tiny warn' : 'tiny dim' }, waits ? `${nameOf(waits)} waits until it has read everything: ${percent(waits)}.`
        : limit ?? (active ? (able.length === 1 ? 'The only one here that can' : 'You can switch') : kind === 'spoken' ? 'Words are found as they are; a model finds what is meant.' : 'No model here can.')));
  }

  /**
   * @param {string} kind
   * @param {string} word
   * @param {Space} [space]
   * @param {Space} [before]
   */
  async activate(kind, word, space, before) {
    if (!space) return;
    try {
      await post(`/v1/spaces/${space.id}/activate`, { json: { for: [kind] } });
      this.page.toasts.show(`${nameOf(space)} answers ${word} now.`, before && { undo: () => this.activate(kind, word, before) });
    } catch (error) {
      this.page.toasts.show(reasonOf(error));
      this.drawn = '';
    }
    this.load();
  }

  /** @param {Model} model @returns {Children[]} */
  modelCells({ model, state, download, bytes, cached_bytes: cached, purpose, licence }) {
    const size = bytes ?? download?.total;
    const reason = this.asked.get(model);
    const note = { partial: `${formatBytes(cached)} have come before`, here: 'Downloaded: loads without a network' }[String(state)];
    const comes = state === 'loading' || reason === '';
    const text = !download || download.files === 0 ? 'Loading, or waiting for its turn' : `Downloading, ${formatBytes(download.bytes)}${size ? ` of ${formatBytes(size)}` : ''}`;
    return [[el('b', {}, model), note && el('div', { class: 'dim tiny' }, note), reason && el('p', { class: 'small bad', role: 'alert' }, reason)],
      capital(purpose), size ? formatBytes(size) : '–', licenceOf(licence),
      comes ? progress(text, '', (download?.bytes ?? 0) / (size || Number.POSITIVE_INFINITY), model) : this.loader(model, state === 'here' ? 'Load' : reason ? 'Try again' : 'Download')];
  }

  /** @param {string} model @param {string} text */
  loader(model, text) {
    return button([icon('download'), text], () => this.add(model), { class: 'btn end', 'aria-label': `${text} ${model}` });
  }

  /** The field for a model that is not in the list. */
  form() {
    this.said = el('p', { class: 'small bad', role: 'alert' });
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.add(this.input.value.trim());
    };
    return el('section', {}, el('h2', { class: 'section-head' }, el('label', { for: 'model-name' }, 'Other model')),
      el('form', { class: 'row', on: { submit } }, el('div', { class: 'field grow' }, this.input), el('button', { type: 'submit', class: 'btn' }, 'Load')), this.said,
      el('p', { class: 'dim small note' }, 'A CLIP, SigLIP, BLIP, LanguageBind or sentence model of the Hugging Face hub, or a folder under a model root of the server. For a clip and a change on real footage: GME or Qwen3-VL-Embedding. For long texts about what happens: CARE. These three take long on a processor.'));
  }

  /** @param {string} model */
  async add(model) {
    const say = (/** @type {string} */ text) => { if (this.said) this.said.textContent = text; };
    this.asked.set(model, '');
    say('');
    // The answer comes when the model is loaded and measured; its progress is read meanwhile.
    setTimeout(() => this.load(), 300);
    try {
      /** @type {Space} */
      const space = await post('/v1/spaces', { json: { model, fill: 'paused' } });
      this.asked.delete(model);
      const waits = space.fill.state === 'paused' && space.fill.clips_left > 0;
      // Where no stored shot lacks it there is nothing to decide.
      if (space.fill.state === 'paused' && !waits) await post(`/v1/spaces/${space.id}/resume`);
      this.page.toasts.show(`${nameOf(space)} is loaded${waits || space.active_for.length > 0 ? '' : ': choose above what it answers'}.${waits ? ` ${timeOf(space)} Start it above, or leave it paused.` : ''}`);
      if (this.input.value.trim() === model) this.input.value = '';
      jobs.look();
    } catch (error) {
      this.asked.set(model, reasonOf(error));
      say(`${model}: ${reasonOf(error)}`);
    }
    if (!this.stop.signal.aborted) this.load();
  }
}

/**
 * What to do first where only a built-in model answers.
 * @param {Space[]} spaces
 * @param {number} videos
 */
function firstSteps(spaces, videos) {
  if (spaces.some(({ can, trained_on: on }) => can.frames && on === 'unstated')) return null;
  return el('section', { class: 'panel first', id: 'first-steps' }, el('h2', {}, 'The model here is for trying things out'),
    el('p', { class: 'small muted' }, spaces.some(({ trained_on: on }) => on === 'rendered_clips')
      ? 'It was trained on drawings of divers and gymnasts, so that everything works without a network. On real footage its answers are guesses.'
      : 'Its weights are random, for tests: words mean nothing to it.'),
    el('ol', {}, el('li', {}, el('b', {}, '1'), el('span', {}, el('a', { class: 'link', href: '#recommended' }, 'Add a real model'), ': it is downloaded once, then works offline.')),
      el('li', {}, el('b', {}, '2'), el('span', {}, el('a', { class: 'link', href: '/library' }, 'Add your videos'), videos > 0 ? `: those that are here (${videos}) it reads when you start it.` : ': it reads them as they come.'))));
}

/** How long a paused model will read, '' where nothing is left. @param {Space} space */
function timeOf({ coverage, fill: { measuring, clips_left: left, estimated_seconds: seconds } }) {
  if (left === 0) return '';
  if (measuring) return 'How long it takes is being measured on three shots.';
  if (typeof seconds !== 'number') return 'How long it takes could not be measured.';
  return `Reading ${coverage === 0 ? 'the library' : 'what is left'} takes ${formatEstimate(seconds)} on this server.`;
}

/** @param {any} error */
const reasonOf = (error) => (error.status === 401 || error.status === 403 ? 'This needs an API key with the scope “admin”.' : `${describe(error)} ${REMEDIES[error.status] ?? ''}`);

/** @param {Space} space */
const percent = ({ coverage }) => `${Math.floor(coverage * 100)} %`;

/** @param {Space} space */
const nameOf = ({ model }) => (model.startsWith('builtin:') ? `${model.slice(8)}, built in` : model.split('/').pop() ?? model);

/** @param {string|null|undefined} text */
const capital = (text) => (text ? text[0].toUpperCase() + text.slice(1) : '–');

/** @param {string|null|undefined} name */
const licenceOf = (name) => (name?.includes('NC') ? el('span', { class: 'row warn', title: 'Not for commercial use' }, icon('triangle-alert', 's'), name) : name ?? 'unknown');

/** @param {string} text @param {string} left @param {number} share @param {string} name */
function progress(text, left, share, name) {
  const percentage = Math.round(100 * Math.min(1, share));
  return [el('div', { class: 'row spread tiny num' }, el('span', {}, text), el('span', { class: 'dim' }, left)),
    el('div', { class: 'bar go', role: 'progressbar', 'aria-label': `${name}: progress`, 'aria-valuenow': percentage }, el('i', { vars: { width: `${percentage}%` } }))];
}

/** @param {import('../main.js').Page} page */
export const make = (page) => new Models(page);
