//! `POST /v1/embeddings`: vectors of a text, a stored clip or an upload.

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest};
use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::{self, Form, Json};
use super::guard;
use super::search::{ClipBody, InputForms, OverflowName, QueryInfoOut, some_text};
use crate::app::{App, Authorized};
use crate::search::{self, EmbeddedWindow, Embedding, Query, QueryEncoder};
use crate::terms::QueryKind;

/// Routes of `/v1/embeddings`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(embed))
}

/// A request for vectors.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EmbeddingRequest)]
struct EmbedBody {
    /// The input.
    #[schema(value_type = InputForms)]
    input: EmbedInput,
    /// A space's id or readable name. Default: the active space for the input's kind.
    space: Option<String>,
    /// Treatment of a text over the model's token limit. Default `window`.
    on_overflow: Option<OverflowName>,
}

/// The input: exactly one of `text`, `clip` and `upload`. [`InputForms`] describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbedInput {
    text: Option<String>,
    clip: Option<ClipBody>,
    upload: Option<bool>,
}

/// A multipart request. Send `query` before `file`: the server then checks it before the file arrives.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
#[schema(as = EmbeddingUpload)]
struct EmbedForm {
    /// JSON, at most 256 KiB.
    query: EmbedBody,
    /// The video, at most as large as the server allows.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// The vectors of one input.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Embedding)]
struct EmbeddingOut {
    /// The space's readable name.
    space: String,
    /// Unit vectors: one per window of a text, one for a clip.
    vectors: Vec<EmbeddedWindowOut>,
    /// `dim` values of the space. The mean of `vectors`, scaled to norm 1.
    vector: Vec<f32>,
    /// Norm of the vector, over 0, before scaling. With several windows: norm of the mean of their unit vectors.
    norm: f32,
    /// Facts about the encoded input.
    query_info: QueryInfoOut,
}

impl From<Embedding> for EmbeddingOut {
    fn from(embedding: Embedding) -> EmbeddingOut {
        EmbeddingOut {
            space: embedding.space,
            vectors: embedding.vectors.into_iter().map(EmbeddedWindowOut::from).collect(),
            vector: embedding.vector,
            norm: embedding.norm,
            query_info: embedding.query_info.into(),
        }
    }
}

/// The unit vector of one text window or of a clip.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbeddedWindow)]
struct EmbeddedWindowOut {
    /// First token of the window, inclusive; 0 for a clip.
    start_token: usize,
    /// End of the window in tokens, exclusive; 0 for a clip.
    end_token: usize,
    /// The unit vector: `dim` values, -1 to 1.
    values: Vec<f32>,
}

impl From<EmbeddedWindow> for EmbeddedWindowOut {
    fn from(window: EmbeddedWindow) -> EmbeddedWindowOut {
        let EmbeddedWindow { start_token, end_token, values } = window;
        EmbeddedWindowOut { start_token, end_token, values }
    }
}

/// Embeds a text, a stored clip or an uploaded file. For an upload, send multipart with the part `query` (this JSON),
/// then the part `file`.
#[utoipa::path(post, path = "/v1/embeddings", operation_id = "embed", tag = "models",
    request_body(content((EmbedBody = "application/json"), (EmbedForm = "multipart/form-data"))),
    responses((status = 200, body = EmbeddingOut), (status = 404), (status = 409), (status = 424))
)]
async fn embed(app: Authorized, request: HttpRequest) -> Result<axum::Json<EmbeddingOut>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return embed_upload(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<EmbedBody>::from_request(request, &()).await?;
    let query = body.input.stored()?;
    let kind = if matches!(query, Query::Text(_)) { QueryKind::Text } else { QueryKind::Clip };
    let space = search::space_for(&app, kind, body.space.as_deref())?;
    let permit = space.pool.admit()?;
    let overflow = body.on_overflow.map_or(Overflow::Window, Overflow::from);
    let encoded = QueryEncoder::new(&app, &space, permit).embed(&query, overflow, "/input").await?;
    Ok(axum::Json(encoded.into_embedding(&space).into()))
}

/// Checks the JSON, and whether the pool has room, before it reads the file. It takes its place only then.
async fn embed_upload(app: &Authorized, mut form: Form) -> Result<axum::Json<EmbeddingOut>, ApiError> {
    let _receiving = extract::receiving(&app.query_uploads)?;
    let body: EmbedBody = form.query(app).await?;
    let EmbedInput { text: None, clip: None, upload: Some(true) } = body.input else {
        let detail = "a multipart request has the input {\"upload\": true}";
        return Err(ApiError::invalid("/input/upload", detail));
    };
    let space = search::space_for(app, QueryKind::Clip, body.space.as_deref())?;
    drop(space.pool.admit()?);
    let file = form.file(app).await?;
    let permit = space.pool.admit()?;
    let (path, content_hash) = (file.path().to_owned(), file.content_hash().to_owned());
    let query = Query::Upload { path, content_hash, start_ms: None, end_ms: None };
    let work =
        async { Ok(QueryEncoder::new(app, &space, permit).embed(&query, Overflow::Window, "/input").await?) };
    Ok(axum::Json(guard::in_time(app, work).await?.into_embedding(&space).into()))
}

impl EmbedInput {
    /// The query of a request without a file.
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
