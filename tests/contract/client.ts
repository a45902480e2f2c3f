// Uses a server through openapi-fetch, with the types that openapi-typescript generates.
//
//     client.js BASE KEY VIDEO_FILE

import { strict as assert } from 'node:assert';
import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';

import createClient from 'openapi-fetch';

import type { components, paths } from './schema.js';

type Schemas = components['schemas'];

const [base = '', key = '', file = ''] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${key}` } });

/** A multipart body: each part that is no file is text or JSON. */
function form(parts: object): FormData {
  const body = new FormData();
  for (const [name, value] of Object.entries(parts)) {
    if (value instanceof Blob) body.set(name, value, basename(file));
    else body.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return body;
}

/** The types describe the bytes of a part as a string. */
async function bytes(): Promise<string> {
  return await openAsBlob(file) as unknown as string;
}

async function uploaded(): Promise<Schemas['AddedVideo']> {
  const body = { file: await bytes(), title: 'From TypeScript' };
  const { data, error } = await client.POST('/v1/videos', { body, bodySerializer: form });
  assert(data, JSON.stringify(error));
  return data;
}

async function wait(id: string): Promise<void> {
  for (;;) {
    const { data, error } = await client.GET('/v1/jobs/{id}', { params: { path: { id } } });
    assert(data, JSON.stringify(error));
    if (data.state !== 'queued' && data.state !== 'running') {
      assert.equal(data.state, 'succeeded', JSON.stringify(data));
      return;
    }
    await new Promise((done) => setTimeout(done, 100));
  }
}

async function search(body: Schemas['SearchRequest']): Promise<Schemas['SearchAnswer']> {
  const { data, error } = await client.POST('/v1/search', { body });
  assert(data, JSON.stringify(error));
  return data;
}

const added = await uploaded();
assert(added.job);
await wait(added.job.id);
const id = added.video.id;

const first = await search({ query: { text: 'a red floor' }, limit: 1 });
assert.equal(first.results.length, 1);
assert(first.next_cursor);
const second = await search({ cursor: first.next_cursor });
assert.notEqual(second.results[0]?.clip_id, first.results[0]?.clip_id);

const changed = await search({ query: { clip: { video_id: id, start: 0, end: 1 }, modification: 'in blue' } });
assert.equal(changed.query_info.kind, 'composed');
const upload: Schemas['SearchUpload'] = { query: { query: { upload: true }, exclude: { self: false } }, file: await bytes() };
const same = await client.POST('/v1/search', { body: upload, bodySerializer: form });
assert(same.data?.results.length, JSON.stringify(same.error));

const page = await client.GET('/v1/videos', { params: { query: { limit: 1 } } });
assert.equal(page.data?.items.length, 1);
const deleted = await client.DELETE('/v1/videos/{id}', { params: { path: { id } } });
assert.equal(deleted.response.status, 204);
const gone = await client.GET('/v1/videos/{id}', { params: { path: { id } } });
assert.equal(gone.error?.status, 404);
console.log('done');
