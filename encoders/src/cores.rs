//! The threads that share the work of one model on the CPU.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder, Yield};

use crate::kernels::alone;
use crate::threads;

/// How long [`awake`] lets its work wait for threads that sleep.
const TIME_TO_WAKE: Duration = Duration::from_micros(200);

/// How often a thread looks for work in vain before it offers its core to other threads.
const LOOKS: usize = 64;

/// Runs `work` on one thread of a new pool, whose [`threads`] threads are named after `name`. Layers that run outside of
/// a pool pass each product to other threads and sleep until it is done, which takes longer than a small product. Runs
/// `work` where it is called if there is one thread only, or the system gives none.
pub fn on_cores<R: Send>(name: &str, work: impl FnOnce() -> R + Send) -> R {
    let pool = || {
        let name = name.to_owned();
        let named = move |number| format!("{name}/{number}");
        let is_awake = Arc::new(AtomicBool::new(false));
        let joins = move |_| IS_AWAKE.with(|of_pool| _ = of_pool.set(is_awake.clone()));
        ThreadPoolBuilder::new().num_threads(threads()).thread_name(named).start_handler(joins).build()
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

/// One thread that shares its work with no other.
#[derive(Debug)]
pub struct OneCore(ThreadPool);

impl OneCore {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn new() -> Result<OneCore, ThreadPoolBuildError> {
        ThreadPoolBuilder::new().num_threads(1).build().map(OneCore)
    }

    /// Runs `work` on it.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(|| alone(work))
    }
}

thread_local! {
    /// Whether a thread of this thread's pool runs the work of [`awake`]. Empty outside the pools of [`on_cores`].
    static IS_AWAKE: OnceCell<Arc<AtomicBool>> = const { OnceCell::new() };
}

/// Runs `work`, while the other threads of its pool wait for parts of it without sleeping: to wake one takes as long as a
/// product of one row. Outside the pools of [`on_cores`], and while the pool is awake already, it just runs `work`.
pub(crate) fn awake<R>(work: impl FnOnce() -> R) -> R {
    let Some(_turn) = Turn::take() else { return work() };
    let waits = Waits::default();
    rayon::in_place_scope(|scope| {
        let waits = &waits;
        scope.spawn_broadcast(move |_, _| waits.wait());
        // Also if `work` panics.
        let _end = End(waits);
        waits.begin(rayon::current_num_threads() - 1);
        work()
    })
}

/// The right to keep the other threads of a pool awake. Two works with it could wait for each other: each could have a
/// part below the wait for the other on some thread's stack.
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take() -> Option<Turn> {
        let is_awake = IS_AWAKE.with(|of_pool| of_pool.get().cloned())?;
        // Made only if the turn is free: dropping one gives the turn back.
        (!is_awake.swap(true, Ordering::AcqRel)).then(|| Turn(is_awake))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Threads that wait for parts of a work.
#[derive(Default)]
struct Waits {
    /// Their number, and [`HAS_BEGUN`].
    state: AtomicUsize,
    is_done: AtomicBool,
}

/// Bit of [`Waits::state`]: the work has begun.
const HAS_BEGUN: usize = 1 << (usize::BITS - 1);

impl Waits {
    /// Lets the work begin when `others` threads wait, or when they took too long to wake.
    fn begin(&self, others: usize) {
        let start = Instant::now();
        while self.state.load(Ordering::Acquire) < others && start.elapsed() < TIME_TO_WAKE {
            std::hint::spin_loop();
        }
        self.state.fetch_or(HAS_BEGUN, Ordering::AcqRel);
    }

    /// Takes parts of the pool's work until all is done. Returns at once if the work has begun: this thread may be in the
    /// middle of a part of it, which must end first.
    fn wait(&self) {
        if self.state.fetch_add(1, Ordering::AcqRel) & HAS_BEGUN != 0 {
            return;
        }
        let mut looks = 0;
        while !self.is_done.load(Ordering::Acquire) {
            looks += 1;
            if rayon::yield_now() == Some(Yield::Executed) {
                looks = 0;
            } else if looks % LOOKS == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Ends the waits when it is dropped.
struct End<'a>(&'a Waits);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_done.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;
    use crate::kernels::sharing;

    fn sum() -> usize {
        awake(|| (0..100).map(|round| (0..64).into_par_iter().map(|it| it * round).sum::<usize>()).sum())
    }

    #[test]
    fn work_is_done_in_a_pool_and_outside_of_one() {
        let expected = 99 * 50 * 63 * 32;
        assert_eq!(sum(), expected);
        assert_eq!(on_cores("test", sum), expected);
        assert_eq!(on_cores("test", || awake(sum)), expected);
        assert_eq!(on_cores("test", || rayon::join(sum, sum)), (expected, expected));
    }

    #[test]
    fn work_on_one_core_shares_nothing() {
        let one = OneCore::new().unwrap();
        assert_eq!(on_cores("test", || one.run(|| (sharing(), rayon::current_num_threads()))), (1, 1));
    }

    #[test]
    fn a_pool_is_awake_for_one_work_until_that_ends() {
        let is_free = || Turn::take().is_some();
        on_cores("test", || {
            assert!(is_free() || threads() < 2);
            awake(|| {
                awake(|| assert!(!is_free()));
                assert!(!is_free(), "the work inside has given the turn back");
            });
            assert!(is_free() || threads() < 2);
        });
        assert!(!is_free(), "outside of a pool there is no turn");
    }

    #[test]
    fn works_of_many_threads_never_wait_for_each_other() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| _ = sum()));
                scope.spawn(|| on_cores("test", || (0..100).for_each(|_| _ = rayon::join(sum, sum))));
            }
        });
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let fails = || awake(|| panic!("no"));
        assert!(std::panic::catch_unwind(|| on_cores::<()>("test", fails)).is_err());
    }
}
