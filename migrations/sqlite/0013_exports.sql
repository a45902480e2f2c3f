-- The same as migrations/postgres/0013_exports.sql.

-- Reels: ordered lists of ranges of videos. version grows with each change. A range names its video without a reference:
-- a reel outlives its videos, and reads leave out the ranges of deleted ones. It names its reel without one too: a restore
-- may leave out a damaged table.
CREATE TABLE reels (
    id            BLOB PRIMARY KEY,
    name          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE reel_ranges (
    reel     BLOB NOT NULL,
    place    INTEGER NOT NULL,
    video    BLOB NOT NULL,
    start_ms INTEGER NOT NULL CHECK (start_ms >= 0),
    end_ms   INTEGER NOT NULL CHECK (end_ms > start_ms),
    note     TEXT NOT NULL,
    PRIMARY KEY (reel, place)
) STRICT;

CREATE INDEX reel_ranges_by_video ON reel_ranges (video);

-- Exports: an export has the id of its job. request and report: JSON. Until it is made, file and expires_at_ms are null.
-- added_by: the API key that made it, whose quota it uses. Backups leave exports out: they can be made again.
CREATE TABLE exports (
    id            BLOB PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    request       TEXT NOT NULL,
    added_by      BLOB,
    expires_at_ms INTEGER,
    file          TEXT,
    file_name     TEXT,
    media_type    TEXT,
    bytes         INTEGER NOT NULL DEFAULT 0,
    content_hash  TEXT,
    report        TEXT
) STRICT;

CREATE INDEX exports_by_key ON exports (added_by) WHERE added_by IS NOT NULL;

-- The videos of an export's ranges.
CREATE TABLE export_videos (
    export BLOB NOT NULL REFERENCES exports (id) ON DELETE CASCADE,
    video  BLOB NOT NULL,
    PRIMARY KEY (export, video)
) STRICT;

CREATE INDEX export_videos_by_video ON export_videos (video);
