-- The same as migrations/postgres/0014_searches.sql.

-- The query log: one row a search. text, clip, video, start_ms, end_ms: the query as it was sent; null where the log keeps only
-- query_hash, a keyed hash of it. filter: JSON. filtered: whether there was one. hits: number of entries on the pages so far;
-- exhausted: whether no more follow. Names no other row by a reference: the log outlives keys, videos and clips, and a restore
-- may leave out a damaged table.
CREATE TABLE searches (
    id         BLOB PRIMARY KEY,
    at_ms      INTEGER NOT NULL,
    key        BLOB,
    key_name   TEXT,
    kind       TEXT NOT NULL,
    space      TEXT NOT NULL,
    text       TEXT,
    query_hash TEXT NOT NULL,
    clip       BLOB,
    video      BLOB,
    start_ms   INTEGER,
    end_ms     INTEGER,
    uploaded   INTEGER NOT NULL CHECK (uploaded IN (0, 1)),
    filter     TEXT,
    filtered   INTEGER NOT NULL CHECK (filtered IN (0, 1)),
    hits       INTEGER NOT NULL,
    exhausted  INTEGER NOT NULL CHECK (exhausted IN (0, 1)),
    live       INTEGER NOT NULL,
    decode_ms  REAL NOT NULL,
    encode_ms  REAL NOT NULL,
    search_ms  REAL NOT NULL,
    catalog_ms REAL NOT NULL,
    total_ms   REAL NOT NULL
) STRICT;

CREATE INDEX searches_by_time ON searches (at_ms);
CREATE INDEX searches_by_key ON searches (key, id);

-- What a search showed. inside: shown within another hit of the list, folded or merged. Each source has its score, its rank
-- and z, all null where it did not find the hit; z is null where the search computed none.
CREATE TABLE search_hits (
    search           BLOB NOT NULL,
    rank             INTEGER NOT NULL,
    span             BLOB NOT NULL,
    video            BLOB NOT NULL,
    level            TEXT NOT NULL,
    start_ms         INTEGER NOT NULL,
    end_ms           INTEGER NOT NULL,
    inside           INTEGER NOT NULL CHECK (inside IN (0, 1)),
    score            REAL NOT NULL,
    visual_score     REAL,
    visual_rank      INTEGER,
    visual_z         REAL,
    spoken_score     REAL,
    spoken_rank      INTEGER,
    spoken_z         REAL,
    full_video_score REAL,
    full_video_rank  INTEGER,
    full_video_z     REAL,
    PRIMARY KEY (search, rank, span)
) STRICT, WITHOUT ROWID;

-- What callers did with hits: opened, relevant, not_relevant, exported.
CREATE TABLE search_feedback (
    search   BLOB NOT NULL,
    span     BLOB NOT NULL,
    verdict  TEXT NOT NULL,
    video    BLOB NOT NULL,
    rank     INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    key      BLOB,
    key_name TEXT,
    PRIMARY KEY (search, span, verdict)
) STRICT, WITHOUT ROWID;

-- Views for other programs (docs/sql.md): their names and columns are a contract. A later migration that makes one of the tables
-- above or below anew, or drops a column, must drop the views first and create them again.

CREATE VIEW v_videos AS
SELECT lower(substr(hex(v.id), 1, 8) || '-' || substr(hex(v.id), 9, 4) || '-' || substr(hex(v.id), 13, 4) || '-' || substr(hex(v.id), 17, 4) || '-' || substr(hex(v.id), 21)) AS id,
       v.title,
       v.file_name,
       v.state,
       v.bytes,
       v.duration_ms / 1000.0 AS duration_seconds,
       v.metadata AS metadata,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.recorded_at_ms / 1000.0, 'unixepoch') AS recorded_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.created_at_ms / 1000.0, 'unixepoch') AS created_at
FROM videos v
WHERE v.deleted_at_ms IS NULL;

CREATE VIEW v_clips AS
SELECT lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) AS id,
       lower(substr(hex(s.video), 1, 8) || '-' || substr(hex(s.video), 9, 4) || '-' || substr(hex(s.video), 13, 4) || '-' || substr(hex(s.video), 17, 4) || '-' || substr(hex(s.video), 21)) AS video_id,
       v.title AS video_title,
       s.level,
       s.given,
       s.start_ms / 1000.0 AS start_seconds,
       s.end_ms / 1000.0 AS end_seconds,
       s.metadata AS metadata
FROM spans s JOIN videos v ON v.id = s.video
WHERE v.deleted_at_ms IS NULL AND s.level IN ('clip', 'moment');

CREATE VIEW v_jobs AS
SELECT lower(substr(hex(j.id), 1, 8) || '-' || substr(hex(j.id), 9, 4) || '-' || substr(hex(j.id), 13, 4) || '-' || substr(hex(j.id), 17, 4) || '-' || substr(hex(j.id), 21)) AS id,
       j.kind,
       CASE WHEN j.video IS NOT NULL THEN lower(substr(hex(j.video), 1, 8) || '-' || substr(hex(j.video), 9, 4) || '-' || substr(hex(j.video), 13, 4) || '-' || substr(hex(j.video), 17, 4) || '-' || substr(hex(j.video), 21)) END AS video_id,
       j.state,
       j.attempts,
       j.reason,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at_ms / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.updated_at_ms / 1000.0, 'unixepoch') AS updated_at
FROM jobs j LEFT JOIN videos v ON v.id = j.video
WHERE j.video IS NULL OR v.deleted_at_ms IS NULL;

CREATE VIEW v_searches AS
SELECT lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) AS id,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.at_ms / 1000.0, 'unixepoch') AS at,
       s.kind,
       s.space,
       s.text,
       s.query_hash,
       CASE WHEN q.id IS NOT NULL AND s.clip IS NOT NULL THEN lower(substr(hex(s.clip), 1, 8) || '-' || substr(hex(s.clip), 9, 4) || '-' || substr(hex(s.clip), 13, 4) || '-' || substr(hex(s.clip), 17, 4) || '-' || substr(hex(s.clip), 21)) END AS query_clip_id,
       CASE WHEN q.id IS NOT NULL THEN lower(substr(hex(q.id), 1, 8) || '-' || substr(hex(q.id), 9, 4) || '-' || substr(hex(q.id), 13, 4) || '-' || substr(hex(q.id), 17, 4) || '-' || substr(hex(q.id), 21)) END AS query_video_id,
       CASE WHEN q.id IS NOT NULL OR s.uploaded THEN s.start_ms / 1000.0 END AS query_start_seconds,
       CASE WHEN q.id IS NOT NULL OR s.uploaded THEN s.end_ms / 1000.0 END AS query_end_seconds,
       s.uploaded,
       s.filter,
       s.filtered,
       CASE WHEN s.key IS NOT NULL THEN lower(substr(hex(s.key), 1, 8) || '-' || substr(hex(s.key), 9, 4) || '-' || substr(hex(s.key), 13, 4) || '-' || substr(hex(s.key), 17, 4) || '-' || substr(hex(s.key), 21)) END AS key_id,
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
SELECT lower(substr(hex(h.search), 1, 8) || '-' || substr(hex(h.search), 9, 4) || '-' || substr(hex(h.search), 13, 4) || '-' || substr(hex(h.search), 17, 4) || '-' || substr(hex(h.search), 21)) AS search_id,
       h.rank,
       h.inside,
       lower(substr(hex(h.span), 1, 8) || '-' || substr(hex(h.span), 9, 4) || '-' || substr(hex(h.span), 13, 4) || '-' || substr(hex(h.span), 17, 4) || '-' || substr(hex(h.span), 21)) AS clip_id,
       lower(substr(hex(h.video), 1, 8) || '-' || substr(hex(h.video), 9, 4) || '-' || substr(hex(h.video), 13, 4) || '-' || substr(hex(h.video), 17, 4) || '-' || substr(hex(h.video), 21)) AS video_id,
       v.title AS video_title,
       h.level,
       h.start_ms / 1000.0 AS start_seconds,
       h.end_ms / 1000.0 AS end_seconds,
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
SELECT lower(substr(hex(f.search), 1, 8) || '-' || substr(hex(f.search), 9, 4) || '-' || substr(hex(f.search), 13, 4) || '-' || substr(hex(f.search), 17, 4) || '-' || substr(hex(f.search), 21)) AS search_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', f.at_ms / 1000.0, 'unixepoch') AS at,
       f.verdict,
       lower(substr(hex(f.span), 1, 8) || '-' || substr(hex(f.span), 9, 4) || '-' || substr(hex(f.span), 13, 4) || '-' || substr(hex(f.span), 17, 4) || '-' || substr(hex(f.span), 21)) AS clip_id,
       lower(substr(hex(f.video), 1, 8) || '-' || substr(hex(f.video), 9, 4) || '-' || substr(hex(f.video), 13, 4) || '-' || substr(hex(f.video), 17, 4) || '-' || substr(hex(f.video), 21)) AS video_id,
       v.title AS video_title,
       f.rank,
       CASE WHEN f.key IS NOT NULL THEN lower(substr(hex(f.key), 1, 8) || '-' || substr(hex(f.key), 9, 4) || '-' || substr(hex(f.key), 13, 4) || '-' || substr(hex(f.key), 17, 4) || '-' || substr(hex(f.key), 21)) END AS key_id,
       f.key_name
FROM search_feedback f JOIN videos v ON v.id = f.video
WHERE v.deleted_at_ms IS NULL;

CREATE VIEW v_daily AS
SELECT d.day,
       sum(d.searches) AS searches,
       sum(d.without_results) AS without_results,
       avg(d.seconds) AS mean_seconds,
       max(d.seconds) AS slowest_seconds,
       sum(d.opened) AS opened,
       sum(d.relevant) AS relevant,
       sum(d.not_relevant) AS not_relevant,
       sum(d.exported) AS exported,
       sum(d.videos_added) AS videos_added,
       sum(d.jobs_failed) AS jobs_failed
FROM (
    SELECT strftime('%Y-%m-%d', s.at_ms / 1000.0, 'unixepoch') AS day, 1 AS searches, CASE WHEN s.hits = 0 THEN 1 ELSE 0 END AS without_results,
           s.total_ms / 1000 AS seconds, 0 AS opened, 0 AS relevant, 0 AS not_relevant, 0 AS exported, 0 AS videos_added,
           0 AS jobs_failed
    FROM searches s
    UNION ALL
    SELECT strftime('%Y-%m-%d', f.at_ms / 1000.0, 'unixepoch'), 0, 0, NULL, CASE WHEN f.verdict = 'opened' THEN 1 ELSE 0 END,
           CASE WHEN f.verdict = 'relevant' THEN 1 ELSE 0 END, CASE WHEN f.verdict = 'not_relevant' THEN 1 ELSE 0 END,
           CASE WHEN f.verdict = 'exported' THEN 1 ELSE 0 END, 0, 0
    FROM search_feedback f JOIN videos v ON v.id = f.video WHERE v.deleted_at_ms IS NULL
    UNION ALL
    SELECT strftime('%Y-%m-%d', v.created_at_ms / 1000.0, 'unixepoch'), 0, 0, NULL, 0, 0, 0, 0, 1, 0
    FROM videos v WHERE v.deleted_at_ms IS NULL
    UNION ALL
    SELECT strftime('%Y-%m-%d', j.updated_at_ms / 1000.0, 'unixepoch'), 0, 0, NULL, 0, 0, 0, 0, 0, 1
    FROM jobs j LEFT JOIN videos v ON v.id = j.video
    WHERE j.state = 'failed' AND (j.video IS NULL OR v.deleted_at_ms IS NULL)
) d
GROUP BY d.day;
