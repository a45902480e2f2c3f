-- The same as migrations/postgres/0028_insights.sql.

-- Figures of a time read the searches of one key, and the videos that were added, without the others.
CREATE INDEX searches_by_key_and_time ON searches (key, at_ms);
CREATE INDEX videos_by_creation ON videos (created_at_ms);
