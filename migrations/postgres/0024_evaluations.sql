-- The same as migrations/sqlite/0024_evaluations.sql.

-- Evaluations: one has the id of its job. owner: the API key that made it, null for a caller without one. settings, report: JSON;
-- report is null until the job has ended. Names no other row by a reference: a restore may leave out a damaged table.
CREATE TABLE evaluations (
    id            UUID PRIMARY KEY,
    owner         UUID,
    name          TEXT NOT NULL,
    settings      TEXT NOT NULL,
    queries       BIGINT NOT NULL,
    report        TEXT,
    expires_at_ms BIGINT NOT NULL
);

-- The queries of an evaluation in order. query, outcome: JSON; outcome is null until every space has answered.
CREATE TABLE evaluation_queries (
    evaluation UUID NOT NULL,
    place      BIGINT NOT NULL,
    query      TEXT NOT NULL,
    outcome    TEXT,
    PRIMARY KEY (evaluation, place)
);
