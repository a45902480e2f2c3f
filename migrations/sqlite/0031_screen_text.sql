-- The same as migrations/postgres/0031_screen_text.sql.

-- Where a line stands on screen, as fractions of the picture: all four, or none for a line that stands nowhere.
ALTER TABLE cues ADD COLUMN box_left REAL;
ALTER TABLE cues ADD COLUMN box_top REAL;
ALTER TABLE cues ADD COLUMN box_width REAL;
ALTER TABLE cues ADD COLUMN box_height REAL;

-- What the text on screen found.
ALTER TABLE search_hits ADD COLUMN screen_score REAL;
ALTER TABLE search_hits ADD COLUMN screen_rank INTEGER;
ALTER TABLE search_hits ADD COLUMN screen_z REAL;

-- The view of 0014, with the source `screen`.
DROP VIEW v_hits;

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
       h.screen_score,
       h.screen_rank,
       h.screen_z,
       h.full_video_score,
       h.full_video_rank,
       h.full_video_z
FROM search_hits h JOIN videos v ON v.id = h.video
WHERE v.deleted_at_ms IS NULL;
