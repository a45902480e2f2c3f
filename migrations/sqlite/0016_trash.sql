-- The same as migrations/postgres/0016_trash.sql.

-- Trash: a video with deleted_at_ms can be restored until purging is set. From then on its files are being removed. A
-- video that an older version deleted can't be restored: its files may be gone already.
ALTER TABLE videos ADD COLUMN purging INTEGER NOT NULL DEFAULT 0 CHECK (purging IN (0, 1));
ALTER TABLE videos ADD COLUMN restored_at_ms INTEGER;
UPDATE videos SET purging = 1 WHERE deleted_at_ms IS NOT NULL;
CREATE INDEX videos_purging ON videos (id) WHERE purging;

-- Videos in the trash use their key's quota.
DROP INDEX videos_by_key;
CREATE INDEX videos_by_key ON videos (added_by) WHERE added_by IS NOT NULL AND NOT purging;
