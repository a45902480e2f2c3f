//! Attention of the tokens of each sequence to each other, head by head, straight off the packed projection.

use std::cell::RefCell;

use rayon::prelude::*;

use super::Processor;
use super::elementwise::softmax;
use super::float::{Finish, multiply};
use super::matrix::{Aligned, PANEL, Panels, Rows, Target};

/// Which tokens of its sequence a token sees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sight<'a> {
    /// All.
    All,
    /// Itself and those before.
    Earlier,
    /// Of each sequence the first so many, at least one.
    Within(&'a [usize]),
}

impl Sight<'_> {
    /// How many of `tokens` a token sees: always the first.
    fn of(self, sequence: usize, token: usize, tokens: usize) -> usize {
        match self {
            Sight::All => tokens,
            Sight::Earlier => token + 1,
            Sight::Within(lengths) => lengths[sequence].clamp(1, tokens),
        }
    }
}

/// How the packed projection is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads<'a> {
    /// Sequences.
    pub(super) batch: usize,
    /// Tokens of each.
    pub(super) tokens: usize,
    pub(super) heads: usize,
    /// Values of a head.
    pub(super) size: usize,
    pub(super) sight: Sight<'a>,
}

/// What one head of one sequence needs room for.
struct Scratch {
    keys: Panels,
    values: Panels,
    scores: Aligned<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        keys: Panels::empty(),
        values: Panels::empty(),
        scores: Aligned::zeros(0),
    });
}

/// `packed`: (batch * tokens, 3 * heads * size): queries (scaled already), keys, values; `target`: (batch * tokens,
/// heads * size).
///
/// # Panics
/// If the shapes don't fit.
pub(super) fn attend(processor: Processor, packed: &[f32], target: Target, heads: Heads<'_>, threads: usize) {
    let width = heads.heads * heads.size;
    assert_eq!(packed.len(), heads.batch * heads.tokens * 3 * width);
    assert_eq!((target.rows, target.columns), (heads.batch * heads.tokens, width));
    assert!(!matches!(heads.sight, Sight::Within(lengths) if lengths.len() != heads.batch));
    let one = |at: usize| {
        let (sequence, head) = (at / heads.heads, at % heads.heads);
        let packed = &packed[sequence * heads.tokens * 3 * width..][..heads.tokens * 3 * width];
        let target =
            target.rows(sequence * heads.tokens, heads.tokens).columns(head * heads.size, heads.size);
        SCRATCH.with_borrow_mut(|scratch| {
            head_of(processor, &packed[head * heads.size..], target, (heads, sequence), scratch)
        });
    };
    let count = heads.batch * heads.heads;
    match threads {
        0 | 1 => (0..count).for_each(one),
        _ => (0..count).into_par_iter().for_each(one),
    }
}

/// One head of one sequence; `packed` begins with its first query.
fn head_of(
    processor: Processor,
    packed: &[f32],
    target: Target,
    (heads, sequence): (Heads<'_>, usize),
    scratch: &mut Scratch,
) {
    let Heads { tokens, size, .. } = heads;
    let (width, stride) = (heads.heads * size, 3 * heads.heads * size);
    let Scratch { keys, values, scores } = scratch;
    keys.reshape(size, tokens);
    values.reshape(tokens, size);
    for token in 0..tokens {
        let key = &packed[token * stride + width..][..size];
        let (panel, column) = (token / PANEL, token % PANEL);
        key.iter().enumerate().for_each(|(row, value)| keys.row_mut(panel, row)[column] = *value);
        let value = &packed[token * stride + 2 * width..][..size];
        for (panel, part) in value.chunks(PANEL).enumerate() {
            let row = values.row_mut(panel, token);
            row[..part.len()].copy_from_slice(part);
            row[part.len()..].fill(0.0);
        }
    }
    let across = tokens.next_multiple_of(PANEL);
    scores.reserve(tokens * across);
    let scores = &mut scores.values_mut()[..tokens * across];
    let queries = Rows::new(packed, (tokens, size), stride);
    let into = Target::new(scores, (tokens, tokens), across);
    multiply(processor, queries, keys, into, Finish::default(), 1);
    softmaxes(processor, scores, across, (heads, sequence));
    let shares = Rows::new(scores, (tokens, tokens), across);
    multiply(processor, shares, values, target, Finish::default(), 1);
}

fn softmaxes(processor: Processor, scores: &mut [f32], across: usize, of: (Heads<'_>, usize)) {
    match processor {
        // SAFETY: the processor has what the functions ask for; a `Processor` says so.
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 { .. } => unsafe { softmaxes_512(scores, across, of) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 => unsafe { softmaxes_256(scores, across, of) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => unreachable!("there is no Processor here"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn softmaxes_512(scores: &mut [f32], across: usize, of: (Heads<'_>, usize)) {
    softmaxes_with(scores, across, of);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn softmaxes_256(scores: &mut [f32], across: usize, of: (Heads<'_>, usize)) {
    softmaxes_with(scores, across, of);
}

#[inline(always)]
fn softmaxes_with(scores: &mut [f32], across: usize, (heads, sequence): (Heads<'_>, usize)) {
    for (token, row) in scores.chunks_exact_mut(across).enumerate() {
        let seen = heads.sight.of(sequence, token, heads.tokens);
        softmax(&mut row[..seen]);
        row[seen..].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sums in f64.
    #[track_caller]
    fn check(batch: usize, tokens: usize, heads: usize, size: usize, sight: Sight<'_>) {
        let width = heads * size;
        let packed: Vec<f32> =
            (0..batch * tokens * 3 * width).map(|at| ((at * 7919 % 1013) as f32 / 500.0) - 1.0).collect();
        let at = |row: usize, part: usize, head: usize, value: usize| {
            f64::from(packed[row * 3 * width + part * width + head * size + value])
        };
        let Some(best) = Processor::detect() else { return };
        for (processor, threads) in [(best, 1), (best, 2), (Processor::Avx2, 1)] {
            let mut got = vec![f32::NAN; batch * tokens * width];
            let target = Target::new(&mut got, (batch * tokens, width), width);
            attend(processor, &packed, target, Heads { batch, tokens, heads, size, sight }, threads);
            for (place, got) in got.iter().enumerate() {
                let (row, column) = (place / width, place % width);
                let (sequence, token, head) = (row / tokens, row % tokens, column / size);
                let seen = match sight {
                    Sight::All => tokens,
                    Sight::Earlier => token + 1,
                    Sight::Within(lengths) => lengths[sequence],
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
        check(2, 50, 3, 8, Sight::All);
        check(1, 1, 1, 64, Sight::All);
        check(2, 33, 2, 40, Sight::All);
    }

    #[test]
    fn no_token_sees_a_later_one_where_that_is_asked_for() {
        check(2, 20, 2, 8, Sight::Earlier);
        check(1, 77, 1, 16, Sight::Earlier);
    }

    #[test]
    fn nothing_sees_what_stands_after_a_sequence() {
        check(3, 20, 2, 8, Sight::Within(&[20, 1, 13]));
    }
}
