-- The same as migrations/postgres/0005_jobs.sql.

-- Jobs of any kind, with or without a video. SQLite changes a check only by making the table anew.
--
-- params: what the kind needs to know, as JSON; an ingest that cuts a video anew has its segmentation there.
-- not_before_ms: a job that failed waits until then. attempts_most: starts before it is given up.
-- needs_ready: waits while its video is pending. deaths: starts in a row whose process died without new progress.
-- progressed: whether this start has stored work that the next one does not repeat.
CREATE TABLE jobs_new (
    id             BLOB PRIMARY KEY,
    kind           TEXT NOT NULL,
    video          BLOB REFERENCES videos (id) ON DELETE CASCADE,
    params         TEXT,
    state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    stage          TEXT NOT NULL DEFAULT '',
    fraction       REAL NOT NULL DEFAULT 0,
    frames_done    INTEGER NOT NULL DEFAULT 0,
    frames_total   INTEGER,
    eta_s          REAL,
    attempts       INTEGER NOT NULL DEFAULT 0,
    attempts_most  INTEGER NOT NULL DEFAULT 5 CHECK (attempts_most > 0),
    deaths         INTEGER NOT NULL DEFAULT 0,
    progressed     INTEGER NOT NULL DEFAULT 0 CHECK (progressed IN (0, 1)),
    needs_ready    INTEGER NOT NULL DEFAULT 0 CHECK (needs_ready IN (0, 1)),
    not_before_ms  INTEGER,
    reason         TEXT,
    worker         BLOB,
    lease_token    BLOB,
    lease_until_ms INTEGER,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;

INSERT INTO jobs_new (id, kind, video, params, state, stage, fraction, frames_done, frames_total, eta_s, attempts,
                      needs_ready, reason, worker, lease_token, lease_until_ms, created_at_ms, updated_at_ms)
SELECT id, kind, video, '{"segmentation":' || segmentation || '}', state, stage, fraction, frames_done, frames_total,
       eta_s, attempts, kind = 'fill', reason, worker, lease_token, lease_until_ms, created_at_ms, updated_at_ms
FROM jobs;

DROP TABLE jobs;
ALTER TABLE jobs_new RENAME TO jobs;
CREATE INDEX jobs_unfinished ON jobs (id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_video ON jobs (video, id);
