//! `/v1/alerts`: searches that every newly ready video is asked.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::names::LevelName;
use super::search::{SearchBody, check_stored, read_stored, seconds};
use super::{conditional, instant, ranges};
use crate::app::{App, Authorized};
use crate::catalog::{
    Alert, AlertHit, AlertMatch, CatalogError, LARGEST_SEARCH, MOST_ALERT_HITS, MOST_ALERT_WEBHOOKS, NewAlert,
};
use crate::search::{Request, Sources};
use crate::terms::Level;

/// Attempts to change an alert without a condition, while others change it.
const TRIES: usize = 3;

/// Routes of `/v1/alerts`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, patch, delete))
        .routes(routes!(matches))
}

/// An alert to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewAlert)]
struct AlertBody {
    /// Its name: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The search, as `POST /v1/search` takes it: not an upload, without `group_by`, `limit` at most 20, at most 64 KiB. Each
    /// new video is asked it as if the library held only this video.
    #[schema(value_type = SearchBody)]
    search: Value,
    /// Hits need at least this `score`, -1000000 to 1000000. Null: any score. For a search of one source only, because scores
    /// of two sources are ranks.
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    min_score: Option<f64>,
    /// Ids of at most 10 webhooks with the event `alert.matched` that matches are sent to. Default none.
    #[serde(default)]
    #[schema(max_items = 10)]
    webhooks: Vec<Uuid>,
}

impl AlertBody {
    /// `stored`: the alert that it changes. A search that stays is not run again: its space may be away.
    async fn checked(self, app: &Authorized, stored: Option<&Alert>) -> Result<NewAlert, ApiError> {
        let name = ranges::checked_name(self.name, "/name")?;
        if self.webhooks.len() > MOST_ALERT_WEBHOOKS {
            let detail = format!("name at most {MOST_ALERT_WEBHOOKS} webhooks");
            return Err(ApiError::invalid("/webhooks", detail));
        }
        if self.search.to_string().len() > LARGEST_SEARCH {
            let detail = format!("must have at most {LARGEST_SEARCH} bytes of JSON");
            return Err(ApiError::invalid("/search", detail));
        }
        let request = read_stored(&self.search).map_err(|error| error.within("/search"))?;
        check_fit(&request)?;
        check_score(&request, self.min_score)?;
        if stored.is_none_or(|stored| stored.search != self.search) {
            check_stored(app, &request).await.map_err(|error| error.within("/search"))?;
        }
        let AlertBody { search, min_score, webhooks, .. } = self;
        Ok(NewAlert { owner: app.caller().key_id(), name, search, min_score, webhooks })
    }
}

/// Changes to an alert. A missing field changes nothing.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertChanges)]
struct PatchBody {
    /// The new name: 1 to 200 characters.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// The new search, as in a new alert. It runs on videos that are ready later, and on waiting ones. Earlier matches stay.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<SearchBody>, nullable = false)]
    search: Option<Value>,
    /// Hits need at least this `score`, -1000000 to 1000000. Null: any score.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<f64>, minimum = -1_000_000, maximum = 1_000_000)]
    min_score: Option<Option<f64>>,
    /// Ids of at most 10 webhooks with the event `alert.matched`. They replace the old ones.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(nullable = false, max_items = 10)]
    webhooks: Option<Vec<Uuid>>,
}

impl PatchBody {
    /// The whole alert after the change.
    fn onto(self, alert: &Alert) -> AlertBody {
        AlertBody {
            name: self.name.unwrap_or_else(|| alert.name.clone()),
            search: self.search.unwrap_or_else(|| alert.search.clone()),
            min_score: self.min_score.unwrap_or(alert.min_score),
            webhooks: self.webhooks.unwrap_or_else(|| alert.webhooks.clone()),
        }
    }
}

/// What a caller can change of an alert: its ETag does not name what it has found.
#[derive(Serialize)]
struct State<'a> {
    name: &'a str,
    search: &'a Value,
    min_score: Option<f64>,
    webhooks: &'a [Uuid],
}

impl<'a> State<'a> {
    fn of(alert: &'a Alert) -> State<'a> {
        let Alert { name, search, min_score, webhooks, .. } = alert;
        State { name, search, min_score: *min_score, webhooks }
    }
}

/// An alert with its ETag.
type Answer = ([(header::HeaderName, String); 1], axum::Json<AlertOut>);

fn answer(alert: Alert) -> Result<Answer, ApiError> {
    let tag = conditional::tag(&State::of(&alert))?;
    Ok(([(header::ETAG, tag)], axum::Json(alert.into())))
}

/// Refuses searches that ask for more than a match holds.
fn check_fit(request: &Request) -> Result<(), ApiError> {
    if request.per_group.is_some() {
        return Err(ApiError::invalid("/search/group_by", "an alert takes hits one by one"));
    }
    if request.limit > MOST_ALERT_HITS {
        return Err(ApiError::invalid(
            "/search/limit",
            format!("must be at most {MOST_ALERT_HITS} in an alert"),
        ));
    }
    Ok(())
}

fn check_score(request: &Request, min_score: Option<f64>) -> Result<(), ApiError> {
    let Some(least) = min_score else { return Ok(()) };
    if !(-1e6..=1e6).contains(&least) {
        return Err(ApiError::invalid("/min_score", "must be from -1000000 to 1000000"));
    }
    let Sources { visual, spoken, screen, .. } = request.sources;
    if [visual, spoken, screen].into_iter().filter(|it| *it).count() > 1 {
        let detail = "scores of several sources are ranks; name one source in `search.sources`";
        return Err(ApiError::invalid("/min_score", detail));
    }
    Ok(())
}

/// A search that every newly ready video is asked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Alert)]
struct AlertOut {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Its name.
    name: String,
    /// The search, as it was stored.
    #[schema(value_type = HashMap<String, Value>)]
    search: Value,
    /// The least score of a hit, -1000000 to 1000000. Null: any score.
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    min_score: Option<f64>,
    /// Ids of the webhooks that matches are sent to, without deleted ones.
    webhooks: Vec<Uuid>,
    /// Id of the API key that made it. Null without a key.
    key_id: Option<Uuid>,
    /// Number of videos that it found something in, at most 10000.
    #[schema(minimum = 0)]
    matches: i64,
    /// Number of new videos that it has not asked yet.
    #[schema(minimum = 0)]
    waiting: i64,
    /// Number of videos that were given up, because they could not be asked for a day.
    #[schema(minimum = 0)]
    missed: i64,
    /// Why the last video could not be asked, for example because the search's space is not loaded. It is tried again. Null:
    /// nothing is wrong.
    trouble: Option<String>,
    /// Time of its making (RFC 3339).
    created_at: String,
}

impl From<Alert> for AlertOut {
    fn from(alert: Alert) -> AlertOut {
        AlertOut {
            id: alert.id,
            name: alert.name,
            search: alert.search,
            min_score: alert.min_score,
            webhooks: alert.webhooks,
            key_id: alert.owner,
            matches: alert.matches,
            waiting: alert.waiting,
            missed: alert.missed,
            trouble: alert.trouble,
            created_at: instant(alert.created_at_ms),
        }
    }
}

/// One page of alerts.
#[derive(Debug, Serialize, ToSchema)]
struct AlertPage {
    /// The alerts of this page.
    items: Vec<AlertOut>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// What an alert found in a video.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertMatch)]
struct MatchOut {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Id of the video.
    video_id: Uuid,
    /// Readable name of the space that was searched.
    space: String,
    /// The hits, best first: 1 to 20.
    hits: Vec<HitOut>,
    /// Time of the match (RFC 3339).
    matched_at: String,
}

/// A hit of an alert.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertHit)]
struct HitOut {
    /// Id of the span: of a clip, a moment or the full video. It is gone if the video was cut anew since.
    clip_id: Uuid,
    /// Level of the span.
    #[schema(value_type = LevelName)]
    level: Level,
    /// Start, in seconds of the video.
    #[schema(minimum = 0)]
    start: f64,
    /// End, in seconds of the video, exclusive.
    #[schema(minimum = 0)]
    end: f64,
    /// Its score as a search gives it: a raw cosine, or the fused score of several sources.
    score: f64,
    /// The highest z of its sources: how far it stood above the background of the search, in standard deviations. Null if
    /// it had none.
    z: Option<f64>,
}

impl From<AlertMatch> for MatchOut {
    fn from(found: AlertMatch) -> MatchOut {
        MatchOut {
            id: found.id,
            video_id: found.video,
            space: found.found.space,
            hits: found.found.hits.into_iter().map(HitOut::from).collect(),
            matched_at: instant(found.at_ms),
        }
    }
}

impl From<AlertHit> for HitOut {
    fn from(hit: AlertHit) -> HitOut {
        let AlertHit { clip, level, start_ms, end_ms, score, z } = hit;
        HitOut { clip_id: clip, level, start: seconds(start_ms), end: seconds(end_ms), score, z }
    }
}

/// One page of an alert's matches.
#[derive(Debug, Serialize, ToSchema)]
struct MatchPage {
    /// The matches of this page.
    items: Vec<MatchOut>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AlertPageParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

/// Makes an alert: from now on every newly ready video is asked its search, once.
///
/// It belongs to the key that makes it, and finds what this key reaches. Hits that pass its thresholds make a match, which
/// `/v1/alerts/{id}/matches` lists and its webhooks get. Without a threshold (`min_z` in the search, or `min_score`) almost
/// every video matches.
#[utoipa::path(post, path = "/v1/alerts", operation_id = "createAlert", tag = "activity", request_body = AlertBody,
    responses((status = 201, body = AlertOut, headers(("etag" = String, description = "Its state, for If-Match"))),
        (status = 404), (status = 409), (status = 422), (status = 424)))]
async fn create(app: Authorized, Json(body): Json<AlertBody>) -> Result<(StatusCode, Answer), ApiError> {
    let new = body.checked(&app, None).await?;
    let alert = app.view().add_alert(app.caller().owner(), &new, app.config.max_alerts).await?;
    Ok((StatusCode::CREATED, answer(alert)?))
}

/// Lists alerts, newest first: those of the caller's key, or all for the scope `admin`.
#[utoipa::path(get, path = "/v1/alerts", operation_id = "listAlerts", tag = "activity", params(AlertPageParams),
    responses((status = 200, body = AlertPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<AlertPageParams>,
) -> Result<axum::Json<AlertPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let alerts = app.view().alerts(app.caller().owner(), params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&alerts, limit, |alert| alert.id);
    Ok(axum::Json(AlertPage { items: alerts.into_iter().map(AlertOut::from).collect(), next_cursor }))
}

/// Returns one alert. Its ETag names what can be changed, and not what it has found.
#[utoipa::path(get, path = "/v1/alerts/{id}", operation_id = "getAlert", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the alert")),
    responses((status = 200, body = AlertOut, headers(("etag" = String, description = "Its state, for If-Match")))))]
async fn get(app: Authorized, Id(id): Id) -> Result<Answer, ApiError> {
    answer(found(app.view().alert(app.caller().owner(), id).await?, id)?)
}

/// Changes an alert's name, search, least score or webhooks. Its matches stay, and so does the key that it belongs to.
#[utoipa::path(patch, path = "/v1/alerts/{id}", operation_id = "updateAlert", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the alert"), conditional::IfMatch), request_body = PatchBody,
    responses((status = 200, body = AlertOut, headers(("etag" = String, description = "Its state, for If-Match"))),
        (status = 404), (status = 409), (status = 412), (status = 422), (status = 424)))]
async fn patch(
    app: Authorized,
    Id(id): Id,
    headers: HeaderMap,
    Json(body): Json<PatchBody>,
) -> Result<Answer, ApiError> {
    let owner = app.caller().owner();
    for _ in 0..TRIES {
        let alert = found(app.view().alert(owner, id).await?, id)?;
        conditional::check(&headers, &State::of(&alert))?;
        let new = body.clone().onto(&alert).checked(&app, Some(&alert)).await?;
        match app.view().update_alert(owner, &alert, &new).await {
            Err(CatalogError::Stale) if !conditional::has_condition(&headers) => {}
            changed => return answer(found(changed?, id)?),
        }
    }
    Err(ApiError::conflict("others are changing this alert; try again"))
}

/// Deletes an alert with its matches.
#[utoipa::path(delete, path = "/v1/alerts/{id}", operation_id = "deleteAlert", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the alert")), responses((status = 204)))]
async fn delete(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    found(app.view().delete_alert(app.caller().owner(), id).await?, id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists what an alert found, newest first: at most one match for each video.
#[utoipa::path(get, path = "/v1/alerts/{id}/matches", operation_id = "listAlertMatches", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the alert"), AlertPageParams),
    responses((status = 200, body = MatchPage)))]
async fn matches(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<AlertPageParams>,
) -> Result<axum::Json<MatchPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let listed = app.view().alert_matches(app.caller().owner(), id, params.cursor, limit).await?;
    let listed = found(listed, id)?;
    let next_cursor = super::next_cursor(&listed, limit, |found| found.id);
    Ok(axum::Json(MatchPage { items: listed.into_iter().map(MatchOut::from).collect(), next_cursor }))
}

/// The alert, or 404.
fn found<T>(alert: Option<T>, id: Uuid) -> Result<T, ApiError> {
    alert.ok_or_else(|| ApiError::no_such("alert", id))
}
