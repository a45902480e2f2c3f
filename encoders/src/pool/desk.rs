//! Where each thread of a pool keeps the batch that it runs, so that its callers can be answered without it.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Permit, Settings, Worker, lock};

/// Time that a batch may take for each unit of its cost: a model of a billion parameters at 20 GFLOP a second.
const TIME_PER_COST: Duration = Duration::from_millis(100);

/// The callers of a batch.
pub(super) struct Batch<W: Worker> {
    pub(super) start: Instant,
    pub(super) callers: Vec<BatchCaller<W>>,
}

/// Who waits for the output of one input.
pub(super) struct BatchCaller<W: Worker> {
    pub(super) reply: oneshot::Sender<Result<W::Output, W::Error>>,
    pub(super) since: Instant,
    pub(super) permit: Option<Arc<Permit>>,
}

impl<W: Worker> Batch<W> {
    /// Waiting time of each input until the batch started.
    pub(super) fn waited(&self) -> impl Iterator<Item = Duration> {
        self.callers.iter().map(|caller| self.start.saturating_duration_since(caller.since))
    }
}

/// Where one thread of a pool stands, and what replaces it.
pub(super) struct Post<W: Worker> {
    /// Shares its weights with the thread's worker.
    pub(super) spare: W,
    pub(super) desk: Arc<Desk<W>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// The batch of one thread, where the watch can take it away.
pub(super) struct Desk<W: Worker>(Mutex<State<W>>);

struct State<W: Worker> {
    batch: Option<Batch<W>>,
    /// The end of the current run, and its limit. A batch with faulty inputs has several runs.
    limit: Option<Limit>,
    is_abandoned: bool,
}

#[derive(Clone, Copy)]
struct Limit {
    ends: Instant,
    lasts: Duration,
}

impl<W: Worker> Default for Desk<W> {
    fn default() -> Self {
        Desk(Mutex::new(State { batch: None, limit: None, is_abandoned: false }))
    }
}

impl<W: Worker> Desk<W> {
    /// A batch begins. It has no limit before its first run.
    pub(super) fn put(&self, batch: Batch<W>) {
        lock(&self.0).batch = Some(batch);
    }

    /// A run of the batch begins now and may take `lasts`.
    pub(super) fn run_for(&self, lasts: Duration) {
        let ends = Instant::now().checked_add(lasts);
        lock(&self.0).limit = ends.map(|ends| Limit { ends, lasts });
    }

    /// The batch, which has ended. `None` if the watch took it away.
    pub(super) fn take(&self) -> Option<Batch<W>> {
        let mut state = lock(&self.0);
        state.limit = None;
        state.batch.take()
    }

    /// Whether the thread must end, because another one has its place.
    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.0).is_abandoned
    }

    /// Takes the batch away if its run should have ended before `now`.
    pub(super) fn abandon(&self, now: Instant) -> Option<Overdue<W>> {
        let mut state = lock(&self.0);
        let limit = state.limit.filter(|limit| limit.ends < now)?;
        let batch = state.batch.take()?;
        state.is_abandoned = true;
        Some(Overdue { batch, limit: limit.lasts })
    }
}

/// A batch that was taken away.
pub(super) struct Overdue<W: Worker> {
    pub(super) batch: Batch<W>,
    /// The time that it had.
    pub(super) limit: Duration,
}

impl Settings {
    /// Longest run of a batch of this cost.
    pub(super) fn longest_run(&self, cost: usize) -> Duration {
        let more = TIME_PER_COST.saturating_mul(u32::try_from(cost).unwrap_or(u32::MAX));
        self.stuck_after.saturating_add(more)
    }
}
