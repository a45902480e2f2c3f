-- The same as migrations/sqlite/0030_speech.sql.

-- machine: whether a program wrote the track. A person's track is never replaced by one.
ALTER TABLE tracks ADD COLUMN machine BOOLEAN NOT NULL DEFAULT FALSE;

-- note: what a succeeded job found, where that needs words.
ALTER TABLE jobs ADD COLUMN note TEXT;

-- The finished windows of a transcription: it goes on after the last one, with the same model. content: JSON.
CREATE TABLE transcript_windows (
    job     UUID NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    place   BIGINT NOT NULL,
    model   TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (job, place)
);
