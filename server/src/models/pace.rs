//! The time of a clip in a space, and whether it is being measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The time that this machine takes for a stored clip in a space.
#[derive(Debug, Default)]
pub struct Pace(Arc<State>);

#[derive(Debug, Default)]
struct State {
    seconds_a_clip: OnceLock<f64>,
    is_being_measured: AtomicBool,
}

impl Pace {
    /// Seconds a clip, once they are measured.
    pub fn seconds_a_clip(&self) -> Option<f64> {
        self.0.seconds_a_clip.get().copied()
    }

    /// Whether a measurement has begun and not ended.
    pub fn is_being_measured(&self) -> bool {
        self.0.is_being_measured.load(Ordering::Acquire)
    }

    /// Begins a measurement, which lasts until its result is dropped. `None` if the time is known or is being measured.
    pub(crate) fn begin(&self) -> Option<Measuring> {
        let is_free = || !self.0.is_being_measured.swap(true, Ordering::AcqRel);
        (self.seconds_a_clip().is_none() && is_free()).then(|| Measuring(Arc::clone(&self.0)))
    }
}

/// A measurement of a [`Pace`].
#[derive(Debug)]
pub(crate) struct Measuring(Arc<State>);

impl Measuring {
    /// Ends with a result, in seconds a clip.
    pub(crate) fn end(self, seconds_a_clip: f64) {
        // A pace is measured once.
        let _ = self.0.seconds_a_clip.set(seconds_a_clip);
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.0.is_being_measured.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn a_pace_is_measured_once_and_again_after_a_failure() {
        let pace = Pace::default();
        let first = pace.begin();
        assert!(first.is_some() && pace.is_being_measured());
        assert!(pace.begin().is_none(), "one at a time");
        drop(first);
        assert!(!pace.is_being_measured() && pace.seconds_a_clip().is_none(), "it gave nothing");
        pace.begin().expect("another attempt").end(2.5);
        assert_eq!((pace.is_being_measured(), pace.seconds_a_clip()), (false, Some(2.5)));
        assert!(pace.begin().is_none(), "it is known");
    }
}
