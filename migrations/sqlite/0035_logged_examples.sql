-- The same as migrations/postgres/0035_logged_examples.sql.

-- The examples of a search by several: {"like": [example, ...], "unlike": [...]}, each with text, clip, video, start_ms, end_ms
-- and uploaded, as the columns of searches. Null for another query, and where the log keeps hashes only.
ALTER TABLE searches ADD COLUMN examples TEXT;

DROP VIEW v_searches;
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
       s.total_ms / 1000 AS total_seconds,
       s.examples
FROM searches s LEFT JOIN videos q ON q.id = s.video AND q.deleted_at_ms IS NULL;
