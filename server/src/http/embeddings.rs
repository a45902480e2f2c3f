//! `POST /v1/embeddings`: vectors on demand, of a text, a stored clip or an upload.

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest, State};
use reprise_encoders::text::Overflow;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::extract::{self, Form, Json};
use super::guard;
use super::search::{ClipBody, OverflowName, some_text};
use crate::app::App;
use crate::config::QueryKind;
use crate::search::{self, Embedding, Query};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(embed))
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
    /// A text of 1 to some thousands of words.
    text: Option<String>,
    /// A stretch of a stored video.
    clip: Option<ClipBody>,
    /// The part `file` of a multipart request.
    upload: Option<bool>,
}

/// A multipart request: `query` first, then `file`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
struct EmbedForm {
    /// At most 256 KiB.
    query: EmbedBody,
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Embeds a text, a stored clip, or an upload (multipart: `query` with this JSON, then `file`).
#[utoipa::path(post, path = "/v1/embeddings", tag = "models",
    request_body(content((EmbedBody = "application/json"), (EmbedForm = "multipart/form-data"))),
    responses(
        (status = 200, body = Embedding), (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
    )
)]
async fn embed(State(app): State<Arc<App>>, request: HttpRequest) -> Result<axum::Json<Embedding>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return embed_upload(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<EmbedBody>::from_request(request, &()).await?;
    let query = body.input.stored()?;
    let kind = if matches!(query, Query::Text(_)) { QueryKind::Text } else { QueryKind::Clip };
    let space = search::space_for(&app, kind, body.space.as_deref())?;
    let permit = space.pool.admit()?;
    let overflow = body.on_overflow.map_or(Overflow::Window, Overflow::from);
    let encoded = search::embed(&app, &space, permit, &query, overflow, "/input").await?;
    Ok(axum::Json(encoded.into_embedding(&space)))
}

/// The JSON is checked and a place in the pool taken before the file is read.
async fn embed_upload(app: &App, mut form: Form) -> Result<axum::Json<Embedding>, ApiError> {
    let body: EmbedBody = form.query(app).await?;
    let EmbedInput { text: None, clip: None, upload: Some(true) } = body.input else {
        let detail = "a multipart request has the input {\"upload\": true}";
        return Err(ApiError::invalid("/input/upload", detail));
    };
    let space = search::space_for(app, QueryKind::Clip, body.space.as_deref())?;
    let permit = space.pool.admit()?;
    let file = form.file(app).await?;
    let (path, content_hash) = (file.path().to_owned(), file.content_hash.clone());
    let query = Query::Upload { path, content_hash, start_ms: None, end_ms: None };
    let work = async { Ok(search::embed(app, &space, permit, &query, Overflow::Window, "/input").await?) };
    Ok(axum::Json(guard::in_time(app, work).await?.into_embedding(&space)))
}

impl EmbedInput {
    /// As a query that needs no file.
    fn stored(self) -> Result<Query, ApiError> {
        match (self.text, self.clip, self.upload) {
            (Some(text), None, None | Some(false)) => Ok(Query::Text(some_text(text, "/input/text")?)),
            (None, Some(clip), None | Some(false)) => {
                let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, "/input/clip")?;
                Ok(Query::Range { video: clip.video_id, start_ms, end_ms })
            }
            (None, None, Some(true)) => {
                Err(ApiError::invalid("/input/upload", "an upload comes as multipart with the part `file`"))
            }
            _ => Err(ApiError::invalid("/input", "give exactly one of text, clip, upload")),
        }
    }
}
