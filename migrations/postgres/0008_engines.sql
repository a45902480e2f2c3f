-- The same as migrations/sqlite/0008_engines.sql.

-- One row: the library's identity. A vector engine outside keeps it beside the vectors, and refuses another library.
CREATE TABLE library (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  UUID NOT NULL
);

-- Who may write to a vector engine that several servers share. fence rises with each new writer; rebuilding: a rebuild
-- began and has not reached the newest change yet.
CREATE TABLE engine_writers (
    engine     TEXT PRIMARY KEY,
    holder     UUID NOT NULL,
    fence      BIGINT NOT NULL,
    until_ms   BIGINT NOT NULL,
    rebuilding BOOLEAN NOT NULL DEFAULT FALSE
);
