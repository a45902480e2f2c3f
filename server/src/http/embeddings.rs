//! `POST /v1/embeddings`: vectors of a text, a stored clip or an upload, the last two also with a text that changes them.

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest};
use reprise_encoders::Permit;
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
use crate::models::LoadedSpace;
use crate::search::{self, EmbeddedWindow, Embedding, Fusion, Query, QueryEncoder, SearchError};
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
    /// Treatment of a text over the model's token limit. Default `window`. A modification is cut at the limit.
    on_overflow: Option<OverflowName>,
}

/// The input: exactly one of `text`, `clip` and `upload`; the last two may have a `modification`. [`InputForms`] describes
/// it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbedInput {
    text: Option<String>,
    clip: Option<ClipBody>,
    upload: Option<bool>,
    modification: Option<String>,
}

/// A checked request.
struct Asked {
    query: Query,
    modification: Option<String>,
    overflow: Overflow,
    /// The space that answers it.
    space: Arc<LoadedSpace>,
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
    /// Unit vectors: one per window of a text, one for a clip, with or without a change.
    vectors: Vec<EmbeddedWindowOut>,
    /// `dim` values of the space, each -1 to 1. The mean of `vectors`, scaled to norm 1.
    vector: Vec<f32>,
    /// Euclidean norm of the vector, a number over 0, before scaling. With several windows: norm of the mean of their unit
    /// vectors.
    #[schema(exclusive_minimum = 0)]
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

/// Embeds a text, a stored clip or an uploaded file, the last two also with a text that changes them: the vectors that a
/// search for them would use. For an upload, send multipart with the part `query` (this JSON), then the part `file`.
#[utoipa::path(post, path = "/v1/embeddings", operation_id = "embed", tag = "models",
    request_body(content((EmbedBody = "application/json"), (EmbedForm = "multipart/form-data"))),
    responses((status = 200, body = EmbeddingOut), (status = 404), (status = 409), (status = 424))
)]
async fn embed(app: Authorized, request: HttpRequest) -> Result<axum::Json<EmbeddingOut>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return embed_upload(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<EmbedBody>::from_request(request, &()).await?;
    let asked = body.asked(&app, EmbedInput::stored)?;
    let permit = asked.space.pool.admit()?;
    asked.embed(&app, permit).await
}

/// The error of a query, with pointers into a request for vectors.
fn of_input(error: SearchError) -> ApiError {
    ApiError::from(error).moved("/query", "/input")
}

/// Checks the JSON, and whether the pool has room, before it reads the file. It takes its place only then.
async fn embed_upload(app: &Authorized, mut form: Form) -> Result<axum::Json<EmbeddingOut>, ApiError> {
    let _receiving = extract::receiving(&app.query_uploads)?;
    let body: EmbedBody = form.query(app).await?;
    let mut asked = body.asked(app, EmbedInput::uploaded)?;
    drop(asked.space.pool.admit()?);
    let file = form.file(app).await?;
    let permit = asked.space.pool.admit()?;
    asked.query.point_at(file.path(), file.content_hash());
    guard::in_time(app, asked.embed(app, permit)).await
}

/// Reads the query and its modification.
type Read = fn(EmbedInput) -> Result<(Query, Option<String>), ApiError>;

impl EmbedBody {
    fn asked(self, app: &App, read: Read) -> Result<Asked, ApiError> {
        let (query, modification) = read(self.input)?;
        let kind = if modification.is_some() { QueryKind::Composed } else { query.kind() };
        let space = search::space_for(app, kind, self.space.as_deref()).map_err(of_input)?;
        let overflow = self.on_overflow.map_or(Overflow::Window, Overflow::from);
        Ok(Asked { query, modification, overflow, space })
    }
}

impl Asked {
    async fn embed(&self, app: &Authorized, permit: Permit) -> Result<axum::Json<EmbeddingOut>, ApiError> {
        let encoder = QueryEncoder::new(app, &self.space, permit);
        let encoded = match &self.modification {
            Some(text) => encoder.composed(&self.query, text, Fusion::default(), "/input").await,
            None => encoder.embed(&self.query, self.overflow, "/input").await,
        };
        Ok(axum::Json(encoded.map_err(of_input)?.into_embedding(&self.space).into()))
    }
}

impl EmbedInput {
    /// The query of a request without a file, and its modification.
    fn stored(self) -> Result<(Query, Option<String>), ApiError> {
        let modification = some_modification(self.modification)?;
        match (self.text, self.clip, self.upload) {
            (Some(_), None, None | Some(false)) if modification.is_some() => {
                Err(ApiError::invalid("/input/modification", "a modification changes a clip, not a text"))
            }
            (Some(text), None, None | Some(false)) => {
                Ok((Query::Text(some_text(text, "/input/text")?), None))
            }
            (None, Some(clip), None | Some(false)) => {
                let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, "/input/clip")?;
                Ok((Query::Range { video: clip.video_id, start_ms, end_ms }, modification))
            }
            (None, None, Some(true)) => {
                Err(ApiError::invalid("/input/upload", "an upload comes as multipart with the part `file`"))
            }
            _ => Err(ApiError::invalid("/input", "give exactly one of text, clip, upload")),
        }
    }

    /// The query of a multipart request, whose file is yet to come, and its modification.
    fn uploaded(self) -> Result<(Query, Option<String>), ApiError> {
        let EmbedInput { text: None, clip: None, upload: Some(true), modification } = self else {
            let detail = "a multipart request has the input {\"upload\": true}";
            return Err(ApiError::invalid("/input/upload", detail));
        };
        let (path, content_hash) = Default::default();
        let query = Query::Upload { path, content_hash, start_ms: None, end_ms: None };
        Ok((query, some_modification(modification)?))
    }
}

fn some_modification(text: Option<String>) -> Result<Option<String>, ApiError> {
    text.map(|text| some_text(text, "/input/modification")).transpose()
}
