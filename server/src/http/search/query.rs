//! Wire format of a query, and its checks. `forms` describes it in the OpenAPI file.

use serde::Deserialize;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::extract;
use super::forms::ClipBody;
use crate::search::{Examples, MAX_EXAMPLES, Query};

/// Transport of the request's JSON.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Carrier {
    /// As the whole body.
    Json,
    /// As a multipart part, followed by a file.
    Multipart,
}

/// A query: exactly one of `text`, `clip`, `clip_id`, `upload` and `like`. A clip or upload may have a `modification`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody {
    text: Option<String>,
    clip: Option<ClipBody>,
    clip_id: Option<Uuid>,
    upload: Option<bool>,
    start: Option<f64>,
    end: Option<f64>,
    modification: Option<String>,
    like: Option<Vec<ExampleBody>>,
    unlike: Option<Vec<ExampleBody>>,
}

/// An example: exactly one of `text`, `clip` and `clip_id`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleBody {
    text: Option<String>,
    clip: Option<ClipBody>,
    clip_id: Option<Uuid>,
}

impl QueryBody {
    /// The query and its modification.
    pub(super) fn checked(self, carrier: Carrier) -> Result<(Query, Option<String>), ApiError> {
        self.check_upload(carrier)?;
        let is_upload = self.upload == Some(true);
        let one = ExampleBody { text: self.text, clip: self.clip, clip_id: self.clip_id };
        let modification =
            self.modification.map(|text| some_text(text, "/query/modification")).transpose()?;
        let query = match (one.count(), is_upload, self.like, self.unlike) {
            (1, false, None, None) => one.checked("/query")?,
            (0, true, None, None) => upload_query(self.start, self.end)?,
            (0, false, Some(like), unlike) => examples(like, unlike.unwrap_or_default())?,
            (0, false, None, Some(_)) => {
                return Err(ApiError::invalid("/query/like", "give at least one example of what to find"));
            }
            _ => {
                let detail = "give exactly one of text, clip, clip_id, upload, like";
                return Err(ApiError::invalid("/query", detail));
            }
        };
        let changed = match &query {
            Query::Text(_) => Some("a modification changes a clip, not a text"),
            Query::Examples(_) => Some("a modification changes a clip, not several examples"),
            _ => None,
        };
        match changed.filter(|_| modification.is_some()) {
            Some(detail) => Err(ApiError::invalid("/query/modification", detail)),
            None => Ok((query, modification)),
        }
    }

    fn check_upload(&self, carrier: Carrier) -> Result<(), ApiError> {
        match (self.upload == Some(true), carrier) {
            (true, Carrier::Json) => {
                let detail = "an upload comes as multipart with the part `file`";
                Err(ApiError::invalid("/query/upload", detail))
            }
            (false, Carrier::Multipart) => {
                let detail = "a multipart search has the query {\"upload\": true}";
                Err(ApiError::invalid("/query/upload", detail))
            }
            (false, Carrier::Json) if self.start.is_some() || self.end.is_some() => {
                let detail = "start and end stand here for an upload only; a clip has its own";
                Err(ApiError::invalid("/query/start", detail))
            }
            _ => Ok(()),
        }
    }
}

impl ExampleBody {
    /// Number of forms that are given.
    fn count(&self) -> usize {
        [self.text.is_some(), self.clip.is_some(), self.clip_id.is_some()]
            .into_iter()
            .filter(|it| *it)
            .count()
    }

    fn checked(self, at: &str) -> Result<Query, ApiError> {
        match (self.text, self.clip, self.clip_id) {
            (Some(text), None, None) => Ok(Query::Text(some_text(text, &format!("{at}/text"))?)),
            (None, Some(clip), None) => {
                let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, &format!("{at}/clip"))?;
                Ok(Query::Range { video: clip.video_id, start_ms, end_ms })
            }
            (None, None, Some(id)) => Ok(Query::Clip(id)),
            _ => Err(ApiError::invalid(at, "give exactly one of text, clip, clip_id")),
        }
    }
}

fn examples(like: Vec<ExampleBody>, unlike: Vec<ExampleBody>) -> Result<Query, ApiError> {
    if like.is_empty() {
        return Err(ApiError::invalid("/query/like", "give at least one example of what to find"));
    }
    if like.len() + unlike.len() > MAX_EXAMPLES {
        let detail = format!("`like` and `unlike` may have {MAX_EXAMPLES} examples together");
        return Err(ApiError::invalid("/query", detail));
    }
    let side = |examples: Vec<ExampleBody>, name: &str| {
        let one = |(place, example): (usize, ExampleBody)| example.checked(&format!("/query/{name}/{place}"));
        examples.into_iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    };
    Ok(Query::Examples(Examples { like: side(like, "like")?, unlike: side(unlike, "unlike")? }))
}

/// A query for an upload. Path and hash are set after the file has arrived.
fn upload_query(start: Option<f64>, end: Option<f64>) -> Result<Query, ApiError> {
    let start_ms = start.map(|start| extract::milliseconds(start, "/query/start")).transpose()?;
    let end_ms = end.map(|end| extract::milliseconds(end, "/query/end")).transpose()?;
    if end_ms.is_some_and(|end_ms| end_ms <= start_ms.unwrap_or(0)) {
        return Err(ApiError::invalid("/query/end", "the end must be after the start"));
    }
    Ok(Query::Upload { path: Default::default(), content_hash: String::new(), start_ms, end_ms })
}

pub(in crate::http) fn some_text(text: String, pointer: &str) -> Result<String, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid(pointer, "the text is empty"));
    }
    Ok(text)
}
