//! `POST /v1/videos/{id}/transcribe`: has the speech of a stored video written down.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::{Id, Json};
use super::jobs::JobOut;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::catalog::NewTranscription;
use crate::library::LibraryError;
use crate::subtitles::language;

/// Routes of `/v1/videos/{id}/transcribe`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(transcribe))
}

/// How to transcribe a video.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTranscription)]
struct TranscribeBody {
    /// BCP 47 tag of the language that is spoken, e.g. `en`; it is the track's. Default: detected.
    #[schema(pattern = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}$", max_length = 35)]
    language: Option<String>,
    /// Whether to make the transcript again that a model has made. Default false: a video that has one gets 409.
    #[serde(default)]
    replace: bool,
}

impl TranscribeBody {
    fn checked(self, app: &App) -> Result<NewTranscription, ApiError> {
        let speech = app.speech.as_ref().ok_or_else(|| {
            ApiError::conflict(
                "this server writes down no speech: start it with --transcribe or --transcribe-url",
            )
        })?;
        let wrong =
            || ApiError::invalid("/language", "this is no language tag; use one like `en` or `pt-BR`");
        let tag =
            |it: &String| language::tag(it).filter(|tag| tag != language::UNDETERMINED).ok_or_else(wrong);
        let language = self.language.as_ref().map(tag).transpose()?;
        if let Some(unknown) = language.as_ref().filter(|it| !speech.knows(it)) {
            let model = &speech.description().model;
            let detail = format!("{model} does not know the language `{unknown}`");
            return Err(ApiError::invalid("/language", detail));
        }
        Ok(NewTranscription { language, replace: self.replace })
    }
}

/// The job that transcribes the video.
#[derive(Debug, Serialize, ToSchema)]
struct Transcribing {
    /// The job that transcribes the video.
    job: JobOut,
}

/// Has the speech of a stored video written down, by the model or service that the server was started with.
///
/// The job's result is a track of kind `speech`, searchable like subtitles. It replaces what models have written before, and
/// never a person's subtitles: if there are some in the language, they stay, and the job's `note` says so. A video without
/// sound or speech is no failure either: the job succeeds with a note. A video that is not searchable yet is transcribed
/// after its ingest. The answer is 409 if the server has no model for it, the ingest has failed, the video is being
/// transcribed, a person's subtitles are in the requested language, or a transcript exists and `replace` is false.
#[utoipa::path(post, path = "/v1/videos/{id}/transcribe", operation_id = "transcribeVideo", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id")), request_body = TranscribeBody,
    responses((status = 202, body = Transcribing), (status = 409)))]
async fn transcribe(
    app: Authorized,
    Id(id): Id,
    Json(body): Json<TranscribeBody>,
) -> Result<(StatusCode, axum::Json<Transcribing>), ApiError> {
    found(app.view().video(id).await?, id)?;
    let asked = body.checked(&app)?;
    let job = app.view().transcribe(id, &asked).await?.ok_or(LibraryError::NoVideo(id))?;
    Ok((StatusCode::ACCEPTED, axum::Json(Transcribing { job: job.into() })))
}
