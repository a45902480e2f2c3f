//! Self-attention of each sequence, head by head, read from the packed projection.
//!
//! A tile of a few queries is multiplied with all keys. Their scores become softmax weights in the nearest cache, and
//! the weights multiply the values. The full score matrix is never stored. Positions that the mask hides from all
//! queries of a tile are skipped.

use std::cell::RefCell;

use rayon::prelude::*;

use super::Processor;
use super::elementwise::softmax;
use super::float::{Ahead, Factors, TILE, even};
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Panels, Target};

/// Attention mask: the positions a token may attend to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AttentionMask<'a> {
    /// All positions of the sequence.
    All,
    /// Causal: itself and earlier positions.
    Earlier,
    /// Padding: the first positions of each sequence, by its length; at least one.
    Within(&'a [usize]),
}

impl<'a> AttentionMask<'a> {
    /// The mask of the sequences from `first` to `last` (exclusive).
    ///
    /// # Panics
    /// If there are fewer sequences.
    pub(crate) fn part(self, first: usize, last: usize) -> AttentionMask<'a> {
        match self {
            AttentionMask::All | AttentionMask::Earlier => self,
            AttentionMask::Within(lengths) => AttentionMask::Within(&lengths[first..last]),
        }
    }

    /// The number of positions that a token attends to. They are always the first ones.
    fn of(self, sequence: usize, token: usize, tokens: usize) -> usize {
        match self {
            AttentionMask::All => tokens,
            AttentionMask::Earlier => token + 1,
            AttentionMask::Within(lengths) => lengths[sequence].clamp(1, tokens),
        }
    }
}

/// Rotary position embedding (RoPE, arXiv 2104.09864): cosine and sine per token for each pair of values.
#[derive(Debug, Clone)]
pub(crate) struct RotaryAngles {
    /// (tokens, half of a head's values): the tokens of one sequence, for all sequences, or those of each one.
    cos: Vec<f32>,
    sin: Vec<f32>,
    pairs: RotaryPairs,
}

/// Which values of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RotaryPairs {
    /// Values 0 and 1, 2 and 3, and so on.
    Neighbours,
    /// A value of the first half and the one at its place in the second half.
    Halves,
}

/// The layout of the packed projection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads<'a> {
    /// Number of sequences.
    pub(super) batch: usize,
    /// Tokens of each sequence.
    pub(super) tokens: usize,
    /// Heads of the queries.
    pub(super) heads: usize,
    /// Heads of the keys and of the values, a divisor of `heads`: neighbouring heads of queries share one.
    pub(super) kv_heads: usize,
    /// Values of a head.
    pub(super) size: usize,
    pub(super) mask: AttentionMask<'a>,
    pub(super) angles: Option<&'a RotaryAngles>,
    /// Multiplies the queries.
    pub(super) scale: f32,
}

impl Heads<'_> {
    /// Values of all queries of a token.
    fn width(&self) -> usize {
        self.heads * self.size
    }

    /// Values of a token: queries, keys, values.
    pub(super) fn across(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.size
    }
}

/// Buffers for one head of one sequence; reused for the next.
struct Scratch {
    keys: Panels,
    values: Panels,
    /// The queries of a tile; also a key while it is rotated.
    queries: Aligned<f32>,
    /// Scores of these queries with all keys.
    scores: Aligned<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        keys: Panels::empty(),
        values: Panels::empty(),
        queries: Aligned::zeros(0),
        scores: Aligned::zeros(0),
    });
}

/// Writes all of `target`, (batch * tokens, heads * size). `packed` is (batch * tokens, (heads + 2 * kv_heads) * size):
/// queries, keys, values.
///
/// # Panics
/// If the shapes do not fit.
pub(super) fn attend(processor: Processor, packed: &[f32], target: Target, heads: Heads<'_>, threads: usize) {
    let (width, sequence_values) = (heads.width(), heads.tokens * heads.across());
    assert_eq!(packed.len(), heads.batch * sequence_values);
    assert_eq!((target.rows, target.columns), (heads.batch * heads.tokens, width));
    assert!(heads.kv_heads > 0 && heads.heads.is_multiple_of(heads.kv_heads));
    assert!(!matches!(heads.mask, AttentionMask::Within(lengths) if lengths.len() != heads.batch));
    assert!(heads.angles.is_none_or(|angles| angles.fit(&heads)));
    let one = |at: usize| {
        let (sequence, head) = (at / heads.heads, at % heads.heads);
        let packed = &packed[sequence * sequence_values..][..sequence_values];
        let target =
            target.rows(sequence * heads.tokens, heads.tokens).columns(head * heads.size, heads.size);
        SCRATCH.with_borrow_mut(|scratch| {
            processor.run(Head { packed, target, heads, sequence, head, scratch });
        });
    };
    let count = heads.batch * heads.heads;
    match threads {
        0 | 1 => (0..count).for_each(one),
        _ => (0..count).into_par_iter().for_each(one),
    }
}

/// One head of one sequence.
struct Head<'a> {
    /// The sequence's tokens.
    packed: &'a [f32],
    target: Target,
    heads: Heads<'a>,
    sequence: usize,
    /// Of the queries.
    head: usize,
    scratch: &'a mut Scratch,
}

impl Work for Head<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(mut self) {
        let tokens = self.heads.tokens;
        self.pack();
        for (first, last) in even(tokens, tokens.div_ceil(L::TILE)) {
            // SAFETY: as the caller promises.
            unsafe { self.tile::<L>(first, last) };
        }
    }
}

impl Head<'_> {
    /// Packs keys and values into panels.
    #[inline(always)]
    fn pack(&mut self) {
        let Heads { tokens, size, heads, kv_heads, .. } = self.heads;
        let Scratch { keys, values, queries, .. } = &mut *self.scratch;
        let (stride, shared) = (self.heads.across(), self.head / (heads / kv_heads));
        let (first_key, first_value) = ((heads + shared) * size, (heads + kv_heads + shared) * size);
        let position = self.sequence * tokens;
        keys.reshape(size, tokens);
        values.reshape(tokens, size);
        queries.reserve(TILE * size);
        for first in (0..tokens).step_by(PANEL) {
            let rows = |row: usize| &self.packed[(first + row) * stride + first_key..][..size];
            let count = PANEL.min(tokens - first);
            match self.heads.angles {
                None => (0..count).for_each(|at| keys.set_column(first + at, rows(at))),
                Some(angles) => {
                    let key = &mut queries.values_mut()[..size];
                    for at in 0..count {
                        angles.turn(position + first + at, rows(at), key);
                        keys.set_column(first + at, key);
                    }
                }
            }
        }
        for token in 0..tokens {
            let value = &self.packed[token * stride + first_value..][..size];
            for (panel, part) in value.chunks(PANEL).enumerate() {
                let row = values.row_mut(panel, token);
                row[..part.len()].copy_from_slice(part);
                row[part.len()..].fill(0.0);
            }
        }
    }

    /// Computes the attention output of the tokens from `first` to `last`.
    #[inline(always)]
    unsafe fn tile<L: Lanes>(&mut self, first: usize, last: usize) {
        let Heads { tokens, size, mask, angles, scale: query_scale, .. } = self.heads;
        let (stride, count) = (self.heads.across(), last - first);
        let Scratch { keys, values, queries, scores } = &mut *self.scratch;
        let queries = queries.values_mut();
        for (token, query) in (first..last).zip(queries.chunks_exact_mut(size)) {
            let row = &self.packed[token * stride + self.head * size..][..size];
            match angles {
                None => query.copy_from_slice(row),
                Some(angles) => angles.turn(self.sequence * tokens + token, row, query),
            }
            query.iter_mut().for_each(|value| *value *= query_scale);
        }
        // The last token attends to the most positions.
        let most = mask.of(self.sequence, last - 1, tokens);
        // Padded, so that the rows do not fall into the same sets of the L1 cache.
        let across = tokens.next_multiple_of(PANEL) + 16;
        scores.reserve(TILE * across);
        let scores = scores.values_mut();
        // SAFETY: as the caller promises. There are `TILE` rows of queries and of scores, keys and values are packed,
        // and the target has a row of `size` columns for each token.
        unsafe {
            for panel in 0..most.div_ceil(PANEL) {
                Factors {
                    rows: queries.as_ptr(),
                    stride: size,
                    panel: keys.rows(panel, 0, size),
                    into: scores[panel * PANEL..].as_mut_ptr(),
                    across,
                    ahead: Ahead::nothing(),
                }
                .multiply::<L>(count);
            }
            let mut factors = [0.0; TILE];
            let mut sums = [[0.0; PANEL]; TILE];
            for (row, factor) in factors.iter_mut().enumerate().take(count) {
                let seen = mask.of(self.sequence, first + row, tokens);
                *factor = softmax::<L>(scores[row * across..][..most].as_mut_ptr(), seen, most);
            }
            for panel in 0..values.count() {
                Factors {
                    rows: scores.as_ptr(),
                    stride: across,
                    panel: values.rows(panel, 0, most),
                    into: sums.as_mut_ptr().cast(),
                    across: PANEL,
                    ahead: Ahead::nothing(),
                }
                .multiply::<L>(count);
                let columns = PANEL.min(size - panel * PANEL);
                for (row, (sums, factor)) in sums.iter().zip(factors).enumerate().take(count) {
                    let to = self.target.at(first + row, panel * PANEL);
                    scale::<L>(&sums[..columns], factor, to);
                }
            }
        }
    }
}

/// Writes `values * factor`.
///
/// # Safety
/// The processor has the instructions of `L`, and `into` has room for all values.
#[inline(always)]
unsafe fn scale<L: Lanes>(values: &[f32], factor: f32, to: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        let factor = L::splat(factor);
        for (at, part) in values.chunks(L::COUNT).enumerate() {
            let to = to.add(at * L::COUNT);
            match part.len() == L::COUNT {
                true => L::load(part.as_ptr()).times(factor).store(to),
                false => {
                    L::load_first(part.len(), part.as_ptr(), factor).times(factor).store_first(part.len(), to)
                }
            }
        }
    }
}

impl RotaryAngles {
    /// From `angles` of shape (tokens, half of a head's values).
    pub(crate) fn new(angles: &[f32], pairs: RotaryPairs) -> Self {
        RotaryAngles {
            cos: angles.iter().map(|angle| angle.cos()).collect(),
            sin: angles.iter().map(|angle| angle.sin()).collect(),
            pairs,
        }
    }

    /// The angles of `count` tokens of heads of `size` values, from token `first` on.
    ///
    /// # Panics
    /// If there are fewer tokens.
    pub(crate) fn part(&self, first: usize, count: usize, size: usize) -> Self {
        let half = size / 2;
        let part = |all: &[f32]| all[first * half..][..count * half].to_vec();
        RotaryAngles { cos: part(&self.cos), sin: part(&self.sin), pairs: self.pairs }
    }

    /// Whether these are the angles of each token, or of each token of any sequence.
    pub(super) fn fit(&self, heads: &Heads<'_>) -> bool {
        let sequence = heads.tokens * (heads.size / 2);
        heads.size.is_multiple_of(2) && [sequence, sequence * heads.batch].contains(&self.cos.len())
    }

    /// Whether there are angles for exactly `tokens` tokens with heads of `size` values.
    pub(super) fn fit_tokens(&self, tokens: usize, size: usize) -> bool {
        size.is_multiple_of(2) && self.cos.len() == tokens * (size / 2)
    }

    /// Rotates the values of one head of a token; tokens count over all sequences.
    #[inline(always)]
    pub(super) fn turn(&self, token: usize, values: &[f32], into: &mut [f32]) {
        let half = values.len() / 2;
        let start = token * half % self.cos.len();
        let (cos, sin) = (&self.cos[start..][..half], &self.sin[start..][..half]);
        match self.pairs {
            RotaryPairs::Neighbours => {
                let pairs = values.chunks_exact(2).zip(into.chunks_exact_mut(2));
                for ((pair, into), (cos, sin)) in pairs.zip(cos.iter().zip(sin)) {
                    into[0] = pair[0] * cos - pair[1] * sin;
                    into[1] = pair[0] * sin + pair[1] * cos;
                }
            }
            RotaryPairs::Halves => {
                let (first, second) = values.split_at(half);
                let (into_first, into_second) = into.split_at_mut(half);
                for at in 0..half {
                    into_first[at] = first[at] * cos[at] - second[at] * sin[at];
                    into_second[at] = first[at] * sin[at] + second[at] * cos[at];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrix::filled;
    use super::*;

    /// Compares with sums in f64.
    #[track_caller]
    fn check(batch: usize, tokens: usize, heads: usize, size: usize, mask: AttentionMask<'_>) {
        let width = heads * size;
        let packed: Vec<f32> =
            (0..batch * tokens * 3 * width).map(|at| ((at * 7919 % 1013) as f32 / 500.0) - 1.0).collect();
        let at = |row: usize, part: usize, head: usize, value: usize| {
            f64::from(packed[row * 3 * width + part * width + head * size + value])
        };
        let Some(best) = Processor::detect() else { return };
        for (processor, threads) in [(best, 1), (best, 2), (Processor::Avx2, 1)] {
            let heads = Heads { batch, tokens, heads, kv_heads: heads, size, mask, angles: None, scale: 1.0 };
            let got = filled(batch * tokens, width, |target| {
                attend(processor, &packed, target, heads, threads);
            });
            for (place, got) in got.iter().enumerate() {
                let (row, column) = (place / width, place % width);
                let (sequence, token, head) = (row / tokens, row % tokens, column / size);
                let seen = match mask {
                    AttentionMask::All => tokens,
                    AttentionMask::Earlier => token + 1,
                    AttentionMask::Within(lengths) => lengths[sequence],
                };
                let score = |other: usize| -> f64 {
                    (0..size)
                        .map(|it| at(row, 0, head, it) * at(sequence * tokens + other, 1, head, it))
                        .sum()
                };
                let scores: Vec<f64> = (0..seen).map(score).collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let shares: Vec<f64> = scores.iter().map(|it| (it - most).exp()).collect();
                let value = |other: usize| at(sequence * tokens + other, 2, head, column % size);
                let sum: f64 = (0..seen).map(|other| shares[other] * value(other)).sum();
                let expected = sum / shares.iter().sum::<f64>();
                assert!((f64::from(*got) - expected).abs() < 1e-5, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn heads_attend_to_their_own_sequence() {
        check(2, 50, 3, 8, AttentionMask::All);
        check(1, 1, 1, 64, AttentionMask::All);
        check(2, 33, 2, 40, AttentionMask::All);
    }

    #[test]
    fn no_token_sees_a_later_one_where_that_is_asked_for() {
        check(2, 20, 2, 8, AttentionMask::Earlier);
        check(1, 77, 1, 16, AttentionMask::Earlier);
        check(1, 150, 2, 64, AttentionMask::Earlier);
    }

    #[test]
    fn nothing_sees_what_stands_after_a_sequence() {
        check(3, 20, 2, 8, AttentionMask::Within(&[20, 1, 13]));
    }

    /// Rotated queries and keys, shared keys and values, and a scale give what those give that were rotated, repeated
    /// and scaled before.
    #[track_caller]
    fn check_turned(pairs: RotaryPairs, batch: usize, angles_of: usize, kv_heads: usize) {
        let (tokens, heads, size) = (21, 4, 6);
        let (group, scale) = (heads / kv_heads, 0.4);
        let across = (heads + 2 * kv_heads) * size;
        let packed: Vec<f32> =
            (0..batch * tokens * across).map(|at| (at * 7919 % 1013) as f32 / 500.0 - 1.0).collect();
        let angles: Vec<f32> = (0..angles_of * size / 2).map(|at| (at * 31 % 17) as f32 * 0.3).collect();
        let turned = |row: usize, head: usize, is_rotated: bool| -> Vec<f32> {
            let values = &packed[row * across + head * size..][..size];
            if !is_rotated {
                return values.to_vec();
            }
            let mut turned = vec![0.0; size];
            for pair in 0..size / 2 {
                let (sin, cos) = angles[row % angles_of * size / 2 + pair].sin_cos();
                let (one, other) = match pairs {
                    RotaryPairs::Neighbours => (2 * pair, 2 * pair + 1),
                    RotaryPairs::Halves => (pair, pair + size / 2),
                };
                turned[one] = values[one] * cos - values[other] * sin;
                turned[other] = values[one] * sin + values[other] * cos;
            }
            turned
        };
        let mut plain = Vec::new();
        for row in 0..batch * tokens {
            let queries = (0..heads).flat_map(|head| turned(row, head, true)).map(|value| value * scale);
            plain.extend(queries);
            plain.extend((0..heads).flat_map(|head| turned(row, heads + head / group, true)));
            plain.extend((0..heads).flat_map(|head| turned(row, heads + kv_heads + head / group, false)));
        }
        let mask = AttentionMask::All;
        let simple = Heads { batch, tokens, heads, kv_heads: heads, size, mask, angles: None, scale: 1.0 };
        let angles = RotaryAngles::new(&angles, pairs);
        let all = Heads { kv_heads, angles: Some(&angles), scale, ..simple };
        let attended = |processor, packed: &[f32], heads| {
            filled(batch * tokens, simple.width(), |target| attend(processor, packed, target, heads, 1))
        };
        let Some(best) = Processor::detect() else { return };
        for processor in [best, Processor::Avx2] {
            let expected = attended(processor, &plain, simple);
            let got = attended(processor, &packed, all);
            assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}, {expected:?}");
        }
    }

    #[test]
    fn heads_are_turned_shared_and_scaled() {
        check_turned(RotaryPairs::Neighbours, 1, 21, 4);
        check_turned(RotaryPairs::Neighbours, 2, 21, 4);
        check_turned(RotaryPairs::Halves, 1, 21, 4);
        check_turned(RotaryPairs::Halves, 2, 42, 2);
        check_turned(RotaryPairs::Halves, 3, 21, 1);
    }

    #[test]
    fn angles_of_other_tokens_do_not_fit() {
        let heads = Heads {
            batch: 2,
            tokens: 5,
            heads: 1,
            kv_heads: 1,
            size: 6,
            mask: AttentionMask::All,
            angles: None,
            scale: 1.0,
        };
        let fits = |tokens: usize| RotaryAngles::new(&vec![0.0; tokens * 3], RotaryPairs::Halves).fit(&heads);
        assert_eq!([5, 10, 4, 15].map(fits), [true, true, false, false]);
    }
}
