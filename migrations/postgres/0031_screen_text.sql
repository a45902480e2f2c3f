-- The same as migrations/sqlite/0031_screen_text.sql.

-- Where a line stands on screen, as fractions of the picture: all four, or none for a line that stands nowhere.
ALTER TABLE cues ADD COLUMN box_left DOUBLE PRECISION;
ALTER TABLE cues ADD COLUMN box_top DOUBLE PRECISION;
ALTER TABLE cues ADD COLUMN box_width DOUBLE PRECISION;
ALTER TABLE cues ADD COLUMN box_height DOUBLE PRECISION;

-- What the text on screen found.
ALTER TABLE search_hits ADD COLUMN screen_score DOUBLE PRECISION;
ALTER TABLE search_hits ADD COLUMN screen_rank BIGINT;
ALTER TABLE search_hits ADD COLUMN screen_z DOUBLE PRECISION;

-- The view of 0014, with the source `screen`.
DROP VIEW v_hits;

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
       h.screen_score,
       h.screen_rank,
       h.screen_z,
       h.full_video_score,
       h.full_video_rank,
       h.full_video_z
FROM search_hits h JOIN videos v ON v.id = h.video
WHERE v.deleted_at_ms IS NULL;
