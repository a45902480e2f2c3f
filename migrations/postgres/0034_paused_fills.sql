-- The same as migrations/sqlite/0034_paused_fills.sql.

-- Spaces whose fill is paused: no fill job encodes into them.
CREATE TABLE paused_fills (
    space BIGINT PRIMARY KEY REFERENCES spaces (key)
);
