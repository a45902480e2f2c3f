-- The same as migrations/sqlite/0015_webhooks.sql.

-- Webhooks: addresses that events are sent to. owner: the API key that made it, null for a caller without one. events: names,
-- parted by a space. secret: the bytes of the key that signs; old_secret signs too, until old_until_ms. A webhook with
-- disabled_at_ms gets nothing. dropped: events that were not stored because too many waited.
CREATE TABLE webhooks (
    id             UUID PRIMARY KEY,
    owner          UUID,
    url            TEXT NOT NULL,
    description    TEXT NOT NULL,
    events         TEXT NOT NULL,
    secret         BYTEA NOT NULL,
    old_secret     BYTEA,
    old_until_ms   BIGINT,
    disabled_at_ms BIGINT,
    disabled_why   TEXT,
    dropped        BIGINT NOT NULL DEFAULT 0,
    created_at_ms  BIGINT NOT NULL
);

-- Deliveries: an event for a webhook, stored by the transaction that causes it. payload: the JSON that is sent. status: of the last answer. Backups leave
-- them out: a restored library must not repeat old news.
CREATE TABLE webhook_deliveries (
    id             UUID PRIMARY KEY,
    webhook        UUID NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event          TEXT NOT NULL,
    payload        TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    attempts       BIGINT NOT NULL DEFAULT 0,
    not_before_ms  BIGINT NOT NULL,
    lease_token    UUID,
    lease_until_ms BIGINT,
    status         BIGINT,
    reason         TEXT,
    created_at_ms  BIGINT NOT NULL,
    updated_at_ms  BIGINT NOT NULL
);

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, id);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook, not_before_ms, id) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (webhook) WHERE lease_until_ms IS NOT NULL;

-- Alerts: searches that every newly ready video is asked. owner as above. search: the JSON of the search. trouble: why the
-- last try failed. missed: videos that were given up. No table refers to alerts: a restore may leave out a damaged table.
CREATE TABLE alerts (
    id            UUID PRIMARY KEY,
    owner         UUID,
    name          TEXT NOT NULL,
    search        TEXT NOT NULL,
    min_score     DOUBLE PRECISION,
    trouble       TEXT,
    missed        BIGINT NOT NULL DEFAULT 0,
    created_at_ms BIGINT NOT NULL
);

-- The webhooks that an alert's matches go to.
CREATE TABLE alert_webhooks (
    alert   UUID NOT NULL,
    webhook UUID NOT NULL,
    PRIMARY KEY (alert, webhook)
);

CREATE INDEX alert_webhooks_by_webhook ON alert_webhooks (webhook);

-- The videos that an alert has not asked yet. A row is stored with the video's state ready, and deleted with the match.
CREATE TABLE alert_checks (
    alert          UUID NOT NULL,
    video          UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    attempts       BIGINT NOT NULL DEFAULT 0,
    not_before_ms  BIGINT NOT NULL,
    lease_token    UUID,
    lease_until_ms BIGINT,
    created_at_ms  BIGINT NOT NULL,
    updated_at_ms  BIGINT NOT NULL,
    PRIMARY KEY (alert, video)
);

CREATE INDEX alert_checks_by_video ON alert_checks (video);
CREATE INDEX alert_checks_due ON alert_checks (not_before_ms, video, alert);

-- What alerts found: one row for each alert and video. hits: JSON. space: the space's name.
CREATE TABLE alert_matches (
    id    UUID PRIMARY KEY,
    alert UUID NOT NULL,
    video UUID NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
    space TEXT NOT NULL,
    hits  TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    UNIQUE (alert, video)
);

CREATE INDEX alert_matches_by_alert ON alert_matches (alert, id);
CREATE INDEX alert_matches_by_video ON alert_matches (video);
