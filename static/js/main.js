// Starts the page: makes the parts, wires the header, and shows the view that the address names.

import { onKeyNeeded } from './api.js';
import { askApiKey } from './dialogs.js';
import { el, fill } from './dom.js';
import { JobFollower } from './jobs.js';
import { Library } from './library.js';
import { ModelsDialog } from './models.js';
import { QueryFiles, isSearch, isText } from './query.js';
import { Router } from './router.js';
import { SearchView } from './search.js';
import { Spaces } from './spaces.js';
import { Uploads } from './upload.js';
import { WatchView } from './watch.js';

/** How many searches keep their results for Back. */
const KEPT_SEARCHES = 8;

class Page {
  constructor() {
    this.main = document.getElementById('main');
    this.text = document.getElementById('search-text');
    this.sources = document.getElementById('search-sources');
    this.jobs = new JobFollower();
    this.spaces = new Spaces();
    this.files = new QueryFiles();
    this.router = new Router((route, how) => this.show(route, how));
    this.library = new Library({ jobs: this.jobs, chooseFiles: () => document.getElementById('upload-input').click() });
    this.uploads = new Uploads(document.getElementById('uploads'), {
      onAdded: (video, job) => this.library.add(video, job),
      onDrop: (files) => this.view?.takeFiles?.(files) ?? files,
    });
    /** @type {Map<string, SearchView>} by address, oldest first */
    this.searches = new Map();
    this.view = null;
  }

  async start() {
    onKeyNeeded(askApiKey);
    this.uploads.listen(document.getElementById('upload-input'), document.getElementById('drop-hint'));
    this.wireSearch();
    const models = new ModelsDialog(() => this.loadSpaces());
    document.getElementById('models-button').addEventListener('click', () => models.open());
    await this.loadSpaces();
    this.router.start();
  }

  /** The spaces decide what the page offers, so they come first; without them it still works. */
  async loadSpaces() {
    try {
      await this.spaces.load();
    } catch {
      return;
    }
    const warning = this.spaces.warning();
    const notice = document.getElementById('model-notice');
    notice.hidden = !warning;
    notice.textContent = warning ?? '';
    document.getElementById('spaces-line').textContent = this.spaces.line();
  }

  wireSearch() {
    const form = document.getElementById('search-form');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.text.value.trim();
      this.router.go(text ? `/?${this.withSettings({ q: text })}` : '/');
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      } else if (event.key === 'Escape') {
        if (this.text.value) this.text.value = '';
        else this.text.blur();
      }
    });
    this.sources.addEventListener('change', () => this.chooseSources());
    const file = document.getElementById('query-file');
    file.addEventListener('change', () => {
      if (file.files.length > 0) this.router.go(this.files.pathFor(file.files[0]));
      file.value = '';
    });
    document.addEventListener('keydown', (event) => {
      const typing = event.target.matches('input, textarea, select') || document.querySelector('dialog[open]');
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.text.focus();
      this.text.select();
    });
  }

  /** A text that is being searched is searched again in the new place. */
  chooseSources() {
    const parameters = new URLSearchParams(location.search);
    if (!isText(parameters)) return;
    if (this.sources.value) parameters.set('sources', this.sources.value);
    else parameters.delete('sources');
    this.router.replace(`${location.pathname}?${parameters}`, '#search-sources');
  }

  /** A new text search keeps the level and the grouping of the one before. */
  withSettings(query) {
    const parameters = new URLSearchParams(query);
    if (this.sources.value) parameters.set('sources', this.sources.value);
    const now = new URLSearchParams(location.search);
    for (const name of ['level', 'group']) if (now.get(name)) parameters.set(name, now.get(name));
    return parameters;
  }

  show(route, { back, control }) {
    const isShown = route?.name === 'video' && this.view instanceof WatchView && this.view.id === route.id;
    if (isShown) this.view.goTo(route);
    else this.swap(this.viewFor(route, back), back, control);
    this.text.value = route?.parameters.get('q') ?? '';
    this.sources.value = route?.parameters.get('sources') ?? '';
    // A choice that is not offered.
    if (this.sources.selectedIndex < 0) this.sources.value = '';
  }

  viewFor(route, back) {
    if (!route) return new Missing();
    if (route.name === 'video') return new WatchView(route, this);
    if (!isSearch(route.parameters)) return this.library;
    const kept = back ? this.searches.get(route.key) : null;
    const view = kept ?? new SearchView(route.parameters, this);
    this.keepSearch(route.key, view);
    return view;
  }

  keepSearch(key, view) {
    const before = this.searches.get(key);
    if (before && before !== view) before.close();
    this.searches.delete(key);
    this.searches.set(key, view);
    for (const [oldest, old] of this.searches) {
      if (this.searches.size <= KEPT_SEARCHES) break;
      old.close();
      this.searches.delete(oldest);
    }
  }

  swap(view, back, control) {
    if (this.view) {
      this.view.lastFocus = this.main.contains(document.activeElement) ? document.activeElement : null;
      this.view.hide();
    }
    const first = this.view === null;
    this.view = view;
    fill(this.main, view.element);
    document.title = view === this.library ? 'reprise' : `${view.title} – reprise`;
    view.show();
    if (first) return;
    // Back returns to what was left; elsewhere the new heading is where reading starts.
    const left = back && view.lastFocus?.isConnected ? view.lastFocus : null;
    const target = left ?? view.element.querySelector(control ?? 'h1');
    target?.focus({ preventScroll: true });
  }
}

/** An address that this page does not have. */
class Missing {
  constructor() {
    this.title = 'Not found';
    this.element = el('div', { class: 'empty' }, el('h1', { tabindex: -1 }, 'Nothing here'), el('a', { href: '/' }, 'To the library'));
  }

  show() {}

  hide() {}
}

new Page().start();
