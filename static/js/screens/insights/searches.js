// A list of logged searches: all, the slowest, those that found little, those of a day or with one text.

import { all } from '../../core/api.js';
import { el, icon } from '../../core/dom.js';
import { count, formatInstant, formatNumber } from '../../core/words.js';
import { load, table } from '../../parts/frame.js';
import { againPath } from '../../parts/searchlink.js';
import { shortDay } from './charts.js';
import { foundLittle, MOST_ROWS, plain, rangeOf } from './figures.js';

const SHOWN = 100;
/** @type {Record<string, string>} */
const TITLES = { all: 'All searches', slow: 'The slowest searches', nothing: 'Found nothing, or only weak hits' };
/** @type {Record<string, string>} */
const KINDS = { text: 'Words', clip: 'A clip', composed: 'A clip and a change', image: 'A picture', examples: 'Examples' };

/**
 * @param {string} list `all`, `slow`, `nothing`, a date, or `text:` and a text
 * @param {number} days
 * @param {string} close address without the list
 * @param {AbortSignal} signal
 */
export function searchList(list, days, close, signal) {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(list);
  const body = el('div');
  load(body, signal, async () => {
    const query = isDay ? { since: list, until: new Date(Date.parse(list) + 86_400_000).toISOString() } : rangeOf(days);
    const most = list === 'all' || isDay ? SHOWN : MOST_ROWS;
    /** @type {Api<'LoggedSearch'>[]} */
    let rows = await all('/v1/searches', { query: { ...query, limit: Math.min(1000, most) }, most, signal });
    if (list === 'slow') rows.sort((a, b) => b.timings_ms.total - a.timings_ms.total);
    else if (list === 'nothing') rows = rows.filter(foundLittle);
    else if (most > SHOWN) rows = rows.filter(({ query: { text } }) => plain(text) === plain(list.slice(5)));
    if (rows.length === 0) return el('p', { class: 'none' }, 'No such search in this time.');
    return [table('Searches', ['Search', 'Kind', '>Found', '>Took', '>When'], rows.slice(0, SHOWN).map(cellsOf), 'five'),
      rows.length > SHOWN && el('p', { class: 'none' }, `These are the first ${SHOWN} of ${formatNumber(rows.length)}.`)];
  });
  return el('section', { class: 'panel', id: 'searches' }, el('h2', { tabindex: -1 }, isDay ? `Searches of ${shortDay(list)}` : TITLES[list] ?? `Searches for “${list.slice(5)}”`,
    el('a', { class: 'btn ghost sq', href: close, 'aria-label': 'Close the list' }, icon('x'))), body);
}

/** @param {Api<'LoggedSearch'>} search */
function cellsOf(search) {
  const { query, kind, shown, timings_ms: times, at } = search;
  const path = againPath(search);
  const likes = query.examples?.like.flatMap((it) => it.text ?? []).join(', ');
  const text = query.text || likes || (query.uploaded ? 'An uploaded file' : KINDS[kind] ?? kind);
  const parts = Object.entries(times).map(([name, ms]) => `${name} ${Math.round(ms)} ms`).join(', ');
  return [path ? el('a', { class: 'link clip2', href: path }, text) : el('span', { class: 'clip2', title: 'The log holds too little of it to search again' }, text), KINDS[kind] ?? kind,
    shown === 0 ? 'nothing' : foundLittle(search) ? 'only weak hits' : count(shown, 'moment'), el('span', { title: parts }, `${formatNumber(times.total)} ms`), formatInstant(at)];
}
