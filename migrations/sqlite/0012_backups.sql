-- The same as migrations/postgres/0012_backups.sql.

-- Backups that are being made. Until until_ms no file of a deleted video is removed; the backup renews it while it
-- lives.
CREATE TABLE backups (
    id       BLOB PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT;
