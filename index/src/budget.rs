//! The memory that links and codes of segments may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::codes::Codes;

/// A limit of bytes, and how many are taken.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    taken: AtomicU64,
}

/// Bytes of a budget, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    budget: Arc<Budget>,
    bytes: u64,
}

/// What a new segment wants of a budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) bytes: u64,
    /// Bytes that the replaced segments give back.
    pub(crate) freed: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(None)
    }
}

impl Budget {
    /// A budget of `limit` bytes; `None`: without a limit.
    pub(crate) fn new(limit: Option<u64>) -> Budget {
        Budget { limit: limit.unwrap_or(u64::MAX), taken: AtomicU64::new(0) }
    }

    /// Bytes that are taken now.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes bytes, even beyond the limit: what can lie nowhere else.
    pub(crate) fn take(self: &Arc<Budget>, bytes: u64) -> Taken {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Taken { budget: Arc::clone(self), bytes }
    }

    /// Takes bytes if they fit.
    pub(crate) fn try_take(self: &Arc<Budget>, demand: Demand) -> Option<Taken> {
        let added =
            |taken: u64| Some(taken.saturating_add(demand.bytes)).filter(|_| self.fits_in(taken, demand));
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).ok()?;
        Some(Taken { budget: Arc::clone(self), bytes: demand.bytes })
    }

    /// The codes of a new segment: the wanted ones if they fit, or else the most exact ones that do. If none fit, the
    /// smallest: the segment's file holds them.
    pub(crate) fn choose(&self, wanted: Codes, demand: impl Fn(Codes) -> Demand) -> Codes {
        let from = Codes::ALL.iter().position(|&codes| codes == wanted).unwrap_or(0);
        let fitting = Codes::ALL[from..].iter().find(|&&codes| self.fits_in(self.taken(), demand(codes)));
        fitting.copied().unwrap_or(Codes::ALL[Codes::ALL.len() - 1])
    }

    fn fits_in(&self, taken: u64, demand: Demand) -> bool {
        taken.saturating_sub(demand.freed).saturating_add(demand.bytes) <= self.limit
    }
}

impl Taken {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which codes a segment gets that is `bytes` long in `int4`, and two, four and eight times as long in the others.
    #[track_caller]
    fn check(
        limit: Option<u64>,
        taken: u64,
        wanted: Codes,
        [bytes, freed]: [u64; 2],
        expected: (Codes, bool),
    ) {
        let budget = Arc::new(Budget::new(limit));
        let _before = budget.take(taken);
        let size = |codes| match codes {
            Codes::F32 => 8 * bytes,
            Codes::F16 => 4 * bytes,
            Codes::Int8 => 2 * bytes,
            Codes::Int4 => bytes,
        };
        let demand = |codes| Demand { bytes: size(codes), freed };
        let codes = budget.choose(wanted, demand);
        let got = budget.try_take(demand(codes));
        assert_eq!((codes, got.is_some()), expected);
        assert_eq!(budget.taken(), taken + got.as_ref().map_or(0, Taken::bytes));
        drop(got);
        assert_eq!(budget.taken(), taken);
    }

    #[test]
    fn codes_become_smaller_until_they_fit() {
        use Codes::{F16, F32, Int4, Int8};
        check(None, 1 << 60, F32, [10, 0], (F32, true));
        check(Some(100), 20, F32, [10, 0], (F32, true));
        check(Some(100), 21, F32, [10, 0], (F16, true));
        check(Some(100), 61, F32, [10, 0], (Int8, true));
        check(Some(100), 81, F32, [10, 0], (Int4, true));
        check(Some(100), 91, F32, [10, 0], (Int4, false));
        check(Some(100), 0, Int8, [10, 0], (Int8, true));
        check(Some(0), 0, Int4, [10, 0], (Int4, false));
        check(Some(u64::MAX - 1), u64::MAX - 1, Int4, [10, 0], (Int4, false));
    }

    #[test]
    fn what_a_merge_replaces_makes_room() {
        check(Some(100), 100, Codes::Int4, [90, 90], (Codes::Int4, true));
        check(Some(100), 100, Codes::Int4, [91, 90], (Codes::Int4, false));
        check(Some(100), 10, Codes::Int4, [90, 90], (Codes::Int4, true));
    }
}
