-- The same as migrations/postgres/0030_speech.sql.

-- machine: whether a program wrote the track. A person's track is never replaced by one.
ALTER TABLE tracks ADD COLUMN machine INTEGER NOT NULL DEFAULT 0 CHECK (machine IN (0, 1));

-- note: what a succeeded job found, where that needs words.
ALTER TABLE jobs ADD COLUMN note TEXT;

-- The finished windows of a transcription: it goes on after the last one, with the same model. content: JSON.
CREATE TABLE transcript_windows (
    job     BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    model   TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (job, place)
) STRICT;
