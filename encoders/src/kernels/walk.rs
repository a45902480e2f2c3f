//! The walk of a block of rows over panels in tile registers, and when the results of a tile are written.
//!
//! A product in tile registers occupies one of the two ports that compute on vector registers. An epilogue of a few
//! instructions therefore costs nothing between the steps of the next tile, but one with an activation would take longer there
//! than by itself. Going from products to activations and back costs time too, so several tiles are multiplied first. Sums of
//! slices are read right after their product, so that they leave the L1 cache to the panel.

use std::ops::Range;

use super::amx::{self, Registers};
use super::blocking::{Ahead, Piece};
use super::elementwise::Unchanged;
use super::finish::{Epilogue, Finish, Sums, TilePosition};
use super::lanes::{Lanes, Work};
use super::matrix::Target;
use super::tiles::{Buffer, Factors, Meanwhile, Word};

/// The copied rows of a block, and the panels that multiply them.
pub(super) trait Operands {
    type Buffer: Buffer;

    /// How the sums of a tile are read.
    type Sums<'a>: Sums
    where
        Self: 'a;

    fn word(&self) -> Word;

    /// The lines of a panel.
    fn panel(&self, panel: usize) -> &[u32];

    /// Memory that the panel after this one needs.
    fn next(&self, panel: usize) -> &[u32];

    /// The address of a copied row, counted from the block's first, and bytes from one row to the next.
    fn rows(&self, top: usize) -> (*const u8, usize);

    /// The sums of a tile whose first row is `top`.
    fn sums<'a>(&'a self, tile: &'a Self::Buffer, top: usize, place: TilePosition) -> Self::Sums<'a>;
}

/// A walk: the results of some rows and panels, for one depth block.
pub(super) struct Walk<'a> {
    pub(super) target: Target,
    pub(super) finish: Finish<'a>,
    pub(super) part: Piece,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Walk<'_> {
    /// Multiplies and writes the results.
    ///
    /// # Safety
    /// The processor has the instructions of `L` and AMX. The operands have the rows and panels. Nothing else writes the
    /// results.
    #[inline(always)]
    pub(super) unsafe fn run<L: Lanes, O: Operands>(&self, registers: &Registers, operands: &O) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.finish.activation.is_some() && self.is_last || O::Buffer::GROUP == 1 {
                true => self.in_groups::<L, O>(registers, operands),
                false => self.one_by_one::<L, O>(registers, operands),
            }
        }
    }

    /// Writes the results of a tile while the next one is multiplied.
    #[inline(always)]
    unsafe fn one_by_one<L: Lanes, O: Operands>(&self, registers: &Registers, operands: &O) {
        let tiles = amx::tiles(self.part.rows.1 - self.part.rows.0, O::Buffer::ROWS);
        let mut sums = [O::Buffer::ZEROS; 2];
        let [into, before] = &mut sums;
        let (mut into, mut before) = (into, before);
        let mut complete = None;
        // SAFETY: as the caller promises.
        unsafe {
            for panel in self.part.panels.0..self.part.panels.1 {
                for (tile, (top, bottom)) in tiles.iter().enumerate() {
                    let place = self.place(panel, *top, *bottom);
                    let coming = self.coming(place);
                    let factors = self.factors(operands, place, Turn { tile, tiles: tiles.len() });
                    match complete {
                        Some(complete) => {
                            let finishing = self.finishing(operands, before, complete);
                            let mut both = Both { finishing, coming };
                            factors.multiply::<L>(registers, place.rows, into.room(), &mut both);
                        }
                        None => {
                            let mut coming = coming;
                            factors.multiply::<L>(registers, place.rows, into.room(), &mut coming);
                        }
                    }
                    (into, before, complete) = (before, into, Some(place));
                }
            }
            if let Some(complete) = complete {
                L::run_apart(self.finishing(operands, before, complete));
            }
        }
    }

    /// Writes the results of several tiles after they are multiplied.
    #[inline(always)]
    unsafe fn in_groups<L: Lanes, O: Operands>(&self, registers: &Registers, operands: &O) {
        let tiles = amx::tiles(self.part.rows.1 - self.part.rows.0, O::Buffer::ROWS);
        let mut sums = vec![O::Buffer::ZEROS; O::Buffer::GROUP];
        let mut complete = Vec::with_capacity(O::Buffer::GROUP);
        // SAFETY: as the caller promises.
        unsafe {
            for panel in self.part.panels.0..self.part.panels.1 {
                for (tile, (top, bottom)) in tiles.iter().enumerate() {
                    let place = self.place(panel, *top, *bottom);
                    let mut coming = self.coming(place);
                    let factors = self.factors(operands, place, Turn { tile, tiles: tiles.len() });
                    let into = sums[complete.len()].room();
                    factors.multiply::<L>(registers, place.rows, into, &mut coming);
                    complete.push(place);
                    let is_end = panel + 1 == self.part.panels.1 && tile + 1 == tiles.len();
                    if complete.len() == O::Buffer::GROUP || is_end {
                        for (sums, place) in sums.iter().zip(complete.drain(..)) {
                            L::run_apart(self.finishing(operands, sums, place));
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn place(&self, panel: usize, top: usize, bottom: usize) -> TilePosition {
        let Walk { part, is_first, is_last, .. } = *self;
        TilePosition { row: part.rows.0 + top, rows: bottom - top, panel, is_first, is_last }
    }

    #[inline(always)]
    fn factors<'a>(&self, operands: &'a impl Operands, place: TilePosition, turn: Turn) -> Factors<'a> {
        let (rows, stride) = operands.rows(place.row - self.part.rows.0);
        Factors {
            word: operands.word(),
            rows,
            stride,
            panel: operands.panel(place.panel),
            ahead: Ahead::share(operands.next(place.panel), turn.tile, turn.tiles),
        }
    }

    #[inline(always)]
    fn coming(&self, place: TilePosition) -> Coming<'_> {
        let epilogue = self.finish.of(self.target, place);
        Coming { rows: Shares::of(epilogue.rows()), epilogue }
    }

    #[inline(always)]
    fn finishing<'a, O: Operands>(
        &'a self,
        operands: &'a O,
        tile: &'a O::Buffer,
        place: TilePosition,
    ) -> Finishing<'a, O::Sums<'a>> {
        let epilogue = self.finish.of(self.target, place);
        let sums = operands.sums(tile, place.row - self.part.rows.0, place);
        Finishing { sums, rows: Shares::of(epilogue.rows()), epilogue }
    }
}

/// A tile's turn among those of a panel.
#[derive(Clone, Copy)]
struct Turn {
    tile: usize,
    tiles: usize,
}

/// Rows that are taken share by share.
struct Shares {
    left: Range<usize>,
    /// Rows of a share.
    most: usize,
}

impl Shares {
    #[inline(always)]
    fn of(rows: Range<usize>) -> Self {
        Shares { most: rows.len(), left: rows }
    }

    #[inline(always)]
    fn divide(&mut self, shares: usize) {
        self.most = self.left.len().div_ceil(shares.max(1)).next_multiple_of(Epilogue::ROWS_AT_ONCE);
    }

    #[inline(always)]
    fn next(&mut self) -> Range<usize> {
        let end = self.left.end.min(self.left.start + self.most);
        std::mem::replace(&mut self.left.start, end)..end
    }
}

/// A tile whose sums are complete.
struct Finishing<'a, S> {
    sums: S,
    epilogue: Epilogue<'a>,
    rows: Shares,
}

impl<S: Sums> Work for Finishing<'_, S> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: as the caller promises; nothing else writes the tile's results.
        unsafe { self.epilogue.store::<L>(&self.sums, self.epilogue.rows()) };
    }
}

/// The tile that is being multiplied: the memory of its results is prefetched.
struct Coming<'a> {
    epilogue: Epilogue<'a>,
    rows: Shares,
}

impl Meanwhile for Coming<'_> {
    #[inline(always)]
    fn divide(&mut self, shares: usize) {
        self.rows.divide(shares);
    }

    #[inline(always)]
    unsafe fn share<L: Lanes>(&mut self) {
        self.epilogue.prefetch::<L>(self.rows.next());
    }
}

/// The results of one tile are written while the next one is multiplied.
struct Both<'a, S> {
    finishing: Finishing<'a, S>,
    coming: Coming<'a>,
}

impl<S: Sums> Meanwhile for Both<'_, S> {
    #[inline(always)]
    fn divide(&mut self, shares: usize) {
        self.finishing.rows.divide(shares);
        self.coming.divide(shares);
    }

    #[inline(always)]
    unsafe fn share<L: Lanes>(&mut self) {
        let Finishing { sums, epilogue, rows } = &mut self.finishing;
        // SAFETY: as the caller promises; nothing else writes the tile's results, and there is no activation.
        unsafe {
            epilogue.store_as::<L, Unchanged>(sums, rows.next());
            self.coming.share::<L>();
        }
    }
}
