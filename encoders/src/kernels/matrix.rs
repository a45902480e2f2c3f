//! Matrices as the kernels see them: rows of a wider matrix to read from and write to, and the panels that weights
//! are packed into.

use std::mem::MaybeUninit;

/// Columns of a panel: two registers of 512 bits.
pub(super) const PANEL: usize = 32;

/// A line of the processor's cache: what panels are made of, so that no load of a whole register crosses two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T>([T; 64]);

/// Values that begin at a multiple of 64 bytes.
#[derive(Debug, Clone)]
pub(super) struct Aligned<T> {
    lines: Vec<Line<T>>,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` zeros.
    pub(super) fn zeros(len: usize) -> Self {
        Aligned { lines: vec![Line([T::default(); 64]); len.div_ceil(64)], len }
    }

    /// Holds at least `len` values from now on; their contents are anything.
    pub(super) fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Aligned::zeros(len);
        }
    }

    pub(super) fn values(&self) -> &[T] {
        // SAFETY: lines are arrays of T without padding (64 values of 1 or 4 bytes fill whole lines of 64 bytes), and
        // there are at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(super) fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `values`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Rows to read: the first `columns` of every `stride` values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    values: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    /// # Panics
    /// If the values don't reach.
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride && (rows == 0 || (rows - 1) * stride + columns <= values.len()));
        Rows { values, rows, columns, stride }
    }

    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.stride..][..self.columns]
    }
}

/// Rows to write, from several threads at once: each writes to columns of rows that no other does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    start: *mut f32,
    pub(super) rows: usize,
    pub(super) columns: usize,
    stride: usize,
}

// SAFETY: `Target::at` gives an address alone, and leaves it to who writes there that no two threads write to the same.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// Values that may not hold anything yet: nobody reads one before it is written.
    ///
    /// # Panics
    /// If the values don't reach.
    pub(super) fn new(values: &mut [MaybeUninit<f32>], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride && (rows == 0 || (rows - 1) * stride + columns <= values.len()));
        Target { start: values.as_mut_ptr().cast(), rows, columns, stride }
    }

    /// The columns from `column` to the right, as far as wanted, of a matrix that begins here.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn columns(self, from: usize, count: usize) -> Target {
        assert!(from + count <= self.columns);
        // SAFETY: within the row that `new` has checked.
        Target { start: unsafe { self.start.add(from) }, columns: count, ..self }
    }

    /// The rows from `row` on.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn rows(self, from: usize, count: usize) -> Target {
        assert!(from + count <= self.rows);
        // SAFETY: within the rows that `new` has checked.
        Target { start: unsafe { self.start.add(from * self.stride) }, rows: count, ..self }
    }

    /// Where a value is, and right of it the rest of its row.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub(super) fn at(self, row: usize, column: usize) -> *mut f32 {
        assert!(row < self.rows && column < self.columns);
        self.start.wrapping_add(row * self.stride + column)
    }
}

/// A new matrix of (rows, columns), row after row, all of which `write` must write.
pub(super) fn filled(rows: usize, columns: usize, write: impl FnOnce(Target)) -> Vec<f32> {
    let mut values = Vec::with_capacity(rows * columns);
    write(Target::new(&mut values.spare_capacity_mut()[..rows * columns], rows, columns, columns));
    // SAFETY: there is room for so many, and all are written.
    unsafe { values.set_len(rows * columns) };
    values
}

/// A matrix of (depth, columns), cut into panels of [`PANEL`] columns: panel after panel, in each row after row; the
/// last panel is filled up with zeros.
#[derive(Debug, Clone)]
pub(super) struct Panels {
    values: Aligned<f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl Panels {
    /// Packs `weight` of (depth, columns), row after row.
    ///
    /// # Panics
    /// If there are not so many values.
    pub(super) fn new(weight: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(weight.len(), depth * columns);
        let mut panels =
            Panels { values: Aligned::zeros(columns.div_ceil(PANEL) * depth * PANEL), depth, columns };
        for (row, values) in weight.chunks_exact(columns).enumerate() {
            for (panel, part) in values.chunks(PANEL).enumerate() {
                panels.row_mut(panel, row)[..part.len()].copy_from_slice(part);
            }
        }
        panels
    }

    /// Room for a matrix of this shape; `None` holds nothing yet.
    pub(super) fn empty() -> Self {
        Panels { values: Aligned::zeros(0), depth: 0, columns: 0 }
    }

    /// Takes another shape; what it holds then is anything.
    pub(super) fn reshape(&mut self, depth: usize, columns: usize) {
        self.values.reserve(columns.div_ceil(PANEL) * depth * PANEL);
        (self.depth, self.columns) = (depth, columns);
    }

    pub(super) fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// Rows `from..to` of a panel, [`PANEL`] values each.
    pub(super) fn rows(&self, panel: usize, from: usize, to: usize) -> &[f32] {
        &self.values.values()[(panel * self.depth + from) * PANEL..(panel * self.depth + to) * PANEL]
    }

    /// Fills in a column.
    #[inline(always)]
    pub(super) fn set_column(&mut self, column: usize, values: &[f32]) {
        let (panel, inside) = (column / PANEL, column % PANEL);
        let start = panel * self.depth * PANEL;
        let panel = &mut self.values.values_mut()[start..start + self.depth * PANEL];
        panel.chunks_exact_mut(PANEL).zip(values).for_each(|(row, value)| row[inside] = *value);
    }

    /// A row of a panel.
    pub(super) fn row_mut(&mut self, panel: usize, row: usize) -> &mut [f32] {
        &mut self.values.values_mut()[(panel * self.depth + row) * PANEL..][..PANEL]
    }
}
