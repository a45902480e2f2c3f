//! The vectors of one (space, level) in contiguous blocks that never move: exact search reads them. Rows are never
//! removed: a replaced or removed row stays until the rows are rewritten. Many rows do not stay in the process's memory: a
//! file without a name holds the vectors of full blocks.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::SpanKey;
use crate::memory::{self, Pages};

/// Rows of a block. Small, because an append copies the block if a search holds it.
const ROWS_PER_BLOCK: usize = 256;

/// Keys and vectors by ordinal (0, 1, 2, ... in order of insertion). A clone is cheap, shares the blocks, and stays as
/// it was.
#[derive(Clone)]
pub(crate) struct Rows {
    dimension: usize,
    len: u32,
    blocks: Arc<Vec<Arc<Block>>>,
    /// The number of blocks that were to be spilled.
    tried: usize,
}

#[derive(Clone, Default)]
struct Block {
    keys: Vec<SpanKey>,
    values: Values,
}

#[derive(Clone)]
enum Values {
    Own(Vec<f32>),
    /// A range of bytes of a file.
    Spilled(Arc<Pages>, Range<usize>),
}

/// Full blocks whose vectors lie in a file.
pub(crate) struct Spilled {
    first: usize,
    blocks: Vec<Arc<Block>>,
}

impl Default for Values {
    fn default() -> Values {
        Values::Own(Vec::new())
    }
}

impl Values {
    fn all(&self) -> &[f32] {
        match self {
            Values::Own(values) => values,
            Values::Spilled(pages, range) => memory::cast(&pages[range.clone()]),
        }
    }
}

impl Rows {
    pub(crate) fn new(dimension: usize) -> Rows {
        Rows { dimension, len: 0, blocks: Arc::default(), tried: 0 }
    }

    /// Bytes of memory, including mapped ones.
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
            if let Values::Own(own) = &mut block.values {
                own.extend_from_slice(values);
                block.keys.push(key);
                self.len += 1;
            }
        }
    }

    /// Bytes of the vectors that [`Rows::spill`] would write.
    pub(crate) fn spillable(&self) -> usize {
        let full = self.len as usize / ROWS_PER_BLOCK;
        full.saturating_sub(self.tried) * ROWS_PER_BLOCK * self.dimension * 4
    }

    /// Marks the present blocks, so that they are not spilled again.
    pub(crate) fn tried_to_spill(&mut self) {
        self.tried = self.len as usize / ROWS_PER_BLOCK;
    }

    /// Writes the vectors of full blocks to a file, and maps them from there.
    pub(crate) fn spill(&self, to: File) -> io::Result<Spilled> {
        let full = &self.blocks[self.tried..self.len as usize / ROWS_PER_BLOCK];
        let mut to = BufWriter::with_capacity(1 << 20, to);
        full.iter().try_for_each(|block| to.write_all(memory::bytes_of(block.values.all())))?;
        let file = to.into_inner().map_err(io::IntoInnerError::into_error)?;
        let each = ROWS_PER_BLOCK * self.dimension * 4;
        let pages = Arc::new(Pages::map(&file, 0, full.len() * each)?);
        let blocks = full.iter().enumerate().map(|(at, block)| {
            let values = Values::Spilled(Arc::clone(&pages), at * each..(at + 1) * each);
            Arc::new(Block { keys: block.keys.clone(), values })
        });
        Ok(Spilled { first: self.tried, blocks: blocks.collect() })
    }

    /// Takes the blocks of [`Rows::spill`] instead of its own.
    pub(crate) fn adopt(&mut self, spilled: Spilled) {
        let blocks = Arc::make_mut(&mut self.blocks);
        for (to, block) in blocks[spilled.first..].iter_mut().zip(spilled.blocks) {
            *to = block;
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
        &block.values.all()[row * self.dimension..(row + 1) * self.dimension]
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

    #[test]
    fn spilled_rows_are_read_like_others() {
        let mut rows = Rows::new(2);
        for key in 0..1_100 {
            rows.push(key, &[key as f32, 1.0]);
            if [300, 1_050].contains(&key) {
                // One full block of 2,048 bytes, then three more.
                assert_eq!(rows.spillable(), if key == 300 { 2_048 } else { 3 * 2_048 });
                let before = rows.clone();
                let spilled = rows.spill(tempfile::tempfile().unwrap()).unwrap();
                rows.tried_to_spill();
                rows.adopt(spilled);
                assert_eq!((rows.spillable(), before.vector(0)), (0, rows.vector(0)));
            }
        }
        assert!(
            (0..1_100).all(|row| rows.vector(row) == [row as f32, 1.0] && rows.key(row) == u64::from(row))
        );
        let own = rows.blocks.iter().filter(|block| matches!(block.values, Values::Own(_))).count();
        assert_eq!((own, rows.blocks.len(), rows.bytes()), (1, 5, 1_100 * 16));
    }
}
