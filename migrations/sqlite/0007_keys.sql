-- The same as migrations/postgres/0007_keys.sql.

-- Keys of spans have 64 bits. SQLite changes a check only by making the table anew; migrations run with foreign keys
-- off, so that what refers to the old one stays. AUTOINCREMENT: a key is never used again.
CREATE TABLE spans_new (
    key      INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key >= 0),
    id       BLOB NOT NULL UNIQUE,
    video    BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    level    TEXT NOT NULL CHECK (level IN ('video', 'clip', 'moment', 'passage')),
    given    INTEGER NOT NULL CHECK (given IN (0, 1)),
    start_ms INTEGER NOT NULL CHECK (start_ms >= 0),
    end_ms   INTEGER NOT NULL CHECK (end_ms > start_ms),
    metadata TEXT NOT NULL
) STRICT;

INSERT INTO spans_new (key, id, video, level, given, start_ms, end_ms, metadata)
    SELECT key, id, video, level, given, start_ms, end_ms, metadata FROM spans;
DELETE FROM sqlite_sequence WHERE name = 'spans_new';
INSERT INTO sqlite_sequence (name, seq) SELECT 'spans_new', seq FROM sqlite_sequence WHERE name = 'spans';
DROP TABLE spans;
ALTER TABLE spans_new RENAME TO spans;
CREATE INDEX spans_by_video ON spans (video, level, start_ms, id);

-- A dense number of each video, never used again: vector engines keep it beside each vector.
ALTER TABLE videos ADD COLUMN number INTEGER;

UPDATE videos SET number = numbered.number
    FROM (SELECT id, row_number() OVER (ORDER BY created_at_ms, id) AS number FROM videos) AS numbered
    WHERE numbered.id = videos.id;

CREATE UNIQUE INDEX videos_by_number ON videos (number);

-- One row: the last number that was given out.
CREATE TABLE video_numbers (last INTEGER NOT NULL) STRICT;
INSERT INTO video_numbers (last) SELECT count(*) FROM videos;

CREATE TRIGGER videos_numbered AFTER INSERT ON videos WHEN new.number IS NULL BEGIN
    UPDATE video_numbers SET last = last + 1;
    UPDATE videos SET number = (SELECT last FROM video_numbers) WHERE id = new.id;
END;
