//! Self-attention of each sequence, head by head, read from the packed projection.
//!
//! A tile of a few queries is multiplied with all keys. Their scores become softmax weights in the nearest cache, and
//! the weights multiply the values. The full score matrix is never stored. Positions that the mask hides from all
//! queries of a tile are skipped.
//!
//! Both products are in f32, or in bf16 with sums in f32. The softmax is always in f32.

mod gradient;
mod panels;
mod rotary;

use std::cell::RefCell;
use std::thread::LocalKey;

use rayon::prelude::*;

use super::amx::{self, ROWS, Registers};
use super::blocking::even;
use super::elementwise::softmax;
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Panels, Target};
use super::{Cores, Processor};
pub(super) use gradient::gradient_of_attention;
use panels::{HeadPanels, Pairs, TileRows};
pub(crate) use rotary::{RotaryAngles, RotaryPairs};

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
    /// Whether both products are of numbers rounded to bf16.
    pub(super) is_bf16: bool,
}

impl Heads<'_> {
    /// Values of all queries of a token.
    pub(super) fn width(&self) -> usize {
        self.heads * self.size
    }

    /// Values of a token: queries, keys, values.
    pub(super) fn across(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.size
    }
}

/// Buffers for one head of one sequence; reused for the next.
struct Scratch<P> {
    keys: P,
    values: P,
    /// The queries of a tile; also a key while it is rotated.
    queries: Aligned<f32>,
    /// Scores of these queries with all keys, then their softmax weights.
    scores: Aligned<f32>,
    /// These weights times the values.
    sums: Aligned<f32>,
}

impl<P: HeadPanels> Scratch<P> {
    fn empty() -> RefCell<Self> {
        let none = || Aligned::zeros(0);
        RefCell::new(Scratch {
            keys: P::empty(),
            values: P::empty(),
            queries: none(),
            scores: none(),
            sums: none(),
        })
    }
}

thread_local! {
    static FLOATS: RefCell<Scratch<Panels>> = Scratch::empty();
    static PAIRS: RefCell<Scratch<Pairs>> = Scratch::empty();
}

/// Writes all of `target`, (batch * tokens, heads * size). `packed` is (batch * tokens, (heads + 2 * kv_heads) * size):
/// queries, keys, values.
///
/// # Panics
/// If the shapes do not fit.
pub(super) fn attend(cores: Cores, packed: &[f32], target: Target, heads: Heads<'_>) {
    let Cores { processor, threads } = cores;
    let (width, sequence_values) = (heads.width(), heads.tokens * heads.across());
    assert_eq!(packed.len(), heads.batch * sequence_values);
    assert_eq!((target.rows, target.columns), (heads.batch * heads.tokens, width));
    assert!(heads.kv_heads > 0 && heads.heads.is_multiple_of(heads.kv_heads));
    assert!(!matches!(heads.mask, AttentionMask::Within(lengths) if lengths.len() != heads.batch));
    assert!(heads.angles.is_none_or(|angles| angles.fit(heads.batch, heads.tokens, heads.size)));
    let one = |at: usize| {
        let (sequence, head) = (at / heads.heads, at % heads.heads);
        let packed = &packed[sequence * sequence_values..][..sequence_values];
        let target =
            target.rows(sequence * heads.tokens, heads.tokens).columns(head * heads.size, heads.size);
        let head = Head { packed, target, heads, sequence, head };
        match heads.is_bf16 {
            false => head.run_with(processor, &FLOATS),
            true => head.run_with(processor, &PAIRS),
        }
    };
    let count = heads.batch * heads.heads;
    match threads {
        0 | 1 => (0..count).for_each(one),
        _ => (0..count).into_par_iter().for_each(one),
    }
}

/// One head of one sequence.
#[derive(Clone, Copy)]
struct Head<'a> {
    /// The sequence's tokens.
    packed: &'a [f32],
    target: Target,
    heads: Heads<'a>,
    sequence: usize,
    /// Of the queries.
    head: usize,
}

impl Head<'_> {
    fn run_with<P: HeadPanels>(self, processor: Processor, scratch: &'static LocalKey<RefCell<Scratch<P>>>) {
        scratch.with_borrow_mut(|scratch| {
            scratch.keys.reshape_for(processor, self.heads.size, self.heads.tokens);
            scratch.values.reshape_for(processor, self.heads.tokens, self.heads.size);
            let in_tiles = P::IN_TILES && processor.has_amx();
            processor.run(HeadWith { head: self, scratch, in_tiles });
        });
    }

    /// Copies the values of one head of a token, rotated if there are angles.
    #[inline(always)]
    fn copy_turned(&self, token: usize, from: usize, into: &mut [f32]) {
        let values = &self.packed[token * self.heads.across() + from..][..self.heads.size];
        match self.heads.angles {
            None => into.copy_from_slice(values),
            Some(angles) => angles.turn(self.sequence * self.heads.tokens + token, values, into),
        }
    }
}

/// A head and the buffers of its thread.
struct HeadWith<'a, P> {
    head: Head<'a>,
    scratch: &'a mut Scratch<P>,
    /// Whether its products run in tile registers.
    in_tiles: bool,
}

impl<P: HeadPanels> Work for HeadWith<'_, P> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(mut self) {
        let tokens = self.head.heads.tokens;
        // SAFETY: as the caller promises; tiles are used only where the processor has them.
        unsafe {
            self.pack::<L>();
            let registers = self.in_tiles.then(|| Registers::configure());
            let tiles = match registers {
                Some(_) => amx::tiles(tokens, amx::ROWS),
                None => even(tokens, tokens.div_ceil(L::TILE)),
            };
            for (first, last) in tiles {
                self.tile::<L>(first, last, registers.as_ref());
            }
        }
    }
}

impl<P: HeadPanels> HeadWith<'_, P> {
    /// Packs keys and values into panels.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn pack<L: Lanes>(&mut self) {
        let HeadWith { head, scratch: Scratch { keys, values, queries, .. }, .. } = self;
        let Heads { tokens, size, heads, kv_heads, .. } = head.heads;
        let (stride, shared) = (head.heads.across(), head.head / (heads / kv_heads));
        let (first_key, first_value) = ((heads + shared) * size, (heads + kv_heads + shared) * size);
        queries.reserve(ROWS * size);
        let turned = &mut queries.values_mut()[..size];
        for token in 0..tokens {
            let row = &head.packed[token * stride..][..stride];
            // SAFETY: as the caller promises.
            unsafe {
                match head.heads.angles {
                    None => keys.set_column::<L>(token, &row[first_key..][..size]),
                    Some(_) => {
                        head.copy_turned(token, first_key, turned);
                        keys.set_column::<L>(token, turned);
                    }
                }
                values.set_row::<L>(token, &row[first_value..][..size]);
            }
        }
    }

    /// Computes the attention output of the tokens from `first` to `last`.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn tile<L: Lanes>(&mut self, first: usize, last: usize, registers: Option<&Registers>) {
        let HeadWith { head, scratch: Scratch { keys, values, queries, scores, sums }, .. } = self;
        let Heads { tokens, size, mask, scale: query_scale, .. } = head.heads;
        let queries = queries.values_mut();
        for (token, query) in (first..last).zip(queries.chunks_exact_mut(size)) {
            head.copy_turned(token, head.head * size, query);
            query.iter_mut().for_each(|value| *value *= query_scale);
        }
        // The last token attends to the most positions.
        let most = mask.of(head.sequence, last - 1, tokens);
        // Padded, so that the rows do not fall into the same sets of the L1 cache.
        let (across, sums_across) = (tokens.next_multiple_of(PANEL) + 16, size.next_multiple_of(PANEL));
        scores.reserve(ROWS * across);
        sums.reserve(ROWS * sums_across);
        let (scores, sums) = (scores.values_mut(), sums.values_mut());
        // SAFETY: as the caller promises. There are `ROWS` rows of queries, scores and sums; keys and values are packed,
        // and the target has a row of `size` columns for each token.
        unsafe {
            let count = last - first;
            let rows = TileRows { rows: queries.as_ptr(), stride: size, count, length: size };
            keys.multiply::<L>(rows, most, scores.as_mut_ptr(), across, registers);
            let mut factors = [0.0; ROWS];
            for (row, factor) in factors.iter_mut().enumerate().take(count) {
                let seen = mask.of(head.sequence, first + row, tokens);
                *factor = softmax::<L>(scores[row * across..][..most].as_mut_ptr(), seen, most);
            }
            let rows = TileRows { rows: scores.as_ptr(), stride: across, count, length: most };
            values.multiply::<L>(rows, size, sums.as_mut_ptr(), sums_across, registers);
            for (row, factor) in factors.into_iter().enumerate().take(count) {
                scale::<L>(&sums[row * sums_across..][..size], factor, head.target.at(first + row, 0));
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

#[cfg(test)]
mod tests {
    use super::super::matrix::filled;
    use super::super::pairs::nearest;
    use super::*;

    /// Compares both precisions with sums in f64.
    #[track_caller]
    fn check(batch: usize, tokens: usize, heads: usize, size: usize, mask: AttentionMask<'_>) {
        check_in(false, batch, tokens, heads, size, mask);
        check_in(true, batch, tokens, heads, size, mask);
    }

    /// With bf16, the sums are of rounded queries, keys and values. Softmax weights are not rounded, which is a 512th of
    /// a value at most.
    #[track_caller]
    fn check_in(
        is_bf16: bool,
        batch: usize,
        tokens: usize,
        heads: usize,
        size: usize,
        mask: AttentionMask<'_>,
    ) {
        let width = heads * size;
        let packed: Vec<f32> =
            (0..batch * tokens * 3 * width).map(|at| ((at * 7919 % 1013) as f32 / 500.0) - 1.0).collect();
        let at = |row: usize, part: usize, head: usize, value: usize| {
            let value = packed[row * 3 * width + part * width + head * size + value];
            f64::from(if is_bf16 { f32::from_bits(nearest(value) << 16) } else { value })
        };
        let mut expected: Vec<f64> = Vec::new();
        for (row, head) in (0..batch * tokens).flat_map(|row| (0..heads).map(move |head| (row, head))) {
            let (sequence, token) = (row / tokens, row % tokens);
            let seen = match mask {
                AttentionMask::All => tokens,
                AttentionMask::Earlier => token + 1,
                AttentionMask::Within(lengths) => lengths[sequence],
            };
            let other = |other: usize, part: usize, it: usize| at(sequence * tokens + other, part, head, it);
            let score =
                |key: usize| (0..size).map(|it| at(row, 0, head, it) * other(key, 1, it)).sum::<f64>();
            let scores: Vec<f64> = (0..seen).map(score).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let shares: Vec<f64> = scores.iter().map(|it| (it - most).exp()).collect();
            let total: f64 = shares.iter().sum();
            let sum = |it: usize| {
                shares.iter().enumerate().map(|(key, share)| share * other(key, 2, it)).sum::<f64>()
            };
            expected.extend((0..size).map(|it| sum(it) / total));
        }
        let bound = if is_bf16 { 1.1 / 512.0 } else { 1e-5 };
        let Some(best) = Processor::detect() else { return };
        let processors = Processor::all().into_iter().map(|it| (it, 1));
        for (processor, threads) in processors.chain([(best, 2)]) {
            let (cores, kv_heads) = (Cores { processor, threads }, heads);
            let heads =
                Heads { batch, tokens, heads, kv_heads, size, mask, angles: None, scale: 1.0, is_bf16 };
            let got = filled(batch * tokens, width, |target| attend(cores, &packed, target, heads));
            for (place, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let (row, column) = (place / width, place % width);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
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
    fn rows_that_are_longer_than_their_copies_are_multiplied_in_parts() {
        check(1, 2100, 1, 1, AttentionMask::All);
        check(1, 3, 1, 2060, AttentionMask::All);
    }

    #[test]
    fn a_padded_sequence_gives_what_it_gives_alone() {
        let Some(best) = Processor::detect() else { return };
        let (lengths, size) = ([13, 20], 40);
        let packed: Vec<f32> =
            (0..2 * 20 * 3 * size).map(|at| (at * 7919 % 1013) as f32 / 500.0 - 1.0).collect();
        let attended = |processor, is_bf16, packed: &[f32], lengths: &[usize], tokens: usize| {
            let (batch, mask) = (lengths.len(), AttentionMask::Within(lengths));
            let heads =
                Heads { batch, tokens, heads: 1, kv_heads: 1, size, mask, angles: None, scale: 1.0, is_bf16 };
            let cores = Cores { processor, threads: 1 };
            filled(batch * tokens, size, |target| attend(cores, packed, target, heads))
        };
        let all = Processor::all().into_iter().map(|it| (it, true));
        for (processor, is_bf16) in all.chain([(best, false)]) {
            let batch = attended(processor, is_bf16, &packed, &lengths, 20);
            let alone = attended(processor, is_bf16, &packed[..13 * 3 * size], &lengths[..1], 13);
            assert_eq!(batch[..13 * size], alone, "{processor:?}, {is_bf16}");
        }
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
        let is_bf16 = false;
        let simple =
            Heads { batch, tokens, heads, kv_heads: heads, size, mask, angles: None, scale: 1.0, is_bf16 };
        let angles = RotaryAngles::new(&angles, pairs);
        let all = Heads { kv_heads, angles: Some(&angles), scale, ..simple };
        let attended = |processor, packed: &[f32], heads| {
            let cores = Cores { processor, threads: 1 };
            filled(batch * tokens, simple.width(), |target| attend(cores, packed, target, heads))
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
        let fits =
            |tokens: usize| RotaryAngles::new(&vec![0.0; tokens * 3], RotaryPairs::Halves).fit(2, 5, 6);
        assert_eq!([5, 10, 4, 15].map(fits), [true, true, false, false]);
    }
}
