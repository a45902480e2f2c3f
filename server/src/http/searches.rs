//! `/v1/searches`: the query log, and feedback on hits.

mod answer;

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::names::VerdictName;
use super::search::SearchKindName;
use crate::app::{App, Authorized};
use crate::catalog::{FeedbackTaken, NewFeedback, Scope, SearchesAsked, SearchesOf, Verdict, instant};
use crate::terms::SearchKind;
use answer::{SearchEntry, SearchPage};

/// Hits of a search in a list.
const HITS_IN_LIST: i64 = 10;

/// Routes of `/v1/searches`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(give_feedback))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchParams {
    /// Lists only searches answered at this time or later (RFC 3339 instant or date).
    #[param(nullable = false)]
    since: Option<String>,
    /// Lists only searches answered before this time (RFC 3339 instant or date).
    #[param(nullable = false)]
    until: Option<String>,
    /// Lists only searches of this kind.
    #[param(nullable = false)]
    kind: Option<SearchKindName>,
    /// Lists only searches in the space with this readable name.
    #[param(nullable = false)]
    space: Option<String>,
    /// Lists only searches with this API key.
    #[param(nullable = false)]
    key_id: Option<Uuid>,
    /// `true`: lists only searches without results. `false`: only those with results.
    #[param(nullable = false)]
    without_results: Option<bool>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

impl SearchParams {
    fn checked(self, app: &Authorized) -> Result<SearchesAsked, ApiError> {
        Ok(SearchesAsked {
            of: seen_by(app),
            before: self.cursor,
            limit: extract::page_size(self.limit)?,
            since_ms: time(self.since.as_deref(), "since")?,
            until_ms: time(self.until.as_deref(), "until")?,
            kind: self.kind.map(SearchKind::from),
            space: self.space,
            key: self.key_id,
            without_results: self.without_results,
        })
    }
}

pub(super) fn time(text: Option<&str>, name: &str) -> Result<Option<i64>, ApiError> {
    let parsed = |text| {
        instant::parse(text).ok_or_else(|| ApiError::invalid(name, "must be an RFC 3339 date or instant"))
    };
    text.map(parsed).transpose()
}

/// The searches that the caller may see.
pub(super) fn seen_by(app: &Authorized) -> SearchesOf {
    match app.caller().may(Scope::Admin) {
        true => SearchesOf::Everybody,
        false => SearchesOf::Key(app.caller().key_id().unwrap_or_default()),
    }
}

/// Lists the searches that succeeded, newest first, each with its first ten hits.
///
/// A key sees its own searches; with the scope `admin` it sees all. Hits in deleted videos are left out.
#[utoipa::path(get, path = "/v1/searches", operation_id = "listSearches", tag = "search", params(SearchParams),
    responses((status = 200, body = SearchPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<SearchParams>,
) -> Result<axum::Json<SearchPage>, ApiError> {
    let asked = params.checked(&app)?;
    app.query_log.settled().await;
    let searches = app.view().searches(&asked, HITS_IN_LIST).await?;
    let next_cursor = super::next_cursor(&searches, asked.limit, |search| search.id);
    Ok(axum::Json(SearchPage { items: searches.into_iter().map(SearchEntry::from).collect(), next_cursor }))
}

/// Returns one search with all its hits, up to rank 1000, and up to 20 inside each.
#[utoipa::path(get, path = "/v1/searches/{id}", operation_id = "getSearch", tag = "search",
    params(("id" = Uuid, Path, description = "The `search_id` of an answer")),
    responses((status = 200, body = SearchEntry), (status = 404)))]
async fn get(app: Authorized, Id(id): Id) -> Result<axum::Json<SearchEntry>, ApiError> {
    app.query_log.settled().await;
    let found = app.view().search(id, seen_by(&app)).await?;
    Ok(axum::Json(found.ok_or_else(|| no_search(id))?.into()))
}

/// Feedback on a hit of a search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Feedback)]
struct FeedbackBody {
    /// `clip_id` of a hit of the search.
    clip_id: Uuid,
    /// What was done with the hit.
    #[schema(value_type = VerdictName)]
    verdict: Verdict,
}

/// Stores what was done with a hit of a search. The same again changes nothing.
#[utoipa::path(post, path = "/v1/searches/{id}/feedback", operation_id = "giveFeedback", tag = "search",
    request_body = FeedbackBody, params(("id" = Uuid, Path, description = "The `search_id` of an answer")),
    responses((status = 204, description = "The feedback is stored"), (status = 404), (status = 422), (status = 507)))]
async fn give_feedback(
    app: Authorized,
    Id(id): Id,
    Json(body): Json<FeedbackBody>,
) -> Result<StatusCode, ApiError> {
    app.query_log.settled().await;
    let (key, key_name) = (app.caller().key_id(), app.caller().key().map(|key| key.name.clone()));
    let new = NewFeedback { search: id, span: body.clip_id, verdict: body.verdict, key, key_name };
    match app.view().give_feedback(seen_by(&app), &new).await? {
        FeedbackTaken::Stored => Ok(StatusCode::NO_CONTENT),
        FeedbackTaken::NoSearch => Err(no_search(id)),
        FeedbackTaken::NoHit => {
            Err(ApiError::invalid("/clip_id", "the search has no such hit in the query log"))
        }
    }
}

fn no_search(id: Uuid) -> ApiError {
    ApiError::not_found(format!("the query log has no search {id}")).at("id")
}
