-- The same as migrations/sqlite/0005_jobs.sql.

-- Jobs of any kind, with or without a video.
--
-- params: what the kind needs to know, as JSON; an ingest that cuts a video anew has its segmentation there.
-- not_before_ms: a job that failed waits until then. attempts_most: starts before it is given up.
-- needs_ready: waits while its video is pending. deaths: starts in a row whose process died without new progress.
-- progressed: whether this start has stored work that the next one does not repeat.
ALTER TABLE jobs
    DROP CONSTRAINT jobs_kind_check,
    ALTER COLUMN video DROP NOT NULL,
    ADD COLUMN params TEXT,
    ADD COLUMN attempts_most BIGINT NOT NULL DEFAULT 5 CHECK (attempts_most > 0),
    ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN progressed BOOLEAN NOT NULL DEFAULT FALSE,
    ADD COLUMN needs_ready BOOLEAN NOT NULL DEFAULT FALSE,
    ADD COLUMN not_before_ms BIGINT;

UPDATE jobs SET params = '{"segmentation":' || segmentation || '}', needs_ready = (kind = 'fill');

ALTER TABLE jobs DROP COLUMN segmentation;
