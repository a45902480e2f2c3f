//! Codes: the numbers that a graph walk compares. 32-bit floats, half precision, bytes, or halves of bytes.
//!
//! Byte codes first subtract the segment's mean, then quantise the rest in 255 steps of the vector's own scale.
//! Embeddings of one model share a direction (mean cosine 0.75 among CLIP's texts), which would take most of the steps.
//! The rest is multiplied in integers, the mean's terms in floats: `q.x = m.m + m.(q-m) + m.(x-m) + (q-m).(x-m)`.
//!
//! Halves of bytes also rotate the rest at random, so that its values are nearly normal, and round each to one of 16
//! levels. A factor a vector keeps the estimate of a product unbiased (RaBitQ, Gao and others, "Practical and
//! Asymptotically Optimal Quantization of High-Dimensional Vectors in Euclidean Space").

use std::borrow::Cow;
use std::str::FromStr;

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use serde::{Deserialize, Serialize};

pub(crate) mod signs;

use crate::kernels::{Kernels, LINE, prefetch};
use crate::rotation::Rotation;

/// The numbers in which a sealed segment stores its codes. The last candidates of a search are always compared by their
/// original vectors, so scores do not depend on this choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codes {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Bytes with one scale per vector.
    Int8,
    /// Halves of bytes after a rotation.
    #[default]
    Int4,
}

impl Codes {
    /// All formats, the most exact first.
    pub const ALL: [Codes; 4] = [Codes::F32, Codes::F16, Codes::Int8, Codes::Int4];

    /// `f32`, `f16`, `int8` or `int4`.
    pub fn name(self) -> &'static str {
        match self {
            Codes::F32 => "f32",
            Codes::F16 => "f16",
            Codes::Int8 => "int8",
            Codes::Int4 => "int4",
        }
    }

    /// The codes by which a graph of these codes is built: choosing links takes more exact ones than a walk.
    pub(crate) fn linking(self) -> Codes {
        if self == Codes::Int4 { Codes::Int8 } else { self }
    }

    /// The standard error of a value's code, as a share of the vector's root mean square.
    fn rounding(self) -> f32 {
        match self {
            Codes::F32 => 1e-5,
            Codes::F16 => 5e-4,
            Codes::Int8 => 0.013,
            Codes::Int4 => 0.107,
        }
    }

    /// Whether these codes can confuse nearly equal vectors.
    pub(crate) fn are_coarse(self) -> bool {
        matches!(self, Codes::Int8 | Codes::Int4)
    }
}

impl FromStr for Codes {
    type Err = String;

    fn from_str(name: &str) -> Result<Codes, String> {
        let found = Codes::ALL.into_iter().find(|codes| codes.name() == name);
        found.ok_or_else(|| "must be f32, f16, int8 or int4".to_owned())
    }
}

/// Added to stored bytes to make them unsigned: the processor multiplies unsigned bytes with signed ones.
const BIAS: u8 = 128;
/// Size of a row's numbers beside its bytes: scale, the mean's term, and the sum of the bytes.
const NUMBERS: usize = 12;
/// The levels of half a byte are the odd numbers from `-MIDDLE` to `MIDDLE`.
const MIDDLE: i32 = 15;
/// The distance of levels that loses least of normal values, in standard deviations.
const STEP: f32 = 0.3352;
/// Size of the numbers of a row of halves: half the distance of levels, and the mean's term. They lie behind all rows, so
/// that a row has no line more than it needs.
const APART: usize = 8;
/// Sums and largest values are taken in this many lanes, which the compiler makes vectors of.
const LANES: usize = 16;
/// The most rows from which the mean is computed.
const SAMPLE: usize = 20_000;
/// Cache lines of a row to prefetch; the processor's own prefetcher reads the following ones.
const LINES_AHEAD: usize = 9;

/// Encodes the vectors of one segment as rows of codes, and compares rows with queries.
#[derive(Clone)]
pub(crate) struct Coder {
    codes: Codes,
    dimension: usize,
    /// The segment's mean; zero for floats, whole or half.
    mean: Vec<f32>,
    mean_square: f32,
    /// For halves of bytes.
    rotation: Option<Rotation>,
    kernels: Kernels,
}

/// A query in the form that rows are compared with.
pub(crate) struct Query {
    floats: Vec<f32>,
    bytes: Vec<i8>,
    scale: f32,
    /// The terms that do not depend on the row.
    constant: f32,
    /// The sum of `bytes` times [`BIAS`], or [`MIDDLE`] for halves of bytes.
    biased: i32,
}

impl Coder {
    /// A coder for rows of `dimension` values; `vectors` is a sample of them.
    pub(crate) fn learn<'a>(
        codes: Codes,
        dimension: usize,
        vectors: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Coder {
        let mut mean = vec![0.0_f64; dimension];
        if codes.are_coarse() {
            let step = vectors.len().div_ceil(SAMPLE).max(1);
            let mut count = 0.0_f64;
            for vector in vectors.step_by(step) {
                mean.iter_mut().zip(vector).for_each(|(mean, &value)| *mean += f64::from(value));
                count += 1.0;
            }
            mean.iter_mut().for_each(|mean| *mean /= count.max(1.0));
        }
        Coder::with_mean(codes, mean.iter().map(|&value| value as f32).collect())
    }

    /// A coder with the mean that [`Coder::learn`] computed before.
    pub(crate) fn with_mean(codes: Codes, mean: Vec<f32>) -> Coder {
        Coder {
            codes,
            dimension: mean.len(),
            mean_square: dot(&mean, &mean),
            rotation: (codes == Codes::Int4).then(|| Rotation::new(padded(codes, mean.len()))),
            mean,
            kernels: Kernels::detect(),
        }
    }

    pub(crate) fn codes(&self) -> Codes {
        self.codes
    }

    pub(crate) fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// Bytes of a row, padded to a multiple of a cache line.
    pub(crate) fn stride(&self) -> usize {
        stride(self.codes, self.dimension)
    }

    /// Values of a row, with padding.
    fn padded(&self) -> usize {
        padded(self.codes, self.dimension)
    }

    /// Bytes of a row's numbers that lie behind all rows.
    pub(crate) fn apart(&self) -> usize {
        apart(self.codes)
    }

    /// Encodes a vector into `row` and `numbers`, which must be [`Coder::stride`] and [`Coder::apart`] bytes long and zero.
    pub(crate) fn encode(&self, vector: &[f32], row: &mut [u8], numbers: &mut [u8]) {
        match self.codes {
            Codes::F32 => row.chunks_exact_mut(4).zip(vector).for_each(|(to, value)| {
                to.copy_from_slice(&value.to_le_bytes());
            }),
            Codes::F16 => row.chunks_exact_mut(2).zip(vector).for_each(|(to, &value)| {
                to.copy_from_slice(&half::f16::from_f32(value).to_le_bytes());
            }),
            Codes::Int8 => {
                let rest = self.rest(vector);
                let (scale, part) = (scale_of(&rest), dot(&self.mean, &rest));
                let (bytes, numbers) = row.split_at_mut(self.padded());
                bytes.fill(BIAS);
                let mut sum = 0;
                for (to, value) in bytes.iter_mut().zip(&rest) {
                    let byte = nearest(value / scale);
                    sum += i32::from(byte);
                    *to = byte as u8 ^ BIAS;
                }
                numbers[..4].copy_from_slice(&scale.to_le_bytes());
                numbers[4..8].copy_from_slice(&part.to_le_bytes());
                numbers[8..NUMBERS].copy_from_slice(&sum.to_le_bytes());
            }
            Codes::Int4 => {
                let rest = self.rest(vector);
                let turned = self.turned(&rest);
                let square = dot(&turned, &turned);
                let step = STEP * (square / turned.len() as f32).sqrt();
                let half = turned.len() / 2;
                let mut product = 0.0;
                for (at, value) in turned.iter().enumerate() {
                    let level = if step > 0.0 { (value / step + 7.5).round().clamp(0.0, 15.0) } else { 8.0 };
                    product += value * (2.0 * level - MIDDLE as f32);
                    row[at % half] |= if at < half { level as u8 } else { (level as u8) << 4 };
                }
                let scale = if product > 0.0 { square / product } else { 0.0 };
                numbers[..4].copy_from_slice(&scale.to_le_bytes());
                numbers[4..APART].copy_from_slice(&dot(&self.mean, &rest).to_le_bytes());
            }
        }
    }

    /// Encodes a vector as a query.
    pub(crate) fn query(&self, vector: &[f32]) -> Query {
        let mut query = self.empty();
        match self.codes {
            Codes::F32 | Codes::F16 => query.floats[..vector.len()].copy_from_slice(vector),
            Codes::Int8 | Codes::Int4 => {
                let rest = self.rest(vector);
                query.constant = self.mean_square + dot(&self.mean, &rest);
                let bias = if self.codes == Codes::Int4 { MIDDLE } else { i32::from(BIAS) };
                query.quantise(&self.turned(&rest), bias);
            }
        }
        query
    }

    /// A zero query of the right size, for [`Coder::take_row`].
    pub(crate) fn empty(&self) -> Query {
        let (floats, bytes) = match self.codes {
            Codes::F32 | Codes::F16 => (self.padded(), 0),
            Codes::Int8 | Codes::Int4 => (0, self.padded()),
        };
        Query { floats: vec![0.0; floats], bytes: vec![0; bytes], scale: 0.0, constant: 0.0, biased: 0 }
    }

    /// Decodes a stored row into a query.
    pub(crate) fn take_row(&self, row: &[u8], numbers: &[u8], query: &mut Query) {
        match self.codes {
            Codes::F32 => query.floats.copy_from_slice(floats(row)),
            Codes::F16 => {
                let row: &[half::f16] = halves(row).reinterpret_cast();
                row.convert_to_f32_slice(&mut query.floats);
            }
            Codes::Int8 => {
                let (bytes, numbers) = row.split_at(self.padded());
                query.bytes.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = (byte ^ BIAS) as i8);
                let (scale, part, sum) = numbers_of(numbers);
                query.scale = scale;
                query.constant = self.mean_square + part;
                query.biased = sum * i32::from(BIAS);
            }
            Codes::Int4 => {
                let (low, high) = query.bytes.split_at_mut(row.len());
                for ((low, high), &both) in low.iter_mut().zip(high).zip(row) {
                    *low = (2 * i32::from(both & 15) - MIDDLE) as i8;
                    *high = (2 * i32::from(both >> 4) - MIDDLE) as i8;
                }
                let (scale, part) = apart_of(numbers);
                query.scale = scale;
                query.constant = self.mean_square + part;
                query.biased = query.sum() * MIDDLE;
            }
        }
    }

    /// The approximate cosine of the query and a row.
    #[inline]
    pub(crate) fn score(&self, query: &Query, row: &[u8], numbers: &[u8]) -> f32 {
        match self.codes {
            Codes::F32 => self.kernels.floats(floats(row), &query.floats),
            Codes::F16 => self.kernels.halves(halves(row), &query.floats),
            Codes::Int8 => {
                let (bytes, numbers) = row.split_at(query.bytes.len());
                let product = self.kernels.bytes(bytes, &query.bytes) - query.biased;
                let (scale, part, _) = numbers_of(numbers);
                query.constant + part + query.scale * scale * product as f32
            }
            Codes::Int4 => {
                let product = i64::from(self.kernels.nibbles(row, &query.bytes));
                let (scale, part) = apart_of(numbers);
                query.constant + part + query.scale * scale * (2 * product - i64::from(query.biased)) as f32
            }
        }
    }

    /// The standard error of scores with this query that is to be expected among the segment's rows.
    pub(crate) fn error(&self, query: &Query) -> f32 {
        self.error_of(self.codes.rounding(), query)
    }

    /// The same for rows whose values have this standard error, as a share of the vector's root mean square.
    fn error_of(&self, rounding: f32, query: &Query) -> f32 {
        let of_query = match self.codes {
            Codes::F32 | Codes::F16 => 1.0,
            Codes::Int8 | Codes::Int4 => {
                let square: i32 = query.bytes.iter().map(|&byte| i32::from(byte) * i32::from(byte)).sum();
                query.scale * (square as f32).sqrt()
            }
        };
        let of_rows = (1.0 - self.mean_square).max(0.0).sqrt();
        rounding * of_query * of_rows / (self.dimension as f32).sqrt()
    }

    /// Prefetches a row.
    #[inline]
    pub(crate) fn prefetch(&self, row: &[u8]) {
        prefetch(row, LINES_AHEAD);
    }

    fn rest(&self, vector: &[f32]) -> Vec<f32> {
        vector.iter().zip(&self.mean).map(|(value, mean)| value - mean).collect()
    }

    fn turned<'a>(&self, rest: &'a [f32]) -> Cow<'a, [f32]> {
        self.rotation.as_ref().map_or(Cow::Borrowed(rest), |rotation| Cow::Owned(rotation.turn(rest)))
    }
}

impl Query {
    fn quantise(&mut self, values: &[f32], bias: i32) {
        self.scale = scale_of(values);
        let inverse = 1.0 / self.scale;
        self.bytes.iter_mut().zip(values).for_each(|(to, value)| *to = nearest(value * inverse));
        self.biased = self.sum() * bias;
    }

    fn sum(&self) -> i32 {
        self.bytes.iter().map(|&byte| i32::from(byte)).sum()
    }
}

/// Bytes of the codes of `rows` rows.
pub(crate) fn bytes(codes: Codes, dimension: usize, rows: usize) -> usize {
    rows * (stride(codes, dimension) + apart(codes))
}

/// Bytes of a row's numbers that lie behind all rows.
fn apart(codes: Codes) -> usize {
    if codes == Codes::Int4 { APART } else { 0 }
}

/// Bytes of a row, padded to a multiple of a cache line.
pub(crate) fn stride(codes: Codes, dimension: usize) -> usize {
    let values = padded(codes, dimension);
    match codes {
        Codes::F32 => values * 4,
        Codes::F16 => values * 2,
        Codes::Int8 => (values + NUMBERS).next_multiple_of(LINE),
        Codes::Int4 => values / 2,
    }
}

fn padded(codes: Codes, dimension: usize) -> usize {
    match codes {
        Codes::F32 => dimension.next_multiple_of(LINE / 4),
        Codes::F16 => dimension.next_multiple_of(LINE / 2),
        Codes::Int8 => dimension.next_multiple_of(LINE),
        Codes::Int4 => dimension.next_multiple_of(2 * LINE),
    }
}

/// The step at which the largest value becomes 127.
fn scale_of(values: &[f32]) -> f32 {
    let mut most = [0.0_f32; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(most, value)| *most = most.max(value.abs()));
    }
    let largest = most.iter().chain(rest).fold(0.0_f32, |most, value| most.max(value.abs()));
    if largest > 0.0 { largest / 127.0 } else { 1.0 }
}

/// The nearest integer of a value between -127 and 127. The sum's lowest bits are that integer, and the compiler can do
/// many at once.
fn nearest(value: f32) -> i8 {
    (value + 12_582_912.0).to_bits() as i8
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let ((lefts, left), (rights, right)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    for (left, right) in lefts.iter().zip(rights) {
        sums.iter_mut().zip(left.iter().zip(right)).for_each(|(sum, (left, right))| *sum += left * right);
    }
    sums.iter().sum::<f32>() + left.iter().zip(right).map(|(left, right)| left * right).sum::<f32>()
}

#[inline]
fn apart_of(numbers: &[u8]) -> (f32, f32) {
    let numbers: &[f32] = crate::memory::cast(numbers);
    (numbers[0], numbers[1])
}

#[inline]
fn numbers_of(bytes: &[u8]) -> (f32, f32, i32) {
    let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    (f32::from_le_bytes(four(0)), f32::from_le_bytes(four(4)), i32::from_le_bytes(four(8)))
}

fn floats(row: &[u8]) -> &[f32] {
    crate::memory::cast(row)
}

fn halves(row: &[u8]) -> &[u16] {
    crate::memory::cast(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitVector;

    fn unit(seed: usize, dimension: usize) -> UnitVector {
        let raw: Vec<f32> =
            (0..dimension).map(|at| 1.5 + ((at * 37 + seed * 1_013) % 101) as f32 / 101.0).collect();
        UnitVector::from_raw(&raw).unwrap().0
    }

    /// Compares every format's scores with the exact cosine.
    #[track_caller]
    fn check(codes: Codes, dimension: usize, tolerance: f32) {
        let vectors: Vec<UnitVector> = (0..40).map(|seed| unit(seed, dimension)).collect();
        let coder = Coder::learn(codes, dimension, vectors.iter().map(UnitVector::values));
        let mut pages = crate::memory::Pages::zeroed(bytes(codes, dimension, vectors.len())).unwrap();
        let (rows, numbers) = pages.bytes_mut().split_at_mut(vectors.len() * coder.stride());
        for (at, vector) in vectors.iter().enumerate() {
            let row = &mut rows[at * coder.stride()..(at + 1) * coder.stride()];
            coder.encode(vector.values(), row, &mut numbers[at * coder.apart()..(at + 1) * coder.apart()]);
        }
        let rows = crate::walk::Rows::new(&coder, pages.bytes());
        let mut stored = coder.empty();
        for (left, vector) in vectors.iter().enumerate() {
            let query = coder.query(vector.values());
            rows.take(left as u32, &mut stored);
            for (right, other) in vectors.iter().enumerate() {
                let expected = vector.dot(other);
                for got in [rows.score(&query, right as u32), rows.score(&stored, right as u32)] {
                    assert!((got - expected).abs() < tolerance, "{codes:?}: {got} is not {expected}");
                }
            }
        }
    }

    /// Files hold rows as they are encoded here, and outlive the program that wrote them. Whoever changes a row's bytes
    /// gives the codes another name.
    #[track_caller]
    fn check_stored(codes: Codes, expected: (usize, u32)) {
        let coder = Coder::with_mean(codes, unit(3, 500).values().to_vec());
        let mut stored = vec![0; coder.stride() + coder.apart()];
        let (row, numbers) = stored.split_at_mut(coder.stride());
        coder.encode(unit(4, 500).values(), row, numbers);
        assert_eq!((stored.len(), crc32fast::hash(&stored)), expected, "{codes:?}");
    }

    #[test]
    fn codes_are_read_by_their_names_alone() {
        for (name, expected) in
            [("f32", Some(Codes::F32)), ("f16", Some(Codes::F16)), ("int8", Some(Codes::Int8))]
        {
            assert_eq!(name.parse().ok(), expected);
        }
        assert_eq!("int4".parse(), Ok(Codes::Int4));
        assert_eq!("int2".parse::<Codes>(), Err("must be f32, f16, int8 or int4".to_owned()));
    }

    #[test]
    fn stored_rows_stay_as_they_are() {
        check_stored(Codes::F32, (2_048, 1_163_818_944));
        check_stored(Codes::F16, (1_024, 1_430_673_224));
        check_stored(Codes::Int8, (576, 859_113_841));
        check_stored(Codes::Int4, (264, 1_080_142_361));
    }

    #[test]
    fn a_row_of_bytes_ends_with_its_scale_its_part_of_the_mean_and_its_sum() {
        let coder = Coder::with_mean(Codes::Int8, vec![0.5, 0.0]);
        let mut row = vec![0; coder.stride()];
        coder.encode(&[0.6, 0.8], &mut row, &mut []);
        // The rest is (0.1, 0.8): 16 and 127 steps of 0.8 / 127.
        assert_eq!(row[..3], [16 + 128, 127 + 128, 128]);
        let (scale, part, sum) = numbers_of(&row[64..]);
        assert!((scale - 0.8 / 127.0).abs() < 1e-6 && (part - 0.05).abs() < 1e-6 && sum == 16 + 127);
    }

    #[test]
    fn the_expected_error_is_about_the_one_seen() {
        for codes in [Codes::Int8, Codes::Int4] {
            let vectors: Vec<UnitVector> = (0..200).map(|seed| unit(seed, 512)).collect();
            let coder = Coder::learn(codes, 512, vectors.iter().map(UnitVector::values));
            let mut pages = crate::memory::Pages::zeroed(bytes(codes, 512, 1)).unwrap();
            let query = coder.query(vectors[0].values());
            let mut squares = 0.0;
            for vector in &vectors[1..] {
                pages.bytes_mut().fill(0);
                let (row, numbers) = pages.bytes_mut().split_at_mut(coder.stride());
                coder.encode(vector.values(), row, numbers);
                let error = coder.score(&query, row, numbers) - vectors[0].dot(vector);
                squares += error * error;
            }
            let (seen, expected) = ((squares / 199.0).sqrt(), coder.error(&query));
            assert!((0.4..2.5).contains(&(seen / expected)), "{codes:?}: {seen}, expected {expected}");
        }
    }

    #[test]
    fn codes_give_about_the_cosine() {
        for dimension in [1, 24, 64, 500, 512, 768] {
            check(Codes::F32, dimension, 1e-5);
            check(Codes::F16, dimension, 1e-3);
            check(Codes::Int8, dimension, 1e-3);
            check(Codes::Int4, dimension, 2e-2);
        }
    }
}
