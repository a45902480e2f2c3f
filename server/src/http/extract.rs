//! Extractors with the API's errors: JSON with a pointer to the invalid part, ids, query strings, and parts of a
//! multipart body.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, FromRequestParts, Multipart, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::error::ApiError;
use crate::app::App;
use crate::config::Config;
use crate::storage::Received;

/// Largest JSON body, in bytes.
pub(super) const MAX_JSON: usize = 1 << 20;
/// Largest JSON part of a multipart body, in bytes.
pub(super) const MAX_PART: usize = 256 << 10;

/// Longest time for a JSON body to arrive.
const JSON_WITHIN: Duration = Duration::from_secs(20);
/// Time before the rate of an upload counts.
const UPLOAD_GRACE: Duration = Duration::from_secs(10);

/// Takes a place for an upload, which its body holds until it is stored.
///
/// # Errors
/// 429 if all are taken.
pub(super) fn receiving(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(places).try_acquire_owned().map_err(|_| ApiError::busy("too many uploads at once; try again"))
}

/// Reads a body of at most `most` bytes.
///
/// # Errors
/// 413, 408 if it takes longer than [`JSON_WITHIN`], 400 if it breaks off.
pub(super) async fn read_body(body: Body, most: usize, what: &str) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(JSON_WITHIN, Limited::new(body, most).collect()).await;
    match read.map_err(|_| ApiError::stalled())? {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ApiError::too_large(format!("{what} may have {most} bytes")))
        }
        Err(error) => Err(ApiError::unreadable(format!("the body is broken: {error}"))),
    }
}

/// A JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        json_up_to(request, MAX_JSON).await.map(Json)
    }
}

/// The JSON body of a request, of at most `most` bytes.
///
/// # Errors
/// 415 for another content type; else as [`read_body`] and [`parse`].
pub(super) async fn json_up_to<T: DeserializeOwned>(request: Request, most: usize) -> Result<T, ApiError> {
    if !has_type(request.headers(), "application/json") {
        return Err(ApiError::wrong_type("the body must be sent as application/json"));
    }
    let bytes = read_body(request.into_body(), most, "a JSON body").await?;
    Ok(parse::<Object<T>>(&bytes, "")?.0)
}

/// Whether the content type is `wanted`. Parameters are ignored.
pub(super) fn has_type(headers: &axum::http::HeaderMap, wanted: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// Parses JSON. `prefix` precedes the pointers of errors.
///
/// # Errors
/// 400 if it isn't JSON, 422 if it isn't a valid `T`; with a pointer to the innermost value that was being read.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8], prefix: &str) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = format!("{prefix}{}", pointer(error.path()));
        let inner = error.into_inner();
        if inner.is_data() {
            ApiError::invalid(pointer, in_plain_words(&inner.to_string()))
        } else {
            no_json(&inner, pointer)
        }
    })?;
    reader.end().map_err(|error| no_json(&error, prefix))?;
    Ok(parsed)
}

fn no_json(error: &serde_json::Error, pointer: impl Into<String>) -> ApiError {
    ApiError::unreadable(format!("this is not JSON: {error}")).at(pointer)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(part).collect()
}

/// Shortens `missing field x at line 1 column 2` to `missing field x`, and removes the names of Rust types.
fn in_plain_words(message: &str) -> String {
    let said = message.split(" at line ").next().unwrap_or(message);
    match said.split_once(", expected struct ") {
        Some((got, _)) => format!("{got}, expected an object"),
        None => said.to_owned(),
    }
}

/// The id in the path. 404 if it is not a uuid.
pub(super) struct Id(pub(super) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let nothing = || ApiError::no_id("id");
        let path = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        let text = path.map_err(|_| nothing())?;
        text.parse().map(Id).map_err(|_| nothing())
    }
}

/// The query string.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Params(query.0)).map_err(|wrong| wrong_parameter(&wrong.body_text()))
    }
}

/// Finds the parameter's name in a text like `Failed to deserialize query string: limit: invalid digit`.
fn wrong_parameter(text: &str) -> ApiError {
    let said = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    let is_name = |it: &str| it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match said.split_once(": ").filter(|(name, _)| is_name(name)) {
        Some((name, detail)) => ApiError::invalid(name, detail),
        None => ApiError::invalid("", said),
    }
}

/// A multipart body.
pub(super) struct Form {
    parts: Multipart,
    pace: Pace,
    /// The file, if it came before the query.
    early: Option<Received>,
}

/// The pace of a body that arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    started: Instant,
    bytes: u64,
}

impl Pace {
    /// The pace of a body of which nothing has arrived.
    pub(super) fn start() -> Pace {
        Pace { started: Instant::now(), bytes: 0 }
    }

    /// The next piece of a body that is a file.
    ///
    /// # Errors
    /// 408 if it does not arrive in time, 400 if the body is broken.
    pub(super) async fn piece(
        &mut self,
        config: &Config,
        body: &mut BodyDataStream,
    ) -> Result<Option<Bytes>, ApiError> {
        let piece = timeout_at(self.deadline(config), body.next()).await.map_err(|_| ApiError::stalled())?;
        let broken = |error| ApiError::unreadable(format!("the body is broken: {error}"));
        let piece = piece.transpose().map_err(broken)?;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    /// The time at which the next piece must have arrived, so that the whole body keeps the least rate. A body that was
    /// fast before may pause for the configured time.
    fn deadline(&self, config: &Config) -> Instant {
        let pause = Instant::now() + Duration::from_secs_f64(config.timeout_seconds);
        let earned = Duration::from_secs_f64(self.bytes as f64 / config.min_upload_rate.max(1) as f64);
        pause.min(self.started + UPLOAD_GRACE + earned)
    }

    /// Waits for a piece of the body.
    ///
    /// # Errors
    /// 408 if it does not arrive in time, 400 or 413 if the body is broken or too large.
    async fn keeps<T>(
        &self,
        config: &Config,
        piece: impl Future<Output = Result<T, MultipartError>>,
    ) -> Result<T, ApiError> {
        let piece = timeout_at(self.deadline(config), piece).await.map_err(|_| ApiError::stalled())?;
        piece.map_err(broken)
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let multipart = Multipart::from_request(request, state).await;
        let pace = Pace::start();
        let form = |parts| Form { parts, pace, early: None };
        multipart.map(form).map_err(|wrong| ApiError::unreadable(wrong.body_text()).at("Content-Type"))
    }
}

impl Form {
    /// The next part, if there is one.
    pub(super) async fn next_part<'a>(&'a mut self, app: &'a App) -> Result<Option<Part<'a>>, ApiError> {
        let Form { parts, pace, .. } = self;
        let field = pace.keeps(&app.config, parts.next_field()).await?;
        Ok(field.map(|field| Part { field, app, pace }))
    }

    /// The JSON of the part `query`. It should be the first: many generated clients send parts in the order of their names,
    /// so a file may precede it, but then the request is checked only after the file has arrived.
    pub(super) async fn query<T: DeserializeOwned>(&mut self, app: &App) -> Result<T, ApiError> {
        let mut part = self.next_part(app).await?;
        if part.as_ref().is_some_and(|part| part.name() == "file") {
            let file = Form::received(part).await?;
            self.early = Some(file);
            part = self.next_part(app).await?;
        }
        match part {
            Some(part) if part.name() == "query" => Ok(parse::<Object<T>>(&part.text().await?, "")?.0),
            _ => Err(ApiError::invalid("query", "the first part must be `query`, the JSON of the request")),
        }
    }

    /// The file of the part `file`, which must be the next one if it has not come.
    pub(super) async fn file(&mut self, app: &App) -> Result<Received, ApiError> {
        if let Some(file) = self.early.take() {
            return Ok(file);
        }
        Form::received(self.next_part(app).await?).await
    }

    async fn received(part: Option<Part<'_>>) -> Result<Received, ApiError> {
        match part {
            Some(part) if part.name() == "file" => part.file().await,
            _ => Err(ApiError::invalid("file", "the part `file` must follow the part `query`")),
        }
    }
}

/// One part of a multipart body.
pub(super) struct Part<'a> {
    field: Field<'a>,
    app: &'a App,
    pace: &'a mut Pace,
}

impl Part<'_> {
    /// Name of the part. Empty if it has none.
    pub(super) fn name(&self) -> &str {
        self.field.name().unwrap_or_default()
    }

    /// File name from the client. Empty if the part has none.
    pub(super) fn file_name(&self) -> &str {
        self.field.file_name().unwrap_or_default()
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.pace.keeps(&self.app.config, self.field.chunk()).await?;
        self.pace.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    /// The part's bytes, at most [`MAX_PART`].
    pub(super) async fn text(mut self) -> Result<Vec<u8>, ApiError> {
        let too_large = |name: &str| ApiError::invalid(name, format!("this part may have {MAX_PART} bytes"));
        self.bytes(MAX_PART).await?.ok_or_else(|| too_large(self.name()))
    }

    /// The part's bytes. `None` if it is longer than `most`.
    pub(super) async fn bytes(&mut self, most: usize) -> Result<Option<Vec<u8>>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.chunk().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Writes the part to disk while it arrives.
    pub(super) async fn file(mut self) -> Result<Received, ApiError> {
        let max_bytes = self.app.config.max_upload_bytes;
        let mut incoming = self.app.storage.receive().await?;
        while let Some(piece) = self.chunk().await? {
            incoming.write(&piece).await?;
            if incoming.bytes() > max_bytes {
                return Err(ApiError::too_large(format!("a file may have {max_bytes} bytes")).at(self.name()));
            }
        }
        Ok(incoming.finish().await?)
    }
}

fn broken(error: MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large("the body is too large"),
        _ => ApiError::unreadable(format!("the multipart body is broken: {}", error.body_text())),
    }
}

/// A struct that is an object in JSON.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        object(reader).map(Object)
    }
}

/// Reads an object. Structs alone would also take an array of their fields' values.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<T, D::Error> {
    struct Fields<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(fields))
        }
    }

    reader.deserialize_map(Fields(PhantomData))
}

/// Distinguishes `null` from a missing field.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}

/// Converts the API's seconds to milliseconds.
///
/// # Errors
/// 422 for a number that is not finite, negative, or over 10,000,000 s.
pub(super) fn milliseconds(seconds: f64, pointer: &str) -> Result<i64, ApiError> {
    if seconds.is_finite() && (0.0..=1e7).contains(&seconds) {
        return Ok((seconds * 1000.0).round() as i64);
    }
    Err(ApiError::invalid(pointer, "a time is a number of seconds from 0 to 10000000"))
}

/// Converts a range `[start, end)` from seconds to milliseconds.
///
/// # Errors
/// 422 below `pointer` if the range is empty, inverted or out of bounds.
pub(super) fn stretch(start: f64, end: f64, pointer: &str) -> Result<(i64, i64), ApiError> {
    let start_ms = milliseconds(start, &format!("{pointer}/start"))?;
    let end_ms = milliseconds(end, &format!("{pointer}/end"))?;
    if end_ms <= start_ms {
        return Err(ApiError::invalid(format!("{pointer}/end"), "the end must be after the start"));
    }
    Ok((start_ms, end_ms))
}

/// The page size of a query string, by default 50.
///
/// # Errors
/// 422 if it is not from 1 to 1000.
pub(super) fn page_size(limit: Option<u32>) -> Result<u32, ApiError> {
    match limit.unwrap_or(50) {
        limit @ 1..=1000 => Ok(limit),
        _ => Err(ApiError::invalid("limit", "must be from 1 to 1000")),
    }
}

/// Parses a cursor `start.id`: start in milliseconds and id of the last item on the page before.
///
/// # Errors
/// 422 if it is another text.
pub(super) fn time_cursor(text: &str) -> Result<(i64, Uuid), ApiError> {
    let parts = text.split_once('.').and_then(|(start, id)| Some((start.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| ApiError::invalid("cursor", "this is not a cursor of this service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: f64, end: f64, expected: Option<(i64, i64)>) {
        assert_eq!(stretch(start, end, "/query").ok(), expected, "{start} to {end}");
    }

    #[track_caller]
    fn check_refusal(json: &str, pointer: &str, detail: &str) {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Body {
            #[serde(rename = "list")]
            _list: Vec<u8>,
        }
        let refusal = parse::<Body>(json.as_bytes(), "/at").unwrap_err();
        let expected = match detail.starts_with("this is not JSON") {
            true => ApiError::unreadable(detail).at(pointer),
            false => ApiError::invalid(pointer, detail),
        };
        assert_eq!(refusal, expected, "{json}");
    }

    #[test]
    fn refusals_point_at_what_is_wrong() {
        check_refusal("{}", "/at", "missing field `list`");
        check_refusal("7", "/at", "invalid type: integer `7`, expected an object");
        check_refusal(r#"{"list": [1, "a"]}"#, "/at/list/1", "invalid type: string \"a\", expected u8");
        check_refusal(r#"{"list": [], "a~/b": 1}"#, "/at/a~0~1b", "unknown field `a~/b`, expected `list`");
        let end = "this is not JSON: EOF while parsing an object at line 1 column 1";
        check_refusal("{", "/at", end);
        let cut = "this is not JSON: EOF while parsing a list at line 1 column 11";
        check_refusal(r#"{"list": [1"#, "/at/list", cut);
        let cut = "this is not JSON: EOF while parsing a string at line 1 column 12";
        check_refusal(r#"{"list": ["a"#, "/at/list/0", cut);
        let more = "this is not JSON: trailing characters at line 1 column 14";
        check_refusal(r#"{"list": []} 7"#, "/at", more);
    }

    #[test]
    fn wrong_parameters_are_named() {
        let text = "Failed to deserialize query string: limit: invalid digit found in string";
        assert_eq!(wrong_parameter(text), ApiError::invalid("limit", "invalid digit found in string"));
        assert_eq!(wrong_parameter("a b: c"), ApiError::invalid("", "a b: c"));
    }

    #[test]
    fn stretches_are_rounded_to_milliseconds_and_never_empty() {
        check(12.4, 13.1, Some((12400, 13100)));
        check(0.0, 0.001, Some((0, 1)));
        check(0.0, 0.0004, None);
        check(2.0, 1.0, None);
        check(-1.0, 1.0, None);
        check(0.0, f64::INFINITY, None);
        check(f64::NAN, 1.0, None);
        check(0.0, 1e300, None);
    }
}
