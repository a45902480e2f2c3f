//! The threads that share the work of one model on the CPU.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPoolBuilder, Yield};

use crate::threads;

/// Runs `work` on one thread of a new pool, whose [`threads`] threads are named after `name`. Layers that run outside of
/// a pool pass each product to other threads and sleep until it is done, which takes longer than a small product. Runs
/// `work` where it is called if there is one thread only, or the system gives none.
pub fn on_cores<R: Send>(name: &str, work: impl FnOnce() -> R + Send) -> R {
    let pool = || {
        let name = name.to_owned();
        let named = move |number| format!("{name}/{number}");
        ThreadPoolBuilder::new().num_threads(threads()).thread_name(named).build()
    };
    match (threads() > 1).then(pool) {
        Some(Ok(pool)) => pool.install(work),
        Some(Err(error)) => {
            tracing::warn!(%error, "a model shares its threads with others");
            work()
        }
        None => work(),
    }
}

thread_local! {
    /// Whether this thread runs the work of [`awake`].
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, while the other threads of its pool wait for parts of it without sleeping: to wake one takes as long as a
/// product of one row.
pub(crate) fn awake<R>(work: impl FnOnce() -> R) -> R {
    if threads() < 2 || IS_BUSY.get() {
        return work();
    }
    let is_done = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        let is_done = &is_done;
        scope.spawn_broadcast(move |_, _| wait(is_done));
        // Also if `work` panics.
        let _end = End(is_done);
        IS_BUSY.set(true);
        work()
    })
}

/// Takes parts of the pool's work until `is_done`. A thread with work of its own does not wait: two that wait for each
/// other would never end.
fn wait(is_done: &AtomicBool) {
    while !IS_BUSY.get() && !is_done.load(Ordering::Acquire) {
        if rayon::yield_now() != Some(Yield::Executed) {
            std::hint::spin_loop();
        }
    }
}

/// Ends the work of [`awake`] when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        IS_BUSY.set(false);
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    fn sum() -> usize {
        awake(|| (0..100).map(|round| (0..64).into_par_iter().map(|it| it * round).sum::<usize>()).sum())
    }

    #[test]
    fn work_is_done_in_a_pool_and_outside_of_one() {
        let expected = 99 * 50 * 63 * 32;
        assert_eq!(sum(), expected);
        assert_eq!(on_cores("test", sum), expected);
        // Each thread of a pool keeps the others awake.
        assert_eq!(on_cores("test", || rayon::join(sum, sum)), (expected, expected));
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let fails = || awake(|| panic!("no"));
        assert!(std::panic::catch_unwind(|| on_cores::<()>("test", fails)).is_err());
    }
}
