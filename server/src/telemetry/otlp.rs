//! Traces over OTLP/HTTP: which spans go to the collector, and how they are sent.
//!
//! The queue loses spans when it is full. An absent collector costs a refused connection each few seconds, and no line of
//! the log.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::registry::LookupSpan;

use super::TracesError;

/// The path of traces below the collector's address.
const PATH: &str = "/v1/traces";
/// Longest sending of a batch.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for the last batch at the end of the process.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sends spans to `endpoint` from now on.
///
/// # Errors
/// The endpoint is no URL, or traces were started before.
pub(super) fn layer<S>(endpoint: &str) -> Result<impl Layer<S> + use<S>, TracesError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let provider = provider(endpoint)?;
    let tracer = provider.tracer("reprise");
    PROVIDER.set(provider).map_err(|_| TracesError("traces are sent already".into()))?;
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    // A part of nothing, such as a statement of a background task, is not worth a trace.
    let is_sent = dynamic_filter_fn(|metadata, context| {
        is_span_of_ours(metadata) && (*metadata.level() <= Level::INFO || context.lookup_current().is_some())
    });
    Ok(layer.with_filter(is_sent.with_max_level_hint(LevelFilter::DEBUG)))
}

fn is_span_of_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("reprise")
}

fn provider(endpoint: &str) -> Result<SdkTracerProvider, TracesError> {
    let client = Client {
        client: crate::https::client()
            .timeout(SEND_WITHIN)
            .build()
            .map_err(|error| TracesError(error.into()))?,
        runtime: Handle::current(),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(traces_url(endpoint))
        .with_timeout(SEND_WITHIN)
        .build()
        .map_err(|error| TracesError(error.into()))?;
    let resource = Resource::builder();
    let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource,
        None => resource.with_service_name("reprise"),
    };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// The address of traces at a collector. An address that names the path already is kept.
fn traces_url(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with(PATH) { endpoint.to_owned() } else { format!("{endpoint}{PATH}") }
}

/// Makes a request's span the server's side of a call, which the caller's `traceparent` may have begun.
pub fn request_began(span: &Span, route: &str, traceparent: Option<&str>) {
    if PROVIDER.get().is_none() {
        return;
    }
    span.set_attribute("http.route", route.to_owned());
    if let Some(traceparent) = traceparent {
        let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
        // Refused only by a span that is not sent.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
    }
}

/// Records a request's status.
pub fn request_ended(span: &Span, status: u16) {
    if PROVIDER.get().is_some() {
        span.set_attribute("http.response.status_code", i64::from(status));
    }
}

/// Sends what waits. Blocks for at most two seconds; not for a thread of the runtime.
pub fn flush() {
    if let Some(provider) = PROVIDER.get() {
        // Fails if the collector is away; its spans are lost.
        let _ = provider.shutdown_with_timeout(FLUSH_WITHIN);
    }
}

/// The HTTP client of all of reprise. The exporter calls it from its own thread, which has no runtime.
#[derive(Debug)]
struct Client {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let client = self.client.clone();
        // A request starts its clock where it is made, and only the runtime has one.
        let answer = self.runtime.spawn(async move { client.execute(request).await }).await??;
        // The body names refused spans, which nobody could send again.
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::traces_url;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for endpoint in ["http://otel:4318", "http://otel:4318/", "http://otel:4318/v1/traces"] {
            assert_eq!(traces_url(endpoint), "http://otel:4318/v1/traces");
        }
    }
}
