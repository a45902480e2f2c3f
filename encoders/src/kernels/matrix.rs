//! Matrix views for the kernels: rows of a wider matrix to read or write, and panels of packed weights.

use std::mem::MaybeUninit;

/// Columns of a panel: two registers of 512 bits.
pub(super) const PANEL: usize = 32;

/// A cache line. Panels consist of lines, so that no load of a whole register crosses two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T>([T; 64]);

/// A buffer aligned to 64 bytes.
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

    /// Grows to at least `len` values; the contents are unspecified.
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
    /// If `values` is too short.
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride && (rows == 0 || (rows - 1) * stride + columns <= values.len()));
        Rows { values, rows, columns, stride }
    }

    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.stride..][..self.columns]
    }

    /// The first addresses of `rows` rows from row `from` on, each of `count` columns that start at `column`.
    ///
    /// # Panics
    /// If the rows or columns do not exist.
    #[inline(always)]
    pub(super) fn block(&self, from: usize, rows: usize, column: usize, count: usize) -> Starts<*const f32> {
        assert!(from + rows <= self.rows && column + count <= self.columns);
        let first = self.values.as_ptr().wrapping_add(from * self.stride + column);
        Starts { first, stride: self.stride }
    }
}

/// The addresses of a value in each of some rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starts<P> {
    first: P,
    stride: usize,
}

impl Starts<*const f32> {
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> *const f32 {
        self.first.wrapping_add(row * self.stride)
    }
}

impl Starts<*mut f32> {
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> *mut f32 {
        self.first.wrapping_add(row * self.stride)
    }
}

/// Rows that several threads write at once: no two threads write the same columns of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    start: *mut f32,
    pub(super) rows: usize,
    pub(super) columns: usize,
    stride: usize,
}

// SAFETY: `Target::at` only computes an address; the writing threads must keep their places apart.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// From a slice that may be uninitialized: no value is read before it is written.
    ///
    /// # Panics
    /// If `values` is too short.
    pub(super) fn new(values: &mut [MaybeUninit<f32>], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride && (rows == 0 || (rows - 1) * stride + columns <= values.len()));
        Target { start: values.as_mut_ptr().cast(), rows, columns, stride }
    }

    /// `count` columns, starting at column `from`.
    ///
    /// # Panics
    /// If there are fewer columns.
    pub(super) fn columns(self, from: usize, count: usize) -> Target {
        assert!(from + count <= self.columns);
        // SAFETY: within the row, whose length `new` checked.
        Target { start: unsafe { self.start.add(from) }, columns: count, ..self }
    }

    /// `count` rows, starting at row `from`.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub(super) fn rows(self, from: usize, count: usize) -> Target {
        assert!(from + count <= self.rows);
        // SAFETY: within the rows, whose number `new` checked.
        Target { start: unsafe { self.start.add(from * self.stride) }, rows: count, ..self }
    }

    /// The address of a value; the rest of its row follows.
    ///
    /// # Panics
    /// If the position does not exist.
    #[inline(always)]
    pub(super) fn at(self, row: usize, column: usize) -> *mut f32 {
        assert!(row < self.rows && column < self.columns);
        self.start.wrapping_add(row * self.stride + column)
    }

    /// As [`Rows::block`].
    ///
    /// # Panics
    /// If the rows or columns do not exist.
    #[inline(always)]
    pub(super) fn block(self, from: usize, rows: usize, column: usize, count: usize) -> Starts<*mut f32> {
        assert!(from + rows <= self.rows && column + count <= self.columns);
        Starts { first: self.start.wrapping_add(from * self.stride + column), stride: self.stride }
    }
}

/// Values of a cache line.
const LINE_VALUES: usize = 16;

/// A new matrix, row after row, from the start of a cache line on: where rows are whole lines, no store then touches two.
#[derive(Debug)]
pub(super) struct Filled {
    /// Padding, the matrix, padding.
    pub(super) values: Vec<f32>,
    /// The index of the matrix's first value.
    pub(super) first: usize,
}

impl Filled {
    /// A matrix of (rows, columns). `write` must write all of it.
    pub(super) fn new(rows: usize, columns: usize, write: impl FnOnce(Target)) -> Self {
        let (count, padding) = (rows * columns, LINE_VALUES - 1);
        let mut values = Vec::with_capacity(count + padding);
        let room = &mut values.spare_capacity_mut()[..count + padding];
        let first = room.as_ptr().align_offset(LINE_VALUES * size_of::<f32>()).min(padding);
        let (before, rest) = room.split_at_mut(first);
        let (matrix, after) = rest.split_at_mut(count);
        before.iter_mut().chain(after).for_each(|value| _ = value.write(0.0));
        write(Target::new(matrix, rows, columns, columns));
        // SAFETY: the capacity suffices; the padding is written, and `write` has written the matrix.
        unsafe { values.set_len(count + padding) };
        Filled { values, first }
    }
}

/// A new matrix of (rows, columns), row after row, without padding. `write` must write all of it.
pub(super) fn written(rows: usize, columns: usize, write: impl FnOnce(Target)) -> Vec<f32> {
    let count = rows * columns;
    let mut values = Vec::with_capacity(count);
    write(Target::new(&mut values.spare_capacity_mut()[..count], rows, columns, columns));
    // SAFETY: the capacity suffices, and `write` has written the matrix.
    unsafe { values.set_len(count) };
    values
}

/// As [`written`], from the start of a cache line on.
#[cfg(test)]
pub(super) fn filled(rows: usize, columns: usize, write: impl FnOnce(Target)) -> Vec<f32> {
    let Filled { values, first } = Filled::new(rows, columns, write);
    values[first..][..rows * columns].to_vec()
}

/// A matrix of (depth, columns) in panels of [`PANEL`] columns. Panel follows panel; in a panel, row follows row. The
/// last panel is padded with zeros.
#[derive(Debug, Clone)]
pub(super) struct Panels {
    values: Aligned<f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl Panels {
    /// Packs `weight` of shape (depth, columns), row after row.
    ///
    /// # Panics
    /// If the number of values differs.
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

    /// Panels without a shape; [`Panels::reshape`] gives them one.
    pub(super) fn empty() -> Self {
        Panels { values: Aligned::zeros(0), depth: 0, columns: 0 }
    }

    /// Changes the shape; the contents are then unspecified.
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

    /// Writes one column.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_matrix_begins_a_cache_line() {
        for (rows, columns) in [(0, 5), (1, 1), (3, 7), (50, 768)] {
            let Filled { values, first } = Filled::new(rows, columns, |target| {
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    // SAFETY: the matrix has this value.
                    unsafe { target.at(row, column).write((row * columns + column) as f32) };
                }
            });
            assert_eq!(values[first..].as_ptr() as usize % 64, 0, "{rows}, {columns}");
            let expected: Vec<f32> = (0..rows * columns).map(|at| at as f32).collect();
            assert_eq!(values[first..][..rows * columns], expected);
        }
    }
}
