-- The same as migrations/sqlite/0009_secrets.sql.

-- Keys that this library signs with, 32 random bytes each. All servers of a library share them.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);
