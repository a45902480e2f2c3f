-- The same as migrations/postgres/0017_uploads.sql.

-- Files that were refused at the door: each has a failed job of the same id. They expire, and backups leave them out.
-- bytes: null if the file was cut off. added_by: the API key that sent it. repeat_key and request_hash: those of the
-- request's idempotency key.
CREATE TABLE refusals (
    id           BLOB PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    added_by     BLOB,
    file_name    TEXT NOT NULL,
    bytes        INTEGER,
    repeat_key   TEXT,
    request_hash TEXT
) STRICT;

CREATE INDEX refusals_by_key ON refusals (added_by, id);
CREATE INDEX refusals_by_repeat_key ON refusals (repeat_key) WHERE repeat_key IS NOT NULL;

-- Resumable uploads. added_by: the API key that makes it, which alone sees it. received: bytes that are durable in its file.
-- metadata: as the client sent it. repeat_key: the idempotency key of its creation. video: null until the whole file has
-- arrived and was added. Backups leave uploads out: they expire.
CREATE TABLE uploads (
    id            BLOB PRIMARY KEY,
    added_by      BLOB,
    length        INTEGER NOT NULL CHECK (length >= 0),
    received      INTEGER NOT NULL DEFAULT 0 CHECK (received BETWEEN 0 AND length),
    metadata      TEXT NOT NULL,
    repeat_key    TEXT,
    video         BLOB,
    job           BLOB,
    duplicate     INTEGER NOT NULL DEFAULT 0 CHECK (duplicate IN (0, 1)),
    expires_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX uploads_by_key ON uploads (added_by);
CREATE INDEX uploads_by_end ON uploads (expires_at_ms);
