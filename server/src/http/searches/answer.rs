//! Wire format of logged searches.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::names::{LevelName, VerdictName};
use super::super::search::{EvidenceSource, SearchKindName, TimingsOut, seconds};
use crate::catalog::{
    JudgedHit, LoggedExample, LoggedExamples, LoggedQuery, LoggedSearch, SourceScore, Verdict,
};
use crate::search::Source;
use crate::terms::Level;

/// One page of searches.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SearchPage {
    /// The searches, at most `limit`.
    pub(super) items: Vec<SearchEntry>,
    /// Cursor of the next page. Null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// A search of the query log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedSearch)]
pub(super) struct SearchEntry {
    /// The `search_id` of its answer, a uuid v7.
    id: Uuid,
    /// Time of its answer (RFC 3339).
    at: String,
    /// Kind of query.
    kind: SearchKindName,
    /// The space's readable name.
    space: String,
    /// The query.
    query: LoggedQueryOut,
    /// The filter; null if there was none. A log with hashes, and one whose filter is over 16 KiB, has null for each value.
    #[schema(value_type = Option<HashMap<String, Value>>)]
    filter: Option<Value>,
    /// Id of the API key. Null for the server's own key, and on a server without keys.
    key_id: Option<Uuid>,
    /// The key's name at that time. Null without a key.
    key_name: Option<String>,
    /// Number of hits, or groups, on the pages that were asked for.
    #[schema(minimum = 0)]
    shown: i64,
    /// Whether no more followed.
    exhausted: bool,
    /// Number of searchable vectors at the level of the results.
    #[schema(minimum = 0)]
    live: i64,
    /// Durations of the parts of the first page, in milliseconds.
    timings_ms: TimingsOut,
    /// The hits by rank, from all pages that were asked for. A list has the first ten, without hits inside others.
    hits: Vec<LoggedHit>,
}

impl From<LoggedSearch> for SearchEntry {
    fn from(search: LoggedSearch) -> SearchEntry {
        let facts = search.facts;
        SearchEntry {
            id: search.id,
            at: super::super::instant(search.at_ms),
            kind: facts.kind.into(),
            space: facts.space,
            filter: facts.query.filter.clone(),
            query: facts.query.into(),
            key_id: facts.key,
            key_name: facts.key_name,
            shown: search.shown,
            exhausted: search.exhausted,
            live: facts.live,
            timings_ms: facts.times.into(),
            hits: search.hits.into_iter().map(LoggedHit::from).collect(),
        }
    }
}

/// A query in the log. A log with hashes has `hash` and `uploaded` only.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedQuery)]
struct LoggedQueryOut {
    /// The text, or the change to a clip; the first 4000 characters. Null if there was none.
    text: Option<String>,
    /// Hash of all of the query, 32 hex digits. Equal queries have equal hashes; case and white space do not count.
    hash: String,
    /// Id of the stored clip. Null for another query.
    clip_id: Option<Uuid>,
    /// Id of the stored video, also of one that holds the uploaded file. Null for another query.
    video_id: Option<Uuid>,
    /// Start in the video or upload, in seconds. Null if it has none.
    #[schema(minimum = 0)]
    start: Option<f64>,
    /// End in the video or upload, in seconds, exclusive. Null if it has none.
    #[schema(minimum = 0)]
    end: Option<f64>,
    /// Whether the query was an uploaded file.
    uploaded: bool,
    /// The examples of a search by several. Null for another query.
    examples: Option<LoggedExamplesOut>,
}

/// Examples in the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedExamples)]
struct LoggedExamplesOut {
    /// Those to be like.
    #[schema(min_items = 1, max_items = 16)]
    like: Vec<LoggedExampleOut>,
    /// Those not to be like.
    #[schema(max_items = 15)]
    unlike: Vec<LoggedExampleOut>,
}

/// An example in the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedExample)]
struct LoggedExampleOut {
    /// The text; of a search's examples together the first 4000 characters, evenly divided. Null for another example.
    text: Option<String>,
    /// Id of the stored clip. Null for another example.
    clip_id: Option<Uuid>,
    /// Id of the stored video. Null for another example.
    video_id: Option<Uuid>,
    /// Start in the video or upload, in seconds. Null if it has none.
    #[schema(minimum = 0)]
    start: Option<f64>,
    /// End in the video or upload, in seconds, exclusive. Null if it has none.
    #[schema(minimum = 0)]
    end: Option<f64>,
    /// Whether the example was an uploaded file.
    uploaded: bool,
}

impl From<LoggedExamples> for LoggedExamplesOut {
    fn from(examples: LoggedExamples) -> LoggedExamplesOut {
        let one = |example: LoggedExample| LoggedExampleOut {
            text: example.text,
            clip_id: example.clip,
            video_id: example.video,
            start: example.start_ms.map(seconds),
            end: example.end_ms.map(seconds),
            uploaded: example.uploaded,
        };
        let side = |side: Vec<LoggedExample>| side.into_iter().map(one).collect();
        LoggedExamplesOut { like: side(examples.like), unlike: side(examples.unlike) }
    }
}

impl From<LoggedQuery> for LoggedQueryOut {
    fn from(query: LoggedQuery) -> LoggedQueryOut {
        LoggedQueryOut {
            text: query.text,
            hash: query.hash,
            clip_id: query.clip,
            video_id: query.video,
            start: query.start_ms.map(seconds),
            end: query.end_ms.map(seconds),
            uploaded: query.uploaded,
            examples: query.examples.map(LoggedExamplesOut::from),
        }
    }
}

/// A hit of a logged search.
#[derive(Debug, Serialize, ToSchema)]
struct LoggedHit {
    /// Place in the ranking, from 1.
    #[schema(minimum = 1)]
    rank: i64,
    /// Raw cosine, or the fused score of several sources. Comparable within one search only.
    score: f64,
    /// Level of the span.
    #[schema(value_type = LevelName)]
    level: Level,
    /// Id of the span: of a clip, a moment or the full video.
    clip_id: Uuid,
    /// Id of its video.
    video_id: Uuid,
    /// Start, in seconds of the video.
    #[schema(minimum = 0)]
    start: f64,
    /// End, in seconds of the video, exclusive.
    #[schema(minimum = 0)]
    end: f64,
    /// Whether it was shown inside another hit, as `folded` or `merged`.
    inside: bool,
    /// What each source found.
    evidence: Vec<LoggedEvidence>,
    /// What was done with it, the first first.
    #[schema(value_type = Vec<VerdictName>)]
    feedback: Vec<Verdict>,
}

impl From<JudgedHit> for LoggedHit {
    fn from(judged: JudgedHit) -> LoggedHit {
        let hit = judged.hit;
        let sources = [
            (Source::Visual, hit.visual),
            (Source::Spoken, hit.spoken),
            (Source::Screen, hit.screen),
            (Source::FullVideo, hit.full_video),
        ];
        let evidence =
            sources.into_iter().filter_map(|(source, score)| Some(LoggedEvidence::new(source, score?)));
        LoggedHit {
            rank: hit.rank,
            score: hit.score,
            level: hit.level,
            clip_id: hit.span,
            video_id: hit.video,
            start: seconds(hit.start_ms),
            end: seconds(hit.end_ms),
            inside: hit.inside,
            evidence: evidence.collect(),
            feedback: judged.feedback,
        }
    }
}

/// Evidence of one source for a logged hit.
#[derive(Debug, Serialize, ToSchema)]
struct LoggedEvidence {
    /// The source.
    source: EvidenceSource,
    /// Raw cosine, or the score of the matching text. Comparable within this source and search only.
    score: f64,
    /// Place in the source's own ranking, from 1.
    #[schema(minimum = 1)]
    rank: i64,
    /// How far the score stands above the background of this query, in standard deviations. Null where the search computed
    /// none.
    z: Option<f64>,
}

impl LoggedEvidence {
    fn new(source: Source, found: SourceScore) -> LoggedEvidence {
        LoggedEvidence { source: source.into(), score: found.score, rank: found.rank, z: found.z }
    }
}
