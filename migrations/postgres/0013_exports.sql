-- The same as migrations/sqlite/0013_exports.sql.

-- Reels: ordered lists of ranges of videos. version grows with each change. A range names its video without a reference:
-- a reel outlives its videos, and reads leave out the ranges of deleted ones. It names its reel without one too: a restore
-- may leave out a damaged table.
CREATE TABLE reels (
    id            UUID PRIMARY KEY,
    name          TEXT NOT NULL,
    version       BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);

CREATE TABLE reel_ranges (
    reel     UUID NOT NULL,
    place    BIGINT NOT NULL,
    video    UUID NOT NULL,
    start_ms BIGINT NOT NULL CHECK (start_ms >= 0),
    end_ms   BIGINT NOT NULL CHECK (end_ms > start_ms),
    note     TEXT NOT NULL,
    PRIMARY KEY (reel, place)
);

CREATE INDEX reel_ranges_by_video ON reel_ranges (video);

-- Exports: an export has the id of its job. request and report: JSON. Until it is made, file and expires_at_ms are null.
-- added_by: the API key that made it, whose quota it uses. Backups leave exports out: they can be made again.
CREATE TABLE exports (
    id            UUID PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    request       TEXT NOT NULL,
    added_by      UUID,
    expires_at_ms BIGINT,
    file          TEXT,
    file_name     TEXT,
    media_type    TEXT,
    bytes         BIGINT NOT NULL DEFAULT 0,
    content_hash  TEXT,
    report        TEXT
);

CREATE INDEX exports_by_key ON exports (added_by) WHERE added_by IS NOT NULL;

-- The videos of an export's ranges.
CREATE TABLE export_videos (
    export UUID NOT NULL REFERENCES exports (id) ON DELETE CASCADE,
    video  UUID NOT NULL,
    PRIMARY KEY (export, video)
);

CREATE INDEX export_videos_by_video ON export_videos (video);
