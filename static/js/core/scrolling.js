// How fast the window scrolls, and when it has come to rest. What costs time waits for that.

/** So fast, a card crosses the window in a third of a second. CSS pixels a second. */
const FAST = 3000;
/** Without a scroll event for so long, the window is at rest. */
const REST_MS = 120;
/** The speed is that of the last one or two of these spans: a wheel scrolls in jerks. */
const SPAN_MS = 100;
/** A longer step than so many windows is a jump. */
const JUMP = 2;
/** What waited is done in batches of about this length, one in a frame: all at once would take as long as several frames. */
const BATCH_MS = 4;

/** @type {Set<() => void>} */
const atRest = new Set();
/** @type {(() => void)[]} */
const waiting = [];
/** @type {Set<object>} grids that draw a row in the next frame */
const drawing = new Set();
let isFast = false;
let frame = 0;
let timer = 0;
let y = 0;
let [before, last] = [{ at: 0, y: 0 }, { at: 0, y: 0 }];

/** Does what waited, the newest first: that is what came into sight last. A frame that draws a row has enough to do. */
function catchUp() {
  cancelAnimationFrame(frame);
  frame = 0;
  const until = performance.now() + BATCH_MS;
  while (!isFast && drawing.size === 0 && waiting.length > 0 && performance.now() < until) waiting.pop()?.();
  if (!isFast && waiting.length > 0) frame = requestAnimationFrame(catchUp);
}

function rest() {
  isFast = false;
  catchUp();
  for (const act of atRest) act();
}

document.addEventListener('scroll', ({ timeStamp: at }) => {
  const now = { at, y: scrollY };
  // A jump, such as to the end: whoever jumped looks at where it led.
  const isJump = Math.abs(now.y - y) > JUMP * innerHeight;
  y = now.y;
  if (isJump) [before, last] = [now, now];
  else if (at - last.at > SPAN_MS) [before, last] = [last, now];
  isFast = (1000 * Math.abs(now.y - before.y)) / (at - before.at) > FAST;
  if (!isFast && !frame) catchUp();
  clearTimeout(timer);
  timer = window.setTimeout(rest, REST_MS);
}, { passive: true });

/**
 * Acts at once or, while the window scrolls fast, when it slows down.
 * @param {() => void} act
 * @param {() => boolean} isWanted whether to act still makes sense after the wait
 */
export function whenSlow(act, isWanted) {
  if (isFast) waiting.push(() => { if (isWanted()) act(); });
  else act();
}

/**
 * Notes whether a grid draws. What waited for the window to slow down leaves such frames to it.
 * @param {object} grid
 * @param {boolean} isDrawing whether it draws a row of cards in the next frame
 */
export function drawsRows(grid, isDrawing) {
  if (isDrawing) drawing.add(grid);
  else drawing.delete(grid);
}

/**
 * Acts each time that the window has come to rest.
 * @param {() => void} act
 * @returns {() => void} ends that
 */
export function onRest(act) {
  atRest.add(act);
  return () => atRest.delete(act);
}
