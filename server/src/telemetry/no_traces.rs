//! Traces of a build without the feature `otlp`: none.

use tracing::Span;
use tracing_subscriber::layer::Identity;

use super::TracesError;

/// This build sends none.
///
/// # Errors
/// Always.
pub(super) fn layer(_: &str) -> Result<Identity, TracesError> {
    Err(TracesError("this reprise was built without traces: build it with --features otlp".into()))
}

/// Does nothing in this build.
pub fn request_began(_: &Span, _: &str, _: Option<&str>) {}

/// Does nothing in this build.
pub fn request_ended(_: &Span, _: u16) {}

/// Does nothing in this build.
pub fn flush() {}
