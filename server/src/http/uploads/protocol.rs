//! The headers of the tus protocol, version 1.0.0 (<https://tus.io/protocols/resumable-upload>).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::super::error::ApiError;
use crate::app::App;
use crate::catalog::{PartialUpload, instant};

/// The only version that is spoken.
const VERSION: &str = "1.0.0";
const EXTENSIONS: &str = "creation,creation-with-upload,expiration,checksum,termination";
const ALGORITHMS: &str = "sha1,sha256";
/// Content type of bytes of a file.
pub(super) const PART: &str = "application/offset+octet-stream";

/// Headers of requests that pages of other origins may send.
pub(in crate::http) const SENT: [&str; 7] = [
    "tus-resumable",
    "upload-length",
    "upload-offset",
    "upload-metadata",
    "upload-checksum",
    "upload-defer-length",
    "x-http-method-override",
];

/// Headers of answers that pages of other origins may read.
pub(in crate::http) const ANSWERED: [&str; 12] = [
    "tus-resumable",
    "tus-version",
    "tus-extension",
    "tus-max-size",
    "tus-checksum-algorithm",
    "upload-length",
    "upload-offset",
    "upload-metadata",
    "upload-expires",
    "reprise-video-id",
    "reprise-job-id",
    "reprise-duplicate",
];

/// Adds the protocol's version to every answer below `/v1/uploads`, and answers `OPTIONS` there, which needs no key.
pub(in crate::http) async fn speak(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != "/v1/uploads" && !path.starts_with("/v1/uploads/") {
        return next.run(request).await;
    }
    let is_preflight = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if *request.method() == Method::OPTIONS && !is_preflight {
        let methods = if path == "/v1/uploads" { "POST" } else { "HEAD,PATCH,DELETE" };
        return abilities(app.config.max_upload_bytes, methods);
    }
    let mut response = next.run(request).await;
    let is_other_version = response.status() == StatusCode::PRECONDITION_FAILED;
    response.headers_mut().insert("tus-resumable", HeaderValue::from_static(VERSION));
    if is_other_version {
        response.headers_mut().insert("tus-version", HeaderValue::from_static(VERSION));
    }
    response
}

fn abilities(max_bytes: u64, methods: &str) -> Response {
    let headers = [
        ("tus-resumable", VERSION.to_owned()),
        ("tus-version", VERSION.to_owned()),
        ("tus-extension", EXTENSIONS.to_owned()),
        ("tus-checksum-algorithm", ALGORITHMS.to_owned()),
        ("tus-max-size", max_bytes.to_string()),
        // Without it the router would name the POST that stands for another method, too.
        ("allow", methods.to_owned()),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Checks that the client speaks this version.
///
/// # Errors
/// 412.
pub(super) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get("tus-resumable") {
        Some(version) if version == VERSION => Ok(()),
        _ => Err(ApiError::other_protocol(format!(
            "send `Tus-Resumable: {VERSION}`, the version of this server"
        ))),
    }
}

/// A number of bytes in a header.
///
/// # Errors
/// 422 if it is missing or no number of bytes.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Result<i64, ApiError> {
    let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| ApiError::invalid(name, "send this header: a number of bytes, 0 or more"))
}

/// The state of an upload: its offset, its end, and what it has become.
pub(super) fn state(upload: &PartialUpload) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: &'static str, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    };
    add("upload-offset", upload.received.to_string());
    add("upload-expires", instant::format_for_headers(upload.expires_at_ms));
    if let Some(made) = &upload.made {
        add("reprise-video-id", made.video.to_string());
        add("reprise-duplicate", made.duplicate.to_string());
        if let Some(job) = made.job {
            add("reprise-job-id", job.to_string());
        }
    }
    headers
}

/// A checksum that the client has sent, and that of the bytes so far.
pub(super) struct Checksum {
    hash: Hash,
    expected: Vec<u8>,
}

enum Hash {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Checksum {
    /// The checksum of a request, if it has one.
    ///
    /// # Errors
    /// 400 if it is of another algorithm, as the protocol says; 422 if it can't be read.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Checksum>, ApiError> {
        let Some(sent) = headers.get("upload-checksum") else { return Ok(None) };
        let wrong = || {
            ApiError::invalid("Upload-Checksum", "must be an algorithm, a space, and the checksum in Base64")
        };
        let (name, encoded) = sent.to_str().ok().and_then(|it| it.split_once(' ')).ok_or_else(wrong)?;
        let (hash, bytes) = match name {
            "sha1" => (Hash::Sha1(Sha1::new()), 20),
            "sha256" => (Hash::Sha256(Sha256::new()), 32),
            _ => {
                let detail = format!("this server knows the checksums {ALGORITHMS}");
                return Err(ApiError::unreadable(detail).at("Upload-Checksum"));
            }
        };
        let expected = STANDARD.decode(encoded.trim()).map_err(|_| wrong())?;
        if expected.len() == bytes { Ok(Some(Checksum { hash, expected })) } else { Err(wrong()) }
    }

    /// Adds bytes.
    pub(super) fn update(&mut self, piece: &[u8]) {
        match &mut self.hash {
            Hash::Sha1(hash) => hash.update(piece),
            Hash::Sha256(hash) => hash.update(piece),
        }
    }

    /// Whether the bytes have the client's checksum.
    pub(super) fn holds(self) -> bool {
        match self.hash {
            Hash::Sha1(hash) => hash.finalize().as_slice() == self.expected,
            Hash::Sha256(hash) => hash.finalize().as_slice() == self.expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    /// `None`: refused.
    #[track_caller]
    fn check_sum(sent: &str, bytes: &[u8], expected: Option<bool>) {
        let read = Checksum::of(&headers("upload-checksum", sent)).ok().flatten();
        let right = read.map(|mut sum| {
            bytes.chunks(3).for_each(|piece| sum.update(piece));
            sum.holds()
        });
        assert_eq!(right, expected, "{sent}");
    }

    #[test]
    fn a_checksum_names_its_algorithm() {
        check_sum("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", b"hello world", Some(true));
        check_sum("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", b"hello World", Some(false));
        check_sum("sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=", b"hello world", Some(true));
        for wrong in
            ["", "sha1", "md5 XrY7u+Ae7tCTyyK7j1rNww==", "sha1 ????", "sha1 XrY7u+Ae7tCTyyK7j1rNww=="]
        {
            check_sum(wrong, b"hello world", None);
        }
    }

    #[test]
    fn an_offset_is_a_plain_number() {
        for (text, expected) in [("0", Some(0)), ("17", Some(17)), ("-1", None), ("+1", None), ("1.0", None)]
        {
            assert_eq!(number(&headers("upload-offset", text), "upload-offset").ok(), expected, "{text}");
        }
        assert!(number(&headers("upload-offset", "99999999999999999999"), "upload-offset").is_err());
        assert!(number(&HeaderMap::new(), "upload-offset").is_err());
    }
}
