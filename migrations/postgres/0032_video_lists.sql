-- Both columns follow from the rest of the row; reprise fills them when it opens the database.
-- title_key: the title in the order of a list, without case and accents. look_up: title, file name, folder and tags in the
-- form in which words are looked up.
ALTER TABLE videos ADD COLUMN title_key BYTEA;
ALTER TABLE videos ADD COLUMN look_up TEXT;
CREATE INDEX videos_by_title ON videos (title_key, id) WHERE deleted_at_ms IS NULL;
CREATE INDEX videos_without_title_key ON videos (id) WHERE title_key IS NULL;
