-- The same as migrations/sqlite/0014_searches.sql.

-- The query log: one row a search. text, clip, video, start_ms, end_ms: the query as it was sent; null where the log keeps only
-- query_hash, a keyed hash of it. filter: JSON. filtered: whether there was one. hits: number of entries on the pages so far;
-- exhausted: whether no more follow. Names no other row by a reference: the log outlives keys, videos and clips, and a restore
-- may leave out a damaged table.
CREATE TABLE searches (
    id         UUID PRIMARY KEY,
    at_ms      BIGINT NOT NULL,
    key        UUID,
    key_name   TEXT,
    kind       TEXT NOT NULL,
    space      TEXT NOT NULL,
    text       TEXT,
    query_hash TEXT NOT NULL,
    clip       UUID,
    video      UUID,
    start_ms   BIGINT,
    end_ms     BIGINT,
    uploaded   BOOLEAN NOT NULL,
    filter     TEXT,
    filtered   BOOLEAN NOT NULL,
    hits       BIGINT NOT NULL,
    exhausted  BOOLEAN NOT NULL,
    live       BIGINT NOT NULL,
    decode_ms  DOUBLE PRECISION NOT NULL,
    encode_ms  DOUBLE PRECISION NOT NULL,
    search_ms  DOUBLE PRECISION NOT NULL,
    catalog_ms DOUBLE PRECISION NOT NULL,
    total_ms   DOUBLE PRECISION NOT NULL
);

CREATE INDEX searches_by_time ON searches (at_ms);
CREATE INDEX searches_by_key ON searches (key, id);

-- What a search showed. inside: shown within another hit of the list, folded or merged. Each source has its score, its rank
-- and z, all null where it did not find the hit; z is null where the search computed none.
CREATE TABLE search_hits (
    search           UUID NOT NULL,
    rank             BIGINT NOT NULL,
    span             UUID NOT NULL,
    video            UUID NOT NULL,
    level            TEXT NOT NULL,
    start_ms         BIGINT NOT NULL,
    end_ms           BIGINT NOT NULL,
    inside           BOOLEAN NOT NULL,
    score            DOUBLE PRECISION NOT NULL,
    visual_score     DOUBLE PRECISION,
    visual_rank      BIGINT,
    visual_z         DOUBLE PRECISION,
    spoken_score     DOUBLE PRECISION,
    spoken_rank      BIGINT,
    spoken_z         DOUBLE PRECISION,
    full_video_score DOUBLE PRECISION,
    full_video_rank  BIGINT,
    full_video_z     DOUBLE PRECISION,
    PRIMARY KEY (search, rank, span)
);

-- What callers did with hits: opened, relevant, not_relevant, exported.
CREATE TABLE search_feedback (
    search   UUID NOT NULL,
    span     UUID NOT NULL,
    verdict  TEXT NOT NULL,
    video    UUID NOT NULL,
    rank     BIGINT NOT NULL,
    at_ms    BIGINT NOT NULL,
    key      UUID,
    key_name TEXT,
    PRIMARY KEY (search, span, verdict)
);

-- Views for other programs (docs/sql.md): their names and columns are a contract. A later migration that makes one of the tables
-- above or below anew, or drops a column, must drop the views first and create them again.

CREATE VIEW v_videos AS
SELECT v.id AS id,
       v.title,
       v.file_name,
       v.state,
       v.bytes,
       CAST(v.duration_ms AS double precision) / 1000 AS duration_seconds,
       CAST(v.metadata AS json) AS metadata,
       to_timestamp(v.recorded_at_ms / 1000.0) AS recorded_at,
       to_timestamp(v.created_at_ms / 1000.0) AS created_at
FROM videos v
WHERE v.deleted_at_ms IS NULL;

CREATE VIEW v_clips AS
SELECT s.id AS id,
       s.video AS video_id,
       v.title AS video_title,
       s.level,
       s.given,
       CAST(s.start_ms AS double precision) / 1000 AS start_seconds,
       CAST(s.end_ms AS double precision) / 1000 AS end_seconds,
       CAST(s.metadata AS json) AS metadata
FROM spans s JOIN videos v ON v.id = s.video
WHERE v.deleted_at_ms IS NULL AND s.level IN ('clip', 'moment');

CREATE VIEW v_jobs AS
SELECT j.id AS id,
       j.kind,
       j.video AS video_id,
       j.state,
       j.attempts,
       j.reason,
       to_timestamp(j.created_at_ms / 1000.0) AS created_at,
       to_timestamp(j.updated_at_ms / 1000.0) AS updated_at
FROM jobs j LEFT JOIN videos v ON v.id = j.video
WHERE j.video IS NULL OR v.deleted_at_ms IS NULL;

CREATE VIEW v_searches AS
SELECT s.id AS id,
       to_timestamp(s.at_ms / 1000.0) AS at,
       s.kind,
       s.space,
       s.text,
       s.query_hash,
       CASE WHEN q.id IS NOT NULL THEN s.clip END AS query_clip_id,
       q.id AS query_video_id,
       CASE WHEN q.id IS NOT NULL OR s.uploaded THEN CAST(s.start_ms AS double precision) / 1000 END AS query_start_seconds,
       CASE WHEN q.id IS NOT NULL OR s.uploaded THEN CAST(s.end_ms AS double precision) / 1000 END AS query_end_seconds,
       s.uploaded,
       s.filter,
       s.filtered,
       s.key AS key_id,
       s.key_name,
       s.hits,
       s.exhausted,
       s.live,
       s.decode_ms / 1000 AS decode_seconds,
       s.encode_ms / 1000 AS encode_seconds,
       s.search_ms / 1000 AS search_seconds,
       s.catalog_ms / 1000 AS catalog_seconds,
       s.total_ms / 1000 AS total_seconds
FROM searches s LEFT JOIN videos q ON q.id = s.video AND q.deleted_at_ms IS NULL;

CREATE VIEW v_hits AS
SELECT h.search AS search_id,
       h.rank,
       h.inside,
       h.span AS clip_id,
       h.video AS video_id,
       v.title AS video_title,
       h.level,
       CAST(h.start_ms AS double precision) / 1000 AS start_seconds,
       CAST(h.end_ms AS double precision) / 1000 AS end_seconds,
       h.score,
       h.visual_score,
       h.visual_rank,
       h.visual_z,
       h.spoken_score,
       h.spoken_rank,
       h.spoken_z,
       h.full_video_score,
       h.full_video_rank,
       h.full_video_z
FROM search_hits h JOIN videos v ON v.id = h.video
WHERE v.deleted_at_ms IS NULL;

CREATE VIEW v_feedback AS
SELECT f.search AS search_id,
       to_timestamp(f.at_ms / 1000.0) AS at,
       f.verdict,
       f.span AS clip_id,
       f.video AS video_id,
       v.title AS video_title,
       f.rank,
       f.key AS key_id,
       f.key_name
FROM search_feedback f JOIN videos v ON v.id = f.video
WHERE v.deleted_at_ms IS NULL;

CREATE VIEW v_daily AS
SELECT d.day,
       CAST(sum(d.searches) AS bigint) AS searches,
       CAST(sum(d.without_results) AS bigint) AS without_results,
       avg(d.seconds) AS mean_seconds,
       max(d.seconds) AS slowest_seconds,
       CAST(sum(d.opened) AS bigint) AS opened,
       CAST(sum(d.relevant) AS bigint) AS relevant,
       CAST(sum(d.not_relevant) AS bigint) AS not_relevant,
       CAST(sum(d.exported) AS bigint) AS exported,
       CAST(sum(d.videos_added) AS bigint) AS videos_added,
       CAST(sum(d.jobs_failed) AS bigint) AS jobs_failed
FROM (
    SELECT CAST(to_timestamp(s.at_ms / 1000.0) AT TIME ZONE 'UTC' AS date) AS day, 1 AS searches, CASE WHEN s.hits = 0 THEN 1 ELSE 0 END AS without_results,
           s.total_ms / 1000 AS seconds, 0 AS opened, 0 AS relevant, 0 AS not_relevant, 0 AS exported, 0 AS videos_added,
           0 AS jobs_failed
    FROM searches s
    UNION ALL
    SELECT CAST(to_timestamp(f.at_ms / 1000.0) AT TIME ZONE 'UTC' AS date), 0, 0, NULL, CASE WHEN f.verdict = 'opened' THEN 1 ELSE 0 END,
           CASE WHEN f.verdict = 'relevant' THEN 1 ELSE 0 END, CASE WHEN f.verdict = 'not_relevant' THEN 1 ELSE 0 END,
           CASE WHEN f.verdict = 'exported' THEN 1 ELSE 0 END, 0, 0
    FROM search_feedback f JOIN videos v ON v.id = f.video WHERE v.deleted_at_ms IS NULL
    UNION ALL
    SELECT CAST(to_timestamp(v.created_at_ms / 1000.0) AT TIME ZONE 'UTC' AS date), 0, 0, NULL, 0, 0, 0, 0, 1, 0
    FROM videos v WHERE v.deleted_at_ms IS NULL
    UNION ALL
    SELECT CAST(to_timestamp(j.updated_at_ms / 1000.0) AT TIME ZONE 'UTC' AS date), 0, 0, NULL, 0, 0, 0, 0, 0, 1
    FROM jobs j LEFT JOIN videos v ON v.id = j.video
    WHERE j.state = 'failed' AND (j.video IS NULL OR v.deleted_at_ms IS NULL)
) d
GROUP BY d.day;
