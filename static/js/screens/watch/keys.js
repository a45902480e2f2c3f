// Keys of the player and the marks.

/** @typedef {import('./viewer.js').Viewer} Viewer */
/** @typedef {import('../../core/keys.js').Binding} Binding */

/** Whether the focus is on a control that takes this key itself. @param {KeyboardEvent} event */
const isControl = (event) => event.target instanceof Element && event.target.closest(`button, ${event.key === ' ' ? '' : 'a[href], '}[role="menu"]`) !== null;

/** @param {() => Viewer|null} viewer @param {{back: () => void}} parts @returns {Binding[]} */
export function bindings(viewer, { back }) {
  /** @type {(key: string, label: string, act: (viewer: Viewer, event: KeyboardEvent) => unknown, more?: object) => Binding} */
  const on = (key, label, act, more = {}) => ({ key, label, ...more, act: (event) => {
    const now = viewer();
    return now ? act(now, event) : false;
  } });
  const step = (/** @type {number} */ seconds) => (/** @type {Viewer} */ { player }) => player.seek(player.time + seconds);
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => on(String(number), number === 1 ? 'Hit 1, up to 9' : '', (now) => now.toHit(number - 1)));
  return [
    on('Space', 'Play, pause; with ⇧ loop', (now, event) => (event.shiftKey ? now.toggleLoop() : isControl(event) ? false : now.player.toggle())),
    on('K', 'Play, pause', ({ player }) => player.toggle()),
    on('J', 'Play backwards, faster', ({ player }) => player.back()),
    on('L', 'Play, faster', ({ player }) => player.forward()),
    on('ArrowLeft', 'Frame back', ({ player }) => player.step(-1)),
    on('ArrowRight', 'Frame on', ({ player }) => player.step(1)),
    on('Shift+ArrowLeft', 'Second back', step(-1)),
    on('Shift+ArrowRight', 'Second on', step(1)),
    on('ArrowUp', 'Cut before', (now) => now.stepCut(-1)),
    on('ArrowDown', 'Next cut', (now) => now.stepCut(1)),
    on('P', 'Previous hit', (now) => now.stepHit(-1)),
    on('N', 'Next hit', (now) => now.stepHit(1)),
    ...numbers,
    on('<', 'Slower', ({ player }) => player.changeSpeed(-1)),
    on('>', 'Faster', ({ player }) => player.changeSpeed(1)),
    on('T', 'Subtitles', ({ player }) => player.toggleSubtitles()),
    on('M', 'Sound', ({ player }) => player.toggleSound()),
    on('Shift+F', 'Full screen', ({ transport }) => transport.toggleFullScreen()),
    on('Ctrl+F', 'Find in the transcript', ({ panel, transcript }) => {
      if (!transcript.hasLines) return false;
      panel.choose('transcript');
      return transcript.focusFind();
    }, { inFields: true }),
    on('E', 'Correct the line', ({ panel, transcript }) => {
      if (!transcript.hasLines) return false;
      panel.choose('transcript');
      return transcript.correct();
    }),
    on('R', 'Add to the reel', (now) => now.addToReel()),
    on('I', 'In', (now) => now.markIn()),
    on('[', 'In', (now) => now.markIn()),
    on('O', 'Out', (now) => now.markOut()),
    on(']', 'Out', (now) => now.markOut()),
    on('Shift+I', 'Go to in', (now) => now.goTo('start')),
    on('Shift+O', 'Go to out', (now) => now.goTo('end')),
    on('S', 'Mark the shot', (now) => now.markShot()),
    on('Alt+X', 'Clear the marks', (now) => now.clearMarks(), { inFields: true }),
    on('.', 'What should be different', ({ compose }) => compose.focus()),
    on('Enter', 'Find', ({ compose, range }, event) => (isControl(event) || !range ? false : compose.find())),
    on('-', 'Show more of the timeline', ({ timeline }) => timeline.zoom(1.6)),
    on('+', 'Show less of it, larger', ({ timeline }) => timeline.zoom(1 / 1.6)),
    on('=', '', ({ timeline }) => timeline.zoom(1 / 1.6)),
    on('Z', 'Show the marks', (now) => now.zoomToMarks()),
    on('Shift+Z', 'Show all', ({ timeline }) => timeline.showAll()),
    on('Escape', 'Back', (_, event) => {
      if (document.fullscreenElement || document.querySelector('.menu:popover-open')) return false;
      if (event.target instanceof HTMLElement && event.target.matches('textarea, input')) return event.target.blur();
      return back();
    }, { inFields: true }),
  ];
}
