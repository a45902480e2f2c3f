//! Products of bytes in the tile registers of AMX, in steps: between two steps, vector registers finish the tile before.
//! Multiplying a tile of bytes takes as long as finishing it; one after the other takes a quarter longer.

use super::amx::{ROWS, Registers, STEP};
use super::blocking::Ahead;
use super::lanes::Lanes;
use super::matrix::PANEL;

/// Sums of a tile.
pub(super) type Sums = [[i32; PANEL]; ROWS];

/// Work in vector registers that runs between the steps of a product.
pub(super) trait Meanwhile {
    /// Does the share of one of several steps.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    unsafe fn share<L: Lanes>(&mut self, step: usize, steps: usize);
}

/// A few rows and the panel that multiplies them.
pub(super) struct Factors<'a> {
    /// Rows of whole steps. What they have beyond the panel is any number.
    pub(super) rows: *const u8,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    /// Lines of [`PANEL`] words of four bytes, as many as a row has words.
    pub(super) panel: &'a [u32],
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies 16 rows where `count` is at most 16, else 32; bytes of rows have no sign, those of the panel have one.
    ///
    /// # Safety
    /// The calling thread holds [`Registers`]. Memory of 16 or 32 rows exists. The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn multiply<L: Lanes>(
        self,
        _: &Registers,
        count: usize,
        into: &mut Sums,
        meanwhile: &mut impl Meanwhile,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            match count > ROWS / 2 {
                true => self.run::<L, x86::Of32Rows>(into, meanwhile),
                false => self.run::<L, x86::Of16Rows>(into, meanwhile),
            }
        }
    }

    /// # Safety
    /// As [`Factors::multiply`].
    #[inline(always)]
    unsafe fn run<L: Lanes, K: Kernel>(self, into: &mut Sums, meanwhile: &mut impl Meanwhile) {
        let whole = self.panel.chunks_exact(STEP * PANEL);
        let (steps, rest) = (self.panel.len().div_ceil(STEP * PANEL), whole.remainder());
        // SAFETY: as the caller promises; the last step is of a copy, padded with zeros.
        unsafe {
            K::zero();
            for (step, panel) in whole.enumerate() {
                K::step(self.rows.add(step * 4 * STEP), self.stride, panel.as_ptr());
                self.ahead.fetch_share::<L>(step, steps);
                meanwhile.share::<L>(step, steps);
            }
            if !rest.is_empty() {
                let mut last = [0_u32; STEP * PANEL];
                last[..rest.len()].copy_from_slice(rest);
                K::step(self.rows.add((steps - 1) * 4 * STEP), self.stride, last.as_ptr());
                self.ahead.fetch_share::<L>(steps - 1, steps);
                meanwhile.share::<L>(steps - 1, steps);
            }
            K::store(into.as_mut_ptr().cast());
        }
    }
}

/// A product of 16 or 32 rows by a panel's columns, in steps. Registers 0 to 3 hold the sums from one call to the next: other
/// kernels do not run in between, and compilers use no tile registers unless asked.
trait Kernel {
    /// # Safety
    /// The thread has configured its registers, here and below.
    unsafe fn zero();
    /// # Safety
    /// The rows, `stride` bytes apart, and the panel's lines exist.
    unsafe fn step(rows: *const u8, stride: usize, panel: *const u32);
    /// # Safety
    /// There is room for the rows of sums.
    unsafe fn store(into: *mut i32);
}

/// On other systems nothing calls these.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod x86 {
    use super::Kernel;

    pub(super) struct Of32Rows;
    pub(super) struct Of16Rows;

    macro_rules! absent {
        ($($name:ident)+) => {
            $(impl Kernel for $name {
                unsafe fn zero() {
                    unreachable!("there are no tile registers here")
                }

                unsafe fn step(_: *const u8, _: usize, _: *const u32) {}

                unsafe fn store(_: *mut i32) {}
            })+
        };
    }
    absent!(Of32Rows Of16Rows);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use std::arch::asm;

    use super::{Kernel, STEP};
    use crate::kernels::amx::LINE_BYTES;

    pub(super) struct Of32Rows;
    pub(super) struct Of16Rows;

    /// Registers 0 to 3 are sums: upper rows by left and right columns, then lower rows. A step loads rows from `{upper}` and
    /// `{lower}`, and lines from `{panel}`, with `{line}` between lines.
    macro_rules! kernel {
        ($name:ident, $step:expr, $store:expr) => {
            impl Kernel for $name {
                #[inline(always)]
                unsafe fn zero() {
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
                unsafe fn step(rows: *const u8, stride: usize, panel: *const u32) {
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
                unsafe fn store(into: *mut i32) {
                    let lower = into.wrapping_byte_add(STEP * LINE_BYTES);
                    // SAFETY: see above.
                    unsafe {
                        asm!(
                            $store,
                            upper = in(reg) into,
                            lower = in(reg) lower,
                            line = in(reg) LINE_BYTES,
                            options(nostack, preserves_flags),
                        )
                    }
                }
            }
        };
    }

    kernel!(
        Of32Rows,
        "tileloadd tmm4, [{upper} + {stride}*1]
        tileloadd tmm6, [{panel} + {line}*1]
        tdpbusd tmm0, tmm4, tmm6
        tileloadd tmm7, [{panel} + {line}*1 + 64]
        tdpbusd tmm1, tmm4, tmm7
        tileloadd tmm5, [{lower} + {stride}*1]
        tdpbusd tmm2, tmm5, tmm6
        tdpbusd tmm3, tmm5, tmm7",
        "tilestored [{upper} + {line}*1], tmm0
        tilestored [{upper} + {line}*1 + 64], tmm1
        tilestored [{lower} + {line}*1], tmm2
        tilestored [{lower} + {line}*1 + 64], tmm3"
    );
    kernel!(
        Of16Rows,
        "tileloadd tmm4, [{upper} + {stride}*1]
        tileloadd tmm6, [{panel} + {line}*1]
        tdpbusd tmm0, tmm4, tmm6
        tileloadd tmm7, [{panel} + {line}*1 + 64]
        tdpbusd tmm1, tmm4, tmm7
        /* {lower} */",
        "tilestored [{upper} + {line}*1], tmm0
        tilestored [{upper} + {line}*1 + 64], tmm1
        /* {lower} */"
    );
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::super::lanes::Work;
    use super::*;

    /// Words of a buffer's row: more than are used.
    const STRIDE: usize = 100;

    /// Counts the steps.
    #[derive(Default)]
    struct Steps(Vec<usize>);

    impl Meanwhile for Steps {
        #[inline(always)]
        unsafe fn share<L: Lanes>(&mut self, step: usize, steps: usize) {
            assert!(step < steps);
            self.0.push(step);
        }
    }

    struct Multiplied<'a> {
        factors: Factors<'a>,
        count: usize,
        sums: &'a mut Sums,
        steps: &'a mut Steps,
    }

    impl Work for Multiplied<'_> {
        type Output = ();

        #[inline(always)]
        unsafe fn run<L: Lanes>(self) {
            let Multiplied { factors, count, sums, steps } = self;
            // SAFETY: the test uses a processor with tile registers, configures them once, and has 32 rows.
            unsafe { factors.multiply::<L>(&Registers::configure(), count, sums, steps) };
        }
    }

    fn mixed(at: usize) -> u32 {
        (at as u32).wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b)
    }

    /// TDPBUSD as Intel's manual has it: four bytes without a sign by four with one, summed in 32 bits.
    #[track_caller]
    fn check(count: usize, lines: usize) {
        let Some(processor) = Processor::detect().filter(|processor| processor.has_amx()) else {
            println!("skipped: the processor has no AMX");
            return;
        };
        let rows: Vec<u32> = (0..ROWS * STRIDE).map(mixed).collect();
        let panel: Vec<u32> = (0..lines * PANEL).map(|at| mixed(at + 12_345)).collect();
        let (mut sums, mut steps) = ([[i32::MAX; PANEL]; ROWS], Steps::default());
        let ahead = Ahead::share(&panel, 0, 1);
        let factors = Factors { rows: rows.as_ptr().cast(), stride: 4 * STRIDE, panel: &panel, ahead };
        processor.run(Multiplied { factors, count, sums: &mut sums, steps: &mut steps });
        for (row, sums) in sums.iter().enumerate().take(count) {
            for (column, got) in sums.iter().enumerate() {
                let word = |line: usize| -> i32 {
                    let (a, b) = (rows[row * STRIDE + line], panel[line * PANEL + column]);
                    let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
                    products.map(|(a, b)| i32::from(a) * i32::from(b.cast_signed())).sum()
                };
                assert_eq!(*got, (0..lines).map(word).sum::<i32>(), "{row}, {column}");
            }
        }
        assert!(count > 16 || sums[16..].iter().flatten().all(|it| *it == i32::MAX), "beyond the rows");
        assert_eq!(steps.0, (0..lines.div_ceil(STEP)).collect::<Vec<_>>(), "a share for each step");
    }

    #[test]
    fn bytes_are_multiplied_as_the_manual_says() {
        for count in [1, 15, 16, 17, 32] {
            for lines in [0, 1, 15, 16, 17, 32, 50] {
                check(count, lines);
            }
        }
    }
}
