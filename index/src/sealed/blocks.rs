//! Bytes in blocks, each verified before its first use.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::kernels;
use crate::memory::Pages;

/// Bytes of a block with one checksum.
pub(super) const BLOCK: usize = 1 << 20;

const UNKNOWN: u8 = 0;
const GOOD: u8 = 1;
const DAMAGED: u8 = 2;

/// The checksum of each block.
pub(super) fn checksums(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks(BLOCK).map(crc32fast::hash)
}

/// The checksums of bytes that come piece by piece.
#[derive(Default)]
pub(super) struct Checksums {
    sums: Vec<u32>,
    block: crc32fast::Hasher,
    /// Bytes of the block so far.
    length: usize,
}

impl Checksums {
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.length));
            self.block.update(now);
            self.length += now.len();
            if self.length == BLOCK {
                self.end_block();
            }
            bytes = later;
        }
    }

    fn end_block(&mut self) {
        self.sums.push(std::mem::take(&mut self.block).finalize());
        self.length = 0;
    }

    /// The checksum of each block; the last one may be short.
    pub(super) fn finish(mut self) -> Vec<u32> {
        if self.length > 0 {
            self.end_block();
        }
        self.sums
    }
}

/// Bytes, and which blocks are verified.
pub(super) struct Blocks {
    pages: Pages,
    /// Empty if nothing needs verification.
    checksums: Vec<u32>,
    states: Vec<AtomicU8>,
    /// Number of blocks not yet verified.
    unknown: AtomicUsize,
    damaged: AtomicUsize,
}

impl Blocks {
    /// Memory of the process: it needs no verification.
    pub(super) fn own(pages: Pages) -> Blocks {
        Blocks::verified_later(pages, Vec::new())
    }

    /// A file's bytes, with the checksums that its blocks should have.
    pub(super) fn verified_later(pages: Pages, checksums: Vec<u32>) -> Blocks {
        let states = checksums.iter().map(|_| AtomicU8::new(UNKNOWN)).collect();
        let unknown = AtomicUsize::new(checksums.len());
        Blocks { pages, checksums, states, unknown, damaged: AtomicUsize::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// `length` bytes from `from` on; `None` if one of their blocks is damaged.
    #[inline]
    pub(super) fn read(&self, from: usize, length: usize) -> Option<&[u8]> {
        let is_all_good =
            self.unknown.load(Ordering::Acquire) == 0 && self.damaged.load(Ordering::Acquire) == 0;
        if is_all_good || self.are_good(from, length) { self.pages.get(from..from + length) } else { None }
    }

    /// Prefetches bytes.
    pub(super) fn prefetch(&self, from: usize, length: usize) {
        if let Some(bytes) = self.pages.get(from..from + length) {
            kernels::prefetch(bytes, length.div_ceil(kernels::LINE));
        }
    }

    fn are_good(&self, from: usize, length: usize) -> bool {
        let last = (from + length).saturating_sub(1) / BLOCK;
        (from / BLOCK..=last).all(|block| self.is_good(block))
    }

    fn is_good(&self, block: usize) -> bool {
        let Some(state) = self.states.get(block) else { return true };
        match state.load(Ordering::Acquire) {
            UNKNOWN => self.look_at(block),
            state => state == GOOD,
        }
    }

    fn look_at(&self, block: usize) -> bool {
        let range = block * BLOCK..((block + 1) * BLOCK).min(self.pages.len());
        self.pages.read_ahead(range.clone());
        let is_good = crc32fast::hash(&self.pages[range]) == self.checksums[block];
        let state = if is_good { GOOD } else { DAMAGED };
        // Two searches may verify a block at once; it is counted once.
        let is_first =
            self.states[block].compare_exchange(UNKNOWN, state, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_first {
            if !is_good {
                self.damaged.fetch_add(1, Ordering::AcqRel);
            }
            self.unknown.fetch_sub(1, Ordering::AcqRel);
        }
        is_good
    }

    /// Verifies every block that is not yet verified.
    pub(super) fn verify(&self) {
        (0..self.states.len()).for_each(|block| {
            // The disk reads the next block while this one is compared.
            self.pages.read_ahead((block + 1) * BLOCK..(block + 2) * BLOCK);
            self.is_good(block);
        });
    }

    /// The byte ranges of the damaged blocks found so far.
    pub(super) fn damaged(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let any = self.damaged.load(Ordering::Acquire) > 0;
        let blocks = if any { 0..self.states.len() } else { 0..0 };
        blocks
            .filter(|&block| self.states[block].load(Ordering::Acquire) == DAMAGED)
            .map(|block| block * BLOCK..(block + 1) * BLOCK)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.pages.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three blocks, the last one short. The blocks in `damage` are changed after their checksums are computed.
    #[track_caller]
    fn check(damage: &[usize], read: Range<usize>, expected: bool) {
        let mut pages = Pages::zeroed(2 * BLOCK + 5_000).unwrap();
        pages.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
        let sums = checksums(pages.bytes()).collect();
        damage.iter().for_each(|&at| pages.bytes_mut()[at] ^= 4);
        let blocks = Blocks::verified_later(pages, sums);
        assert_eq!(blocks.read(read.start, read.len()).is_some(), expected);
        blocks.verify();
        assert_eq!(blocks.read(read.start, read.len()).is_some(), expected);
        let damaged: Vec<usize> = blocks.damaged().map(|bytes| bytes.start / BLOCK).collect();
        assert_eq!(damaged, damage.iter().map(|at| at / BLOCK).collect::<Vec<_>>());
    }

    #[test]
    fn only_whole_blocks_are_read() {
        check(&[], 0..10, true);
        check(&[], BLOCK - 5..BLOCK + 5, true);
        check(&[3], 0..10, false);
        check(&[3], BLOCK - 5..BLOCK + 5, false);
        check(&[3], BLOCK..BLOCK + 5, true);
        check(&[BLOCK + 7], BLOCK - 5..BLOCK + 5, false);
        check(&[2 * BLOCK + 4_999], 2 * BLOCK..2 * BLOCK + 9, false);
        check(&[0, 2 * BLOCK], BLOCK..2 * BLOCK, true);
    }

    #[test]
    fn pieces_have_the_checksums_of_the_whole() {
        let bytes: Vec<u8> = (0..2 * BLOCK + 5_000).map(|at| (at % 251) as u8).collect();
        for (length, piece) in
            [(0, 1), (4_096, 4_096), (BLOCK, 3_000), (2 * BLOCK, BLOCK), (bytes.len(), 7_001)]
        {
            let mut pieces = Checksums::default();
            bytes[..length].chunks(piece).for_each(|piece| pieces.add(piece));
            assert_eq!(pieces.finish(), checksums(&bytes[..length]).collect::<Vec<u32>>(), "{length} bytes");
        }
        let mut whole = Checksums::default();
        whole.add(&bytes);
        assert_eq!(whole.finish(), checksums(&bytes).collect::<Vec<u32>>());
    }
}
