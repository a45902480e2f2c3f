//! Random draws in named streams. Integers precede floats, so the draws are the same on every machine.

use crate::train::learn::Random;

/// Purpose of a stream. Purposes never share a stream, so another draw for the look of a clip changes no label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Selection of clips and pairs.
    Plan = 1,
    /// How an element is performed; independent of the label.
    Performance = 2,
    /// Colours, camera, athlete; independent of the label.
    Look = 3,
    /// Words of modifications.
    Modification = 4,
    /// Words of descriptions.
    Description = 5,
    /// The order of shots in a broadcast.
    Broadcast = 6,
    /// Initial weights and batches of the probes.
    Probe = 7,
    /// Names and numbers of a score board.
    Board = 8,
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Draw(Random);

impl Draw {
    /// The stream of a seed, a split, a purpose and an index.
    pub fn new(seed: u64, split: u64, purpose: Purpose, index: u64) -> Draw {
        let mut key = [0u8; 32];
        for (part, value) in key.chunks_exact_mut(8).zip([seed, split, purpose as u64, index]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        Draw(Random::of_key(key))
    }

    /// An integer in `0..n`; 0 for `n` = 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        self.0.unit_f64()
    }

    /// A number in `[low, high)`.
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// One of `items`; `None` for an empty slice.
    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        self.0.choice(items)
    }

    /// One of a fixed, non-empty set of choices.
    pub fn pick<T: Copy, const N: usize>(&mut self, items: &[T; N]) -> T {
        const { assert!(N > 0) };
        items[self.below(N)]
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(draw: &mut Draw, expected: &[usize]) {
        let got: Vec<_> = expected.iter().map(|_| draw.below(1000)).collect();
        assert_eq!(got, expected);
    }

    /// Equal seeds must render equal folders in every version.
    #[test]
    fn streams_are_those_of_every_version() {
        check(&mut Draw::new(7, 0, Purpose::Plan, 0), &[614, 751, 780, 713, 234, 972, 324, 365]);
        check(&mut Draw::new(2026, 1, Purpose::Look, 5), &[82, 917, 173, 546]);
        assert_eq!(Draw::new(2026, 1, Purpose::Look, 5).unit(), 0.082_843_671_733_172_53);
    }

    #[test]
    fn streams_differ_by_purpose_and_repeat_by_seed() {
        let first: Vec<_> = {
            let mut draw = Draw::new(7, 0, Purpose::Plan, 0);
            (0..8).map(|_| draw.below(1000)).collect()
        };
        check(&mut Draw::new(7, 0, Purpose::Plan, 0), &first);
        for other in [
            Draw::new(8, 0, Purpose::Plan, 0),
            Draw::new(7, 1, Purpose::Plan, 0),
            Draw::new(7, 0, Purpose::Look, 0),
            Draw::new(7, 0, Purpose::Plan, 1),
        ] {
            let mut other = other;
            let got: Vec<_> = (0..8).map(|_| other.below(1000)).collect();
            assert_ne!(got, first);
        }
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut draw = Draw::new(1, 2, Purpose::Look, 3);
        for _ in 0..1000 {
            assert!(draw.below(3) < 3);
            assert!((-2.0..5.0).contains(&draw.within(-2.0, 5.0)));
        }
        assert_eq!(draw.below(0), 0);
        assert_eq!(draw.one_of::<u8>(&[]), None);
    }
}
