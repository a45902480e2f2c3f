//! Products of f32 rows with packed panels in the tile registers of AMX: sums of products of bytes.
//!
//! A number is an integer of 24 bits times the scale of its row or column, and the integer is three slices of eight bits with a
//! sign. A product of two numbers is then six products of bytes; the three smallest of nine are about as small as the
//! rounding to 24 bits. Sums are exact (Ootomo, Ozaki and Yokota, "DGEMM on integer matrix multiplication unit", 2024). Weights
//! are sliced once, at load: they take three bytes instead of four. Rows with a number that is infinite or NaN give NaN.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::amx::{self, Registers, SLICES, STEP};
use super::blocking::{self, Piece};
use super::elementwise::Moments;
use super::finish::{Finish, Sums, TilePosition};
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Target};
use super::norm::Input;
use super::tiles::{SliceTile, Word};
use super::walk::{Operands, Walk};
use super::{Cores, Processor};

/// Values of a row that one step multiplies: four in a word.
const STEP_VALUES: usize = 4 * STEP;
/// Bytes of a row for one step.
const STEP_BYTES: usize = SLICES * STEP_VALUES;
/// Words of a panel for one step.
const STEP_WORDS: usize = SLICES * STEP * PANEL;
/// The most values of a depth block.
const DEPTH: usize = 16 * STEP_VALUES;
/// The integer of the largest number of a row or column: its slices are 127, 127 and 120, so that rounding cannot exceed them.
const LARGEST: f32 = 8_355_704.0;
/// What a product of upper slices is worth, in products of integers: the slices begin at bits 0, 8 and 16.
const UPPER: f32 = 4_294_967_296.0;
/// The worth of a slice in that of the next higher one.
const LOWER: f32 = 1.0 / 256.0;

/// Weights of shape (depth, columns) in panels of slices. A panel holds steps of [`STEP_VALUES`] rows, padded with zeros. A
/// step holds [`STEP`] lines of upper slices, then those of middle and of lower ones. A line holds for each column the slices
/// of the rows `line`, `line + 16`, `line + 32` and `line + 48`.
#[derive(Debug, Clone)]
pub(super) struct SlicePanels {
    words: Aligned<u32>,
    /// What a sum of products of upper slices is worth in each column, for rows of scale 1. Padded to whole panels.
    scales: Vec<f32>,
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

    fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// The lines of a panel for some values of a row, which begin a step.
    fn lines(&self, panel: usize, from: usize, to: usize) -> &[u32] {
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

/// The sliced rows of a block.
struct Block {
    bytes: Aligned<u8>,
    scales: Vec<f32>,
    moments: Vec<Moments>,
    /// A part of one normalised row before it is sliced.
    row: Vec<f32>,
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> = RefCell::new(Block {
        bytes: Aligned::zeros(0),
        scales: Vec::new(),
        moments: Vec::new(),
        row: Vec::new(),
    });
}

/// Writes `input * panels` with the epilogue to `target`, as [`super::float::multiply`] does; for processors with AMX.
///
/// # Panics
/// If the shapes do not fit, a row has no values, or the processor lacks the instructions.
pub(super) fn multiply(
    cores: Cores,
    input: Input<'_>,
    panels: &SlicePanels,
    target: Target,
    finish: Finish<'_>,
) {
    let Cores { processor, threads } = cores;
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    assert!(panels.depth > 0 && processor.has_amx());
    let depths = blocking::even_steps(panels.depth, panels.depth.div_ceil(DEPTH), STEP_VALUES);
    let most = depths.iter().map(|(from, to)| to - from).max().unwrap_or(0);
    let stride = amx::stride(most.div_ceil(STEP_VALUES) * STEP_BYTES);
    let blocks = amx::blocks(rows.rows, threads, stride);
    let product = Product { input, panels, target, finish, depths, stride };
    let run = |part: Piece| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            let rows = part.rows.1 - part.rows.0;
            block.bytes.reserve(rows.next_multiple_of(amx::ROWS) * stride);
            block.scales.resize(rows, 0.0);
            block.moments.resize(rows, Moments::default());
            block.row.resize(most, 0.0);
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
    panels: &'a SlicePanels,
    target: Target,
    finish: Finish<'a>,
    /// The values of each part of a row.
    depths: Vec<(usize, usize)>,
    /// Bytes from one copied row to the next.
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
        let Product { target, finish, .. } = *product;
        let rows = part.rows.0..part.rows.1;
        // SAFETY: the processor has the instructions of `L`, as the caller promises, and tile registers, which `multiply`
        // checked. The block has `stride` bytes for each row of a tile, as many as a part of a row needs. The caller of
        // `multiply` holds the target, and no other part has these rows and panels.
        unsafe {
            let registers = Registers::configure();
            product.input.measure::<L>(rows.clone(), &mut block.moments);
            for (at, (from, to)) in product.depths.iter().enumerate() {
                product.copy::<L>(rows.clone(), *from..*to, block);
                let (is_first, is_last) = (*from == 0, *to == product.panels.depth);
                let walk = Walk { target, finish, part, is_first, is_last };
                walk.run::<L, _>(&registers, &Depth { product, part, block, at });
            }
        }
    }
}

impl Product<'_> {
    /// Copies some values of some rows, sliced, into the block.
    ///
    /// # Safety
    /// The processor has the instructions of `L` and AVX-512 F and BW.
    #[inline(always)]
    unsafe fn copy<L: Lanes>(&self, rows: Range<usize>, columns: Range<usize>, block: &mut Block) {
        let values = &mut block.row[..columns.len()];
        let copies = block.bytes.values_mut().chunks_exact_mut(self.stride);
        for (((row, moments), scale), bytes) in rows.zip(&block.moments).zip(&mut block.scales).zip(copies) {
            // SAFETY: as the caller promises.
            *scale = unsafe {
                match self.input {
                    Input::Plain(rows) => x86::slice_row(&rows.row(row)[columns.clone()], bytes),
                    Input::Normalised(..) => {
                        self.input.read::<L>(row, columns.clone(), *moments, values);
                        x86::slice_row(values, bytes)
                    }
                }
            };
        }
    }
}

/// One depth block of a walk.
struct Depth<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a Block,
    /// The depth block's index.
    at: usize,
}

impl Operands for Depth<'_> {
    type Buffer = SliceTile;
    type Sums<'a>
        = TileOfSlices<'a>
    where
        Self: 'a;

    fn word(&self) -> Word {
        Word::Slices
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> &[u32] {
        let (from, to) = self.product.depths[self.at];
        self.product.panels.lines(panel, from, to)
    }

    #[inline(always)]
    fn next(&self, panel: usize) -> &[u32] {
        let Product { panels, depths, .. } = self.product;
        let next = blocking::after(self.part, panel, depths, self.at);
        next.map_or(&[], |(panel, (from, to))| panels.lines(panel, from, to))
    }

    #[inline(always)]
    fn rows(&self, top: usize) -> (*const u8, usize) {
        let stride = self.product.stride;
        (self.block.bytes.values()[top * stride..].as_ptr(), stride)
    }

    #[inline(always)]
    fn sums<'a>(&'a self, tile: &'a SliceTile, top: usize, place: TilePosition) -> TileOfSlices<'a> {
        let rows = &self.block.scales[top..][..place.rows];
        let columns = &self.product.panels.scales[place.panel * PANEL..][..PANEL];
        TileOfSlices { sums: tile, rows, columns }
    }
}

/// Sums of a tile's slices, with the scales of its rows and columns.
struct TileOfSlices<'a> {
    sums: &'a SliceTile,
    rows: &'a [f32],
    columns: &'a [f32],
}

impl Sums for TileOfSlices<'_> {
    #[inline(always)]
    unsafe fn plus<L: Lanes>(&self, row: usize, column: usize, others: L) -> L {
        // SAFETY: as the caller promises; there is a scale for each row and column.
        unsafe {
            let smaller = L::splat(LOWER);
            let upper = L::load_whole(self.sums.at(0, row, column).cast());
            let middle = L::load_whole(self.sums.at(1, row, column).cast());
            let lower = L::load_whole(self.sums.at(2, row, column).cast());
            let value = lower.times_plus(smaller, middle).times_plus(smaller, upper);
            let scale = *self.rows.as_ptr().add(row);
            value.times(L::load(self.columns.as_ptr().add(column))).times_plus(L::splat(scale), others)
        }
    }
}

/// On other architectures there is no [`super::Processor`], so nothing calls these.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use super::Columns;

    pub(super) unsafe fn slice_row(_: &[f32], _: &mut [u8]) -> f32 {
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
    pub(super) unsafe fn slice_row(row: &[f32], bytes: &mut [u8]) -> f32 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn product(cores: Cores, a: &[f32], panels: &SlicePanels, finish: Finish<'_>) -> Vec<f32> {
        let rows = a.len() / panels.depth;
        let input = Input::Plain(Rows::new(a, rows, panels.depth, panels.depth));
        filled(rows, panels.columns, |target| multiply(cores, input, panels, target, finish))
    }

    /// Compares with sums in f64.
    fn check(rows: usize, depth: usize, columns: usize) {
        let Some(processor) = detected() else { return };
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let panels = SlicePanels::new(processor, &b, depth, columns);
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

    /// Slices with all signs, and sums that are exact.
    #[test]
    fn integers_of_24_bits_are_multiplied_by_small_ones_exactly() {
        let Some(processor) = detected() else { return };
        let largest = LARGEST as i32;
        for integer in [largest, -largest, 0x7f_7f77, -0x7f_7f77, 128, -128, 32_768, -32_769, 0x12_3456, 1, 0]
        {
            let panels = SlicePanels::new(processor, &[LARGEST, 65_536.0], 2, 1);
            // The first row and the column have the scale 1, and the slices of 65,536 are 1, 0 and 0.
            let rows = [0.0, integer as f32, LARGEST, 0.0];
            let got = product(Cores { processor, threads: 1 }, &rows[..2], &panels, Finish::default());
            assert_eq!(got, [integer as f32 * 65_536.0], "{integer}");
        }
    }

    #[test]
    fn rows_and_columns_of_any_size_keep_their_precision() {
        let Some(processor) = detected() else { return };
        let values = noise(640, 5);
        for (row, column) in [(1e-28, 1e20), (1e25, 1e-25), (1e30, 1e6), (1.0, 1.0)] {
            let a: Vec<f32> = values.iter().map(|value| value * row).collect();
            let b: Vec<f32> = values.iter().map(|value| value * column).collect();
            let panels = SlicePanels::new(processor, &b, 640, 1);
            let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
            let expected: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!(
                (f64::from(got[0]) / expected - 1.0).abs() < 1e-6,
                "{row}, {column}: {got:?} for {expected}"
            );
        }
    }

    /// One value in a row that is a thousand times the others: what is lost stays below the rounding of that one.
    #[test]
    fn small_values_beside_a_large_one_are_rounded_like_the_large_one() {
        let Some(processor) = detected() else { return };
        let (mut a, b) = (noise(768, 1), noise(768 * 33, 2));
        a[100] = 1000.0;
        let panels = SlicePanels::new(processor, &b, 768, 33);
        let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
        for (column, got) in got.iter().enumerate() {
            let expected: f64 = (0..768).map(|k| f64::from(a[k]) * f64::from(b[k * 33 + column])).sum();
            let bound = 1000.0 * 768_f64.sqrt() / f64::from(1 << 24);
            assert!((f64::from(*got) - expected).abs() < bound, "{column}: {got} for {expected}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_give_nan_in_their_row_or_column_alone() {
        let Some(processor) = detected() else { return };
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let with =
                |at: usize| -> Vec<f32> { (0..6).map(|it| if it == at { wrong } else { 1.0 }).collect() };
            let one = vec![1.0; 6];
            for (a, b, nan) in [
                (with(4), one.clone(), [false, false, true, true]),
                (one, with(1), [false, true, false, true]),
            ] {
                let panels = SlicePanels::new(processor, &b, 3, 2);
                let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
                let got: Vec<bool> = got.iter().map(|value| value.is_nan()).collect();
                assert_eq!(got, nan, "{wrong}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_product_alone_and_in_a_batch() {
        let Some(processor) = detected() else { return };
        let (rows, depth, columns) = (117, 2051, 45);
        let a = noise(rows * depth, 1);
        let panels = SlicePanels::new(processor, &noise(depth * columns, 2), depth, columns);
        let cores = Cores { processor, threads: 1 };
        let batch = product(cores, &a, &panels, Finish::default());
        for (row, expected) in a.chunks_exact(depth).zip(batch.chunks_exact(columns)) {
            assert_eq!(product(cores, row, &panels, Finish::default()), expected);
        }
    }
}
