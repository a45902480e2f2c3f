//! Looks many rising keys up in sorted ones.

use crate::SpanKey;

/// Finds rising keys, one after the other.
///
/// A key's position is guessed from that of a key before it, as if all keys were evenly spread. Where they are dense, the
/// guess is right. Where they are not, the search goes on from it in growing steps, and the next guess begins where it ends.
pub(super) struct Finder<'a> {
    sorted: &'a [SpanKey],
    /// Positions a key, as a fraction of 2^32.
    density: u64,
    /// The place from which positions are guessed; all keys before it were passed. `None` behind the last key.
    place: Option<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    at: usize,
    key: SpanKey,
}

impl Finder<'_> {
    /// `sorted` has no duplicates, and fewer than 2^32 keys.
    pub(super) fn new(sorted: &[SpanKey]) -> Finder<'_> {
        let span = sorted.first().zip(sorted.last()).map_or(1, |(first, last)| (last - first).max(1));
        let last = sorted.len().saturating_sub(1) as u128;
        let place = sorted.first().map(|&key| Place { at: 0, key });
        Finder { sorted, density: ((last << 32) / u128::from(span)) as u64, place }
    }

    /// The position of a key that is not below the one before; `None` if it is not there.
    #[inline]
    pub(super) fn find(&mut self, key: SpanKey) -> Option<usize> {
        let from = self.place.filter(|from| key >= from.key)?;
        let ahead = (u128::from(key - from.key) * u128::from(self.density)) >> 32;
        let guess =
            from.at + usize::try_from(ahead).unwrap_or(usize::MAX).min(self.sorted.len() - 1 - from.at);
        if self.sorted[guess] == key {
            // The place stays, so that the next guess need not wait for this one.
            return Some(guess);
        }
        let at = self.first_from(key, from.at, guess);
        self.place = self.sorted.get(at).map(|&key| Place { at, key });
        self.place.filter(|place| place.key == key).map(|place| place.at)
    }

    /// The first position from `from` on whose key is at least `key`, near `guess`; the number of keys if there is none.
    fn first_from(&self, key: SpanKey, from: usize, guess: usize) -> usize {
        let (sorted, mut step) = (self.sorted, 1);
        let (mut low, mut high) = (guess, guess);
        if sorted[guess] < key {
            while high < sorted.len() && sorted[high] < key {
                (low, high) = (high, high.saturating_add(step).min(sorted.len()));
                step *= 2;
            }
        } else {
            while low > from && sorted[low] >= key {
                (low, high) = (low.saturating_sub(step).max(from), low);
                step *= 2;
            }
        }
        low + sorted[low..high].partition_point(|&at| at < key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(keys: &BTreeSet<SpanKey>, wanted: &BTreeSet<SpanKey>) {
        let sorted: Vec<SpanKey> = keys.iter().copied().collect();
        let mut finder = Finder::new(&sorted);
        let found =
            wanted.iter().filter_map(|&key| finder.find(key).map(|at| sorted[at])).collect::<Vec<_>>();
        assert_eq!(found, keys.intersection(wanted).copied().collect::<Vec<_>>());
    }

    #[test]
    fn keys_are_found_wherever_they_lie() {
        let set = |keys: &[SpanKey]| keys.iter().copied().collect::<BTreeSet<SpanKey>>();
        check(&set(&[]), &set(&[1, 2]));
        check(&set(&[7]), &set(&[6, 7, 8]));
        check(&(0..1000).collect(), &set(&[0, 1, 500, 999, 1000]));
        check(&(1..1000).chain([SpanKey::MAX]).collect(), &set(&[0, 3, 999, 1000, SpanKey::MAX]));
    }

    proptest! {
        #[test]
        fn all_kept_keys_and_no_others_are_found(
            keys in prop::collection::btree_set(0..3000_u64, 0..300),
            far in prop::collection::btree_set(any::<u64>(), 0..20),
            wanted in prop::collection::btree_set(0..3000_u64, 0..300),
        ) {
            let keys: BTreeSet<SpanKey> = keys.union(&far).copied().collect();
            check(&keys, &wanted);
            check(&keys, &wanted.union(&far).copied().collect());
        }
    }
}
