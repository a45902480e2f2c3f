// The HTTP contract as functions: requests, problem+json errors, the API key. Knows no DOM; asks for the key through
// the function given to `onKeyNeeded`, and reports a server that is away to `onReach`.

const KEY = 'reprise_key';
/** Changes when a tab is left, so that the others hear of it. */
const LEFT = 'reprise_left';
/** How long the cookie outlives a tab that ends without a word, seconds. Timers of hidden tabs run once a minute. */
const COOKIE_S = 150;
const RENEW_MS = 30_000;

/** @type {(wrong: boolean) => Promise<string|null>} */
let askForKey = async () => null;
/** @type {(reached: boolean) => void} */
let reach = () => {};
/** @type {Promise<string|null>|null} */
let asking = null;

/**
 * Says how to get an API key from the person: called at most once at a time, after a 401.
 * @param {(wrong: boolean) => Promise<string|null>} ask `wrong`: whether a key was sent and refused
 */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/**
 * Says whom to report to whether the server answered.
 * @param {(reached: boolean) => void} report
 */
export function onReach(report) {
  reach = report;
}

/** An answer that is no success, or none at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {Partial<Api<'Problem'>>} [problem]
   * @param {number|null} [retryAfter] seconds
   */
  constructor(status, problem = {}, retryAfter = null) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.status = status;
    this.title = problem.title || '';
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
    this.requestId = problem.request_id || null;
    this.jobId = problem.job_id || null;
    this.retryAfter = retryAfter;
  }
}

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof Error && error.name === 'AbortError';
}

/** The key of this tab, for requests that are not made here. */
export function storedKey() {
  return sessionStorage.getItem(KEY);
}

/** Writes the tab's key as a cookie: media elements and event streams can't send headers. It ends unless a tab renews it. */
function writeCookie(seconds = COOKIE_S) {
  const key = storedKey();
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser
  if (key) document.cookie = `${KEY}=${encodeURIComponent(key)}; Max-Age=${seconds}; SameSite=Strict; path=/${secure}`;
}

/** Keeps the key for this tab alone. @param {string} key */
function storeKey(key) {
  sessionStorage.setItem(KEY, key);
  writeCookie();
}

/** The key that another tab has. */
function keyOfOthers() {
  try {
    return decodeURIComponent(/(?:^|; )reprise_key=([^;]*)/.exec(document.cookie)?.[1] ?? '');
  } catch {
    return '';
  }
}

/** Keeps the cookie while a tab lives. A tab that was opened from another one takes its key over. */
function keepCookie() {
  const taken = keyOfOthers();
  if (taken && !storedKey()) storeKey(taken);
  const renew = () => writeCookie();
  renew();
  setInterval(renew, RENEW_MS);
  for (const name of ['pageshow', 'focus']) addEventListener(name, renew);
  addEventListener('storage', ({ key }) => { if (key === LEFT) renew(); });
  addEventListener('pagehide', () => {
    writeCookie(0);
    if (storedKey()) localStorage.setItem(LEFT, String(Date.now()));
  });
}

keepCookie();

/**
 * Gets another key than the one that was refused: one that this tab was given meanwhile, or one from the person.
 * @param {string|null} refused null: none was sent
 * @returns {Promise<boolean>} whether there is one
 */
async function newKey(refused) {
  if (storedKey() !== refused) return true;
  asking ??= askForKey(refused !== null)
    .then((key) => { if (key) storeKey(key); return key; })
    .finally(() => { asking = null; });
  return Boolean(await asking);
}

/** @param {Record<string, string>} [extra] */
export function headers(extra = {}) {
  const key = storedKey();
  return key ? { ...extra, Authorization: `Bearer ${key}` } : extra;
}

/** @param {Response} response */
async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get('Retry-After')) || null;
  if (response.status === 429) {
    problem.detail = `The server is busy: try again ${wait ? `in ${wait} s` : 'in a moment'}.`;
  }
  return new ApiError(response.status, problem, wait);
}

/**
 * @typedef {object} Options
 * @property {any} [json] body
 * @property {BodyInit} [body] body that is not JSON
 * @property {Record<string, any>} [query] parameters of the address; null, undefined and '' are left out, an array repeats
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * One request; throws ApiError for anything but a success, and an AbortError when `signal` says so.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
export async function send(method, path, options = {}) {
  const { json, query, signal } = options;
  const key = storedKey();
  const sent = headers({ ...(json === undefined ? {} : { 'Content-Type': 'application/json' }), ...options.headers });
  const body = json === undefined ? options.body : JSON.stringify(json);
  let response;
  try {
    response = await fetch(addressOf(path, query), { method, headers: sent, body, signal });
  } catch (error) {
    if (isAbort(error)) throw error;
    reach(false);
    throw new ApiError(0, { title: 'No answer', detail: 'The server does not answer. Is it still running?' });
  }
  reach(true);
  if (response.status === 401 && await newKey(key)) return send(method, path, options);
  if (!response.ok) throw await problemOf(response);
  return response;
}

/**
 * @param {string} path
 * @param {Record<string, any>} [query]
 */
export function addressOf(path, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') parameters.append(name, String(one));
    }
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * The body of an answer as JSON, or null where it has none.
 * @param {Response} response
 */
async function bodyOf(response) {
  const type = response.headers.get('Content-Type') || '';
  if (type.includes('json')) return response.json();
  await response.body?.cancel();
  return null;
}

/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const get = async (path, options) => bodyOf(await send('GET', path, options));
/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const post = async (path, options) => bodyOf(await send('POST', path, options));
/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const put = async (path, options) => bodyOf(await send('PUT', path, options));
/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const patch = async (path, options) => bodyOf(await send('PATCH', path, options));
/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const remove = async (path, options) => bodyOf(await send('DELETE', path, options));

/**
 * An answer with the ETag that a later change names as its If-Match.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<{value: any, tag: string|null}>}
 */
export async function tagged(method, path, options) {
  const response = await send(method, path, options);
  const tag = response.headers.get('ETag');
  return { value: await bodyOf(response), tag };
}

/**
 * All items of a list, page by page.
 * @param {string} path
 * @param {Options & {most?: number}} [options] `most`: the number of items after which it stops
 * @returns {Promise<any[]>}
 */
export async function all(path, { most = 10_000, query = {}, ...options } = {}) {
  const items = [];
  let cursor;
  do {
    const page = await get(path, { ...options, query: { limit: Math.min(1000, most), ...query, cursor } });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && items.length < most);
  return items;
}

/**
 * One page of a search.
 * @param {any} body as POST /v1/search
 * @param {File|null} file the uploaded file that the query names
 * @param {AbortSignal} [signal]
 * @returns {Promise<Api<'SearchAnswer'>>}
 */
export function search(body, file, signal) {
  if (!file) return post('/v1/search', { json: body, signal });
  const form = new FormData();
  form.append('query', new Blob([JSON.stringify(body)], { type: 'application/json' }));
  form.append('file', file, file.name);
  return post('/v1/search', { body: form, signal });
}
