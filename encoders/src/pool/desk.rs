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

/// The batches of one thread, where the watch can take them away. The last one runs; those before it wait for its end.
pub(super) struct Desk<W: Worker>(Mutex<State<W>>);

struct State<W: Worker> {
    running: Vec<Running<W>>,
    is_abandoned: bool,
}

struct Running<W: Worker> {
    batch: Batch<W>,
    /// The end of the current run, and its limit. A batch with faulty inputs has several runs.
    limit: Option<Limit>,
}

#[derive(Clone, Copy)]
struct Limit {
    ends: Instant,
    lasts: Duration,
}

impl<W: Worker> Default for Desk<W> {
    fn default() -> Self {
        Desk(Mutex::new(State { running: Vec::new(), is_abandoned: false }))
    }
}

impl<W: Worker> Desk<W> {
    /// A batch begins. It has no limit before its first run.
    pub(super) fn put(&self, batch: Batch<W>) {
        lock(&self.0).running.push(Running { batch, limit: None });
    }

    /// A run of the last batch begins now and may take `lasts`.
    pub(super) fn run_for(&self, lasts: Duration) {
        let ends = Instant::now().checked_add(lasts);
        if let Some(running) = lock(&self.0).running.last_mut() {
            running.limit = ends.map(|ends| Limit { ends, lasts });
        }
    }

    /// The last batch, which has ended. The one before it gets the time that it has waited. `None` if the watch took it
    /// away.
    pub(super) fn take(&self) -> Option<Batch<W>> {
        let mut state = lock(&self.0);
        let Running { batch, .. } = state.running.pop()?;
        if let Some(limit) = state.running.last_mut().and_then(|before| before.limit.as_mut()) {
            limit.ends = limit.ends.checked_add(batch.start.elapsed()).unwrap_or(limit.ends);
        }
        Some(batch)
    }

    /// Drops all batches.
    pub(super) fn clear(&self) {
        lock(&self.0).running.clear();
    }

    /// Whether the thread must end, because another one has its place.
    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.0).is_abandoned
    }

    /// Takes all batches away if the last one's run should have ended before `now`.
    pub(super) fn abandon(&self, now: Instant) -> Option<Overdue<W>> {
        let mut state = lock(&self.0);
        let limit = state.running.last()?.limit.filter(|limit| limit.ends < now)?;
        state.is_abandoned = true;
        let batches = std::mem::take(&mut state.running).into_iter().map(|it| it.batch).collect();
        Some(Overdue { batches, limit: limit.lasts })
    }
}

/// Batches that were taken away.
pub(super) struct Overdue<W: Worker> {
    pub(super) batches: Vec<Batch<W>>,
    /// The time that the last one had.
    pub(super) limit: Duration,
}

impl Settings {
    /// Longest run of a batch of this cost.
    pub(super) fn longest_run(&self, cost: usize) -> Duration {
        let more = TIME_PER_COST.saturating_mul(u32::try_from(cost).unwrap_or(u32::MAX));
        self.stuck_after.saturating_add(more)
    }
}
