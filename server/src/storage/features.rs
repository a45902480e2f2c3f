//! Stores per-frame features of a model on disk: one file per video and space.
//!
//! A file is a cache: if it is missing or damaged, the video is decoded again. Layout, little-endian: the magic
//! `RPRSFEA1`, the width (u32), then blocks. A block has its rows (u32), the CRC-32 of the rest of the block (u32), the
//! frames' times (i64 milliseconds, ascending over the file), and their features (f16, row by row). Blocks are added
//! whole: opening the file to add cuts off the remains of a crash behind the last whole block.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;

const MAGIC: [u8; 8] = *b"RPRSFEA1";
const HEADER_BYTES: u64 = 12;
/// Bytes of a block's row count and checksum.
const BLOCK_HEADER_BYTES: usize = 8;
/// Rows of a block whose times are read together with its header.
const USUAL_ROWS: usize = 64;
/// Largest valid row count of a block; a larger one is damage.
const MOST_ROWS: usize = 1 << 16;

/// The file of a space in a video's folder, named by the first 16 digits of its id.
pub fn file_of(folder: &Path, space: &str) -> PathBuf {
    folder.join(&space[..space.len().min(16)])
}

/// One frame: its time in milliseconds and its feature of `width` values.
pub type Row = (i64, Vec<f32>);

/// Why features can't be read. The caller then computes them again.
#[derive(Debug, thiserror::Error)]
pub enum FeaturesError {
    /// The disk failed.
    #[error("stored features can't be read or written: {0}")]
    Disk(#[from] io::Error),
    /// Not a feature file, or one of another width.
    #[error("stored features are damaged: {0}")]
    Damaged(&'static str),
}

/// An open file of features.
#[derive(Debug)]
pub struct Features {
    path: PathBuf,
    file: File,
    width: usize,
    blocks: Vec<Block>,
    /// Offset of the next block.
    end: u64,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    at: u64,
    rows: usize,
    first_ms: i64,
    last_ms: i64,
}

impl Features {
    /// Opens a file to read or, if `grows`, to add. Opening to add checks the whole file and cuts off damage at its
    /// end. A reader checks each block that it reads.
    ///
    /// # Errors
    /// The file is missing, of another width, or not a feature file.
    pub fn open(path: &Path, width: usize, grows: bool) -> Result<Features, FeaturesError> {
        let mut file = OpenOptions::new().read(true).write(grows).open(path)?;
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact(&mut header).map_err(|_| FeaturesError::Damaged("it has no header"))?;
        if header[..8] != MAGIC {
            return Err(FeaturesError::Damaged("it is of another kind"));
        }
        if u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize != width {
            return Err(FeaturesError::Damaged("its rows are of another width"));
        }
        let mut features =
            Features { path: path.to_owned(), file, width, blocks: Vec::new(), end: HEADER_BYTES };
        features.walk(grows)?;
        if grows {
            features.file.set_len(features.end)?;
        }
        Ok(features)
    }

    /// Whether a file exists and is undamaged; reads all of it.
    pub fn is_whole(path: &Path, width: usize) -> bool {
        let Ok(mut features) = Features::open(path, width, false) else { return false };
        (features.blocks, features.end) = (Vec::new(), HEADER_BYTES);
        let length = features.file.metadata().map(|metadata| metadata.len());
        features.walk(true).is_ok() && length.is_ok_and(|length| length == features.end)
    }

    /// Creates an empty file, in place of any existing one.
    ///
    /// # Errors
    /// The disk failed.
    pub fn create(path: &Path, width: usize) -> Result<Features, FeaturesError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all(&MAGIC)?;
        file.write_all(&(width as u32).to_le_bytes())?;
        Ok(Features { path: path.to_owned(), file, width, blocks: Vec::new(), end: HEADER_BYTES })
    }

    /// Lists the whole blocks; `checks`: verifies their checksums too.
    fn walk(&mut self, checks: bool) -> Result<(), FeaturesError> {
        let length = self.file.metadata()?.len();
        while let Some(block) = self.next_block(length, checks)? {
            if self.blocks.last().is_some_and(|last| block.first_ms <= last.last_ms) {
                break;
            }
            self.end = block.at + self.bytes_of(block.rows) as u64;
            self.blocks.push(block);
        }
        Ok(())
    }

    fn next_block(&mut self, length: u64, checks: bool) -> Result<Option<Block>, FeaturesError> {
        if length < self.end + BLOCK_HEADER_BYTES as u64 {
            return Ok(None);
        }
        // A file of hours has thousands of blocks: most are listed by one read each.
        let mut begin = [0; BLOCK_HEADER_BYTES + 8 * USUAL_ROWS];
        let known = begin.len().min(usize::try_from(length - self.end).unwrap_or(usize::MAX));
        self.file.read_exact_at(&mut begin[..known], self.end)?;
        let rows = u32::from_le_bytes([begin[0], begin[1], begin[2], begin[3]]) as usize;
        if !(1..=MOST_ROWS).contains(&rows) || length < self.end + self.bytes_of(rows) as u64 {
            return Ok(None);
        }
        let block = Block { at: self.end, rows, first_ms: 0, last_ms: 0 };
        if !checks {
            let (times, _) = begin[BLOCK_HEADER_BYTES..].as_chunks::<8>();
            let first_ms = i64::from_le_bytes(times[0]);
            let last_ms = match times.get(rows - 1) {
                Some(time) => i64::from_le_bytes(*time),
                None => self.time_at(block.at, rows - 1)?,
            };
            return Ok(Some(Block { first_ms, last_ms, ..block }));
        }
        let Ok(times) = self.read(&block).map(|(times, _)| times) else { return Ok(None) };
        let ascend = times.windows(2).all(|pair| pair[0] < pair[1]);
        let ends = times.first().copied().zip(times.last().copied());
        Ok(ends.filter(|_| ascend).map(|(first_ms, last_ms)| Block { first_ms, last_ms, ..block }))
    }

    fn time_at(&self, block: u64, row: usize) -> Result<i64, FeaturesError> {
        let mut time = [0; 8];
        self.file.read_exact_at(&mut time, block + (BLOCK_HEADER_BYTES + 8 * row) as u64)?;
        Ok(i64::from_le_bytes(time))
    }

    fn bytes_of(&self, rows: usize) -> usize {
        BLOCK_HEADER_BYTES + rows * (8 + 2 * self.width)
    }

    /// Times and features of a block, after a check of its checksum.
    fn read(&mut self, block: &Block) -> Result<(Vec<i64>, Vec<f16>), FeaturesError> {
        let mut bytes = vec![0; self.bytes_of(block.rows)];
        self.file.seek(SeekFrom::Start(block.at))?;
        self.file.read_exact(&mut bytes)?;
        let (header, body) = bytes.split_at(BLOCK_HEADER_BYTES);
        if header[4..] != crc32fast::hash(body).to_le_bytes() {
            return Err(FeaturesError::Damaged("a checksum does not match"));
        }
        let (times, values) = body.split_at(8 * block.rows);
        let time = |bytes: &[u8]| i64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
        let value = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]);
        Ok((times.chunks_exact(8).map(time).collect(), values.chunks_exact(2).map(value).collect()))
    }

    /// Adds later frames as one block; [`Features::sync`] makes them durable.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub fn add(&mut self, rows: &[(i64, &[f32])]) -> Result<(), FeaturesError> {
        let (Some((first_ms, _)), Some((last_ms, _))) = (rows.first(), rows.last()) else { return Ok(()) };
        let mut body = Vec::with_capacity(self.bytes_of(rows.len()));
        body.extend(rows.iter().flat_map(|(time_ms, _)| time_ms.to_le_bytes()));
        let halves = rows.iter().flat_map(|(_, feature)| feature.iter().map(|value| f16::from_f32(*value)));
        body.extend(halves.flat_map(f16::to_le_bytes));
        reprise_faults::at("features: write")?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&(rows.len() as u32).to_le_bytes())?;
        self.file.write_all(&crc32fast::hash(&body).to_le_bytes())?;
        self.file.write_all(&body)?;
        let block = Block { at: self.end, rows: rows.len(), first_ms: *first_ms, last_ms: *last_ms };
        self.end += (BLOCK_HEADER_BYTES + body.len()) as u64;
        self.blocks.push(block);
        Ok(())
    }

    /// Makes all added blocks durable.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> Result<(), FeaturesError> {
        reprise_faults::at("features: sync")?;
        Ok(self.file.sync_data()?)
    }

    /// Renames the file; durable when this returns.
    ///
    /// # Errors
    /// The disk failed. The file may keep its old name.
    pub fn rename(&mut self, path: &Path) -> Result<(), FeaturesError> {
        self.sync()?;
        reprise_faults::at("features: rename")?;
        std::fs::rename(&self.path, path)?;
        path.to_owned().clone_into(&mut self.path);
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// Time of the newest frame, in milliseconds.
    pub fn last_ms(&self) -> Option<i64> {
        self.blocks.last().map(|block| block.last_ms)
    }

    /// Time of the last frame in the block that contains the first frame at or after `from_ms`.
    pub fn end_of_block_after(&self, from_ms: i64) -> Option<i64> {
        self.blocks.iter().map(|block| block.last_ms).find(|last_ms| from_ms <= *last_ms)
    }

    /// The times of the frames in `range` (milliseconds), in order. Reads no features.
    ///
    /// # Errors
    /// The disk failed.
    pub fn times(&mut self, range: Range<i64>) -> Result<Vec<i64>, FeaturesError> {
        let mut times = Vec::new();
        let meets = |block: &Block| block.first_ms < range.end && range.start <= block.last_ms;
        for block in self.blocks.clone().iter().filter(|block| meets(block)) {
            let mut bytes = vec![0; 8 * block.rows];
            self.file.seek(SeekFrom::Start(block.at + BLOCK_HEADER_BYTES as u64))?;
            self.file.read_exact(&mut bytes)?;
            let (all, _) = bytes.as_chunks::<8>();
            times
                .extend(all.iter().map(|time| i64::from_le_bytes(*time)).filter(|time| range.contains(time)));
        }
        Ok(times)
    }

    /// The features of the frames at `times`, which ascend and may repeat. Times without a frame are left out.
    ///
    /// # Errors
    /// The disk failed, or the file was damaged after it was opened.
    pub fn rows_at(&mut self, times: &[i64]) -> Result<Vec<Arc<[f32]>>, FeaturesError> {
        let mut found = Vec::with_capacity(times.len());
        for block in self.blocks.clone() {
            let from = times.partition_point(|time| *time < block.first_ms);
            let end = times.partition_point(|time| *time <= block.last_ms);
            if from == end {
                continue;
            }
            let (of_block, values) = self.read(&block)?;
            let feature =
                |at: usize| values[at * self.width..][..self.width].iter().map(|it| it.to_f32()).collect();
            let places = times[from..end].iter().filter_map(|time| of_block.binary_search(time).ok());
            found.extend(places.map(feature));
        }
        Ok(found)
    }

    /// The feature of the newest frame before `time_ms`.
    ///
    /// # Errors
    /// As [`Features::rows_at`].
    pub fn last_before(&mut self, time_ms: i64) -> Result<Option<Arc<[f32]>>, FeaturesError> {
        let Some(block) = self.blocks.iter().rev().find(|block| block.first_ms < time_ms).copied() else {
            return Ok(None);
        };
        let newest = self.times(block.first_ms..time_ms)?.pop();
        Ok(self.rows_at(newest.as_slice())?.pop())
    }

    /// The frames with times in `range` (milliseconds), in order.
    ///
    /// # Errors
    /// The disk failed, or the file was damaged after it was opened.
    pub fn rows(&mut self, range: Range<i64>) -> Result<Vec<Row>, FeaturesError> {
        let mut rows = Vec::new();
        let meets = |block: &Block| block.first_ms < range.end && range.start <= block.last_ms;
        for block in self.blocks.clone().iter().filter(|block| meets(block)) {
            let (times, values) = self.read(block)?;
            let features = values.chunks_exact(self.width);
            let inside = times.into_iter().zip(features).filter(|(time_ms, _)| range.contains(time_ms));
            rows.extend(inside.map(|(time_ms, row)| (time_ms, row.iter().map(|it| it.to_f32()).collect())));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(time_ms: i64) -> Vec<f32> {
        vec![time_ms as f32 / 64.0, -1.0, 0.5]
    }

    fn written(path: &Path, blocks: &[&[i64]]) -> Features {
        let mut features = Features::create(path, 3).unwrap();
        for times in blocks {
            let rows: Vec<Row> = times.iter().map(|time| (*time, feature(*time))).collect();
            let rows: Vec<(i64, &[f32])> = rows.iter().map(|(time, row)| (*time, &row[..])).collect();
            features.add(&rows).unwrap();
        }
        features
    }

    /// Writes two blocks, applies `damage` to the file's bytes, and checks the remaining times.
    #[track_caller]
    fn check(damage: impl Fn(&mut Vec<u8>), expected: &[i64]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features");
        drop(written(&path, &[&[0, 40, 80], &[120, 160]]));
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let times = |features: &mut Features| {
            let rows = features.rows(i64::MIN..i64::MAX).unwrap();
            assert!(rows.iter().all(|(time, row)| *row == feature(*time)));
            rows.into_iter().map(|(time, _)| time).collect::<Vec<i64>>()
        };
        let Ok(mut features) = Features::open(&path, 3, true) else {
            assert!(expected.is_empty(), "it can't be opened");
            return;
        };
        assert_eq!(times(&mut features), expected);
        features.add(&[(200, &feature(200)[..])]).unwrap();
        let mut again = Features::open(&path, 3, false).unwrap();
        assert_eq!(times(&mut again), [expected, &[200]].concat());
    }

    #[test]
    fn what_was_added_is_read_again() {
        check(|_| (), &[0, 40, 80, 120, 160]);
    }

    #[test]
    fn a_block_that_a_crash_cut_off_or_a_disk_damaged_is_dropped_with_what_follows() {
        let whole = HEADER_BYTES as usize + 2 * BLOCK_HEADER_BYTES + 5 * (8 + 6);
        for lost in 1..(BLOCK_HEADER_BYTES + 2 * 14) {
            check(|bytes| bytes.truncate(whole - lost), &[0, 40, 80]);
        }
        let second = HEADER_BYTES as usize + BLOCK_HEADER_BYTES + 3 * 14;
        for place in second..whole {
            check(|bytes| bytes[place] ^= 1, &[0, 40, 80]);
        }
        for place in 0..second {
            check(|bytes| bytes[place] ^= 1, &[]);
        }
    }

    #[test]
    fn a_damaged_file_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features");
        assert!(!Features::is_whole(&path, 3));
        drop(written(&path, &[&[0, 40, 80], &[120, 160]]));
        assert!(Features::is_whole(&path, 3) && !Features::is_whole(&path, 4));
        let bytes = std::fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            std::fs::write(&path, &damaged).unwrap();
            assert!(!Features::is_whole(&path, 3), "byte {place}");
        }
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(!Features::is_whole(&path, 3));
    }

    #[test]
    fn single_frames_are_read_by_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let mut features = written(&folder.path().join("features"), &[&[0, 40, 80], &[120, 160]]);
        assert_eq!(features.times(40..160).unwrap(), [40, 80, 120]);
        assert_eq!(features.last_ms(), Some(160));
        for (time, end) in [(-5, Some(80)), (80, Some(80)), (81, Some(160)), (160, Some(160)), (161, None)] {
            assert_eq!(features.end_of_block_after(time), end, "{time}");
        }
        let expected: Vec<Arc<[f32]>> = [40, 40, 160].map(|time| feature(time).into()).to_vec();
        assert_eq!(features.rows_at(&[-5, 40, 40, 90, 160, 200]).unwrap(), expected);
        for (time, newest) in [(0, None), (1, Some(0)), (120, Some(80)), (121, Some(120)), (9000, Some(160))]
        {
            assert_eq!(
                features.last_before(time).unwrap(),
                newest.map(|it| -> Arc<[f32]> { feature(it).into() }),
                "{time}"
            );
        }
    }

    #[test]
    fn a_stretch_is_read_without_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let mut features = written(&folder.path().join("features"), &[&[0, 40, 80], &[120, 160]]);
        let times = |rows: Vec<Row>| rows.into_iter().map(|(time, _)| time).collect::<Vec<i64>>();
        assert_eq!(times(features.rows(40..160).unwrap()), [40, 80, 120]);
        assert_eq!(times(features.rows(160..161).unwrap()), [160]);
        assert!(features.rows(161..9000).unwrap().is_empty());
    }
}
