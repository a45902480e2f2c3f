//! What happens to a tile of sums when they are complete, on their way to where they belong.

use std::ops::Range;

use super::elementwise::{Activation, Gelu, GeluNew, OfValues, QuickGelu, Relu, Silu, Unchanged};
use super::lanes::Lanes;
use super::matrix::{PANEL, Rows, Target};

/// What happens to sums when they are complete, in this order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Finish<'a> {
    /// Added to every row.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Option<Activation>,
    /// Added row by row.
    pub(super) residual: Option<Rows<'a>>,
}

/// Where a tile of sums goes, and which of the blocks in depth it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePosition {
    /// The first row, and how many.
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) panel: usize,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// A tile of sums: rows by the columns of a panel.
pub(super) trait Sums {
    /// Those of a row from `column` of the tile on, a register full.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and the tile has the row and the columns.
    unsafe fn load<L: Lanes>(&self, row: usize, column: usize) -> L;
}

impl Finish<'_> {
    /// Has the cache fetch what [`Finish::store`] is going to touch.
    #[inline(always)]
    pub(super) fn prefetch<L: Lanes>(&self, target: Target, place: TilePosition) {
        let column = place.panel * PANEL;
        for row in place.row..place.row + place.rows {
            let to = target.at(row, column);
            L::prefetch_to_write(to);
            L::prefetch_to_write(to.wrapping_add(PANEL / 2));
            if let Some(residual) = &self.residual {
                let from = residual.row(row).as_ptr().wrapping_add(column);
                L::prefetch(from);
                L::prefetch(from.wrapping_add(PANEL / 2));
            }
        }
    }

    /// Writes `sums` to `target`, or adds them to what is there; finished, if they are the last.
    ///
    /// # Safety
    /// The processor has the instructions of `L`; nobody else has the place in the target meanwhile, and unless it is the
    /// first, it has been written.
    #[inline(always)]
    pub(super) unsafe fn store<L: Lanes>(&self, sums: &impl Sums, target: Target, place: TilePosition) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.activation.filter(|_| place.is_last) {
                None => self.store_as::<L, Unchanged>(sums, target, place),
                Some(Activation::QuickGelu) => self.store_as::<L, QuickGelu>(sums, target, place),
                Some(Activation::Gelu) => self.store_as::<L, Gelu>(sums, target, place),
                Some(Activation::GeluNew) => self.store_as::<L, GeluNew>(sums, target, place),
                Some(Activation::Relu) => self.store_as::<L, Relu>(sums, target, place),
                Some(Activation::Silu) => self.store_as::<L, Silu>(sums, target, place),
            }
        }
    }

    #[inline(always)]
    unsafe fn store_as<L: Lanes, A: OfValues>(&self, sums: &impl Sums, target: Target, place: TilePosition) {
        for from in (0..PANEL).step_by(L::COUNT) {
            let column = place.panel * PANEL + from;
            // SAFETY: as the caller promises; there are so many columns.
            unsafe {
                match target.columns.saturating_sub(column) {
                    0 => break,
                    count if count < L::COUNT => {
                        self.column::<L, A, false>(sums, target, place, from..from + count)
                    }
                    _ => self.column::<L, A, true>(sums, target, place, from..from + L::COUNT),
                }
            }
        }
    }

    /// Some columns of the tile; `WHOLE`: a register full.
    #[inline(always)]
    unsafe fn column<L: Lanes, A: OfValues, const WHOLE: bool>(
        &self,
        sums: &impl Sums,
        target: Target,
        place: TilePosition,
        columns: Range<usize>,
    ) {
        let (from, count) = (columns.start, columns.len());
        let column = place.panel * PANEL + from;
        let (bias, residual) = match place.is_last {
            true => (self.bias, self.residual),
            false => (None, None),
        };
        // SAFETY: as the caller promises; where it loads from has been checked to have these columns.
        unsafe {
            let bias = match bias {
                Some(bias) => load::<L, WHOLE>(&bias[column..][..count]),
                None => L::splat(0.0),
            };
            for row in 0..place.rows {
                let to = target.at(place.row + row, column);
                let mut sum = sums.load::<L>(row, from);
                if !place.is_first {
                    sum = sum.plus(load::<L, WHOLE>(std::slice::from_raw_parts(to, count)));
                }
                let mut finished = A::of(sum.plus(bias));
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

/// `values`, at most a register full; `WHOLE`: exactly.
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
