-- The same as migrations/sqlite/0035_logged_examples.sql.

-- The examples of a search by several: {"like": [example, ...], "unlike": [...]}, each with text, clip, video, start_ms, end_ms
-- and uploaded, as the columns of searches. Null for another query, and where the log keeps hashes only.
ALTER TABLE searches ADD COLUMN examples TEXT;

CREATE OR REPLACE VIEW v_searches AS
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
       s.total_ms / 1000 AS total_seconds,
       s.examples
FROM searches s LEFT JOIN videos q ON q.id = s.video AND q.deleted_at_ms IS NULL;
