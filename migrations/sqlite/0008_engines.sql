-- The same as migrations/postgres/0008_engines.sql.

-- One row: the library's identity. A vector engine outside keeps it beside the vectors, and refuses another library.
CREATE TABLE library (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  BLOB NOT NULL
) STRICT;

-- Who may write to a vector engine that several servers share. fence rises with each new writer; rebuilding: a rebuild
-- began and has not reached the newest change yet.
CREATE TABLE engine_writers (
    engine     TEXT PRIMARY KEY,
    holder     BLOB NOT NULL,
    fence      INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    rebuilding INTEGER NOT NULL DEFAULT 0 CHECK (rebuilding IN (0, 1))
) STRICT;
