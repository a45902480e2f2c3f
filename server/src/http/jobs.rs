//! `/v1/jobs`: background jobs, running and ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Params};
use super::names::{JobKindName, JobStateName};
use crate::app::{App, Authorized};
use crate::catalog::{Job, JobFilter, JobName, JobState, RefusedFile};

/// Polling interval of a watched job.
const LOOK: Duration = Duration::from_millis(400);

/// Routes of `/v1/jobs`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(events))
        .routes(routes!(cancel))
        .routes(routes!(retry))
}

/// A background job.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Job)]
pub(super) struct JobOut {
    /// The job's id, a uuid v7.
    id: Uuid,
    /// Kind of the job.
    #[schema(value_type = JobKindName)]
    kind: JobName,
    /// Id of the video that it works on; null for an export, an evaluation, a map and a refused file.
    video_id: Option<Uuid>,
    /// State of the job.
    #[schema(value_type = JobStateName)]
    state: JobState,
    /// Current stage: `probe`, `decode`, `features` (cached frames instead of decoding), `finish` or `done`; of an export
    /// `probe`, `film`, `join`, `write` or `done`; of an evaluation `search`, `finish` or `done`; of a map
    /// `read`, `project`, `place` or `done`; of a transcription `listen`, `finish` or `done`; of text on screen `read`,
    /// `finish` or `done`. Empty if no worker runs the
    /// job.
    stage: String,
    /// Fraction of the work done, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    progress: f64,
    /// Number of frames done.
    #[schema(minimum = 0)]
    frames_done: i64,
    /// Estimated number of frames; null if unknown.
    #[schema(minimum = 0)]
    frames_total: Option<i64>,
    /// Estimated seconds left; null unless the job is running.
    #[schema(minimum = 0)]
    eta_s: Option<f64>,
    /// Number of starts so far.
    #[schema(minimum = 0)]
    attempts: i64,
    /// Time of the next attempt (RFC 3339), if the last attempt failed and the job waits; else null.
    retry_at: Option<String>,
    /// Reason for the failure, the next attempt or the cancellation; null if there is none.
    reason: Option<String>,
    /// What a succeeded job found, where that needs words: e.g. that a video has no sound. Else null.
    note: Option<String>,
    /// The file, if it was refused at the upload. The job then failed at once, has no video and can't be retried. Null for
    /// all other jobs.
    refused_file: Option<RefusedFileOut>,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// Time of its last change (RFC 3339).
    updated_at: String,
}

/// A file that was refused. The server does not keep it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = RefusedFile)]
struct RefusedFileOut {
    /// Name of the file as the client sent it, without folders, 1 to 255 characters.
    file_name: String,
    /// Size of the file, in bytes. Null if the upload was cut off because the file is too large.
    #[schema(minimum = 0)]
    bytes: Option<i64>,
}

impl From<Job> for JobOut {
    fn from(job: Job) -> JobOut {
        let done = job.state == JobState::Succeeded;
        JobOut {
            id: job.id,
            kind: job.kind,
            video_id: job.video,
            state: job.state,
            stage: job.progress.stage,
            progress: if done { 1.0 } else { job.progress.fraction },
            frames_done: job.progress.frames_done,
            frames_total: job.progress.frames_total,
            eta_s: if job.state == JobState::Running { job.progress.eta_s } else { None },
            attempts: job.attempts,
            retry_at: job.retry_at_ms.map(super::instant),
            reason: job.reason,
            note: job.note,
            refused_file: job
                .refused
                .map(|RefusedFile { file_name, bytes }| RefusedFileOut { file_name, bytes }),
            created_at: super::instant(job.created_at_ms),
            updated_at: super::instant(job.updated_at_ms),
        }
    }
}

impl JobOut {
    fn has_ended(&self) -> bool {
        matches!(self.state, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }
}

/// One page of jobs.
#[derive(Debug, Serialize, ToSchema)]
struct JobPage {
    /// The jobs, at most `limit`.
    items: Vec<JobOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobParams {
    /// Lists only jobs in this state.
    #[param(value_type = Option<JobStateName>, nullable = false)]
    state: Option<JobState>,
    /// Lists only jobs of this kind.
    #[param(value_type = Option<JobKindName>, nullable = false)]
    kind: Option<JobName>,
    /// Lists only jobs of this video.
    #[param(nullable = false)]
    video_id: Option<Uuid>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

/// Lists jobs, newest first. Files that were refused at the upload are failed jobs without a video, for some days.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "listJobs", tag = "jobs", params(JobParams),
    responses((status = 200, body = JobPage)))]
async fn list(app: Authorized, Params(params): Params<JobParams>) -> Result<axum::Json<JobPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let only = JobFilter { state: params.state, kind: params.kind, video: params.video_id };
    let jobs = app.view().jobs(&only, params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&jobs, limit, |job| job.id);
    Ok(axum::Json(JobPage { items: jobs.into_iter().map(JobOut::from).collect(), next_cursor }))
}

/// Returns one job.
#[utoipa::path(get, path = "/v1/jobs/{id}", operation_id = "getJob", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's id")), responses((status = 200, body = JobOut)))]
async fn get(app: Authorized, Id(id): Id) -> Result<axum::Json<JobOut>, ApiError> {
    found(app.view().job(id).await?, id)
}

/// Server-sent events. Each has the type `job`, and as its data a `Job` as JSON.
// Without a type: some readers of the file check each event against it, others the whole text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer in the OpenAPI file")]
#[schema(value_type = Value)]
struct JobEvents(String);

/// Streams a job as server-sent events.
///
/// The first event comes at once, and one more with each change. Its type is `job`, its data is the job as JSON on one
/// line, in the form of the schema `Job`. A comment comes every 15 s when nothing changes. The stream ends after the event
/// whose `state` is `succeeded`, `failed` or `cancelled`, or when the server stops; then connect again.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", operation_id = "watchJob", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, content_type = "text/event-stream", body = inline(JobEvents),
        description = "Events of the type `job`; the data of each is a `Job` as JSON")))]
async fn events(
    app: Authorized,
    Id(id): Id,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let _exists = found(app.view().job(id).await?, id)?;
    let watched = stream::unfold((app, None::<JobOut>), move |(app, shown)| async move {
        let next = next_change(&app, id, shown).await?;
        let event = Event::default().event("job").json_data(&next).ok()?;
        Some((Ok(event), (app, Some(next))))
    });
    Ok(Sse::new(watched).keep_alive(KeepAlive::default()))
}

/// Waits for a change of the job. `None` once it has ended, is gone, or the service stops.
async fn next_change(app: &Authorized, id: Uuid, shown: Option<JobOut>) -> Option<JobOut> {
    if shown.as_ref().is_some_and(JobOut::has_ended) {
        return None;
    }
    loop {
        let job = JobOut::from(app.view().job(id).await.ok()??);
        if shown.as_ref() != Some(&job) {
            return Some(job);
        }
        if !app.is_ready() {
            return None;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Cancels a queued or running job.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", operation_id = "cancelJob", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, body = JobOut), (status = 409)))]
async fn cancel(app: Authorized, Id(id): Id) -> Result<axum::Json<JobOut>, ApiError> {
    found(app.view().cancel_job(id).await?, id)
}

/// Queues a failed or cancelled job again. A job that waits for its next attempt is tried at once.
///
/// The job of a refused file gets 409: the file is not kept.
#[utoipa::path(post, path = "/v1/jobs/{id}/retry", operation_id = "retryJob", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, body = JobOut), (status = 409)))]
async fn retry(app: Authorized, Id(id): Id) -> Result<axum::Json<JobOut>, ApiError> {
    found(app.view().retry_job(id).await?, id)
}

fn found(job: Option<Job>, id: Uuid) -> Result<axum::Json<JobOut>, ApiError> {
    let job = job.ok_or_else(|| ApiError::no_such("job", id))?;
    Ok(axum::Json(job.into()))
}
