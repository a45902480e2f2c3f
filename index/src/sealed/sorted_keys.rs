//! Looks many rising keys up in sorted ones.

use std::ops::RangeInclusive;

use crate::SpanKey;

/// Keys without duplicates, in rising order.
pub(super) struct SortedKeys<K> {
    pub(super) count: usize,
    /// The key at a position below `count`.
    pub(super) key: K,
}

/// A place among the keys.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    key: SpanKey,
}

impl<K: Fn(usize) -> SpanKey> SortedKeys<K> {
    /// The positions of rising keys; keys that are not among these are left out.
    ///
    /// A key's position is guessed from that of the key before it, as if all keys were evenly spread. Where they are dense,
    /// the guess is right. Where they are not, the search goes on from it in growing steps.
    pub(super) fn find_all(self, rising: impl Iterator<Item = SpanKey>) -> impl Iterator<Item = usize> {
        let last = self.count.checked_sub(1).map(|at| Place { at, key: (self.key)(at) });
        let mut before = last.map(|_| Place { at: 0, key: (self.key)(0) });
        let density = last
            .zip(before)
            .map_or(0.0, |(last, first)| last.at as f64 / (last.key - first.key).max(1) as f64);
        rising
            .map_while(move |key| {
                let (last, from) = (last?, before?);
                if key > last.key {
                    return None;
                }
                if key < from.key {
                    return Some(None);
                }
                let guess = from.at + ((key - from.key) as f64 * density) as usize;
                let place = self.first_from(key, from.at..=last.at, guess.min(last.at));
                before = Some(place);
                Some((place.key == key).then_some(place.at))
            })
            .flatten()
    }

    /// The first place in `within` whose key is at least `key`, which the last one's is.
    fn first_from(&self, key: SpanKey, within: RangeInclusive<usize>, guess: usize) -> Place {
        let key_at = &self.key;
        let (mut low, mut high, mut step) = (guess, guess, 1);
        match key_at(guess) {
            same if same == key => return Place { at: guess, key },
            smaller if smaller < key => {
                while high < *within.end() && key_at(high) < key {
                    (low, high) = (high, (high + step).min(*within.end()));
                    step *= 2;
                }
            }
            _ => {
                while low > *within.start() && key_at(low) >= key {
                    (low, high) = (low.saturating_sub(step).max(*within.start()), low);
                    step *= 2;
                }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if key_at(middle) < key { low = middle + 1 } else { high = middle }
        }
        Place { at: low, key: key_at(low) }
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
        let searched = SortedKeys { count: sorted.len(), key: |at: usize| sorted[at] };
        let found: Vec<SpanKey> = searched.find_all(wanted.iter().copied()).map(|at| sorted[at]).collect();
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
