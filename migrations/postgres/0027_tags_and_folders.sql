-- The same as migrations/sqlite/0027_tags_and_folders.sql.

-- folder: a path as it was given; empty: none. folder_key: the names of the path without case, with the byte 1 between them.
ALTER TABLE videos ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE videos ADD COLUMN folder_key BYTEA NOT NULL DEFAULT '';
CREATE INDEX videos_by_folder ON videos (folder_key) WHERE deleted_at_ms IS NULL;

-- tag: as it was given. key: without case.
CREATE TABLE video_tags (
    video UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    key   BYTEA NOT NULL,
    tag   TEXT NOT NULL,
    PRIMARY KEY (video, key)
);

CREATE INDEX video_tags_by_key ON video_tags (key, video);

CREATE OR REPLACE VIEW v_videos AS
SELECT v.id AS id,
       v.title,
       v.file_name,
       v.state,
       v.bytes,
       CAST(v.duration_ms AS double precision) / 1000 AS duration_seconds,
       CAST(v.metadata AS json) AS metadata,
       to_timestamp(v.recorded_at_ms / 1000.0) AS recorded_at,
       to_timestamp(v.created_at_ms / 1000.0) AS created_at,
       nullif(v.folder, '') AS folder,
       (SELECT coalesce(json_agg(g.tag ORDER BY g.key), '[]') FROM video_tags g WHERE g.video = v.id) AS tags
FROM videos v
WHERE v.deleted_at_ms IS NULL;
