// How fast the window scrolls, and when it has come to rest. What costs time waits for that.

/** So fast, a card crosses the window in a third of a second. CSS pixels a second. */
const FAST = 3000;
/** Without a scroll event for so long, the window is at rest. */
const REST_MS = 120;
/** The speed is that of the last one or two of these spans: a wheel scrolls in jerks. */
const SPAN_MS = 100;

/** @type {Set<() => void>} */
const atRest = new Set();
/** @type {Map<Node, () => void>} */
let waiting = new Map();
let isFast = false;
let timer = 0;
let [before, last] = [{ at: 0, y: 0 }, { at: 0, y: 0 }];

function slowDown() {
  isFast = false;
  const due = waiting;
  waiting = new Map();
  for (const [node, act] of due) if (node.isConnected) act();
}

function rest() {
  slowDown();
  for (const act of atRest) act();
}

document.addEventListener('scroll', ({ timeStamp: at }) => {
  const now = { at, y: scrollY };
  if (at - last.at > SPAN_MS) [before, last] = [last, now];
  isFast = (1000 * Math.abs(now.y - before.y)) / (at - before.at) > FAST;
  if (!isFast && waiting.size > 0) slowDown();
  clearTimeout(timer);
  timer = window.setTimeout(rest, REST_MS);
}, { passive: true });

/**
 * Acts at once; while the window scrolls fast, as soon as it is slow enough to look at a node that is still there.
 * @param {Node} node
 * @param {() => void} act
 */
export function whenSlow(node, act) {
  if (isFast) waiting.set(node, act);
  else act();
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
