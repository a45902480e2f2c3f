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

/// Rows of one bit for each value and, at their end, a factor and a term as [`Numbers`]. The lowest bit of each byte belongs
/// to the first of eight values.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    rows: &'a [u8],
    /// Values of a row, a multiple of eight.
    values: usize,
    /// Bytes of a row, a multiple of eight.
    stride: usize,
}

impl<'a> Rows<'a> {
    /// Rows of this many values, a multiple of eight.
    pub(crate) fn new(rows: &'a [u8], values: usize) -> Rows<'a> {
        Rows { rows, values, stride: Rows::stride(values) }
    }

    /// Bytes of a row of this many values.
    pub(crate) const fn stride(values: usize) -> usize {
        (values / 8 + Numbers::BYTES).next_multiple_of(8)
    }

    /// Bytes of a row's bits.
    pub(super) fn bits(self) -> usize {
        self.values / 8
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

/// What the product with a row's signs is multiplied by, and what is added then. Both are stored as bfloat16: their errors
/// are small beside those of signs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) factor: f32,
    pub(crate) term: f32,
}

impl Numbers {
    pub(crate) const BYTES: usize = 4;

    /// Writes them to the end of a row.
    pub(crate) fn write(self, row: &mut [u8]) {
        let bits = |value| u32::from(half::bf16::from_f32(value).to_bits());
        let at = row.len() - Numbers::BYTES;
        row[at..].copy_from_slice(&(bits(self.factor) << 16 | bits(self.term)).to_le_bytes());
    }

    /// Those at the end of a row.
    #[inline(always)]
    fn of(row: &[u8]) -> Numbers {
        let both = u32::from_le_bytes(row[row.len() - Numbers::BYTES..].as_chunks().0[0]);
        Numbers { factor: f32::from_bits(both & 0xFFFF_0000), term: f32::from_bits(both << 16) }
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
        let Numbers { factor, term } = Numbers::of(row);
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
        // A row's numbers may be in the last word. The query has no bits there.
        let (words, _) = row[..rows.bits().next_multiple_of(8)].as_chunks::<8>();
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
    use super::{AHEAD, Levels, PLANE, PLANES, Rows, prefetch};

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512bitalg,avx512vpopcntdq")]
    pub(in crate::kernels) unsafe fn compare_bitalg(
        rows: Rows,
        wanted: &[u32],
        query: &Levels,
        scores: &mut Vec<f32>,
    ) {
        let (eights, rest) =
            if rows.stride == PLANE { wanted.as_chunks::<8>() } else { (&[] as &[_], wanted) };
        compare_short(rows, eights, query, scores);
        compare_any(rows, rest, query, scores);
    }

    /// Appends the scores of rows of [`PLANE`] bytes with their numbers, eight at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
    fn compare_short(rows: Rows, wanted: &[[u32; 8]], query: &Levels, scores: &mut Vec<f32>) {
        // A row of 32 bytes has one block of bits.
        let Some(block) = query.planes.first() else { return };
        let mut planes = [_mm512_setzero_si512(); PLANES];
        for (plane, bits) in planes.iter_mut().zip(block) {
            // SAFETY: a plane has 32 bytes.
            *plane = _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) });
        }
        for at in 0..wanted.len() {
            if let Some(ahead) = wanted.get(at + AHEAD / 8) {
                for &row in ahead {
                    prefetch(rows.row(row), 1);
                }
            }
            let now = &wanted[at];
            // Ordered so that the sums come in the order of the rows.
            let pairs = [[0, 2], [1, 3], [4, 6], [5, 7]];
            let (mut both, mut sums) = ([_mm512_setzero_si512(); 4], [_mm512_setzero_si512(); 4]);
            for pair in 0..4 {
                let [low, high] = pairs[pair];
                let (low, high) = (rows.row(now[low]).as_ptr(), rows.row(now[high]).as_ptr());
                // SAFETY: both rows have 32 bytes.
                let (low, high) =
                    unsafe { (_mm256_loadu_si256(low.cast()), _mm256_loadu_si256(high.cast())) };
                both[pair] = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                sums[pair] = counted(both[pair], planes);
            }
            scores.extend_from_slice(&scored(both, sums, query));
        }
    }

    /// For each 64 bits the sum of the query's values whose bits are set.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn counted(bits: __m512i, planes: [__m512i; PLANES]) -> __m512i {
        let mut counts = [bits; PLANES];
        for plane in 0..PLANES {
            counts[plane] = _mm512_popcnt_epi64(_mm512_and_si512(bits, planes[plane]));
        }
        let ones = _mm512_add_epi64(counts[0], _mm512_slli_epi64::<1>(counts[1]));
        let fours = _mm512_sub_epi64(counts[2], _mm512_slli_epi64::<1>(counts[3]));
        _mm512_add_epi64(ones, _mm512_slli_epi64::<2>(fours))
    }

    /// The scores of eight rows, two in each of `rows`, whose numbers are their last 32 bits; `sums` are those of their words.
    #[target_feature(enable = "avx512f,avx512vl")]
    fn scored(rows: [__m512i; 4], sums: [__m512i; 4], query: &Levels) -> [f32; 8] {
        let halves = (neighbours(sums[0], sums[1]), neighbours(sums[2], sums[3]));
        let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(halves.0, halves.1);
        let odd = _mm512_shuffle_i64x2::<0b11_01_11_01>(halves.0, halves.1);
        let set = _mm512_cvtepi64_epi32(_mm512_add_epi64(even, odd));
        let product = _mm256_sub_epi32(_mm256_slli_epi32::<1>(set), _mm256_set1_epi32(query.sum));
        let last = _mm512_setr_epi32(7, 23, 15, 31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let first = _mm512_castsi512_si128(_mm512_permutex2var_epi32(rows[0], last, rows[1]));
        let second = _mm512_castsi512_si128(_mm512_permutex2var_epi32(rows[2], last, rows[3]));
        let numbers = _mm256_set_m128i(second, first);
        let factor = _mm256_castsi256_ps(_mm256_and_si256(numbers, _mm256_set1_epi32(!0xFFFF)));
        let term = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(numbers));
        let scale = _mm256_mul_ps(_mm256_set1_ps(query.scale), factor);
        let constant = _mm256_add_ps(_mm256_set1_ps(query.constant), term);
        let eight = _mm256_add_ps(constant, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(product)));
        let mut scores = [0.0; 8];
        // SAFETY: there are eight scores.
        unsafe { _mm256_storeu_ps(scores.as_mut_ptr(), eight) };
        scores
    }

    /// The sums of neighbours of 64 bits, those of `left` and `right` in turns.
    #[target_feature(enable = "avx512f")]
    fn neighbours(left: __m512i, right: __m512i) -> __m512i {
        _mm512_add_epi64(_mm512_unpacklo_epi64(left, right), _mm512_unpackhi_epi64(left, right))
    }

    /// Appends the scores of rows of any length, one at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512bitalg")]
    fn compare_any(rows: Rows, wanted: &[u32], query: &Levels, scores: &mut Vec<f32>) {
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

    const COUNT: usize = 19;

    /// Compares rows of `length` values, with factors from 1 and terms from 2 on, in turned order.
    #[track_caller]
    fn check(length: usize) {
        let values: Vec<i8> = (0..length).map(|at| (at * 7_919 % 15) as i8 - 7).collect();
        let stride = Rows::stride(length);
        let mut rows: Vec<u8> = (0..COUNT * stride).map(|at| (at * 7_919 % 251) as u8).collect();
        for (row, factor) in rows.chunks_exact_mut(stride).zip((1_u8..).map(f32::from)) {
            Numbers { factor, term: factor + 1.0 }.write(row);
        }
        let product = |row: usize| -> i32 {
            let sign = |at: usize| i32::from(rows[row * stride + at / 8] >> (at % 8) & 1) * 2 - 1;
            values.iter().enumerate().map(|(at, &value)| sign(at) * i32::from(value)).sum()
        };
        let wanted: Vec<u32> = (0..COUNT as u32).rev().collect();
        let score = |&row: &u32| {
            let factor = row as f32 + 1.0;
            0.5 * factor * product(row as usize) as f32 + factor + 2.0
        };
        let expected: Vec<f32> = wanted.iter().map(score).collect();
        let query = Levels::new(&values, 0.5, 1.0);
        for (name, kernels) in Kernels::all() {
            let mut scores = Vec::new();
            kernels.signs(Rows::new(&rows, length), &wanted, &query, &mut scores);
            assert_eq!(scores, expected, "{name}, {length} values");
        }
    }

    #[test]
    fn every_kernel_gives_the_product_with_the_signs() {
        [0, 8, 32, 64, 128, 192, 200, 224, 256, 288, 544, 768, 1_024, 32_768].into_iter().for_each(check);
    }
}
