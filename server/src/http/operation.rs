//! Health, metrics and counts.

use std::sync::Arc;

use axum::extract::State;
use reprise_index::SpaceLevel;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use crate::app::App;
use crate::catalog::Counts;
use crate::telemetry;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(stats))
}

/// Answers while the process lives.
#[utoipa::path(get, path = "/livez", tag = "operation", responses((status = 200, body = String)))]
async fn livez() -> &'static str {
    "ok"
}

/// Answers 200 while requests should be sent here.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses((status = 200, body = String), (status = 503, body = Problem)))]
async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    if app.is_ready() {
        Ok("ready")
    } else {
        Err(ApiError::unavailable("the service is starting or stopping"))
    }
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, content_type = "text/plain", body = String)))]
async fn metrics(State(app): State<Arc<App>>) -> Result<String, ApiError> {
    let handle = telemetry::metrics()
        .ok_or_else(|| ApiError::unavailable("metrics are recorded elsewhere in this process"))?;
    for space in app.spaces.all() {
        let (queries, bulk) = space.pool.waiting();
        let name = space.space.name.clone();
        ::metrics::gauge!("reprise_pool_waiting", "space" => name.clone(), "lane" => "queries")
            .set(queries as f64);
        ::metrics::gauge!("reprise_pool_waiting", "space" => name, "lane" => "bulk").set(bulk as f64);
    }
    for level in live_levels(&app) {
        ::metrics::gauge!("reprise_index_live", "space" => level.space, "level" => level.level)
            .set(level.live as f64);
    }
    ::metrics::gauge!("reprise_index_seq").set(app.gallery.applied() as f64);
    Ok(handle.render())
}

/// Counts of what is stored and searched.
#[derive(Debug, Serialize, ToSchema)]
struct Stats {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    counts: Counts,
    /// `sqlite` or `postgres`.
    database: &'static str,
    /// The newest change in the catalog.
    catalog_seq: i64,
    /// The newest change that the index holds.
    index_seq: i64,
    index: Vec<LiveLevel>,
}

/// Searchable vectors of one space at one level.
#[derive(Debug, Serialize, ToSchema)]
struct LiveLevel {
    space: String,
    level: String,
    live: u64,
}

fn live_levels(app: &App) -> Vec<LiveLevel> {
    let spaces = app.spaces.now();
    let name =
        |at: &SpaceLevel| spaces.all().iter().find(|it| it.key == at.space).map(|it| it.space.name.clone());
    let level = |at: SpaceLevel| {
        let level = format!("{:?}", at.level).to_lowercase();
        Some(LiveLevel { space: name(&at)?, level, live: app.gallery.index().live(at) })
    };
    app.gallery.index().levels().into_iter().filter_map(level).collect()
}

/// Counts of videos, clips, vectors and jobs, and how far the index is.
#[utoipa::path(get, path = "/v1/stats", tag = "operation", responses((status = 200, body = Stats)))]
async fn stats(State(app): State<Arc<App>>) -> Result<axum::Json<Stats>, ApiError> {
    Ok(axum::Json(Stats {
        counts: app.catalog.counts().await?,
        database: app.catalog.kind(),
        catalog_seq: app.catalog.last_seq().await?,
        index_seq: app.gallery.applied(),
        index: live_levels(&app),
    }))
}
