//! `/v1/spaces`: the loaded embedding spaces.

use std::sync::Arc;

use axum::extract::State;
use reprise_encoders::{Abilities, TrainedOn};
use reprise_index::{Level, SpaceLevel};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use crate::app::App;
use crate::catalog::Counts;
use crate::config::QueryKind;
use crate::spaces::LoadedSpace;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A loaded embedding space.
#[derive(Debug, Serialize, ToSchema)]
struct SpaceOut {
    id: String,
    /// Readable name, accepted wherever an id is.
    name: String,
    model: String,
    family: String,
    dim: usize,
    max_text_tokens: usize,
    temporal: bool,
    /// Whether the features of single frames are kept, so that a video is cut again without being decoded.
    keeps_features: bool,
    /// What the weights have learnt from: `nothing`, `rendered_clips`, or `unstated`.
    #[schema(value_type = String)]
    trained_on: TrainedOn,
    #[schema(value_type = Object)]
    can: Abilities,
    /// How frames of a span are picked.
    #[schema(value_type = Object)]
    sampler: Value,
    /// Query kinds that go to this space unless another is named.
    active_for: Vec<QueryKind>,
    /// Searchable clips.
    clips: u64,
    /// Searchable full videos.
    videos: u64,
    /// Searchable passages of what is said.
    passages: u64,
    /// Share of all ready videos that are searchable in this space, 0 to 1; of a space that takes no frames the share
    /// of all passages.
    coverage: f64,
}

/// All loaded spaces.
#[derive(Debug, Serialize, ToSchema)]
struct SpaceList {
    items: Vec<SpaceOut>,
}

/// Lists the loaded embedding spaces.
#[utoipa::path(get, path = "/v1/spaces", tag = "models", responses((status = 200, body = SpaceList)))]
async fn list(State(app): State<Arc<App>>) -> Result<axum::Json<SpaceList>, ApiError> {
    let counts = app.catalog.counts().await?;
    let items = app.spaces.all().iter().map(|space| describe(&app, space, &counts)).collect();
    Ok(axum::Json(SpaceList { items }))
}

fn describe(app: &App, loaded: &LoadedSpace, counts: &Counts) -> SpaceOut {
    let live = |level| app.gallery.index().live(SpaceLevel { space: loaded.key, level });
    let (space, videos, passages) = (&loaded.space, live(Level::Video), live(Level::Passage));
    let (held, all) =
        if space.can.frames { (videos, counts.videos_ready) } else { (passages, counts.passages) };
    SpaceOut {
        id: space.id.clone(),
        name: space.name.clone(),
        model: space.model.clone(),
        family: space.family.clone(),
        dim: space.dim,
        max_text_tokens: space.max_text_tokens,
        temporal: space.temporal,
        keeps_features: space.frame_stage.is_some(),
        trained_on: space.trained_on,
        can: space.can,
        sampler: serde_json::to_value(space.sampler).unwrap_or_default(),
        active_for: app.spaces.active_for(loaded),
        clips: live(Level::Clip),
        videos,
        passages,
        coverage: if all > 0 { (held as f64 / all as f64).min(1.0) } else { 1.0 },
    }
}
