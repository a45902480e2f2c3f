//! `GET /v1/map`: the spans of a level as points in the plane.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::Params;
use super::instant as rfc3339;
use super::names::LevelName;
use super::search::seconds;
use crate::app::{App, Authorized};
use crate::catalog::{MapPage, MapState};
use crate::models::LoadedSpace;
use crate::terms::{Collection, Level, QueryKind};

/// Largest number of points on a page.
const MOST: u32 = 20_000;

/// Routes of `/v1/map`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct MapParams {
    /// Id or readable name of a space. Default: the active space for texts, or the first one.
    #[param(nullable = false)]
    space: Option<String>,
    /// Level of the spans. Default `clip`.
    #[param(value_type = Option<LevelName>, nullable = false)]
    level: Option<Level>,
    /// Spans per page, 1 to 20000; default 5000.
    #[param(minimum = 1, maximum = 20_000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

/// A page of a map. The lists `ids`, `videos`, `x`, `y`, `start` and `end` have one value for each span.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Map)]
struct MapOut {
    /// Readable name of the space.
    space: String,
    /// Level of the spans.
    #[schema(value_type = LevelName)]
    level: Level,
    /// Time of its making (RFC 3339). Null: it is not made yet; ask again.
    made_at: Option<String>,
    /// Whether a job will make it, or make it anew. Always false on later pages.
    refreshing: bool,
    /// Why it could not be made anew; null if nothing is wrong. A new try begins ten minutes later.
    problem: Option<String>,
    /// Ids of the videos of these spans.
    video_ids: Vec<Uuid>,
    /// Ids of the spans.
    ids: Vec<Uuid>,
    /// The video of each span: its place in `video_ids`, from 0.
    videos: Vec<usize>,
    /// To the right, -1 to 1.
    x: Vec<f32>,
    /// Upwards, -1 to 1. Both axes have one scale.
    y: Vec<f32>,
    /// Start of each span in its video, in seconds, from 0.
    start: Vec<f64>,
    /// End of each span in its video, in seconds, exclusive, from 0.
    end: Vec<f64>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Returns a map: the spans of a level as points in the plane, spans with like vectors close to each other.
///
/// Principal components and UMAP lay out up to 20000 spans, and the others are placed between their nearest ones. Equal vectors
/// give an equal map. A job makes it at the first call, and anew at a call after a tenth of the spans has changed; until then the
/// old map is answered. Spans without a place, because they are new, are left out, so that a page may have fewer than `limit`.
#[utoipa::path(get, path = "/v1/map", operation_id = "getMap", tag = "search", params(MapParams),
    responses((status = 200, body = MapOut), (status = 409)))]
async fn get(app: Authorized, Params(params): Params<MapParams>) -> Result<axum::Json<MapOut>, ApiError> {
    let limit = params.limit.unwrap_or(5000);
    if !(1..=MOST).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("must be from 1 to {MOST}")));
    }
    let level = params.level.unwrap_or(Level::Clip);
    let space = space(&app, params.space.as_deref(), level)?;
    let of = Collection { space: space.key, level };
    let state = match params.cursor {
        None => asked(&app, of).await?,
        Some(_) => MapState { made_at_ms: app.catalog.map_made_at(of).await?, ..MapState::default() },
    };
    let page = match state.made_at_ms {
        Some(_) => app.view().map_page(of, params.cursor, limit).await?,
        None => MapPage::default(),
    };
    Ok(axum::Json(MapOut::of(state, page, &space, level)))
}

/// The state of a map, which is made if it must be.
async fn asked(app: &Authorized, of: Collection) -> Result<MapState, ApiError> {
    let mut state = app.catalog.ask_for_map(of).await?;
    if app.caller().visibility().is_limited() {
        // The job reads all videos, so its reason may speak of videos that the caller does not see.
        state.trouble = state.trouble.map(|_| "its job failed".to_owned());
    }
    Ok(state)
}

/// The space named, or the one that answers texts: those of subtitles for passages.
fn space(app: &App, named: Option<&str>, level: Level) -> Result<Arc<LoadedSpace>, ApiError> {
    let kind = if level == Level::Passage { QueryKind::Spoken } else { QueryKind::Text };
    match named {
        Some(name) => app
            .spaces
            .named(name)
            .ok_or_else(|| ApiError::invalid("space", format!("no loaded space is called `{name}`"))),
        None => {
            let first = || app.spaces.all().first().cloned();
            let none = || ApiError::conflict("no model is loaded that has vectors of this level").at("level");
            app.spaces.active(kind).or_else(first).ok_or_else(none)
        }
    }
}

impl MapOut {
    fn of(state: MapState, page: MapPage, space: &LoadedSpace, level: Level) -> MapOut {
        let mut out = MapOut {
            space: space.space.name.clone(),
            level,
            made_at: state.made_at_ms.map(rfc3339),
            refreshing: state.is_waited_for,
            problem: state.trouble,
            video_ids: Vec::new(),
            ids: Vec::with_capacity(page.spans.len()),
            videos: Vec::with_capacity(page.spans.len()),
            x: Vec::with_capacity(page.spans.len()),
            y: Vec::with_capacity(page.spans.len()),
            start: Vec::with_capacity(page.spans.len()),
            end: Vec::with_capacity(page.spans.len()),
            next_cursor: page.next.map(|id| id.to_string()),
        };
        let mut places: HashMap<Uuid, usize> = HashMap::new();
        for span in page.spans {
            let next = places.len();
            let place = *places.entry(span.video).or_insert_with(|| {
                out.video_ids.push(span.video);
                next
            });
            out.ids.push(span.id);
            out.videos.push(place);
            out.x.push(span.point.x);
            out.y.push(span.point.y);
            out.start.push(seconds(span.start_ms));
            out.end.push(seconds(span.end_ms));
        }
        out
    }
}
