-- The same as migrations/postgres/0027_tags_and_folders.sql.

-- folder: a path as it was given; empty: none. folder_key: the names of the path without case, with the byte 1 between them.
ALTER TABLE videos ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE videos ADD COLUMN folder_key BLOB NOT NULL DEFAULT x'';
CREATE INDEX videos_by_folder ON videos (folder_key) WHERE deleted_at_ms IS NULL;

-- tag: as it was given. key: without case.
CREATE TABLE video_tags (
    video BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    key   BLOB NOT NULL,
    tag   TEXT NOT NULL,
    PRIMARY KEY (video, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX video_tags_by_key ON video_tags (key, video);

DROP VIEW v_videos;
CREATE VIEW v_videos AS
SELECT lower(substr(hex(v.id), 1, 8) || '-' || substr(hex(v.id), 9, 4) || '-' || substr(hex(v.id), 13, 4) || '-' || substr(hex(v.id), 17, 4) || '-' || substr(hex(v.id), 21)) AS id,
       v.title,
       v.file_name,
       v.state,
       v.bytes,
       v.duration_ms / 1000.0 AS duration_seconds,
       v.metadata AS metadata,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.recorded_at_ms / 1000.0, 'unixepoch') AS recorded_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.created_at_ms / 1000.0, 'unixepoch') AS created_at,
       nullif(v.folder, '') AS folder,
       (SELECT json_group_array(o.tag) FROM (SELECT g.tag FROM video_tags g WHERE g.video = v.id ORDER BY g.key) o) AS tags
FROM videos v
WHERE v.deleted_at_ms IS NULL;
