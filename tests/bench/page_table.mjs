// Writes the page's figures as a table between two marks of BENCHMARKS.md.
//
//   node page_table.mjs DEMO LONG      both as page.mjs prints them

import { readFileSync, writeFileSync } from 'node:fs';

const MARKS = ['<!-- page: made by `scripts/bench-page.sh` -->', '<!-- page: end -->'];
const FILE = new URL('../../BENCHMARKS.md', import.meta.url);
const [demo, long] = process.argv.slice(2).map((text) => JSON.parse(text));

/** The browser reports tasks of 50 ms and more. */
const task = (milliseconds) => (milliseconds > 0 ? `${milliseconds.toFixed(0)} ms` : 'under 50 ms');

/** What is measured, its goal, and how its figure is written. */
const ROWS = [
  ['first card of the library', 'under 300 ms', (it) => `${it.first_card_ms.toFixed(0)} ms`],
  ['first hit after Enter', 'under 200 ms', (it) => `${it.first_hit_ms.toFixed(0)} ms`],
  ["player's first frame, warm", 'under 500 ms', (it) => `${it.frame_warm_ms.toFixed(0)} ms`],
  ["player's first frame, new browser", 'under 1 s', (it) => `${it.frame_cold_ms.toFixed(0)} ms`],
  ['longest task while scrolling, median and worst of seven runs', 'under 50 ms', (it) => `${task(it.scroll.longest)}, ${task(it.scroll.worst)}`],
  ['most processor time of a task while scrolling', '', (it) => `${it.scroll.worked.toFixed(0)} ms`],
  ['cards in the document at most', 'under 500', (it) => String(it.scroll.cards)],
  ['layout shift while scrolling (CLS)', 'under 0.02', (it) => it.scroll.shift.toFixed(3)],
  ['heap after 100 and 1,000 screens', 'at most 5 MB more', (it) => `${it.heap_mb[100].toFixed(1)} and ${it.heap_mb[1000].toFixed(1)} MB`],
];
const lines = ROWS.map(([name, goal, write]) => `| ${name} | ${goal} | ${write(demo)} | ${write(long)} |`);
const table = [MARKS[0], '', '| | goal | demo | 10,000 clips |', '|---|---|---|---|', ...lines, '', MARKS[1]].join('\n');
const text = readFileSync(FILE, 'utf8');
const [before, rest] = text.split(MARKS[0]);
if (rest === undefined) throw new Error(`BENCHMARKS.md has no mark ${MARKS[0]}`);
writeFileSync(FILE, `${before}${table}${rest.split(MARKS[1])[1]}`);
console.log(table);
