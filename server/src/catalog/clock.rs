//! Where the catalog's time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Where the catalog's time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// SQLite: this machine. Postgres: the database's machine, so that workers elsewhere agree on when a lease ends.
    #[default]
    Real,
    /// A clock that stands still until a test moves it on; in Unix milliseconds.
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that shows `now_ms` until it is moved on.
    pub fn set_to(now_ms: i64) -> Clock {
        Clock::Set(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Moves a set clock on; the real one goes by itself.
    pub fn advance(&self, by: Duration) {
        if let Clock::Set(now_ms) = self {
            now_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// What a set clock shows; `None` for the real one.
    pub(super) fn shown_ms(&self) -> Option<i64> {
        match self {
            Clock::Real => None,
            Clock::Set(now_ms) => Some(now_ms.load(Ordering::SeqCst)),
        }
    }
}
