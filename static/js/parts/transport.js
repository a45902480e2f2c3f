// The row of buttons under a player: play, frames, time code, loop, speed, subtitles, sound, full screen.

import { button, el, fill, icon, iconButton } from '../core/dom.js';
import { languageName } from '../core/languages.js';
import { openMenu } from '../core/menu.js';
import { formatTime } from '../core/time.js';
import { SPEEDS } from './player.js';

/** @param {number} seconds */
const exact = (seconds) => `${formatTime(Math.floor(seconds + 1e-6))}.${String(Math.floor(seconds * 1000 + 0.001) % 1000).padStart(3, '0')}`;

/** @param {number} speed */
const speedName = (speed) => `${{ 0.25: '¼', 0.5: '½', 0.75: '¾' }[speed] ?? speed}×`;

export class Transport {
  /**
   * @param {import('./player.js').Player} player
   * @param {object} parts
   * @param {() => void} parts.onPrevious
   * @param {() => void} parts.onNext
   * @param {() => void} [parts.onLoop] without it there is no button to loop
   * @param {string} [parts.steps] what "previous" and "next" go to
   * @param {() => HTMLElement} parts.stage what fills the screen
   */
  constructor(player, { onPrevious, onNext, onLoop, steps = 'hit', stage }) {
    this.player = player;
    this.stage = stage;
    this.playButton = iconButton('play', 'Play', () => player.toggle(), { key: 'Space', id: 'play' });
    this.code = el('span', { class: 'at' });
    this.length = el('span', { class: 'dim only-l of' });
    this.frame = el('span', { class: 'dim small num only-l only-w' });
    this.loopButton = onLoop && iconButton('repeat', 'Loop in to out', onLoop, { key: '⇧ Space', 'aria-pressed': 'false' });
    this.speedButton = button('1×', () => this.chooseSpeed(), { class: 'btn ghost num', title: 'Speed  < >', 'aria-haspopup': 'menu' });
    this.subtitles = iconButton('captions', 'Subtitles', () => this.chooseSubtitles(), { key: 'T', class: 'btn ghost sq only-l', 'aria-pressed': 'false' });
    this.sound = iconButton('volume-2', 'Sound', () => player.toggleSound(), { key: 'M', class: 'btn ghost sq only-l' });
    this.element = el('div', { class: 'transport', role: 'group', 'aria-label': 'Player' },
      iconButton('skip-back', `Previous ${steps}`, onPrevious, { key: 'P' }),
      iconButton('step-back', 'Frame back', () => player.step(-1), { key: '←', class: 'btn ghost sq only-l' }),
      this.playButton,
      iconButton('step-forward', 'Frame on', () => player.step(1), { key: '→', class: 'btn ghost sq only-l' }),
      iconButton('skip-forward', `Next ${steps}`, onNext, { key: 'N' }),
      el('span', { class: 'tc', id: 'timecode' }, this.code, this.length),
      this.frame, el('span', { class: 'grow' }), this.loopButton, this.speedButton, this.subtitles, this.sound,
      iconButton('maximize', 'Full screen', () => this.toggleFullScreen(), { key: '⇧ F' }));
    player.addEventListener('time', () => this.showTime());
    player.addEventListener('change', () => this.showState());
    this.showTime();
    this.showState();
  }

  showTime() {
    const { player } = this;
    this.code.textContent = exact(player.frameTime);
    this.length.textContent = ` / ${exact(player.duration)}`;
    this.frame.textContent = `frame ${player.frame}`;
  }

  showState() {
    const { player } = this;
    const name = player.paused ? 'Play' : 'Pause';
    if (this.playButton.getAttribute('aria-label') !== name) {
      this.playButton.setAttribute('aria-label', name);
      this.playButton.title = `${name}  Space`;
      fill(this.playButton, icon(name.toLowerCase(), 'l'));
    }
    this.loopButton?.classList.toggle('on', player.loop !== null);
    this.loopButton?.setAttribute('aria-pressed', String(player.loop !== null));
    this.speedButton.textContent = player.backwards > 0 ? `−${speedName(player.backwards)}` : speedName(player.speed);
    this.subtitles.disabled = player.languages.length === 0;
    this.subtitles.classList.toggle('on', player.subtitle !== null);
    this.subtitles.setAttribute('aria-pressed', String(player.subtitle !== null));
    const { muted } = player.media;
    this.sound.setAttribute('aria-label', muted ? 'Sound on' : 'Sound off');
    this.sound.title = `${muted ? 'Sound on' : 'Sound off'}  M`;
    fill(this.sound, icon(muted ? 'volume-x' : 'volume-2'));
  }

  chooseSpeed() {
    openMenu(this.speedButton, SPEEDS.map((speed) => ({
      label: speedName(speed), checked: speed === this.player.speed, act: () => { this.player.speed = speed; },
    })));
  }

  chooseSubtitles() {
    const { player } = this;
    if (player.languages.length < 2) return player.toggleSubtitles();
    return openMenu(this.subtitles, [null, ...player.languages].map((language) => ({
      label: language === null ? 'Off' : languageName(language) ?? language, checked: language === player.subtitle, act: () => { player.subtitle = language; },
    })));
  }

  toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.stage().requestFullscreen?.().catch(() => {});
  }
}
