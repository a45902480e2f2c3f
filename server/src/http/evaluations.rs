//! `/v1/evaluations`: queries with what they should find, asked in several spaces and compared.

mod answer;
mod body;
mod forms;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Params};
use crate::app::{App, Authorized};
use crate::catalog::{EvaluatedQuery, Evaluation, MOST_EVALUATED};
use crate::evaluations::{Change, Found, Settings, change};
use answer::{EvaluatedQueryOut, EvaluationOut, EvaluationPage, EvaluationWithQueries};
use body::EvaluationBody;

/// Largest request for an evaluation, in bytes.
const MOST_BYTES: usize = 8 << 20;
/// Queries per read from the catalog, when only queries with a changed rank are listed.
const READ: u32 = 1000;

/// Routes of `/v1/evaluations`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(get, delete))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct EvaluationParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct QueryParams {
    /// Queries per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page: the place of its last query.
    #[param(minimum = 0, maximum = 10_000, nullable = false)]
    cursor: Option<i64>,
    /// Lists only queries that fare this way in `space`, compared with `baseline`. Needs both.
    #[param(inline, nullable = false)]
    change: Option<ChangeName>,
    /// Readable name or id of a space of the evaluation.
    #[param(nullable = false)]
    space: Option<String>,
    /// Readable name or id of the space that it is compared with.
    #[param(nullable = false)]
    baseline: Option<String>,
}

/// How a query fares in one space, compared with another. `better`: its first relevant range comes earlier. `worse`: it comes
/// later, or not at all. `same`: it has the same rank, or neither space finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RankChange)]
enum ChangeName {
    Better,
    Worse,
    Same,
}

/// Starts an evaluation: asks several spaces the same queries, and compares how early each finds what is relevant.
///
/// The evaluation is a job of the same id, which `/v1/jobs/{id}` shows, cancels and retries. It searches with the rights of the
/// key that makes it, compares frames only, and compares every vector if the engine can. Its searches are not in the query log.
/// The request may have 8 MiB.
#[utoipa::path(post, path = "/v1/evaluations", operation_id = "createEvaluation", tag = "activity",
    request_body = EvaluationBody, responses((status = 202, body = EvaluationOut), (status = 404), (status = 409)))]
async fn create(
    app: Authorized,
    request: Request,
) -> Result<(StatusCode, axum::Json<EvaluationOut>), ApiError> {
    let body: EvaluationBody = extract::json_up_to(request, MOST_BYTES).await?;
    let new = body.checked(&app).await?;
    let evaluation = app.view().add_evaluation(&new).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(EvaluationOut::of(evaluation)?)))
}

/// Lists evaluations, newest first: those of the caller's key, or all for the scope `admin`.
#[utoipa::path(get, path = "/v1/evaluations", operation_id = "listEvaluations", tag = "activity",
    params(EvaluationParams), responses((status = 200, body = EvaluationPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<EvaluationParams>,
) -> Result<axum::Json<EvaluationPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let listed = app.view().evaluations(app.caller().owner(), params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&listed, limit, |evaluation| evaluation.job.id);
    let items = listed.into_iter().map(EvaluationOut::of).collect::<Result<_, _>>()?;
    Ok(axum::Json(EvaluationPage { items, next_cursor }))
}

/// The place after which a page begins; -1 for the first page.
fn after(cursor: Option<i64>) -> Result<i64, ApiError> {
    match cursor {
        None => Ok(-1),
        Some(place) if (0..=MOST_EVALUATED as i64).contains(&place) => Ok(place),
        Some(_) => Err(ApiError::invalid("cursor", "must be the next_cursor of a page")),
    }
}

/// Returns one evaluation: its figures, and page by page what each space found for each query.
///
/// Ranges in videos that were deleted since, or that the key does not reach, are left out.
#[utoipa::path(get, path = "/v1/evaluations/{id}", operation_id = "getEvaluation", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the evaluation and its job"), QueryParams),
    responses((status = 200, body = EvaluationWithQueries)))]
async fn get(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<QueryParams>,
) -> Result<axum::Json<EvaluationWithQueries>, ApiError> {
    let evaluation = found(app.view().evaluation(app.caller().owner(), id).await?, id)?;
    let settings = settings(&evaluation)?;
    let wanted = Wanted::of(&params, &settings)?;
    let (after, limit) = (after(params.cursor)?, extract::page_size(params.limit)?);
    let queries = queries(&app, id, after, &Listed { limit, wanted }).await?;
    let next_cursor = super::next_cursor(&queries, limit, |query| query.place);
    let queries =
        queries.into_iter().map(|query| EvaluatedQueryOut::of(query, &settings)).collect::<Result<_, _>>()?;
    let evaluation = EvaluationOut::of(evaluation)?;
    Ok(axum::Json(EvaluationWithQueries { evaluation, queries, next_cursor }))
}

/// Deletes an evaluation with its job. A running one stops.
#[utoipa::path(delete, path = "/v1/evaluations/{id}", operation_id = "deleteEvaluation", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the evaluation and its job")), responses((status = 204)))]
async fn delete(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    found(app.view().delete_evaluation(app.caller().owner(), id).await?, id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The evaluation, or 404.
fn found<T>(evaluation: Option<T>, id: Uuid) -> Result<T, ApiError> {
    evaluation.ok_or_else(|| ApiError::no_such("evaluation", id))
}

fn settings(evaluation: &Evaluation) -> Result<Settings, ApiError> {
    serde_json::from_value(evaluation.settings.clone()).map_err(ApiError::internal)
}

/// Which queries a page lists, and how many.
struct Listed {
    limit: u32,
    wanted: Option<Wanted>,
}

/// Queries that fare in a certain way in one space, compared with another.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    change: Change,
    /// Places of the spaces in the settings.
    space: usize,
    baseline: usize,
}

impl Wanted {
    fn of(params: &QueryParams, settings: &Settings) -> Result<Option<Wanted>, ApiError> {
        let QueryParams { change, space, baseline, .. } = params;
        let (change, space, baseline) = match (change, space, baseline) {
            (None, None, None) => return Ok(None),
            (Some(change), Some(space), Some(baseline)) => (change, space, baseline),
            _ => return Err(ApiError::invalid("change", "give change, space and baseline together")),
        };
        let place = |named: &str, parameter: &str| {
            let place = settings.spaces.iter().position(|it| it.name == named || it.id == named);
            place.ok_or_else(|| ApiError::invalid(parameter, "the evaluation has no such space"))
        };
        let change = match change {
            ChangeName::Better => Change::Better,
            ChangeName::Worse => Change::Worse,
            ChangeName::Same => Change::Same,
        };
        let (space, baseline) = (place(space, "space")?, place(baseline, "baseline")?);
        Ok(Some(Wanted { change, space, baseline }))
    }

    /// Whether it lists a query. One that a space could not be asked fares in no way.
    fn takes(&self, query: &EvaluatedQuery) -> bool {
        let found: Option<Vec<Found>> =
            query.outcome.as_ref().and_then(|it| serde_json::from_value(it.clone()).ok());
        let found = found.filter(|all| all.iter().all(|found| found.trouble.is_none()));
        let of = |place: usize| found.as_ref().and_then(|all| all.get(place));
        let pair = of(self.baseline).zip(of(self.space));
        pair.is_some_and(|(before, now)| change(before, now) == self.change)
    }
}

/// The queries of a page, after the place `after`.
async fn queries(
    app: &Authorized,
    id: Uuid,
    mut after: i64,
    listed: &Listed,
) -> Result<Vec<EvaluatedQuery>, ApiError> {
    let Some(wanted) = listed.wanted else {
        return Ok(app.view().evaluated_queries(id, after, listed.limit).await?);
    };
    let mut found = Vec::new();
    while found.len() < listed.limit as usize {
        let read = app.view().evaluated_queries(id, after, READ).await?;
        let Some(last) = read.last() else { break };
        after = last.place;
        found.extend(read.into_iter().filter(|query| wanted.takes(query)));
    }
    found.truncate(listed.limit as usize);
    Ok(found)
}
