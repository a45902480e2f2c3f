//! Figures of the query log and of added videos, for a dashboard.

use uuid::Uuid;

use crate::terms::SearchKind;

/// Figures between two times.
#[derive(Debug, Clone, PartialEq)]
pub struct Insights {
    /// Whether all searches are counted. `false`: only the newest.
    pub complete: bool,
    /// Figures of all counted searches.
    pub searches: SearchFigures,
    /// Days with searches, the oldest first.
    pub days: Vec<SearchDay>,
    /// Days with new videos, the oldest first.
    pub added: Vec<AddedDay>,
    /// Searches of each kind that occurs, the most frequent first.
    pub kinds: Vec<KindFigures>,
    /// The most frequent texts, the most frequent first.
    pub frequent: Vec<FrequentText>,
    /// The same among the searches without results.
    pub unanswered: Vec<FrequentText>,
    /// The slowest searches, the slowest first.
    pub slowest: Vec<SlowSearch>,
}

/// Figures of some searches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SearchFigures {
    /// Number of searches.
    pub searches: i64,
    /// How many had no results.
    pub without_results: i64,
    /// Their durations. `None` without searches.
    pub latency: Option<Latency>,
}

/// Percentiles of the searches' durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// Searches of one day.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchDay {
    /// The day in UTC, counted from 1970-01-01.
    pub day: i64,
    /// Its figures.
    pub figures: SearchFigures,
}

/// Videos that were added on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedDay {
    /// The day in UTC, counted from 1970-01-01.
    pub day: i64,
    /// Their number.
    pub videos: i64,
    /// Their length in milliseconds, as far as it is known.
    pub duration_ms: i64,
}

/// Searches of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindFigures {
    /// The kind.
    pub kind: SearchKind,
    /// Number of searches.
    pub searches: i64,
    /// How many had no results.
    pub without_results: i64,
}

/// Searches by equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrequentText {
    /// The text of the newest.
    pub text: String,
    /// Their number.
    pub searches: i64,
    /// How many had no results.
    pub without_results: i64,
    /// The newest.
    pub newest: Uuid,
    /// Time of the newest, in Unix milliseconds.
    pub newest_at_ms: i64,
}

/// A slow search.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowSearch {
    /// The search.
    pub id: Uuid,
    /// Time of its answer, in Unix milliseconds.
    pub at_ms: i64,
    /// Its kind.
    pub kind: SearchKind,
    /// Its duration, in milliseconds.
    pub total_ms: f64,
}
