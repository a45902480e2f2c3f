// Messages at the bottom of the page, and undo: nothing asks "are you sure?".

import { button, el, fill, iconButton, keyCap } from './dom.js';
import { announce, describe } from './problems.js';

const SHOWN_MS = 8000;

class Toasts {
  constructor() {
    /** @type {(() => unknown)[]} what Ctrl Z takes back, the newest last */
    this.undos = [];
    this.timer = 0;
    this.element = el('div', { class: 'toast', hidden: true, id: 'toast', role: 'region', 'aria-label': 'Message' });
  }

  /**
   * Says something for 8 seconds.
   * @param {string|(Node|string)[]} message
   * @param {{undo?: () => unknown}} [options] `undo` stays reachable by Ctrl Z while the page lives
   */
  show(message, { undo } = {}) {
    if (undo) this.undos.push(undo);
    const back = undo && button(['Undo ', keyCap('Ctrl Z')], () => this.undo(undo), { class: 'btn ghost' });
    const close = iconButton('x', 'Close', () => this.hide());
    fill(this.element, el('span', {}, message), back, close);
    // What lies outside an open dialog can't be reached.
    const dialog = document.querySelector('dialog[open]');
    (dialog ?? document.body).append(this.element);
    dialog?.addEventListener('close', () => document.body.append(this.element), { once: true });
    this.element.hidden = false;
    announce(this.element.firstElementChild?.textContent ?? '');
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.hide(), SHOWN_MS);
  }

  /** @param {any} error */
  problem(error) {
    this.show(describe(error));
  }

  /**
   * Takes back the last action, or the given one. Returns false where there is nothing to take back.
   * @param {() => unknown} [which]
   */
  undo(which = this.undos.at(-1)) {
    if (!which) return false;
    this.undos = this.undos.filter((one) => one !== which);
    this.hide();
    Promise.resolve(which()).catch((error) => this.problem(error));
    return true;
  }

  hide() {
    clearTimeout(this.timer);
    // The focus must not fall to the body with the button that had it.
    if (this.element.contains(document.activeElement)) document.getElementById('main')?.focus({ preventScroll: true });
    this.element.hidden = true;
  }
}

export const toasts = new Toasts();
