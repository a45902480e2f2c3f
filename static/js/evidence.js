// What the sources say about a hit: the words that were said, as nodes, and the moment from which it plays.

import { el } from './dom.js';

const LEAD_IN_S = 1;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

function unescaped(html) {
  return html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ENTITIES[name]);
}

/** The server's escaped HTML as text nodes and `<mark>`. Any other markup is shown as the text that it is. */
export function snippetNodes(html) {
  return html.split(/<mark>(.*?)<\/mark>/s)
    .map((part, index) => (index % 2 ? el('mark', {}, unescaped(part)) : unescaped(part)));
}

/** The best that is said of a hit; null if it was found by its pictures alone. */
export function spokenEvidence(hit) {
  return (hit.evidence || []).find((item) => item.text) ?? null;
}

/** When a hit opens, seconds: where it is said, else where it is seen best, else its start. */
export function opensAt(hit) {
  return spokenEvidence(hit)?.start ?? hit.peak ?? hit.start;
}

/** From when it plays: the server's moment, which is a lead-in before it opens. */
export function playsFrom(hit) {
  const proposed = hit.page_url ? Number.parseFloat(new URL(hit.page_url, location.href).searchParams.get('t')) : NaN;
  return Number.isFinite(proposed) ? proposed : Math.max(0, opensAt(hit) - LEAD_IN_S);
}
