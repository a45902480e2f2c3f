-- The same as migrations/sqlite/0019_reel_links.sql.

-- Signed links to a reel hold this number. Raising it revokes them.
ALTER TABLE reels ADD COLUMN link_epoch BIGINT NOT NULL DEFAULT 0;
