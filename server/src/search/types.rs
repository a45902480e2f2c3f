//! What is asked and what is answered, in the service's own words.

use std::path::PathBuf;

use reprise_encoders::text::Overflow;
use reprise_index::Level;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::windows::Aggregation;
use crate::catalog::{Filter, SpanWithVideo};
use crate::config::QueryKind;

/// A checked search request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to find.
    pub query: Query,
    /// How the query clip is to be changed.
    pub modification: Option<String>,
    /// A space's id or name.
    pub space: Option<String>,
    /// What is answered.
    pub levels: Levels,
    /// Hits, or groups, per page.
    pub limit: usize,
    /// Group by video, with at most so many hits each.
    pub per_group: Option<usize>,
    /// Only spans that match.
    pub filter: Option<Filter>,
    /// What is left out.
    pub exclude: Exclude,
    /// How a composed query is fused.
    pub fusion: Fusion,
    /// What to do with a long text.
    pub overflow: Overflow,
    /// How the windows of a long text make one score.
    pub aggregation: Aggregation,
    /// Brute force instead of the graph.
    pub exact: bool,
    /// Join neighbouring hits.
    pub merge_adjacent: bool,
    /// Tell how the answer was found.
    pub explain: bool,
}

impl Request {
    /// Which kind of query it is.
    pub fn kind(&self) -> QueryKind {
        match (&self.query, &self.modification) {
            (Query::Text(_), _) => QueryKind::Text,
            (_, Some(_)) => QueryKind::Composed,
            (_, None) => QueryKind::Clip,
        }
    }
}

/// What to find.
#[derive(Debug, Clone)]
pub enum Query {
    /// A text of any length.
    Text(String),
    /// A stretch of a stored video, in milliseconds, end exclusive.
    Range {
        /// The video.
        video: Uuid,
        /// Start.
        start_ms: i64,
        /// End.
        end_ms: i64,
    },
    /// A stored clip.
    Clip(Uuid),
    /// An uploaded file, or a stretch of it.
    Upload {
        /// Where it is.
        path: PathBuf,
        /// SHA-256 of it.
        content_hash: String,
        /// Start; 0 if not given.
        start_ms: Option<i64>,
        /// End; the file's end if not given.
        end_ms: Option<i64>,
    },
}

/// Which levels are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Levels {
    /// `results` are clips.
    #[default]
    Clip,
    /// `results` are full videos.
    Video,
    /// `results` are clips, and `videos` full videos, on the first page.
    Both,
}

impl Levels {
    /// The level of `results`.
    pub fn of_results(self) -> Level {
        match self {
            Levels::Clip | Levels::Both => Level::Clip,
            Levels::Video => Level::Video,
        }
    }
}

/// What is left out of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclude {
    /// Hits that overlap the query's own stretch by more than half of the shorter of the two.
    pub itself: bool,
    /// All hits of the query's video.
    pub same_video: bool,
}

/// How video and text of a composed query become one vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// `None`: the space's trained head if it has one, else the average.
    pub mode: Option<FusionMode>,
    /// Share of the video in the average, 0 to 1.
    pub alpha: f32,
}

/// A way to fuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FusionMode {
    /// The space's trained head.
    Combiner,
    /// alpha * video + (1 - alpha) * text, both of norm 1.
    Average,
}

/// Where the query itself comes from, so that it can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The stored video.
    pub video: Uuid,
    /// Start.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
}

/// What the query was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueryInfo {
    /// Kind of query.
    pub kind: QueryKind,
    /// Tokens of the text.
    pub tokens_total: usize,
    /// Tokens that were encoded.
    pub tokens_used: usize,
    /// Windows that the text was cut into.
    pub windows: usize,
    /// Whether tokens were cut off.
    pub truncated: bool,
    /// Frames that were encoded.
    pub frames: usize,
    /// `combiner` or `average` for a composed query.
    pub fusion: Option<FusionMode>,
    /// Weight of each source in the ranking.
    pub weights: Weights,
}

/// Weight of each source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Weights {
    /// Embeddings of what is seen.
    pub visual: f32,
}

/// One match.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// 1 is best.
    pub rank: usize,
    /// Raw cosine; comparable within one answer only.
    pub score: f32,
    /// What matched; its range grows where hits are merged.
    pub span: SpanWithVideo,
    /// The hits that were joined into this one; empty if it is just itself.
    pub merged: Vec<Match>,
}

/// The best matches of one video.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The video.
    pub video: Uuid,
    /// Its best score.
    pub score: f32,
    /// Its matches, best first.
    pub matches: Vec<Match>,
}

/// One page of an answer.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Matches; empty if they are grouped.
    pub results: Vec<Match>,
    /// Full videos beside clips.
    pub videos: Option<Vec<Match>>,
    /// Groups, if asked for.
    pub groups: Option<Vec<Group>>,
    /// For the next page.
    pub next_cursor: Option<String>,
    /// Whether there is nothing more.
    pub exhausted: bool,
    /// What the query was made of.
    pub info: QueryInfo,
    /// Which index answered.
    pub index: IndexInfo,
    /// How long it took.
    pub timings: Timings,
    /// How the answer was found, if asked for.
    pub explain: Option<Value>,
}

/// Which index answered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct IndexInfo {
    /// The space's readable name.
    pub space: String,
    /// Generation of the index.
    pub generation: u64,
    /// Whether every matching vector was compared.
    pub exact: bool,
    /// Vectors at the level of `results`.
    pub live: u64,
}

/// How long the parts took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub struct Timings {
    /// Reading pictures.
    #[serde(rename = "decode")]
    pub decode_ms: f64,
    /// Waiting for and running the encoder.
    #[serde(rename = "encode")]
    pub encode_ms: f64,
    /// The index.
    #[serde(rename = "search")]
    pub search_ms: f64,
    /// The database.
    #[serde(rename = "catalog")]
    pub catalog_ms: f64,
    /// All of it.
    #[serde(rename = "total")]
    pub total_ms: f64,
}

/// The vectors of one input, as answered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Embedding {
    /// The space's readable name.
    pub space: String,
    /// One per text window; one for a clip. Norm 1.
    pub vectors: Vec<EmbeddedWindow>,
    /// Their mean, norm 1.
    pub vector: Vec<f32>,
    /// Length of the raw vector; of several windows: of the mean of their unit vectors.
    pub norm: f32,
    /// What it was made of.
    pub query_info: QueryInfo,
}

/// The vector of a stretch of a text, in tokens, end exclusive; 0 to 0 for a clip.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EmbeddedWindow {
    /// First token.
    pub start_token: usize,
    /// Token after the last.
    pub end_token: usize,
    /// Norm 1.
    pub values: Vec<f32>,
}
