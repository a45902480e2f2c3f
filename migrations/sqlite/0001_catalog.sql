-- The same tables as migrations/postgres/0001_catalog.sql. Times are Unix or media milliseconds;
-- ids are uuids as 16 bytes; JSON is text, kept as it was written.

CREATE TABLE videos (
    id              BLOB PRIMARY KEY,
    content_hash    TEXT NOT NULL UNIQUE,
    file            TEXT NOT NULL,
    file_name       TEXT NOT NULL,
    bytes           INTEGER NOT NULL,
    title           TEXT NOT NULL,
    metadata        TEXT NOT NULL,
    recorded_at     TEXT,
    recorded_at_ms  INTEGER,
    created_at_ms   INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'ready', 'failed')),
    segmentation    TEXT NOT NULL,
    facts           TEXT,
    duration_ms     INTEGER,
    media_offset_ms INTEGER,
    warnings        TEXT NOT NULL
) STRICT;

-- AUTOINCREMENT: a key is never used again, so an index that is behind can't mistake one span for another.
CREATE TABLE spans (
    key      INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key BETWEEN 0 AND 4294967295),
    id       BLOB NOT NULL UNIQUE,
    video    BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    level    TEXT NOT NULL CHECK (level IN ('video', 'clip', 'moment')),
    given    INTEGER NOT NULL CHECK (given IN (0, 1)),
    start_ms INTEGER NOT NULL CHECK (start_ms >= 0),
    end_ms   INTEGER NOT NULL CHECK (end_ms > start_ms),
    metadata TEXT NOT NULL
) STRICT;

CREATE INDEX spans_by_video ON spans (video, level, start_ms, id);

-- What the metadata filter looks at: one row for each value inside a metadata object, at its path.
CREATE TABLE video_attributes (
    video  BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    path   BLOB NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('null', 'boolean', 'number', 'string', 'container')),
    number REAL,
    text   BLOB
) STRICT;

CREATE INDEX video_attributes_by_video ON video_attributes (video);
CREATE INDEX video_attributes_by_path ON video_attributes (path, kind, number);

CREATE TABLE span_attributes (
    span   INTEGER NOT NULL REFERENCES spans (key) ON DELETE CASCADE,
    path   BLOB NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('null', 'boolean', 'number', 'string', 'container')),
    number REAL,
    text   BLOB
) STRICT;

CREATE INDEX span_attributes_by_span ON span_attributes (span);
CREATE INDEX span_attributes_by_path ON span_attributes (path, kind, number);

CREATE TABLE spaces (
    key           INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key BETWEEN 0 AND 4294967295),
    id            TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    model         TEXT NOT NULL,
    dim           INTEGER NOT NULL CHECK (dim > 0),
    created_at_ms INTEGER NOT NULL
) STRICT;

-- unit: little-endian f32. Rows are inserted and deleted, never updated.
CREATE TABLE embeddings (
    space INTEGER NOT NULL REFERENCES spaces (key),
    span  INTEGER NOT NULL REFERENCES spans (key) ON DELETE CASCADE,
    unit  BLOB NOT NULL,
    norm  REAL NOT NULL,
    PRIMARY KEY (space, span)
) STRICT;

CREATE INDEX embeddings_by_span ON embeddings (span);

-- No reference to spans: a delete outlives its span.
CREATE TABLE changes (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    op    TEXT NOT NULL CHECK (op IN ('insert', 'delete')),
    span  INTEGER NOT NULL,
    space INTEGER NOT NULL,
    level TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
    id             BLOB PRIMARY KEY,
    kind           TEXT NOT NULL CHECK (kind IN ('ingest', 'fill')),
    video          BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    stage          TEXT NOT NULL DEFAULT '',
    fraction       REAL NOT NULL DEFAULT 0,
    frames_done    INTEGER NOT NULL DEFAULT 0,
    frames_total   INTEGER,
    eta_s          REAL,
    attempts       INTEGER NOT NULL DEFAULT 0,
    reason         TEXT,
    worker         BLOB,
    lease_token    BLOB,
    lease_until_ms INTEGER,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX jobs_unfinished ON jobs (id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_video ON jobs (video, id);

CREATE TABLE cues (
    id         BLOB PRIMARY KEY,
    video      BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL CHECK (kind IN ('speech', 'caption', 'ocr')),
    language   TEXT NOT NULL,
    provenance TEXT NOT NULL,
    start_ms   INTEGER NOT NULL,
    end_ms     INTEGER NOT NULL CHECK (end_ms > start_ms),
    text       TEXT NOT NULL
) STRICT;

CREATE INDEX cues_by_video ON cues (video, kind, language, start_ms, id);

CREATE TABLE idempotency_keys (
    key           TEXT PRIMARY KEY,
    request_hash  TEXT NOT NULL,
    video         BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    job           BLOB,
    duplicate     INTEGER NOT NULL CHECK (duplicate IN (0, 1)),
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX idempotency_keys_by_video ON idempotency_keys (video);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);
