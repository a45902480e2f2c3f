// Takes the pictures of README and docs/page.md from a running demo.
//
//   node pictures.mjs MODULES ADDRESS FOLDER

import { createRequire } from 'node:module';

const [modules, address, folder] = process.argv.slice(2);
const puppeteer = createRequire(`${modules}/`)('puppeteer-core');
/** Time for pictures to load and loops to start, ms. */
const REST = 2500;

const get = async (path) => (await fetch(`${address}${path}`)).json();

/** A reel of the demo's first broadcasts, so that its screen is not empty. */
async function makeReel(videos) {
  const ranges = videos.flatMap((video, place) => [4, 20, 41].map((start) => ({ video_id: video.id, start: start + place, end: start + place + 2.4 })));
  const answer = await fetch(`${address}/v1/reels`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'Best of the day', ranges }),
  });
  return answer.json();
}

/** Searches, so that there is something to count. */
async function searchOften() {
  const texts = ['a dive from the platform', 'a somersault in the tuck position', 'a handstand', 'a twist on the floor', 'a dive from the platform', 'a leap'];
  for (const text of [...texts, ...texts.slice(0, 3), texts[0]]) {
    await fetch(`${address}/v1/search`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query: { text } }) });
  }
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--headless=new', '--disable-gpu', '--autoplay-policy=no-user-gesture-required'] });
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  await page.evaluateOnNewDocument(() => localStorage.setItem('reprise_builtin_known', '1'));
  const take = async (name, path, prepare = async () => {}) => {
    await page.goto(`${address}${path}`, { waitUntil: 'networkidle2' });
    await prepare();
    await new Promise((done) => setTimeout(done, REST));
    await page.screenshot({ path: `${folder}/page-${name}.webp`, type: 'webp', quality: 86 });
  };
  const { items } = await get('/v1/videos?limit=1000');
  const broadcasts = items.filter((video) => video.duration > 60).slice(0, 3);
  const reel = await makeReel(broadcasts);
  // The demo's first example is a clip with a change.
  const [{ href }] = await get('/examples.json');
  await searchOften();
  await take('clip', href, async () => {
    const cards = await page.$$('.card');
    await cards[2]?.hover();
  });
  const [shot] = (await get(`/v1/videos/${broadcasts[0].id}/clips?limit=10`)).items.slice(2);
  const marks = new URLSearchParams({ in: shot.start, out: shot.end, clip: shot.video_id, start: shot.start, end: shot.end, mod: 'with one more twist' });
  await take('watch', `/v/${shot.video_id}?t=${shot.start + 1}&${marks}`);
  await take('reel', `/reels/${reel.id}`);
  await take('library', '/library');
  await take('insights', '/insights', () => page.waitForSelector('canvas.map', { timeout: 60_000 }));
  await take('models', '/models');
} finally {
  await browser.close();
}
