//! The hub's HTTP interface: facts about a file, and its bytes from an offset.

use std::io::Read;
use std::time::Duration;

use ureq::config::RedirectAuthHeaders;
use ureq::http::{HeaderMap, Response, Uri, header};
use ureq::{Agent, Body, RequestBuilder};

use super::settings::Settings;
use crate::Cause;

/// Largest number of redirects within the hub for one file's facts.
const REDIRECTS: usize = 5;

/// The hub.
pub(super) struct Remote {
    /// Follows redirects to the hub's storage.
    agent: Agent,
    /// Follows no redirects, because the redirect's own headers hold the facts.
    direct: Agent,
    endpoint: String,
    token: Option<String>,
}

/// The hub's facts about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The commit of the revision.
    pub(super) commit: String,
    /// Identifies the bytes; for large files their SHA-256 in hex.
    pub(super) etag: String,
    /// Size of the file, if known.
    pub(super) bytes: Option<u64>,
}

/// A response with a file's bytes.
pub(super) struct Bytes {
    /// Offset of the first byte; 0 if the hub ignored the requested offset.
    pub(super) from: u64,
    /// Size of the whole file, if the response has it.
    pub(super) total: Option<u64>,
    pub(super) reader: Box<dyn Read>,
}

/// Why the hub's answer is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No such file or no such model: the hub does not distinguish them.
    NotFound,
    /// The revision lacks the file.
    NoFile,
    /// The model or revision does not exist.
    NoModel,
    /// The user must accept the model's terms first.
    Gated,
    /// The token does not permit access, or the model does not exist.
    Unauthorized,
    /// The requested offset is beyond the end of the file.
    OutOfRange,
    /// It may go better soon.
    Passing(Cause),
    /// It won't.
    Lasting(Cause),
}

impl Remote {
    pub(super) fn new(settings: &Settings) -> Remote {
        let config = || {
            Agent::config_builder()
                .http_status_as_error(false)
                .user_agent(concat!("reprise/", env!("CARGO_PKG_VERSION")))
                .timeout_resolve(Some(settings.patience))
                .timeout_connect(Some(settings.patience))
                .timeout_recv_response(Some(settings.patience))
                .timeout_per_read(Some(settings.patience))
                .timeout_per_write(Some(settings.patience))
                .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        };
        Remote {
            agent: config().build().into(),
            direct: config().max_redirects(0).build().into(),
            endpoint: settings.endpoint.clone(),
            token: settings.token.clone(),
        }
    }

    /// The facts about `file` at `revision`.
    pub(super) fn facts(&self, repository: &str, revision: &str, file: &str) -> Result<Facts, Refusal> {
        let mut url = self.url(repository, revision, file);
        for _ in 0..REDIRECTS {
            let answer = self.authorized(self.direct.head(&url)).call().map_err(failed)?;
            accept(&answer)?;
            let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let redirected = location.filter(|_| answer.status().is_redirection());
            match redirected.map(|location| (location, location.starts_with('/'))) {
                // A renamed model; ask again under its new name.
                Some((location, true)) => url = format!("{}{location}", origin(&url)),
                // A redirect to the storage: the facts are in this response.
                Some((_, false)) => return facts(answer.headers(), None),
                None if answer.status().is_success() => {
                    return facts(answer.headers(), number(answer.headers(), "content-length"));
                }
                None => return Err(Refusal::Lasting("it redirects to nowhere".into())),
            }
        }
        Err(Refusal::Lasting("it redirects without end".into()))
    }

    /// The bytes of `file` at `revision`, from offset `from` if the hub supports that.
    pub(super) fn bytes(
        &self,
        repository: &str,
        revision: &str,
        file: &str,
        from: u64,
    ) -> Result<Bytes, Refusal> {
        let request = self.authorized(self.agent.get(self.url(repository, revision, file)));
        let request =
            if from > 0 { request.header(header::RANGE, format!("bytes={from}-")) } else { request };
        let answer = request.call().map_err(failed)?;
        accept(&answer)?;
        let (parts, body) = answer.into_parts();
        let (from, total) = match parts.status.as_u16() {
            200 => (0, number(&parts.headers, "content-length")),
            206 => range(&parts.headers)
                .ok_or_else(|| Refusal::Lasting("it sends a part of a file and does not say which".into()))?,
            status => {
                return Err(Refusal::Lasting(
                    format!("it answers {status} instead of the requested bytes").into(),
                ));
            }
        };
        // Content-Length may understate the body: the caller counts.
        let reader = body.into_with_config().limit(u64::MAX).reader();
        Ok(Bytes { from, total, reader: Box::new(reader) })
    }

    /// Whether the model and revision exist.
    pub(super) fn model(&self, repository: &str, revision: &str) -> Result<(), Refusal> {
        let url = format!("{}/api/models/{repository}/revision/{revision}", self.endpoint);
        let answer = self.authorized(self.agent.get(&url)).call().map_err(failed)?;
        accept(&answer)
    }

    fn url(&self, repository: &str, revision: &str, file: &str) -> String {
        format!("{}/{repository}/resolve/{revision}/{file}", self.endpoint)
    }

    fn authorized<T>(&self, request: RequestBuilder<T>) -> RequestBuilder<T> {
        // Compressed bytes would have another length, and a partial download could not resume.
        let request = request.header(header::ACCEPT_ENCODING, "identity");
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }
}

/// `https://host:port` of a URL.
fn origin(url: &str) -> String {
    let parsed = url.parse::<Uri>().unwrap_or_default();
    let scheme = parsed.scheme_str().unwrap_or("https");
    format!("{scheme}://{}", parsed.authority().map_or("", |authority| authority.as_str()))
}

fn accept(answer: &Response<Body>) -> Result<(), Refusal> {
    let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let status = answer.status().as_u16();
    // The hub's own error code; mirrors omit it.
    match (status, text("x-error-code")) {
        (200..=399, _) => Ok(()),
        (_, Some("EntryNotFound")) => Err(Refusal::NoFile),
        (_, Some("RevisionNotFound")) => Err(Refusal::NoModel),
        (_, Some("GatedRepo")) => Err(Refusal::Gated),
        (404, Some("RepoNotFound")) => Err(Refusal::NoModel),
        (401, _) => Err(Refusal::Unauthorized),
        (403, _) => Err(Refusal::Gated),
        (404, _) => Err(Refusal::NotFound),
        (416, _) => Err(Refusal::OutOfRange),
        (408 | 425 | 429 | 500..=599, _) => {
            Err(Refusal::Passing(format!("it answers {}", answer.status()).into()))
        }
        _ => Err(Refusal::Lasting(format!("it answers {}", answer.status()).into())),
    }
}

fn facts(headers: &HeaderMap, length: Option<u64>) -> Result<Facts, Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let etag = text("x-linked-etag").or_else(|| text("etag"));
    let etag = etag.map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
    let nonsense = |what: &str| Refusal::Lasting(format!("it does not say {what} of a file it has").into());
    // Both become names of files here.
    let plain = |word: &&str| {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        (1..=128).contains(&word.len()) && word.chars().all(allowed) && !word.starts_with('.')
    };
    Ok(Facts {
        commit: text("x-repo-commit").filter(plain).ok_or_else(|| nonsense("the commit"))?.to_owned(),
        etag: etag.filter(plain).ok_or_else(|| nonsense("the etag"))?.to_owned(),
        bytes: number(headers, "x-linked-size").or(length),
    })
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The first byte and the file's size of a `Content-Range` such as `bytes 7-99/100`.
fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

/// Classifies an error. A retry may help after an error in transit, but not after an invalid request.
fn failed(error: ureq::Error) -> Refusal {
    match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::InvalidProxyUrl => {
            Refusal::Lasting(error.into())
        }
        ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => Refusal::Lasting(error.into()),
        ureq::Error::Timeout(_) => Refusal::Passing(Cause::in_context("it is silent", error)),
        _ => Refusal::Passing(error.into()),
    }
}

/// The wait after `failures` failures: a tenth of `patience`, doubled each time, at most `patience`.
pub(super) fn pause(patience: Duration, failures: u32) -> Duration {
    (patience / 10).saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[track_caller]
    fn check(pairs: &[(&'static str, &'static str)], expected: Option<(&str, &str, Option<u64>)>) {
        let got = facts(&headers(pairs), Some(7)).ok();
        let got = got.as_ref().map(|it| (it.commit.as_str(), it.etag.as_str(), it.bytes));
        assert_eq!(got, expected, "{pairs:?}");
    }

    #[test]
    fn a_large_file_is_known_by_what_it_links_to() {
        check(&[("x-repo-commit", "c0"), ("etag", "\"a\"")], Some(("c0", "a", Some(7))));
        check(&[("x-repo-commit", "c0"), ("etag", "W/\"a\"")], Some(("c0", "a", Some(7))));
        let linked =
            [("x-repo-commit", "c0"), ("etag", "\"a\""), ("x-linked-etag", "\"b\""), ("x-linked-size", "9")];
        check(&linked, Some(("c0", "b", Some(9))));
    }

    #[test]
    fn what_would_leave_the_cache_is_refused() {
        for etag in ["\"../../x\"", "\"\"", "\".\"", "\"a/b\"", "\"a b\""] {
            check(&[("x-repo-commit", "c0"), ("etag", etag)], None);
        }
        check(&[("x-repo-commit", "../c0"), ("etag", "a")], None);
        check(&[("etag", "a")], None);
        check(&[("x-repo-commit", "c0")], None);
    }

    #[test]
    fn a_content_range_says_where_a_part_begins() {
        let range = |text: &'static str| range(&headers(&[("content-range", text)]));
        assert_eq!(range("bytes 7-99/100"), Some((7, Some(100))));
        assert_eq!(range("bytes 7-99/*"), Some((7, None)));
        assert_eq!(range("items 7-99/100"), None);
        assert_eq!(range("bytes x-99/100"), None);
    }

    #[test]
    fn pauses_double_and_end_at_the_patience() {
        let pauses = [1, 2, 3, 4, 5, 99].map(|failures| pause(Duration::from_secs(10), failures).as_secs());
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
    }
}
