//! Notices workers that don't finish a batch, answers the batch's callers and starts other workers in their place.
//!
//! A thread can't be ended from outside. A stuck one is abandoned: it keeps what it holds, and its result is dropped.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::desk::Overdue;
use super::{PoolError, Shared, Worker, lock, worker};

/// Most threads of one pool that are replaced. A pool that loses more keeps the rest of its threads.
pub const MOST_REPLACED: usize = 4;

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
        let Some(Overdue { batches, limit }) = post.desk.abandon(now) else { continue };
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
        for batch in batches {
            let inputs = batch.callers.len();
            let answers = (0..inputs).map(|_| Err(PoolError::Stuck { seconds }.into())).collect();
            worker::answer(shared, batch, answers);
        }
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
