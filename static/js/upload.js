// Brings files in: the button, drag-and-drop anywhere on the page, one upload at a time with its progress.

import { uploadVideo } from './api.js';
import { button, el } from './dom.js';
import { announce, describe } from './problems.js';

/** The files of a drop; folders are walked. Must be called while the drop event is handled. */
async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files];
  const found = await Promise.all(entries.map(filesOf));
  return found.flat();
}

async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((resolve, reject) => entry.file(resolve, reject))];
  const reader = entry.createReader();
  const files = [];
  // readEntries answers in portions; an empty one is the end.
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return files;
    for (const child of portion) files.push(...await filesOf(child));
  }
}

export class Uploads {
  /**
   * @param {HTMLElement} region where the running uploads are listed
   * @param {object} listeners
   * @param {(video: object, job: object|null) => boolean} listeners.onAdded says whether the video is now in sight
   * @param {(files: File[]) => File[]} listeners.onDrop takes what is not for the library, and answers the rest
   */
  constructor(region, { onAdded, onDrop }) {
    Object.assign(this, { region, onAdded, onDrop });
    this.list = el('ul');
    region.append(this.list);
    this.waiting = [];
    this.busy = false;
  }

  /** Listens to a file input and to drops anywhere. */
  listen(input, hint) {
    input.addEventListener('change', () => {
      this.add([...input.files]);
      input.value = '';
    });
    const carriesFiles = (event) => event.dataTransfer?.types.includes('Files');
    let depth = 0;
    const show = (inside) => {
      depth = Math.max(0, depth + (inside ? 1 : -1));
      hint.hidden = depth === 0;
    };
    window.addEventListener('dragenter', (event) => { if (carriesFiles(event)) show(true); });
    window.addEventListener('dragleave', (event) => { if (carriesFiles(event)) show(false); });
    window.addEventListener('dragover', (event) => { if (carriesFiles(event)) event.preventDefault(); });
    window.addEventListener('drop', async (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      depth = 0;
      hint.hidden = true;
      this.add(this.onDrop(await droppedFiles(event.dataTransfer)));
    });
  }

  add(files) {
    for (const file of files) {
      const entry = this.entry(file);
      this.list.append(entry.element);
      this.waiting.push(entry);
    }
    this.region.hidden = this.list.childElementCount === 0;
    this.next();
  }

  entry(file) {
    const stop = new AbortController();
    const bar = el('progress', { max: 1, value: 0, 'aria-label': `Upload of ${file.name}` });
    const message = el('span', { class: 'message muted' }, 'waiting');
    const action = button('Cancel', () => {
      stop.abort();
      this.remove(entry);
    }, { class: 'button small plain', 'aria-label': `Cancel the upload of ${file.name}` });
    const element = el('li', { class: 'upload' },
      el('span', {}, el('strong', {}, file.name), ' – ', message), action, bar);
    const entry = { file, stop, bar, message, action, element };
    return entry;
  }

  async next() {
    if (this.busy) return;
    const entry = this.waiting.shift();
    if (!entry) return;
    this.busy = true;
    try {
      if (!entry.stop.signal.aborted) await this.send(entry);
    } finally {
      this.busy = false;
      this.next();
    }
  }

  async send(entry) {
    const { file } = entry;
    entry.message.textContent = 'uploading';
    try {
      const { video, job, duplicate } = await uploadVideo(file, {
        signal: entry.stop.signal,
        onProgress: (fraction) => {
          entry.bar.value = fraction;
          entry.message.textContent = fraction < 1 ? `${Math.round(fraction * 100)} %` : 'storing';
        },
      });
      const inSight = this.onAdded(video, job);
      if (duplicate) this.settle(entry, ['is already in the library as ', this.link(video)]);
      else if (!inSight) this.settle(entry, ['is in the library and will be analysed: ', this.link(video)]);
      else this.finish(entry, video);
    } catch (error) {
      if (error.name !== 'AbortError') this.failed(entry, error);
    }
  }

  link(video) {
    return el('a', { href: `/v/${video.id}` }, video.title);
  }

  finish(entry, video) {
    this.remove(entry);
    announce(`${video.title} is uploaded and will be analysed.`);
  }

  failed(entry, error) {
    entry.element.classList.add('bad');
    this.settle(entry, [describe(error)]);
  }

  /** Leaves a line that the person has to read, with a button to take it away. */
  settle(entry, message) {
    entry.bar.remove();
    entry.message.replaceChildren(...message);
    entry.action.textContent = 'Dismiss';
    entry.action.setAttribute('aria-label', `Dismiss the message about ${entry.file.name}`);
    announce(`${entry.file.name} ${entry.message.textContent}`);
  }

  remove(entry) {
    entry.element.remove();
    this.region.hidden = this.list.childElementCount === 0;
  }
}
