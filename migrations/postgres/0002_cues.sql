-- The same tables as migrations/sqlite/0002_cues.sql.

-- Passages: about half a minute of what is said, searched by meaning.
ALTER TABLE spans DROP CONSTRAINT spans_level_check;
ALTER TABLE spans ADD CONSTRAINT spans_level_check CHECK (level IN ('video', 'clip', 'moment', 'passage'));

-- Nothing could be written to it yet.
DROP TABLE cues;

-- warnings: what was wrong with the file, one line each.
CREATE TABLE tracks (
    key        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    video      UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL CHECK (kind IN ('speech', 'caption', 'ocr')),
    language   TEXT COLLATE "C" NOT NULL,
    provenance TEXT NOT NULL,
    warnings   TEXT NOT NULL,
    UNIQUE (video, kind, language)
);

-- Times are on the container's clock. place: 0, 1, 2 in order of start. words: folded, in order, parted by
-- one space; lexemes: the same, taken as they are.
CREATE TABLE cues (
    key      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id       UUID NOT NULL UNIQUE,
    track    BIGINT NOT NULL REFERENCES tracks (key) ON DELETE CASCADE,
    place    BIGINT NOT NULL,
    start_ms BIGINT NOT NULL,
    end_ms   BIGINT NOT NULL CHECK (end_ms > start_ms),
    text     TEXT NOT NULL,
    words    TEXT NOT NULL,
    lexemes  TSVECTOR NOT NULL GENERATED ALWAYS AS (array_to_tsvector(string_to_array(words, ' '))) STORED,
    UNIQUE (track, place)
);

CREATE INDEX cues_by_words ON cues USING gin (lexemes);

-- In how many cues each word is; the empty word: how many cues there are.
CREATE TABLE cue_terms (
    term TEXT COLLATE "C" PRIMARY KEY,
    cues BIGINT NOT NULL
);

CREATE INDEX cue_terms_unused ON cue_terms (term) WHERE cues = 0;

-- A passage's text is that of its cues.
CREATE TABLE passages (
    span  BIGINT PRIMARY KEY REFERENCES spans (key) ON DELETE CASCADE,
    track BIGINT NOT NULL REFERENCES tracks (key) ON DELETE CASCADE,
    text  TEXT NOT NULL
);

CREATE INDEX passages_by_track ON passages (track);
