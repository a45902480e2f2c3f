-- The same as migrations/postgres/0004_spaces.sql.

-- Whether the space's model was added to a running server: then it is loaded at each start.
ALTER TABLE spaces ADD COLUMN added INTEGER NOT NULL DEFAULT 0 CHECK (added IN (0, 1));

-- Kinds of query that were moved to a space while a server ran. named: the id of the space that the command line
-- named for the kind then; while it still names the same, the row holds.
CREATE TABLE activations (
    kind  TEXT PRIMARY KEY CHECK (kind IN ('text', 'clip', 'composed', 'spoken')),
    space INTEGER NOT NULL REFERENCES spaces (key),
    named TEXT
) STRICT;
