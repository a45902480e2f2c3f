//! The query log: searches, what they showed, and what was done with it.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::terms::{Level, SearchKind};

/// Longest text that the query log keeps, in characters. The hash is of all of it.
pub const LONGEST_LOGGED_TEXT: usize = 4000;

/// One page of an answer, to log.
#[derive(Debug, Clone)]
pub struct NewSearchPage {
    /// The search's id, the same for all its pages.
    pub search: Uuid,
    /// The search, with its first page. `None`: a later page.
    pub first: Option<Box<NewSearch>>,
    /// The hits of this page.
    pub hits: Vec<SearchHit>,
    /// Number of entries on this page and all before.
    pub shown: i64,
    /// Whether no more entries follow.
    pub exhausted: bool,
}

/// A search to log.
#[derive(Debug, Clone)]
pub struct NewSearch {
    /// The moment of its answer.
    pub answered: Instant,
    /// The search.
    pub search: SearchFacts,
}

/// What the log holds of a search, beside its hits.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchFacts {
    /// The caller's API key; `None` for the server's own key, and for a server without keys.
    pub key: Option<Uuid>,
    /// The key's name at that time.
    pub key_name: Option<String>,
    /// Kind of query.
    pub kind: SearchKind,
    /// The space's readable name.
    pub space: String,
    /// The query.
    pub query: LoggedQuery,
    /// Number of vectors that could be found.
    pub live: i64,
    /// Durations of the first page.
    pub times: SearchTimes,
}

/// A query as the log holds it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedQuery {
    /// Its text, or the change to a clip.
    pub text: Option<String>,
    /// Keyed hash of all of it, in hex digits. Equal queries have equal hashes.
    pub hash: String,
    /// The stored clip.
    pub clip: Option<Uuid>,
    /// The stored video.
    pub video: Option<Uuid>,
    /// First millisecond in the video or upload, inclusive.
    pub start_ms: Option<i64>,
    /// Millisecond after the last.
    pub end_ms: Option<i64>,
    /// Whether it was an uploaded file.
    pub uploaded: bool,
    /// Several examples.
    pub examples: Option<LoggedExamples>,
    /// The filter, JSON.
    pub filter: Option<Value>,
    /// Whether there was a filter.
    pub filtered: bool,
}

/// The examples of a search for more like some and less like others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoggedExamples {
    /// Those to be like.
    pub like: Vec<LoggedExample>,
    /// Those not to be like.
    pub unlike: Vec<LoggedExample>,
}

/// An example as the log holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoggedExample {
    /// Its text.
    pub text: Option<String>,
    /// The stored clip.
    pub clip: Option<Uuid>,
    /// The stored video.
    pub video: Option<Uuid>,
    /// First millisecond in the video or upload, inclusive.
    pub start_ms: Option<i64>,
    /// Millisecond after the last.
    pub end_ms: Option<i64>,
    /// Whether it was an uploaded file.
    pub uploaded: bool,
}

/// Durations of a search, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SearchTimes {
    /// Decoding of frames.
    pub decode: f64,
    /// Waiting for and running the encoder.
    pub encode: f64,
    /// Search in the vector index.
    pub search: f64,
    /// Queries to the catalog.
    pub catalog: f64,
    /// The whole search.
    pub total: f64,
}

/// A hit that a search showed.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// Rank, from 1.
    pub rank: i64,
    /// Id of the span.
    pub span: Uuid,
    /// Id of its video.
    pub video: Uuid,
    /// Level of the span.
    pub level: Level,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// Millisecond after the last.
    pub end_ms: i64,
    /// Whether it was shown inside another hit, folded or merged.
    pub inside: bool,
    /// Raw cosine or fused score. Comparable within one search only.
    pub score: f64,
    /// What the frames' embeddings found.
    pub visual: Option<SourceScore>,
    /// What the subtitles found.
    pub spoken: Option<SourceScore>,
    /// What the text on screen found.
    pub screen: Option<SourceScore>,
    /// What the full video's own vector found.
    pub full_video: Option<SourceScore>,
}

/// A source's score for a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceScore {
    /// Comparable within this source and search only.
    pub score: f64,
    /// Rank within the source, from 1.
    pub rank: i64,
    /// How far the score stands above the background of this query. `None` where the search computed none.
    pub z: Option<f64>,
}

/// A search of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedSearch {
    /// uuid v7.
    pub id: Uuid,
    /// Time of its answer, in Unix milliseconds.
    pub at_ms: i64,
    /// The search.
    pub facts: SearchFacts,
    /// Number of entries on the pages so far.
    pub shown: i64,
    /// Whether no more entries followed.
    pub exhausted: bool,
    /// Its hits by rank, as far as they were asked for.
    pub hits: Vec<JudgedHit>,
}

/// A hit, and what was done with it.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedHit {
    /// The hit.
    pub hit: SearchHit,
    /// What was done with it, the first first.
    pub feedback: Vec<Verdict>,
}

/// What a caller did with a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Opened it.
    Opened,
    /// Found it relevant.
    Relevant,
    /// Found it not relevant.
    NotRelevant,
    /// Exported it.
    Exported,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Verdict; 4] =
        [Verdict::Opened, Verdict::Relevant, Verdict::NotRelevant, Verdict::Exported];

    /// Its name: `opened`, `relevant`, `not_relevant` or `exported`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Opened => "opened",
            Verdict::Relevant => "relevant",
            Verdict::NotRelevant => "not_relevant",
            Verdict::Exported => "exported",
        }
    }

    /// The verdict that this one takes back.
    pub fn opposite(self) -> Option<Verdict> {
        match self {
            Verdict::Relevant => Some(Verdict::NotRelevant),
            Verdict::NotRelevant => Some(Verdict::Relevant),
            Verdict::Opened | Verdict::Exported => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Verdict {
    type Err = String;

    fn from_str(text: &str) -> Result<Verdict, String> {
        let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == text);
        found.ok_or_else(|| format!("{text:?} is no verdict"))
    }
}

/// Whose searches a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchesOf {
    /// Everybody's.
    Everybody,
    /// Those of this API key.
    Key(Uuid),
}

/// Which searches to list, newest first.
#[derive(Debug, Clone)]
pub struct SearchesAsked {
    /// Whose.
    pub of: SearchesOf,
    /// Only searches older than this one.
    pub before: Option<Uuid>,
    /// Most searches.
    pub limit: u32,
    /// Answered at this time or later, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Answered before this time, in Unix milliseconds.
    pub until_ms: Option<i64>,
    /// Of this kind.
    pub kind: Option<SearchKind>,
    /// In the space with this readable name.
    pub space: Option<String>,
    /// With this API key.
    pub key: Option<Uuid>,
    /// Without any result, or with one.
    pub without_results: Option<bool>,
}

/// Feedback on a hit.
#[derive(Debug, Clone)]
pub struct NewFeedback {
    /// The search.
    pub search: Uuid,
    /// The hit's span.
    pub span: Uuid,
    /// What was done with it.
    pub verdict: Verdict,
    /// The caller's API key.
    pub key: Option<Uuid>,
    /// The key's name.
    pub key_name: Option<String>,
}

/// How feedback ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackTaken {
    /// It is stored.
    Stored,
    /// The caller sees no such search.
    NoSearch,
    /// The search did not show the caller such a hit, or the log does not hold it.
    NoHit,
}

/// Feedback with its search and hit, to export.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedSearch {
    /// The search.
    pub search: Uuid,
    /// Time of the feedback, in Unix milliseconds.
    pub at_ms: i64,
    /// What was done with the hit.
    pub verdict: Verdict,
    /// Name of the API key.
    pub key_name: Option<String>,
    /// Kind of query.
    pub kind: SearchKind,
    /// The space's readable name.
    pub space: String,
    /// The query.
    pub query: LoggedQuery,
    /// The query's video, unless it was deleted.
    pub query_file: Option<VideoFile>,
    /// The hit.
    pub hit: SearchHit,
    /// The hit's video.
    pub hit_file: VideoFile,
    /// Title of the hit's video.
    pub hit_title: String,
}

/// The file of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoFile {
    /// Name in the data folder, or absolute path.
    pub file: String,
    /// The name that it had when it was added.
    pub file_name: String,
}
