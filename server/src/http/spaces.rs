//! `/v1/spaces` and `/v1/embeddings`: the loaded embedding spaces, and vectors on demand.

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest, State};
use reprise_encoders::Abilities;
use reprise_encoders::text::Overflow;
use reprise_index::{Level, SpaceLevel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::extract::{self, Form, Json};
use super::search::{ClipBody, OverflowName};
use crate::app::App;
use crate::config::QueryKind;
use crate::search::{self, Encoded, Query, QueryInfo};
use crate::spaces::LoadedSpace;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(embed))
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
    /// Whether the weights have learnt nothing.
    untrained: bool,
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
    /// Share of all ready videos that are searchable in this space, 0 to 1.
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
    let ready = app.catalog.counts().await?.videos_ready;
    let items = app.spaces.all().iter().map(|space| describe(&app, space, ready)).collect();
    Ok(axum::Json(SpaceList { items }))
}

fn describe(app: &App, loaded: &LoadedSpace, ready: i64) -> SpaceOut {
    let live = |level| app.gallery.index().live(SpaceLevel { space: loaded.key, level });
    let (space, videos) = (&loaded.space, live(Level::Video));
    SpaceOut {
        id: space.id.clone(),
        name: space.name.clone(),
        model: space.model.clone(),
        family: space.family.clone(),
        dim: space.dim,
        max_text_tokens: space.max_text_tokens,
        temporal: space.temporal,
        untrained: space.untrained,
        can: space.can,
        sampler: serde_json::to_value(space.sampler).unwrap_or_default(),
        active_for: app.spaces.active_for(loaded),
        clips: live(Level::Clip),
        videos,
        coverage: if ready > 0 { (videos as f64 / ready as f64).min(1.0) } else { 1.0 },
    }
}

/// What to embed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EmbedBody {
    input: EmbedInput,
    /// A space's id or readable name; default: the active one for the input's kind.
    space: Option<String>,
    /// What to do with a text over the model's limit; default `window`.
    on_overflow: Option<OverflowName>,
}

/// Exactly one of text, clip, upload.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EmbedInput {
    text: Option<String>,
    clip: Option<ClipBody>,
    /// The part `file` of a multipart request.
    upload: Option<bool>,
}

/// An input's vectors.
#[derive(Debug, Serialize, ToSchema)]
struct EmbedAnswer {
    /// The space's readable name.
    space: String,
    /// One per text window; one for a clip. Norm 1.
    vectors: Vec<WindowOut>,
    /// Their mean, norm 1.
    vector: Vec<f32>,
    /// Length of the raw vector.
    norm: f32,
    query_info: QueryInfo,
}

/// The vector of a stretch of the text, in tokens, end exclusive.
#[derive(Debug, Serialize, ToSchema)]
struct WindowOut {
    start_token: usize,
    end_token: usize,
    values: Vec<f32>,
}

/// Embeds a text, a stored clip, or an upload (multipart: `query` with this JSON, then `file`).
#[utoipa::path(post, path = "/v1/embeddings", tag = "models", request_body = EmbedBody,
    responses((status = 200, body = EmbedAnswer), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
async fn embed(
    State(app): State<Arc<App>>,
    request: HttpRequest,
) -> Result<axum::Json<EmbedAnswer>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return embed_upload(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<EmbedBody>::from_request(request, &()).await?;
    match (body.input.text, body.input.clip, body.input.upload) {
        (Some(text), None, None | Some(false)) => {
            let space = search::space_for(&app, QueryKind::Text, body.space.as_deref())?;
            let permit = space.pool.admit()?;
            let overflow = body.on_overflow.map_or(Overflow::Window, Overflow::from);
            let encoded = search::embed_text(&app, &space, permit, &text, overflow, "/input/text").await?;
            Ok(answer(&space, encoded))
        }
        (None, Some(clip), None | Some(false)) => {
            let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, "/input/clip")?;
            let query = Query::Range { video: clip.video_id, start_ms, end_ms };
            embed_clip(&app, body.space.as_deref(), query).await
        }
        (None, None, Some(true)) => {
            Err(ApiError::invalid("/input/upload", "an upload comes as multipart with the part `file`"))
        }
        _ => Err(ApiError::invalid("/input", "give exactly one of text, clip, upload")),
    }
}

async fn embed_clip(
    app: &App,
    space: Option<&str>,
    query: Query,
) -> Result<axum::Json<EmbedAnswer>, ApiError> {
    let space = search::space_for(app, QueryKind::Clip, space)?;
    let permit = space.pool.admit()?;
    let encoded = search::embed_clip(app, &space, permit, &query).await?;
    Ok(answer(&space, encoded))
}

async fn embed_upload(app: &App, mut form: Form) -> Result<axum::Json<EmbedAnswer>, ApiError> {
    let first = extract::next_part(&mut form.0).await?;
    let Some(first) = first.filter(|part| part.name() == Some("query")) else {
        return Err(ApiError::invalid("query", "the first part must be `query`, the JSON of the request"));
    };
    let body: EmbedBody = extract::parse(&extract::text_part(first).await?, "")?;
    if body.input.upload != Some(true) || body.input.text.is_some() || body.input.clip.is_some() {
        return Err(ApiError::invalid(
            "/input/upload",
            "a multipart request has the input {\"upload\": true}",
        ));
    }
    let space = search::space_for(app, QueryKind::Clip, body.space.as_deref())?;
    let permit = space.pool.admit()?;
    let file = match extract::next_part(&mut form.0).await? {
        Some(part) if part.name() == Some("file") => {
            extract::file_part(part, &app.media, app.config.max_upload_bytes).await?
        }
        _ => return Err(ApiError::invalid("file", "the part `file` must follow the part `query`")),
    };
    let (path, content_hash) = (file.path().to_owned(), file.content_hash.clone());
    let query = Query::Upload { path, content_hash, start_ms: None, end_ms: None };
    Ok(answer(&space, search::embed_clip(app, &space, permit, &query).await?))
}

fn answer(space: &LoadedSpace, encoded: Encoded) -> axum::Json<EmbedAnswer> {
    let vector = encoded.vector.values().to_vec();
    let whole = || vec![WindowOut { start_token: 0, end_token: 0, values: vector.clone() }];
    let window = |(start_token, end_token, unit): (usize, usize, reprise_index::UnitVector)| WindowOut {
        start_token,
        end_token,
        values: unit.values().to_vec(),
    };
    let windows: Vec<WindowOut> = encoded.windows.into_iter().map(window).collect();
    axum::Json(EmbedAnswer {
        space: space.space.name.clone(),
        vectors: if windows.is_empty() { whole() } else { windows },
        norm: encoded.norm,
        query_info: encoded.info,
        vector,
    })
}
