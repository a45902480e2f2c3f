//! Logs, traces and metrics: the tracing subscriber and the Prometheus recorder. `names` lists the metrics, `process`
//! reads those of the process.

pub mod names;
#[cfg(not(feature = "otlp"))]
pub mod no_traces;
#[cfg(feature = "otlp")]
pub mod otlp;
mod process;

#[cfg(not(feature = "otlp"))]
pub use no_traces as traces;
#[cfg(feature = "otlp")]
pub use otlp as traces;

use std::sync::OnceLock;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use reprise_encoders::Cause;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Histogram buckets in seconds, from a fast index search to a long decode.
const SECONDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// Histogram buckets for jobs, in seconds.
const JOB_SECONDS: [f64; 9] = [0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0];

/// Histogram buckets for the inputs of a batch.
const INPUTS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// The collector's address can't be used, or this build sends no traces; the operator's fault.
#[derive(Debug, thiserror::Error)]
#[error("--otlp-endpoint: {0}")]
pub struct TracesError(#[source] Cause);

/// Sends logs to stderr, and traces to a collector if there is an endpoint. `RUST_LOG` is the filter of the logs, or else
/// `default`. Must be called inside the runtime that sends the traces.
///
/// # Errors
/// The endpoint can't be used. Logs are then sent all the same.
pub fn start(default: &str, otlp_endpoint: Option<&str>) -> Result<(), TracesError> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(filter);
    let subscriber = tracing_subscriber::registry().with(logs);
    // Each fails only if this process already has a subscriber, which then stays.
    match otlp_endpoint.map(traces::layer).transpose() {
        Ok(Some(traces)) => drop(subscriber.with(traces).try_init()),
        Ok(None) => drop(subscriber.try_init()),
        Err(error) => {
            drop(subscriber.try_init());
            return Err(error);
        }
    }
    Ok(())
}

/// The recorder of this process, installed at the first call. `None` if the process has another recorder.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE.get_or_init(|| install().map_err(|error| tracing::error!(%error, "no metrics")).ok()).as_ref()
}

fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(names::JOB_SECONDS.name.to_owned()), &JOB_SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full(names::BATCH_INPUTS.name.to_owned()), &INPUTS)?
        .install_recorder()?;
    names::describe();
    Ok(handle)
}

/// All metrics as Prometheus' text format. `None` if the process has another recorder.
pub fn render_metrics() -> Option<String> {
    metrics().map(|recorder| recorder.render() + &process::render())
}
