//! Opens a segment's file: reads and verifies its core (keys, links, codes, signs) with several threads.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::blocks::{BLOCK, Blocks};
use super::file::{Sections, SegmentError, damaged, map_core, map_vectors, read_header, read_table};
use super::layout::{Layout, PAGE};
use super::{Core, Sealed, Stored};
use crate::budget::{Budget, Demand};
use crate::codes::Coder;
use crate::memory::Pages;

/// The fewest blocks for one thread to read: for less, a start of a thread does not pay.
const BLOCKS_LEAST: usize = 16;

impl Sealed {
    /// Opens a segment file with vectors of `dimension` values. Verifies everything except the vectors, which are
    /// mapped and verified when first read. The core is mapped too if the budget is spent.
    pub(crate) fn open(path: &Path, dimension: usize, budget: &Arc<Budget>) -> Result<Sealed, SegmentError> {
        let mut file = File::open(path)?;
        let layout = read_header(&mut file)?;
        if layout.dimension != dimension {
            return Err(damaged("it is of another dimension"));
        }
        let places = Sections::of(&layout);
        let length = file.metadata()?.len();
        if length != places.end() {
            return Err(damaged(format!("it has {length} bytes, not {}", places.end())));
        }
        let table = read_table(&mut file, &places)?;
        let (mean, sums) = table.split_at(dimension * 4);
        let (mean, sums): (Vec<f32>, Vec<u32>) = (
            mean.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            sums.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect(),
        );
        let (core_sums, vector_sums) = sums.split_at(layout.core_bytes().div_ceil(BLOCK));
        let core = StoredCore { path, layout: &layout, sums: core_sums }.open(budget)?;
        layout.check(&core).map_err(damaged)?;
        let vectors = Blocks::verified_later(map_vectors(&file, &layout)?, vector_sums.to_vec());
        let coder = Coder::with_mean(layout.codes, mean);
        let stored = Stored { path: path.to_owned(), checksum: crc32fast::hash(&table) };
        Ok(Sealed::from_parts(layout, coder, core, vectors, Some(stored)))
    }
}

/// The core of a file, with the checksums that its blocks should have.
struct StoredCore<'a> {
    path: &'a Path,
    layout: &'a Layout,
    sums: &'a [u32],
}

impl StoredCore<'_> {
    /// The core in memory, or mapped where it does not fit into the budget. It is verified either way.
    fn open(&self, budget: &Arc<Budget>) -> Result<Core, SegmentError> {
        let length = self.layout.core_bytes();
        let taken = budget.try_take(Demand { bytes: length as u64, freed: 0 });
        let pages = match taken {
            Some(_) => self.read()?,
            None => {
                self.verify()?;
                map_core(&File::open(self.path)?, self.layout)?
            }
        };
        Ok(Core { pages, taken })
    }

    fn read(&self) -> Result<Pages, SegmentError> {
        let mut core = Pages::zeroed(self.layout.core_bytes())?;
        let share = self.share();
        let parts = core.bytes_mut().chunks_mut(share * BLOCK).zip(self.sums.chunks(share));
        in_threads(parts.enumerate().map(|(at, (bytes, sums))| {
            move || {
                let mut file = self.at_block(at * share)?;
                let mut blocks = bytes.chunks_mut(BLOCK).zip(sums);
                blocks.try_for_each(|(block, sum)| read_block(&mut file, block, *sum))
            }
        }))?;
        Ok(core)
    }

    /// Reads the core block by block. Through a mapping the system would read it page by page.
    fn verify(&self) -> Result<(), SegmentError> {
        let (length, share) = (self.layout.core_bytes(), self.share());
        in_threads(self.sums.chunks(share).enumerate().map(|(at, sums)| {
            move || {
                let mut file = self.at_block(at * share)?;
                let mut buffer = vec![0; BLOCK];
                sums.iter().zip(at * share..).try_for_each(|(sum, block)| {
                    let bytes = BLOCK.min(length - block * BLOCK);
                    read_block(&mut file, &mut buffer[..bytes], *sum)
                })
            }
        }))
    }

    /// Blocks that one thread reads.
    fn share(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.sums.len().div_ceil(cores).max(BLOCKS_LEAST)
    }

    /// The file at a block of the core. Each thread opens it, so that it has a position of its own.
    fn at_block(&self, block: usize) -> Result<File, SegmentError> {
        let mut file = File::open(self.path)?;
        file.seek(SeekFrom::Start((PAGE + block * BLOCK) as u64))?;
        Ok(file)
    }
}

fn read_block(file: &mut File, block: &mut [u8], sum: u32) -> Result<(), SegmentError> {
    file.read_exact(block)?;
    if crc32fast::hash(block) == sum { Ok(()) } else { Err(damaged("the checksum of a block is another")) }
}

/// Runs each of `reads` in a thread; returns the error of the first one that failed.
fn in_threads<R>(reads: impl Iterator<Item = R>) -> Result<(), SegmentError>
where
    R: FnOnce() -> Result<(), SegmentError> + Send,
{
    thread::scope(|scope| {
        let readers: Vec<_> = reads.map(|read| scope.spawn(read)).collect();
        readers.into_iter().try_for_each(|reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::codes::Codes;
    use crate::sealed::blocks::checksums;

    /// Opens a core of 39 blocks, the last one short, in memory and mapped, after the byte at `damaged` was changed.
    #[track_caller]
    fn check(damaged: Option<usize>, expected: Result<(), &str>) {
        let layout = Layout::new(Codes::F32, 128, 61_000, 0);
        let core: Vec<u8> = (0..layout.core_bytes() as u32).map(|at| (at >> 9) as u8).collect();
        let sums: Vec<u32> = checksums(&core).collect();
        assert_eq!(sums.len(), 39);
        let mut file = [vec![0; PAGE], core.clone()].concat();
        if let Some(at) = damaged {
            file[PAGE + at] ^= 1;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.segment");
        fs::write(&path, file).unwrap();
        let stored = StoredCore { path: &path, layout: &layout, sums: &sums };
        for budget in [Arc::default(), Arc::new(Budget::new(Some(1 << 20)))] {
            match (stored.open(&budget), expected) {
                (Ok(opened), Ok(())) => assert!(*opened == *core),
                (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
                (opened, _) => panic!("{:?}, expected {expected:?}", opened.map(|_| ())),
            }
        }
    }

    #[test]
    fn each_block_of_the_core_is_verified() {
        check(None, Ok(()));
        let another = Err("the checksum of a block is another");
        for damaged in [0, 19 * BLOCK, 20 * BLOCK - 1, 20 * BLOCK, 38 * BLOCK + 1] {
            check(Some(damaged), another);
        }
    }
}
