//! Waiting times before the next attempt of a failed job.

use std::time::Duration;

use crate::config::RetryWaits;

/// Largest random extension of a wait, as a share. It spreads jobs that failed together.
const JITTER: f64 = 0.2;

/// The wait after a failed `attempt`, counted from 1. `random`: 0 to 1.
pub(super) fn wait_after(waits: &RetryWaits, attempt: i64, random: f64) -> Duration {
    waits.after(attempt).mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attempt: i64, random: f64, expected_seconds: u64) {
        let wait = wait_after(&RetryWaits::default(), attempt, random);
        assert_eq!(wait, Duration::from_secs(expected_seconds), "attempt {attempt}, {random}");
    }

    #[test]
    fn jitter_makes_a_wait_longer_by_a_fifth_at_most() {
        check(2, 0.0, 30);
        check(2, 0.5, 33);
        check(2, 1.0, 36);
        check(2, 7.0, 36);
        check(2, -1.0, 30);
    }
}
