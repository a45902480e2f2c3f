-- The same as migrations/sqlite/0007_keys.sql.

-- Keys of spans have 64 bits.
ALTER TABLE spans ALTER COLUMN key SET MAXVALUE 9223372036854775807;

-- A dense number of each video, never used again: vector engines keep it beside each vector.
ALTER TABLE videos ADD COLUMN number BIGINT GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX videos_by_number ON videos (number);
