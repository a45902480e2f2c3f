-- The same as migrations/sqlite/0020_range_vectors.sql.

-- Raw vectors of time ranges that queries asked for: a cache, which backups leave out. vector: f32, little-endian. bytes: its
-- length. used_at_ms: time of its last use, within a minute; the least recently used leave first.
CREATE TABLE range_vectors (
    space      BIGINT NOT NULL REFERENCES spaces (key) ON DELETE CASCADE,
    video      UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    start_ms   BIGINT NOT NULL,
    end_ms     BIGINT NOT NULL,
    vector     BYTEA NOT NULL,
    bytes      BIGINT NOT NULL,
    used_at_ms BIGINT NOT NULL,
    PRIMARY KEY (space, video, start_ms, end_ms)
);

CREATE INDEX range_vectors_by_video ON range_vectors (video);
CREATE INDEX range_vectors_by_use ON range_vectors (used_at_ms, bytes);
