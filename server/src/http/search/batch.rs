//! `POST /v1/search/batch`: several searches in one request.

use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::error::{ApiError, Problem, REQUEST_ID};
use super::super::extract::Json;
use super::super::guard;
use super::answer::SearchAnswer;
use super::body::SearchBody;
use super::query::Carrier;
use crate::app::Authorized;
use crate::search::{self, Request};

/// Largest number of searches in a batch.
const MOST: usize = 100;
/// Largest number of hits that the searches of a batch may ask for together. The whole answer is in memory.
const MOST_HITS: usize = 5000;
/// Path of the route.
const PATH: &str = "/v1/search/batch";

/// Several searches. Each is for a first page; later pages are asked for one by one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchBatch)]
pub(super) struct BatchBody {
    /// The searches, 1 to 100. Their limits, times `per_group` where hits are grouped, add up to 5000 at most.
    #[schema(min_items = 1, max_items = 100)]
    searches: Vec<SearchBody>,
}

/// The outcomes of a batch.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchBatchAnswer)]
pub(super) struct BatchAnswer {
    /// One for each search, in the order of the request.
    results: Vec<SearchOutcome>,
}

/// The outcome of one search of a batch.
#[derive(Serialize, ToSchema)]
struct SearchOutcome {
    /// The HTTP status that the search has alone, 200 to 599.
    #[schema(minimum = 200, maximum = 599)]
    status: u16,
    /// Its first page; null if it failed.
    answer: Option<SearchAnswer>,
    /// Why it failed; null if it did not.
    problem: Option<Problem>,
}

/// Answers up to 100 searches, one after the other.
///
/// A fault in any of them refuses the batch before the first search runs. A search that fails later, e.g. because its clip
/// is gone or the encoder is busy, has a problem in place of its answer, and the others go on. Each counts as a request of
/// its key and has the time limit of a search.
#[utoipa::path(
    post, path = "/v1/search/batch", operation_id = "searchVideosBatch", tag = "search",
    request_body = BatchBody, responses((status = 200, body = BatchAnswer))
)]
pub(super) async fn search_batch(
    app: Authorized,
    headers: HeaderMap,
    Json(body): Json<BatchBody>,
) -> Result<axum::Json<BatchAnswer>, ApiError> {
    let requests = checked(body)?;
    let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let mut results = Vec::with_capacity(requests.len());
    for (place, request) in requests.into_iter().enumerate() {
        let outcome = guard::in_time(&app, one(&app, request, place)).await;
        results.push(SearchOutcome::of(outcome, id));
    }
    Ok(axum::Json(BatchAnswer { results }))
}

fn checked(body: BatchBody) -> Result<Vec<Request>, ApiError> {
    if !(1..=MOST).contains(&body.searches.len()) {
        return Err(ApiError::invalid("/searches", format!("give 1 to {MOST} searches")));
    }
    let one = |(place, body): (usize, SearchBody)| {
        body.checked(Carrier::Json).map_err(|error| error.within(&pointer(place)))
    };
    let requests: Vec<Request> = body.searches.into_iter().enumerate().map(one).collect::<Result<_, _>>()?;
    let hits = |request: &Request| request.limit.saturating_mul(request.per_group.unwrap_or(1));
    let asked = requests.iter().map(hits).fold(0, usize::saturating_add);
    if asked > MOST_HITS {
        let detail =
            format!("the searches ask for {asked} hits together; at most {MOST_HITS} are answered at once");
        return Err(ApiError::invalid("/searches", detail));
    }
    Ok(requests)
}

async fn one(app: &Authorized, request: Request, place: usize) -> Result<SearchAnswer, ApiError> {
    let answered = async {
        // The request itself counted as the first search.
        if place > 0 {
            app.gate.count_request(app.caller())?;
        }
        let admitted = search::admit(app, &request)?;
        Ok::<_, ApiError>(search::ask(app, request, admitted).await?.into())
    };
    answered.await.map_err(|error| error.within(&pointer(place)))
}

fn pointer(place: usize) -> String {
    format!("/searches/{place}")
}

impl SearchOutcome {
    fn of(outcome: Result<SearchAnswer, ApiError>, request_id: &str) -> SearchOutcome {
        match outcome {
            Ok(answer) => {
                SearchOutcome { status: StatusCode::OK.as_u16(), answer: Some(answer), problem: None }
            }
            Err(error) => {
                let problem = Problem::of(error, PATH.to_owned(), request_id);
                SearchOutcome { status: problem.status(), answer: None, problem: Some(problem) }
            }
        }
    }
}
