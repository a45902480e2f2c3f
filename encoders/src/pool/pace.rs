//! The speed of bulk batches, which bounds the size of the next one.

use std::time::Duration;

use crate::batch::Limits;

/// Recent seconds per unit of cost.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<f64>);

impl Pace {
    /// Records a batch of this cost, padding included. The latest batch weighs as much as all before it, because the
    /// kind of input may change.
    pub(super) fn learn(&mut self, cost: usize, took: Duration) {
        let now = took.as_secs_f64() / cost.max(1) as f64;
        self.0 = Some(self.0.map_or(now, |before| (before + now) / 2.0));
    }

    /// `limits` with a cost that takes at most `at_most`. Before the first measurement the cost is 0, so one input is
    /// tried alone: a guess could be wrong by half a minute.
    pub(super) fn limits(&self, limits: Limits, at_most: Duration) -> Limits {
        // The cast saturates, and NaN becomes 0.
        let cost = self.0.map_or(0, |seconds| (at_most.as_secs_f64() / seconds) as usize);
        Limits { cost: limits.cost.min(cost), ..limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { inputs: 32, cost: 8192 };

    #[track_caller]
    fn check(batches: &[(usize, u64)], at_most_ms: u64, expected: usize) {
        let mut pace = Pace::default();
        batches.iter().for_each(|(cost, ms)| pace.learn(*cost, Duration::from_millis(*ms)));
        let limits = pace.limits(LIMITS, Duration::from_millis(at_most_ms));
        assert_eq!((limits.inputs, limits.cost), (LIMITS.inputs, expected), "{batches:?}");
    }

    #[test]
    fn a_batch_may_cost_what_can_be_done_in_time() {
        check(&[], 500, 0);
        check(&[(8000, 4000)], 500, 1000);
        check(&[(8000, 4)], 500, 8192);
        check(&[(8000, 4000)], 0, 0);
        check(&[(0, 4000)], 500, 0);
        check(&[(8000, 0)], 500, 8192);
    }

    #[test]
    fn a_change_of_pace_is_learnt() {
        check(&[(8000, 4000), (1000, 1000)], 750, 1000);
        let settled: Vec<_> = std::iter::once((8000, 4000)).chain([(1000, 1000); 20]).collect();
        check(&settled, 1000, 1000);
    }
}
