//! The epilogue of a matrix product: bias, activation, factor and residual, applied to a tile of finished sums.

use std::ops::Range;

use super::elementwise::{Activation, Gelu, GeluNew, OfValues, QuickGelu, Relu, Silu, Unchanged};
use super::lanes::Lanes;
use super::matrix::{PANEL, Rows, Target};

/// The steps of the epilogue, in order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Finish<'a> {
    /// Added to every row.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Option<Activation>,
    /// Multiplied element by element.
    pub(super) factor: Option<Rows<'a>>,
    /// Added element by element.
    pub(super) residual: Option<Rows<'a>>,
}

/// Position of a tile of sums in the target, and its depth block.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePosition {
    /// The first row, and the number of rows.
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) panel: usize,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl TilePosition {
    /// A tile whose sums have all depth blocks.
    pub(super) fn whole(row: usize, rows: usize, panel: usize) -> Self {
        TilePosition { row, rows, panel, is_first: true, is_last: true }
    }
}

/// A tile of sums: a few rows of one panel's columns.
pub(super) trait Sums {
    /// Loads one register of sums from a row, starting at `column` of the tile.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and the tile has the row and the columns.
    unsafe fn load<L: Lanes>(&self, row: usize, column: usize) -> L;
}

impl Finish<'_> {
    /// Prefetches the memory that [`Finish::store`] will touch.
    #[inline(always)]
    pub(super) fn prefetch<L: Lanes>(&self, target: Target, place: TilePosition) {
        let column = place.panel * PANEL;
        for row in place.row..place.row + place.rows {
            let to = target.at(row, column);
            L::prefetch_to_write(to);
            L::prefetch_to_write(to.wrapping_add(PANEL / 2));
            for beside in [&self.factor, &self.residual].into_iter().flatten() {
                let from = beside.row(row).as_ptr().wrapping_add(column);
                L::prefetch(from);
                L::prefetch(from.wrapping_add(PANEL / 2));
            }
        }
    }

    /// Writes `sums` to `target`, or adds them to its contents; the last depth block also applies the epilogue.
    ///
    /// # Safety
    /// The processor has the instructions of `L`. No other thread writes this tile of the target, and unless this is
    /// the first depth block, the tile has been written.
    #[inline(always)]
    pub(super) unsafe fn store<L: Lanes>(&self, sums: &impl Sums, target: Target, place: TilePosition) {
        // SAFETY: as the caller promises.
        unsafe { self.store_rows::<L>(sums, target, place, 0..place.rows) }
    }

    /// As [`Finish::store`], for some rows of the tile.
    ///
    /// # Safety
    /// As [`Finish::store`].
    #[inline(always)]
    pub(super) unsafe fn store_rows<L: Lanes>(
        &self,
        sums: &impl Sums,
        target: Target,
        place: TilePosition,
        rows: Range<usize>,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.activation.filter(|_| place.is_last) {
                None => self.store_as::<L, Unchanged>(sums, target, place, rows),
                Some(Activation::QuickGelu) => self.store_as::<L, QuickGelu>(sums, target, place, rows),
                Some(Activation::Gelu) => self.store_as::<L, Gelu>(sums, target, place, rows),
                Some(Activation::GeluNew) => self.store_as::<L, GeluNew>(sums, target, place, rows),
                Some(Activation::Relu) => self.store_as::<L, Relu>(sums, target, place, rows),
                Some(Activation::Silu) => self.store_as::<L, Silu>(sums, target, place, rows),
            }
        }
    }

    #[inline(always)]
    unsafe fn store_as<L: Lanes, A: OfValues>(
        &self,
        sums: &impl Sums,
        target: Target,
        place: TilePosition,
        rows: Range<usize>,
    ) {
        for from in (0..PANEL).step_by(L::COUNT) {
            let column = place.panel * PANEL + from;
            // SAFETY: as the caller promises; these columns exist.
            unsafe {
                match target.columns.saturating_sub(column) {
                    0 => break,
                    count if count < L::COUNT => {
                        self.column::<L, A, false>(sums, target, place, rows.clone(), from..from + count)
                    }
                    _ => self.column::<L, A, true>(sums, target, place, rows.clone(), from..from + L::COUNT),
                }
            }
        }
    }

    /// Stores some columns of the tile. `WHOLE`: exactly one register.
    #[inline(always)]
    unsafe fn column<L: Lanes, A: OfValues, const WHOLE: bool>(
        &self,
        sums: &impl Sums,
        target: Target,
        place: TilePosition,
        rows: Range<usize>,
        columns: Range<usize>,
    ) {
        let (from, count) = (columns.start, columns.len());
        let column = place.panel * PANEL + from;
        let (bias, factor, residual) = match place.is_last {
            true => (self.bias, self.factor, self.residual),
            false => (None, None, None),
        };
        // SAFETY: as the caller promises; each source has these columns, which was checked.
        unsafe {
            let bias = match bias {
                Some(bias) => load::<L, WHOLE>(&bias[column..][..count]),
                None => L::splat(0.0),
            };
            for row in rows {
                let to = target.at(place.row + row, column);
                let mut sum = sums.load::<L>(row, from);
                if !place.is_first {
                    sum = sum.plus(load::<L, WHOLE>(std::slice::from_raw_parts(to, count)));
                }
                let mut finished = A::of(sum.plus(bias));
                if let Some(factor) = factor {
                    let factor = &factor.row(place.row + row)[column..][..count];
                    finished = finished.times(load::<L, WHOLE>(factor));
                }
                if let Some(residual) = residual {
                    let residual = &residual.row(place.row + row)[column..][..count];
                    finished = finished.plus(load::<L, WHOLE>(residual));
                }
                match WHOLE {
                    true => finished.store(to),
                    false => finished.store_first(count, to),
                }
            }
        }
    }
}

/// Loads the values, at most one register. `WHOLE`: exactly one.
#[inline(always)]
unsafe fn load<L: Lanes, const WHOLE: bool>(values: &[f32]) -> L {
    // SAFETY: as the caller promises.
    unsafe {
        match WHOLE {
            true => L::load(values.as_ptr()),
            false => L::load_first(values.len(), values.as_ptr(), L::splat(0.0)),
        }
    }
}
