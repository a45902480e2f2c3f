//! One step of a product in the tile registers of AMX, for each kind of word and number of rows.

/// A product of 16 or 32 rows by a panel's columns, in steps. Registers hold the sums from one call to the next: other kernels
/// do not run in between, and compilers use no tile registers unless asked.
pub(super) trait Kernel {
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
pub(super) mod x86 {
    use super::Kernel;

    macro_rules! absent {
        ($($name:ident)+) => {
            $(
                pub(in super::super) struct $name;

                impl Kernel for $name {
                    const STEP: usize = super::super::amx::STEP;

                    unsafe fn zero(&self) {
                        unreachable!("there are no tile registers here")
                    }

                    unsafe fn step(&self, _: *const u8, _: usize, _: *const u32) {}

                    unsafe fn store(&self, _: *mut u32, _: usize) {}
                }
            )+
        };
    }
    absent!(Bytes32 Bytes16 Pairs32 Pairs16 Slices16);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(super) mod x86 {
    use std::arch::asm;

    use super::super::amx::{LINE_BYTES, SLICES, STEP};
    use super::Kernel;

    /// Registers 0 to 3 are sums: upper rows by left and right columns, then lower rows. A step loads rows from `{upper}` and
    /// `{lower}`, and lines from `{panel}`, with `{line}` between lines.
    macro_rules! kernel {
        ($name:ident, $step:expr, $store:expr) => {
            pub(in super::super) struct $name;

            impl Kernel for $name {
                const STEP: usize = STEP;

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
        one_product_of_32_rows!(rows "tileloaddt1", panel "tileloadd", "tdpbusd"),
        store_32_rows!()
    );
    kernel!(
        Bytes16,
        one_product_of_16_rows!(rows "tileloaddt1", panel "tileloadd", "tdpbusd"),
        store_16_rows!()
    );
    kernel!(
        Pairs32,
        one_product_of_32_rows!(rows "tileloaddt1", panel "tileloaddt1", "tdpbf16ps"),
        store_32_rows!()
    );
    kernel!(
        Pairs16,
        one_product_of_16_rows!(rows "tileloaddt1", panel "tileloaddt1", "tdpbf16ps"),
        store_16_rows!()
    );

    /// Registers 0 and 1 are sums of products of upper slices, by left and right columns; 2 and 3 of upper and middle ones;
    /// 4 and 5 of middle ones, and of upper and lower ones. Each slice of a row is loaded once: those of a panel are read from
    /// the L1 cache, as a step needs them again soon. From one slice to the next are 64 bytes in a row, and 2,048 in a panel.
    pub(in super::super) struct Slices16;

    impl Kernel for Slices16 {
        const STEP: usize = SLICES * STEP;

        #[inline(always)]
        unsafe fn zero(&self) {
            // SAFETY: as the caller promises, here and below.
            unsafe {
                asm!(
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", "tilezero tmm4", "tilezero tmm5",
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _,
                    options(nostack, nomem, preserves_flags),
                )
            }
        }

        #[inline(always)]
        unsafe fn step(&self, rows: *const u8, stride: usize, panel: *const u32) {
            // SAFETY: see above.
            unsafe {
                asm!(
                    "tileloaddt1 tmm6, [{rows} + {stride}*1 + 128]",
                    "tileloadd tmm7, [{panel} + {line}*1]",
                    "tdpbssd tmm4, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 64]",
                    "tdpbssd tmm5, tmm6, tmm7",
                    "tileloaddt1 tmm6, [{rows} + {stride}*1]",
                    "tileloadd tmm7, [{panel} + {line}*1 + 4096]",
                    "tdpbssd tmm4, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 4160]",
                    "tdpbssd tmm5, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 2048]",
                    "tdpbssd tmm2, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 2112]",
                    "tdpbssd tmm3, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1]",
                    "tdpbssd tmm0, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 64]",
                    "tdpbssd tmm1, tmm6, tmm7",
                    "tileloaddt1 tmm6, [{rows} + {stride}*1 + 64]",
                    "tileloadd tmm7, [{panel} + {line}*1 + 2048]",
                    "tdpbssd tmm4, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 2112]",
                    "tdpbssd tmm5, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1]",
                    "tdpbssd tmm2, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {line}*1 + 64]",
                    "tdpbssd tmm3, tmm6, tmm7",
                    rows = in(reg) rows,
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
            let level = |at: usize| into.wrapping_byte_add(at * STEP * across);
            // SAFETY: see above.
            unsafe {
                asm!(
                    "tilestored [{upper} + {across}*1], tmm0",
                    "tilestored [{upper} + {across}*1 + 64], tmm1",
                    "tilestored [{middle} + {across}*1], tmm2",
                    "tilestored [{middle} + {across}*1 + 64], tmm3",
                    "tilestored [{lower} + {across}*1], tmm4",
                    "tilestored [{lower} + {across}*1 + 64], tmm5",
                    upper = in(reg) level(0),
                    middle = in(reg) level(1),
                    lower = in(reg) level(2),
                    across = in(reg) across,
                    options(nostack, preserves_flags),
                )
            }
        }
    }
}
