-- The same tables as migrations/postgres/0002_cues.sql.

-- Passages: about half a minute of what is said, searched by meaning. SQLite changes a check only by making the
-- table anew; migrations run with foreign keys off, so that what refers to the old one stays.
CREATE TABLE spans_new (
    key      INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key BETWEEN 0 AND 4294967295),
    id       BLOB NOT NULL UNIQUE,
    video    BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    level    TEXT NOT NULL CHECK (level IN ('video', 'clip', 'moment', 'passage')),
    given    INTEGER NOT NULL CHECK (given IN (0, 1)),
    start_ms INTEGER NOT NULL CHECK (start_ms >= 0),
    end_ms   INTEGER NOT NULL CHECK (end_ms > start_ms),
    metadata TEXT NOT NULL
) STRICT;

INSERT INTO spans_new SELECT key, id, video, level, given, start_ms, end_ms, metadata FROM spans;
DELETE FROM sqlite_sequence WHERE name = 'spans_new';
INSERT INTO sqlite_sequence (name, seq) SELECT 'spans_new', seq FROM sqlite_sequence WHERE name = 'spans';
DROP TABLE spans;
ALTER TABLE spans_new RENAME TO spans;
CREATE INDEX spans_by_video ON spans (video, level, start_ms, id);

-- Nothing could be written to it yet.
DROP TABLE cues;

-- warnings: what was wrong with the file, one line each.
CREATE TABLE tracks (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    video      BLOB NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL CHECK (kind IN ('speech', 'caption', 'ocr')),
    language   TEXT NOT NULL,
    provenance TEXT NOT NULL,
    warnings   TEXT NOT NULL,
    UNIQUE (video, kind, language)
) STRICT;

-- Times are on the container's clock. place: 0, 1, 2 in order of start. words: folded, in order, parted by
-- one space.
CREATE TABLE cues (
    key      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       BLOB NOT NULL UNIQUE,
    track    INTEGER NOT NULL REFERENCES tracks (key) ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms   INTEGER NOT NULL CHECK (end_ms > start_ms),
    text     TEXT NOT NULL,
    words    TEXT NOT NULL,
    UNIQUE (track, place)
) STRICT;

-- The words come folded: this tokenizer leaves them as they are.
CREATE VIRTUAL TABLE cue_words USING fts5 (
    words, content = 'cues', content_rowid = 'key', tokenize = 'ascii', detail = 'none', columnsize = 0
);

CREATE TRIGGER cues_inserted AFTER INSERT ON cues BEGIN
    INSERT INTO cue_words (rowid, words) VALUES (new.key, new.words);
END;

CREATE TRIGGER cues_deleted AFTER DELETE ON cues BEGIN
    INSERT INTO cue_words (cue_words, rowid, words) VALUES ('delete', old.key, old.words);
END;

-- In how many cues each word is; the empty word: how many cues there are.
CREATE TABLE cue_terms (
    term TEXT PRIMARY KEY,
    cues INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX cue_terms_unused ON cue_terms (term) WHERE cues = 0;

-- A passage's text is that of its cues.
CREATE TABLE passages (
    span  INTEGER PRIMARY KEY REFERENCES spans (key) ON DELETE CASCADE,
    track INTEGER NOT NULL REFERENCES tracks (key) ON DELETE CASCADE,
    text  TEXT NOT NULL
) STRICT;

CREATE INDEX passages_by_track ON passages (track);
