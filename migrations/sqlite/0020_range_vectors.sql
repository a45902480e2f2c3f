-- The same as migrations/postgres/0020_range_vectors.sql.

-- Raw vectors of time ranges that queries asked for: a cache, which backups leave out. vector: f32, little-endian. bytes: its
-- length. used_at_ms: time of its last use, within a minute; the least recently used leave first.
CREATE TABLE range_vectors (
    space      INTEGER NOT NULL REFERENCES spaces (key) ON DELETE CASCADE,
    video      BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    start_ms   INTEGER NOT NULL,
    end_ms     INTEGER NOT NULL,
    vector     BLOB NOT NULL,
    bytes      INTEGER NOT NULL,
    used_at_ms INTEGER NOT NULL,
    PRIMARY KEY (space, video, start_ms, end_ms)
) STRICT;

CREATE INDEX range_vectors_by_video ON range_vectors (video);
CREATE INDEX range_vectors_by_use ON range_vectors (used_at_ms, bytes);
