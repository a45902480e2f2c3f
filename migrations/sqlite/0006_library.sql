-- The same as migrations/postgres/0006_library.sql.

-- Trash: a video with deleted_at_ms is in no answer, and waits for the purge. Its content may be added again
-- meanwhile, so content is unique among the others only. SQLite drops a constraint only by making the table anew.
CREATE TABLE videos_new (
    id              BLOB PRIMARY KEY,
    content_hash    TEXT NOT NULL,
    file            TEXT NOT NULL,
    file_name       TEXT NOT NULL,
    bytes           INTEGER NOT NULL,
    title           TEXT NOT NULL,
    metadata        TEXT NOT NULL,
    recorded_at     TEXT,
    recorded_at_ms  INTEGER,
    created_at_ms   INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'ready', 'failed')),
    segmentation    TEXT NOT NULL,
    facts           TEXT,
    duration_ms     INTEGER,
    media_offset_ms INTEGER,
    warnings        TEXT NOT NULL,
    deleted_at_ms   INTEGER
) STRICT;

INSERT INTO videos_new SELECT id, content_hash, file, file_name, bytes, title, metadata, recorded_at, recorded_at_ms,
    created_at_ms, state, segmentation, facts, duration_ms, media_offset_ms, warnings, NULL FROM videos;
DROP TABLE videos;
ALTER TABLE videos_new RENAME TO videos;
CREATE UNIQUE INDEX videos_by_content ON videos (content_hash) WHERE deleted_at_ms IS NULL;
CREATE INDEX videos_deleted ON videos (id) WHERE deleted_at_ms IS NOT NULL;

-- Steps that rewrite stored rows and that SQL alone can't do; each has a row here once it has run.
CREATE TABLE upgrades (
    name TEXT PRIMARY KEY
) STRICT;
