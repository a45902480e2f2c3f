//! Requests and answers of a search, without a wire form.

use std::path::PathBuf;

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::timings::Timings;
use crate::catalog::{Filter, SpanWithVideo};
use crate::subtitles::snippet::Snippet;
use crate::terms::{Aggregation, Level, QueryKind};

/// Most hits or groups per page.
pub const MAX_LIMIT: usize = 1000;

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
    /// Hits per group, if hits are grouped by video.
    pub per_group: Option<usize>,
    /// Only spans that match.
    pub filter: Option<Filter>,
    /// What is left out.
    pub exclude: Exclude,
    /// How a composed query is fused.
    pub fusion: Fusion,
    /// Where to look.
    pub sources: Sources,
    /// Weights that the caller gave.
    pub weights: Weights,
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
    /// Whether subtitles alone may answer: the query has words, and the caller named neither a space nor pictures.
    pub fn may_use_subtitles_only(&self) -> bool {
        self.sources.spoken && self.space.is_none() && (self.sources.by_default || !self.sources.visual)
    }

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
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

/// Where to look; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Embeddings of pictures.
    pub visual: bool,
    /// Cues by their words, and passages by their meaning where a model for these is loaded.
    pub spoken: bool,
    /// Whether the caller left it open.
    pub by_default: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Weight of each source; none where it was not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Embeddings of pictures. 0 by default where the model's vocabulary misses over half of the query's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visual: Option<f32>,
    /// Subtitles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spoken: Option<f32>,
}

/// Where evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Embeddings of pictures.
    Visual,
    /// Subtitles.
    Spoken,
    /// The cosine with the full video's own vector, before its clips were looked at.
    FullVideo,
}

/// What one source says about a hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The source.
    pub source: Source,
    /// Its score; comparable within this source and answer only.
    pub score: f32,
    /// 1 is its best.
    pub rank: usize,
    /// The words, if it comes from subtitles.
    pub excerpt: Option<Excerpt>,
}

/// A stretch of subtitles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The words around, those of the query marked.
    pub snippet: Snippet,
    /// Start, in the video's time.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Whether it holds the query word for word, and the query is too long for chance.
    pub quoted: bool,
}

/// One match.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// 1 is best.
    pub rank: usize,
    /// Raw cosine, or fused ranks; comparable within one answer only.
    pub score: f32,
    /// What matched; its range grows where hits are merged.
    pub span: SpanWithVideo,
    /// What each source says, the visual one first.
    pub evidence: Vec<Evidence>,
    /// Where inside it the best is, if anything finer than the hit is known.
    pub peak_ms: Option<i64>,
    /// The hits that were joined into this one; empty if it is just itself.
    pub merged: Vec<Match>,
}

impl Match {
    /// A span with its score, without rank and evidence.
    pub fn new(score: f32, span: SpanWithVideo) -> Match {
        Match { rank: 0, score, span, evidence: Vec::new(), peak_ms: None, merged: Vec::new() }
    }
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
#[derive(Debug, Clone, PartialEq)]
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

/// The vectors of one input, as answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmbeddedWindow {
    /// First token.
    pub start_token: usize,
    /// Token after the last.
    pub end_token: usize,
    /// Norm 1.
    pub values: Vec<f32>,
}
