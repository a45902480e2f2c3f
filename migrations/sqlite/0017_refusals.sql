-- The same as migrations/postgres/0017_refusals.sql.

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
