//! Compares rows of signs with a query, with the widest instructions that the processor has.

use super::prefetch;

/// Rows prefetched ahead of the comparison.
const AHEAD: usize = 16;
/// Bytes of the bits of 256 values.
pub(super) const PLANE: usize = 32;
/// Bits of a query's value, in two's complement.
const PLANES: usize = 4;

/// The bits of 256 values: the lowest one of each, then the next ones. The highest one counts negative.
type Planes = [[u64; PLANE / 8]; PLANES];

/// Appends the score of each wanted row.
pub(super) type Kernel = unsafe fn(Rows, &[u32], &Levels, &mut Vec<f32>);

/// Rows of one bit for each value, a factor, and a term. The lowest bit of each byte belongs to the first of eight values.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) rows: &'a [u8],
    /// Bytes of a row.
    pub(crate) stride: usize,
}

impl<'a> Rows<'a> {
    /// Bytes of a row's numbers behind its bits: the factor and the term.
    pub(crate) const NUMBERS: usize = 8;

    /// Bytes of a row's bits.
    pub(super) fn bits(self) -> usize {
        self.stride - Rows::NUMBERS
    }

    #[inline(always)]
    fn row(self, row: u32) -> &'a [u8] {
        &self.rows[row as usize * self.stride..(row as usize + 1) * self.stride]
    }

    /// The wanted row at `at`, after a later one was prefetched.
    #[inline(always)]
    fn next(self, wanted: &[u32], at: usize) -> &'a [u8] {
        if let Some(&ahead) = wanted.get(at + AHEAD) {
            let row = self.row(ahead);
            prefetch(row, row.len());
            // A row begins within a line, and ends in one more than its length says.
            prefetch(&row[row.len() - 1..], 1);
        }
        self.row(wanted[at])
    }
}

/// A query whose values are rounded to -7 to 7.
pub(crate) struct Levels {
    /// The bits of its values, in steps of `scale`; zeros behind the last value.
    pub(super) planes: Vec<Planes>,
    /// The sum of its values, in steps.
    sum: i32,
    scale: f32,
    /// What is added to the score of each row.
    constant: f32,
}

impl Levels {
    /// A query of these values, -7 to 7 in steps of `scale`. Their number is a multiple of eight.
    pub(crate) fn new(values: &[i8], scale: f32, constant: f32) -> Levels {
        let planes = values.chunks(8 * PLANE).map(planes).collect();
        Levels { planes, sum: values.iter().map(|&value| i32::from(value)).sum(), scale, constant }
    }

    /// The score of a row, given the sum of the query's values whose bits are set in it: the others count negative.
    #[inline(always)]
    fn score(&self, set: i32, row: &[u8]) -> f32 {
        let (numbers, _) = row[row.len() - Rows::NUMBERS..].as_chunks();
        let (factor, term) = (f32::from_le_bytes(numbers[0]), f32::from_le_bytes(numbers[1]));
        self.constant + term + self.scale * factor * (2 * set - self.sum) as f32
    }
}

/// The bits of up to 256 values.
fn planes(values: &[i8]) -> Planes {
    let mut planes = Planes::default();
    for (at, eight) in values.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(eight.map(|value| value as u8));
        for (bit, plane) in planes.iter_mut().enumerate() {
            // The product gathers the lowest bits of eight bytes in its highest byte.
            let bits = ((eight >> bit) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            plane[at / 8] |= bits << (at % 8 * 8);
        }
    }
    planes
}

pub(super) unsafe fn portable(rows: Rows, wanted: &[u32], query: &Levels, scores: &mut Vec<f32>) {
    compare(rows, wanted, query, scores);
}

/// Appends the score of each wanted row. Compiled for the caller's instructions, so it is a loop: what iterators call is not.
#[inline(always)]
fn compare(rows: Rows, wanted: &[u32], query: &Levels, scores: &mut Vec<f32>) {
    for at in 0..wanted.len() {
        let row = rows.next(wanted, at);
        let (words, _) = row[..rows.bits()].as_chunks::<8>();
        let mut counts = [0; PLANES];
        for at in 0..words.len() {
            let (word, planes) = (u64::from_le_bytes(words[at]), &query.planes[at / 4]);
            for plane in 0..PLANES {
                counts[plane] += (word & planes[plane][at % 4]).count_ones() as i32;
            }
        }
        scores.push(query.score(counts[0] + 2 * counts[1] + 4 * counts[2] - 8 * counts[3], row));
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86::total;
    use super::{Levels, PLANE, PLANES, Rows};

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512bitalg")]
    pub(in crate::kernels) unsafe fn compare_bitalg(
        rows: Rows,
        wanted: &[u32],
        query: &Levels,
        scores: &mut Vec<f32>,
    ) {
        let (blocks, rest) = (rows.bits() / PLANE, rows.bits() % PLANE);
        let weights = [_mm256_set1_epi8(1), _mm256_set1_epi8(2), _mm256_set1_epi8(4), _mm256_set1_epi8(-8)];
        // Loops: what iterators call is not compiled for these instructions.
        for at in 0..wanted.len() {
            let row = rows.next(wanted, at);
            let mut sums = [_mm256_setzero_si256(); PLANES];
            for block in 0..query.planes.len() {
                let bytes = if block < blocks { u32::MAX } else { (1 << rest) - 1 };
                // SAFETY: the mask leaves out bytes behind the row's bits.
                let bits = unsafe { _mm256_maskz_loadu_epi8(bytes, row.as_ptr().add(PLANE * block).cast()) };
                for plane in 0..PLANES {
                    // SAFETY: a plane has 32 bytes.
                    let plane_bits =
                        unsafe { _mm256_loadu_si256(query.planes[block][plane].as_ptr().cast()) };
                    let counts = _mm256_popcnt_epi8(_mm256_and_si256(bits, plane_bits));
                    sums[plane] = _mm256_dpbusd_epi32(sums[plane], counts, weights[plane]);
                }
            }
            let pairs = (_mm256_add_epi32(sums[0], sums[1]), _mm256_add_epi32(sums[2], sums[3]));
            scores.push(query.score(total(_mm256_add_epi32(pairs.0, pairs.1)), row));
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(in crate::kernels) unsafe fn compare_avx2(
        rows: Rows,
        wanted: &[u32],
        query: &Levels,
        scores: &mut Vec<f32>,
    ) {
        super::compare(rows, wanted, query, scores);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kernels;
    use super::*;

    /// Compares two rows of `length` values, with factors 1 and 2 and terms 3 and 4 behind their bits, in turned order.
    #[track_caller]
    fn check(length: usize) {
        let values: Vec<i8> = (0..length).map(|at| (at * 7_919 % 15) as i8 - 7).collect();
        let stride = length / 8 + Rows::NUMBERS;
        let mut rows: Vec<u8> = (0..2 * stride).map(|at| (at * 7_919 % 251) as u8).collect();
        for (row, factor) in rows.chunks_exact_mut(stride).zip([1.0_f32, 2.0]) {
            row[length / 8..][..4].copy_from_slice(&factor.to_le_bytes());
            row[length / 8 + 4..].copy_from_slice(&(factor + 2.0).to_le_bytes());
        }
        let product = |row: usize| -> i32 {
            let sign = |at: usize| i32::from(rows[row * stride + at / 8] >> (at % 8) & 1) * 2 - 1;
            values.iter().enumerate().map(|(at, &value)| sign(at) * i32::from(value)).sum()
        };
        let expected = [2.0 * 0.5 * product(1) as f32 + 5.0, 0.5 * product(0) as f32 + 4.0];
        let query = Levels::new(&values, 0.5, 1.0);
        for (name, kernels) in Kernels::all() {
            let mut scores = Vec::new();
            kernels.signs(Rows { rows: &rows, stride }, &[1, 0], &query, &mut scores);
            assert_eq!(scores, expected, "{name}, {length} values");
        }
    }

    #[test]
    fn every_kernel_gives_the_product_with_the_signs() {
        [0, 64, 128, 192, 256, 320, 512, 768, 1_024, 32_768].into_iter().for_each(check);
    }
}
