//! Webhooks and their deliveries.

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

/// Most webhooks of a library.
pub const MOST_WEBHOOKS: i64 = 100;
/// Most waiting deliveries of a webhook. Later events are dropped and counted.
pub const MOST_WAITING: i64 = 10_000;
/// Most deliveries of a webhook that have ended and are still listed.
pub const MOST_ENDED: i64 = 1000;
/// Longest address of a webhook, in bytes.
pub const LONGEST_URL: usize = 2000;
/// Longest description of a webhook, in characters.
pub const LONGEST_DESCRIPTION: usize = 500;
/// For how long a delivery is tried.
pub const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// For how long the secret before a rotation signs too.
pub const OLD_SECRET_LASTS: Duration = Duration::from_secs(24 * 3600);
/// The type of a test delivery.
pub const TEST_EVENT: &str = "webhook.test";

/// Whose webhooks and alerts a caller sees and changes.
///
/// It has no default on purpose: each caller must choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Everybody's.
    Anybody,
    /// Those of this API key.
    Key(Uuid),
}

impl Owner {
    /// The key, if it is limited to one.
    pub(in crate::catalog) fn key(self) -> Option<Uuid> {
        match self {
            Owner::Anybody => None,
            Owner::Key(key) => Some(key),
        }
    }
}

/// An event that a webhook may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEvent {
    /// A video became searchable.
    VideoReady,
    /// The ingest of a video failed.
    VideoFailed,
    /// The file of an export was made.
    ExportReady,
    /// An alert found something in a new video.
    AlertMatched,
}

impl WebhookEvent {
    /// All events.
    pub const ALL: [WebhookEvent; 4] = [
        WebhookEvent::VideoReady,
        WebhookEvent::VideoFailed,
        WebhookEvent::ExportReady,
        WebhookEvent::AlertMatched,
    ];

    /// The stored and public name.
    pub fn name(self) -> &'static str {
        match self {
            WebhookEvent::VideoReady => "video.ready",
            WebhookEvent::VideoFailed => "video.failed",
            WebhookEvent::ExportReady => "export.ready",
            WebhookEvent::AlertMatched => "alert.matched",
        }
    }
}

impl fmt::Display for WebhookEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The key that signs the deliveries of a webhook: 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret([u8; 32]);

impl WebhookSecret {
    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for WebhookSecret {
    fn from(bytes: [u8; 32]) -> WebhookSecret {
        WebhookSecret(bytes)
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WebhookSecret(..)")
    }
}

/// A webhook to store.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// The API key that makes it; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// The address that deliveries are sent to.
    pub url: String,
    /// A note for people; may be empty.
    pub description: String,
    /// The events that it gets; at least one.
    pub events: Vec<WebhookEvent>,
    /// Signs its deliveries.
    pub secret: WebhookSecret,
}

/// A webhook, without its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// uuid v7.
    pub id: Uuid,
    /// The API key that made it; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// The address that deliveries are sent to.
    pub url: String,
    /// A note for people; may be empty.
    pub description: String,
    /// The events that it gets.
    pub events: Vec<WebhookEvent>,
    /// When and why it was disabled; `None`: it works.
    pub disabled: Option<Disabled>,
    /// Events that were dropped because [`MOST_WAITING`] deliveries waited.
    pub dropped: i64,
    /// Time of its making, in Unix milliseconds.
    pub created_at_ms: i64,
}

/// Why a webhook gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// Since when, in Unix milliseconds.
    pub at_ms: i64,
    /// The reason.
    pub why: String,
}

/// State of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits for its first attempt or its next one.
    Waiting,
    /// The receiver has it.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [DeliveryState; 3] =
        [DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Failed];

    /// The stored and public name.
    pub fn name(self) -> &'static str {
        match self {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
        }
    }
}

/// A delivery as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// uuid v7; the receiver sees it as `webhook-id`.
    pub id: Uuid,
    /// The type of its payload.
    pub event: String,
    /// Its state.
    pub state: DeliveryState,
    /// Number of attempts so far.
    pub attempts: i64,
    /// Time of the next attempt, in Unix milliseconds, while it waits.
    pub next_attempt_ms: Option<i64>,
    /// HTTP status of the last answer; `None`: there was none.
    pub status: Option<i64>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// Time of the event, in Unix milliseconds.
    pub created_at_ms: i64,
    /// Time of the last change, in Unix milliseconds.
    pub updated_at_ms: i64,
}

/// The right to make one attempt at a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryLease {
    /// The delivery.
    pub delivery: Uuid,
    /// Identifies this attempt.
    pub token: Uuid,
}

/// A leased delivery.
#[derive(Debug, Clone)]
pub struct LeasedDelivery {
    /// The lease.
    pub lease: DeliveryLease,
    /// The address.
    pub url: String,
    /// The keys that sign it, the newest first.
    pub secrets: Vec<WebhookSecret>,
    /// The JSON to send.
    pub payload: String,
    /// The number of this attempt, from 1.
    pub attempt: i64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    /// The receiver took it, with this status.
    Delivered(u16),
    /// The receiver wants nothing any more (410): its webhook is disabled.
    Gone,
    /// It failed, and is tried again after `wait`, unless it was tried for [`TRIED_FOR`] by then.
    Failed {
        /// The status of the answer, if there was one.
        status: Option<u16>,
        /// Why.
        reason: String,
        /// The wait before the next attempt.
        wait: Duration,
    },
}
