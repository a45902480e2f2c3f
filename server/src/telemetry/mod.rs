//! Logs and metrics: the tracing subscriber, the Prometheus recorder, and the metrics' descriptions.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

/// Histogram buckets in seconds, from a fast index search to a long decode.
const SECONDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// Histogram buckets for jobs, in seconds.
const JOB_SECONDS: [f64; 9] = [0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0];

/// Histogram buckets for the inputs of a batch.
const INPUTS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Sends logs to stderr. `RUST_LOG` is the filter, or else `default`.
pub fn start_logs(default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only if this process already has a subscriber, which then stays.
    let _ = subscriber.try_init();
}

/// The recorder of this process, installed at the first call. `None` if the process has another recorder.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE.get_or_init(|| install().map_err(|error| tracing::error!(%error, "no metrics")).ok()).as_ref()
}

fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("reprise_job_seconds".to_owned()), &JOB_SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full("reprise_batch_inputs".to_owned()), &INPUTS)?
        .install_recorder()?;
    metrics::describe_counter!("reprise_requests_total", "answered requests by route and status");
    metrics::describe_histogram!("reprise_request_seconds", "time to answer by route");
    metrics::describe_histogram!(
        "reprise_search_seconds",
        "parts of a search: decode, encode, index, catalog, total"
    );
    metrics::describe_histogram!(
        "reprise_queue_seconds",
        "time that inputs wait for a batch, by space and lane"
    );
    metrics::describe_histogram!("reprise_batch_inputs", "inputs of one batch, by space and lane");
    metrics::describe_histogram!("reprise_encode_seconds", "time of one batch, by space and lane");
    metrics::describe_counter!(
        "reprise_frames_total",
        "frames of ingests whose features the encoder made or an earlier attempt had kept, by space and source"
    );
    metrics::describe_counter!("reprise_jobs_total", "ended jobs by outcome");
    metrics::describe_histogram!("reprise_job_seconds", "time that a job took");
    metrics::describe_gauge!("reprise_pool_waiting", "inputs waiting by space and lane");
    metrics::describe_gauge!("reprise_index_live", "searchable vectors by space and level");
    metrics::describe_gauge!("reprise_index_bytes", "bytes of vectors and links, by space and level");
    metrics::describe_gauge!(
        "reprise_index_recall_at_10",
        "share of the true 10 nearest that the graphs find, when last measured, by space and level"
    );
    metrics::describe_gauge!(
        "reprise_index_keys_equal",
        "1 if the index held the same spans as the catalog at the last check, else 0, by space and level"
    );
    metrics::describe_gauge!(
        "reprise_index_verify_seconds",
        "time to verify the index's files after the start"
    );
    metrics::describe_counter!(
        "reprise_index_mended_total",
        "vectors that were damaged in the index's files and are read from the catalog again"
    );
    metrics::describe_gauge!("reprise_index_seq", "newest change that the index holds");
    metrics::describe_gauge!("reprise_index_behind", "committed changes that the index lacks");
    metrics::describe_gauge!("reprise_index_up", "1 while the vector engine answers, else 0");
    Ok(handle)
}
