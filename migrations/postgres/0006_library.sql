-- The same as migrations/sqlite/0006_library.sql.

-- Trash: a video with deleted_at_ms is in no answer, and waits for the purge. Its content may be added again
-- meanwhile, so content is unique among the others only.
ALTER TABLE videos ADD COLUMN deleted_at_ms BIGINT;
ALTER TABLE videos DROP CONSTRAINT videos_content_hash_key;
CREATE UNIQUE INDEX videos_by_content ON videos (content_hash) WHERE deleted_at_ms IS NULL;
CREATE INDEX videos_deleted ON videos (id) WHERE deleted_at_ms IS NOT NULL;

-- Steps that rewrite stored rows and that SQL alone can't do; each has a row here once it has run.
CREATE TABLE upgrades (
    name TEXT PRIMARY KEY
);
