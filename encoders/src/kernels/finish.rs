//! The epilogue of a matrix product: bias, activation, factor and residual, applied to a tile of finished sums.

use std::ops::Range;

use super::elementwise::{Activation, Gelu, GeluNew, OfValues, QuickGelu, Relu, Silu, Unchanged};
use super::lanes::{Abreast, Lanes};
use super::matrix::{PANEL, Rows, Starts, Target};

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
    /// One register of sums of a row, starting at `column` of the tile, plus `others`.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and the tile has the row and the columns.
    unsafe fn plus<L: Lanes>(&self, row: usize, column: usize, others: L) -> L;
}

impl<'a> Finish<'a> {
    /// The epilogue of one tile.
    ///
    /// # Panics
    /// If the target or another part of the epilogue lacks the tile.
    #[inline(always)]
    pub(super) fn of(&self, target: Target, place: TilePosition) -> Epilogue<'a> {
        let column = place.panel * PANEL;
        let columns = target.columns.saturating_sub(column).min(PANEL);
        let beside = |it: Option<Rows<'_>>| {
            let rows = it.filter(|_| place.is_last)?;
            Some(rows.block(place.row, place.rows, column, columns))
        };
        Epilogue {
            rows: place.rows,
            columns,
            to: target.block(place.row, place.rows, column, columns),
            adds: !place.is_first,
            bias: self
                .bias
                .filter(|_| place.is_last)
                .map_or(&ZEROS[..columns], |it| &it[column..][..columns]),
            activation: self.activation.filter(|_| place.is_last),
            factor: beside(self.factor),
            residual: beside(self.residual),
        }
    }
}

/// A bias that changes nothing.
static ZEROS: [f32; PANEL] = [0.0; PANEL];

/// The epilogue of one tile: writes its sums to the target, or adds them to its contents, and after the last depth block
/// does the rest. All parts have the tile's rows and columns.
pub(super) struct Epilogue<'a> {
    rows: usize,
    columns: usize,
    to: Starts<*mut f32>,
    /// Whether the sums are added to those of earlier depth blocks.
    adds: bool,
    bias: &'a [f32],
    activation: Option<Activation>,
    factor: Option<Starts<*const f32>>,
    residual: Option<Starts<*const f32>>,
}

impl Epilogue<'_> {
    /// Rows that are best written together: registers of sixteen hold as many while an activation is computed.
    pub(super) const ROWS_AT_ONCE: usize = 4;

    /// All rows of the tile.
    #[inline(always)]
    pub(super) fn rows(&self) -> Range<usize> {
        0..self.rows
    }

    /// Prefetches the memory that [`Epilogue::store`] will touch.
    #[inline(always)]
    pub(super) fn prefetch<L: Lanes>(&self, rows: Range<usize>) {
        for row in rows {
            let to = self.to.row(row);
            L::prefetch_to_write(to);
            L::prefetch_to_write(to.wrapping_add(PANEL / 2));
            for beside in [&self.factor, &self.residual].into_iter().flatten() {
                let from = beside.row(row);
                L::prefetch(from);
                L::prefetch(from.wrapping_add(PANEL / 2));
            }
        }
    }

    /// Writes some rows of the tile.
    ///
    /// # Safety
    /// The processor has the instructions of `L`. The sums are of this tile. No other thread writes this tile of the
    /// target, and unless this is the first depth block, the tile has been written.
    ///
    /// # Panics
    /// If the tile lacks a row.
    #[inline(always)]
    pub(super) unsafe fn store<L: Lanes>(&self, sums: &impl Sums, rows: Range<usize>) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.activation {
                None => self.store_as::<L, Unchanged>(sums, rows),
                Some(Activation::QuickGelu) => self.store_as::<L, QuickGelu>(sums, rows),
                Some(Activation::Gelu) => self.store_as::<L, Gelu>(sums, rows),
                Some(Activation::GeluNew) => self.store_as::<L, GeluNew>(sums, rows),
                Some(Activation::Relu) => self.store_as::<L, Relu>(sums, rows),
                Some(Activation::Silu) => self.store_as::<L, Silu>(sums, rows),
            }
        }
    }

    /// As [`Epilogue::store`], with the activation `A`.
    ///
    /// # Safety
    /// As [`Epilogue::store`].
    ///
    /// # Panics
    /// As [`Epilogue::store`].
    #[inline(always)]
    pub(super) unsafe fn store_as<L: Lanes, A: OfValues>(&self, sums: &impl Sums, rows: Range<usize>) {
        assert!(rows.end <= self.rows);
        let is_plain = !self.adds && self.factor.is_none() && self.residual.is_none();
        // SAFETY: as the caller promises; the rows and columns exist.
        unsafe {
            match (self.columns == PANEL, is_plain) {
                (true, true) => self.whole_rows::<L, A, true>(sums, rows),
                (true, false) => self.whole_rows::<L, A, false>(sums, rows),
                (false, _) => self.parts_of_rows::<L, A>(sums, rows),
            }
        }
    }

    /// Stores rows of [`PANEL`] columns. `PLAIN`: without earlier sums, factor and residual.
    #[inline(always)]
    unsafe fn whole_rows<L: Lanes, A: OfValues, const PLAIN: bool>(
        &self,
        sums: &impl Sums,
        mut rows: Range<usize>,
    ) {
        let rows_at_once = abreast::<L>() * L::COUNT / PANEL;
        // SAFETY: as the caller promises.
        unsafe {
            while rows.len() >= rows_at_once {
                match abreast::<L>() {
                    8 => self.store_abreast::<L, A, PLAIN, 8>(sums, rows.start),
                    _ => self.store_abreast::<L, A, PLAIN, 4>(sums, rows.start),
                }
                rows.start += rows_at_once;
            }
            for row in rows {
                for column in (0..PANEL).step_by(L::COUNT) {
                    self.store_one::<L, A>(sums, row, column);
                }
            }
        }
    }

    /// Stores `COUNT` whole registers, whose first begins a row. `PLAIN`: as above.
    #[inline(always)]
    unsafe fn store_abreast<L: Lanes, A: OfValues, const PLAIN: bool, const COUNT: usize>(
        &self,
        sums: &impl Sums,
        row: usize,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut values = [L::splat(0.0); COUNT];
            for (at, value) in values.iter_mut().enumerate() {
                let (row, column) = (row + at * L::COUNT / PANEL, at * L::COUNT % PANEL);
                let mut others = L::load(self.bias.as_ptr().add(column));
                if !PLAIN && self.adds {
                    others = others.plus(L::load(self.to.row(row).add(column)));
                }
                *value = sums.plus(row, column, others);
            }
            let Abreast(values) = A::of(Abreast(values));
            for (at, mut value) in values.into_iter().enumerate() {
                let (row, column) = (row + at * L::COUNT / PANEL, at * L::COUNT % PANEL);
                if let Some(factor) = self.factor.filter(|_| !PLAIN) {
                    value = value.times(L::load(factor.row(row).add(column)));
                }
                if let Some(residual) = self.residual.filter(|_| !PLAIN) {
                    value = value.plus(L::load(residual.row(row).add(column)));
                }
                value.store(self.to.row(row).add(column));
            }
        }
    }

    /// Stores rows of fewer columns.
    #[inline(always)]
    unsafe fn parts_of_rows<L: Lanes, A: OfValues>(&self, sums: &impl Sums, rows: Range<usize>) {
        for row in rows {
            for column in (0..self.columns).step_by(L::COUNT) {
                // SAFETY: as the caller promises.
                unsafe { self.store_one::<L, A>(sums, row, column) };
            }
        }
    }

    /// Stores one register, or the columns that the tile has from `column` on.
    #[inline(always)]
    unsafe fn store_one<L: Lanes, A: OfValues>(&self, sums: &impl Sums, row: usize, column: usize) {
        let count = (self.columns - column).min(L::COUNT);
        // SAFETY: as the caller promises.
        unsafe {
            let to = self.to.row(row).add(column);
            let mut others: L = load(self.bias.as_ptr().add(column), count);
            if self.adds {
                others = others.plus(load(to, count));
            }
            let mut finished = A::of(sums.plus(row, column, others));
            if let Some(factor) = &self.factor {
                finished = finished.times(load(factor.row(row).add(column), count));
            }
            if let Some(residual) = &self.residual {
                finished = finished.plus(load(residual.row(row).add(column), count));
            }
            match count == L::COUNT {
                true => finished.store(to),
                false => finished.store_first(count, to),
            }
        }
    }
}

/// Registers that an activation is computed of at once: it is a long chain of steps, each of which takes some cycles.
#[inline(always)]
const fn abreast<L: Lanes>() -> usize {
    if L::COUNT == 16 { 8 } else { 4 }
}

/// Loads `count` values, at most one register.
#[inline(always)]
unsafe fn load<L: Lanes>(from: *const f32, count: usize) -> L {
    // SAFETY: as the caller promises.
    unsafe {
        match count == L::COUNT {
            true => L::load(from),
            false => L::load_first(count, from, L::splat(0.0)),
        }
    }
}
