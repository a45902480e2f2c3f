//! All metrics: names, kinds and help texts. Prometheus' rules hold: base units, `_total` for counters.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// A metric of this service.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name under which it is recorded and served.
    pub name: &'static str,
    kind: Kind,
    help: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, help }
}

/// Labels: route, method, status.
pub const REQUESTS: Metric =
    counter("reprise_requests_total", "answered requests by route, method and status");
/// Label: route.
pub const REQUEST_SECONDS: Metric = histogram("reprise_request_seconds", "time to answer by route");
/// Label: part.
pub const SEARCH_SECONDS: Metric =
    histogram("reprise_search_seconds", "parts of a search: decode, encode, index, catalog, total");
/// Labels: space, lane.
pub const QUEUE_SECONDS: Metric =
    histogram("reprise_queue_seconds", "time that inputs wait for a batch, by space and lane");
/// Labels: space, lane.
pub const BATCH_INPUTS: Metric = histogram("reprise_batch_inputs", "inputs of one batch, by space and lane");
/// Labels: space, lane.
pub const ENCODE_SECONDS: Metric =
    histogram("reprise_encode_seconds", "time of one batch, by space and lane");
/// Labels: space, source.
pub const FRAMES: Metric = counter(
    "reprise_frames_total",
    "frames of ingests whose features the encoder made or an earlier attempt had kept, by space and source",
);
/// Label: outcome.
pub const JOBS: Metric = counter("reprise_jobs_total", "ended jobs by outcome");
/// No label.
pub const JOB_SECONDS: Metric = histogram("reprise_job_seconds", "time that a job took");
/// Label: outcome.
pub const WEBHOOK_ATTEMPTS: Metric = counter(
    "reprise_webhook_attempts_total",
    "attempts to deliver an event to a webhook, by outcome: delivered, failed, gone",
);
/// Labels: space, lane.
pub const POOL_WAITING: Metric = gauge("reprise_pool_waiting", "inputs waiting by space and lane");
/// Label: space.
pub const POOL_ABANDONED: Metric = counter(
    "reprise_pool_abandoned_total",
    "worker threads that did not finish a batch in time and were replaced, by space",
);
/// Labels: space, level.
pub const INDEX_LIVE: Metric = gauge("reprise_index_live", "searchable vectors by space and level");
/// Labels: space, level.
pub const INDEX_BYTES: Metric =
    gauge("reprise_index_bytes", "bytes of vectors and links, by space and level");
/// Labels: space, level.
pub const INDEX_RECALL: Metric = gauge(
    "reprise_index_recall_at_10",
    "share of the true 10 nearest that the graphs find, when last measured, by space and level",
);
/// Labels: space, level.
pub const INDEX_KEYS_EQUAL: Metric = gauge(
    "reprise_index_keys_equal",
    "1 if the index held the same spans as the catalog at the last check, else 0, by space and level",
);
/// No label.
pub const INDEX_VERIFY_SECONDS: Metric =
    gauge("reprise_index_verify_seconds", "time to verify the index's files after the start");
/// No label.
pub const INDEX_MENDED: Metric = counter(
    "reprise_index_mended_total",
    "vectors that were damaged in the index's files and are read from the catalog again",
);
/// No label.
pub const INDEX_SEQ: Metric = gauge("reprise_index_seq", "newest change that the index holds");
/// No label.
pub const INDEX_BEHIND: Metric = gauge("reprise_index_behind", "committed changes that the index lacks");
/// No label.
pub const INDEX_UP: Metric = gauge("reprise_index_up", "1 while the vector engine answers, else 0");
/// No label.
pub const DISK_FREE_BYTES: Metric =
    gauge("reprise_disk_free_bytes", "bytes that may still be written to the data folder's file system");
/// Label: reason.
pub const QUERY_LOG_DROPPED: Metric = counter(
    "reprise_query_log_dropped_total",
    "pages of searches that the query log lacks, by reason: overload, or the database failed",
);

const ALL: [Metric; 23] = [
    REQUESTS,
    REQUEST_SECONDS,
    SEARCH_SECONDS,
    QUEUE_SECONDS,
    BATCH_INPUTS,
    ENCODE_SECONDS,
    FRAMES,
    JOBS,
    JOB_SECONDS,
    WEBHOOK_ATTEMPTS,
    POOL_WAITING,
    POOL_ABANDONED,
    INDEX_LIVE,
    INDEX_BYTES,
    INDEX_RECALL,
    INDEX_KEYS_EQUAL,
    INDEX_VERIFY_SECONDS,
    INDEX_MENDED,
    INDEX_SEQ,
    INDEX_BEHIND,
    INDEX_UP,
    DISK_FREE_BYTES,
    QUERY_LOG_DROPPED,
];

/// Gives the recorder the help texts.
pub(super) fn describe() {
    for Metric { name, kind, help } in ALL {
        match kind {
            Kind::Counter => describe_counter!(name, help),
            Kind::Gauge => describe_gauge!(name, help),
            Kind::Histogram => describe_histogram!(name, help),
        }
    }
}
