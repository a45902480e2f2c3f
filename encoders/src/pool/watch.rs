//! Notices workers that don't finish a batch, answers the batch's callers and starts other workers in their place.
//!
//! A thread can't be ended from outside. A stuck one is abandoned: it keeps what it holds, and its result is dropped.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::worker::{self, Batch};
use super::{PoolError, Settings, Shared, Worker, lock};

/// Most threads of one pool that are replaced. A pool that loses more keeps the rest of its threads.
pub const MOST_REPLACED: usize = 4;

/// Time that a batch may take for each unit of its cost: a model of a billion parameters at 20 GFLOP a second.
const TIME_PER_COST: Duration = Duration::from_millis(100);

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
    fn abandon(&self, now: Instant) -> Option<Overdue<W>> {
        let mut state = lock(&self.0);
        let limit = state.limit.filter(|limit| limit.ends < now)?;
        let batch = state.batch.take()?;
        state.is_abandoned = true;
        Some(Overdue { batch, limit: limit.lasts })
    }
}

struct Overdue<W: Worker> {
    batch: Batch<W>,
    limit: Duration,
}

impl Settings {
    /// Longest run of a batch of this cost.
    pub(super) fn longest_run(&self, cost: usize) -> Duration {
        let more = TIME_PER_COST.saturating_mul(u32::try_from(cost).unwrap_or(u32::MAX));
        self.stuck_after.saturating_add(more)
    }
}

/// Watches the pool's threads until the last one has ended.
pub(super) fn start<W: Worker>(shared: &Arc<Shared<W>>) {
    let shared = Arc::clone(shared);
    let watch = std::thread::Builder::new().name("watch".to_owned());
    if let Err(error) = watch.spawn(move || watch_until_end(&shared)) {
        tracing::error!(%error, "stuck workers will not be noticed: a thread did not start");
    }
}

fn watch_until_end<W: Worker>(shared: &Arc<Shared<W>>) {
    let pause = (shared.settings.stuck_after / 8).max(Duration::from_millis(1));
    let mut queue = lock(&shared.queue);
    while shared.alive.load(Ordering::SeqCst) > 0 {
        let waited = shared.ended.wait_timeout(queue, pause);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        replace_stuck(shared, Instant::now());
        queue = lock(&shared.queue);
    }
}

/// Abandons the threads whose run should have ended before `now`.
pub(super) fn replace_stuck<W: Worker>(shared: &Arc<Shared<W>>, now: Instant) {
    for post in lock(&shared.posts).iter_mut() {
        let Some(Overdue { batch, limit }) = post.desk.abandon(now) else { continue };
        let abandoned = shared.abandoned.fetch_add(1, Ordering::SeqCst) + 1;
        let (worker, seconds) = (post.spare.name(), limit.as_secs());
        tracing::error!(
            worker,
            seconds,
            abandoned,
            "a worker did not finish its batch; its thread is abandoned"
        );
        // A stuck thread can't be joined.
        post.thread = None;
        if abandoned <= MOST_REPLACED {
            let name = format!("encode-{worker}-again-{abandoned}");
            match worker::spawn(shared, name, post.spare.clone()) {
                Ok(new) => *post = new,
                Err(error) => tracing::error!(%error, "a worker thread did not start"),
            }
        }
        // After the new thread has come: a pool without threads closes.
        worker::leave(shared);
        let inputs = batch.callers.len();
        let answers = (0..inputs).map(|_| Err(PoolError::Stuck { seconds }.into())).collect();
        worker::answer(shared, batch, answers);
    }
}

/// Waits until no thread runs, but for abandoned ones. Blocks.
pub(super) fn wait_for_end<W: Worker>(shared: &Shared<W>) {
    let mut queue = lock(&shared.queue);
    while shared.alive.load(Ordering::SeqCst) > 0 {
        queue = shared.ended.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    drop(queue);
    let posts = std::mem::take(&mut *lock(&shared.posts));
    for thread in posts.into_iter().filter_map(|post| post.thread) {
        // A thread that panicked has already failed its callers.
        drop(thread.join());
    }
}
