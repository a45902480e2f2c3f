//! A segment's file: a header page, the core (keys, links, codes, signs), the vectors, and the checksums of their blocks.
//!
//! The file never exists half written ([`crate::unfinished`]). The vectors come first: codes are made while they are read.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Sealed;
use super::blocks::{BLOCK, Checksums, checksums};
use super::layout::{Layout, PAGE};
use crate::codes::{Coder, Codes};
use crate::disk;
use crate::memory::Pages;
use crate::unfinished::Unfinished;

/// The file's first bytes; the last byte is the format number.
const MAGIC: [u8; 8] = *b"reprise\x04";
/// The most rows: limits the memory that a damaged header can claim.
const MOST_ROWS: usize = 1 << 32;

/// Why a segment could not be built, read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SegmentError {
    /// The file is damaged: a disk fault, or a manual edit.
    #[error("{0}")]
    Damaged(#[source] Box<dyn Error + Send + Sync>),
    /// The vector of a source row is damaged.
    #[error("a vector can't be read")]
    Unreadable,
    /// The disk is full or not readable, or memory is short.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The header, stored as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    codes: Codes,
    dimension: usize,
    rows: usize,
    twin_pairs: usize,
}

/// What a file holds beside its vectors.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) layout: &'a Layout,
    pub(super) coder: &'a Coder,
    pub(super) core: &'a [u8],
}

impl Head<'_> {
    /// The first page (magic, header length, header checksum, header).
    fn first_page(&self) -> Result<Vec<u8>, SegmentError> {
        let Layout { codes, dimension, rows, twin_pairs } = *self.layout;
        let text = serde_json::to_vec(&Header { codes, dimension, rows, twin_pairs })
            .map_err(|error| SegmentError::Damaged(error.into()))?;
        let mut page = MAGIC.to_vec();
        page.extend((text.len() as u32).to_le_bytes());
        page.extend(crc32fast::hash(&text).to_le_bytes());
        page.extend(&text);
        page.resize(PAGE, 0);
        Ok(page)
    }

    /// The mean of the codes, the checksums of the core's blocks, and those of the vectors.
    fn table(&self, vectors: Vec<u32>) -> Vec<u8> {
        let mean = self.coder.mean().iter().flat_map(|value| value.to_le_bytes());
        let sums = checksums(self.core).chain(vectors);
        mean.chain(sums.flat_map(u32::to_le_bytes)).collect()
    }
}

/// A segment's file that is being written: the vectors first, some at a time, then the rest.
pub(super) struct Writing<'a> {
    path: &'a Path,
    to: BufWriter<Unfinished>,
    sums: Checksums,
    /// Bytes of vectors until now.
    length: usize,
}

impl<'a> Writing<'a> {
    /// Begins the file of `path` under another name.
    pub(super) fn begin(path: &'a Path, layout: &Layout) -> Result<Writing<'a>, SegmentError> {
        disk::step()?;
        let mut to = BufWriter::with_capacity(BLOCK, Unfinished::begin(path)?);
        disk::step()?;
        to.seek(SeekFrom::Start(Sections::of(layout).vectors))?;
        Ok(Writing { path, to, sums: Checksums::default(), length: 0 })
    }

    /// Appends vectors.
    pub(super) fn vectors(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        self.sums.add(bytes);
        self.length += bytes.len();
        Ok(self.to.write_all(bytes)?)
    }

    /// Writes the rest, syncs the file and gives it its name; returns the checksum of its checksums.
    pub(super) fn end(mut self, head: Head) -> Result<u32, SegmentError> {
        let padding = head.layout.vector_bytes() - self.length;
        self.vectors(&vec![0; padding])?;
        let table = head.table(self.sums.finish());
        disk::step()?;
        self.to.write_all(&table)?;
        let checksum = crc32fast::hash(&table);
        self.to.write_all(&checksum.to_le_bytes())?;
        self.to.rewind()?;
        self.to.write_all(&head.first_page()?)?;
        disk::step()?;
        self.to.write_all(head.core)?;
        let whole = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        whole.finish(self.path)?;
        Ok(checksum)
    }
}

/// Maps the vectors of a segment's file.
pub(super) fn map_vectors(file: &File, layout: &Layout) -> io::Result<Pages> {
    Pages::map(file, Sections::of(layout).vectors, layout.vector_bytes())
}

/// Maps the core of a segment's file.
pub(super) fn map_core(file: &File, layout: &Layout) -> io::Result<Pages> {
    Pages::map(file, PAGE as u64, layout.core_bytes())
}

impl Sealed {
    /// Writes the segment to `path` and syncs it; returns the checksum of its checksums.
    pub(crate) fn write(&self, path: &Path) -> Result<u32, SegmentError> {
        let mut to = Writing::begin(path, &self.layout)?;
        to.vectors(self.vectors.bytes())?;
        to.end(Head { layout: &self.layout, coder: &self.coder, core: &self.core })
    }
}

/// Offsets of the file's sections.
pub(super) struct Sections {
    vectors: u64,
    table: u64,
    table_bytes: usize,
}

impl Sections {
    pub(super) fn of(layout: &Layout) -> Sections {
        let vectors = (PAGE + layout.core_bytes()) as u64;
        let blocks = layout.core_bytes().div_ceil(BLOCK) + layout.vector_bytes().div_ceil(BLOCK);
        Sections {
            vectors,
            table: vectors + layout.vector_bytes() as u64,
            table_bytes: (layout.dimension + blocks) * 4,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.table + self.table_bytes as u64 + 4
    }
}

pub(super) fn read_header(file: &mut File) -> Result<Layout, SegmentError> {
    let mut page = [0; PAGE];
    file.read_exact(&mut page).map_err(|_| damaged("it is too short"))?;
    let number = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    if page[..8] != MAGIC {
        return Err(damaged("it is no segment of this version"));
    }
    let text = page.get(16..16 + number(8) as usize).ok_or_else(|| damaged("its header is too long"))?;
    if crc32fast::hash(text) != number(12) || page[16 + text.len()..].iter().any(|&byte| byte != 0) {
        return Err(damaged("its header's checksum is another"));
    }
    let header: Header = serde_json::from_slice(text).map_err(damaged)?;
    let Header { codes, dimension, rows, twin_pairs } = header;
    if rows == 0 || rows >= MOST_ROWS || twin_pairs > rows || dimension == 0 || dimension > 1 << 20 {
        return Err(damaged("its header makes no sense"));
    }
    Ok(Layout::new(codes, dimension, rows, twin_pairs))
}

pub(super) fn read_table(file: &mut File, places: &Sections) -> Result<Vec<u8>, SegmentError> {
    let mut table = vec![0; places.table_bytes + 4];
    file.seek(SeekFrom::Start(places.table))?;
    file.read_exact(&mut table)?;
    let sum = table.split_off(places.table_bytes);
    if sum == crc32fast::hash(&table).to_le_bytes() {
        Ok(table)
    } else {
        Err(damaged("the checksum of its checksums is another"))
    }
}

pub(super) fn damaged(reason: impl Into<Box<dyn Error + Send + Sync>>) -> SegmentError {
    SegmentError::Damaged(reason.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::SpanKey;
    use crate::sealed::{Making, Source, link};

    /// Twenty keys; each has the vector (1, 0, 0).
    struct Twenty;

    impl Source for Twenty {
        fn len(&self) -> usize {
            20
        }

        fn key(&self, row: usize) -> SpanKey {
            row as SpanKey
        }

        fn vector(&self, _: usize) -> Option<&[f32]> {
            Some(&[1.0, 0.0, 0.0])
        }
    }

    /// The first page of a file whose header is `header`, with its checksum.
    fn page(header: &Value) -> Vec<u8> {
        let text = serde_json::to_vec(header).unwrap();
        let mut page = MAGIC.to_vec();
        page.extend((text.len() as u32).to_le_bytes());
        page.extend(crc32fast::hash(&text).to_le_bytes());
        page.extend(&text);
        page.resize(PAGE, 0);
        page
    }

    /// Why a segment's file is refused after `change` to its first page; an empty text if it is opened.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.segment");
        let making = Making { codes: Codes::F32, threads: 1, freed: 0, report: &|_| () };
        let (linked, budget) = (link(&Twenty, 3, making).unwrap(), Arc::default());
        linked.keep(&budget).unwrap().write(&path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let mut first: Vec<u8> = bytes[..PAGE].to_vec();
        change(&mut first);
        bytes.splice(..PAGE, first);
        fs::write(&path, bytes).unwrap();
        let refused =
            Sealed::open(&path, 3, &budget).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(expected) && refused.is_empty() == expected.is_empty(), "{refused:?}");
    }

    /// [`check`] after a change of the header's numbers, with the right checksum.
    #[track_caller]
    fn check_header(change: impl FnOnce(&mut Value), expected: &str) {
        let mut header = json!({ "codes": "f32", "dimension": 3, "rows": 20, "twin_pairs": 19 });
        change(&mut header);
        check(|first| *first = page(&header), expected);
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        check_header(|_| (), "");
        check_header(|header| header["rows"] = 0.into(), "makes no sense");
        check_header(|header| header["twin_pairs"] = 21.into(), "makes no sense");
        check_header(|header| header["twin_pairs"] = 20.into(), "twins are out of order");
        check_header(|header| header["rows"] = (1_u64 << 32).into(), "makes no sense");
        check_header(|header| header["rows"] = ((1_u64 << 32) - 1).into(), "bytes, not");
        check_header(|header| header["dimension"] = 0.into(), "makes no sense");
        check_header(|header| header["dimension"] = 4.into(), "another dimension");
        check_header(|header| header["dimension"] = (1 << 20).into(), "another dimension");
        check_header(|header| header["dimension"] = ((1 << 20) + 1).into(), "makes no sense");
    }

    #[test]
    fn a_first_page_with_anything_else_is_refused() {
        check(|first| first[7] += 1, "no segment of this version");
        check(|first| first[12] ^= 1, "checksum is another");
        check(|first| first[PAGE - 1] = 1, "checksum is another");
        check(|first| first[8..12].copy_from_slice(&(PAGE as u32 - 15).to_le_bytes()), "header is too long");
        check(|first| first[8..12].copy_from_slice(&(PAGE as u32 - 16).to_le_bytes()), "checksum is another");
    }
}
