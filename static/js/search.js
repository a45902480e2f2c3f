// One search as a view: reads the query from the address, asks, shows hits and loads further pages.

import { getVideo, search } from './api.js';
import { button, el, fill } from './dom.js';
import { announce, problemBox } from './problems.js';
import { isText, queryOf, queryParameters, sourcesOf } from './query.js';
import { HitGrid, aboutAnswer, groupSection } from './results.js';
import { videoPath } from './router.js';
import { formatRange } from './time.js';

const LIMIT = 24;
const GROUPS = 8;
const PER_GROUP = 4;
const LEVELS = [['clip', 'Clips'], ['video', 'Full videos'], ['both', 'Both']];

export class SearchView {
  constructor(parameters, { router, spaces, files }) {
    this.parameters = parameters;
    this.router = router;
    this.spaces = spaces;
    this.files = files;
    this.level = LEVELS.some(([level]) => level === parameters.get('level')) ? parameters.get('level') : 'clip';
    this.grouped = parameters.get('group') === 'video' && this.level !== 'video';
    this.title = 'Search';
    this.stop = new AbortController();
    this.build();
  }

  build() {
    this.heading = el('h1', { tabindex: -1 }, 'Results');
    this.count = el('span', { class: 'count' });
    this.subject = el('div', { class: 'query-line' });
    this.answers = el('div', { id: 'results' });
    this.more = button('Show more', () => this.load());
    this.more.hidden = true;
    this.end = el('p', { class: 'muted', hidden: true }, 'That is everything.');
    this.about = el('div');
    this.element = el('div', { class: 'search-view' },
      el('div', { class: 'stack' },
        el('div', {}, el('div', { class: 'heading' }, this.heading, this.count), this.subject),
        this.options()),
      this.answers, el('div', { class: 'center' }, this.more, this.end), this.about);
    this.drawSubject();
  }

  show() {
    if (!this.started) {
      this.started = true;
      this.load();
    }
  }

  hide() {}

  close() {
    this.stop.abort();
  }

  /** The same search with other settings. */
  path(changes) {
    const parameters = new URLSearchParams(this.parameters);
    for (const [name, value] of Object.entries(changes)) {
      if (value) parameters.set(name, value);
      else parameters.delete(name);
    }
    return `/?${parameters}`;
  }

  options() {
    const levels = el('fieldset', { class: 'segmented' }, el('legend', { class: 'visually-hidden' }, 'What to find'),
      LEVELS.map(([level, label]) => el('label', {},
        el('input', {
          class: 'visually-hidden', type: 'radio', name: 'level', value: level, checked: level === this.level,
          on: { change: () => this.router.replace(this.path({ level: level === 'clip' ? null : level }), `input[value="${level}"]`) },
        }),
        el('span', {}, label))));
    const group = el('label', { class: 'check' },
      el('input', {
        type: 'checkbox', name: 'group', checked: this.grouped, disabled: this.level === 'video',
        on: { change: () => this.router.replace(this.path({ group: this.grouped ? null : 'video' }), 'input[name="group"]') },
      }),
      'Group by video');
    return el('div', { class: 'options' }, levels, group);
  }

  /** Says what is searched for, and offers to change it. */
  drawSubject() {
    const parameters = this.parameters;
    if (isText(parameters)) {
      this.title = parameters.get('q');
      const text = parameters.get('q');
      fill(this.subject, el('p', { class: 'muted' }, `for “${text.length > 300 ? `${text.slice(0, 300)}…` : text}”`));
      return;
    }
    const what = el('p', { class: 'muted' });
    if (parameters.get('upload')) {
      this.title = parameters.get('name') || 'Search by file';
      fill(what, 'like the file ', el('strong', {}, this.title));
    } else {
      const [start, end] = ['start', 'end'].map((name) => Number.parseFloat(parameters.get(name)));
      const link = el('a', { href: videoPath(parameters.get('clip'), start) }, 'a video');
      fill(what, 'like ', el('strong', {}, formatRange(start, end)), ' of ', link);
      this.title = 'Search by clip';
      getVideo(parameters.get('clip'), this.stop.signal).then((video) => { link.textContent = video.title; }).catch(() => {});
    }
    fill(this.subject, what, this.refineForm());
  }

  /** "But different": turns a clip query into a composed one, where a loaded model can. */
  refineForm() {
    if (!this.spaces.canCompose()) return null;
    const input = el('input', {
      type: 'text', name: 'modification', value: this.parameters.get('mod') ?? '', placeholder: 'the same, but at night',
    });
    const heard = el('input', {
      type: 'checkbox', name: 'heard', checked: (this.parameters.get('sources') ?? '').includes('spoken'),
    });
    return el('form', {
      class: 'refine',
      on: {
        submit: (event) => {
          event.preventDefault();
          const mod = input.value.trim();
          this.router.go(this.path({ mod, sources: mod && heard.checked ? 'visual,spoken' : null }));
        },
      },
    },
    el('label', { class: 'field' }, el('span', {}, 'What should be different (optional)'), input),
    el('label', { class: 'check' }, heard, 'Look for it in what is said as well'),
    el('button', { type: 'submit', class: 'button' }, 'Search again'));
  }

  body(query) {
    return {
      query,
      level: this.level,
      limit: this.grouped ? GROUPS : LIMIT,
      ...sourcesOf(this.parameters),
      ...(this.grouped ? { group_by: 'video', per_group: PER_GROUP } : {}),
    };
  }

  async load() {
    const wanted = queryOf(this.parameters, this.files);
    if (!wanted) {
      fill(this.answers, el('div', { class: 'problem', role: 'alert' },
        el('p', {}, 'The query file is gone: a page that was loaded again forgets it. Choose it again with “Search by file”.')));
      return;
    }
    this.more.disabled = true;
    const first = !this.cursor;
    if (first) {
      fill(this.answers, el('p', { class: 'muted' }, 'Searching…'));
      announce('Searching');
    }
    try {
      const answer = first
        ? await search(this.body(wanted.query), wanted.file, this.stop.signal)
        : await search({ cursor: this.cursor }, null, this.stop.signal);
      this.draw(answer, first);
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.failed(error, first);
    } finally {
      this.more.disabled = false;
    }
  }

  failed(error, first) {
    if (error.status === 410) this.cursor = null;
    const box = problemBox(error, () => {
      box.remove();
      this.load();
    });
    if (first) fill(this.answers, box);
    else this.answers.append(box);
  }

  draw(answer, first) {
    if (first) {
      this.shown = 0;
      fill(this.answers);
      this.grid = this.hitGrid();
      this.drawVideos(answer.videos);
      if (!answer.groups) this.answers.append(this.grid.element);
      fill(this.about, aboutAnswer(answer));
      this.drawTruncation(answer.query_info);
    }
    const hits = answer.groups ? answer.groups.flatMap((group) => group.results) : answer.results ?? [];
    if (answer.groups) this.answers.append(...answer.groups.map((group) => groupSection(group, queryParameters(this.parameters))));
    else this.grid.append(hits);
    this.shown += hits.length;
    this.cursor = answer.next_cursor;
    this.drawEnd(answer, first);
  }

  hitGrid() {
    return new HitGrid({ query: queryParameters(this.parameters) });
  }

  /** Level "both": full videos above the clips. */
  drawVideos(videos) {
    if (!videos || videos.length === 0) return;
    const grid = this.hitGrid();
    grid.append(videos);
    this.answers.append(el('section', { class: 'group' }, el('h2', {}, 'Full videos'), grid.element),
      el('h2', { class: 'visually-hidden' }, 'Clips'));
  }

  drawTruncation(info) {
    if (!info?.truncated) return;
    this.answers.prepend(el('p', { class: 'muted' },
      `Only the first ${info.tokens_used} of ${info.tokens_total} tokens of the text were used.`));
  }

  drawEnd(answer, first) {
    const noun = this.level === 'video' ? 'full video' : 'clip';
    const count = `${this.shown} ${noun}${this.shown === 1 ? '' : 's'}`;
    this.count.textContent = this.shown === 0 ? '' : count;
    this.more.hidden = !this.cursor;
    this.end.hidden = !(answer.exhausted && !this.cursor && this.shown > 0);
    if (this.shown === 0) {
      this.answers.append(el('div', { class: 'empty' }, el('h2', {}, 'Nothing found'),
        el('p', {}, 'Videos become searchable when their analysis has finished.'), el('a', { href: '/' }, 'See the library')));
    }
    announce(first ? `${count} found` : `${count} shown`);
  }
}
