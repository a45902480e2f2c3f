// The HTTP contract as functions: requests, problem+json errors, the API key, uploads with progress.
// Knows no DOM; asks for the key through the function given to `onKeyNeeded`.

const KEY = 'reprise_key';
let askForKey = async () => null;
let asking = null;

/** Says how to get an API key from the person: called at most once at a time, after a 401. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/** An answer that is no success, or none at all (status 0). */
export class ApiError extends Error {
  constructor(status, problem = {}) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.title = problem.title || '';
    /** @type {{pointer: string, detail: string}[]} */
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
    this.requestId = problem.request_id || null;
  }
}

function storedKey() {
  return sessionStorage.getItem(KEY);
}

/** Keeps the key for this tab. Media elements and event streams can't send headers, hence the cookie. */
function storeKey(key) {
  sessionStorage.setItem(KEY, key);
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  document.cookie = `${KEY}=${encodeURIComponent(key)}; SameSite=Strict; path=/${secure}`;
}

async function newKey() {
  asking ??= askForKey().finally(() => { asking = null; });
  const key = await asking;
  if (key) storeKey(key);
  return Boolean(key);
}

function headers(extra = {}) {
  const key = storedKey();
  return key ? { ...extra, Authorization: `Bearer ${key}` } : extra;
}

function unreachable() {
  return new ApiError(0, { title: 'No answer', detail: 'The server does not answer. Is it still running?' });
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  if (response.status === 429) {
    const wait = Number(response.headers.get('Retry-After'));
    problem.detail = `The server is busy${wait ? `: try again in ${wait} s` : ', try again in a moment'}.`;
  }
  return new ApiError(response.status, problem);
}

/**
 * One request; throws ApiError for anything but a success, and an AbortError when `signal` says so.
 * @returns the parsed JSON, or null where there is no body
 */
async function request(method, path, { json, form, signal, range } = {}) {
  const extra = json === undefined ? {} : { 'Content-Type': 'application/json' };
  if (range) extra.Range = range;
  const body = json === undefined ? form : JSON.stringify(json);
  let response;
  try {
    response = await fetch(path, { method, headers: headers(extra), body, signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw unreachable();
  }
  if (response.status === 401 && await newKey()) return request(method, path, { json, form, signal, range });
  if (!response.ok) throw await problemOf(response);
  const type = response.headers.get('Content-Type') || '';
  if (type.includes('json')) return response.json();
  await response.body?.cancel();
  return null;
}

function page(path, { limit, cursor, signal }) {
  const query = new URLSearchParams({ limit: String(limit) });
  if (cursor) query.set('cursor', cursor);
  return request('GET', `${path}?${query}`, { signal });
}

export const listVideos = (options) => page('/v1/videos', options);
export const getVideo = (id, signal) => request('GET', `/v1/videos/${id}`, { signal });
export const deleteVideo = (id) => request('DELETE', `/v1/videos/${id}`);
export const listClips = (id, options) => page(`/v1/videos/${id}/clips`, options);
export const getJob = (id) => request('GET', `/v1/jobs/${id}`);
export const listRunningJobs = async () => (await request('GET', '/v1/jobs?state=running&limit=100')).items;
export const cancelJob = (id) => request('POST', `/v1/jobs/${id}/cancel`);
export const retryJob = (id) => request('POST', `/v1/jobs/${id}/retry`);
/** The loaded models: {items, loading, unavailable}. */
export const listModels = () => request('GET', '/v1/spaces');
export const listSpaces = async () => (await listModels()).items;
/** Answers when the model is loaded: its space. */
export const addModel = (model) => request('POST', '/v1/spaces', { json: { model } });
export const activateSpace = (name, kinds) =>
  request('POST', `/v1/spaces/${encodeURIComponent(name)}/activate`, { json: { for: kinds } });
export const listExamples = () => request('GET', '/examples.json');
export const jobEventsUrl = (id) => `/v1/jobs/${id}/events`;
export const renditionUrl = (id) => `/v1/videos/${id}/media?rendition=web`;
export const previewUrl = (clipId) => `/v1/clips/${clipId}/preview`;

/** What is said in a video: {items: [{language, url, …}]}. */
export const listSubtitles = (id, signal) => request('GET', `/v1/videos/${id}/subtitles`, { signal });

/** Stores a file as what is said in a video in this language, in the place of what was there. */
export function putSubtitles(id, language, file) {
  // What browsers call these files differs; the server looks into them.
  const form = new Blob([file], { type: 'application/octet-stream' });
  return request('PUT', `/v1/videos/${id}/subtitles/${encodeURIComponent(language)}`, { form });
}

export const deleteSubtitles = (id, language) =>
  request('DELETE', `/v1/videos/${id}/subtitles/${encodeURIComponent(language)}`);

/** A query's score over a video: {step, scores: (number|null)[], …}. */
export const getTimeline = (id, query, signal) =>
  request('GET', `/v1/videos/${id}/timeline?${new URLSearchParams(query)}`, { signal });

/** Why a media URL does not play, if the server knows: resolves for a good URL, throws ApiError else. */
export const probeMedia = (url, signal) => request('GET', url, { range: 'bytes=0-0', signal });

/**
 * One page of a search.
 * @param {object} body as POST /v1/search
 * @param {File|null} file the query video of `{"query": {"upload": true}}`
 */
export function search(body, file, signal) {
  if (!file) return request('POST', '/v1/search', { json: body, signal });
  const form = new FormData();
  form.append('query', new Blob([JSON.stringify(body)], { type: 'application/json' }));
  form.append('file', file, file.name);
  return request('POST', '/v1/search', { form, signal });
}

/**
 * Uploads a video. fetch knows no upload progress, so this is XMLHttpRequest.
 * @param {(fraction: number) => void} onProgress
 * @returns {Promise<{video: object, job: object|null, duplicate: boolean}>}
 */
export async function uploadVideo(file, { onProgress, signal }) {
  const answer = await sendFile(file, { onProgress, signal });
  if (answer.status === 401 && await newKey()) return uploadVideo(file, { onProgress, signal });
  let body = {};
  try {
    body = JSON.parse(answer.text);
  } catch {
    // Not JSON: the status alone has to tell.
  }
  if (answer.status < 200 || answer.status > 299) throw new ApiError(answer.status, body);
  return body;
}

function sendFile(file, { onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const transfer = new XMLHttpRequest();
    transfer.open('POST', '/v1/videos');
    for (const [name, value] of Object.entries(headers())) transfer.setRequestHeader(name, value);
    transfer.upload.addEventListener('progress', (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    transfer.addEventListener('load', () => resolve({ status: transfer.status, text: transfer.responseText }));
    transfer.addEventListener('error', () => reject(unreachable()));
    transfer.addEventListener('abort', () => reject(new DOMException('cancelled', 'AbortError')));
    signal?.addEventListener('abort', () => transfer.abort(), { once: true });
    const form = new FormData();
    form.append('file', file, file.name);
    transfer.send(form);
  });
}
