//! Quantised rows times a panel of bytes in vector registers: by VNNI, or by 16-bit products of AVX2. Both give the same
//! sums.

use super::Processor;
use super::blocking::Ahead;
use super::lanes::Lanes;
use super::tiles::Tile;

/// Byte products that one sum takes at a time.
pub(super) const GROUP: usize = 4;

/// The processor whose kernels multiply bytes: one without AVX-512 VNNI does it as one with AVX2.
pub(super) fn processor_for_bytes(processor: Processor) -> Processor {
    if processor.has_vnni() { processor } else { Processor::Avx2 }
}

/// Bytes that a value of a quantised row takes, 0 to 255: two on processors that multiply no bytes.
pub(super) fn bytes_of_a_value(processor: Processor) -> usize {
    if processor.has_vnni() { 1 } else { 2 }
}

/// Quantises a row for [`Factors`]: `value * inverse + zero`, rounded, padded to a whole group.
///
/// # Panics
/// If `bytes` has no room for it.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn quantise<L: Lanes>(row: &[f32], bytes: &mut [u8], inverse: f32, zero: f32) {
    let padded = row.len().next_multiple_of(GROUP);
    // SAFETY: as the caller promises; there is room.
    unsafe {
        if L::COUNT == 16 {
            x86::to_bytes(row, &mut bytes[..padded], inverse, zero);
        } else {
            x86::to_words(row, &mut bytes[..2 * padded], inverse, zero);
        }
    }
}

/// A few quantised rows and the panel that multiplies them.
pub(super) struct Factors<'a> {
    /// Rows with as many values as the panel has rows, padded to whole groups, by [`quantise`] with the same lanes.
    pub(super) rows: *const u8,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    pub(super) panel: &'a [i8],
    pub(super) into: &'a mut Tile,
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies `count` rows, 1 to [`Lanes::TILE`].
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and VNNI if it has 16 lanes. The rows exist.
    #[inline(always)]
    pub(super) unsafe fn multiply<L: Lanes>(self, count: usize) {
        macro_rules! by_rows {
            ($($few:literal)+, $($many:literal)+) => {
                match (count, L::COUNT) {
                    // SAFETY: as the caller promises.
                    $(($few, 16) => unsafe { x86::tile_of_bytes::<$few>(self) },)+
                    $(($many, 16) => unsafe { x86::tile_of_bytes::<$many>(self) },)+
                    $(($few, _) => unsafe { x86::tile_of_words::<$few>(self) },)+
                    _ => unreachable!("a tile has as many rows as registers allow"),
                }
            };
        }
        by_rows!(1 2 3 4 5 6, 7 8 9 10 11 12 13 14);
    }
}

/// On other architectures there is no [`Processor`], so nothing calls these.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use super::Factors;

    pub(super) unsafe fn tile_of_bytes<const ROWS: usize>(_: Factors<'_>) {
        unreachable!("there is no Processor here")
    }

    pub(super) unsafe fn tile_of_words<const ROWS: usize>(_: Factors<'_>) {
        unreachable!("there is no Processor here")
    }

    pub(super) unsafe fn to_bytes(_: &[f32], _: &mut [u8], _: f32, _: f32) {
        unreachable!("there is no Processor here")
    }

    pub(super) unsafe fn to_words(_: &[f32], _: &mut [u8], _: f32, _: f32) {
        unreachable!("there is no Processor here")
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::lanes::{Eight, Lanes, Sixteen};
    use super::super::matrix::PANEL;
    use super::{Factors, GROUP};

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn tile_of_bytes<const ROWS: usize>(factors: Factors<'_>) {
        let Factors { rows, stride, panel, into, ahead } = factors;
        let mut ahead = ahead.spread(panel.len() / (PANEL * GROUP));
        // All loops over rows have a length that is known here: only then the sums stay in registers.
        let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
        // SAFETY: a line has 128 bytes; every row has as many groups of four as the panel has lines; a row of sums has
        // 32 values.
        unsafe {
            for (at, line) in panel.chunks_exact(PANEL * GROUP).enumerate() {
                ahead.fetch::<Sixteen>(at);
                let left = _mm512_loadu_si512(line.as_ptr().cast());
                let right = _mm512_loadu_si512(line.as_ptr().add(64).cast());
                for (row, sums) in sums.iter_mut().enumerate() {
                    let group = rows.add(row * stride + at * GROUP).cast::<i32>().read_unaligned();
                    let group = _mm512_set1_epi32(group);
                    sums[0] = _mm512_dpbusd_epi32(sums[0], group, left);
                    sums[1] = _mm512_dpbusd_epi32(sums[1], group, right);
                }
            }
            for (row, sums) in sums.into_iter().enumerate() {
                let into = into.0[row].as_mut_ptr();
                _mm512_storeu_si512(into.cast(), sums[0]);
                _mm512_storeu_si512(into.add(16).cast(), sums[1]);
            }
        }
    }

    /// Columns that are multiplied at a time: their sums, two for each, take 12 of 16 registers.
    const COLUMNS: usize = 8;

    #[inline(never)]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tile_of_words<const ROWS: usize>(factors: Factors<'_>) {
        let Factors { rows, stride, panel, into, ahead } = factors;
        let mut ahead = ahead.divided(PANEL / COLUMNS);
        for from in (0..PANEL).step_by(COLUMNS) {
            ahead.fetch_share::<Eight>();
            // Of each column two sums: of the first two products of a group, and of the last two.
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
            // SAFETY: as above; a group of a row has eight bytes.
            unsafe {
                for (at, line) in panel.chunks_exact(PANEL * GROUP).enumerate() {
                    let line = line.as_ptr().add(from * GROUP).cast();
                    let left = _mm256_cvtepi8_epi16(_mm_loadu_si128(line));
                    let right = _mm256_cvtepi8_epi16(_mm_loadu_si128(line.add(1)));
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let group = rows.add(row * stride + at * 2 * GROUP).cast::<i64>().read_unaligned();
                        let group = _mm256_set1_epi64x(group);
                        sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(group, left));
                        sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(group, right));
                    }
                }
                for (row, [left, right]) in sums.into_iter().enumerate() {
                    // The additions leave the columns 0, 1, 4, 5, 2, 3, 6, 7.
                    let sums = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(left, right));
                    _mm256_storeu_si256(into.0[row].as_mut_ptr().add(from).cast(), sums);
                }
            }
        }
    }

    /// # Safety
    /// The processor has AVX-512 F. `bytes` has the length of the row, padded to a whole group.
    #[inline(always)]
    pub(super) unsafe fn to_bytes(row: &[f32], bytes: &mut [u8], inverse: f32, zero: f32) {
        let (whole, rest) = (row.len() / Sixteen::COUNT * Sixteen::COUNT, row.len() % Sixteen::COUNT);
        bytes[whole..].fill(0);
        // SAFETY: as the caller promises.
        unsafe {
            let (inverse, zero) = (_mm512_set1_ps(inverse), _mm512_set1_ps(zero));
            for at in (0..whole).step_by(Sixteen::COUNT) {
                let values = _mm512_loadu_ps(row.as_ptr().add(at));
                _mm_storeu_si128(bytes.as_mut_ptr().add(at).cast(), sixteen_bytes(values, inverse, zero));
            }
            if rest > 0 {
                let some = (1 << rest) - 1;
                let values = _mm512_maskz_loadu_ps(some, row.as_ptr().add(whole));
                let mut last = [0_u8; 16];
                _mm_storeu_si128(last.as_mut_ptr().cast(), sixteen_bytes(values, inverse, zero));
                bytes[whole..row.len()].copy_from_slice(&last[..rest]);
            }
        }
    }

    #[inline(always)]
    unsafe fn sixteen_bytes(values: __m512, inverse: __m512, zero: __m512) -> __m128i {
        // SAFETY: as the caller promises.
        unsafe {
            let whole = _mm512_cvtps_epi32(_mm512_fmadd_ps(values, inverse, zero));
            _mm512_cvtusepi32_epi8(_mm512_max_epi32(whole, _mm512_setzero_si512()))
        }
    }

    /// # Safety
    /// The processor has AVX2 and FMA. `bytes` has twice the length of the row, padded to a whole group.
    #[inline(always)]
    pub(super) unsafe fn to_words(row: &[f32], bytes: &mut [u8], inverse: f32, zero: f32) {
        let (whole, rest) = (row.len() / Eight::COUNT * Eight::COUNT, row.len() % Eight::COUNT);
        bytes[2 * whole..].fill(0);
        // SAFETY: as the caller promises.
        unsafe {
            let (inverse, zero) = (_mm256_set1_ps(inverse), _mm256_set1_ps(zero));
            for at in (0..whole).step_by(Eight::COUNT) {
                let values = _mm256_loadu_ps(row.as_ptr().add(at));
                _mm_storeu_si128(bytes.as_mut_ptr().add(2 * at).cast(), eight_words(values, inverse, zero));
            }
            if rest > 0 {
                let mut values = [0_f32; Eight::COUNT];
                values[..rest].copy_from_slice(&row[whole..]);
                let mut last = [0_u8; 16];
                let words = eight_words(_mm256_loadu_ps(values.as_ptr()), inverse, zero);
                _mm_storeu_si128(last.as_mut_ptr().cast(), words);
                bytes[2 * whole..2 * row.len()].copy_from_slice(&last[..2 * rest]);
            }
        }
    }

    /// Eight values of 0 to 255 in 16 bits each.
    #[inline(always)]
    unsafe fn eight_words(values: __m256, inverse: __m256, zero: __m256) -> __m128i {
        // SAFETY: as the caller promises.
        unsafe {
            let whole = _mm256_cvtps_epi32(_mm256_fmadd_ps(values, inverse, zero));
            let whole =
                _mm256_max_epi32(_mm256_min_epi32(whole, _mm256_set1_epi32(255)), _mm256_setzero_si256());
            _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::amx;
    use super::super::lanes::Work;
    use super::super::matrix::{Aligned, PANEL};
    use super::*;

    /// Rows of whole numbers from 0 to 255 and the bytes of a panel, group by group.
    #[derive(Debug, Clone)]
    struct Case {
        rows: Vec<Vec<f32>>,
        panel: Vec<i8>,
    }

    impl Case {
        /// The sum of a row and a column, one product after the other.
        fn sum(&self, row: usize, column: usize) -> i32 {
            let weight = |k: usize| self.panel[(k / GROUP * PANEL + column) * GROUP + k % GROUP];
            self.rows[row].iter().enumerate().map(|(k, value)| *value as i32 * i32::from(weight(k))).sum()
        }
    }

    struct Sums<'a> {
        case: &'a Case,
        stride: usize,
    }

    impl Work for Sums<'_> {
        type Output = Option<Tile>;

        #[inline(always)]
        unsafe fn run<L: Lanes>(self) -> Option<Tile> {
            let Sums { case: Case { rows, panel }, stride } = self;
            if rows.len() > L::TILE {
                return None;
            }
            let mut copies: Aligned<u8> = Aligned::zeros(rows.len() * stride);
            let mut sums = Tile::ZEROS;
            // SAFETY: the processor has the instructions, as the caller promises; all rows are quantised.
            unsafe {
                for (row, copy) in rows.iter().zip(copies.values_mut().chunks_exact_mut(stride)) {
                    quantise::<L>(row, copy, 1.0, 0.0);
                }
                let rows_at = copies.values().as_ptr();
                let ahead = Ahead::nothing();
                Factors { rows: rows_at, stride, panel, into: &mut sums, ahead }.multiply::<L>(rows.len());
            }
            Some(sums)
        }
    }

    fn check(case: &Case) {
        for processor in Processor::all().into_iter().map(processor_for_bytes) {
            let stride = amx::stride(case.rows[0].len() * bytes_of_a_value(processor));
            let Some(sums) = processor.run(Sums { case, stride }) else { continue };
            for (row, column) in (0..case.rows.len()).flat_map(|row| (0..PANEL).map(move |it| (row, it))) {
                let (got, expected) = (sums.0[row][column].cast_signed(), case.sum(row, column));
                assert_eq!(got, expected, "{processor:?}: row {row}, column {column}");
            }
        }
    }

    fn cases() -> impl Strategy<Value = Case> {
        let value = prop_oneof![Just(255_u8), any::<u8>()].prop_map(f32::from);
        let weight = prop_oneof![Just(127_i8), Just(-127), -127..=127_i8];
        (1..=14_usize, 1..70_usize).prop_flat_map(move |(rows, depth)| {
            let rows = prop::collection::vec(prop::collection::vec(value.clone(), depth), rows);
            let weights = depth.next_multiple_of(GROUP) * PANEL;
            (rows, prop::collection::vec(weight.clone(), weights))
                .prop_map(|(rows, panel)| Case { rows, panel })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sums_of_bytes_are_exact(case in cases()) {
            check(&case);
        }
    }
}
