//! One-bit codes: the signs of a rotated vector, for a first look at many rows.
//!
//! A row has one bit for each value and a factor that keeps the estimate of a product unbiased (RaBitQ, Gao and Long,
//! "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound"). It is a quarter as long as half a byte
//! for each value, and its errors are seven times as large: enough to leave out most rows of a list.

use super::{Coder, Codes, Query, dot, nearest, padded};
use crate::kernels::signs::{Levels, Rows};

/// Size of a row's numbers behind its bits: the factor, and the mean's term.
const NUMBERS: usize = Rows::NUMBERS;
/// The distance of 15 levels that loses least of a query's normal values, in standard deviations.
const STEP: f32 = 0.354;
/// The standard error of a sign as a code of a value, as a share of the vector's root mean square, for normal values. Its
/// square is the sum of the sign's, `pi / 2 - 1`, and of that of the query's levels, 0.0129.
const ROUNDING: f32 = 0.764;

/// The one-bit codes of a segment's rows.
pub(crate) struct Signs<'a> {
    coder: &'a Coder,
    rows: Rows<'a>,
}

/// Bytes of a row; 0 for codes that have no signs beside them.
pub(crate) fn stride(codes: Codes, dimension: usize) -> usize {
    if codes == Codes::Int4 { padded(codes, dimension) / 8 + NUMBERS } else { 0 }
}

/// Encodes a vector into `row`, which must be [`stride`] bytes long and zero.
pub(crate) fn encode(coder: &Coder, vector: &[f32], row: &mut [u8]) {
    let rest = coder.rest(vector);
    let turned = coder.turned(&rest);
    let (bits, numbers) = row.split_at_mut(row.len() - NUMBERS);
    for (to, values) in bits.iter_mut().zip(turned.chunks_exact(8)) {
        *to = (0..8).fold(0, |byte, at| byte | (u8::from(values[at] > 0.0) << at));
    }
    let sum: f32 = turned.iter().map(|value| value.abs()).sum();
    let scale = if sum > 0.0 { dot(&turned, &turned) / sum } else { 0.0 };
    numbers[..4].copy_from_slice(&scale.to_le_bytes());
    numbers[4..].copy_from_slice(&dot(&coder.mean, &rest).to_le_bytes());
}

impl<'a> Signs<'a> {
    /// The signs in `rows`; `None` for codes without them.
    pub(crate) fn new(coder: &'a Coder, rows: &'a [u8]) -> Option<Signs<'a>> {
        let stride = stride(coder.codes, coder.dimension);
        (stride > 0).then_some(Signs { coder, rows: Rows { rows, stride } })
    }

    /// The approximate cosine of the query and each of these rows.
    pub(crate) fn compare(&self, query: &Query, rows: &[u32]) -> Vec<f32> {
        let mut scores = Vec::new();
        self.coder.kernels.signs(self.rows, rows, &rounded(query), &mut scores);
        scores
    }

    /// The standard error of these cosines that is to be expected among the segment's rows.
    pub(crate) fn error(&self, query: &Query) -> f32 {
        self.coder.error_of(ROUNDING, query)
    }
}

/// A query with its values rounded to 15 levels.
fn rounded(query: &Query) -> Levels {
    let square: i32 = query.bytes.iter().map(|&byte| i32::from(byte) * i32::from(byte)).sum();
    let per_step = 1.0 / (STEP * (square as f32 / query.bytes.len() as f32).sqrt()).max(f32::MIN_POSITIVE);
    let levels: Vec<i8> =
        query.bytes.iter().map(|&byte| nearest((f32::from(byte) * per_step).clamp(-7.0, 7.0))).collect();
    let product: i32 =
        query.bytes.iter().zip(&levels).map(|(&byte, &level)| i32::from(byte) * i32::from(level)).sum();
    let factor = if product > 0 { square as f32 / product as f32 } else { 0.0 };
    Levels::new(&levels, query.scale * factor, query.constant)
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

    /// Checks that the cosines by signs are right but for errors of the expected size, which do not add up.
    #[track_caller]
    fn check(dimension: usize) {
        let vectors: Vec<UnitVector> = (0..400).map(|seed| unit(seed, dimension)).collect();
        let coder = Coder::learn(Codes::Int4, dimension, vectors.iter().map(UnitVector::values));
        let stride = stride(Codes::Int4, dimension);
        let mut pages = crate::memory::Pages::zeroed(stride * vectors.len()).unwrap();
        for (row, vector) in pages.bytes_mut().chunks_exact_mut(stride).zip(&vectors) {
            encode(&coder, vector.values(), row);
        }
        let signs = Signs::new(&coder, pages.bytes()).unwrap();
        let query = coder.query(vectors[0].values());
        let rows: Vec<u32> = (1..400).rev().collect();
        let scored = signs.compare(&query, &rows).into_iter().zip(&rows);
        let errors = scored.map(|(score, &row)| score - vectors[0].dot(&vectors[row as usize]));
        let errors: Vec<f32> = errors.collect();
        let mean = errors.iter().sum::<f32>() / errors.len() as f32;
        let seen = (errors.iter().map(|error| error * error).sum::<f32>() / errors.len() as f32).sqrt();
        let expected = signs.error(&query);
        assert!((0.6..1.6).contains(&(seen / expected)), "{dimension}: {seen}, expected {expected}");
        assert!(mean.abs() < 0.3 * expected, "{dimension}: the mean error is {mean}, one is {expected}");
    }

    #[test]
    fn signs_give_about_the_cosine() {
        [128, 500, 512, 768].into_iter().for_each(check);
    }

    #[test]
    fn a_row_has_a_bit_for_each_value_and_two_numbers() {
        assert_eq!((stride(Codes::Int4, 768), stride(Codes::Int4, 500)), (104, 72));
        assert_eq!((stride(Codes::Int8, 768), stride(Codes::F32, 768)), (0, 0));
        let coder = Coder::with_mean(Codes::Int8, vec![0.0; 8]);
        assert!(Signs::new(&coder, &[]).is_none());
        // Files hold rows as they are encoded here. Whoever changes a row's bytes gives the file's format another number.
        let coder = Coder::with_mean(Codes::Int4, unit(3, 500).values().to_vec());
        let mut row = vec![0; 72];
        encode(&coder, unit(4, 500).values(), &mut row);
        assert_eq!(crc32fast::hash(&row), 1_965_651_462);
    }
}
