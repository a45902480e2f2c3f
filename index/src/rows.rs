//! The vectors of one (space, level) in contiguous blocks that never move: exact search reads them. Rows are never
//! removed: a replaced or removed row stays until the rows are rewritten.

use std::sync::Arc;

use crate::SpanKey;

/// Rows of a block. Small, because an append copies the block if a search holds it.
const ROWS_PER_BLOCK: usize = 256;

/// Keys and vectors by ordinal (0, 1, 2, ... in order of insertion). A clone is cheap, shares the blocks, and stays as
/// it was.
#[derive(Clone)]
pub(crate) struct Rows {
    dimension: usize,
    len: u32,
    blocks: Arc<Vec<Arc<Block>>>,
}

#[derive(Clone, Default)]
struct Block {
    keys: Vec<SpanKey>,
    values: Vec<f32>,
}

impl Rows {
    pub(crate) fn new(dimension: usize) -> Rows {
        Rows { dimension, len: 0, blocks: Arc::default() }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.len) * (self.dimension as u64 * 4 + 8)
    }

    /// Number of rows, which is also the next ordinal.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Appends a row. `values` must have the rows' dimension, which [`crate::Index`] checks.
    pub(crate) fn push(&mut self, key: SpanKey, values: &[f32]) {
        debug_assert_eq!(values.len(), self.dimension);
        let blocks = Arc::make_mut(&mut self.blocks);
        if (self.len as usize).is_multiple_of(ROWS_PER_BLOCK) {
            blocks.push(Arc::default());
        }
        if let Some(last) = blocks.last_mut() {
            let block = Arc::make_mut(last);
            block.keys.push(key);
            block.values.extend_from_slice(values);
            self.len += 1;
        }
    }

    /// The key of a row; the ordinal must be below [`Rows::len`].
    pub(crate) fn key(&self, ordinal: u32) -> SpanKey {
        let (block, row) = self.place(ordinal);
        block.keys[row]
    }

    /// The vector of a row; the ordinal must be below [`Rows::len`].
    pub(crate) fn vector(&self, ordinal: u32) -> &[f32] {
        let (block, row) = self.place(ordinal);
        &block.values[row * self.dimension..(row + 1) * self.dimension]
    }

    fn place(&self, ordinal: u32) -> (&Block, usize) {
        let ordinal = ordinal as usize;
        (&self.blocks[ordinal / ROWS_PER_BLOCK], ordinal % ROWS_PER_BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_a_picture_of_the_rows_at_that_moment() {
        let mut rows = Rows::new(2);
        for key in 0..300 {
            rows.push(key, &[key as f32, 1.0]);
        }
        let picture = rows.clone();
        for key in 300..600 {
            rows.push(key, &[key as f32, 1.0]);
        }
        assert_eq!((picture.len(), rows.len()), (300, 600));
        assert_eq!((picture.bytes(), rows.bytes()), (300 * 16, 600 * 16));
        for ordinal in 0..600 {
            assert_eq!(rows.key(ordinal), u64::from(ordinal));
            assert_eq!(rows.vector(ordinal), [ordinal as f32, 1.0]);
        }
        assert_eq!(picture.vector(299), [299.0, 1.0]);
    }
}
