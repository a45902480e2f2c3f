//! Numbers as integers of 24 bits in three slices of eight, which the tile registers of AMX multiply.
//!
//! A number is such an integer times the scale of its row or column. Rows and columns with a number that is infinite or NaN
//! give NaN.

use super::Processor;
use super::amx::{SLICES, STEP};
use super::matrix::{Aligned, PANEL};

/// Values of a row that one step multiplies: four in a word.
pub(super) const STEP_VALUES: usize = 4 * STEP;
/// Bytes of a row for one step.
pub(super) const STEP_BYTES: usize = SLICES * STEP_VALUES;
/// Words of a panel for one step.
const STEP_WORDS: usize = SLICES * STEP * PANEL;
/// The integer of the largest number of a row or column: its slices are 127, 127 and 120, so that rounding cannot exceed them.
pub(super) const LARGEST: f32 = 8_355_704.0;
/// What a product of upper slices is worth, in products of integers: the slices begin at bits 0, 8 and 16.
const UPPER: f32 = 4_294_967_296.0;

/// Weights of shape (depth, columns) in panels of slices. A panel holds steps of [`STEP_VALUES`] rows, padded with zeros. A
/// step holds [`STEP`] lines of upper slices, then those of middle and of lower ones. A line holds for each column the slices
/// of the rows `line`, `line + 16`, `line + 32` and `line + 48`.
#[derive(Debug, Clone)]
pub(super) struct SlicePanels {
    words: Aligned<u32>,
    /// What a sum of products of upper slices is worth in each column, for rows of scale 1. Padded to whole panels.
    pub(super) scales: Vec<f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl SlicePanels {
    /// Packs `weight` of shape (depth, columns), row after row.
    ///
    /// # Panics
    /// If the number of values differs, or the processor lacks AMX.
    pub(super) fn new(processor: Processor, weight: &[f32], depth: usize, columns: usize) -> Self {
        assert!(weight.len() == depth * columns && processor.has_amx());
        let mut largest = vec![0; columns];
        for row in weight.chunks_exact(columns.max(1)) {
            largest.iter_mut().zip(row).for_each(|(most, value)| *most = magnitude(*value).max(*most));
        }
        largest.resize(columns.next_multiple_of(PANEL), 0);
        let scales: Vec<Scale> = largest.into_iter().map(Scale::of).collect();
        let inverses: Vec<f32> = scales.iter().map(|scale| scale.inverse).collect();
        let steps = depth.div_ceil(STEP_VALUES);
        let mut words = Aligned::zeros(columns.div_ceil(PANEL) * steps * STEP_WORDS);
        for (at, words) in words.values_mut().chunks_exact_mut(STEP_WORDS).enumerate() {
            let (panel, row) = (at / steps * PANEL, at % steps * STEP_VALUES);
            let (rows, count) = ((depth - row).min(STEP_VALUES), (columns - panel).min(PANEL));
            let values = &weight[row * columns + panel..][..(rows - 1) * columns + count];
            let of = Columns { values, rows, count, stride: columns, inverses: &inverses[panel..][..PANEL] };
            // SAFETY: the processor has AMX, and so AVX-512, as the assertion above checks.
            unsafe { x86::slice_columns(&of, words) };
        }
        let scales = scales.into_iter().map(|scale| scale.scale * UPPER).collect();
        SlicePanels { words, scales, depth, columns }
    }

    pub(super) fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// The lines of a panel for some values of a row, which begin a step.
    pub(super) fn lines(&self, panel: usize, from: usize, to: usize) -> &[u32] {
        let first = panel * self.depth.div_ceil(STEP_VALUES);
        let (from, to) = (first + from / STEP_VALUES, first + to.div_ceil(STEP_VALUES));
        &self.words.values()[from * STEP_WORDS..to * STEP_WORDS]
    }
}

/// Some rows and at most [`PANEL`] columns of a matrix.
struct Columns<'a> {
    values: &'a [f32],
    /// At most [`STEP_VALUES`].
    rows: usize,
    count: usize,
    /// Values from one row to the next.
    stride: usize,
    /// What the values of each column are multiplied by.
    inverses: &'a [f32],
}

/// The bits of a number without its sign: as integers, they are in the order of magnitudes, then infinity, then NaN.
#[inline(always)]
fn magnitude(value: f32) -> u32 {
    value.to_bits() & 0x7fff_ffff
}

/// What makes numbers integers, and integers numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Scale {
    inverse: f32,
    scale: f32,
}

impl Scale {
    /// For numbers whose largest has this [`magnitude`]. Numbers that are all below 1e-30 become zeros.
    #[inline(always)]
    fn of(largest: u32) -> Scale {
        match f32::from_bits(largest) {
            value if value.is_finite() && value < 1e-30 => Scale { inverse: 0.0, scale: 0.0 },
            value if value.is_finite() => Scale { inverse: LARGEST / value, scale: value / LARGEST },
            _ => Scale { inverse: 0.0, scale: f32::NAN },
        }
    }
}

pub(super) use x86::slice_row;

/// On other architectures there is no [`super::Processor`], so nothing calls these.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use super::Columns;

    pub(in super::super) unsafe fn slice_row(_: &[f32], _: &mut [u8]) -> f32 {
        unreachable!("there is no Processor here")
    }

    pub(super) unsafe fn slice_columns(_: &Columns<'_>, _: &mut [u32]) {
        unreachable!("there is no Processor here")
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Columns, PANEL, SLICES, STEP, STEP_BYTES, STEP_VALUES, Scale};

    /// Values of a register.
    const LANES: usize = 16;
    /// Values of a word.
    const GROUP: usize = 4;

    /// Slices a part of a row into steps, padded with zeros. Returns the scale.
    ///
    /// # Safety
    /// The processor has AVX-512 F and BW.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in super::super) unsafe fn slice_row(row: &[f32], bytes: &mut [u8]) -> f32 {
        assert!(row.len().div_ceil(STEP_VALUES) * STEP_BYTES <= bytes.len());
        let mut most = _mm512_setzero_si512();
        let mut parts = row.chunks_exact(LANES);
        for part in &mut parts {
            // SAFETY: the part fills a register.
            most = _mm512_max_epu32(most, magnitudes(unsafe { _mm512_loadu_ps(part.as_ptr()) }));
        }
        let rest = parts.remainder();
        // SAFETY: the mask leaves out what the rest lacks.
        most = _mm512_max_epu32(most, magnitudes(unsafe { load_first(rest.len(), rest.as_ptr()) }));
        let Scale { inverse, scale } = Scale::of(_mm512_reduce_max_epu32(most));
        let inverse = _mm512_set1_ps(inverse);
        for (part, bytes) in row.chunks(STEP_VALUES).zip(bytes.chunks_exact_mut(STEP_BYTES)) {
            let mut integers = [_mm512_setzero_si512(); GROUP];
            for (at, integers) in integers.iter_mut().enumerate() {
                let (from, left) =
                    (part.as_ptr().wrapping_add(at * LANES), part.len().saturating_sub(at * LANES));
                // SAFETY: as above.
                *integers = _mm512_cvtps_epi32(_mm512_mul_ps(unsafe { load_first(left, from) }, inverse));
            }
            for (slice, bytes) in sliced(integers).into_iter().zip(bytes.chunks_exact_mut(STEP_VALUES)) {
                // SAFETY: there is room for a register.
                unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), slice) };
            }
        }
        scale
    }

    /// Slices rows of a panel into one step, padded with zeros.
    ///
    /// # Safety
    /// As [`slice_row`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn slice_columns(of: &Columns<'_>, words: &mut [u32]) {
        let Columns { values, rows, count, stride, inverses } = *of;
        assert!((rows - 1) * stride + count <= values.len() && inverses.len() == PANEL);
        assert!(words.len() == SLICES * STEP * PANEL);
        for (line, column) in (0..STEP).flat_map(|line| (0..PANEL).step_by(LANES).map(move |at| (line, at))) {
            let mut integers = [_mm512_setzero_si512(); GROUP];
            for (at, integers) in integers.iter_mut().enumerate() {
                let row = line + at * STEP;
                let left = if row < rows { count.saturating_sub(column) } else { 0 };
                let from = values.as_ptr().wrapping_add(row * stride + column);
                // SAFETY: the mask leaves out what the row lacks; there is an inverse for each column.
                unsafe {
                    let inverse = _mm512_loadu_ps(inverses.as_ptr().add(column));
                    *integers = _mm512_cvtps_epi32(_mm512_mul_ps(load_first(left, from), inverse));
                }
            }
            for (slice, words) in sliced(integers).into_iter().zip(words.chunks_exact_mut(STEP * PANEL)) {
                let to = words[line * PANEL + column..][..LANES].as_mut_ptr();
                // SAFETY: there is room for a register.
                unsafe { _mm512_storeu_si512(to.cast(), slice) };
            }
        }
    }

    /// Loads the first `count` values, if not all; the rest is zero.
    ///
    /// # Safety
    /// The values exist.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_first(count: usize, from: *const f32) -> __m512 {
        let first = ((1_u32 << count.min(LANES)) - 1) as __mmask16;
        // SAFETY: the mask leaves out what does not exist.
        unsafe { _mm512_maskz_loadu_ps(first, from) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn magnitudes(values: __m512) -> __m512i {
        _mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(0x7fff_ffff))
    }

    /// The upper, middle and lower slices of integers of 24 bits with a sign. Each word has the slices of four integers, one
    /// from each register.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn sliced(integers: [__m512i; GROUP]) -> [__m512i; SLICES] {
        const ODD_BYTES: __mmask64 = 0xaaaa_aaaa_aaaa_aaaa;
        const ODD_PAIRS: __mmask32 = 0xaaaa_aaaa;
        // Slices have a sign: where one would be 128 or more, it is 256 less, and the next one is one more. Adding 128 to each
        // slice carries that one. The slices are then 128 too large, as bytes without a sign.
        let carry = _mm512_set1_epi32(0x0080_8080);
        let [first, second, third, fourth] = integers;
        let (first, second) = (_mm512_add_epi32(first, carry), _mm512_add_epi32(second, carry));
        let (third, fourth) = (_mm512_add_epi32(third, carry), _mm512_add_epi32(fourth, carry));
        // Bytes 0 and 2, then bytes 1 and 3, of two integers.
        let even = _mm512_mask_blend_epi8(ODD_BYTES, first, _mm512_slli_epi32::<8>(second));
        let odd = _mm512_mask_blend_epi8(ODD_BYTES, _mm512_srli_epi32::<8>(first), second);
        let even_after = _mm512_mask_blend_epi8(ODD_BYTES, third, _mm512_slli_epi32::<8>(fourth));
        let odd_after = _mm512_mask_blend_epi8(ODD_BYTES, _mm512_srli_epi32::<8>(third), fourth);
        let lower = _mm512_mask_blend_epi16(ODD_PAIRS, even, _mm512_slli_epi32::<16>(even_after));
        let middle = _mm512_mask_blend_epi16(ODD_PAIRS, odd, _mm512_slli_epi32::<16>(odd_after));
        let upper = _mm512_mask_blend_epi16(ODD_PAIRS, _mm512_srli_epi32::<16>(even), even_after);
        let less = _mm512_set1_epi8(-128);
        [_mm512_xor_si512(upper, less), _mm512_xor_si512(middle, less), _mm512_xor_si512(lower, less)]
    }
}
