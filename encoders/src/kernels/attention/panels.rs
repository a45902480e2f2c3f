//! The keys or values of a head as panels, in f32 or in bf16, and their products with the rows of a tile.

use super::super::Processor;
use super::super::amx::{self, Registers};
use super::super::bf16;
use super::super::blocking::Ahead;
use super::super::float;
use super::super::lanes::Lanes;
use super::super::matrix::{Aligned, PANEL, Panels};
use super::super::pairs::{PairPanels, RowWord, STRIDE};

/// Rows of f32 to multiply.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileRows {
    pub(super) rows: *const f32,
    /// Values from one row to the next.
    pub(super) stride: usize,
    /// Number of rows, at most those of a tile.
    pub(super) count: usize,
    /// Values of a row that are multiplied, at most the depth of the panels.
    pub(super) length: usize,
}

/// Panels that a thread fills for one head after another.
pub(super) trait HeadPanels: 'static {
    /// Whether AMX multiplies them.
    const IN_TILES: bool;

    /// Panels without a shape.
    fn empty() -> Self;

    /// Changes the shape; the contents are then unspecified.
    fn reshape_for(&mut self, processor: Processor, depth: usize, columns: usize);

    /// Writes one column.
    ///
    /// # Safety
    /// The panels were last shaped for a processor with the instructions of `L`.
    unsafe fn set_column<L: Lanes>(&mut self, column: usize, values: &[f32]);

    /// Writes one row. Rows must be written in order.
    ///
    /// # Safety
    /// As [`HeadPanels::set_column`].
    unsafe fn set_row<L: Lanes>(&mut self, row: usize, values: &[f32]);

    /// Writes the products of `rows` with the first `columns` columns, and with the rest of the last one's panel. Rows of
    /// products are `across` values apart.
    ///
    /// # Safety
    /// As [`HeadPanels::set_column`]; the rows exist, and there is room for their products, or with registers for those of
    /// [`amx::ROWS`] rows.
    unsafe fn multiply<L: Lanes>(
        &mut self,
        rows: TileRows,
        columns: usize,
        into: *mut f32,
        across: usize,
        registers: Option<&Registers>,
    );
}

impl HeadPanels for Panels {
    const IN_TILES: bool = false;

    fn empty() -> Self {
        Panels::empty()
    }

    fn reshape_for(&mut self, _: Processor, depth: usize, columns: usize) {
        self.reshape(depth, columns);
    }

    #[inline(always)]
    unsafe fn set_column<L: Lanes>(&mut self, column: usize, values: &[f32]) {
        Panels::set_column(self, column, values);
    }

    #[inline(always)]
    unsafe fn set_row<L: Lanes>(&mut self, row: usize, values: &[f32]) {
        for (panel, part) in values.chunks(PANEL).enumerate() {
            let line = self.row_mut(panel, row);
            line[..part.len()].copy_from_slice(part);
            line[part.len()..].fill(0.0);
        }
    }

    #[inline(always)]
    unsafe fn multiply<L: Lanes>(
        &mut self,
        rows: TileRows,
        columns: usize,
        into: *mut f32,
        across: usize,
        _: Option<&Registers>,
    ) {
        for panel in 0..columns.div_ceil(PANEL) {
            let factors = float::Factors {
                rows: rows.rows,
                stride: rows.stride,
                panel: self.rows(panel, 0, rows.length),
                into: into.wrapping_add(panel * PANEL),
                across,
                ahead: Ahead::nothing(),
            };
            // SAFETY: as the caller promises.
            unsafe { factors.multiply::<L>(rows.count) };
        }
    }
}

/// Panels of bf16 numbers, and a tile of rounded rows.
pub(super) struct Pairs {
    panels: PairPanels,
    word: RowWord,
    rows: Aligned<u32>,
    /// The pairs of one column.
    column: Vec<u32>,
    /// Sums of one part of longer rows.
    sums: [[f32; PANEL]; amx::ROWS],
}

impl HeadPanels for Pairs {
    const IN_TILES: bool = true;

    fn empty() -> Self {
        Pairs {
            panels: PairPanels::empty(),
            word: RowWord::Widened,
            rows: Aligned::zeros(0),
            column: Vec::new(),
            sums: [[0.0; PANEL]; amx::ROWS],
        }
    }

    fn reshape_for(&mut self, processor: Processor, depth: usize, columns: usize) {
        self.word = RowWord::of(processor);
        self.panels.reshape(depth, columns);
        self.rows.reserve(amx::ROWS * STRIDE);
        self.column.resize(depth.div_ceil(32) * 16, 0);
    }

    #[inline(always)]
    unsafe fn set_column<L: Lanes>(&mut self, column: usize, values: &[f32]) {
        // SAFETY: words are pairs only where the processor has AVX512-BF16.
        unsafe { self.word.pairs(values, &mut self.column) };
        self.panels.set_column(column, &self.column);
    }

    #[inline(always)]
    unsafe fn set_row<L: Lanes>(&mut self, row: usize, values: &[f32]) {
        self.panels.set_row(row, values);
    }

    #[inline(always)]
    unsafe fn multiply<L: Lanes>(
        &mut self,
        rows: TileRows,
        columns: usize,
        into: *mut f32,
        across: usize,
        registers: Option<&Registers>,
    ) {
        let (pairs, most) = (rows.length.div_ceil(2), self.word.most_pairs());
        for from in (0..pairs).step_by(most) {
            let to = pairs.min(from + most);
            let values = 2 * from..rows.length.min(2 * to);
            // SAFETY: as the caller promises; words are pairs only where the processor has AVX512-BF16.
            unsafe {
                for (row, words) in
                    self.rows.values_mut().chunks_exact_mut(STRIDE).enumerate().take(rows.count)
                {
                    let row = rows.rows.add(row * rows.stride + values.start);
                    self.word.round(std::slice::from_raw_parts(row, values.len()), words);
                }
                for panel in 0..columns.div_ceil(PANEL) {
                    let place = into.add(panel * PANEL);
                    let (into, across_sums) = match from {
                        0 => (place, across),
                        _ => (self.sums.as_mut_ptr().cast(), PANEL),
                    };
                    let factors = bf16::Factors {
                        rows: self.rows.values().as_ptr(),
                        panel: self.panels.lines(panel, from, to),
                        into,
                        across: across_sums,
                        ahead: Ahead::nothing(),
                    };
                    match registers {
                        Some(registers) => factors.multiply_in::<L>(registers, STRIDE, rows.count),
                        None => factors.multiply::<L>(self.word, rows.count),
                    }
                    if from > 0 {
                        self.add_sums::<L>(rows.count, place, across);
                    }
                }
            }
        }
    }
}

impl Pairs {
    /// Adds the sums of a later part of the rows.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and there are `count` rows of a panel's values, `across` apart.
    #[inline(always)]
    unsafe fn add_sums<L: Lanes>(&self, count: usize, into: *mut f32, across: usize) {
        for (row, sums) in self.sums.iter().enumerate().take(count) {
            for at in (0..PANEL).step_by(L::COUNT) {
                // SAFETY: as the caller promises.
                unsafe {
                    let to = into.add(row * across + at);
                    L::load(to).plus(L::load(sums[at..].as_ptr())).store(to);
                }
            }
        }
    }
}
