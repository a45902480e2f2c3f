-- The same as migrations/postgres/0018_uploads.sql.

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
