//! Durations of the parts of a search.

use std::time::Instant;

use crate::telemetry::names;

/// Durations of the parts of a search, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// Decoding of frames.
    pub decode_ms: f64,
    /// Waiting for and running the encoder.
    pub encode_ms: f64,
    /// Search in the vector index.
    pub search_ms: f64,
    /// Queries to the catalog.
    pub catalog_ms: f64,
    /// The whole search.
    pub total_ms: f64,
}

impl Timings {
    /// Adds the durations of another part.
    pub(super) fn add(&mut self, other: Timings) {
        self.decode_ms += other.decode_ms;
        self.encode_ms += other.encode_ms;
        self.search_ms += other.search_ms;
        self.catalog_ms += other.catalog_ms;
        self.total_ms += other.total_ms;
    }

    /// Records the durations in the server's metrics.
    pub(super) fn record(&self) {
        let parts = [
            ("decode", self.decode_ms),
            ("encode", self.encode_ms),
            ("index", self.search_ms),
            ("catalog", self.catalog_ms),
            ("total", self.total_ms),
        ];
        for (part, ms) in parts {
            metrics::histogram!(names::SEARCH_SECONDS.name, "part" => part).record(ms / 1000.0);
        }
    }
}

/// Milliseconds since `since`.
pub(super) fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
