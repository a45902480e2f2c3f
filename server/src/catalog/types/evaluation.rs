//! Evaluations: queries with their relevant ranges, and what the spaces found.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::job::Job;

/// Most evaluations of a library.
pub const MOST_EVALUATIONS: i64 = 1000;
/// Most queries of one evaluation.
pub const MOST_EVALUATED: usize = 10_000;
/// Most queries of all evaluations of a library.
pub const MOST_EVALUATED_IN_ALL: i64 = 1_000_000;
/// Most relevant ranges of one evaluation.
pub const MOST_RELEVANT: usize = 100_000;

/// A time range of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VideoRange {
    /// The video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive; greater than the start.
    pub end_ms: i64,
}

/// A query with what it should find.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationQuery {
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The text, or the change to the clip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The clip. `None` for a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<VideoRange>,
    /// The filter of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
    /// What it should find, at least one.
    pub relevant: Vec<VideoRange>,
}

/// An evaluation to store.
#[derive(Debug, Clone)]
pub struct NewEvaluation {
    /// The API key that makes it; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// Display name.
    pub name: String,
    /// What is asked of which spaces, as its job reads it: a JSON object.
    pub settings: Value,
    /// Its queries in order, 1 to [`MOST_EVALUATED`].
    pub queries: Vec<EvaluationQuery>,
    /// How long it is kept.
    pub lasts: Duration,
}

/// An evaluation and its job, which have the same id.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Its job.
    pub job: Job,
    /// The API key that made it.
    pub owner: Option<Uuid>,
    /// Display name.
    pub name: String,
    /// What is asked of which spaces.
    pub settings: Value,
    /// Number of its queries.
    pub queries: i64,
    /// Its figures, once the job has ended.
    pub report: Option<Value>,
    /// Time of its deletion, in Unix milliseconds.
    pub expires_at_ms: i64,
}

/// A stored query of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedQuery {
    /// Its place, from 0.
    pub place: i64,
    /// The query.
    pub query: EvaluationQuery,
    /// What each space found, once every one has answered.
    pub outcome: Option<Value>,
}

/// What each space found for a query.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOutcome {
    /// The query's place.
    pub place: i64,
    /// What each space found.
    pub outcome: Value,
}

/// Queries of the query log, with the hits that were judged relevant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedQueries {
    /// The queries, those asked first first.
    pub queries: Vec<EvaluationQuery>,
    /// Number of judged queries that can't be asked again from the log.
    pub left_out: usize,
    /// Whether there is more feedback than [`MOST_RELEVANT`].
    pub is_cut: bool,
}
