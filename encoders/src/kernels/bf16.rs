//! Products in bf16: weights are rounded at load, rows once for each product, and sums are f32.
//!
//! A processor with AMX or AVX512-BF16 multiplies pairs of bf16 numbers. Others widen the weights to f32 while they read them:
//! the products are the same, their sums differ by f32's rounding, and weights take half of f32's memory.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::Cores;
use super::amx::{self, Registers};
use super::blocking::{self, Ahead, Blocks, Piece};
use super::elementwise::Moments;
use super::finish::{Finish, TilePosition};
use super::float::{FloatSums, TILE};
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Target};
use super::norm::Input;
use super::pairs::{PairPanels, RowWord, STRIDE};
use super::tiles::{self, Nothing, Room, Tile, Word};
use super::walk::{Operands, Walk};

/// The most rows of a block without AMX: their copies take 455 KiB, which stay in the L2 cache.
const BLOCK: usize = 8 * TILE;

/// The rounded rows of a block.
struct Block {
    words: Aligned<u32>,
    moments: Vec<Moments>,
    /// A part of one normalised row before it is rounded.
    row: Vec<f32>,
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> =
        RefCell::new(Block { words: Aligned::zeros(0), moments: Vec::new(), row: Vec::new() });
}

/// Writes `input * panels` with the epilogue to `target`, as [`super::float::multiply`] does.
///
/// # Panics
/// If the shapes do not fit, or a row has no values.
pub(super) fn multiply(
    cores: Cores,
    input: Input<'_>,
    panels: &PairPanels,
    target: Target,
    finish: Finish<'_>,
) {
    let Cores { processor, threads } = cores;
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    assert!(panels.depth > 0);
    let (word, has_amx) = (RowWord::of(processor), processor.has_amx());
    let pieces = panels.pairs().div_ceil(word.most_pairs());
    let depths = blocking::even_steps(panels.pairs(), pieces, if has_amx { amx::STEP } else { 1 });
    let most = depths.iter().map(|(from, to)| to - from).max().unwrap_or(0);
    let (stride, blocks) = match has_amx {
        true => {
            let stride = amx::stride(4 * most);
            (stride / 4, amx::blocks(rows.rows, threads, stride))
        }
        false => (STRIDE, Blocks { most: BLOCK, step: 1 }),
    };
    let product = Product { input, panels, target, finish, word, depths, stride };
    let run = |part: Piece| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            let rows = part.rows.1 - part.rows.0;
            block.words.reserve(rows.next_multiple_of(amx::ROWS) * stride);
            block.moments.resize(rows, Moments::default());
            block.row.resize(2 * most, 0.0);
            let part = PartOf { product: &product, part, block };
            match has_amx {
                true => processor.run_wide(InTiles(part)),
                false => processor.run(part),
            }
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
    panels: &'a PairPanels,
    target: Target,
    finish: Finish<'a>,
    word: RowWord,
    /// The pairs of each part of a row.
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
        let Product { panels, target, finish, depths, stride, .. } = product;
        let (first, last) = part.rows;
        let tiles = blocking::even(last - first, (last - first).div_ceil(L::TILE));
        let mut sums = Tile::ZEROS;
        // SAFETY: the processor has the instructions of `L`, as the caller promises, and AVX512-BF16 if words are
        // pairs. The block has `stride` words for each row of a tile, as many as a part of a row needs. The
        // caller of `multiply` holds the target, and no other part has these rows and panels.
        unsafe {
            product.input.measure::<L>(first..last, &mut block.moments);
            for (at, (from, to)) in depths.iter().enumerate() {
                product.copy::<L>(first..last, *from..*to, block);
                for panel in part.panels.0..part.panels.1 {
                    let next = product.next(part, panel, at);
                    for (tile, (top, bottom)) in tiles.iter().enumerate() {
                        let place = TilePosition {
                            row: first + top,
                            rows: bottom - top,
                            panel,
                            is_first: *from == 0,
                            is_last: *to == panels.pairs(),
                        };
                        let epilogue = finish.of(*target, place);
                        epilogue.prefetch::<L>(epilogue.rows());
                        let factors = Factors {
                            rows: block.words.values()[top * stride..].as_ptr(),
                            panel: panels.lines(panel, *from, *to),
                            into: sums.0.as_mut_ptr().cast(),
                            across: PANEL,
                            ahead: Ahead::share(next, tile, tiles.len()),
                        };
                        factors.multiply::<L>(product.word, place.rows);
                        epilogue.store::<L>(&FloatSums(&sums), epilogue.rows());
                    }
                }
            }
        }
    }
}

/// As [`PartOf`], in tile registers.
struct InTiles<'a>(PartOf<'a>);

impl Work for InTiles<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let InTiles(PartOf { product, part, block }) = self;
        let Product { panels, target, finish, .. } = *product;
        // SAFETY: as above; `multiply` checked that there are tile registers.
        unsafe {
            let registers = Registers::configure();
            product.input.measure::<L>(part.rows.0..part.rows.1, &mut block.moments);
            for (at, (from, to)) in product.depths.iter().enumerate() {
                product.copy::<L>(part.rows.0..part.rows.1, *from..*to, block);
                let walk =
                    Walk { target, finish, part, is_first: *from == 0, is_last: *to == panels.pairs() };
                walk.run::<L, _>(&registers, &Depth { product, part, block, at });
            }
        }
    }
}

/// One depth block of a walk in tile registers.
struct Depth<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a Block,
    /// The depth block's index.
    at: usize,
}

impl Operands for Depth<'_> {
    type Buffer = Tile;
    type Sums<'a>
        = FloatSums<'a>
    where
        Self: 'a;

    fn word(&self) -> Word {
        Word::Pairs
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> &[u32] {
        let (from, to) = self.product.depths[self.at];
        self.product.panels.lines(panel, from, to)
    }

    #[inline(always)]
    fn next(&self, panel: usize) -> &[u32] {
        self.product.next(self.part, panel, self.at)
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
    /// The lines that a part multiplies after those of `panel` in the depth block `at`.
    #[inline(always)]
    fn next(&self, part: Piece, panel: usize, at: usize) -> &[u32] {
        let next = blocking::after(part, panel, &self.depths, at);
        next.map_or(&[], |(panel, (from, to))| self.panels.lines(panel, from, to))
    }

    /// Copies some pairs of some rows, rounded, into the block.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and AVX512-BF16 if words are pairs.
    #[inline(always)]
    unsafe fn copy<L: Lanes>(&self, rows: Range<usize>, pairs: Range<usize>, block: &mut Block) {
        let columns = 2 * pairs.start..self.panels.depth.min(2 * pairs.end);
        let values = &mut block.row[..columns.len()];
        let copies = block.words.values_mut().chunks_exact_mut(self.stride);
        for ((row, moments), words) in rows.zip(&block.moments).zip(copies) {
            // SAFETY: as the caller promises.
            unsafe {
                match self.input {
                    Input::Plain(rows) => self.word.round(&rows.row(row)[columns.clone()], words),
                    Input::Normalised(..) => {
                        self.input.read::<L>(row, columns.clone(), *moments, values);
                        self.word.round(values, words);
                    }
                }
            }
        }
    }
}

/// A few rounded rows and the part of a panel that multiplies them.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a> {
    /// Rows, [`STRIDE`] words from one to the next unless they are multiplied in tile registers.
    pub(super) rows: *const u32,
    pub(super) panel: &'a [u32],
    /// Destination of the sums: [`PANEL`] per row.
    pub(super) into: *mut f32,
    /// Values from one row of sums to the next.
    pub(super) across: usize,
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies `count` rows of pairs, 1 to [`amx::ROWS`], which are `stride` words apart.
    ///
    /// # Safety
    /// As [`tiles::Factors::multiply`].
    #[inline(always)]
    pub(super) unsafe fn multiply_in<L: Lanes>(self, registers: &Registers, stride: usize, count: usize) {
        let Factors { rows, panel, into, across, ahead } = self;
        let factors =
            tiles::Factors { word: Word::Pairs, rows: rows.cast(), stride: 4 * stride, panel, ahead };
        // SAFETY: as the caller promises.
        unsafe { factors.multiply::<L>(registers, count, Room { first: into.cast(), across }, &mut Nothing) };
    }

    /// Multiplies `count` rows, 1 to [`Lanes::TILE`].
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and AVX512-BF16 if words are pairs; `count` rows exist, and there is
    /// room for their sums.
    #[inline(always)]
    pub(super) unsafe fn multiply<L: Lanes>(self, word: RowWord, count: usize) {
        match word {
            // SAFETY: as the caller promises.
            RowWord::Pair => unsafe { self.multiply_pairs(count) },
            // SAFETY: as the caller promises.
            RowWord::Widened => unsafe { self.multiply_widened::<L>(count) },
        }
    }

    /// Multiplies `count` rows of words that are f32, 1 to [`Lanes::TILE`].
    ///
    /// # Safety
    /// As [`Factors::multiply`].
    #[inline(always)]
    unsafe fn multiply_widened<L: Lanes>(self, count: usize) {
        macro_rules! by_rows {
            ($($count:literal)+) => {
                match count {
                    // SAFETY: as the caller promises.
                    $($count if $count <= L::TILE => unsafe { L::run(Widened::<$count>(self)) },)+
                    _ => unreachable!("a tile has as many rows as registers allow"),
                }
            };
        }
        by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }
}

/// Adds the products of one word of each row and two registers of weights.
///
/// # Safety
/// The processor has the instructions of `L`, and the rows exist, [`STRIDE`] words from one to the next.
#[inline(always)]
unsafe fn add_products<L: Lanes, const ROWS: usize>(
    sums: &mut [[L; 2]; ROWS],
    words: *const u32,
    weights: [L; 2],
) {
    for (row, sums) in sums.iter_mut().enumerate() {
        // SAFETY: as the caller promises.
        let value = unsafe { L::splat(f32::from_bits(*words.add(row * STRIDE))) };
        sums[0] = value.times_plus(weights[0], sums[0]);
        sums[1] = value.times_plus(weights[1], sums[1]);
    }
}

/// Factors whose words are f32, with the number of rows known at compile time.
struct Widened<'a, const ROWS: usize>(Factors<'a>);

impl<const ROWS: usize> Work for Widened<'_, ROWS> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Factors { rows, panel, into, across, ahead } = self.0;
        // With narrow registers, one half of the panel after the other.
        let (lines, halves) = (panel.len() / PANEL, PANEL / (2 * L::COUNT));
        let mut ahead = ahead.spread(lines * halves);
        for (half, from) in (0..PANEL).step_by(2 * L::COUNT).enumerate() {
            // SAFETY: as the caller promises; a line of the panel has `PANEL` words and begins a cache line, and a row has two
            // words for each line; a row of sums has `PANEL` values.
            unsafe {
                let mut sums = [[L::splat(0.0); 2]; ROWS];
                for (at, line) in panel.chunks_exact(PANEL).enumerate() {
                    ahead.fetch::<L>(half * lines + at);
                    let (line, words) = (line.as_ptr().add(from), rows.add(2 * at));
                    let lower = [L::load_lower(line), L::load_lower(line.add(L::COUNT))];
                    add_products(&mut sums, words, lower);
                    let upper = [L::load_upper(line), L::load_upper(line.add(L::COUNT))];
                    add_products(&mut sums, words.add(1), upper);
                }
                for (row, sums) in sums.into_iter().enumerate() {
                    let into = into.add(row * across + from);
                    sums[0].store(into);
                    sums[1].store(into.add(L::COUNT));
                }
            }
        }
    }
}

/// On other architectures there is no [`super::Processor`], so nothing calls these.
#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use super::Factors;

    impl Factors<'_> {
        pub(super) unsafe fn multiply_pairs(self, _: usize) {
            unreachable!("there is no Processor here")
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::lanes::Sixteen;
    use super::{Factors, PANEL, STRIDE};

    impl Factors<'_> {
        /// Multiplies `count` rows of pairs, 1 to 14.
        ///
        /// # Safety
        /// As [`Factors::multiply`], and the processor has AVX-512 F and BF16.
        #[inline(always)]
        pub(super) unsafe fn multiply_pairs(self, count: usize) {
            macro_rules! by_rows {
                ($($count:literal)+) => {
                    match count {
                        // SAFETY: as the caller promises.
                        $($count => unsafe { tile::<$count>(self) },)+
                        _ => unreachable!("a tile has as many rows as registers allow"),
                    }
                };
            }
            by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn tile<const ROWS: usize>(factors: Factors<'_>) {
        let Factors { rows, panel, into, across, ahead } = factors;
        let mut ahead = ahead.spread(panel.len() / PANEL);
        // All loops over rows have a length that is known here: only then the sums stay in registers.
        let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
        // SAFETY: a line has 32 words; every row has as many words as the panel has lines; a row of sums has 32 values.
        unsafe {
            for (at, line) in panel.chunks_exact(PANEL).enumerate() {
                ahead.fetch::<Sixteen>(at);
                let left = pairs(_mm512_loadu_si512(line.as_ptr().cast()));
                let right = pairs(_mm512_loadu_si512(line.as_ptr().add(16).cast()));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let word = pairs(_mm512_set1_epi32((*rows.add(row * STRIDE + at)).cast_signed()));
                    sums[0] = _mm512_dpbf16_ps(sums[0], word, left);
                    sums[1] = _mm512_dpbf16_ps(sums[1], word, right);
                }
            }
            for (row, sums) in sums.into_iter().enumerate() {
                let into = into.add(row * across);
                _mm512_storeu_ps(into, sums[0]);
                _mm512_storeu_ps(into.add(16), sums[1]);
            }
        }
    }

    /// The register as pairs of bf16 numbers.
    #[inline(always)]
    fn pairs(words: __m512i) -> __m512bh {
        // SAFETY: both types are 512 bits, any of which are valid.
        unsafe { std::mem::transmute(words) }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};
    use proptest::prelude::*;

    use super::super::Processor;
    use super::super::elementwise::Activation;
    use super::super::matrix::{Rows, filled};
    use super::*;

    /// Numbers that bf16 does not hold, -1 to 1.
    fn noise(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    /// Rounded by candle.
    fn rounded(values: &[f32]) -> Vec<f32> {
        let rounded = Tensor::new(values, &Device::Cpu).and_then(|it| it.to_dtype(DType::BF16));
        rounded.and_then(|it| it.to_dtype(DType::F32)).unwrap().to_vec1().unwrap()
    }

    /// Every kernel that this machine can run.
    fn cores() -> Vec<Cores> {
        let all = Processor::all();
        if !all.iter().any(|it| it.has_amx()) {
            println!("skipped: products in tile registers, the processor has no AMX");
        }
        if !all.iter().any(|it| it.has_bf16() && !it.has_amx()) {
            println!("skipped: products of pairs, the processor has no AVX512-BF16");
        }
        let two = all.first().map(|best| Cores { processor: *best, threads: 2 });
        all.into_iter().map(|processor| Cores { processor, threads: 1 }).chain(two).collect()
    }

    fn product(cores: Cores, a: &[f32], panels: &PairPanels, finish: Finish<'_>) -> Vec<f32> {
        let rows = a.len() / panels.depth;
        let input = Input::Plain(Rows::new(a, rows, panels.depth, panels.depth));
        filled(rows, panels.columns, |target| multiply(cores, input, panels, target, finish))
    }

    /// Compares every kernel with sums in f64 of the rounded numbers.
    fn check(rows: usize, depth: usize, columns: usize) {
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let (near_a, near_b) = (rounded(&a), rounded(&b));
        let panels = PairPanels::new(&b, depth, columns);
        let finish = Finish {
            bias: Some(&bias),
            activation: Some(Activation::Relu),
            residual: Some(Rows::new(&residual, rows, columns, columns)),
            ..Finish::default()
        };
        for cores in cores() {
            for (at, got) in product(cores, &a, &panels, finish).iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let one = |k| f64::from(near_a[row * depth + k]) * f64::from(near_b[k * columns + column]);
                let sum = (0..depth).map(one).sum::<f64>() + f64::from(bias[column]);
                let expected = sum.max(0.0) + f64::from(residual[at]);
                let bound = 2e-6 * (depth as f64).sqrt().max(4.0);
                assert!(
                    (f64::from(*got) - expected).abs() < bound,
                    "{cores:?}, {row}, {column}: {got} for {expected}"
                );
            }
        }
    }

    #[test]
    fn products_of_the_shapes_of_towers_are_those_of_the_rounded_numbers() {
        check(1, 1, 1);
        check(16, 512, 48);
        check(50, 3072, 33);
        check(117, 801, 100);
        check(14, 2049, 32);
        check(3, 4099, 70);
        check(0, 5, 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_of_any_shape_are_those_of_the_rounded_numbers(
            rows in 1_usize..130, depth in 1_usize..100, columns in 1_usize..100,
        ) {
            check(rows, depth, columns);
        }
    }

    #[test]
    fn a_row_has_the_same_product_alone_and_in_a_batch() {
        let (rows, depth, columns) = (117, 2051, 45);
        let a = noise(rows * depth, 1);
        let panels = PairPanels::new(&noise(depth * columns, 2), depth, columns);
        for cores in cores() {
            let batch = product(cores, &a, &panels, Finish::default());
            for (row, expected) in a.chunks_exact(depth).zip(batch.chunks_exact(columns)) {
                assert_eq!(product(cores, row, &panels, Finish::default()), expected, "{cores:?}");
            }
        }
    }

    #[test]
    fn what_an_earlier_product_left_in_the_buffers_does_not_matter() {
        for cores in cores() {
            let odd = PairPanels::new(&noise(33 * 5, 2), 33, 5);
            let clean = product(cores, &noise(33 * 20, 1), &odd, Finish::default());
            let wide = PairPanels::new(&noise(40 * 5, 2), 40, 5);
            product(cores, &[f32::NAN; 40 * 20], &wide, Finish::default());
            assert_eq!(product(cores, &noise(33 * 20, 1), &odd, Finish::default()), clean, "{cores:?}");
        }
    }
}
