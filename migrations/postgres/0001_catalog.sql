-- The same tables as migrations/sqlite/0001_catalog.sql. Times are Unix or media milliseconds;
-- JSON is text, kept as it was written (jsonb would rewrite numbers and refuse some strings).

CREATE TABLE videos (
    id              UUID PRIMARY KEY,
    content_hash    TEXT NOT NULL UNIQUE,
    file            TEXT NOT NULL,
    file_name       TEXT NOT NULL,
    bytes           BIGINT NOT NULL,
    title           TEXT COLLATE "C" NOT NULL,
    metadata        TEXT NOT NULL,
    recorded_at     TEXT,
    recorded_at_ms  BIGINT,
    created_at_ms   BIGINT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'ready', 'failed')),
    segmentation    TEXT NOT NULL,
    facts           TEXT,
    duration_ms     BIGINT,
    media_offset_ms BIGINT,
    warnings        TEXT NOT NULL
);

-- A sequence: a key is never used again, so an index that is behind can't mistake one span for another.
CREATE TABLE spans (
    key      BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 4294967295) PRIMARY KEY,
    id       UUID NOT NULL UNIQUE,
    video    UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    level    TEXT NOT NULL CHECK (level IN ('video', 'clip', 'moment')),
    given    BOOLEAN NOT NULL,
    start_ms BIGINT NOT NULL CHECK (start_ms >= 0),
    end_ms   BIGINT NOT NULL CHECK (end_ms > start_ms),
    metadata TEXT NOT NULL
);

CREATE INDEX spans_by_video ON spans (video, level, start_ms, id);

-- What the metadata filter looks at: one row for each value inside a metadata object, at its path.
CREATE TABLE video_attributes (
    video  UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    path   BYTEA NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('null', 'boolean', 'number', 'string', 'container')),
    number DOUBLE PRECISION,
    text   BYTEA
);

CREATE INDEX video_attributes_by_video ON video_attributes (video);
CREATE INDEX video_attributes_by_path ON video_attributes (path, kind, number);

CREATE TABLE span_attributes (
    span   BIGINT NOT NULL REFERENCES spans (key) ON DELETE CASCADE,
    path   BYTEA NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('null', 'boolean', 'number', 'string', 'container')),
    number DOUBLE PRECISION,
    text   BYTEA
);

CREATE INDEX span_attributes_by_span ON span_attributes (span);
CREATE INDEX span_attributes_by_path ON span_attributes (path, kind, number);

CREATE TABLE spaces (
    key           BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 4294967295) PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    model         TEXT NOT NULL,
    dim           BIGINT NOT NULL CHECK (dim > 0),
    created_at_ms BIGINT NOT NULL
);

-- unit: little-endian f32. Rows are inserted and deleted, never updated.
CREATE TABLE embeddings (
    space BIGINT NOT NULL REFERENCES spaces (key),
    span  BIGINT NOT NULL REFERENCES spans (key) ON DELETE CASCADE,
    unit  BYTEA NOT NULL,
    norm  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (space, span)
);

CREATE INDEX embeddings_by_span ON embeddings (span);

-- No reference to spans: a delete outlives its span.
CREATE TABLE changes (
    seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    op    TEXT NOT NULL CHECK (op IN ('insert', 'delete')),
    span  BIGINT NOT NULL,
    space BIGINT NOT NULL,
    level TEXT NOT NULL
);

CREATE TABLE jobs (
    id             UUID PRIMARY KEY,
    kind           TEXT NOT NULL CHECK (kind IN ('ingest', 'fill')),
    video          UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    stage          TEXT NOT NULL DEFAULT '',
    fraction       DOUBLE PRECISION NOT NULL DEFAULT 0,
    frames_done    BIGINT NOT NULL DEFAULT 0,
    frames_total   BIGINT,
    eta_s          DOUBLE PRECISION,
    attempts       BIGINT NOT NULL DEFAULT 0,
    reason         TEXT,
    worker         UUID,
    lease_token    UUID,
    lease_until_ms BIGINT,
    created_at_ms  BIGINT NOT NULL,
    updated_at_ms  BIGINT NOT NULL
);

CREATE INDEX jobs_unfinished ON jobs (id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_video ON jobs (video, id);

CREATE TABLE cues (
    id         UUID PRIMARY KEY,
    video      UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL CHECK (kind IN ('speech', 'caption', 'ocr')),
    language   TEXT NOT NULL,
    provenance TEXT NOT NULL,
    start_ms   BIGINT NOT NULL,
    end_ms     BIGINT NOT NULL CHECK (end_ms > start_ms),
    text       TEXT NOT NULL
);

CREATE INDEX cues_by_video ON cues (video, kind, language, start_ms, id);

CREATE TABLE idempotency_keys (
    key           TEXT PRIMARY KEY,
    request_hash  TEXT NOT NULL,
    video         UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    job           UUID,
    duplicate     BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL
);

CREATE INDEX idempotency_keys_by_video ON idempotency_keys (video);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);
