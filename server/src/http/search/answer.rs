//! Wire format of a search's answer.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::html;
use super::names::{EvidenceSource, FusionModeName, QueryKindName};
use crate::search::{Evidence, Group, IndexInfo, Match, Outcome, QueryInfo, Timings, Weights};
use crate::terms::Level;

/// One page of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SearchAnswer {
    results: Vec<Hit>,
    /// Full videos beside clips: level `both`, first page.
    videos: Option<Vec<Hit>>,
    groups: Option<Vec<GroupOut>>,
    /// For the next page; null if there is none.
    next_cursor: Option<String>,
    /// Whether nothing matches beyond this page.
    exhausted: bool,
    query_info: QueryInfoOut,
    index: IndexInfoOut,
    timings_ms: TimingsOut,
    /// How the answer was found, if `explain` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    explain: Option<Value>,
}

impl From<Outcome> for SearchAnswer {
    fn from(outcome: Outcome) -> SearchAnswer {
        let hits = |matches: Vec<Match>| matches.into_iter().map(Hit::from).collect();
        SearchAnswer {
            results: hits(outcome.results),
            videos: outcome.videos.map(hits),
            groups: outcome.groups.map(|groups| groups.into_iter().map(GroupOut::from).collect()),
            next_cursor: outcome.next_cursor,
            exhausted: outcome.exhausted,
            query_info: outcome.info.into(),
            index: outcome.index.into(),
            timings_ms: outcome.timings.into(),
            explain: outcome.explain,
        }
    }
}

/// One match.
#[derive(Debug, Serialize, ToSchema)]
struct Hit {
    rank: usize,
    /// Raw cosine, or fused ranks where several sources were searched: comparable within one answer only.
    score: f32,
    #[schema(value_type = String)]
    level: Level,
    clip_id: Uuid,
    video_id: Uuid,
    title: String,
    start: f64,
    end: f64,
    /// Where inside the hit the best is; null where nothing finer than the hit is known.
    peak: Option<f64>,
    evidence: Vec<EvidenceOut>,
    thumbnail_url: String,
    media_url: String,
    page_url: String,
    /// The video's metadata, overlaid by a given clip's own.
    #[schema(value_type = Object)]
    metadata: Value,
    /// The hits that were joined into this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    merged: Vec<Hit>,
}

impl From<Match> for Hit {
    fn from(found: Match) -> Hit {
        let span = &found.span.span;
        let (start, end) = (seconds(span.start_ms), seconds(span.end_ms));
        let offset = seconds(found.span.media_offset_ms);
        let spoken = found.evidence.iter().find_map(|it| it.excerpt.as_ref().map(|it| it.start_ms));
        let opens_at = spoken.or(found.peak_ms).unwrap_or(span.start_ms);
        Hit {
            rank: found.rank,
            score: found.score,
            level: span.level,
            clip_id: span.id,
            video_id: span.video,
            start,
            end,
            peak: found.peak_ms.map(seconds),
            evidence: found.evidence.into_iter().map(EvidenceOut::from).collect(),
            thumbnail_url: format!("/v1/clips/{}/thumbnail", span.id),
            media_url: format!("/v1/videos/{}/media#t={:.3},{:.3}", span.video, start + offset, end + offset),
            page_url: format!("/v/{}?t={:.3}", span.video, (seconds(opens_at) - 1.0).max(0.0)),
            metadata: overlaid(&found.span.video_metadata, &span.metadata),
            title: found.span.title,
            merged: found.merged.into_iter().map(Hit::from).collect(),
        }
    }
}

/// What one source says about a hit.
#[derive(Debug, Serialize, ToSchema)]
struct EvidenceOut {
    source: EvidenceSource,
    /// Comparable within this source and answer only.
    score: f32,
    rank: usize,
    /// What is said: HTML, escaped, the query's words in `<mark>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// When it is said, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<f64>,
}

impl From<Evidence> for EvidenceOut {
    fn from(evidence: Evidence) -> EvidenceOut {
        let Evidence { source, score, rank, excerpt } = evidence;
        let times = excerpt.as_ref().map(|it| (seconds(it.start_ms), seconds(it.end_ms)));
        let (start, end) = (times.map(|it| it.0), times.map(|it| it.1));
        EvidenceOut {
            source: source.into(),
            score,
            rank,
            text: excerpt.map(|it| html::marked(&it.snippet)),
            start,
            end,
        }
    }
}

/// The best hits of one video.
#[derive(Debug, Serialize, ToSchema)]
struct GroupOut {
    video_id: Uuid,
    score: f32,
    results: Vec<Hit>,
}

impl From<Group> for GroupOut {
    fn from(group: Group) -> GroupOut {
        let results = group.matches.into_iter().map(Hit::from).collect();
        GroupOut { video_id: group.video, score: group.score, results }
    }
}

/// What the query was made of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueryInfo)]
pub(in crate::http) struct QueryInfoOut {
    /// Kind of query.
    kind: QueryKindName,
    /// Tokens of the text.
    tokens_total: usize,
    /// Tokens that were encoded.
    tokens_used: usize,
    /// Windows that the text was cut into.
    windows: usize,
    /// Whether tokens were cut off.
    truncated: bool,
    /// Frames that were encoded.
    frames: usize,
    /// `combiner` or `average` for a composed query.
    fusion: Option<FusionModeName>,
    /// Weight of each source in the ranking.
    weights: WeightsOut,
}

impl From<QueryInfo> for QueryInfoOut {
    fn from(info: QueryInfo) -> QueryInfoOut {
        QueryInfoOut {
            kind: info.kind.into(),
            tokens_total: info.tokens_total,
            tokens_used: info.tokens_used,
            windows: info.windows,
            truncated: info.truncated,
            frames: info.frames,
            fusion: info.fusion.map(FusionModeName::from),
            weights: info.weights.into(),
        }
    }
}

/// Weight of each source; none where it was not looked at.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Weights)]
struct WeightsOut {
    /// Embeddings of what is seen. 0 by default where the model's vocabulary misses over half of the query's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    visual: Option<f32>,
    /// Cues of what is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    spoken: Option<f32>,
}

impl From<Weights> for WeightsOut {
    fn from(weights: Weights) -> WeightsOut {
        WeightsOut { visual: weights.visual, spoken: weights.spoken }
    }
}

/// Which index answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IndexInfo)]
struct IndexInfoOut {
    /// The space's readable name.
    space: String,
    /// Generation of the index.
    generation: u64,
    /// Whether every matching vector was compared.
    exact: bool,
    /// Vectors at the level of `results`.
    live: u64,
}

impl From<IndexInfo> for IndexInfoOut {
    fn from(info: IndexInfo) -> IndexInfoOut {
        let IndexInfo { space, generation, exact, live } = info;
        IndexInfoOut { space, generation, exact, live }
    }
}

/// How long the parts took, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timings)]
struct TimingsOut {
    /// Reading pictures.
    decode: f64,
    /// Waiting for and running the encoder.
    encode: f64,
    /// The index.
    search: f64,
    /// The database.
    catalog: f64,
    /// All of it.
    total: f64,
}

impl From<Timings> for TimingsOut {
    fn from(timings: Timings) -> TimingsOut {
        TimingsOut {
            decode: timings.decode_ms,
            encode: timings.encode_ms,
            search: timings.search_ms,
            catalog: timings.catalog_ms,
            total: timings.total_ms,
        }
    }
}

/// Converts milliseconds to the API's seconds.
pub(in crate::http) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// `below`, with the fields of `above` added or replaced.
fn overlaid(below: &Value, above: &Value) -> Value {
    let mut all = below.as_object().cloned().unwrap_or_default();
    all.extend(above.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}
