//! Wire format of a search request, and its checks.

use reprise_encoders::text::Overflow;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::error::ApiError;
use super::facets::{self, FacetBody, FacetForms};
use super::forms::{FilterForms, NextPage, QueryForms};
use super::names::{
    AggregationName, FusionModeName, LevelsName, NearDuplicatesName, OverflowName, OverlapsName,
};
use super::query::{Carrier, QueryBody};
use crate::catalog::Filter;
use crate::search::{
    Exclude, Fusion, FusionMode, MAX_LIMIT, NearDuplicates, Overlaps, Query, Request, Sources, Weights,
};
use crate::terms::Aggregation;

/// A search.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Search, title = "Search")]
pub(in crate::http) struct SearchBody {
    /// The query.
    #[schema(value_type = QueryForms, required = true)]
    query: Option<QueryBody>,
    /// A space's id or readable name. Default: the active space for the query's kind.
    space: Option<String>,
    /// Level of the results. Default `clip`.
    level: Option<LevelsName>,
    /// Hits or groups per page, 1 to 1000; default 20.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `video`: the answer has `groups`, one per video, instead of `results`.
    group_by: Option<GroupBy>,
    /// Hits per group, 1 to 1000; default 3. Needs `group_by`.
    #[schema(minimum = 1, maximum = 1000)]
    per_group: Option<usize>,
    /// Finds only videos and clips that match.
    #[schema(value_type = Option<FilterForms>)]
    filter: Option<Value>,
    /// Hits to leave out.
    exclude: Option<ExcludeBody>,
    /// Fusion of a composed query, and weights of the sources.
    fusion: Option<FusionBody>,
    /// Sources to search: `visual` (embeddings of frames), `spoken` (subtitles) and `screen` (text on screen). `spoken` and
    /// `screen` need a text or a modification. Default: all for a text, `visual` for clips and composed queries.
    #[schema(min_items = 1)]
    sources: Option<Vec<SourceName>>,
    /// Treatment of a text over the model's token limit. Default `window`.
    on_overflow: Option<OverflowName>,
    /// Aggregation of a long text's windows into one score. Default `coverage`.
    aggregation: Option<AggregationName>,
    /// Whether to compare every vector instead of walking a graph.
    #[serde(default)]
    exact: bool,
    /// Hits of one video that overlap. `fold` (default): one hit stands for all that show the same moment, and has the others
    /// as `folded`. `keep`: each is a hit.
    overlaps: Option<OverlapsName>,
    /// Hits of any videos that show nearly the same picture, such as a slide that is shown again. `fold`: one hit stands for
    /// all of them, and has the others as `folded` with their `similarity`. `keep` (default): each is a hit. Of the best
    /// 2000 hits those are folded whose cosine reaches the space's bound, which the answer tells. With `group_by` only hits
    /// of the same video are folded.
    near_duplicates: Option<NearDuplicatesName>,
    /// Spreads the best hits over what differs (maximal marginal relevance), 0 to 1: 0 (default) ranks by score alone, 1 by
    /// unlikeness alone. The best 10 times `limit` hits, 100 to 1000, are reordered; deeper ones follow by score. A
    /// grouped search takes none.
    #[schema(minimum = 0, maximum = 1)]
    diversity: Option<f32>,
    /// Counts the best 1000 hits by fields of the metadata, by video or by day; at most 10 facets. The first page has the
    /// counts.
    #[schema(value_type = Option<Vec<FacetForms>>, max_items = 10)]
    facets: Option<Vec<FacetBody>>,
    /// Leaves out hits whose `z` is lower in every source. Hits without a `z` are left out too, except quotations of subtitles.
    /// -100 to 100.
    #[schema(minimum = -100, maximum = 100)]
    min_z: Option<f32>,
    /// Whether to merge adjacent hits that score at least 90 % of the best hit. A merged hit is at most as long as
    /// the longest clip.
    #[serde(default)]
    merge_adjacent: bool,
    /// Whether to add details of the ranking to the answer.
    #[serde(default)]
    explain: bool,
    #[schema(ignore)]
    pub(super) cursor: Option<String>,
}

/// A new search, or the next page of one.
#[derive(ToSchema)]
#[expect(
    dead_code,
    clippy::large_enum_variant,
    reason = "describes the request in the OpenAPI file; nobody makes one"
)]
#[serde(untagged)]
#[schema(as = SearchRequest)]
pub(in crate::http) enum SearchForms {
    Search(SearchBody),
    NextPage(NextPage),
}

/// A multipart search. Send `query` before `file`: the server then checks it before the file arrives.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
#[schema(as = SearchUpload)]
pub(super) struct SearchForm {
    /// JSON, at most 256 KiB.
    query: SearchBody,
    /// The query's video or image, at most as large as the server allows.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// How hits are grouped. `video`: by their video.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum GroupBy {
    Video,
}

/// A source to search. `visual`: embeddings of frames. `spoken`: subtitles. `screen`: text on screen.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SearchedSource)]
enum SourceName {
    Visual,
    Spoken,
    Screen,
}

/// Hits to leave out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Exclude)]
struct ExcludeBody {
    /// Hits that overlap the query's own time range, or that of an example, by more than half of the shorter of the two.
    /// Default true.
    #[serde(rename = "self")]
    itself: Option<bool>,
    /// All hits of the query's video, or of the examples' videos. Default false.
    #[serde(default)]
    same_video: bool,
}

/// Fusion of a clip with its modification, and of the sources.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fusion)]
struct FusionBody {
    /// Default: `combiner` if the space has one, else `average`.
    mode: Option<FusionModeName>,
    /// Weight of the clip in `average`, 0 to 1. Default 0.5.
    #[schema(minimum = 0, maximum = 1)]
    alpha: Option<f32>,
    /// Weight of each source, 0 to 1000000. Default 1. The default of `visual` is 0 if the model's vocabulary lacks
    /// over half of the query's words and `spoken` or `screen` is also searched.
    weights: Option<WeightsBody>,
}

/// Weight of each source in the ranking. A source that is not searched has none.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchWeights)]
struct WeightsBody {
    /// Weight of the frames' embeddings, 0 to 1000000.
    #[schema(minimum = 0, maximum = 1_000_000)]
    visual: Option<f32>,
    /// Weight of the subtitles, 0 to 1000000.
    #[schema(minimum = 0, maximum = 1_000_000)]
    spoken: Option<f32>,
    /// Weight of the text on screen, 0 to 1000000.
    #[schema(minimum = 0, maximum = 1_000_000)]
    screen: Option<f32>,
}

impl SearchBody {
    pub(super) fn stands_alone(&self) -> Result<(), ApiError> {
        let beside = self.query.is_some()
            || self.space.is_some()
            || self.level.is_some()
            || self.limit.is_some()
            || self.group_by.is_some()
            || self.per_group.is_some()
            || self.filter.is_some()
            || self.exclude.is_some()
            || self.fusion.is_some()
            || self.sources.is_some()
            || self.on_overflow.is_some()
            || self.aggregation.is_some()
            || self.exact
            || self.overlaps.is_some()
            || self.near_duplicates.is_some()
            || self.diversity.is_some()
            || self.facets.is_some()
            || self.min_z.is_some()
            || self.merge_adjacent
            || self.explain;
        if beside {
            return Err(ApiError::invalid("/cursor", "a cursor stands alone: it carries the whole search"));
        }
        Ok(())
    }

    pub(super) fn checked(self, carrier: Carrier) -> Result<Request, ApiError> {
        if self.cursor.is_some() {
            return Err(ApiError::invalid("/cursor", "a cursor stands alone and needs no file"));
        }
        let query = self.query.ok_or_else(|| ApiError::invalid("/query", "a search needs a query"))?;
        let (query, modification) = query.checked(carrier)?;
        let sources = sources(self.sources.as_deref(), &query, modification.is_some())?;
        let weights = weights(self.fusion.as_ref(), sources)?;
        let exclude = self.exclude.unwrap_or(ExcludeBody { itself: None, same_video: false });
        Ok(Request {
            modification,
            space: self.space,
            levels: self.level.unwrap_or_default().into(),
            limit: bounded(self.limit, 20, "/limit")?,
            per_group: per_group(self.group_by, self.per_group)?,
            near_duplicates: self.near_duplicates.map(NearDuplicates::from).unwrap_or_default(),
            diversity: self.diversity.map(|it| diversity(it, self.group_by)).transpose()?,
            facets: facets::checked(self.facets.unwrap_or_default())?,
            filter: self.filter.as_ref().map(filter).transpose()?,
            exclude: Exclude { itself: exclude.itself.unwrap_or(true), same_video: exclude.same_video },
            fusion: fusion(self.fusion, matches!(query, Query::Text(_) | Query::Examples(_)))?,
            sources,
            weights,
            overflow: self.on_overflow.map_or(Overflow::Window, Overflow::from),
            aggregation: self.aggregation.map(Aggregation::from).unwrap_or_default(),
            exact: self.exact,
            overlaps: self.overlaps.map(Overlaps::from).unwrap_or_default(),
            min_z: self.min_z.map(min_z).transpose()?,
            merge_adjacent: self.merge_adjacent,
            explain: self.explain,
            query,
        })
    }
}

fn bounded(value: Option<usize>, default: usize, pointer: &str) -> Result<usize, ApiError> {
    let value = value.unwrap_or(default);
    if (1..=MAX_LIMIT).contains(&value) {
        return Ok(value);
    }
    Err(ApiError::invalid(pointer, format!("must be from 1 to {MAX_LIMIT}")))
}

fn per_group(group_by: Option<GroupBy>, per_group: Option<usize>) -> Result<Option<usize>, ApiError> {
    match (group_by, per_group) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ApiError::invalid("/per_group", "set group_by to get groups")),
        (Some(GroupBy::Video), per_group) => bounded(per_group, 3, "/per_group").map(Some),
    }
}

fn diversity(value: f32, group_by: Option<GroupBy>) -> Result<f32, ApiError> {
    if !(0.0..=1.0).contains(&value) {
        return Err(ApiError::invalid("/diversity", "must be from 0 to 1"));
    }
    if group_by.is_some() && value > 0.0 {
        return Err(ApiError::invalid("/diversity", "groups are ranked by score alone; leave out group_by"));
    }
    Ok(value)
}

fn min_z(value: f32) -> Result<f32, ApiError> {
    if (-100.0..=100.0).contains(&value) {
        return Ok(value);
    }
    Err(ApiError::invalid("/min_z", "must be from -100 to 100"))
}

fn filter(value: &Value) -> Result<Filter, ApiError> {
    Filter::parse(value).map_err(|wrong| ApiError::invalid(format!("/filter{}", wrong.pointer), wrong.detail))
}

fn sources(named: Option<&[SourceName]>, query: &Query, modified: bool) -> Result<Sources, ApiError> {
    let is_text = matches!(query, Query::Text(_));
    let Some(named) = named else {
        return Ok(Sources { visual: true, spoken: is_text, screen: is_text, by_default: true });
    };
    let has = |source| named.contains(&source);
    let (visual, spoken, screen) =
        (has(SourceName::Visual), has(SourceName::Spoken), has(SourceName::Screen));
    match (visual, spoken || screen) {
        (false, false) => Err(ApiError::invalid("/sources", "name at least one source")),
        (_, true) if !is_text && !modified => {
            let detail =
                "clips and examples say nothing: `spoken` and `screen` need a text or a modification";
            Err(ApiError::invalid("/sources", detail))
        }
        _ => Ok(Sources { visual, spoken, screen, by_default: false }),
    }
}

fn weights(body: Option<&FusionBody>, sources: Sources) -> Result<Weights, ApiError> {
    let given = body.and_then(|body| body.weights).unwrap_or_default();
    let checked = |weight: Option<f32>, searched: bool, name: &str| match weight {
        Some(_) if !searched => {
            Err(ApiError::invalid(format!("/fusion/weights/{name}"), "this source is not searched"))
        }
        Some(weight) if !(0.0..=1e6).contains(&weight) => {
            Err(ApiError::invalid(format!("/fusion/weights/{name}"), "must be from 0 to 1000000"))
        }
        weight => Ok(weight),
    };
    let visual = checked(given.visual, sources.visual, "visual")?;
    let spoken = checked(given.spoken, sources.spoken, "spoken")?;
    let screen = checked(given.screen, sources.screen, "screen")?;
    let counts = |searched: bool, weight: Option<f32>| searched && weight != Some(0.0);
    let counted = [(sources.visual, visual), (sources.spoken, spoken), (sources.screen, screen)];
    if !counted.into_iter().any(|(searched, weight)| counts(searched, weight)) {
        return Err(ApiError::invalid("/fusion/weights", "at least one source needs a weight over 0"));
    }
    Ok(Weights { visual, spoken, screen })
}

fn fusion(body: Option<FusionBody>, composes_nothing: bool) -> Result<Fusion, ApiError> {
    let Some(body) = body else { return Ok(Fusion::default()) };
    if composes_nothing && (body.mode.is_some() || body.alpha.is_some()) {
        let detail = "mode and alpha are for composed queries";
        return Err(ApiError::invalid("/fusion", detail));
    }
    let alpha = body.alpha.unwrap_or(Fusion::default().alpha);
    if !(0.0..=1.0).contains(&alpha) {
        return Err(ApiError::invalid("/fusion/alpha", "must be from 0 to 1"));
    }
    Ok(Fusion { mode: body.mode.map(FusionMode::from), alpha })
}
