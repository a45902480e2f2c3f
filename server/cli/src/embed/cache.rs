//! A cache of vectors in one file per space. An interrupted or repeated run encodes nothing twice.
//!
//! The file is a sequence of records of equal length: the key, the values as little-endian f32, and the first bytes
//! of the SHA-256 of both. Records are only appended. Opening the file drops an incomplete tail.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use reprise_encoders::Space;
use sha2::{Digest, Sha256};

/// SHA-256 of an encoder input.
pub(crate) type Key = [u8; 32];

/// Size of a record's checksum in bytes.
const CHECKSUM: usize = 4;

/// The cached vectors of one space. Only one process can hold the file.
pub(crate) struct Cache {
    path: PathBuf,
    file: File,
    known: HashMap<Key, Vec<f32>>,
    dim: usize,
}

impl Cache {
    /// Opens or creates the file of the space.
    ///
    /// # Errors
    /// The file can't be read or written, or another process holds it.
    pub(crate) fn open(folder: &Path, space: &Space) -> anyhow::Result<Cache> {
        let path = folder.join(format!("{}.vectors", space.id));
        Cache::at(&path, space.dim).with_context(|| path.display().to_string())
    }

    fn at(path: &Path, dim: usize) -> anyhow::Result<Cache> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another command is writing it; wait, or give --cache"),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let length = record_length(dim);
        let sound = bytes.chunks_exact(length).map_while(|record| read_record(record, dim));
        let records: Vec<(Key, Vec<f32>)> = sound.collect();
        let end = (records.len() * length) as u64;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(Cache { path: path.to_owned(), file, known: records.into_iter().collect(), dim })
    }

    /// The vector of an input, if it is cached.
    pub(crate) fn get(&self, key: &Key) -> Option<&[f32]> {
        self.known.get(key).map(Vec::as_slice)
    }

    /// Adds a vector.
    ///
    /// # Errors
    /// The record can't be written, or the vector has another length than the space's.
    pub(crate) fn insert(&mut self, key: Key, vector: Vec<f32>) -> anyhow::Result<()> {
        ensure!(vector.len() == self.dim, "a vector of {} values, not {}", vector.len(), self.dim);
        let mut record = key.to_vec();
        record.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        record.extend(checksum(&record));
        self.file.write_all(&record).with_context(|| self.path.display().to_string())?;
        self.known.insert(key, vector);
        Ok(())
    }
}

fn record_length(dim: usize) -> usize {
    size_of::<Key>() + dim * size_of::<f32>() + CHECKSUM
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::digest(bytes);
    std::array::from_fn(|at| digest[at])
}

/// Parses a record; `None` if it is incomplete or damaged.
fn read_record(record: &[u8], dim: usize) -> Option<(Key, Vec<f32>)> {
    let (content, sum) = record.split_at(record_length(dim) - CHECKSUM);
    if sum != checksum(content) {
        return None;
    }
    let (key, values) = content.split_first_chunk()?;
    let values = values.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    Some((*key, values.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: [(Key, [f32; 3]); 3] =
        [([1; 32], [1.0, 2.0, 3.0]), ([2; 32], [-1.0, 0.5, 1e-30]), ([3; 32], [4.0, 5.0, 6.0])];

    /// Checks how many of three vectors remain after `damage` to the file.
    #[track_caller]
    fn check(damage: impl Fn(&mut Vec<u8>), left: usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/space.vectors");
        let mut cache = Cache::at(&path, 3).unwrap();
        for (key, values) in VECTORS {
            cache.insert(key, values.to_vec()).unwrap();
        }
        assert!(cache.insert([4; 32], vec![1.0]).is_err());
        drop(cache);
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        // The second time checks the repaired file.
        for _ in 0..2 {
            let cache = Cache::at(&path, 3).unwrap();
            for (at, (key, values)) in VECTORS.iter().enumerate() {
                assert_eq!(cache.get(key), (at < left).then_some(&values[..]));
            }
        }
        let mut cache = Cache::at(&path, 3).unwrap();
        cache.insert([9; 32], vec![7.0; 3]).unwrap();
        drop(cache);
        let cache = Cache::at(&path, 3).unwrap();
        assert_eq!((cache.known.len(), cache.get(&[9; 32])), (left + 1, Some(&[7.0; 3][..])));
    }

    #[test]
    fn vectors_outlive_the_process_and_a_torn_tail_is_dropped() {
        check(|_| (), 3);
        check(|bytes| bytes.truncate(bytes.len() - 1), 2);
        check(|bytes| bytes.truncate(record_length(3) + 5), 1);
        check(|bytes| bytes[record_length(3) + 40] ^= 1, 1);
        check(Vec::clear, 0);
        check(|bytes| *bytes = b"something else altogether".to_vec(), 0);
    }

    #[test]
    fn a_file_that_is_in_use_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("space.vectors");
        let first = Cache::at(&path, 2).unwrap();
        let error = Cache::at(&path, 2).err().unwrap();
        assert!(error.to_string().contains("another command"), "{error}");
        drop(first);
        assert!(Cache::at(&path, 2).is_ok());
    }
}
