-- The same as migrations/sqlite/0011_api_keys.sql.

-- hash: SHA-256 of the key's secret half. scopes: some of read, write, admin, parted by a space. reach: the filter of the
-- videos that the key reaches, as JSON. A null limit is none.
CREATE TABLE api_keys (
    id                  UUID PRIMARY KEY,
    name                TEXT NOT NULL,
    hash                BYTEA NOT NULL,
    scopes              TEXT NOT NULL,
    reach               TEXT,
    requests_per_minute BIGINT,
    searches_at_once    BIGINT,
    stored_bytes        BIGINT,
    stored_seconds      BIGINT,
    created_at_ms       BIGINT NOT NULL,
    expires_at_ms       BIGINT,
    last_used_at_ms     BIGINT,
    revoked_at_ms       BIGINT
);

-- Changes, and downloads of media. No reference to api_keys: the log outlives them.
CREATE TABLE audit (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms      BIGINT NOT NULL,
    key        UUID,
    key_name   TEXT,
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    status     BIGINT NOT NULL,
    request_id TEXT NOT NULL
);

CREATE INDEX audit_by_time ON audit (at_ms);

-- Callers with different filters may each add the same bytes, so content is no longer unique.
DROP INDEX videos_by_content;
CREATE INDEX videos_by_content ON videos (content_hash) WHERE deleted_at_ms IS NULL;

-- added_by: the API key that added the video. probed_ms: the duration by the file's header, for quotas.
ALTER TABLE videos ADD COLUMN added_by UUID;
ALTER TABLE videos ADD COLUMN probed_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX videos_by_key ON videos (added_by) WHERE added_by IS NOT NULL AND deleted_at_ms IS NULL;
