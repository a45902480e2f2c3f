//! The address of a service, and how it is asked.

use std::fmt;
use std::time::Duration;

use reqwest::Url;

use crate::config::SpeechArgs;

/// Where the endpoint is on servers that follow OpenAI's.
const ENDPOINT: &str = "audio/transcriptions";

/// A service that writes down speech.
#[derive(Clone)]
pub(in crate::speech) struct Settings {
    /// The endpoint.
    pub(super) url: Url,
    /// The model that it is asked for.
    pub(in crate::speech) model: String,
    /// Sent as `Authorization: Bearer KEY`.
    pub(super) key: Option<String>,
    /// Longest request.
    pub(super) within: Duration,
}

/// Why an address can't be a service's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongService {
    /// It is no URL, or one of another kind.
    #[error("must be a URL like http://localhost:8000/v1/audio/transcriptions")]
    NotUrl,
    /// It has a user or a password.
    #[error("must have no user and no password: give the key as REPRISE_TRANSCRIBE_KEY")]
    HasPassword,
}

impl Settings {
    /// Settings of the service that the operator names, if any.
    ///
    /// # Errors
    /// See [`WrongService`].
    pub(in crate::speech) fn of(args: &SpeechArgs) -> Result<Option<Settings>, WrongService> {
        let settings = |url: &String| {
            Settings::new(url, &args.transcribe_model, args.transcribe_key.as_deref(), args.within())
        };
        args.transcribe_url.as_ref().map(settings).transpose()
    }

    /// Settings of the service at `address`: its endpoint, or its base such as `https://api.openai.com/v1`. The operator names
    /// it, so it may be anywhere, on this machine and its network too.
    ///
    /// # Errors
    /// See [`WrongService`].
    pub(in crate::speech) fn new(
        address: &str,
        model: &str,
        key: Option<&str>,
        within: Duration,
    ) -> Result<Settings, WrongService> {
        let mut url = Url::parse(address.trim()).map_err(|_| WrongService::NotUrl)?;
        if url.host_str().is_none_or(str::is_empty) || !["http", "https"].contains(&url.scheme()) {
            return Err(WrongService::NotUrl);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WrongService::HasPassword);
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let whole = match path {
            "" => Some(format!("/v1/{ENDPOINT}")),
            path if path.ends_with("/v1") => Some(format!("{path}/{ENDPOINT}")),
            _ => None,
        };
        if let Some(path) = whole {
            url.set_path(&path);
        }
        let key = key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        Ok(Settings { url, model: model.to_owned(), key, within })
    }

    /// Host and port, for logs.
    pub(in crate::speech) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Settings").field("host", &self.host()).field("model", &self.model).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: Result<&str, WrongService>) {
        let settings = Settings::new(address, "whisper-1", None, Duration::from_secs(1));
        let got = settings.as_ref().map(|it| it.url.as_str()).map_err(|wrong| *wrong);
        assert_eq!(got, expected, "{address}");
    }

    #[test]
    fn a_base_gets_the_path_of_the_endpoint() {
        check("http://localhost:8000", Ok("http://localhost:8000/v1/audio/transcriptions"));
        check("https://api.openai.com/v1/", Ok("https://api.openai.com/v1/audio/transcriptions"));
        check("http://[::1]:9/inference", Ok("http://[::1]:9/inference"));
        check(
            "http://10.0.0.7/v1/audio/transcriptions?x=1",
            Ok("http://10.0.0.7/v1/audio/transcriptions?x=1"),
        );
    }

    #[test]
    fn what_is_no_address_of_a_service_is_refused() {
        for wrong in ["", "localhost:8000", "ftp://localhost", "file:///x", "http://"] {
            check(wrong, Err(WrongService::NotUrl));
        }
        check("https://user:password@example.com", Err(WrongService::HasPassword));
    }

    #[test]
    fn settings_do_not_show_their_key() {
        let settings = Settings::new("http://x", "m", Some("secret"), Duration::from_secs(1)).unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
