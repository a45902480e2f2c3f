-- The same as migrations/postgres/0003_resegment.sql.

-- How a video that is searchable already is to be cut anew; none where it keeps its segmentation.
ALTER TABLE jobs ADD COLUMN segmentation TEXT;
