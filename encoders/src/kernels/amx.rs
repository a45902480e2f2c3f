//! The tile registers of AMX (Intel since Sapphire Rapids), and blocks of rows that suit them. There are eight of 16 rows by 64 bytes. One
//! instruction multiplies 16 rows by 16 columns, 32 bf16 numbers or 64 bytes deep, and adds the products to a third
//! register.
//!
//! Most kernels use four registers for sums (32 rows by a panel's 32 columns), two for rows and two for the panel. Those of
//! slices use six for three sums of 16 rows. The layout of panels of pairs and of groups of four bytes is that of these
//! registers.

use super::blocking::{self, Blocks};
use super::matrix::PANEL;

/// Rows of a product's tile.
pub(super) const ROWS: usize = 32;
/// Words of a row, and lines of a panel, that one step multiplies.
pub(super) const STEP: usize = 16;
/// Slices of a number that bytes multiply, and sums of their products.
pub(super) const SLICES: usize = 3;
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

/// Splits the rows of a block into those of tiles, which have `most` rows.
pub(super) fn tiles(rows: usize, most: usize) -> Vec<(usize, usize)> {
    blocking::even_steps(rows, rows.div_ceil(most), most)
}

/// On other systems nothing calls these but the first.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod x86 {
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
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::__cpuid_count;

    use super::{REGISTER_ROW, STEP};

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_blocks_of_their_own_if_there_are_rows_enough() {
        let most = |rows, threads| blocks(rows, threads, 1600).most;
        assert_eq!([most(400, 1), most(400, 2), most(400, 4), most(40, 2)], [416, 224, 128, 128]);
        assert_eq!(blocks(400, 1, 1 << 20).most, ROWS);
    }

    #[test]
    fn blocks_are_split_into_whole_tiles_and_a_rest() {
        assert_eq!(tiles(70, ROWS), [(0, 32), (32, 64), (64, 70)]);
        assert_eq!(tiles(0, ROWS), []);
    }
}
