//! Errors of the catalog.

use reprise_encoders::Cause;
use uuid::Uuid;

/// Error of a catalog call.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The row's state forbids the change; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Conflict(String),
    /// The row's state forbids this value of a field; the caller's fault.
    #[error("{reason}")]
    ConflictOf {
        /// The field of what the caller asked for.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The given data is invalid; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Invalid(#[source] Cause),
    /// The caller may not see the video after the change; the caller's fault.
    #[error("your key does not reach this video: its metadata, tags and folder must match the key's filter")]
    Outside,
    /// The caller's key has no room for the video. The text gives the quota.
    #[error("{0}")]
    OverQuota(String),
    /// The caller named a range that it can't name; the caller's fault.
    #[error("range {place}: {fault}")]
    Range {
        /// Its place in the list, from 0.
        place: usize,
        /// What is wrong with it.
        fault: RangeFault,
    },
    /// The caller named a webhook that an alert can't name; the caller's fault.
    #[error("webhook {place}: {fault}")]
    Webhook {
        /// Its place in the list, from 0.
        place: usize,
        /// What is wrong with it.
        fault: WebhookFault,
    },
    /// The caller wanted to change another state than the present one; the caller's fault.
    #[error("it was changed meanwhile: read it again, and send If-Match with its new ETag")]
    Stale,
    /// The worker no longer holds the job; it must drop its result.
    #[error("the job's lease was lost or the job was cancelled")]
    LeaseLost,
    /// Another process serves the embedded database; the operator must stop it. The text names it.
    #[error("{0}")]
    InUse(String),
    /// The database's schema is of another version; the operator must run another reprise, or migrate. The text says
    /// which.
    #[error("{0}")]
    Schema(String),
    /// The database can't be reached or is busy. The same call may succeed later.
    #[error("the database does not answer: {0}")]
    Away(#[source] Cause),
    /// The database's disk is full; the operator must free some of it. The same call then succeeds.
    #[error("the database's disk is full: {0}")]
    Full(#[source] Cause),
    /// The database failed; the operator must act.
    #[error("the database failed: {0}")]
    Database(#[source] Cause),
    /// A stored row can't be read back; ours.
    #[error("stored data is damaged: {0}")]
    Damaged(#[source] Cause),
}

impl CatalogError {
    /// Whether the change may stand all the same: the database failed, perhaps while it answered the commit.
    pub fn outcome_is_unknown(&self) -> bool {
        matches!(self, CatalogError::Away(_) | CatalogError::Database(_) | CatalogError::Damaged(_))
    }
}

/// What is wrong with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeFault {
    /// There is no such video, or the caller may not see it.
    #[error("there is no video {0}")]
    NoVideo(Uuid),
    /// It begins when its video has ended.
    #[error("it begins after the video's end")]
    AfterEnd,
}

/// What is wrong with a webhook that an alert names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookFault {
    /// The caller has no such webhook.
    #[error("there is no webhook {0}")]
    Missing(Uuid),
    /// It does not get matches.
    #[error("it has no event `alert.matched`")]
    OtherEvents,
}

impl From<sqlx::Error> for CatalogError {
    fn from(error: sqlx::Error) -> Self {
        let trouble = match &error {
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Io(_)
            | sqlx::Error::Tls(_) => Trouble::Away,
            sqlx::Error::Database(error) => Trouble::of_code(&error.code().unwrap_or_default()),
            _ => Trouble::Other,
        };
        match trouble {
            Trouble::Away => CatalogError::Away(error.into()),
            Trouble::Full => CatalogError::Full(error.into()),
            Trouble::Other => CatalogError::Database(error.into()),
        }
    }
}

/// A database's trouble, by what the operator must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Away,
    Full,
    Other,
}

impl Trouble {
    /// The trouble of a code. SQLite's are numbers of up to four digits, Postgres' have five characters.
    fn of_code(code: &str) -> Trouble {
        match code.parse() {
            Ok(number) if code.len() < 5 => Trouble::of_sqlite(number),
            _ => Trouble::of_postgres(code),
        }
    }

    /// The trouble of an extended result code (sqlite.org/rescode.html). Its low byte is the primary code.
    fn of_sqlite(code: i32) -> Trouble {
        /// The file that readers and the writer share can't grow, because the disk is full.
        const IOERR_SHMSIZE: i32 = 4874;
        const BUSY: i32 = 5;
        const LOCKED: i32 = 6;
        const IOERR: i32 = 10;
        const FULL: i32 = 13;
        const CANTOPEN: i32 = 14;
        match code {
            IOERR_SHMSIZE => Trouble::Full,
            _ => match code & 0xff {
                FULL => Trouble::Full,
                BUSY | LOCKED | IOERR | CANTOPEN => Trouble::Away,
                _ => Trouble::Other,
            },
        }
    }

    /// The trouble of an SQLSTATE (PostgreSQL documentation, appendix A).
    fn of_postgres(state: &str) -> Trouble {
        match state {
            "53100" => Trouble::Full,
            // Deadlocks, serialization failures, a wait for a lock that took too long, files that can't be read.
            "40001" | "40P01" | "55P03" | "58030" => Trouble::Away,
            // Connections; too few resources; a server that starts, stops or was killed.
            _ if ["08", "53", "57P"].iter().any(|class| state.starts_with(class)) => Trouble::Away,
            _ => Trouble::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: Trouble) {
        assert_eq!(Trouble::of_code(code), expected, "{code}");
    }

    #[test]
    fn codes_of_sqlite_tell_trouble_from_faults() {
        for away in ["5", "517", "6", "10", "266", "14"] {
            check(away, Trouble::Away);
        }
        check("13", Trouble::Full);
        check("4874", Trouble::Full);
        check("19", Trouble::Other);
        check("2067", Trouble::Other);
    }

    #[test]
    fn states_of_postgres_tell_trouble_from_faults() {
        for away in ["08006", "53300", "57P01", "57P03", "40P01"] {
            check(away, Trouble::Away);
        }
        check("53100", Trouble::Full);
        check("23505", Trouble::Other);
        check("57014", Trouble::Other);
    }
}
