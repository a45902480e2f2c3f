//! API keys and the audit log.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::filter::VideoFilter;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Search, and read videos, clips, jobs and counts.
    Read,
    /// Add, change and delete videos, clips and subtitles.
    Write,
    /// Everything, with keys, models and the audit log.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

    /// Its name: `read`, `write` or `admin`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        let found = Scope::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| format!("{text:?} is no scope; use read, write or admin"))
    }
}

/// Limits of a key. `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests per minute, in each server process.
    pub requests_per_minute: Option<u32>,
    /// Searches at once, in each server process.
    pub searches_at_once: Option<u32>,
    /// Bytes of all videos that the key added, with those in the trash.
    pub stored_bytes: Option<i64>,
    /// Seconds of all videos that the key added, with those in the trash.
    pub stored_seconds: Option<i64>,
}

/// A key to make.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The videos that it reaches; `None`: all.
    pub only: Option<Arc<VideoFilter>>,
    /// Its limits.
    pub limits: KeyLimits,
    /// End of its validity, in Unix milliseconds; `None`: it does not expire.
    pub expires_at_ms: Option<i64>,
}

/// A fault of a key to make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {detail}")]
pub struct WrongKey {
    /// The field, as a JSON pointer.
    pub field: &'static str,
    /// The fault, lower case, without a full stop.
    pub detail: &'static str,
}

impl NewApiKey {
    /// Checks the key.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), WrongKey> {
        let wrong = |field, detail| Err(WrongKey { field, detail });
        let has_name = !self.name.trim().is_empty() && self.name.chars().count() <= 200;
        if !has_name || self.name.contains('\0') {
            return wrong("/name", "a name has 1 to 200 characters, none of them U+0000");
        }
        if self.scopes.is_empty() {
            return wrong("/scopes", "name at least one of read, write, admin");
        }
        if self.only.is_some() && self.scopes.contains(&Scope::Admin) {
            return wrong("/only", "a key with the scope admin reaches everything; leave the filter out");
        }
        if self.limits.requests_per_minute == Some(0) {
            return wrong("/limits/requests_per_minute", "must be at least 1");
        }
        if self.limits.searches_at_once == Some(0) {
            return wrong("/limits/searches_at_once", "must be at least 1");
        }
        Ok(())
    }
}

/// A stored key, without its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    /// Its id, which is the public half of the key.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The videos that it reaches; `None`: all.
    pub only: Option<Arc<VideoFilter>>,
    /// Its limits.
    pub limits: KeyLimits,
    /// Time of its making, in Unix milliseconds.
    pub created_at_ms: i64,
    /// End of its validity, in Unix milliseconds; `None`: it does not expire.
    pub expires_at_ms: Option<i64>,
    /// Time of its last use, to a minute, in Unix milliseconds; `None`: never used.
    pub last_used_at_ms: Option<i64>,
    /// Time of its revocation, in Unix milliseconds; `None`: not revoked.
    pub revoked_at_ms: Option<i64>,
}

impl ApiKey {
    /// Whether it is neither revoked nor expired.
    pub fn is_valid_at(&self, now_ms: i64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|end| now_ms < end)
    }
}

/// An entry to add to the audit log.
#[derive(Debug, Clone)]
pub struct NewAuditEntry {
    /// The caller's API key; `None` for the server's own key, and for a server without keys.
    pub key: Option<Uuid>,
    /// The key's name at that time.
    pub key_name: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// HTTP status of the answer; 499 if the client hung up before it.
    pub status: u16,
    /// The request's id, or the command of `reprise` that made the change.
    pub request_id: String,
}

/// A stored entry of the audit log.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Its number, rising.
    pub seq: i64,
    /// Time of the answer, in Unix milliseconds.
    pub at_ms: i64,
    /// The request and its answer.
    pub request: NewAuditEntry,
}
