// Measures the page in Chromium against a running server: first pictures, scrolling, the player, memory.
//
//   node page.mjs MODULES ADDRESS TEXT
//
// MODULES is a node_modules folder with puppeteer-core, ADDRESS a server with a filled library, TEXT a query that finds
// something. Prints one JSON object: milliseconds are medians of RUNS runs after one that is not counted.

import { createRequire } from 'node:module';

const [modules, address, text] = process.argv.slice(2);
const puppeteer = createRequire(`${modules}/`)('puppeteer-core');
const RUNS = 7;
const WINDOW = { width: 1440, height: 900 };

/** Runs in the page before its own scripts: notes when an element first appears, long tasks and layout shifts. */
function watch() {
  window.seen = {};
  window.longTasks = [];
  window.shift = 0;
  const wanted = { card: '.library .card', hit: '.results .card[data-clip]', frame: '.poster[hidden]' };
  const look = () => {
    for (const [name, selector] of Object.entries(wanted)) {
      // The frame after the one in which the element came has it painted.
      if (!(name in window.seen) && document.querySelector(selector)) {
        window.seen[name] = Number.POSITIVE_INFINITY;
        requestAnimationFrame(() => requestAnimationFrame(() => { window.seen[name] = performance.now(); }));
      }
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributeFilter: ['hidden'] });
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ['longtask'] });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
}

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

/** The median of a measurement. */
async function medianOf(measure) {
  await measure();
  const values = [];
  for (let run = 0; run < RUNS; run += 1) values.push(await measure());
  return median(values);
}

async function openPage(browser) {
  const page = await browser.newPage();
  await page.setViewport(WINDOW);
  await page.evaluateOnNewDocument(watch);
  return page;
}

const isSeen = (page, name) => page.waitForFunction((it) => Number.isFinite(window.seen[it]), { polling: 20 }, name);

/** From the start of the navigation to the first painted card of the library. */
async function firstCard(page) {
  await page.goto(`${address}/library`);
  await isSeen(page, 'card');
  return page.evaluate(() => window.seen.card);
}

/** From Enter to the first painted hit. Whoever types takes longer than the start screen needs to come to rest. */
async function firstHit(page) {
  await page.goto(`${address}/`, { waitUntil: 'networkidle2' });
  await page.waitForSelector('.ask textarea');
  await page.type('.ask textarea', text);
  await page.evaluate(() => {
    document.addEventListener('keydown', (event) => { if (event.key === 'Enter') window.entered = performance.now(); }, { capture: true, once: true });
  });
  await page.keyboard.press('Enter');
  await isSeen(page, 'hit');
  return page.evaluate(() => window.seen.hit - window.entered);
}

/** From the start of the navigation to the player's first frame. */
async function firstFrame(page, id) {
  await page.goto(`${address}/v/${id}?t=1`);
  // The poster goes when the frame is there.
  await isSeen(page, 'frame');
  return page.evaluate(() => window.seen.frame);
}

/** The first frame in a browser that has cached nothing of the page or the video. */
async function coldFrame(browser, id) {
  const context = await browser.createBrowserContext();
  const page = await openPage(context);
  const milliseconds = await firstFrame(page, id);
  await context.close();
  return milliseconds;
}

/** Scrolls through results. The longest task, the cards in the document at most, and the layout shift. */
async function scroll(page) {
  await page.goto(`${address}/?${new URLSearchParams({ q: text })}`);
  await isSeen(page, 'hit');
  await page.evaluate(() => { window.longTasks.length = 0; });
  const cards = await wheel(page);
  const seen = await page.evaluate(() => ({ longest: Math.max(0, ...window.longTasks), shift: window.shift }));
  return { ...seen, cards };
}

/** Turns the wheel 120 times. Returns the cards in the document at most. */
async function wheel(page) {
  let cards = 0;
  for (let step = 0; step < 120; step += 1) {
    await page.mouse.wheel({ deltaY: 600 });
    await new Promise((done) => setTimeout(done, 60));
    cards = Math.max(cards, await page.evaluate(() => document.querySelectorAll('.card').length));
  }
  return cards;
}

/**
 * The processor time of the task that takes most of it while results are scrolled, in milliseconds: what the page asks for
 * itself, whatever else wants the processor.
 */
async function scrollTraced(page) {
  await page.goto(`${address}/?${new URLSearchParams({ q: text })}`);
  await isSeen(page, 'hit');
  await page.tracing.start({ categories: ['toplevel'] });
  await wheel(page);
  const { traceEvents } = JSON.parse(new TextDecoder().decode(await page.tracing.stop()));
  const thread = ({ pid, tid }) => `${pid}:${tid}`;
  const main = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(thread));
  // The trace's own work is not the page's.
  const isPage = (event) => event.name === 'ThreadControllerImpl::RunTask' && main.has(thread(event)) && !/trac/i.test(event.args?.src_file ?? '');
  return Math.max(...traceEvents.filter(isPage).map(({ tdur }) => (tdur ?? 0) / 1000));
}

/** What `measure` finds in RUNS browsers that have seen nothing. */
async function inNewBrowsers(browser, measure) {
  const found = [];
  for (let run = 0; run < RUNS; run += 1) {
    const context = await browser.createBrowserContext();
    found.push(await measure(await openPage(context)));
    await context.close();
  }
  return found;
}

/** Scrolls RUNS times without and RUNS times with a trace, which takes time itself. Medians, and the worst of the rest. */
async function scrolls(browser) {
  const runs = await inNewBrowsers(browser, scroll);
  return {
    longest: median(runs.map(({ longest }) => longest)),
    worst: Math.max(...runs.map(({ longest }) => longest)),
    worked: median(await inNewBrowsers(browser, scrollTraced)),
    shift: Math.max(...runs.map(({ shift }) => shift)),
    cards: Math.max(...runs.map(({ cards }) => cards)),
  };
}

/** The heap after a collection, in MB, when `screens` screens were shown in one tab. */
async function heap(page, ids, counts) {
  const session = await page.createCDPSession();
  await page.goto(`${address}/`);
  await page.waitForSelector('.ask textarea');
  const paths = [`/?${new URLSearchParams({ q: text })}`, '/library', '/activity', ...ids.map((id) => `/v/${id}`)];
  const found = {};
  for (let screen = 1; screen <= Math.max(...counts); screen += 1) {
    await page.evaluate((path) => {
      const link = document.createElement('a');
      link.href = path;
      document.body.append(link);
      link.click();
      link.remove();
    }, paths[screen % paths.length]);
    await new Promise((done) => setTimeout(done, 60));
    if (counts.includes(screen)) {
      await session.send('HeapProfiler.collectGarbage');
      const { usedSize } = await session.send('Runtime.getHeapUsage');
      found[screen] = usedSize / 1e6;
    }
  }
  return found;
}

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--headless=new', '--disable-gpu', '--autoplay-policy=no-user-gesture-required',
    // A page of the browser's own, which it loads for the address bar of each new window while ours is measured.
    '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup',
  ],
});
try {
  const answer = await fetch(`${address}/v1/videos?limit=5`);
  const ids = (await answer.json()).items.map((video) => video.id);
  const page = await openPage(browser);
  const result = {
    first_card_ms: await medianOf(() => firstCard(page)),
    first_hit_ms: await medianOf(() => firstHit(page)),
    frame_warm_ms: await medianOf(() => firstFrame(page, ids[0])),
    frame_cold_ms: await medianOf(() => coldFrame(browser, ids[0])),
    scroll: await scrolls(browser),
    heap_mb: await heap(page, ids.slice(0, 3), [100, 1000]),
  };
  console.log(JSON.stringify(result));
} finally {
  await browser.close();
}
