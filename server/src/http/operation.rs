//! Health, metrics and counts.

use std::sync::Arc;

use ::metrics::{counter, gauge};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::instant;
use super::names::{DatabaseName, EngineKindName, LevelName};
use crate::app::{App, Authorized};
use crate::catalog::Counts;
use crate::health;
use crate::telemetry;
use crate::telemetry::names::{self, Metric};
use crate::vectors::{CollectionStatus, Following};

/// Routes of health, metrics and counts.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(stats))
}

/// Answers 200 while the process lives.
#[utoipa::path(get, path = "/livez", operation_id = "getLiveness", tag = "operation",
    responses((status = 200, body = String, description = "The word `ok`")))]
async fn livez() -> &'static str {
    "ok"
}

/// Answers 200 while the service takes requests.
///
/// Answers 503 while it starts or stops, while its database takes no writes,
/// and while a model has no worker or lost two of them; the problem's detail names what is wrong. The first line is `ready`.
/// The second one names the vector engine, the number of changes that it lacks, and why. A line each follows for the
/// catalog, every model and the disk. A vector engine that is away makes searches fail with 503, and nothing else.
#[utoipa::path(get, path = "/readyz", operation_id = "getReadiness", tag = "operation",
    responses((status = 200, body = String, description = "The state of each part, a line each"), (status = 503)))]
async fn readyz(State(app): State<Arc<App>>) -> Result<String, ApiError> {
    let states = health::states(&app).await?;
    let faults: Vec<&str> = states.iter().filter_map(|state| state.fault.as_deref()).collect();
    if !faults.is_empty() {
        let faults = faults.join("; ");
        tracing::warn!(faults, "not ready");
        return Err(ApiError::unavailable(faults));
    }
    let lines = states.into_iter().map(|state| state.line + "\n");
    Ok(std::iter::once("ready\n".to_owned()).chain(lines).collect())
}

/// Returns metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operation",
    responses((status = 200, content_type = "text/plain", body = String, description = "Metrics in Prometheus' text format")))]
async fn metrics(app: Authorized) -> Result<String, ApiError> {
    if app.caller().visibility().is_limited() {
        return Err(ApiError::forbidden(
            "metrics count the whole library, and your key reaches some videos only",
        ));
    }
    measure_pools(&app);
    measure_index(&app).await?;
    if let Ok(free) = app.storage.free_bytes() {
        gauge!(names::DISK_FREE_BYTES.name).set(free as f64);
    }
    telemetry::render_metrics()
        .ok_or_else(|| ApiError::unavailable("metrics are recorded elsewhere in this process"))
}

fn measure_pools(app: &App) {
    for space in app.spaces.all() {
        let (queries, bulk) = space.pool.waiting();
        for (lane, inputs) in [("queries", queries), ("bulk", bulk)] {
            let name = space.space.name.clone();
            gauge!(names::POOL_WAITING.name, "space" => name, "lane" => lane).set(inputs as f64);
        }
        counter!(names::POOL_ABANDONED.name, "space" => space.space.name.clone())
            .absolute(space.pool.abandoned() as u64);
    }
}

async fn measure_index(app: &App) -> Result<(), ApiError> {
    for level in searched_levels(app).await? {
        let set = |metric: Metric, value: f64| {
            gauge!(metric.name, "space" => level.space.clone(), "level" => level.level.clone()).set(value);
        };
        set(names::INDEX_LIVE, level.live as f64);
        set(names::INDEX_BYTES, level.bytes as f64);
        level.recall_at_10.into_iter().for_each(|recall| set(names::INDEX_RECALL, recall));
        level
            .keys_equal
            .into_iter()
            .for_each(|equal| set(names::INDEX_KEYS_EQUAL, f64::from(u8::from(equal))));
    }
    let state = app.vectors.state().await?;
    state.applied.into_iter().for_each(|seq| gauge!(names::INDEX_SEQ.name).set(seq as f64));
    state.behind().into_iter().for_each(|behind| gauge!(names::INDEX_BEHIND.name).set(behind as f64));
    gauge!(names::INDEX_UP.name).set(f64::from(u8::from(state.applied.is_some())));
    Ok(())
}

/// Counts of videos, clips, vectors and jobs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Counts)]
struct CountsOut {
    /// Number of videos in any state.
    #[schema(minimum = 0)]
    videos: i64,
    /// Number of searchable videos.
    #[schema(minimum = 0)]
    videos_ready: i64,
    /// Number of clips.
    #[schema(minimum = 0)]
    clips: i64,
    /// Number of passages of all tracks.
    #[schema(minimum = 0)]
    passages: i64,
    /// Number of vectors of all spaces.
    #[schema(minimum = 0)]
    vectors: i64,
    /// Number of queued jobs.
    #[schema(minimum = 0)]
    jobs_queued: i64,
    /// Number of running jobs.
    #[schema(minimum = 0)]
    jobs_running: i64,
    /// Number of failed jobs.
    #[schema(minimum = 0)]
    jobs_failed: i64,
    /// Size of the media of these videos, in bytes.
    #[schema(minimum = 0)]
    media_bytes: i64,
    /// Number of videos in the trash.
    #[schema(minimum = 0)]
    videos_trashed: i64,
    /// Size of the media of the videos in the trash, in bytes.
    #[schema(minimum = 0)]
    trashed_bytes: i64,
}

impl From<Counts> for CountsOut {
    fn from(counts: Counts) -> CountsOut {
        let Counts { videos, videos_ready, clips, passages, vectors, .. } = counts;
        let Counts { jobs_queued, jobs_running, jobs_failed, media_bytes, .. } = counts;
        let Counts { videos_trashed, trashed_bytes, .. } = counts;
        CountsOut {
            videos,
            videos_ready,
            clips,
            passages,
            vectors,
            jobs_queued,
            jobs_running,
            jobs_failed,
            media_bytes,
            videos_trashed,
            trashed_bytes,
        }
    }
}

/// Counts of stored and searchable entries.
#[derive(Debug, Serialize, ToSchema)]
struct Stats {
    #[serde(flatten)]
    counts: CountsOut,
    /// Kind of the database.
    #[schema(value_type = DatabaseName)]
    database: &'static str,
    /// Sequence number of the newest change in the catalog. Null for a key that reaches some videos only.
    #[schema(minimum = 0)]
    catalog_seq: Option<i64>,
    /// Sequence number of the newest change in the index. Null while the vector engine does not answer, and for a key that
    /// reaches some videos only.
    #[schema(minimum = 0)]
    index_seq: Option<i64>,
    /// State of the vector engine.
    engine: EngineOut,
    /// The index by space and level. Empty for a key that reaches some videos only.
    index: Vec<SearchedLevel>,
}

/// The vector engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Engine)]
struct EngineOut {
    /// Kind of the engine.
    #[schema(value_type = EngineKindName)]
    kind: &'static str,
    /// Number of committed changes that it lacks. Null while it does not answer.
    behind: Option<u64>,
    /// Why it does not follow the catalog. Null while it does.
    trouble: Option<String>,
}

impl From<Following> for EngineOut {
    fn from(state: Following) -> EngineOut {
        EngineOut { kind: state.kind.name(), behind: state.behind(), trouble: state.trouble }
    }
}

/// The index of one space at one level.
#[derive(Debug, Serialize, ToSchema)]
struct SearchedLevel {
    /// Readable name of the space.
    space: String,
    /// The level.
    #[schema(value_type = LevelName)]
    level: String,
    /// Number of searchable vectors.
    live: u64,
    /// Bytes of memory for vectors and graph links, mapped files included.
    bytes: u64,
    /// Whether searches walk a graph. Otherwise a search compares every vector, and its answer is exact.
    graph: bool,
    /// Share of the true 10 nearest vectors that a graph search finds, 0 to 1, at the last check. Null before the
    /// first check, and without a graph.
    #[schema(minimum = 0, maximum = 1)]
    recall_at_10: Option<f64>,
    /// Whether the index held the same spans as the catalog at the last check. Null before the first check.
    keys_equal: Option<bool>,
    /// Time of the last check (RFC 3339). Null before the first check.
    checked_at: Option<String>,
}

async fn searched_levels(app: &App) -> Result<Vec<SearchedLevel>, ApiError> {
    let (spaces, status) = (app.spaces.now(), app.vectors.status().await?);
    let level = |held: CollectionStatus| {
        let CollectionStatus { at, live, bytes, graph, .. } = held;
        let space = spaces.all().iter().find(|it| it.key == at.space)?;
        let checked = app.vectors.checked(at);
        Some(SearchedLevel {
            space: space.space.name.clone(),
            level: format!("{:?}", at.level).to_lowercase(),
            live,
            bytes,
            graph,
            recall_at_10: checked.and_then(|checked| checked.recall_at_10),
            keys_equal: checked.map(|checked| checked.keys_equal),
            checked_at: checked.map(|checked| instant(checked.at_ms)),
        })
    };
    Ok(status.collections.into_iter().filter_map(level).collect())
}

/// Returns counts of videos, clips, vectors and jobs, and the progress of the index.
#[utoipa::path(get, path = "/v1/stats", operation_id = "getStats", tag = "operation",
    responses((status = 200, body = Stats)))]
async fn stats(app: Authorized) -> Result<axum::Json<Stats>, ApiError> {
    let (counts, state) = (app.view().counts().await?, app.vectors.state().await?);
    if app.caller().visibility().is_limited() {
        let engine = EngineOut { kind: state.kind.name(), behind: None, trouble: None };
        let database = app.catalog.kind();
        return Ok(axum::Json(Stats {
            counts: counts.into(),
            database,
            catalog_seq: None,
            index_seq: None,
            engine,
            index: Vec::new(),
        }));
    }
    Ok(axum::Json(Stats {
        counts: counts.into(),
        database: app.catalog.kind(),
        catalog_seq: Some(state.newest),
        index_seq: state.applied,
        engine: state.into(),
        index: searched_levels(&app).await?,
    }))
}
