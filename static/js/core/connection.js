// The server away and back: one line with a countdown, and what waits for its return.

import { onReach } from './api.js';
import { button, el, fill, icon } from './dom.js';
import { announce } from './problems.js';

const WAITS_S = [1, 2, 4, 8, 15];

class Connection extends EventTarget {
  constructor() {
    super();
    this.away = false;
    this.element = el('div', { class: 'notice away', hidden: true });
    this.timer = 0;
  }

  start() {
    onReach((reached) => { if (reached === this.away) this.set(!reached); });
    window.addEventListener('offline', () => this.set(true));
    window.addEventListener('online', () => this.ask(0));
  }

  /**
   * Runs `act` when the server is back; at once if it is there.
   * @param {() => void} act
   */
  whenBack(act) {
    if (this.away) this.addEventListener('back', act, { once: true });
    else act();
  }

  /** @param {boolean} away */
  set(away) {
    if (this.away === away) return;
    this.away = away;
    this.element.hidden = !away;
    clearInterval(this.timer);
    if (away) {
      announce('The server does not answer. Marks and reel are kept.');
      this.wait(0);
      return;
    }
    announce('The server is back.');
    this.dispatchEvent(new Event('back'));
  }

  /** @param {number} attempt */
  wait(attempt) {
    let left = WAITS_S[Math.min(attempt, WAITS_S.length - 1)];
    const seconds = el('span');
    const say = () => { seconds.textContent = `${left} s`; };
    fill(this.element, icon('unplug'), el('span', { class: 'grow' }, el('b', {}, 'The server does not answer.'), ' ',
      el('span', { class: 'muted' }, 'Trying again in ', seconds, '. Your marks, your selection and the open reel are kept in this browser.')),
    button([icon('rotate-ccw'), 'Try now'], () => this.ask(attempt)));
    say();
    clearInterval(this.timer);
    this.timer = window.setInterval(() => {
      left -= 1;
      if (left > 0) say();
      else this.ask(attempt);
    }, 1000);
  }

  /** @param {number} attempt */
  async ask(attempt) {
    clearInterval(this.timer);
    const there = await fetch('/livez', { cache: 'no-store' }).then(({ ok }) => ok, () => false);
    if (there) this.set(false);
    else if (this.away) this.wait(attempt + 1);
  }
}

export const connection = new Connection();
