//! Bf16 numbers in words of 32 bits: panels of pairs, and rows that multiply them.

use super::Processor;
use super::matrix::{Aligned, PANEL};

/// Words of a copied row at most.
pub(super) const WORDS: usize = 1024;
/// Words from one copied row to the next. Padded, so that the rows of a tile do not compete for one set of the L1 cache.
pub(super) const STRIDE: usize = WORDS + 16;

/// Bf16 weights of shape (depth, columns) in panels of [`PANEL`] columns. A panel holds pairs of rows; in a pair, column
/// follows column, the first row's value in a word's lower half. Padding is zero.
#[derive(Debug, Clone)]
pub(super) struct PairPanels {
    words: Aligned<u32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl PairPanels {
    /// Rounds and packs `weight` of shape (depth, columns), row after row.
    ///
    /// # Panics
    /// If the number of values differs.
    pub(super) fn new(weight: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(weight.len(), depth * columns);
        let mut panels = PairPanels::empty();
        panels.reshape(depth, columns);
        weight.chunks_exact(columns).enumerate().for_each(|(row, values)| panels.set_row(row, values));
        panels
    }

    /// Panels without a shape; [`PairPanels::reshape`] gives them one.
    pub(super) fn empty() -> Self {
        PairPanels { words: Aligned::zeros(0), depth: 0, columns: 0 }
    }

    /// Changes the shape; the contents are then unspecified.
    pub(super) fn reshape(&mut self, depth: usize, columns: usize) {
        (self.depth, self.columns) = (depth, columns);
        self.words.reserve(self.count() * self.pairs() * PANEL);
    }

    pub(super) fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    pub(super) fn pairs(&self) -> usize {
        self.depth.div_ceil(2)
    }

    /// The pairs `from..to` of a panel, [`PANEL`] words each.
    pub(super) fn lines(&self, panel: usize, from: usize, to: usize) -> &[u32] {
        let first = panel * self.pairs();
        &self.words.values()[(first + from) * PANEL..(first + to) * PANEL]
    }

    /// Writes one column from its pairs of rows.
    #[inline(always)]
    pub(super) fn set_column(&mut self, column: usize, pairs: &[u32]) {
        let (panel, inside) = (column / PANEL, column % PANEL);
        let (first, count) = (panel * self.pairs() * PANEL, self.pairs() * PANEL);
        let panel = &mut self.words.values_mut()[first..first + count];
        panel.chunks_exact_mut(PANEL).zip(pairs).for_each(|(line, pair)| line[inside] = *pair);
    }

    /// Rounds and writes one row. The rows of a pair must be written in order: the first one clears the second one.
    #[inline(always)]
    pub(super) fn set_row(&mut self, row: usize, values: &[f32]) {
        let pairs = self.pairs();
        for (panel, part) in values.chunks(PANEL).enumerate() {
            let line = &mut self.words.values_mut()[(panel * pairs + row / 2) * PANEL..][..PANEL];
            let (written, padding) = line.split_at_mut(part.len());
            match row % 2 {
                0 => written.iter_mut().zip(part).for_each(|(word, value)| *word = nearest(*value)),
                _ => written.iter_mut().zip(part).for_each(|(word, value)| *word |= nearest(*value) << 16),
            }
            padding.fill(0);
        }
    }
}

/// What a word of a copied row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowWord {
    /// A pair of bf16 numbers, for AVX512-BF16.
    Pair,
    /// A bf16 number that is widened to f32.
    Widened,
}

impl RowWord {
    pub(super) fn of(processor: Processor) -> Self {
        if processor.has_bf16() { RowWord::Pair } else { RowWord::Widened }
    }

    /// The most pairs that a copied row holds.
    pub(super) fn most_pairs(self) -> usize {
        match self {
            RowWord::Pair => WORDS,
            RowWord::Widened => WORDS / 2,
        }
    }

    /// Rounds a part of a row, at most [`RowWord::most_pairs`], into [`STRIDE`] words.
    ///
    /// # Safety
    /// The processor has AVX512-BF16 if words are pairs.
    #[inline(always)]
    pub(super) unsafe fn round(self, values: &[f32], words: &mut [u32]) {
        match self {
            // SAFETY: as the caller promises.
            RowWord::Pair => unsafe { to_pairs(values, words) },
            RowWord::Widened => to_widened(values, words),
        }
    }

    /// Rounds values to pairs for [`PairPanels::set_column`]. There is room for whole registers of 16 pairs.
    ///
    /// # Safety
    /// As [`RowWord::round`].
    #[inline(always)]
    pub(super) unsafe fn pairs(self, values: &[f32], pairs: &mut [u32]) {
        match self {
            // SAFETY: as the caller promises.
            RowWord::Pair => unsafe { to_pairs(values, pairs) },
            RowWord::Widened => {
                for (pair, two) in pairs.iter_mut().zip(values.chunks(2)) {
                    *pair = nearest(two[0]) | two.get(1).map_or(0, |second| nearest(*second) << 16);
                }
            }
        }
    }
}

/// The bits of the nearest bf16 number. Of two equally near, the even one; a NaN stays one.
#[inline(always)]
pub(super) fn nearest(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if value.is_nan() { (bits >> 16) | 0x40 } else { rounded }
}

/// Rounds a part of a row to bf16 and widens it to f32 again, padded to a whole pair.
#[inline(always)]
fn to_widened(row: &[f32], words: &mut [u32]) {
    words[row.len()] = 0;
    for (word, value) in words.iter_mut().zip(row) {
        *word = nearest(*value) << 16;
    }
}

/// On other architectures there is no [`Processor`], so nothing calls this.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn to_pairs(_: &[f32], _: &mut [u32]) {
    unreachable!("there is no Processor here")
}

#[cfg(target_arch = "x86_64")]
use x86::to_pairs;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Rounds a part of a row to pairs of bf16 numbers, padded with zeros to whole registers.
    ///
    /// # Safety
    /// The processor has AVX-512 F and BF16.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn to_pairs(row: &[f32], words: &mut [u32]) {
        assert!(row.len().div_ceil(32) * 16 <= words.len());
        let first = |count: usize| ((1_u32 << count.min(16)) - 1) as __mmask16;
        for (part, words) in row.chunks(32).zip(words.chunks_exact_mut(16)) {
            // SAFETY: the masks leave out what a part lacks, and there are 16 words.
            unsafe {
                let low = _mm512_maskz_loadu_ps(first(part.len()), part.as_ptr());
                let more = part.len().saturating_sub(16);
                let high = _mm512_maskz_loadu_ps(first(more), part.as_ptr().wrapping_add(16));
                let both: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(high, low));
                _mm512_storeu_si512(words.as_mut_ptr().cast(), both);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;

    /// Rounded by candle.
    fn rounded(values: &[f32]) -> Vec<f32> {
        let rounded = Tensor::new(values, &Device::Cpu).and_then(|it| it.to_dtype(DType::BF16));
        rounded.and_then(|it| it.to_dtype(DType::F32)).unwrap().to_vec1().unwrap()
    }

    #[test]
    fn rounding_is_to_the_nearest_and_of_two_to_the_even() {
        let tie = 1.0 + 1.0 / 256.0;
        let values = [0.0, -0.0, 1.0, tie, -tie, tie + 1.0 / 128.0, 3.1, f32::MAX, f32::INFINITY, 1e-3, -7e8];
        for value in values.into_iter().chain((0..2003).map(|at| at as f32 / 1001.0 - 1.0)) {
            let got = f32::from_bits(nearest(value) << 16);
            assert_eq!(got.to_bits(), rounded(&[value])[0].to_bits(), "{value}");
        }
        assert_eq!(f32::from_bits(nearest(tie) << 16), 1.0);
        for nan in [f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
            assert!(f32::from_bits(nearest(nan) << 16).is_nan());
        }
    }
}
