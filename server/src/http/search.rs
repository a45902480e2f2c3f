//! `POST /v1/search`: the wire form of a query, its checks, and the wire form of an answer.

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest, State};
use reprise_encoders::text::Overflow;
use reprise_index::Level;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::{ApiError, Problem};
use super::extract::{self, Form, Json};
use super::guard;
use crate::app::App;
use crate::catalog::Filter;
use crate::media::Received;
use crate::search::{
    self, Aggregation, Cursor, Evidence, Exclude, Fusion, FusionMode, Group, IndexInfo, Levels, MAX_LIMIT,
    Match, Outcome, Query, QueryInfo, Request, Source, Sources, Timings, Weights,
};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(search))
}

/// A search, or its next page with `cursor` alone.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchBody {
    /// What to find.
    query: Option<QueryBody>,
    /// A space's id or readable name; default: the active one for the query's kind.
    space: Option<String>,
    /// What is answered; default `clip`.
    level: Option<Levels>,
    /// Hits or groups per page, 1 to 1000; default 20.
    limit: Option<usize>,
    /// `video`: answer groups instead of results.
    group_by: Option<GroupBy>,
    /// Hits per group, 1 to 1000; default 3.
    per_group: Option<usize>,
    /// `all | any | not` of `{field, eq | in | lt | lte | gt | gte | exists}`.
    #[schema(value_type = Option<Object>)]
    filter: Option<Value>,
    /// What is left out.
    exclude: Option<ExcludeBody>,
    /// How a composed query is fused.
    fusion: Option<FusionBody>,
    /// Where to look: `visual` (what is seen) and `spoken` (what is said, with a text or a modification). Default:
    /// both for a text, `visual` for clips and composed queries.
    sources: Option<Vec<SourceName>>,
    /// What to do with a text over the model's limit; default `window`.
    on_overflow: Option<OverflowName>,
    /// How the windows of a long text make one score; default `coverage`.
    aggregation: Option<Aggregation>,
    /// Compare with every vector.
    #[serde(default)]
    exact: bool,
    /// Join neighbouring hits that score within 90 % of the best, up to the longest clip.
    #[serde(default)]
    merge_adjacent: bool,
    /// Tell how the answer was found.
    #[serde(default)]
    explain: bool,
    /// `next_cursor` of the page before; nothing else may stand beside it.
    cursor: Option<String>,
}

/// A multipart search: `query` first, then `file`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
struct SearchForm {
    /// At most 256 KiB.
    query: SearchBody,
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// One of text, clip, clip_id, upload; all but text with an optional modification.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody {
    /// A text of 1 to some thousands of words.
    text: Option<String>,
    /// A stretch of a stored video.
    clip: Option<ClipBody>,
    /// A stored clip.
    clip_id: Option<Uuid>,
    /// The part `file` of a multipart request.
    upload: Option<bool>,
    /// Start of the stretch of an upload, in seconds.
    start: Option<f64>,
    /// End of the stretch of an upload, in seconds.
    end: Option<f64>,
    /// How the clip is to be changed: makes it a composed query.
    modification: Option<String>,
}

/// A stretch of a stored video, in seconds, end exclusive.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClipBody {
    pub(super) video_id: Uuid,
    pub(super) start: f64,
    pub(super) end: f64,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum GroupBy {
    Video,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SourceName {
    Visual,
    Spoken,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OverflowName {
    Window,
    Truncate,
    Error,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExcludeBody {
    /// Hits that are the query's own stretch; default true for clip queries.
    #[serde(rename = "self")]
    itself: Option<bool>,
    /// All hits of the query's video; default false.
    #[serde(default)]
    same_video: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FusionBody {
    /// Default: `combiner` if the space has one, else `average`.
    mode: Option<FusionMode>,
    /// Share of the video in `average`, 0 to 1; default 0.5.
    alpha: Option<f32>,
    /// Weight of each source, 0 or more; default 1, and 0 for `visual` where the model's vocabulary misses over half
    /// of the query's words and `spoken` is searched as well.
    weights: Option<WeightsBody>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WeightsBody {
    visual: Option<f32>,
    spoken: Option<f32>,
}

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
    query_info: QueryInfo,
    index: IndexInfo,
    timings_ms: Timings,
    /// How the answer was found, if `explain` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    explain: Option<Value>,
}

/// One match.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Hit {
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

/// What one source says about a hit.
#[derive(Debug, Serialize, ToSchema)]
struct EvidenceOut {
    source: Source,
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
        let Evidence { source, score, rank, said } = evidence;
        let times = said.as_ref().map(|it| (seconds(it.start_ms), seconds(it.end_ms)));
        let (start, end) = (times.map(|it| it.0), times.map(|it| it.1));
        EvidenceOut { source, score, rank, text: said.map(|it| it.snippet), start, end }
    }
}

/// The best hits of one video.
#[derive(Debug, Serialize, ToSchema)]
struct GroupOut {
    video_id: Uuid,
    score: f32,
    results: Vec<Hit>,
}

/// Searches by text, by a stored clip, by an uploaded clip, or by a clip and a modification text.
///
/// Send JSON, or multipart with the part `query` (this JSON, first, at most 256 KiB) and the part `file`.
/// Scores are comparable within one answer only.
#[utoipa::path(
    post, path = "/v1/search", tag = "search",
    request_body(content((SearchBody = "application/json"), (SearchForm = "multipart/form-data"))),
    responses(
        (status = 200, body = SearchAnswer), (status = 409, body = Problem), (status = 410, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
    )
)]
async fn search(
    State(app): State<Arc<App>>,
    request: HttpRequest,
) -> Result<axum::Json<SearchAnswer>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return search_multipart(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<SearchBody>::from_request(request, &()).await?;
    if let Some(cursor) = &body.cursor {
        body.stands_alone()?;
        return answer(search::next(&app, Cursor::decode(cursor)?).await?);
    }
    let request = body.checked(Carrier::Json)?;
    let admitted = search::admit(&app, &request)?;
    answer(search::run(&app, request, admitted).await?)
}

/// The JSON is checked and a place in the pool taken before the file is read.
async fn search_multipart(app: &App, mut form: Form) -> Result<axum::Json<SearchAnswer>, ApiError> {
    let body: SearchBody = form.query(app).await?;
    let mut request = body.checked(Carrier::Multipart)?;
    let admitted = search::admit(app, &request)?;
    let file = form.file(app).await?;
    point_at(&mut request, &file);
    let outcome = guard::in_time(app, async { Ok(search::run(app, request, admitted).await?) });
    answer(outcome.await?)
}

fn point_at(request: &mut Request, file: &Received) {
    if let Query::Upload { path, content_hash, .. } = &mut request.query {
        file.path().clone_into(path);
        content_hash.clone_from(&file.content_hash);
    }
}

fn answer(outcome: Outcome) -> Result<axum::Json<SearchAnswer>, ApiError> {
    let hits = |matches: Vec<Match>| matches.into_iter().map(Hit::from).collect();
    Ok(axum::Json(SearchAnswer {
        results: hits(outcome.results),
        videos: outcome.videos.map(hits),
        groups: outcome.groups.map(|groups| groups.into_iter().map(GroupOut::from).collect()),
        next_cursor: outcome.next_cursor,
        exhausted: outcome.exhausted,
        query_info: outcome.info,
        index: outcome.index,
        timings_ms: outcome.timings,
        explain: outcome.explain,
    }))
}

/// How the JSON came.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Carrier {
    /// Alone.
    Json,
    /// As a part, with a file behind it.
    Multipart,
}

impl SearchBody {
    fn stands_alone(&self) -> Result<(), ApiError> {
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
            || self.merge_adjacent
            || self.explain;
        if beside {
            return Err(ApiError::invalid("/cursor", "a cursor stands alone: it carries the whole search"));
        }
        Ok(())
    }

    fn checked(self, carrier: Carrier) -> Result<Request, ApiError> {
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
            levels: self.level.unwrap_or_default(),
            limit: bounded(self.limit, 20, "/limit")?,
            per_group: per_group(self.group_by, self.per_group)?,
            filter: self.filter.as_ref().map(filter).transpose()?,
            exclude: Exclude { itself: exclude.itself.unwrap_or(true), same_video: exclude.same_video },
            fusion: fusion(self.fusion, matches!(query, Query::Text(_)))?,
            sources,
            weights,
            overflow: self.on_overflow.map_or(Overflow::Window, Overflow::from),
            aggregation: self.aggregation.unwrap_or_default(),
            exact: self.exact,
            merge_adjacent: self.merge_adjacent,
            explain: self.explain,
            query,
        })
    }
}

impl QueryBody {
    fn checked(self, carrier: Carrier) -> Result<(Query, Option<String>), ApiError> {
        self.check_upload(carrier)?;
        let modification =
            self.modification.map(|text| some_text(text, "/query/modification")).transpose()?;
        let query = match (self.text, self.clip, self.clip_id, self.upload == Some(true)) {
            (Some(text), None, None, false) => Query::Text(some_text(text, "/query/text")?),
            (None, Some(clip), None, false) => {
                let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, "/query/clip")?;
                Query::Range { video: clip.video_id, start_ms, end_ms }
            }
            (None, None, Some(id), false) => Query::Clip(id),
            (None, None, None, true) => upload_query(self.start, self.end)?,
            _ => return Err(ApiError::invalid("/query", "give exactly one of text, clip, clip_id, upload")),
        };
        if modification.is_some() && matches!(query, Query::Text(_)) {
            let detail = "a modification changes a clip, not a text";
            return Err(ApiError::invalid("/query/modification", detail));
        }
        Ok((query, modification))
    }

    fn check_upload(&self, carrier: Carrier) -> Result<(), ApiError> {
        match (self.upload == Some(true), carrier) {
            (true, Carrier::Json) => {
                let detail = "an upload comes as multipart with the part `file`";
                Err(ApiError::invalid("/query/upload", detail))
            }
            (false, Carrier::Multipart) => {
                let detail = "a multipart search has the query {\"upload\": true}";
                Err(ApiError::invalid("/query/upload", detail))
            }
            (false, Carrier::Json) if self.start.is_some() || self.end.is_some() => {
                let detail = "start and end stand here for an upload only; a clip has its own";
                Err(ApiError::invalid("/query/start", detail))
            }
            _ => Ok(()),
        }
    }
}

/// Path and hash are filled in when the file has come.
fn upload_query(start: Option<f64>, end: Option<f64>) -> Result<Query, ApiError> {
    let start_ms = start.map(|start| extract::milliseconds(start, "/query/start")).transpose()?;
    let end_ms = end.map(|end| extract::milliseconds(end, "/query/end")).transpose()?;
    if end_ms.is_some_and(|end_ms| end_ms <= start_ms.unwrap_or(0)) {
        return Err(ApiError::invalid("/query/end", "the end must be after the start"));
    }
    Ok(Query::Upload { path: Default::default(), content_hash: String::new(), start_ms, end_ms })
}

pub(super) fn some_text(text: String, pointer: &str) -> Result<String, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid(pointer, "the text is empty"));
    }
    Ok(text)
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
        (None, Some(_)) => Err(ApiError::invalid("/per_group", "set group_by to group")),
        (Some(GroupBy::Video), per_group) => bounded(per_group, 3, "/per_group").map(Some),
    }
}

pub(super) fn filter(value: &Value) -> Result<Filter, ApiError> {
    Filter::parse(value).map_err(|wrong| ApiError::invalid(format!("/filter{}", wrong.pointer), wrong.detail))
}

fn sources(named: Option<&[SourceName]>, query: &Query, modified: bool) -> Result<Sources, ApiError> {
    let is_text = matches!(query, Query::Text(_));
    let Some(named) = named else { return Ok(Sources { visual: true, spoken: is_text, by_default: true }) };
    let (visual, spoken) = (named.contains(&SourceName::Visual), named.contains(&SourceName::Spoken));
    match (visual, spoken) {
        (false, false) => Err(ApiError::invalid("/sources", "name at least one source")),
        (_, true) if !is_text && !modified => {
            Err(ApiError::invalid("/sources", "a clip says nothing: `spoken` needs a text or a modification"))
        }
        _ => Ok(Sources { visual, spoken, by_default: false }),
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
    let counts = |searched: bool, weight: Option<f32>| searched && weight != Some(0.0);
    if !counts(sources.visual, visual) && !counts(sources.spoken, spoken) {
        return Err(ApiError::invalid("/fusion/weights", "at least one source needs a weight over 0"));
    }
    Ok(Weights { visual, spoken })
}

fn fusion(body: Option<FusionBody>, is_text: bool) -> Result<Fusion, ApiError> {
    let Some(body) = body else { return Ok(Fusion { mode: None, alpha: 0.5 }) };
    if is_text && (body.mode.is_some() || body.alpha.is_some()) {
        let detail = "mode and alpha are for composed queries; a text has weights";
        return Err(ApiError::invalid("/fusion", detail));
    }
    let alpha = body.alpha.unwrap_or(0.5);
    if !(0.0..=1.0).contains(&alpha) {
        return Err(ApiError::invalid("/fusion/alpha", "must be from 0 to 1"));
    }
    Ok(Fusion { mode: body.mode, alpha })
}

impl From<OverflowName> for Overflow {
    fn from(name: OverflowName) -> Overflow {
        match name {
            OverflowName::Window => Overflow::Window,
            OverflowName::Truncate => Overflow::Truncate,
            OverflowName::Error => Overflow::Error,
        }
    }
}

impl From<Match> for Hit {
    fn from(found: Match) -> Hit {
        let span = &found.span.span;
        let (start, end) = (seconds(span.start_ms), seconds(span.end_ms));
        let offset = seconds(found.span.media_offset_ms);
        let said = found.evidence.iter().find_map(|it| it.said.as_ref().map(|said| said.start_ms));
        let opens_at = said.or(found.peak_ms).unwrap_or(span.start_ms);
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

impl From<Group> for GroupOut {
    fn from(group: Group) -> GroupOut {
        let results = group.matches.into_iter().map(Hit::from).collect();
        GroupOut { video_id: group.video, score: group.score, results }
    }
}

/// Milliseconds to the API's seconds.
pub(super) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// `below` with the fields of `above` laid over it.
pub(super) fn overlaid(below: &Value, above: &Value) -> Value {
    let mut all = below.as_object().cloned().unwrap_or_default();
    all.extend(above.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}
