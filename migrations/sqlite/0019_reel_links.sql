-- The same as migrations/postgres/0019_reel_links.sql.

-- Signed links to a reel hold this number. Raising it revokes them.
ALTER TABLE reels ADD COLUMN link_epoch INTEGER NOT NULL DEFAULT 0;
