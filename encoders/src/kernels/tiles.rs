//! Products in the tile registers of AMX, in steps: between two steps, vector registers can do other work.

use super::amx::{ROWS, Registers, SLICES, STEP};
use super::blocking::Ahead;
use super::lanes::{Lanes, Work};
use super::matrix::PANEL;
use super::steps::{Kernel, x86};

/// Sums of a tile: floats or integers, by [`Word`]. Each row is two whole cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Tile(pub(super) [[u32; PANEL]; ROWS]);

impl Tile {
    pub(super) const ZEROS: Tile = Tile([[0; PANEL]; ROWS]);

    /// The address of a sum, if the tile has it; the rest of its row follows.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, column: usize) -> *const u32 {
        self.0.as_ptr().wrapping_add(row).cast::<u32>().wrapping_add(column)
    }
}

/// Memory for all sums of a tile.
pub(super) trait Buffer: Copy {
    /// Rows of a tile.
    const ROWS: usize;
    /// Tiles that are multiplied before their activations are computed: their sums stay in the L1 cache.
    const GROUP: usize;
    const ZEROS: Self;

    /// All of it, to write sums.
    fn room(&mut self) -> Room;
}

impl Buffer for Tile {
    const ROWS: usize = ROWS;
    const GROUP: usize = 4;
    const ZEROS: Self = Tile::ZEROS;

    #[inline(always)]
    fn room(&mut self) -> Room {
        Room { first: self.0.as_mut_ptr().cast(), across: PANEL }
    }
}

/// Three sums for each number of a tile of 16 rows: see [`Word::Slices`].
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct SliceTile(pub(super) [[[u32; PANEL]; STEP]; SLICES]);

impl Buffer for SliceTile {
    const ROWS: usize = STEP;
    const GROUP: usize = 1;
    const ZEROS: Self = SliceTile([[[0; PANEL]; STEP]; SLICES]);

    #[inline(always)]
    fn room(&mut self) -> Room {
        Room { first: self.0.as_mut_ptr().cast(), across: PANEL }
    }
}

impl SliceTile {
    /// The address of one of the three sums, if the tile has it; the rest of its row follows.
    #[inline(always)]
    pub(super) fn at(&self, sum: usize, row: usize, column: usize) -> *const u32 {
        self.0.as_ptr().cast::<u32>().wrapping_add((sum * STEP + row) * PANEL + column)
    }
}

/// Where sums go: [`PANEL`] words of each row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) first: *mut u32,
    /// Words from one row to the next.
    pub(super) across: usize,
}

/// What the words of rows and panels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Four bytes: those of rows have no sign, those of panels have one. Sums are integers.
    Bytes,
    /// Pairs of bf16 numbers. Sums are f32.
    Pairs,
    /// Steps of four bytes with a sign: the numbers' upper slices, then the middle and the lower ones. There are three sums,
    /// each 16 rows after the one before: of products of upper slices; of upper and middle ones; of middle ones, and of
    /// upper and lower ones. Sums are integers.
    Slices,
}

/// Work in vector registers that runs between the steps of a product.
pub(super) trait Meanwhile {
    /// Divides the work into at most this many shares.
    fn divide(&mut self, shares: usize);

    /// Does the next share, if there is one.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    unsafe fn share<L: Lanes>(&mut self);
}

/// No work.
pub(super) struct Nothing;

impl Meanwhile for Nothing {
    #[inline(always)]
    fn divide(&mut self, _: usize) {}

    #[inline(always)]
    unsafe fn share<L: Lanes>(&mut self) {}
}

/// A few rows and the panel that multiplies them.
pub(super) struct Factors<'a> {
    pub(super) word: Word,
    /// Rows of whole steps. What they have beyond the panel is zero; of bytes, any number.
    pub(super) rows: *const u8,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    /// Lines of [`PANEL`] words, as many as a row has words; of slices, whole steps.
    pub(super) panel: &'a [u32],
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies 16 rows where `count` is at most 16, else 32. Rows of slices are at most 16.
    ///
    /// # Safety
    /// The calling thread holds [`Registers`]. Memory of 16 or 32 rows exists, and room for as many rows of sums. The processor
    /// has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn multiply<L: Lanes>(
        self,
        _: &Registers,
        count: usize,
        into: Room,
        meanwhile: &mut impl Meanwhile,
    ) {
        macro_rules! steps {
            ($kernel:expr) => {
                L::run_apart(Steps { factors: self, kernel: $kernel, into, meanwhile })
            };
        }
        // SAFETY: as the caller promises.
        unsafe {
            match (self.word, count > ROWS / 2) {
                (Word::Bytes, true) => steps!(x86::Bytes32),
                (Word::Bytes, false) => steps!(x86::Bytes16),
                (Word::Pairs, true) => steps!(x86::Pairs32),
                (Word::Pairs, false) => steps!(x86::Pairs16),
                (Word::Slices, true) => unreachable!("a tile of slices has 16 rows"),
                (Word::Slices, false) => steps!(x86::Slices16),
            }
        }
    }
}

/// The steps of a product.
struct Steps<'a, K, M> {
    factors: Factors<'a>,
    kernel: K,
    into: Room,
    meanwhile: &'a mut M,
}

impl<K: Kernel, M: Meanwhile> Work for Steps<'_, K, M> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Steps { factors: Factors { rows, stride, panel, ahead, .. }, kernel, into, meanwhile } = self;
        let whole = panel.chunks_exact(K::STEP * PANEL);
        let (steps, rest) = (panel.len().div_ceil(K::STEP * PANEL), whole.remainder());
        assert!(rest.is_empty() || K::STEP == STEP, "panels of slices are padded");
        let mut ahead = ahead.divided(steps);
        meanwhile.divide(steps);
        // SAFETY: as the caller promises; the last step is of a copy, padded with zeros.
        unsafe {
            kernel.zero();
            for (step, panel) in whole.enumerate() {
                kernel.step(rows.add(step * 4 * K::STEP), stride, panel.as_ptr());
                ahead.fetch_share::<L>();
                meanwhile.share::<L>();
            }
            if !rest.is_empty() {
                let mut last = [0_u32; STEP * PANEL];
                last[..rest.len()].copy_from_slice(rest);
                kernel.step(rows.add((steps - 1) * 4 * STEP), stride, last.as_ptr());
                ahead.fetch_share::<L>();
                meanwhile.share::<L>();
            }
            kernel.store(into.first, 4 * into.across);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::super::pairs::nearest;
    use super::*;

    /// Words of a buffer's row, and sums from one row to the next: more than are used.
    const STRIDE: usize = 100;
    const ACROSS: usize = PANEL + 8;

    /// Counts the shares.
    #[derive(Default)]
    struct Shares {
        left: usize,
    }

    impl Meanwhile for Shares {
        fn divide(&mut self, shares: usize) {
            self.left = shares;
        }

        #[inline(always)]
        unsafe fn share<L: Lanes>(&mut self) {
            self.left = self.left.checked_sub(1).expect("as many as announced");
        }
    }

    struct Multiplied<'a> {
        factors: Factors<'a>,
        count: usize,
        into: Room,
        shares: &'a mut Shares,
    }

    impl Work for Multiplied<'_> {
        type Output = ();

        #[inline(always)]
        unsafe fn run<L: Lanes>(self) {
            let Multiplied { factors, count, into, shares } = self;
            // SAFETY: the test uses a processor with tile registers, configures them once, and has 32 rows.
            unsafe { factors.multiply::<L>(&Registers::configure(), count, into, shares) };
        }
    }

    /// Runs the kernel, and gives the rows of sums.
    #[track_caller]
    fn run(word: Word, rows: &[u32], panel: &[u32], count: usize) -> Option<Vec<Vec<u32>>> {
        let Some(processor) = Processor::detect().filter(|processor| processor.has_amx()) else {
            println!("skipped: the processor has no AMX");
            return None;
        };
        let height = if word == Word::Slices { SLICES * STEP } else { ROWS };
        let (mut sums, mut shares) = (vec![u32::MAX; height * ACROSS], Shares::default());
        let (ahead, rows) = (Ahead::share(panel, 0, 1), rows.as_ptr().cast());
        let factors = Factors { word, rows, stride: 4 * STRIDE, panel, ahead };
        let into = Room { first: sums.as_mut_ptr(), across: ACROSS };
        processor.run(Multiplied { factors, count, into, shares: &mut shares });
        assert_eq!(shares.left, 0, "a share for each step");
        let is_untouched = |words: &[u32]| words.iter().all(|it| *it == u32::MAX);
        assert!(sums.chunks(ACROSS).all(|row| is_untouched(&row[PANEL..])), "beyond the panel");
        let end = if word == Word::Slices { height } else { count.next_multiple_of(16) };
        assert!(is_untouched(&sums[end * ACROSS..]), "beyond the rows");
        Some(sums.chunks(ACROSS).map(|row| row[..PANEL].to_vec()).collect())
    }

    fn mixed(at: usize) -> u32 {
        (at as u32).wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b)
    }

    /// TDPBUSD as Intel's manual has it: four bytes without a sign by four with one, summed in 32 bits.
    #[track_caller]
    fn check_bytes(count: usize, lines: usize) {
        let rows: Vec<u32> = (0..ROWS * STRIDE).map(mixed).collect();
        let panel: Vec<u32> = (0..lines * PANEL).map(|at| mixed(at + 12_345)).collect();
        let Some(got) = run(Word::Bytes, &rows, &panel, count) else { return };
        for (row, sums) in got.iter().take(count).enumerate() {
            for (column, got) in sums.iter().enumerate() {
                let word = |line: usize| -> i32 {
                    let (a, b) = (rows[row * STRIDE + line], panel[line * PANEL + column]);
                    let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
                    products.map(|(a, b)| i32::from(a) * i32::from(b.cast_signed())).sum()
                };
                assert_eq!(got.cast_signed(), (0..lines).map(word).sum::<i32>(), "{row}, {column}");
            }
        }
    }

    /// TDPBF16PS: two bf16 numbers by two, summed in f32, whose rounding is left open here.
    #[track_caller]
    fn check_pairs(count: usize, lines: usize) {
        let number = |at: usize| nearest((mixed(at) % 2003) as f32 / 1001.0 - 1.0);
        let pair = |at: usize| number(2 * at) | number(2 * at + 1) << 16;
        let mut rows: Vec<u32> = (0..ROWS * STRIDE).map(pair).collect();
        // Rows are padded with zeros.
        rows.chunks_mut(STRIDE).for_each(|row| row[lines..].fill(0));
        let panel: Vec<u32> = (0..lines * PANEL).map(|at| pair(at + 12_345)).collect();
        let Some(got) = run(Word::Pairs, &rows, &panel, count) else { return };
        let halves = |word: u32| [word << 16, word & 0xffff_0000].map(|bits| f64::from(f32::from_bits(bits)));
        for (row, sums) in got.iter().take(count).enumerate() {
            for (column, got) in sums.iter().enumerate() {
                let word = |line: usize| -> f64 {
                    let (a, b) = (halves(rows[row * STRIDE + line]), halves(panel[line * PANEL + column]));
                    a[0] * b[0] + a[1] * b[1]
                };
                let expected = (0..lines).map(word).sum::<f64>();
                let got = f64::from(f32::from_bits(*got));
                assert!((got - expected).abs() < 1e-5, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    /// TDPBSSD: four bytes with a sign by four, summed in 32 bits; three sums of slices' products.
    #[track_caller]
    fn check_slices(count: usize, steps: usize) {
        let rows: Vec<u32> = (0..ROWS * STRIDE).map(mixed).collect();
        let panel: Vec<u32> = (0..steps * SLICES * STEP * PANEL).map(|at| mixed(at + 12_345)).collect();
        let Some(got) = run(Word::Slices, &rows, &panel, count) else { return };
        let product = |a: u32, b: u32| -> i32 {
            let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            products.map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed())).sum()
        };
        for (row, column) in (0..count).flat_map(|row| (0..PANEL).map(move |column| (row, column))) {
            let mut expected = [0; SLICES];
            for (step, line) in (0..steps).flat_map(|step| (0..STEP).map(move |line| (step, line))) {
                let word = |slice: usize| (step * SLICES + slice) * STEP + line;
                for (a, b) in [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0)] {
                    expected[a + b] += product(rows[row * STRIDE + word(a)], panel[word(b) * PANEL + column]);
                }
            }
            for (sum, expected) in expected.into_iter().enumerate() {
                let got = got[sum * STEP + row][column].cast_signed();
                assert_eq!(got, expected, "{row}, {column}, {sum}");
            }
        }
    }

    #[test]
    fn tiles_are_multiplied_as_the_manual_says() {
        for count in [1, 15, 16, 17, 32] {
            for lines in [0, 1, 15, 16, 17, 32, 50] {
                check_bytes(count, lines);
                check_pairs(count, lines);
            }
            for steps in [0, 1, 2] {
                check_slices(count.min(16), steps);
            }
        }
    }

    #[test]
    fn a_panel_without_lines_gives_zeros() {
        let Some(got) = run(Word::Pairs, &vec![0; ROWS * STRIDE], &[], 32) else { return };
        assert!(got.iter().flatten().all(|sum| *sum == 0));
    }
}
