//! Health, metrics and counts.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::instant;
use crate::app::App;
use crate::catalog::Counts;
use crate::telemetry;
use crate::vectors::CollectionStatus;

/// Routes of health, metrics and counts.
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
    for level in searched_levels(&app).await? {
        let gauge = |name: &'static str, value: f64| {
            ::metrics::gauge!(name, "space" => level.space.clone(), "level" => level.level.clone())
                .set(value);
        };
        gauge("reprise_index_live", level.live as f64);
        gauge("reprise_index_bytes", level.bytes as f64);
        level.recall_at_10.into_iter().for_each(|recall| gauge("reprise_index_recall_at_10", recall));
        level
            .keys_equal
            .into_iter()
            .for_each(|equal| gauge("reprise_index_keys_equal", f64::from(u8::from(equal))));
    }
    ::metrics::gauge!("reprise_index_seq").set(app.vectors.applied().await? as f64);
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
    index: Vec<SearchedLevel>,
}

/// What is searched of one space at one level.
#[derive(Debug, Serialize, ToSchema)]
struct SearchedLevel {
    space: String,
    level: String,
    /// Searchable vectors.
    live: u64,
    /// Bytes of memory of vectors and links, mapped files included.
    bytes: u64,
    /// Whether graphs are walked; otherwise every vector is compared, and every answer is exact.
    graph: bool,
    /// Share of the true 10 nearest that the graphs find, when it was last measured; null before, and without a graph.
    recall_at_10: Option<f64>,
    /// Whether the index held the same spans as the catalog at the last check; null before.
    keys_equal: Option<bool>,
    /// When both were last looked at; null before.
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

/// Counts of videos, clips, vectors and jobs, and how far the index is.
#[utoipa::path(get, path = "/v1/stats", tag = "operation", responses((status = 200, body = Stats)))]
async fn stats(State(app): State<Arc<App>>) -> Result<axum::Json<Stats>, ApiError> {
    Ok(axum::Json(Stats {
        counts: app.catalog.counts().await?,
        database: app.catalog.kind(),
        catalog_seq: app.catalog.last_seq().await?,
        index_seq: app.vectors.applied().await?,
        index: searched_levels(&app).await?,
    }))
}
