//! Products in the tile registers of AMX (Intel since Sapphire Rapids). There are eight of 16 rows by 64 bytes. One
//! instruction multiplies 16 rows by 16 columns, 32 bf16 numbers or 64 bytes deep, and adds the products to a third
//! register.
//!
//! The kernels use four registers for sums (32 rows by a panel's 32 columns), two for rows and two for the panel. The
//! layout of panels of pairs and of groups of four bytes is that of these registers.

use super::blocking::{self, Ahead, Blocks};
use super::matrix::PANEL;

/// Rows of a product's tile.
pub(super) const ROWS: usize = 32;
/// Words of a row, and lines of a panel, that one step multiplies.
pub(super) const STEP: usize = 16;
/// Bytes of a register's row.
const REGISTER_ROW: usize = 64;
/// Bytes of a panel's line: a word for each column.
pub(super) const LINE_BYTES: usize = PANEL * 4;
/// Bytes from one cache line to the next.
const CACHE_LINE: usize = 64;

/// Asks the operating system for tile registers. Whether the processor has them, multiplies bf16 numbers and bytes in them,
/// and this process may use them.
pub(super) fn is_usable() -> bool {
    x86::has_instructions() && x86::is_permitted()
}

/// This thread's tile registers, configured as the kernels need them until it is dropped.
pub(super) struct Registers {
    /// The configuration belongs to one thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Registers {
    /// # Safety
    /// The tile registers are usable, and no other value of this thread exists.
    pub(super) unsafe fn configure() -> Registers {
        // SAFETY: as the caller promises.
        unsafe { x86::configure() };
        Registers { _thread: std::marker::PhantomData }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: a value exists only where the registers are usable.
        unsafe { x86::release() };
    }
}

/// Bytes of the copied rows of a block: half of the L2 cache.
const BLOCK_BYTES: usize = 1024 * 1024;
/// Blocks of at most this many rows are shared by threads: reading the weights twice would cost more than copying twice.
const FEW_ROWS: usize = 4 * ROWS;
/// The most rows of a block.
const MOST_ROWS: usize = 32 * ROWS;

/// Bytes from one copied row to the next, for rows of `bytes` bytes. It is an odd number of cache lines: the rows of a tile
/// then do not compete for one set of a cache.
pub(super) fn stride(bytes: usize) -> usize {
    (bytes.div_ceil(CACHE_LINE) | 1) * CACHE_LINE
}

/// Splits `rows` rows, whose copies are `stride` bytes apart, among `threads` threads. Larger blocks read the weights fewer
/// times. Threads that share a block each copy all its rows.
pub(super) fn blocks(rows: usize, threads: usize, stride: usize) -> Blocks {
    let fitting = (BLOCK_BYTES / stride).clamp(ROWS, MOST_ROWS) / ROWS * ROWS;
    let share = rows.div_ceil(threads.max(1)).next_multiple_of(ROWS);
    Blocks { most: fitting.min(share.max(FEW_ROWS)), step: ROWS }
}

/// Splits the rows of a block into those of tiles.
pub(super) fn tiles(rows: usize) -> Vec<(usize, usize)> {
    blocking::even_steps(rows, rows.div_ceil(ROWS), ROWS)
}

/// A few rows and the part of a panel that multiplies them.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a> {
    /// Rows of whole steps. What they have beyond the panel is zero.
    pub(super) rows: *const u8,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    /// Lines of [`PANEL`] words, as many as a row has words; of thirds, whole steps.
    pub(super) panel: &'a [u32],
    /// Destination of the sums: [`PANEL`] per row.
    pub(super) into: *mut u32,
    /// Sums from one row to the next.
    pub(super) across: usize,
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies 16 rows where `count` is at most 16, else 32.
    ///
    /// # Safety
    /// The calling thread holds [`Registers`]. Memory of 16 or 32 rows exists, and room for as many rows of sums.
    pub(super) unsafe fn multiply(self, _: &Registers, count: usize) {
        let step = STEP * PANEL;
        let (whole, rest) = self.panel.split_at(self.panel.len() / step * step);
        // The last step is a copy, padded with zeros.
        let mut last = [0_u32; STEP * PANEL];
        last[..rest.len()].copy_from_slice(rest);
        let steps = whole.len() / step;
        let (ahead, lines) = self.ahead.lines();
        let run = Run {
            rows: self.rows,
            stride: self.stride,
            panel: whole.as_ptr().cast(),
            steps,
            last: if rest.is_empty() { std::ptr::null() } else { last.as_ptr().cast() },
            ahead,
            lines: if steps == 0 { 0 } else { lines.div_ceil(steps) },
            into: self.into,
            across: self.across * 4,
        };
        // SAFETY: as the caller promises.
        unsafe {
            match count > ROWS / 2 {
                true => x86::pairs_of_32_rows(run),
                false => x86::pairs_of_16_rows(run),
            }
        }
    }
}

/// The arguments of a kernel.
struct Run {
    rows: *const u8,
    /// Bytes from one row to the next.
    stride: usize,
    /// Lines of whole steps.
    panel: *const u8,
    steps: usize,
    /// The lines of one more step; null if there is none.
    last: *const u8,
    /// Memory to prefetch.
    ahead: *const u8,
    /// Cache lines to prefetch in each step.
    lines: usize,
    into: *mut u32,
    /// Bytes from one row of sums to the next.
    across: usize,
}

/// On other systems nothing calls these but the first.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod x86 {
    use super::Run;

    pub(super) fn has_instructions() -> bool {
        false
    }

    pub(super) fn is_permitted() -> bool {
        false
    }

    pub(super) unsafe fn configure() {
        unreachable!("there are no tile registers here")
    }

    pub(super) unsafe fn release() {}

    macro_rules! absent {
        ($($name:ident)+) => {
            $(pub(super) unsafe fn $name(_: Run) {
                unreachable!("there are no tile registers here")
            })+
        };
    }
    absent!(pairs_of_32_rows pairs_of_16_rows);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::__cpuid_count;

    use super::{CACHE_LINE, LINE_BYTES, REGISTER_ROW, Run, STEP};

    /// Bits of CPUID's leaf 7 in EDX: products of bf16 numbers, tiles, products of bytes (Intel's manual, volume 2,
    /// CPUID).
    const BF16_TILES_BYTES: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    /// Asks the kernel to save a state of the processor for this process (Linux, Documentation/arch/x86/xstate.rst).
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    /// The state: contents of tile registers.
    const XFEATURE_XTILEDATA: libc::c_long = 18;

    pub(super) fn has_instructions() -> bool {
        let has_leaf = __cpuid_count(0, 0).eax >= 7;
        has_leaf && __cpuid_count(7, 0).edx & BF16_TILES_BYTES == BF16_TILES_BYTES
    }

    pub(super) fn is_permitted() -> bool {
        // SAFETY: the call takes numbers; kernels that don't know it refuse it.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }

    /// The operand of LDTILECFG (Intel's manual, volume 1, section 18.2).
    #[repr(C, align(64))]
    struct Configuration {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        bytes_of_row: [u16; 16],
        rows: [u8; 16],
    }

    const B: u16 = REGISTER_ROW as u16;
    const R: u8 = STEP as u8;

    /// All eight registers whole.
    static WHOLE: Configuration = Configuration {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        bytes_of_row: [B, B, B, B, B, B, B, B, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [R, R, R, R, R, R, R, R, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    /// # Safety
    /// The tile registers are usable.
    pub(super) unsafe fn configure() {
        // SAFETY: as the caller promises; the configuration is valid.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const WHOLE, options(nostack, readonly, preserves_flags))
        }
    }

    /// # Safety
    /// The tile registers are usable.
    pub(super) unsafe fn release() {
        // SAFETY: as the caller promises.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }

    /// Registers 0 to 3 are sums: upper rows by left and right columns, then lower rows. `step` loads rows from `{upper}`
    /// and `{lower}`, and lines from `{panel}`, with `{width}` between lines. Bytes between steps: `row` and `panel`.
    macro_rules! kernel {
        ($name:ident, row $row:literal, panel $panel:literal, $step:expr, $store:expr) => {
            /// # Safety
            /// The thread has configured its registers; all rows and lines exist, and there is room for the sums.
            pub(super) unsafe fn $name(run: Run) {
                let lower = run.rows.wrapping_add(STEP * run.stride);
                // SAFETY: as the caller promises; prefetching takes any address.
                unsafe {
                    asm!(
                        "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                        "test {steps}, {steps}",
                        "jz 4f",
                        "2:",
                        "mov {width}, {line}",
                        $step,
                        concat!("add {upper}, ", $row),
                        concat!("add {lower}, ", $row),
                        concat!("add {panel}, ", $panel),
                        "mov {width}, {lines}",
                        "test {width}, {width}",
                        "jz 6f",
                        "3:",
                        "prefetcht1 [{ahead}]",
                        "add {ahead}, {cache_line}",
                        "dec {width}",
                        "jnz 3b",
                        "6:",
                        "dec {steps}",
                        "jnz 2b",
                        "4:",
                        "test {last}, {last}",
                        "jz 5f",
                        "mov {panel}, {last}",
                        "xor {last:e}, {last:e}",
                        "mov {steps:e}, 1",
                        "jmp 2b",
                        "5:",
                        $store,
                        upper = inout(reg) run.rows => _,
                        lower = inout(reg) lower => _,
                        stride = in(reg) run.stride,
                        panel = inout(reg) run.panel => _,
                        steps = inout(reg) run.steps => _,
                        last = inout(reg) run.last => _,
                        ahead = inout(reg) run.ahead => _,
                        lines = in(reg) run.lines,
                        into = inout(reg) run.into => _,
                        across = in(reg) run.across,
                        width = out(reg) _,
                        line = const LINE_BYTES,
                        cache_line = const CACHE_LINE,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    )
                }
            }
        };
    }

    macro_rules! pairs_of_32_rows {
        () => {
            "tileloadd tmm4, [{upper} + {stride}*1]
            tileloadd tmm6, [{panel} + {width}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {width}*1 + 64]
            tdpbf16ps tmm1, tmm4, tmm7
            tileloadd tmm5, [{lower} + {stride}*1]
            tdpbf16ps tmm2, tmm5, tmm6
            tdpbf16ps tmm3, tmm5, tmm7"
        };
    }

    macro_rules! pairs_of_16_rows {
        () => {
            "tileloadd tmm4, [{upper} + {stride}*1]
            tileloadd tmm6, [{panel} + {width}*1]
            tdpbf16ps tmm0, tmm4, tmm6
            tileloadd tmm7, [{panel} + {width}*1 + 64]
            tdpbf16ps tmm1, tmm4, tmm7"
        };
    }

    macro_rules! store_16_rows {
        () => {
            "tilestored [{into} + {across}*1], tmm0
            tilestored [{into} + {across}*1 + 64], tmm1"
        };
    }

    macro_rules! store_32_rows {
        () => {
            "tilestored [{into} + {across}*1], tmm0
            tilestored [{into} + {across}*1 + 64], tmm1
            lea {into}, [{into} + {across}*8]
            lea {into}, [{into} + {across}*8]
            tilestored [{into} + {across}*1], tmm2
            tilestored [{into} + {across}*1 + 64], tmm3"
        };
    }

    kernel!(pairs_of_32_rows, row 64, panel 2048, pairs_of_32_rows!(), store_32_rows!());
    kernel!(pairs_of_16_rows, row 64, panel 2048, pairs_of_16_rows!(), store_16_rows!());
}

#[cfg(test)]
mod tests {
    use super::super::pairs::nearest;
    use super::*;

    /// Words of a buffer's row, and sums from one row to the next: more than are used.
    const STRIDE: usize = 100;
    const ACROSS: usize = PANEL + 8;

    /// Runs the kernel, and gives the rows of sums.
    #[track_caller]
    fn run(rows: &[u32], panel: &[u32], count: usize) -> Option<Vec<Vec<u32>>> {
        if !is_usable() {
            println!("skipped: the processor has no AMX");
            return None;
        }
        let mut sums = vec![u32::MAX; ROWS * ACROSS];
        let factors = Factors {
            rows: rows.as_ptr().cast(),
            stride: 4 * STRIDE,
            panel,
            into: sums.as_mut_ptr(),
            across: ACROSS,
            ahead: Ahead::share(panel, 0, 1),
        };
        // SAFETY: the registers are usable, and configured once; there are 32 rows of words and of sums.
        unsafe { factors.multiply(&Registers::configure(), count) };
        assert!(
            sums.chunks(ACROSS).all(|row| row[PANEL..].iter().all(|it| *it == u32::MAX)),
            "beyond the panel"
        );
        assert!(count > 16 || sums[16 * ACROSS..].iter().all(|it| *it == u32::MAX), "beyond the rows");
        Some(sums.chunks(ACROSS).take(count).map(|row| row[..PANEL].to_vec()).collect())
    }

    fn mixed(at: usize) -> u32 {
        (at as u32).wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b)
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
        let Some(got) = run(&rows, &panel, count) else { return };
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
            for lines in [1, 15, 16, 17, 32, 50] {
                check_pairs(count, lines);
            }
        }
    }

    #[test]
    fn a_panel_without_lines_gives_zeros() {
        let Some(got) = run(&vec![0; ROWS * STRIDE], &[], 32) else { return };
        assert!(got.iter().flatten().all(|sum| *sum == 0));
    }

    #[test]
    fn threads_have_blocks_of_their_own_if_there_are_rows_enough() {
        let most = |rows, threads| blocks(rows, threads, 1600).most;
        assert_eq!([most(400, 1), most(400, 2), most(400, 4), most(40, 2)], [416, 224, 128, 128]);
        assert_eq!(blocks(400, 1, 1 << 20).most, ROWS);
    }

    #[test]
    fn blocks_are_split_into_whole_tiles_and_a_rest() {
        assert_eq!(tiles(70), [(0, 32), (32, 64), (64, 70)]);
        assert_eq!(tiles(0), []);
    }
}
