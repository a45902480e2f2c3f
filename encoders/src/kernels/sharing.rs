//! How many threads share an operation.

use std::cell::Cell;

use candle_core::utils::get_num_threads;

/// The fewest multiplications that threads share: passing a part to another thread takes longer than a smaller operation.
pub(super) const FEWEST_SHARED: usize = 1 << 22;

thread_local! {
    /// Whether this thread runs the work of [`alone`].
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Threads that share the operations of this thread.
pub(crate) fn sharing() -> usize {
    if IS_ALONE.get() { 1 } else { get_num_threads().max(1) }
}

/// Threads for an operation of this many multiplications.
pub(super) fn threads_for(multiplications: usize) -> usize {
    if multiplications < FEWEST_SHARED { 1 } else { sharing() }
}

/// Runs `work` without sharing its operations: the other threads have work of their own.
pub(crate) fn alone<R>(work: impl FnOnce() -> R) -> R {
    let _until_then = Alone { was: IS_ALONE.replace(true) };
    work()
}

/// Restores what was before, also if the work panics.
struct Alone {
    was: bool,
}

impl Drop for Alone {
    fn drop(&mut self) {
        IS_ALONE.set(self.was);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_alone_shares_nothing_until_it_ends() {
        let all = sharing();
        alone(|| {
            alone(|| assert_eq!(sharing(), 1));
            assert_eq!((sharing(), threads_for(usize::MAX)), (1, 1));
        });
        assert_eq!((sharing(), threads_for(usize::MAX), threads_for(FEWEST_SHARED - 1)), (all, all, 1));
        let fails = std::panic::catch_unwind(|| alone(|| panic!("no")));
        assert!(fails.is_err() && sharing() == all);
    }
}
