//! Memory pages of the process or of a mapped file, and casts between bytes and numbers.
#![allow(unsafe_code, reason = "memory-mapped files, and bytes read as numbers")]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use memmap2::{Advice, Mmap, MmapMut};

// Files hold little-endian numbers, read without conversion.
#[cfg(target_endian = "big")]
compile_error!("reprise-index stores little-endian numbers and reads them in place");

/// Bytes that start at a page boundary and do not move.
pub(crate) enum Pages {
    /// Memory of the process.
    Own(MmapMut),
    /// A range of a file that does not change.
    Mapped(Mmap),
    /// No bytes: the system maps no empty range.
    Empty,
}

impl Pages {
    /// Zeroed memory, in huge pages where the system has them. A walk reads scattered rows; with small pages, address
    /// translation takes longer than reading.
    pub(crate) fn zeroed(length: usize) -> io::Result<Pages> {
        if length == 0 {
            return Ok(Pages::Empty);
        }
        let pages = MmapMut::map_anon(length)?;
        #[cfg(target_os = "linux")]
        // Advice only: kernels without huge pages refuse it.
        let _ = pages.advise(Advice::HugePage);
        Ok(Pages::Own(pages))
    }

    /// Maps a range of a file; `from` must be a multiple of 4096.
    pub(crate) fn map(file: &File, from: u64, length: usize) -> io::Result<Pages> {
        if length == 0 {
            return Ok(Pages::Empty);
        }
        // SAFETY: segments are written under another name, renamed when complete, and never changed afterwards.
        // Checksums detect most changes that a user makes meanwhile.
        let map = unsafe { memmap2::MmapOptions::new().offset(from).len(length).map(file)? };
        #[cfg(unix)]
        let _ = map.advise(Advice::Random);
        Ok(Pages::Mapped(map))
    }

    /// Asks the system to read a range of a mapped file at once. Without this it reads one page at a time, as
    /// [`Pages::map`] advises for scattered rows.
    pub(crate) fn read_ahead(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Pages::Mapped(map) = self {
            let end = range.end.min(map.len());
            // Advice only: what is not read ahead is read when it is touched.
            let _ = map.advise_range(Advice::WillNeed, range.start.min(end), end.saturating_sub(range.start));
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Pages::Own(pages) => pages,
            Pages::Mapped(pages) => pages,
            Pages::Empty => &[],
        }
    }

    /// Empty for a mapped file, which is read-only.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Pages::Own(pages) => pages,
            Pages::Mapped(_) | Pages::Empty => &mut [],
        }
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

/// A number type for which every bit pattern is valid.
pub(crate) trait Number: Copy {}
impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for f32 {}

/// Casts bytes to numbers; bytes left over at the end are dropped.
///
/// # Panics
/// If the bytes are not aligned for the type. The sections of a segment start at multiples of 64.
#[inline]
pub(crate) fn cast<T: Number>(bytes: &[u8]) -> &[T] {
    let size = size_of::<T>();
    assert!((bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()));
    // SAFETY: aligned, of this length, borrowed from `bytes`, and every bit pattern is a valid number.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size) }
}

/// [`cast`] for writing.
///
/// # Panics
/// As [`cast`].
pub(crate) fn cast_mut<T: Number>(bytes: &mut [u8]) -> &mut [T] {
    let size = size_of::<T>();
    assert!((bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()));
    // SAFETY: as in `cast`.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size) }
}

/// Casts numbers to bytes.
pub(crate) fn bytes_of<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: the same length in bytes, borrowed from the numbers; every number is valid as bytes.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// [`bytes_of`] for writing.
pub(crate) fn bytes_of_mut<T: Number>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: as above; every bit pattern is a valid number.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
