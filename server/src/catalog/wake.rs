//! Wakes tasks of this process that wait for a job or a change.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// An event that a commit announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// A job may be due.
    Jobs,
    /// `changes` has grown.
    Changes,
}

impl News {
    pub(super) const ALL: [News; 2] = [News::Jobs, News::Changes];

    /// The Postgres channel of the event.
    pub(super) fn channel(self) -> &'static str {
        match self {
            News::Jobs => "reprise_jobs",
            News::Changes => "reprise_changes",
        }
    }
}

/// The waiting tasks.
#[derive(Default)]
pub(super) struct Wake {
    jobs: Notify,
    changes: Notify,
}

impl Wake {
    /// Wakes the tasks that wait for `news`.
    pub(super) fn tell(&self, news: News) {
        self.of(news).notify_waiters();
    }

    /// Waits for the next [`Wake::tell`] of `news`.
    pub(super) fn next(&self, news: News) -> Notified<'_> {
        self.of(news).notified()
    }

    fn of(&self, news: News) -> &Notify {
        match news {
            News::Jobs => &self.jobs,
            News::Changes => &self.changes,
        }
    }
}
