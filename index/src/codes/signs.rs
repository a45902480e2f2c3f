//! One-bit codes: the signs of a rotated vector, for a first look at many rows.
//!
//! A row has one bit for each value and a factor that keeps the estimate of a product unbiased (RaBitQ, Gao and Long,
//! "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound"). It is a quarter as long as half a byte
//! for each value, and its errors are seven times as large: enough to leave out most rows of a list.
//!
//! A row is stored in two parts, each with numbers of its own, so that each gives an estimate. The heads of all rows lie
//! together: most rows are left out by half a cache line. The tails of the others make the estimate better.

use super::{Coder, Codes, Query, dot, nearest, padded};
use crate::kernels::signs::{Levels, Numbers, Rows};

/// The most values of a head: with its numbers it is half a cache line.
const HEAD_VALUES: usize = 224;
/// The distance of 15 levels that loses least of a query's normal values, in standard deviations.
const STEP: f32 = 0.354;
/// An estimate by `n` of a row's `N` values has the variance `VARIANCE * N / n - 1`, as a share of the mean squares of both
/// vectors' values, where values are normal: `pi / 2` comes from the signs, the rest from the query's levels.
const VARIANCE: f32 = std::f32::consts::FRAC_PI_2 + 0.0129;

/// Values of a row's head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Split {
    head: usize,
    tail: usize,
}

impl Split {
    /// `None` for codes that have no signs beside them.
    fn of(codes: Codes, dimension: usize) -> Option<Split> {
        let values = padded(codes, dimension);
        let head = values.min(HEAD_VALUES);
        (codes == Codes::Int4).then_some(Split { head, tail: values - head })
    }

    fn strides(self) -> Strides {
        let tail = if self.tail == 0 { 0 } else { Rows::stride(self.tail) };
        Strides { head: Rows::stride(self.head), tail }
    }
}

/// Bytes of a row's head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) head: usize,
    /// 0 where the head has all values.
    pub(crate) tail: usize,
}

impl Strides {
    /// Both are 0 for codes that have no signs beside them.
    pub(crate) fn of(codes: Codes, dimension: usize) -> Strides {
        Split::of(codes, dimension).map_or(Strides { head: 0, tail: 0 }, Split::strides)
    }

    /// Bytes of a row.
    pub(crate) fn both(self) -> usize {
        self.head + self.tail
    }
}

/// A row to be written.
pub(crate) struct Row<'a> {
    /// As long as [`Strides::head`], and zero.
    pub(crate) head: &'a mut [u8],
    /// As long as [`Strides::tail`], and zero.
    pub(crate) tail: &'a mut [u8],
}

/// Encodes a vector into a row.
pub(crate) fn encode(coder: &Coder, vector: &[f32], row: Row) {
    let rest = coder.rest(vector);
    let turned = coder.turned(&rest);
    let (square, term) = (dot(&turned, &turned), dot(&coder.mean, &rest));
    let (head, tail) = turned.split_at(turned.len().min(HEAD_VALUES));
    for (values, part) in [(head, row.head), (tail, row.tail)] {
        if part.is_empty() {
            continue;
        }
        for (to, values) in part.iter_mut().zip(values.chunks_exact(8)) {
            *to = (0..8).fold(0, |byte, at| byte | (u8::from(values[at] > 0.0) << at));
        }
        let sum: f32 = values.iter().map(|value| value.abs()).sum();
        let factor = if sum > 0.0 { square / sum } else { 0.0 };
        Numbers { factor, term }.write(part);
    }
}

/// The one-bit codes of a segment's rows.
pub(crate) struct Signs<'a> {
    coder: &'a Coder,
    split: Split,
    heads: Rows<'a>,
    tails: Rows<'a>,
}

/// A query as heads and tails are compared with it.
pub(crate) struct SignsQuery {
    head: Levels,
    tail: Levels,
}

impl<'a> Signs<'a> {
    /// The signs in `rows`, the heads before the tails; `None` for codes without them.
    pub(crate) fn new(coder: &'a Coder, rows: &'a [u8]) -> Option<Signs<'a>> {
        let split = Split::of(coder.codes, coder.dimension)?;
        let strides = split.strides();
        let (heads, tails) = rows.split_at(rows.len() / strides.both() * strides.head);
        Some(Signs { coder, split, heads: Rows::new(heads, split.head), tails: Rows::new(tails, split.tail) })
    }

    /// The query with its values rounded to 15 levels.
    pub(crate) fn query(&self, query: &Query) -> SignsQuery {
        let (levels, scale) = rounded(query);
        let (head, tail) = levels.split_at(self.split.head);
        let part = |levels| Levels::new(levels, scale, query.constant);
        SignsQuery { head: part(head), tail: part(tail) }
    }

    /// The approximate cosine of the query and each of these rows, by their heads.
    pub(crate) fn heads(&self, query: &SignsQuery, rows: &[u32]) -> Vec<f32> {
        self.scores(self.heads, &query.head, rows)
    }

    /// The same by all signs, given the scores of the heads.
    pub(crate) fn with_tails(&self, query: &SignsQuery, rows: &[u32], heads: &[f32]) -> Vec<f32> {
        if self.split.tail == 0 {
            return heads.to_vec();
        }
        let share = self.share_of_heads();
        let tails = self.scores(self.tails, &query.tail, rows);
        heads.iter().zip(tails).map(|(head, tail)| share * head + (1.0 - share) * tail).collect()
    }

    /// The share of the values that heads have.
    fn share_of_heads(&self) -> f32 {
        self.split.head as f32 / (self.split.head + self.split.tail) as f32
    }

    fn scores(&self, part: Rows, query: &Levels, rows: &[u32]) -> Vec<f32> {
        let mut scores = Vec::new();
        self.coder.kernels.signs(part, rows, query, &mut scores);
        scores
    }

    /// The standard error of the cosines by heads that is to be expected among the segment's rows.
    pub(crate) fn error_of_heads(&self, query: &Query) -> f32 {
        self.coder.error_of((VARIANCE / self.share_of_heads() - 1.0).sqrt(), query)
    }

    /// The same of the cosines by all signs.
    pub(crate) fn error(&self, query: &Query) -> f32 {
        self.coder.error_of((VARIANCE - 1.0).sqrt(), query)
    }
}

/// A query's values as -7 to 7, and their unit.
fn rounded(query: &Query) -> (Vec<i8>, f32) {
    let square: i32 = query.bytes.iter().map(|&byte| i32::from(byte) * i32::from(byte)).sum();
    let per_step = 1.0 / (STEP * (square as f32 / query.bytes.len() as f32).sqrt()).max(f32::MIN_POSITIVE);
    let levels: Vec<i8> =
        query.bytes.iter().map(|&byte| nearest((f32::from(byte) * per_step).clamp(-7.0, 7.0))).collect();
    let product: i32 =
        query.bytes.iter().zip(&levels).map(|(&byte, &level)| i32::from(byte) * i32::from(level)).sum();
    let factor = if product > 0 { square as f32 / product as f32 } else { 0.0 };
    (levels, query.scale * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitVector;

    /// A unit vector without a pattern, near a direction that all share.
    fn unit(seed: u64, dimension: usize) -> UnitVector {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut value = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let raw: Vec<f32> = (0..dimension).map(|_| 0.3 + value()).collect();
        UnitVector::from_raw(&raw).unwrap().0
    }

    /// The signs of these vectors, the heads before the tails.
    fn encoded(coder: &Coder, vectors: &[UnitVector]) -> Vec<u8> {
        let strides = Strides::of(coder.codes, coder.dimension);
        let mut bytes = vec![0; strides.both() * vectors.len()];
        let (heads, tails) = bytes.split_at_mut(strides.head * vectors.len());
        let mut tails = tails.chunks_exact_mut(strides.tail.max(1));
        for (head, vector) in heads.chunks_exact_mut(strides.head).zip(vectors) {
            encode(coder, vector.values(), Row { head, tail: tails.next().unwrap_or_default() });
        }
        bytes
    }

    /// Checks that the cosines by signs are right but for errors of the expected size, which do not add up.
    #[track_caller]
    fn check(dimension: usize) {
        let vectors: Vec<UnitVector> = (0..400).map(|seed| unit(seed, dimension)).collect();
        let coder = Coder::learn(Codes::Int4, dimension, vectors.iter().map(UnitVector::values));
        let bytes = encoded(&coder, &vectors);
        let signs = Signs::new(&coder, &bytes).unwrap();
        let query = coder.query(vectors[0].values());
        let (rows, parts): (Vec<u32>, _) = ((1..400).rev().collect(), signs.query(&query));
        let heads = signs.heads(&parts, &rows);
        let whole = signs.with_tails(&parts, &rows, &heads);
        for (scores, expected) in [(heads, signs.error_of_heads(&query)), (whole, signs.error(&query))] {
            let scored = scores.into_iter().zip(&rows);
            let errors = scored.map(|(score, &row)| score - vectors[0].dot(&vectors[row as usize]));
            let errors: Vec<f32> = errors.collect();
            let mean = errors.iter().sum::<f32>() / errors.len() as f32;
            let seen = (errors.iter().map(|error| error * error).sum::<f32>() / errors.len() as f32).sqrt();
            assert!((0.6..1.6).contains(&(seen / expected)), "{dimension}: {seen}, expected {expected}");
            assert!(mean.abs() < 0.3 * expected, "{dimension}: the mean error is {mean}, one is {expected}");
        }
    }

    #[test]
    fn signs_give_about_the_cosine() {
        [128, 500, 512, 768].into_iter().for_each(check);
    }

    #[test]
    fn a_row_has_a_bit_for_each_value_and_numbers_in_both_parts() {
        let strides = |codes, dimension| {
            let Strides { head, tail } = Strides::of(codes, dimension);
            (head, tail)
        };
        assert_eq!((strides(Codes::Int4, 768), strides(Codes::Int4, 500)), ((32, 72), (32, 40)));
        assert_eq!((strides(Codes::Int4, 128), strides(Codes::Int4, 130)), ((24, 0), (32, 8)));
        assert_eq!((strides(Codes::Int8, 768), strides(Codes::F32, 768)), ((0, 0), (0, 0)));
        let coder = Coder::with_mean(Codes::Int8, vec![0.0; 8]);
        assert!(Signs::new(&coder, &[]).is_none());
        // Files hold rows as they are encoded here. Whoever changes a row's bytes gives the file's format another number.
        let coder = Coder::with_mean(Codes::Int4, unit(3, 500).values().to_vec());
        assert_eq!(crc32fast::hash(&encoded(&coder, &[unit(4, 500)])), 1_018_234_162);
    }
}
