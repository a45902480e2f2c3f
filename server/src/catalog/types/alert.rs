//! Alerts: stored searches, and what they found.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::terms::Level;

/// Most webhooks of an alert.
pub const MOST_ALERT_WEBHOOKS: usize = 10;
/// Most hits of an alert in one video.
pub const MOST_ALERT_HITS: usize = 20;
/// Most stored matches of an alert; older ones are deleted.
pub const MOST_MATCHES: i64 = 10_000;
/// Largest stored search, in bytes of JSON.
pub const LARGEST_SEARCH: usize = 64 << 10;
/// For how long an alert tries to ask a video.
pub const ASKED_FOR: Duration = Duration::from_secs(24 * 3600);

/// An alert to store.
#[derive(Debug, Clone)]
pub struct NewAlert {
    /// The API key that makes it; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// The search: a JSON object as `POST /v1/search` takes it.
    pub search: Value,
    /// Hits need at least this score; `None`: any.
    pub min_score: Option<f64>,
    /// The webhooks that matches go to.
    pub webhooks: Vec<Uuid>,
}

/// An alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// uuid v7.
    pub id: Uuid,
    /// The API key that made it; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// The search.
    pub search: Value,
    /// Hits need at least this score; `None`: any.
    pub min_score: Option<f64>,
    /// The webhooks that matches go to.
    pub webhooks: Vec<Uuid>,
    /// Number of videos that it found something in, of those that are stored.
    pub matches: i64,
    /// Number of videos that it has not asked yet.
    pub waiting: i64,
    /// Number of videos that were given up.
    pub missed: i64,
    /// Why its last try failed; `None`: it did not.
    pub trouble: Option<String>,
    /// Time of its making, in Unix milliseconds.
    pub created_at_ms: i64,
}

/// The right to ask one video for an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckLease {
    /// The alert.
    pub alert: Uuid,
    /// The video.
    pub video: Uuid,
    /// Identifies this try.
    pub token: Uuid,
}

/// A leased check.
#[derive(Debug, Clone)]
pub struct LeasedCheck {
    /// The lease.
    pub lease: CheckLease,
    /// The API key of the alert's owner; `None` for callers without one.
    pub owner: Option<Uuid>,
    /// The search.
    pub search: Value,
    /// Hits need at least this score; `None`: any.
    pub min_score: Option<f64>,
    /// The number of this try, from 1.
    pub attempt: i64,
}

/// What an alert found in a video.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The name of the space that was searched.
    pub space: String,
    /// The hits, best first; empty: no match.
    pub hits: Vec<AlertHit>,
}

/// A hit of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertHit {
    /// The span.
    pub clip: Uuid,
    /// Its level.
    pub level: Level,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// The score, as a search gives it.
    pub score: f64,
    /// The highest z of its sources; `None`: it has none.
    pub z: Option<f64>,
}

/// A stored match: an alert, a video, and what was found in it.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertMatch {
    /// uuid v7.
    pub id: Uuid,
    /// The video.
    pub video: Uuid,
    /// What was found.
    pub found: Found,
    /// Time of the match, in Unix milliseconds.
    pub at_ms: i64,
}
