// What a search that found nothing shows: where it looked, what else could be tried, and what comes nearest.

import { search } from '../../core/api.js';
import { el, fill } from '../../core/dom.js';
import { count } from '../../core/words.js';
import { foldedOf } from '../../parts/hits.js';
import { FILTERS, canHear, isText, sourcesOf } from '../../parts/query.js';

/** @param {import('./results.js').Results} view @param {string} text of the query or the change */
export function drawNothing(view, text) {
  const { parameters, body } = view;
  const sources = sourcesOf(parameters);
  const only = canHear(parameters) && sources?.length === 1 ? sources[0] : null;
  const what = text && isText(parameters) ? `“${text.replace(/^["“]|["”]$/g, '').slice(0, 80)}”` : 'this';
  const title = only === 'spoken' ? `Nobody says ${what}` : only === 'visual' ? `Nothing shows ${what}` : only === 'screen' ? `Nowhere is ${what} written` : `Nothing was found for ${what}`;
  const filters = FILTERS.reduce((sum, name) => sum + parameters.getAll(name).length, 0);
  fill(body, el('div', { class: 'empty nothing' }, el('h2', {}, title),
    el('p', {}, filters > 0 ? `${count(filters, 'filter is', 'filters are')} on. Without ${filters === 1 ? 'it' : 'them'} there is more to look through.`
      : 'Other words may find it, or another place to look.'),
    view.wayButtons(view.waysOn(text)) || el('a', { class: 'btn', href: '/library' }, 'See the library')));
  if (text && isText(parameters) && ((only && only !== 'visual') || filters > 0)) drawNearest(view, text).catch(() => {});
}

/** What comes nearest without filters. @param {import('./results.js').Results} view @param {string} text */
async function drawNearest(view, text) {
  const { results } = await search({ query: { text }, sources: ['visual'], near_duplicates: 'fold', limit: 6 }, null, view.stop.signal);
  if (results.length === 0) return;
  const grid = view.newGrid('Nearest moments');
  view.body.append(el('section', { class: 'weaker' }, el('h2', { class: 'line' }, 'Nearest in what is seen'), grid.element));
  grid.set(results.map((hit) => ({ hit, alike: foldedOf(hit) })));
}
