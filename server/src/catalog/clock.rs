//! The source of the catalog's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The source of the catalog's time.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The clock of this machine (SQLite) or of the database's machine (Postgres). All workers then agree on deadlines.
    #[default]
    Real,
    /// A clock for tests, in Unix milliseconds; it moves only by [`Clock::advance`] and
    /// [`Clock::set_back`].
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// A test clock that stands at `now_ms`.
    pub fn set_to(now_ms: i64) -> Clock {
        Clock::Set(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Advances a test clock; has no effect on the real one.
    pub fn advance(&self, by: Duration) {
        if let Clock::Set(now_ms) = self {
            now_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// Sets a test clock back; has no effect on the real one.
    pub fn set_back(&self, by: Duration) {
        if let Clock::Set(now_ms) = self {
            now_ms.fetch_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// The time of a test clock; `None` for the real one.
    pub(super) fn shown_ms(&self) -> Option<i64> {
        match self {
            Clock::Real => None,
            Clock::Set(now_ms) => Some(now_ms.load(Ordering::SeqCst)),
        }
    }
}
