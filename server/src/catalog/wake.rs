//! Wakes tasks of this process that wait for a job, a change, a delivery or an alert's check.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// An event that a commit announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// A job may be due.
    Jobs,
    /// `changes` has grown.
    Changes,
    /// A webhook's delivery may be due.
    Deliveries,
    /// An alert may have a video to ask.
    Checks,
}

impl News {
    pub(super) const ALL: [News; 4] = [News::Jobs, News::Changes, News::Deliveries, News::Checks];

    /// The Postgres channel of the event.
    pub(super) fn channel(self) -> &'static str {
        match self {
            News::Jobs => "reprise_jobs",
            News::Changes => "reprise_changes",
            News::Deliveries => "reprise_deliveries",
            News::Checks => "reprise_checks",
        }
    }
}

/// The waiting tasks.
#[derive(Default)]
pub(super) struct Wake {
    jobs: Notify,
    changes: Notify,
    deliveries: Notify,
    checks: Notify,
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
            News::Deliveries => &self.deliveries,
            News::Checks => &self.checks,
        }
    }
}
