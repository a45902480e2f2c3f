//! `GET /v1/videos/{id}/timeline`: scores a query over the time of one video.

use std::sync::Arc;

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Params};
use super::search::some_text;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::search::{
    self, Exclude, Fusion, Grain, Levels, NearDuplicates, Overlaps, Query, Request, Sources, Timeline,
    Weights,
};
use crate::terms::Aggregation;

/// Largest number of steps of a timeline.
const MAX_POINTS: usize = 5000;

/// Routes of `/v1/videos/{id}/timeline`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(timeline))
}

/// The query: `text`, `clip_id`, or `clip_video_id` with `start` and `end`. A clip may have a `modification`.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TimelineQuery {
    /// A text, not only white space.
    #[param(nullable = false, min_length = 1, pattern = r"\S")]
    text: Option<String>,
    /// A stored clip.
    #[param(nullable = false)]
    clip_id: Option<Uuid>,
    /// The stored video of a time range.
    #[param(nullable = false)]
    clip_video_id: Option<Uuid>,
    /// Start of the time range, in seconds, 0 to 10000000.
    #[param(nullable = false, minimum = 0, maximum = 10_000_000)]
    start: Option<f64>,
    /// End of the time range, in seconds, exclusive, 0 to 10000000.
    #[param(nullable = false, minimum = 0, maximum = 10_000_000)]
    end: Option<f64>,
    /// Text that describes a change to the clip, not only white space. It makes a composed query.
    #[param(nullable = false, min_length = 1, pattern = r"\S")]
    modification: Option<String>,
    /// A space's id or readable name. Default: the active space for the query's kind.
    #[param(nullable = false)]
    space: Option<String>,
    /// Largest number of steps, 1 to 5000. Default 1000.
    #[param(nullable = false, minimum = 1, maximum = 5000)]
    points: Option<usize>,
}

/// The unit that a timeline scores.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Grain)]
enum GrainName {
    /// Sampled frames.
    Frames,
    /// Moments and clips.
    Spans,
}

/// A query's score over the time of one video.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
struct TimelineOut {
    /// The space's readable name.
    space: String,
    /// The unit that was scored.
    of: GrainName,
    /// Length of a step, in seconds, over 0.
    #[schema(exclusive_minimum = 0)]
    step: f64,
    /// The best raw cosine in each step, -1 to 1. Null where no vector is stored.
    scores: Vec<Option<f32>>,
}

impl From<Timeline> for TimelineOut {
    fn from(timeline: Timeline) -> TimelineOut {
        let of = match timeline.of {
            Grain::Frames => GrainName::Frames,
            Grain::Spans => GrainName::Spans,
        };
        let step = timeline.step_ms as f64 / 1000.0;
        TimelineOut { space: timeline.space, of, step, scores: timeline.scores }
    }
}

/// Scores a query over the time of one video.
///
/// The query is exactly one of `text`, `clip_id`, and `clip_video_id` with `start` and `end`. A clip may have a
/// `modification`.
#[utoipa::path(get, path = "/v1/videos/{id}/timeline", operation_id = "getTimeline", tag = "search",
    params(("id" = Uuid, Path, description = "The video's id"), TimelineQuery),
    responses((status = 200, body = TimelineOut), (status = 409), (status = 424)))]
async fn timeline(
    app: Authorized,
    Id(id): Id,
    Params(asked): Params<TimelineQuery>,
) -> Result<axum::Json<TimelineOut>, ApiError> {
    let points = asked.points.unwrap_or(1000);
    if !(1..=MAX_POINTS).contains(&points) {
        return Err(ApiError::invalid("points", format!("must be from 1 to {MAX_POINTS}")));
    }
    let named_by = asked.named_by();
    let request = asked.checked().map_err(|error| in_parameters(error, named_by))?;
    let video = found(app.view().video(id).await?, id)?;
    let timeline = search::timeline(&app, &video, request, points).await;
    let timeline = timeline.map_err(|error| in_parameters(error.into(), named_by))?;
    Ok(axum::Json(timeline.into()))
}

/// The error of a search, with the names of this query string's parameters as pointers. `query` is the one that is the
/// query.
fn in_parameters(error: ApiError, query: &str) -> ApiError {
    let places = [
        ("/query/clip/video_id", "clip_video_id"),
        ("/query/clip_id", "clip_id"),
        ("/query/clip", "start"),
        ("/query/", ""),
        ("/query", query),
        ("/", ""),
    ];
    places.into_iter().fold(error, |error, (from, to)| error.moved(from, to))
}

impl TimelineQuery {
    /// The parameter that is the query.
    fn named_by(&self) -> &'static str {
        match (&self.clip_id, &self.clip_video_id) {
            (Some(_), _) => "clip_id",
            (None, Some(_)) => "clip_video_id",
            (None, None) => "text",
        }
    }

    fn checked(self) -> Result<Request, ApiError> {
        let modification = self.modification.map(|text| some_text(text, "/modification")).transpose()?;
        let query = match (self.text, self.clip_id, self.clip_video_id, self.start, self.end) {
            (Some(text), None, None, None, None) => Query::Text(some_text(text, "/text")?),
            (None, Some(id), None, None, None) => Query::Clip(id),
            (None, None, Some(video), Some(start), Some(end)) => {
                let (start_ms, end_ms) = extract::stretch(start, end, "")?;
                Query::Range { video, start_ms, end_ms }
            }
            _ => {
                let detail = "give exactly one of text, clip_id, or clip_video_id with start and end";
                return Err(ApiError::invalid("/text", detail));
            }
        };
        if modification.is_some() && matches!(query, Query::Text(_)) {
            return Err(ApiError::invalid("/modification", "a modification changes a clip, not a text"));
        }
        Ok(Request {
            query,
            modification,
            space: self.space,
            levels: Levels::Clip,
            limit: 1,
            per_group: None,
            filter: None,
            exclude: Exclude { itself: false, same_video: false },
            fusion: Fusion { mode: None, alpha: 0.5 },
            sources: Sources { visual: true, spoken: false, screen: false, by_default: false },
            weights: Weights::default(),
            overflow: Overflow::Window,
            aggregation: Aggregation::default(),
            exact: false,
            overlaps: Overlaps::Keep,
            near_duplicates: NearDuplicates::Keep,
            diversity: None,
            facets: Vec::new(),
            min_z: None,
            merge_adjacent: false,
            explain: false,
        })
    }
}
