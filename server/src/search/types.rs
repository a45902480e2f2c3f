//! Search requests and answers, independent of the wire format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::timings::Timings;
use crate::catalog::{CueBox, Filter, MetadataField, SpanWithVideo};
use crate::subtitles::snippet::Snippet;
use crate::terms::{Aggregation, Level, QueryKind, SearchKind, SpanKey};

/// Largest number of hits or groups per page.
pub const MAX_LIMIT: usize = 1000;

/// A checked search request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The query.
    pub query: Query,
    /// Modification text: the change to the query clip.
    pub modification: Option<String>,
    /// Id or name of an embedding space. `None`: the active one.
    pub space: Option<String>,
    /// Levels of the answer.
    pub levels: Levels,
    /// Hits, or groups, per page.
    pub limit: usize,
    /// Hits per group, if hits are grouped by video.
    pub per_group: Option<usize>,
    /// Only spans that match the filter.
    pub filter: Option<Filter>,
    /// Hits to leave out.
    pub exclude: Exclude,
    /// Fusion of a composed query.
    pub fusion: Fusion,
    /// Sources to search.
    pub sources: Sources,
    /// Weights from the caller.
    pub weights: Weights,
    /// Handling of a text longer than the context.
    pub overflow: Overflow,
    /// Rule that turns the windows of a long text into one score.
    pub aggregation: Aggregation,
    /// Compare every vector instead of searching the graph.
    pub exact: bool,
    /// Treatment of overlapping hits.
    pub overlaps: Overlaps,
    /// Treatment of hits that show nearly the same picture.
    pub near_duplicates: NearDuplicates,
    /// How far hits are spread over what differs, over 0 to 1. `None`: they are ranked by score.
    pub diversity: Option<f32>,
    /// What hits are counted by.
    pub facets: Vec<Facet>,
    /// Leave out hits with a lower z in every source.
    pub min_z: Option<f32>,
    /// Merge adjacent hits.
    pub merge_adjacent: bool,
    /// Add details on the search to the answer.
    pub explain: bool,
}

impl Request {
    /// Whether subtitles alone may answer: the request searches them, and names neither a space nor the visual source.
    pub fn may_use_subtitles_only(&self) -> bool {
        self.sources.have_cues() && self.space.is_none() && (self.sources.by_default || !self.sources.visual)
    }

    /// The kind of search.
    pub fn kind(&self) -> SearchKind {
        match (&self.query, &self.modification) {
            (Query::Text(_), _) => SearchKind::Text,
            (Query::Examples(_), _) => SearchKind::Examples,
            (_, Some(_)) => SearchKind::Composed,
            (Query::Image(_), None) => SearchKind::Image,
            (_, None) => SearchKind::Clip,
        }
    }

    /// The kinds of query that its space must answer, each once.
    pub fn query_kinds(&self) -> Vec<QueryKind> {
        let examples = match &self.query {
            Query::Examples(examples) => examples,
            _ if self.modification.is_some() => return vec![QueryKind::Composed],
            one => return vec![one.kind()],
        };
        let kinds: BTreeSet<QueryKind> = examples.all().map(Query::kind).collect();
        kinds.into_iter().collect()
    }

    /// Whether the query is nothing but text.
    pub fn is_text(&self) -> bool {
        match &self.query {
            Query::Text(_) => true,
            Query::Examples(examples) => examples.all().all(|it| matches!(it, Query::Text(_))),
            _ => false,
        }
    }
}

/// A query.
#[derive(Debug, Clone)]
pub enum Query {
    /// A text of any length.
    Text(String),
    /// A time range of a stored video.
    Range {
        /// The video.
        video: Uuid,
        /// First millisecond, inclusive.
        start_ms: i64,
        /// Millisecond after the last.
        end_ms: i64,
    },
    /// A stored clip.
    Clip(Uuid),
    /// An uploaded file, or a time range of it.
    Upload {
        /// Path of the file.
        path: PathBuf,
        /// SHA-256 of the file.
        content_hash: String,
        /// First millisecond. `None`: 0.
        start_ms: Option<i64>,
        /// Millisecond after the last. `None`: the file's end.
        end_ms: Option<i64>,
    },
    /// A still image.
    Image(Image),
    /// Several examples, which have no examples in turn.
    Examples(Examples),
}

impl Query {
    /// The kind of query that a space must answer for one query without a modification.
    pub fn kind(&self) -> QueryKind {
        if matches!(self, Query::Text(_)) { QueryKind::Text } else { QueryKind::Clip }
    }

    /// Sets the file of its upload, if it has one.
    pub fn point_at(&mut self, file: &Path, hash: &str) {
        match self {
            Query::Upload { path, content_hash, .. } | Query::Image(Image::Upload { path, content_hash }) => {
                file.clone_into(path);
                hash.clone_into(content_hash);
            }
            Query::Examples(examples) => {
                examples.like.iter_mut().chain(&mut examples.unlike).for_each(|it| it.point_at(file, hash));
            }
            _ => {}
        }
    }
}

/// A still image. Encoders get it as a clip of one frame, which is repeated if the space samples more.
#[derive(Debug, Clone)]
pub enum Image {
    /// The frame that a stored video shows at a time.
    Stored {
        /// The video.
        video: Uuid,
        /// The time, in milliseconds.
        at_ms: i64,
    },
    /// An uploaded image.
    Upload {
        /// Path of the file.
        path: PathBuf,
        /// SHA-256 of the file.
        content_hash: String,
    },
}

/// Most examples of a query, positive and negative ones together.
pub const MAX_EXAMPLES: usize = 16;

/// Several examples as one query.
#[derive(Debug, Clone)]
pub struct Examples {
    /// Positive examples; at least one.
    pub like: Vec<Query>,
    /// Negative examples.
    pub unlike: Vec<Query>,
}

impl Examples {
    /// All examples, the positive ones first.
    pub fn all(&self) -> impl Iterator<Item = &Query> {
        self.like.iter().chain(&self.unlike)
    }
}

/// Levels of the answer.
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

/// Sources to search. At least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Embeddings of frames.
    pub visual: bool,
    /// Cues of speech by their words, and passages by their meaning if a passage model is loaded.
    pub spoken: bool,
    /// The same for text on screen.
    pub screen: bool,
    /// Whether the sources are the default.
    pub by_default: bool,
}

impl Sources {
    /// Whether cues are searched.
    pub fn have_cues(self) -> bool {
        self.spoken || self.screen
    }
}

/// Hits to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclude {
    /// Hits that overlap the time range of the query, or of an example, by more than half of the shorter of the two.
    pub itself: bool,
    /// All hits of the videos that the query or an example shows.
    pub same_video: bool,
}

/// Treatment of hits of one video that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Overlaps {
    /// One entry for all hits that show the same moment.
    #[default]
    Fold,
    /// An entry for each hit. Of moments that overlap, only the best is a hit.
    Keep,
}

/// Treatment of hits of any videos that show nearly the same picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum NearDuplicates {
    /// One entry for all of them.
    Fold,
    /// An entry for each.
    #[default]
    Keep,
}

/// What counts as a near duplicate in a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DuplicateBound {
    /// Least cosine of two near duplicates. `None`: the caller sees too few spans to know it, and nothing is folded.
    pub cosine: Option<f32>,
}

/// Fusion of clip and text of a composed query into one vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// `None`: the space's trained head if it has one, else the average.
    pub mode: Option<FusionMode>,
    /// Weight of the clip in the average, 0 to 1.
    pub alpha: f32,
}

impl Default for Fusion {
    fn default() -> Self {
        Fusion { mode: None, alpha: 0.5 }
    }
}

/// A fusion method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FusionMode {
    /// The space's trained head.
    Combiner,
    /// alpha * clip + (1 - alpha) * text, both of norm 1.
    Average,
}

/// A stored time range that the query shows. Needed to leave it out of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The stored video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// Millisecond after the last.
    pub end_ms: i64,
}

/// Facts about the encoded query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryInfo {
    /// Kind of search.
    pub kind: SearchKind,
    /// Tokens of the text.
    pub tokens_total: usize,
    /// Tokens that were encoded.
    pub tokens_used: usize,
    /// Windows of the text.
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

/// Weight of each source. `None`: the source was not searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Embeddings of frames. 0 by default if the model's vocabulary misses over half of the query's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visual: Option<f32>,
    /// Subtitles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spoken: Option<f32>,
    /// Text on screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<f32>,
}

/// Source of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Embeddings of frames.
    Visual,
    /// Subtitles.
    Spoken,
    /// Text on screen.
    Screen,
    /// Cosine with the full video's own vector, before late interaction.
    FullVideo,
}

/// Evidence of one source for a hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The source.
    pub source: Source,
    /// Score. Comparable within this source and answer only.
    pub score: f32,
    /// How far the score stands above the query's background in this source, in standard deviations. `None` without a
    /// background.
    pub z: Option<f32>,
    /// Rank within the source, from 1.
    pub rank: usize,
    /// The matching text, if it comes from subtitles or the screen.
    pub excerpt: Option<Excerpt>,
}

/// An excerpt of subtitles, or of text on screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    /// The text, with the query's words marked.
    pub snippet: Snippet,
    /// First millisecond in the video, inclusive.
    pub start_ms: i64,
    /// Millisecond after the last.
    pub end_ms: i64,
    /// Whether it contains the query word for word, and the query is too long for a chance match.
    pub quoted: bool,
    /// Where its first line stands on screen; `None` for subtitles, and for passages.
    pub region: Option<CueBox>,
}

/// One match.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// Rank, from 1. Folded matches have that of the one that stands for them.
    pub rank: usize,
    /// Raw cosine or fused score, of the best hit among this one and those folded into it. Comparable within one answer
    /// only.
    pub score: f32,
    /// The matching span. A merged hit has a longer range.
    pub span: SpanWithVideo,
    /// Evidence of each source, the visual one first.
    pub evidence: Vec<Evidence>,
    /// Whether the best span of an unrelated gallery would often score as high.
    pub weak: bool,
    /// Millisecond of the best frame, moment or clip inside the span. `None` if unknown.
    pub peak_ms: Option<i64>,
    /// The hits that were merged into this one. Empty if none were.
    pub merged: Vec<Match>,
    /// Overlapping hits that this one stands for, best first.
    pub folded: Vec<Match>,
    /// Hits of any video that this one stands for because they show nearly the same picture, best first.
    pub duplicates: Vec<Match>,
    /// Cosine with the best hit of the entry that this one was folded into as a near duplicate.
    pub similarity: Option<f32>,
    /// The moment among `folded` that shows best what this clip was found for.
    pub moment: Option<SpanKey>,
}

impl Match {
    /// A span with its score, without rank and evidence.
    pub fn new(score: f32, span: SpanWithVideo) -> Match {
        Match {
            rank: 0,
            score,
            span,
            evidence: Vec::new(),
            weak: false,
            peak_ms: None,
            merged: Vec::new(),
            folded: Vec::new(),
            duplicates: Vec::new(),
            similarity: None,
            moment: None,
        }
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

/// What hits are counted by.
#[derive(Debug, Clone, PartialEq)]
pub enum Facet {
    /// A field of the metadata.
    Field(MetadataField),
    /// The video.
    Video,
    /// The day in UTC on which the video was recorded.
    Day,
    /// The video's folder, and each folder above it.
    Folder,
    /// The video's tags.
    Tag,
}

/// The counts of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Facets {
    /// Number of hits that were counted.
    pub counted: usize,
    /// Whether these are all hits of the search.
    pub complete: bool,
    /// One for each facet, in order.
    pub facets: Vec<FacetCounts>,
}

/// The counts of one facet.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetCounts {
    /// What is counted.
    pub facet: Facet,
    /// The most frequent values, by number of hits, then of videos, then in order of the value.
    pub values: Vec<FacetValue>,
    /// Number of further values.
    pub other_values: usize,
    /// Hits of the further values. A hit with several of them counts for each.
    pub other_hits: usize,
    /// Hits without a value.
    pub missing: usize,
}

/// A value with its counts.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetValue {
    /// A text, number or boolean; the id of a video; a date.
    pub value: Value,
    /// The title of a video.
    pub title: Option<String>,
    /// Number of hits.
    pub hits: usize,
    /// Number of their videos.
    pub videos: usize,
}

/// One page of an answer.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Id of the search in the query log, the same on all pages. `None`: it is not logged.
    pub search_id: Option<Uuid>,
    /// Matches. Empty if they are grouped.
    pub results: Vec<Match>,
    /// Full videos beside clips, on the first page only.
    pub videos: Option<Vec<Match>>,
    /// Groups, if the request asked for them.
    pub groups: Option<Vec<Group>>,
    /// Cursor for the next page.
    pub next_cursor: Option<String>,
    /// Whether no more results follow.
    pub exhausted: bool,
    /// Facts about the encoded query.
    pub info: QueryInfo,
    /// What counted as a near duplicate, if they were folded.
    pub near_duplicates: Option<DuplicateBound>,
    /// Counts of the best hits, if the request asked for them; on the first page only.
    pub facets: Option<Facets>,
    /// The index that was searched.
    pub index: IndexInfo,
    /// Durations of the search.
    pub timings: Timings,
    /// Details on the search, if the request asked for them.
    pub explain: Option<Value>,
}

/// The index that was searched.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexInfo {
    /// The space's readable name.
    pub space: String,
    /// Generation of the index.
    pub generation: u64,
    /// Whether every allowed vector was compared.
    pub exact: bool,
    /// Live vectors at the level of `results`. Moments count as clips.
    pub live: u64,
    /// Number of committed changes that the index did not contain yet.
    pub behind: u64,
    /// Whether the engine stopped before it had found as many allowed vectors as were asked for.
    pub depth_limited: bool,
}

/// The vectors of one input, as an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Embedding {
    /// The space's readable name.
    pub space: String,
    /// One per text window; one for a clip. Norm 1.
    pub vectors: Vec<EmbeddedWindow>,
    /// Their mean direction, norm 1.
    pub vector: Vec<f32>,
    /// Norm of the raw vector, or of the mean of the windows' unit vectors.
    pub norm: f32,
    /// Facts about the encoded input.
    pub query_info: QueryInfo,
}

/// The unit vector of one text window. Both tokens are 0 for a clip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmbeddedWindow {
    /// First token, inclusive.
    pub start_token: usize,
    /// Token after the last.
    pub end_token: usize,
    /// Norm 1.
    pub values: Vec<f32>,
}
