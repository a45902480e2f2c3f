//! Wire format of a query, and its checks. `forms` describes it in the OpenAPI file.

use serde::Deserialize;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::extract;
use super::forms::ClipBody;
use crate::search::{Examples, Image, MAX_EXAMPLES, Query};

/// Transport of the request's JSON.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Carrier {
    /// As the whole body.
    Json,
    /// As a multipart part, followed by a file.
    Multipart,
}

/// A query: exactly one of `text`, `clip`, `clip_id`, `image`, `upload` and `like`. All but a text and examples may have a
/// `modification`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody {
    text: Option<String>,
    clip: Option<ClipBody>,
    clip_id: Option<Uuid>,
    image: Option<ImageBody>,
    upload: Option<bool>,
    start: Option<f64>,
    end: Option<f64>,
    modification: Option<String>,
    like: Option<Vec<ExampleBody>>,
    unlike: Option<Vec<ExampleBody>>,
}

/// An example: exactly one of `text`, `clip`, `clip_id`, `image` and `upload`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleBody {
    text: Option<String>,
    clip: Option<ClipBody>,
    clip_id: Option<Uuid>,
    image: Option<ImageBody>,
    upload: Option<bool>,
    start: Option<f64>,
    end: Option<f64>,
}

/// An image: `video_id` with `at`, or `upload`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageBody {
    video_id: Option<Uuid>,
    at: Option<f64>,
    upload: Option<bool>,
}

impl QueryBody {
    /// The query and its modification.
    pub(super) fn checked(self, carrier: Carrier) -> Result<(Query, Option<String>), ApiError> {
        let modification =
            self.modification.map(|text| some_text(text, "/query/modification")).transpose()?;
        let QueryBody { text, clip, clip_id, image, upload, start, end, .. } = self;
        let one = ExampleBody { text, clip, clip_id, image, upload, start, end };
        let query = match (self.like, self.unlike) {
            (None, None) if one.count() == 0 => {
                return Err(ApiError::invalid("/query", format!("give exactly one of {FORMS}, like")));
            }
            (None, None) => one.checked("/query")?,
            (Some(like), unlike) if one.count() == 0 => examples(like, unlike.unwrap_or_default())?,
            (None, Some(_)) => {
                return Err(ApiError::invalid("/query/like", "give at least one example of what to find"));
            }
            _ => return Err(ApiError::invalid("/query", format!("give exactly one of {FORMS}, like"))),
        };
        check_uploads(&query, carrier)?;
        let unchangeable = match &query {
            Query::Text(_) => Some("a modification changes a clip, not a text"),
            Query::Examples(_) => Some("a modification changes a clip, not several examples"),
            _ => None,
        };
        match unchangeable.filter(|_| modification.is_some()) {
            Some(detail) => Err(ApiError::invalid("/query/modification", detail)),
            None => Ok((query, modification)),
        }
    }
}

/// The forms of a query that are also forms of an example.
const FORMS: &str = "text, clip, clip_id, image, upload";

impl ExampleBody {
    /// Number of forms that are given.
    fn count(&self) -> usize {
        let given = [
            self.text.is_some(),
            self.clip.is_some(),
            self.clip_id.is_some(),
            self.image.is_some(),
            self.upload == Some(true),
        ];
        given.into_iter().filter(|it| *it).count()
    }

    fn checked(self, at: &str) -> Result<Query, ApiError> {
        if self.count() != 1 {
            return Err(ApiError::invalid(at, format!("give exactly one of {FORMS}")));
        }
        if self.upload != Some(true) && (self.start.is_some() || self.end.is_some()) {
            let detail = "start and end stand here for an upload only; a clip has its own";
            return Err(ApiError::invalid(format!("{at}/start"), detail));
        }
        match (self.text, self.clip, self.clip_id, self.image) {
            (Some(text), ..) => Ok(Query::Text(some_text(text, &format!("{at}/text"))?)),
            (_, Some(clip), ..) => {
                let (start_ms, end_ms) = extract::stretch(clip.start, clip.end, &format!("{at}/clip"))?;
                Ok(Query::Range { video: clip.video_id, start_ms, end_ms })
            }
            (_, _, Some(id), _) => Ok(Query::Clip(id)),
            (_, _, _, Some(image)) => image.checked(&format!("{at}/image")).map(Query::Image),
            (None, None, None, None) => upload_query(self.start, self.end, at),
        }
    }
}

impl ImageBody {
    fn checked(self, at: &str) -> Result<Image, ApiError> {
        match (self.video_id, self.at, self.upload == Some(true)) {
            (Some(video), Some(time), false) => {
                Ok(Image::Stored { video, at_ms: extract::milliseconds(time, &format!("{at}/at"))? })
            }
            (None, None, true) => Ok(Image::Upload { path: Default::default(), content_hash: String::new() }),
            _ => Err(ApiError::invalid(at, "give video_id with at, or upload")),
        }
    }
}

/// JSON brings no file, and a multipart request brings one.
fn check_uploads(query: &Query, carrier: Carrier) -> Result<(), ApiError> {
    let uploads = uploads(query, "/query");
    match (carrier, &uploads[..]) {
        (Carrier::Json, []) | (Carrier::Multipart, [_]) => Ok(()),
        (Carrier::Json, [first, ..]) => {
            Err(ApiError::invalid(first, "an upload comes as multipart with the part `file`"))
        }
        (Carrier::Multipart, []) => {
            let detail =
                "a multipart search has the query {\"upload\": true} or {\"image\": {\"upload\": true}}";
            Err(ApiError::invalid("/query/upload", detail))
        }
        (Carrier::Multipart, [_, second, ..]) => {
            Err(ApiError::invalid(second, "a search has one file, so only one example may be an upload"))
        }
    }
}

/// Pointers to the uploads of a query.
fn uploads(query: &Query, at: &str) -> Vec<String> {
    match query {
        Query::Upload { .. } => vec![format!("{at}/upload")],
        Query::Image(Image::Upload { .. }) => vec![format!("{at}/image/upload")],
        Query::Examples(Examples { like, unlike }) => {
            let side = |examples: &[Query], name: &str| {
                let placed = examples.iter().enumerate();
                placed
                    .flat_map(|(place, it)| uploads(it, &format!("{at}/{name}/{place}")))
                    .collect::<Vec<_>>()
            };
            [side(like, "like"), side(unlike, "unlike")].concat()
        }
        _ => Vec::new(),
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
fn upload_query(start: Option<f64>, end: Option<f64>, at: &str) -> Result<Query, ApiError> {
    let start_ms = start.map(|start| extract::milliseconds(start, &format!("{at}/start"))).transpose()?;
    let end_ms = end.map(|end| extract::milliseconds(end, &format!("{at}/end"))).transpose()?;
    if end_ms.is_some_and(|end_ms| end_ms <= start_ms.unwrap_or(0)) {
        return Err(ApiError::invalid(format!("{at}/end"), "the end must be after the start"));
    }
    Ok(Query::Upload { path: Default::default(), content_hash: String::new(), start_ms, end_ms })
}

pub(in crate::http) fn some_text(text: String, pointer: &str) -> Result<String, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid(pointer, "the text is empty"));
    }
    Ok(text)
}
