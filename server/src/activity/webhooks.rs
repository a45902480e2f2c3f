//! Sends the deliveries of webhooks, in the background.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::with_causes;
use reqwest::{Response, StatusCode, Url, header};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::signature::{self, Message};
use crate::catalog::{Attempted, Catalog, CatalogError, LeasedDelivery, instant};
use crate::https::{self, AddressError, Reach};
use crate::telemetry::names;

/// Attempts at once in one process.
const AT_ONCE: usize = 8;
/// Longest attempt: finding the address, connecting, sending and the first line of the answer.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(15);
/// The wait after the first failed attempt; each further one is three times as long.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait, without jitter.
const LONGEST_WAIT: Duration = Duration::from_secs(4 * 3600);
/// Largest random extension of a wait, as a share. It spreads deliveries that failed together.
const JITTER: f64 = 0.2;
/// Longest sleep of the idle task.
const IDLE: Duration = Duration::from_secs(60);
/// Interval of the sweeps of old deliveries.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Why an address can't be a webhook's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongUrl {
    /// It is no URL, or one of another kind.
    #[error("must be a URL like https://example.com/hooks")]
    NotUrl,
    /// It is not https.
    #[error("must be https; the operator may allow http with --allow-private-webhooks")]
    NotHttps,
    /// It names an address that is not public.
    #[error("must lead to a public address; the operator may allow others with --allow-private-webhooks")]
    Private,
    /// It has a user or a password.
    #[error("must have no user and no password: requests are signed instead")]
    HasPassword,
    /// It has a fragment.
    #[error("must have no fragment: it is never sent")]
    HasFragment,
}

/// Checks the address of a webhook. The addresses of its host are checked at each attempt.
///
/// # Errors
/// See [`WrongUrl`].
pub fn checked_url(text: &str, reach: Reach) -> Result<Url, WrongUrl> {
    let url = Url::parse(text).map_err(|_| WrongUrl::NotUrl)?;
    if url.host_str().is_none_or(str::is_empty) || !["http", "https"].contains(&url.scheme()) {
        return Err(WrongUrl::NotUrl);
    }
    if reach == Reach::Public && url.scheme() != "https" {
        return Err(WrongUrl::NotHttps);
    }
    if reach == Reach::Public && https::names_private_address(&url) {
        return Err(WrongUrl::Private);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WrongUrl::HasPassword);
    }
    if url.fragment().is_some() {
        return Err(WrongUrl::HasFragment);
    }
    Ok(url)
}

/// Sends deliveries.
#[derive(Clone)]
pub struct Sender {
    catalog: Arc<Catalog>,
    reach: Reach,
    lease: Duration,
}

impl Sender {
    /// A sender to these addresses. After the death of its process, another one may send a delivery again once
    /// `patience` and the time of an attempt have passed.
    pub fn new(catalog: Arc<Catalog>, reach: Reach, patience: Duration) -> Sender {
        Sender { catalog, reach, lease: ATTEMPT_WITHIN + patience }
    }

    /// Sends deliveries that are due, and sweeps old ones, until `closing`.
    pub async fn run(self, closing: CancellationToken) {
        let (places, attempts) = (Arc::new(Semaphore::new(AT_ONCE)), TaskTracker::new());
        let mut next_sweep = Instant::now();
        while !closing.is_cancelled() {
            if next_sweep <= Instant::now() {
                next_sweep = Instant::now() + SWEEP_EVERY;
                if let Err(error) = self.catalog.sweep_deliveries().await {
                    tracing::warn!(%error, "old deliveries of webhooks can't be swept");
                }
            }
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            match self.catalog.lease_delivery(self.lease).await {
                Ok(Some(leased)) => {
                    let (sender, closing) = (self.clone(), closing.clone());
                    attempts.spawn(async move {
                        sender.attempt(leased, closing).await;
                        drop(place);
                    });
                }
                Ok(None) => self.idle(next_sweep, &closing).await,
                Err(error) => {
                    tracing::warn!(%error, "no delivery can be leased; trying again");
                    self.idle(next_sweep, &closing).await;
                }
            }
        }
        attempts.close();
        attempts.wait().await;
    }

    /// Makes one attempt at the delivery that is due first; false if none is due.
    ///
    /// # Errors
    /// The catalog failed.
    pub async fn send_next(&self) -> Result<bool, CatalogError> {
        let Some(leased) = self.catalog.lease_delivery(self.lease).await? else { return Ok(false) };
        self.attempt(leased, CancellationToken::new()).await;
        Ok(true)
    }

    async fn idle(&self, next_sweep: Instant, closing: &CancellationToken) {
        let at_most = IDLE.min(next_sweep.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = closing.cancelled() => {}
            () = self.catalog.wait_for_delivery(at_most) => {}
        }
    }

    async fn attempt(&self, leased: LeasedDelivery, closing: CancellationToken) {
        let lease = leased.lease;
        let stored = tokio::select! {
            ended = tokio::time::timeout(ATTEMPT_WITHIN, self.post(&leased)) => {
                let late = || Err(Failure::of(format!("no answer within {} s", ATTEMPT_WITHIN.as_secs())));
                let ended = outcome(ended.unwrap_or_else(|_| late()), &leased);
                count(&ended);
                self.catalog.finish_delivery(&lease, &ended).await
            }
            () = closing.cancelled() => self.catalog.release_delivery(&lease).await,
        };
        if let Err(error) = stored {
            let delivery = lease.delivery;
            tracing::warn!(%error, %delivery, "the end of a delivery could not be stored; its lease will run out");
        }
    }

    /// Sends a delivery. Returns the head of the answer.
    async fn post(&self, leased: &LeasedDelivery) -> Result<Response, Failure> {
        let url =
            checked_url(&leased.url, self.reach).map_err(|wrong| Failure::of(format!("the URL {wrong}")))?;
        let client =
            https::client_to(&url, self.reach).await.map_err(|error| Failure::of(unreachable(error)))?;
        let client = client.build().map_err(|error| Failure::of(with_causes(&error)))?;
        let timestamp = instant::now_ms().div_euclid(1000);
        let message = Message { id: leased.lease.delivery, timestamp, body: &leased.payload };
        let request = client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("reprise/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signature::header(message, &leased.secrets))
            .body(leased.payload.clone());
        // The answer's body is not read.
        request.send().await.map_err(|error| Failure::of(why(&error.without_url())))
    }
}

/// Why an attempt got no answer.
struct Failure {
    reason: String,
}

impl Failure {
    fn of(reason: impl Into<String>) -> Failure {
        Failure { reason: reason.into() }
    }
}

fn unreachable(error: AddressError) -> String {
    format!("not sent: {error}")
}

/// The last cause of an error of the client, which names what happened.
fn why(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("the request failed: {cause}")
}

fn outcome(ended: Result<Response, Failure>, leased: &LeasedDelivery) -> Attempted {
    let wait = wait_after(leased.attempt, random(leased.lease.token));
    let answer = match ended {
        Ok(answer) => answer,
        Err(Failure { reason }) => return Attempted::Failed { status: None, reason, wait },
    };
    let status = answer.status();
    if status.is_success() {
        return Attempted::Delivered(status.as_u16());
    }
    if status == StatusCode::GONE {
        return Attempted::Gone;
    }
    let redirect = if status.is_redirection() { "; redirects are not followed" } else { "" };
    let reason = format!("the receiver answered {}{redirect}", status.as_u16());
    let wait = wait.max(asked_wait(&answer).min(LONGEST_WAIT));
    Attempted::Failed { status: Some(status.as_u16()), reason, wait }
}

/// The seconds of `Retry-After`; 0 without it, and for a date.
fn asked_wait(answer: &Response) -> Duration {
    let asked = answer.headers().get(header::RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    Duration::from_secs(asked.unwrap_or_default())
}

/// The wait after a failed `attempt`, counted from 1. `random`: 0 to 1.
fn wait_after(attempt: i64, random: f64) -> Duration {
    let steps = u32::try_from(attempt.clamp(1, 20) - 1).unwrap_or_default();
    let wait = FIRST_WAIT.saturating_mul(3_u32.saturating_pow(steps)).min(LONGEST_WAIT);
    wait.mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0))
}

/// A number from 0 to 1, from the random last bits of the lease's token.
fn random(token: Uuid) -> f64 {
    f64::from(token.as_u128() as u32) / f64::from(u32::MAX)
}

fn count(ended: &Attempted) {
    let outcome = match ended {
        Attempted::Delivered(_) => "delivered",
        Attempted::Gone => "gone",
        Attempted::Failed { .. } => "failed",
    };
    metrics::counter!(names::WEBHOOK_ATTEMPTS.name, "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attempt: i64, random: f64, expected_seconds: u64) {
        assert_eq!(wait_after(attempt, random), Duration::from_secs(expected_seconds), "{attempt}, {random}");
    }

    #[test]
    fn waits_grow_to_hours_and_jitter_makes_them_longer_by_a_fifth_at_most() {
        check(1, 0.0, 5);
        check(2, 0.0, 15);
        check(2, 1.0, 18);
        check(2, 7.0, 18);
        check(8, 0.0, 10_935);
        check(9, 0.0, 14_400);
        check(i64::MAX, 0.5, 15_840);
        check(0, 0.0, 5);
    }

    #[track_caller]
    fn check_url(text: &str, public: Option<WrongUrl>, all: Option<WrongUrl>) {
        assert_eq!(checked_url(text, Reach::Public).err(), public, "{text}");
        assert_eq!(checked_url(text, Reach::All).err(), all, "{text}");
    }

    #[test]
    fn webhooks_have_public_addresses_unless_others_are_allowed() {
        use WrongUrl::{HasFragment, HasPassword, NotHttps, NotUrl, Private};
        check_url("https://example.com/hooks?x=1", None, None);
        check_url("http://example.com", Some(NotHttps), None);
        for inside in ["127.0.0.1:9", "[::1]", "10.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
            check_url(&format!("https://{inside}/"), Some(Private), None);
        }
        for wrong in ["", "hooks", "ftp://example.com", "file:///etc/passwd", "https://", "data:,x"] {
            check_url(wrong, Some(NotUrl), Some(NotUrl));
        }
        check_url("https://user:password@example.com", Some(HasPassword), Some(HasPassword));
        check_url("https://example.com/#x", Some(HasFragment), Some(HasFragment));
    }
}
