//! Wire format of a search's answer.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::names::{BoxOut, LevelName};
use super::facets::FacetsOut;
use super::html;
use super::names::{EvidenceSource, FusionModeName, SearchKindName};
use crate::catalog::SearchTimes;
use crate::search::{
    DuplicateBound, Evidence, Group, IndexInfo, Match, Outcome, QueryInfo, Timings, Weights,
};
use crate::terms::Level;

/// One page of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SearchAnswer {
    /// Id of the search in the query log, the same on all pages. Null if the server keeps no log.
    search_id: Option<Uuid>,
    /// The hits, best first. Empty if the request set `group_by`.
    results: Vec<Hit>,
    /// Full videos. Only for the level `both`, on the first page.
    videos: Option<Vec<Hit>>,
    /// The hits by video, best group first. Only if the request set `group_by`.
    groups: Option<Vec<GroupOut>>,
    /// Cursor for the next page; null if there is none.
    next_cursor: Option<String>,
    /// Whether no more results follow.
    exhausted: bool,
    /// What counted as a near duplicate. Null unless the request folds them.
    near_duplicates: Option<DuplicateBoundOut>,
    /// Counts of the best hits. Null on later pages, and unless the request has facets.
    facets: Option<FacetsOut>,
    /// Facts about the encoded query.
    query_info: QueryInfoOut,
    /// The index that was searched.
    index: IndexInfoOut,
    /// Durations of the parts of the search, in milliseconds.
    timings_ms: TimingsOut,
    /// Details of the ranking, if the request set `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = HashMap<String, Value>)]
    explain: Option<Value>,
}

impl From<Outcome> for SearchAnswer {
    fn from(outcome: Outcome) -> SearchAnswer {
        let hits = |matches: Vec<Match>| matches.into_iter().map(Hit::from).collect();
        SearchAnswer {
            search_id: outcome.search_id,
            results: hits(outcome.results),
            videos: outcome.videos.map(hits),
            groups: outcome.groups.map(|groups| groups.into_iter().map(GroupOut::from).collect()),
            next_cursor: outcome.next_cursor,
            exhausted: outcome.exhausted,
            near_duplicates: outcome.near_duplicates.map(DuplicateBoundOut::from),
            facets: outcome.facets.map(FacetsOut::from),
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
    /// Place in the ranking, from 1.
    #[schema(minimum = 1)]
    rank: usize,
    /// Raw cosine, or the fused score of several sources. Comparable within one answer only.
    score: f32,
    /// Whether the best span of an unrelated gallery would often score as high. False if no source has a `z`.
    weak: bool,
    /// Level of the span.
    #[schema(value_type = LevelName)]
    level: Level,
    /// Id of the span: of a clip, a moment or the full video.
    clip_id: Uuid,
    /// Id of its video.
    video_id: Uuid,
    /// The video's title.
    title: String,
    /// Start, in seconds of the video.
    #[schema(minimum = 0)]
    start: f64,
    /// End, in seconds of the video, exclusive.
    #[schema(minimum = 0)]
    end: f64,
    /// Time of the best frame, moment or clip inside the hit, in seconds. Null if unknown.
    #[schema(minimum = 0)]
    peak: Option<f64>,
    /// What each source found.
    evidence: Vec<EvidenceOut>,
    /// Path of a JPEG of the frame in the middle.
    thumbnail_url: String,
    /// Path of the video's file, with the hit's times on the file's clock as a media fragment.
    media_url: String,
    /// Path of the page that plays the hit.
    page_url: String,
    /// The video's metadata. The fields of a user's clip replace those of the same name.
    #[schema(value_type = HashMap<String, Value>)]
    metadata: Value,
    /// The adjacent hits that were merged into this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    merged: Vec<Hit>,
    /// The hits that this one stands for: at most 20 that overlap it, best first, then at most 20 near duplicates from any
    /// video, best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion, max_items = 40)]
    folded: Vec<Hit>,
    /// Cosine of a near duplicate with the best of the hits that it was folded into, -1 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -1, maximum = 1)]
    similarity: Option<f32>,
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
            weak: found.weak,
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
            folded: found.folded.into_iter().chain(found.duplicates).map(Hit::from).collect(),
            similarity: found.similarity,
        }
    }
}

/// What counts as a near duplicate.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DuplicateBound)]
struct DuplicateBoundOut {
    /// Least cosine of two near duplicates among the results, 0.9 to 0.995. It is measured from up to 1,000 spans of the space
    /// that the caller may see, and stays the same on all pages. Null if they are fewer than 50: then nothing is folded.
    #[schema(minimum = 0.9, maximum = 0.995)]
    min_similarity: Option<f32>,
}

impl From<DuplicateBound> for DuplicateBoundOut {
    fn from(bound: DuplicateBound) -> DuplicateBoundOut {
        DuplicateBoundOut { min_similarity: bound.cosine }
    }
}

/// Evidence of one source for a hit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Evidence)]
struct EvidenceOut {
    /// The source.
    source: EvidenceSource,
    /// Raw cosine, or the score of the matching text. Comparable within this source and answer only.
    score: f32,
    /// How far the score stands above the background of this query in this source, in standard deviations of the logarithm of
    /// the distance, 1 - score. The background is the query's scores over up to 1,000 stored spans that the caller may see,
    /// without the best ones. Null if the caller sees fewer than 50 spans, and for subtitles that match by their words alone.
    z: Option<f32>,
    /// Place in the source's own ranking, from 1.
    rank: usize,
    /// The matching text of subtitles or the screen as escaped HTML, with the query's words in `<mark>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Start of the matching text, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    start: Option<f64>,
    /// End of the matching text, in seconds, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    end: Option<f64>,
    /// Where the matching text stands on screen, if it is a line of the screen.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    region: Option<BoxOut>,
}

impl From<Evidence> for EvidenceOut {
    fn from(evidence: Evidence) -> EvidenceOut {
        let Evidence { source, score, z, rank, excerpt } = evidence;
        let times = excerpt.as_ref().map(|it| (seconds(it.start_ms), seconds(it.end_ms)));
        let (start, end) = (times.map(|it| it.0), times.map(|it| it.1));
        EvidenceOut {
            source: source.into(),
            score,
            z,
            rank,
            region: excerpt.as_ref().and_then(|it| it.region).map(BoxOut::from),
            text: excerpt.map(|it| html::marked(&it.snippet)),
            start,
            end,
        }
    }
}

/// The best hits of one video.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Group)]
struct GroupOut {
    /// Id of the video.
    video_id: Uuid,
    /// Score of its best hit: a raw cosine, or the fused score of several sources. Comparable within one answer only.
    score: f32,
    /// Its best hits, at most `per_group`.
    results: Vec<Hit>,
}

impl From<Group> for GroupOut {
    fn from(group: Group) -> GroupOut {
        let results = group.matches.into_iter().map(Hit::from).collect();
        GroupOut { video_id: group.video, score: group.score, results }
    }
}

/// Facts about the encoded query.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueryInfo)]
pub(in crate::http) struct QueryInfoOut {
    /// Kind of search.
    kind: SearchKindName,
    /// Number of tokens of the text.
    tokens_total: usize,
    /// Number of encoded tokens.
    tokens_used: usize,
    /// Number of windows of the text.
    windows: usize,
    /// Whether tokens were cut off.
    truncated: bool,
    /// Number of encoded frames. 0 where a stored vector replaced them.
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

/// Weight of each source. Absent if the source was not searched.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SourceWeights)]
struct WeightsOut {
    /// Weight of the frames' embeddings. Default 0 if the model's vocabulary lacks over half of the query's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    visual: Option<f32>,
    /// Weight of the subtitles.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    spoken: Option<f32>,
    /// Weight of the text on screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    screen: Option<f32>,
}

impl From<Weights> for WeightsOut {
    fn from(weights: Weights) -> WeightsOut {
        WeightsOut { visual: weights.visual, spoken: weights.spoken, screen: weights.screen }
    }
}

/// The index that was searched.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IndexInfo)]
struct IndexInfoOut {
    /// The space's readable name.
    space: String,
    /// Number of the generation of the index.
    generation: u64,
    /// Whether every matching vector was compared.
    exact: bool,
    /// Number of searchable vectors at the level of `results`. Moments count as clips.
    live: u64,
    /// Number of committed changes that the answer does not include: the vector engine has not applied them yet.
    /// 0: the answer includes everything that was committed before the request.
    behind: u64,
    /// Whether the vector engine stopped at its own limits before it had found as many matching vectors as were asked
    /// for, e.g. under a narrow filter. Then more may match than the pages show.
    depth_limited: bool,
}

impl From<IndexInfo> for IndexInfoOut {
    fn from(info: IndexInfo) -> IndexInfoOut {
        let IndexInfo { space, generation, exact, live, behind, depth_limited } = info;
        IndexInfoOut { space, generation, exact, live, behind, depth_limited }
    }
}

/// Durations of the parts of a search, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timings)]
pub(in crate::http) struct TimingsOut {
    /// Decoding frames of the query's video, in milliseconds.
    #[schema(minimum = 0)]
    decode: f64,
    /// Encoding the query, with the wait for a worker, in milliseconds.
    #[schema(minimum = 0)]
    encode: f64,
    /// Searching the index, in milliseconds.
    #[schema(minimum = 0)]
    search: f64,
    /// Reading the catalog, in milliseconds.
    #[schema(minimum = 0)]
    catalog: f64,
    /// The whole search, in milliseconds.
    #[schema(minimum = 0)]
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

impl From<SearchTimes> for TimingsOut {
    fn from(times: SearchTimes) -> TimingsOut {
        let SearchTimes { decode, encode, search, catalog, total } = times;
        TimingsOut { decode, encode, search, catalog, total }
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
