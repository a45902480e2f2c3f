//! One request to a service: bounded in time and in bytes, tried again while another try may help.

use std::error::Error;
use std::time::Duration;

use reprise_encoders::with_causes;
use reqwest::multipart::{Form, Part};
use reqwest::{Response, StatusCode, header};
use uuid::Uuid;

use super::answer::{self, Answer};
use super::settings::Settings;
use crate::https::{self, Reach};

/// Tries of one piece. After them the job waits and is tried again.
const TRIES: u32 = 4;
/// The wait after the first failed try; each further one is four times as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait that a service may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Largest random extension of a wait, as a share.
const JITTER: f64 = 0.2;
/// Longest time until a connection stands.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Largest answer, in bytes. Two minutes of speech with the times of all words are about 100 KiB.
const MOST_BYTES: usize = 4 << 20;
/// Longest part of a service's error that is shown, in characters.
const SHOWN: usize = 300;

/// What is asked about a piece of sound.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The sound, as a WAV file.
    pub(super) wav: bytes::Bytes,
    /// Its length in milliseconds.
    pub(super) length_ms: i64,
    /// Code of its language.
    pub(super) language: Option<String>,
    /// The end of the text before it.
    pub(super) prompt: String,
}

/// Why a piece was not written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Another try may help, after this wait if the service asks for one.
    Passing(String, Option<Duration>),
    /// Every try would fail alike.
    Final(String),
}

/// Asks until the service answers, or further tries make no sense.
pub(super) async fn ask(settings: &Settings, asked: &Asked) -> Result<Answer, Failure> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let failure = match try_once(settings, asked).await {
            Ok(answer) => return Ok(answer),
            Err(Failure::Passing(why, wait)) if attempt < TRIES => {
                let wait = wait_after(attempt).max(wait.unwrap_or_default().min(LONGEST_WAIT));
                tracing::warn!(why, attempt, "the speech service is asked again after a wait");
                tokio::time::sleep(wait).await;
                continue;
            }
            Err(failure) => failure,
        };
        return Err(failure);
    }
}

async fn try_once(settings: &Settings, asked: &Asked) -> Result<Answer, Failure> {
    let passing = |why: String| Failure::Passing(why, None);
    let answered = tokio::time::timeout(settings.within, async {
        let response = send(settings, asked).await?;
        let bytes = body(response).await?;
        answer::read(&bytes, asked.length_ms).map_err(Failure::Final)
    });
    let late = || passing(format!("no answer within {} s", settings.within.as_secs_f64()));
    answered.await.unwrap_or_else(|_| Err(late()))
}

/// Sends the request. A redirect is not followed: sound and key go to the address that the operator named.
async fn send(settings: &Settings, asked: &Asked) -> Result<Response, Failure> {
    let client = https::client_to(&settings.url, Reach::All).await;
    let client = client.map_err(|error| Failure::Passing(format!("not sent: {error}"), None))?;
    let client = client.connect_timeout(CONNECT_WITHIN).build();
    let client = client.map_err(|error| Failure::Final(with_causes(&error)))?;
    let mut request = client
        .post(settings.url.clone())
        .header(header::USER_AGENT, concat!("reprise/", env!("CARGO_PKG_VERSION")))
        .multipart(form(settings, asked)?);
    if let Some(key) = &settings.key {
        request = request.bearer_auth(key);
    }
    let response = request.send().await;
    let response = response.map_err(|error| Failure::Passing(why(&error.without_url()), None))?;
    if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
}

fn form(settings: &Settings, asked: &Asked) -> Result<Form, Failure> {
    let length = asked.wav.len() as u64;
    let wav =
        Part::stream_with_length(asked.wav.clone(), length).file_name("piece.wav").mime_str("audio/wav");
    let mut form = Form::new()
        .part("file", wav.map_err(|error| Failure::Final(with_causes(&error)))?)
        .text("model", settings.model.clone())
        .text("response_format", "verbose_json")
        .text("temperature", "0")
        .text("timestamp_granularities[]", "segment")
        .text("timestamp_granularities[]", "word");
    if let Some(language) = &asked.language {
        form = form.text("language", language.clone());
    }
    if !asked.prompt.is_empty() {
        form = form.text("prompt", asked.prompt.clone());
    }
    Ok(form)
}

/// The whole body, of at most [`MOST_BYTES`].
async fn body(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > MOST_BYTES => {
                return Err(Failure::Final(format!("its answer has more than {MOST_BYTES} bytes")));
            }
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err(Failure::Passing(why(&error.without_url()), None)),
        }
    }
}

/// What an answer that is no success means.
async fn refusal(mut response: Response) -> Failure {
    let status = response.status();
    let wait = response.headers().get(header::RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    let mut said = Vec::new();
    while said.len() < 4 * SHOWN
        && let Ok(Some(chunk)) = response.chunk().await
    {
        said.extend_from_slice(&chunk[..chunk.len().min(4 * SHOWN)]);
    }
    let said: String = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
    let said: String = said.chars().filter(|it| !it.is_control()).take(SHOWN).collect();
    let redirect = if status.is_redirection() { "; redirects are not followed" } else { "" };
    let reason = format!("it answered {}{redirect}: {said}", status.as_u16());
    let may_pass = status.is_server_error()
        || [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::CONFLICT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status);
    if may_pass { Failure::Passing(reason, wait.map(Duration::from_secs)) } else { Failure::Final(reason) }
}

/// The last cause of an error of the client, which names what happened.
fn why(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("the request failed: {cause}")
}

/// The wait after a failed `attempt`, counted from 1.
fn wait_after(attempt: u32) -> Duration {
    let random = f64::from(Uuid::new_v4().as_u128() as u32) / f64::from(u32::MAX);
    FIRST_WAIT.saturating_mul(4_u32.saturating_pow(attempt.saturating_sub(1))).mul_f64(1.0 + JITTER * random)
}
