//! Products of f32 rows with packed panels in the tile registers of AMX.
//!
//! A number is the sum of three bf16 numbers: its upper, middle and lower third. A product of two numbers is then six
//! products of bf16 numbers, added in f32; the three smallest of nine are about as small as f32's rounding (Henry, Tang and
//! Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations", 2019). Rows and
//! panels are split while they are copied, so that weights take no more memory than f32 and serve products of few rows too.
//! Numbers of a row over 3.39e38, the largest of bf16, give NaN.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::Cores;
use super::amx::{self, Registers, STEP};
use super::blocking::{self, Piece};
use super::elementwise::Moments;
use super::finish::{Finish, TilePosition};
use super::float::FloatSums;
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Panels, Target};
use super::norm::Input;
use super::tiles::{Tile, Word};
use super::walk::{Operands, Walk};

/// The most steps of a copied row: a longer row is multiplied in parts.
const STEPS: usize = 32;
/// Values of a row that one step multiplies.
const STEP_VALUES: usize = 2 * STEP;
/// Words of a row for one step: pairs of upper thirds, then of middle and of lower ones.
const STEP_WORDS: usize = 3 * STEP;
/// The fewest rows for which splitting a panel pays.
const FEWEST_ROWS: usize = 24;

/// The rows of a block, and a panel, as thirds.
struct Block {
    words: Aligned<u32>,
    panel: Aligned<u32>,
    moments: Vec<Moments>,
    /// A part of one normalised row before it is split.
    row: Vec<f32>,
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> =
        RefCell::new(Block {
            words: Aligned::zeros(0),
            panel: Aligned::zeros(0),
            moments: Vec::new(),
            row: Vec::new(),
        });
}

/// Whether the processor has AMX, and a product of `rows` rows is faster with it.
pub(super) fn pays(cores: Cores, rows: usize) -> bool {
    cores.processor.has_amx() && rows >= FEWEST_ROWS
}

/// Writes `input * panels` with the epilogue to `target`, as [`super::float::multiply`] does; for processors with AMX.
///
/// # Panics
/// If the shapes do not fit, a row has no values, or the processor lacks the instructions.
pub(super) fn multiply(cores: Cores, input: Input<'_>, panels: &Panels, target: Target, finish: Finish<'_>) {
    let Cores { processor, threads } = cores;
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    assert!(panels.depth > 0 && processor.has_amx());
    let depths = blocking::even_steps(panels.depth, panels.depth.div_ceil(STEPS * STEP_VALUES), STEP_VALUES);
    let most = depths.iter().map(|(from, to)| (to - from).div_ceil(STEP_VALUES)).max().unwrap_or(0);
    let stride = amx::stride(most * STEP_WORDS * 4) / 4;
    let blocks = amx::blocks(rows.rows, threads, 4 * stride);
    let product = Product { input, panels, target, finish, depths, stride };
    let run = |part: Piece| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            let rows = part.rows.1 - part.rows.0;
            block.words.reserve(rows.next_multiple_of(amx::ROWS) * stride);
            block.panel.reserve(most * STEP_WORDS * PANEL);
            block.moments.resize(rows, Moments::default());
            block.row.resize(most * STEP_VALUES, 0.0);
            processor.run_wide(PartOf { product: &product, part, block });
        });
    };
    let parts = blocking::parts(rows.rows, panels.count(), threads, blocks);
    match threads {
        0 | 1 => parts.into_iter().for_each(run),
        _ => parts.into_par_iter().for_each(run),
    }
}

struct Product<'a> {
    input: Input<'a>,
    panels: &'a Panels,
    target: Target,
    finish: Finish<'a>,
    /// The values of each part of a row.
    depths: Vec<(usize, usize)>,
    /// Words from one copied row to the next.
    stride: usize,
}

struct PartOf<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a mut Block,
}

impl Work for PartOf<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let PartOf { product, part, block } = self;
        let Product { panels, target, finish, .. } = *product;
        // SAFETY: the processor has the instructions of `L`, as the caller promises, and tile registers, which `multiply`
        // checked. The block has `stride` words for each row of a tile, as many as a part of a row needs. The caller of
        // `multiply` holds the target, and no other part has these rows and panels.
        unsafe {
            let registers = Registers::configure();
            product.input.measure::<L>(part.rows.0..part.rows.1, &mut block.moments);
            for (at, (from, to)) in product.depths.iter().enumerate() {
                product.copy::<L>(part.rows.0..part.rows.1, *from..*to, block);
                let walk = Walk { target, finish, part, is_first: *from == 0, is_last: *to == panels.depth };
                walk.run::<L>(&registers, &mut Depth { product, part, block, at });
            }
        }
    }
}

/// One depth block of a walk.
struct Depth<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a mut Block,
    /// The depth block's index.
    at: usize,
}

impl Depth<'_> {
    /// Words of a panel that is split.
    fn words(&self) -> usize {
        let (from, to) = self.product.depths[self.at];
        (to - from).div_ceil(STEP_VALUES) * STEP_WORDS * PANEL
    }
}

impl Operands for Depth<'_> {
    type Sums<'a>
        = FloatSums<'a>
    where
        Self: 'a;

    fn word(&self) -> Word {
        Word::Thirds
    }

    #[inline(always)]
    unsafe fn prepare(&mut self, panel: usize) {
        let (words, (from, to)) = (self.words(), self.product.depths[self.at]);
        let split = &mut self.block.panel.values_mut()[..words];
        // SAFETY: as the caller promises.
        unsafe { x86::split_lines(self.product.panels.rows(panel, from, to), split) };
    }

    #[inline(always)]
    fn panel(&self, _: usize) -> &[u32] {
        &self.block.panel.values()[..self.words()]
    }

    #[inline(always)]
    fn next(&self, panel: usize) -> &[u32] {
        let Product { panels, depths, .. } = self.product;
        let next = blocking::after(self.part, panel, depths, self.at);
        let values = next.map_or(&[][..], |(panel, (from, to))| panels.rows(panel, from, to));
        // SAFETY: numbers of 32 bits are valid as words.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }

    #[inline(always)]
    fn rows(&self, top: usize) -> (*const u8, usize) {
        let stride = self.product.stride;
        (self.block.words.values()[top * stride..].as_ptr().cast(), 4 * stride)
    }

    #[inline(always)]
    fn sums<'a>(&'a self, tile: &'a Tile, _: usize, _: TilePosition) -> FloatSums<'a> {
        FloatSums(tile)
    }
}

impl Product<'_> {
    /// Copies some values of some rows, split, into the block.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, AVX-512 F and BF16.
    #[inline(always)]
    unsafe fn copy<L: Lanes>(&self, rows: Range<usize>, columns: Range<usize>, block: &mut Block) {
        let values = &mut block.row[..columns.len()];
        let copies = block.words.values_mut().chunks_exact_mut(self.stride);
        for ((row, moments), words) in rows.zip(&block.moments).zip(copies) {
            // SAFETY: as the caller promises.
            unsafe {
                match self.input {
                    Input::Plain(rows) => x86::split(&rows.row(row)[columns.clone()], words),
                    Input::Normalised(..) => {
                        self.input.read::<L>(row, columns.clone(), *moments, values);
                        x86::split(values, words);
                    }
                }
            }
        }
    }
}

/// On other architectures there is no [`super::Processor`], so nothing calls these.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    pub(super) unsafe fn split(_: &[f32], _: &mut [u32]) {
        unreachable!("there is no Processor here")
    }

    pub(super) unsafe fn split_lines(_: &[f32], _: &mut [u32]) {
        unreachable!("there is no Processor here")
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{PANEL, STEP, STEP_VALUES, STEP_WORDS};

    /// Values of a register.
    const LANES: usize = 16;

    /// Splits a part of a row into steps of pairs, padded with zeros.
    ///
    /// # Safety
    /// The processor has AVX-512 F and BF16.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn split(row: &[f32], words: &mut [u32]) {
        assert!(row.len().div_ceil(STEP_VALUES) * STEP_WORDS <= words.len());
        let first = |count: usize| ((1_u32 << count.min(LANES)) - 1) as __mmask16;
        for (part, words) in row.chunks(STEP_VALUES).zip(words.chunks_exact_mut(STEP_WORDS)) {
            // SAFETY: the masks leave out what a part lacks, and there are words for three registers.
            unsafe {
                let mut one = _mm512_maskz_loadu_ps(first(part.len()), part.as_ptr());
                let more = part.len().saturating_sub(LANES);
                let mut other = _mm512_maskz_loadu_ps(first(more), part.as_ptr().wrapping_add(LANES));
                for third in words.chunks_exact_mut(STEP) {
                    let both: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(other, one));
                    _mm512_storeu_si512(third.as_mut_ptr().cast(), both);
                    one = _mm512_sub_ps(one, widened(words_of(_mm512_castsi512_si256(both))));
                    other = _mm512_sub_ps(other, widened(words_of(_mm512_extracti64x4_epi64::<1>(both))));
                }
            }
        }
    }

    /// Splits lines of a panel into steps: [`STEP`] lines of pairs of upper thirds, then of middle and lower ones, padded
    /// with zeros. Thirds are cut off instead of rounded, which takes half of the instructions: each holds the next eight
    /// or more of a number's 24 bits.
    ///
    /// # Safety
    /// As [`split`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn split_lines(lines: &[f32], words: &mut [u32]) {
        let upper = _mm512_set1_epi32(-0x1_0000);
        for (lines, words) in
            lines.chunks(STEP_VALUES * PANEL).zip(words.chunks_exact_mut(STEP_WORDS * PANEL))
        {
            let pairs = lines.len().div_ceil(2 * PANEL);
            for third in words.chunks_exact_mut(STEP * PANEL) {
                third[pairs * PANEL..].fill(0);
            }
            for (pair, lines) in lines.chunks(2 * PANEL).enumerate() {
                for column in (0..PANEL).step_by(LANES) {
                    // SAFETY: lines have `PANEL` values, and words have three times `STEP` lines of as many.
                    unsafe {
                        let mut even = _mm512_loadu_ps(lines.as_ptr().add(column));
                        let mut odd = match lines.len() > PANEL {
                            true => _mm512_loadu_ps(lines.as_ptr().add(PANEL + column)),
                            false => _mm512_setzero_ps(),
                        };
                        for third in words.chunks_exact_mut(STEP * PANEL) {
                            let low = _mm512_castps_si512(even);
                            let high = _mm512_and_si512(_mm512_castps_si512(odd), upper);
                            let both = _mm512_or_si512(_mm512_srli_epi32::<16>(low), high);
                            _mm512_storeu_si512(third.as_mut_ptr().add(pair * PANEL + column).cast(), both);
                            even = _mm512_sub_ps(even, _mm512_castsi512_ps(_mm512_and_si512(low, upper)));
                            odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(high));
                        }
                    }
                }
            }
        }
    }

    /// Sixteen bf16 numbers in the lower halves of words.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn words_of(numbers: __m256i) -> __m512i {
        _mm512_cvtepu16_epi32(numbers)
    }

    /// The numbers in the lower halves of words, as f32.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn widened(words: __m512i) -> __m512 {
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Processor;
    use super::super::elementwise::Activation;
    use super::super::matrix::{Rows, filled};
    use super::*;

    fn detected() -> Option<Processor> {
        let found = Processor::detect().filter(|processor| processor.has_amx());
        if found.is_none() {
            println!("skipped: the processor has no AMX");
        }
        found
    }

    /// Numbers of 24 bits, -1 to 1.
    fn noise(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    fn product(cores: Cores, a: &[f32], panels: &Panels, finish: Finish<'_>) -> Vec<f32> {
        let rows = a.len() / panels.depth;
        let input = Input::Plain(Rows::new(a, rows, panels.depth, panels.depth));
        filled(rows, panels.columns, |target| multiply(cores, input, panels, target, finish))
    }

    /// Compares with sums in f64.
    fn check(rows: usize, depth: usize, columns: usize) {
        let Some(processor) = detected() else { return };
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let panels = Panels::new(&b, depth, columns);
        let finish = Finish {
            bias: Some(&bias),
            activation: Some(Activation::Relu),
            residual: Some(Rows::new(&residual, rows, columns, columns)),
            ..Finish::default()
        };
        for threads in [1, 2] {
            let got = product(Cores { processor, threads }, &a, &panels, finish);
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let one = |k| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let sum = (0..depth).map(one).sum::<f64>() + f64::from(bias[column]);
                let expected = sum.max(0.0) + f64::from(residual[at]);
                let bound = 2e-6 * (depth as f64).sqrt().max(4.0);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn products_of_the_shapes_of_towers_are_right() {
        check(1, 1, 1);
        check(16, 512, 48);
        check(50, 3072, 33);
        check(117, 801, 100);
        check(300, 1025, 32);
        check(3, 4099, 70);
        check(0, 5, 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_of_any_shape_are_right(rows in 1_usize..130, depth in 1_usize..100, columns in 1_usize..100) {
            check(rows, depth, columns);
        }
    }

    #[test]
    fn all_bits_of_a_number_count() {
        let Some(processor) = detected() else { return };
        // 24 bits each; by powers of two, so that no product is rounded.
        let a = [16_777_215.0, -8_388_609.0, 0.000_123_456_79, 3.0];
        for (value, factor) in a.into_iter().zip([1.0, 4.0, 0.5, -2.0]) {
            let panels = Panels::new(&[factor], 1, 1);
            let got = product(Cores { processor, threads: 1 }, &[value], &panels, Finish::default());
            assert_eq!(got, [value * factor]);
            let panels = Panels::new(&[value], 1, 1);
            let got = product(Cores { processor, threads: 1 }, &[factor], &panels, Finish::default());
            assert_eq!(got, [value * factor]);
        }
    }

    #[test]
    fn a_row_has_the_same_product_alone_and_in_a_batch() {
        let Some(processor) = detected() else { return };
        let (rows, depth, columns) = (117, 2051, 45);
        let a = noise(rows * depth, 1);
        let panels = Panels::new(&noise(depth * columns, 2), depth, columns);
        let cores = Cores { processor, threads: 1 };
        let batch = product(cores, &a, &panels, Finish::default());
        for (row, expected) in a.chunks_exact(depth).zip(batch.chunks_exact(columns)) {
            assert_eq!(product(cores, row, &panels, Finish::default()), expected);
        }
    }
}
