//! `/v1/spaces`: the loaded embedding spaces, models to add, their fills, and the active space of each kind of query.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use reprise_encoders::{Abilities, LoadError, ModelName, Precision, TrainedOn};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::Json;
use super::fill::{FillChoice, FillOut, Progress};
use super::names::{PrecisionName, TrainedOnName};
use super::search::QueryKindName;
use super::sources;
use crate::add_model::{Added, NewModel, add_model, resume_fill};
use crate::app::{App, Authorized};
use crate::catalog::Counts;
use crate::models::{LoadedSpace, Snapshot, Unavailable};
use crate::search;
use crate::terms::{Collection, Level, QueryKind};

/// Routes of `/v1/spaces`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(activate))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// A loaded embedding space.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Space)]
struct SpaceOut {
    /// The space's id, 64 hex digits: a hash of weights, preprocessing, sampler and pooling.
    id: String,
    /// Readable name. Requests may use it in place of the id.
    name: String,
    /// The model as it was named when it was added.
    model: String,
    /// The family of models, such as `clip`.
    family: String,
    /// Number of values of a vector.
    dim: usize,
    /// Longest text that the model reads at once, in tokens. 0 if it takes no text.
    max_text_tokens: usize,
    /// Whether the model sees the order of frames.
    temporal: bool,
    /// Whether the server stores features of single frames. A video can then be segmented again without decoding.
    keeps_features: bool,
    /// Training data of the weights.
    #[schema(value_type = TrainedOnName)]
    trained_on: TrainedOn,
    /// Number format of the model's matrix products.
    #[schema(value_type = PrecisionName)]
    precision: Precision,
    /// Devices that run the model: `cpu`, `cuda:N`.
    devices: Vec<String>,
    /// The inputs that the model takes.
    #[schema(value_type = AbilitiesOut)]
    can: Abilities,
    /// Rule by which the model samples the frames of a span.
    #[schema(value_type = HashMap<String, Value>)]
    sampler: Value,
    /// Whether the model was added to a running server. The server loads an added model at each start.
    added: bool,
    /// Query kinds that use this space if the request names no space.
    active_for: Vec<QueryKindName>,
    /// Number of searchable clips.
    clips: u64,
    /// Number of searchable full videos.
    videos: u64,
    /// Number of searchable passages of subtitles.
    passages: u64,
    /// Least cosine of two clips that are near duplicates, 0.9 to 0.995. A search with `near_duplicates` measures it from the
    /// clips that the caller may see. Null before, and if they are fewer than 50.
    #[schema(minimum = 0.9, maximum = 0.995)]
    near_duplicate_similarity: Option<f32>,
    /// Share of all ready videos that are searchable in this space, 0 to 1. For a space that takes no frames: the
    /// share of all passages.
    #[schema(minimum = 0, maximum = 1)]
    coverage: f64,
    /// The background jobs that encode stored videos into this space.
    fill: FillOut,
}

/// The inputs that a model takes.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer in the OpenAPI file")]
#[schema(as = Abilities)]
struct AbilitiesOut {
    /// Texts.
    text: bool,
    /// Frames of video.
    frames: bool,
    /// Clips with a modification text, by a trained fusion head.
    composed: bool,
}

/// All loaded spaces.
#[derive(Debug, Serialize, ToSchema)]
struct SpaceList {
    /// The spaces.
    items: Vec<SpaceOut>,
    /// Models to load, in order. The first one is loading now.
    loading: Vec<String>,
    /// Added models that did not load at this start.
    unavailable: Vec<UnavailableOut>,
}

/// An added model that did not load at this start.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UnavailableModel)]
struct UnavailableOut {
    /// The model as it was named when it was added.
    model: String,
    /// Reason for the failure.
    reason: String,
}

/// Lists the loaded embedding spaces.
#[utoipa::path(get, path = "/v1/spaces", operation_id = "listSpaces", tag = "models",
    responses((status = 200, body = SpaceList)))]
async fn list(app: Authorized) -> Result<axum::Json<SpaceList>, ApiError> {
    let held = Held::of(&app).await?;
    let now = app.spaces.now();
    let unavailable = app.spaces.unavailable().iter();
    // A model that was added again since the start is available.
    let unavailable = unavailable.filter(|it| now.all().iter().all(|space| space.space.model != it.model));
    let out = |it: &Unavailable| UnavailableOut { model: it.model.clone(), reason: it.why.clone() };
    Ok(axum::Json(SpaceList {
        items: now.all().iter().map(|space| describe(&app, &now, space, &held)).collect(),
        loading: app.spaces.loading().into_iter().map(|it| it.model).collect(),
        unavailable: unavailable.map(out).collect(),
    }))
}

/// A model to load.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewModel)]
struct NewModelIn {
    /// A hub id `org/name[@revision]`, `builtin:sports`, `builtin:tiny`, or a folder on the server under a configured
    /// model root.
    model: String,
    /// Whether its fill begins at once. With `paused` the answer gives the estimated time, and `resumeFill` begins.
    #[serde(default)]
    fill: FillChoice,
}

/// Loads a model into the running server, now and at each start.
///
/// The answer comes when the model is loaded and was measured on three stored clips, so it waits for the download. A
/// repeated request waits for the same load. Background jobs then encode stored videos; `coverage` gives their progress,
/// and `fill` the estimated time. Searches may name the new space
/// at once. It becomes active for query kinds that had no active space; other kinds keep theirs. If the model was
/// loaded before, the answer is 200 with its space. If the hub does not respond, the answer is 424.
#[utoipa::path(post, path = "/v1/spaces", operation_id = "addSpace", tag = "models", request_body = NewModelIn,
    responses((status = 201, body = SpaceOut, description = "It is loaded now"),
        (status = 200, body = SpaceOut, description = "It was loaded already"), (status = 409), (status = 424)))]
async fn add(
    app: Authorized,
    Json(body): Json<NewModelIn>,
) -> Result<(StatusCode, axum::Json<SpaceOut>), ApiError> {
    let known = app.spaces.all().into_iter().find(|it| it.space.model == body.model);
    let added = match known {
        Some(space) => Added { space, is_new: false },
        None => {
            let model = model_name(&app, &body.model)?;
            add_model(app.shared(), NewModel { model, paused: body.fill == FillChoice::Paused }).await?
        }
    };
    let held = Held::of(&app).await?;
    let out = describe(&app, &app.spaces.now(), &added.space, &held);
    Ok((if added.is_new { StatusCode::CREATED } else { StatusCode::OK }, axum::Json(out)))
}

/// The model with this name, if clients may load it. The error does not reveal whether other folders exist.
fn model_name(app: &App, name: &str) -> Result<ModelName, ApiError> {
    let invalid = |error: LoadError| ApiError::invalid("/model", error.to_string());
    let looks_like_path = name.starts_with(['/', '.', '~']);
    let parsed = if looks_like_path { None } else { Some(name.parse::<ModelName>().map_err(invalid)?) };
    match parsed {
        Some(model) if model.path().is_none() => Ok(model),
        _ => {
            let real = sources::under_model_root(app, Path::new(name))?;
            let text = real.to_str().ok_or_else(|| ApiError::invalid("/model", "its path is not UTF-8"))?;
            text.parse().map_err(invalid)
        }
    }
}

/// Query kinds to move to a space.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Activation)]
struct Activate {
    /// The query kinds, at least one.
    #[schema(min_items = 1)]
    r#for: Vec<QueryKindName>,
}

/// Makes a space active for the given query kinds, also after restarts.
///
/// Requests may still name the space that was active before. If the command line later names another model for a
/// kind, that model becomes active at the next start. A search finds only videos that the space already holds; see
/// `coverage`.
#[utoipa::path(post, path = "/v1/spaces/{id}/activate", operation_id = "activateSpace", tag = "models",
    request_body = Activate, params(("id" = String, Path, description = "The space's id or readable name")),
    responses((status = 200, body = SpaceOut), (status = 409)))]
async fn activate(
    app: Authorized,
    axum::extract::Path(id): axum::extract::Path<String>,
    Json(body): Json<Activate>,
) -> Result<axum::Json<SpaceOut>, ApiError> {
    let space = loaded(&app, &id)?;
    if body.r#for.is_empty() {
        return Err(ApiError::invalid(
            "/for",
            "name at least one kind of query: text, clip, composed, spoken",
        ));
    }
    let kinds: Vec<QueryKind> = body.r#for.into_iter().map(QueryKind::from).collect();
    app.spaces.activate(&space, &kinds, &app.catalog).await?;
    let held = Held::of(&app).await?;
    Ok(axum::Json(describe(&app, &app.spaces.now(), &space, &held)))
}

/// Pauses the fill of a space, also after restarts.
///
/// Fill jobs leave the space out; the running ones start again without it within seconds. What they had finished is
/// kept. New videos are encoded into the space all the same, and searches find what it holds.
#[utoipa::path(post, path = "/v1/spaces/{id}/pause", operation_id = "pauseFill", tag = "models",
    params(("id" = String, Path, description = "The space's id or readable name")),
    responses((status = 200, body = SpaceOut)))]
async fn pause(
    app: Authorized,
    axum::extract::Path(id): axum::extract::Path<String>,
) -> Result<axum::Json<SpaceOut>, ApiError> {
    let space = loaded(&app, &id)?;
    app.catalog.pause_fill(space.key).await?;
    let held = Held::of(&app).await?;
    Ok(axum::Json(describe(&app, &app.spaces.now(), &space, &held)))
}

/// Ends the pause of a space's fill: jobs for the vectors that it lacks join the queue.
#[utoipa::path(post, path = "/v1/spaces/{id}/resume", operation_id = "resumeFill", tag = "models",
    params(("id" = String, Path, description = "The space's id or readable name")),
    responses((status = 200, body = SpaceOut)))]
async fn resume(
    app: Authorized,
    axum::extract::Path(id): axum::extract::Path<String>,
) -> Result<axum::Json<SpaceOut>, ApiError> {
    let space = loaded(&app, &id)?;
    resume_fill(&app, &space).await?;
    let held = Held::of(&app).await?;
    Ok(axum::Json(describe(&app, &app.spaces.now(), &space, &held)))
}

fn loaded(app: &App, id: &str) -> Result<Arc<LoadedSpace>, ApiError> {
    let space = app.spaces.named(id);
    space.ok_or_else(|| ApiError::not_found(format!("no loaded space is called `{id}`")).at("id"))
}

/// Counts of stored and of searchable entries that the caller sees.
struct Held {
    counts: Counts,
    live: HashMap<Collection, u64>,
    /// Keys of the spaces whose fill is paused.
    paused: Vec<u32>,
}

impl Held {
    async fn of(app: &Authorized) -> Result<Held, ApiError> {
        let (counts, paused) = (app.view().counts().await?, app.catalog.paused_fills().await?);
        if app.caller().visibility().is_limited() {
            let seen = app.view().vector_counts().await?.into_iter();
            let live = seen.map(|it| (it.collection(), it.vectors)).collect();
            return Ok(Held { counts, live, paused });
        }
        let held = app.vectors.status().await?.collections.into_iter();
        Ok(Held { counts, live: held.map(|it| (it.at, it.live)).collect(), paused })
    }
}

fn describe(app: &Authorized, now: &Snapshot, loaded: &LoadedSpace, held: &Held) -> SpaceOut {
    let Held { counts, live, paused } = held;
    let live = |level| live.get(&Collection { space: loaded.key, level }).copied().unwrap_or_default();
    let (space, videos, passages) = (&loaded.space, live(Level::Video), live(Level::Passage));
    let (held, all) =
        if space.can.frames { (videos, counts.videos_ready) } else { (passages, counts.passages) };
    let coverage = if all > 0 { (held as f64 / all as f64).min(1.0) } else { 1.0 };
    let stored = if space.can.frames { counts.clips } else { 0 };
    let clips_left = u64::try_from(stored).unwrap_or_default().saturating_sub(live(Level::Clip));
    let (is_paused, is_limited) = (paused.contains(&loaded.key), app.caller().visibility().is_limited());
    let progress = Progress { clips_left, coverage, is_paused, is_limited };
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
        precision: space.precision,
        devices: loaded.devices.clone(),
        can: space.can,
        sampler: serde_json::to_value(space.sampler).unwrap_or_default(),
        added: loaded.added,
        active_for: now.active_for(loaded).into_iter().map(QueryKindName::from).collect(),
        clips: live(Level::Clip),
        videos,
        passages,
        near_duplicate_similarity: search::known_duplicate_cosine(app, loaded),
        coverage,
        fill: FillOut::new(loaded, &progress),
    }
}
