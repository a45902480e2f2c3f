//! Products in the tile registers of AMX, in steps: between two steps, vector registers can do other work.

use super::amx::{ROWS, Registers, STEP};
use super::blocking::Ahead;
use super::lanes::{Lanes, Work};
use super::matrix::PANEL;

/// Sums of a tile: floats or integers, by [`Word`]. Each row is two whole cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Tile(pub(super) [[u32; PANEL]; ROWS]);

impl Tile {
    pub(super) const ZEROS: Tile = Tile([[0; PANEL]; ROWS]);

    /// All of it, to write sums.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Room {
        Room { first: self.0.as_mut_ptr().cast(), across: PANEL }
    }

    /// The address of a sum, if the tile has it; the rest of its row follows.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, column: usize) -> *const u32 {
        self.0.as_ptr().wrapping_add(row).cast::<u32>().wrapping_add(column)
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
    /// Steps of pairs of the numbers' upper thirds, each followed by one of middle and one of lower thirds. Sums are f32.
    Thirds,
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
    /// Lines of [`PANEL`] words, as many as a row has words; of thirds, whole steps.
    pub(super) panel: &'a [u32],
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies 16 rows where `count` is at most 16, else 32.
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
                (Word::Thirds, true) => steps!(x86::Thirds32),
                (Word::Thirds, false) => steps!(x86::Thirds16),
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
        assert!(rest.is_empty() || K::STEP == STEP, "panels of thirds are padded");
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

/// A product of 16 or 32 rows by a panel's columns, in steps. Registers 0 to 3 hold the sums from one call to the next: other
/// kernels do not run in between, and compilers use no tile registers unless asked.
trait Kernel {
    /// Words of a row, and lines of a panel, that one step multiplies.
    const STEP: usize;

    /// # Safety
    /// The thread has configured its registers, here and below.
    unsafe fn zero(&self);
    /// # Safety
    /// The rows, `stride` bytes apart, and the panel's lines exist.
    unsafe fn step(&self, rows: *const u8, stride: usize, panel: *const u32);
    /// # Safety
    /// There is room for the rows of sums, `across` bytes apart.
    unsafe fn store(&self, into: *mut u32, across: usize);
}

/// On other systems nothing calls these.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod x86 {
    use super::Kernel;

    macro_rules! absent {
        ($($name:ident)+) => {
            $(
                pub(super) struct $name;

                impl Kernel for $name {
                    const STEP: usize = super::STEP;

                    unsafe fn zero(&self) {
                        unreachable!("there are no tile registers here")
                    }

                    unsafe fn step(&self, _: *const u8, _: usize, _: *const u32) {}

                    unsafe fn store(&self, _: *mut u32, _: usize) {}
                }
            )+
        };
    }
    absent!(Bytes32 Bytes16 Pairs32 Pairs16 Thirds32 Thirds16);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use std::arch::asm;

    use super::{Kernel, STEP};
    use crate::kernels::amx::LINE_BYTES;

    /// Registers 0 to 3 are sums: upper rows by left and right columns, then lower rows. A step loads rows from `{upper}` and
    /// `{lower}`, and lines from `{panel}`, with `{line}` between lines.
    macro_rules! kernel {
        ($name:ident, $words:expr, $step:expr, $store:expr) => {
            pub(super) struct $name;

            impl Kernel for $name {
                const STEP: usize = $words;

                #[inline(always)]
                unsafe fn zero(&self) {
                    // SAFETY: as the caller promises, here and below.
                    unsafe {
                        asm!(
                            "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                            options(nostack, nomem, preserves_flags),
                        )
                    }
                }

                #[inline(always)]
                unsafe fn step(&self, rows: *const u8, stride: usize, panel: *const u32) {
                    let lower = rows.wrapping_add(STEP * stride);
                    // SAFETY: see above.
                    unsafe {
                        asm!(
                            $step,
                            upper = in(reg) rows,
                            lower = in(reg) lower,
                            stride = in(reg) stride,
                            panel = in(reg) panel,
                            line = in(reg) LINE_BYTES,
                            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                            options(nostack, readonly, preserves_flags),
                        )
                    }
                }

                #[inline(always)]
                unsafe fn store(&self, into: *mut u32, across: usize) {
                    let lower = into.wrapping_byte_add(STEP * across);
                    // SAFETY: see above.
                    unsafe {
                        asm!(
                            $store,
                            upper = in(reg) into,
                            lower = in(reg) lower,
                            across = in(reg) across,
                            options(nostack, preserves_flags),
                        )
                    }
                }
            }
        };
    }

    /// `$rows` and `$panel` load a register: TILELOADDT1 passes by the L1 cache where it can, so that what is used again soon
    /// stays there. That is the panel, where rows pass over it and it is small enough.
    macro_rules! one_product_of_32_rows {
        (rows $rows:literal, panel $panel:literal, $multiply:literal) => {
            concat!(
                $rows,
                " tmm4, [{upper} + {stride}*1]
                ",
                $panel,
                " tmm6, [{panel} + {line}*1]
                ",
                $multiply,
                " tmm0, tmm4, tmm6
                ",
                $panel,
                " tmm7, [{panel} + {line}*1 + 64]
                ",
                $multiply,
                " tmm1, tmm4, tmm7
                ",
                $rows,
                " tmm5, [{lower} + {stride}*1]
                ",
                $multiply,
                " tmm2, tmm5, tmm6
                ",
                $multiply,
                " tmm3, tmm5, tmm7"
            )
        };
    }

    macro_rules! one_product_of_16_rows {
        (rows $rows:literal, panel $panel:literal, $multiply:literal) => {
            concat!(
                $rows,
                " tmm4, [{upper} + {stride}*1]
                ",
                $panel,
                " tmm6, [{panel} + {line}*1]
                ",
                $multiply,
                " tmm0, tmm4, tmm6
                ",
                $panel,
                " tmm7, [{panel} + {line}*1 + 64]
                ",
                $multiply,
                " tmm1, tmm4, tmm7
                /* {lower} */"
            )
        };
    }

    /// The smallest products first: upper by lower, upper by middle, middle by middle, middle by upper, lower by upper,
    /// upper by upper thirds.
    macro_rules! thirds_of_32_rows {
        () => {
            "tileloadd tmm4, [{upper} + {stride}*1]
            tileloadd tmm6, [{panel} + {line}*1 + 4096]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 4160]
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm5, [{lower} + {stride}*1]
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7
            tileloadd tmm6, [{panel} + {line}*1 + 2048]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 2112]
            tdpbf16ps tmm1, tmm4, tmm7
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7
            tileloadd tmm4, [{upper} + {stride}*1 + 64]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm5, [{lower} + {stride}*1 + 64]
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7
            tileloadd tmm6, [{panel} + {line}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 64]
            tdpbf16ps tmm1, tmm4, tmm7
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7
            tileloadd tmm4, [{upper} + {stride}*1 + 128]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm5, [{lower} + {stride}*1 + 128]
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7
            tileloadd tmm4, [{upper} + {stride}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm5, [{lower} + {stride}*1]
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7"
        };
    }

    macro_rules! thirds_of_16_rows {
        () => {
            "tileloadd tmm4, [{upper} + {stride}*1]
            tileloadd tmm6, [{panel} + {line}*1 + 4096]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 4160]
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm6, [{panel} + {line}*1 + 2048]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 2112]
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm4, [{upper} + {stride}*1 + 64]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm6, [{panel} + {line}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {line}*1 + 64]
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm4, [{upper} + {stride}*1 + 128]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm4, [{upper} + {stride}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tdpbf16ps tmm1, tmm4, tmm7
            /* {lower} */"
        };
    }

    macro_rules! store_32_rows {
        () => {
            "tilestored [{upper} + {across}*1], tmm0
            tilestored [{upper} + {across}*1 + 64], tmm1
            tilestored [{lower} + {across}*1], tmm2
            tilestored [{lower} + {across}*1 + 64], tmm3"
        };
    }

    macro_rules! store_16_rows {
        () => {
            "tilestored [{upper} + {across}*1], tmm0
            tilestored [{upper} + {across}*1 + 64], tmm1
            /* {lower} */"
        };
    }

    kernel!(
        Bytes32,
        STEP,
        one_product_of_32_rows!(rows "tileloaddt1", panel "tileloadd", "tdpbusd"),
        store_32_rows!()
    );
    kernel!(
        Bytes16,
        STEP,
        one_product_of_16_rows!(rows "tileloaddt1", panel "tileloadd", "tdpbusd"),
        store_16_rows!()
    );
    kernel!(
        Pairs32,
        STEP,
        one_product_of_32_rows!(rows "tileloaddt1", panel "tileloaddt1", "tdpbf16ps"),
        store_32_rows!()
    );
    kernel!(
        Pairs16,
        STEP,
        one_product_of_16_rows!(rows "tileloaddt1", panel "tileloaddt1", "tdpbf16ps"),
        store_16_rows!()
    );
    kernel!(Thirds32, 3 * STEP, thirds_of_32_rows!(), store_32_rows!());
    kernel!(Thirds16, 3 * STEP, thirds_of_16_rows!(), store_16_rows!());
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
        let (mut sums, mut shares) = (vec![u32::MAX; ROWS * ACROSS], Shares::default());
        let (ahead, rows) = (Ahead::share(panel, 0, 1), rows.as_ptr().cast());
        let factors = Factors { word, rows, stride: 4 * STRIDE, panel, ahead };
        let into = Room { first: sums.as_mut_ptr(), across: ACROSS };
        processor.run(Multiplied { factors, count, into, shares: &mut shares });
        assert_eq!(shares.left, 0, "a share for each step");
        let is_untouched = |words: &[u32]| words.iter().all(|it| *it == u32::MAX);
        assert!(sums.chunks(ACROSS).all(|row| is_untouched(&row[PANEL..])), "beyond the panel");
        assert!(count > 16 || is_untouched(&sums[16 * ACROSS..]), "beyond the rows");
        Some(sums.chunks(ACROSS).take(count).map(|row| row[..PANEL].to_vec()).collect())
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
        for (row, sums) in got.iter().enumerate() {
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
        for (row, sums) in got.iter().enumerate() {
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

    #[test]
    fn tiles_are_multiplied_as_the_manual_says() {
        for count in [1, 15, 16, 17, 32] {
            for lines in [0, 1, 15, 16, 17, 32, 50] {
                check_bytes(count, lines);
                check_pairs(count, lines);
            }
        }
    }

    #[test]
    fn a_panel_without_lines_gives_zeros() {
        let Some(got) = run(Word::Pairs, &vec![0; ROWS * STRIDE], &[], 32) else { return };
        assert!(got.iter().flatten().all(|sum| *sum == 0));
    }
}
