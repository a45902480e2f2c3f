//! Wake-ups inside the process, for those who wait for a job or a change.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Who is woken by what.
#[derive(Default)]
pub(super) struct Wake {
    jobs: Notify,
    changes: Notify,
}

impl Wake {
    /// A job may be waiting.
    pub(super) fn jobs(&self) {
        self.jobs.notify_waiters();
    }

    /// `changes` has grown.
    pub(super) fn changes(&self) {
        self.changes.notify_waiters();
    }

    /// The next [`Wake::jobs`].
    pub(super) fn next_job(&self) -> Notified<'_> {
        self.jobs.notified()
    }

    /// The next [`Wake::changes`].
    pub(super) fn next_change(&self) -> Notified<'_> {
        self.changes.notified()
    }
}
