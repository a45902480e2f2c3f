//! Pages of memory that are this process's own or a file's, and the numbers in them.
#![allow(unsafe_code, reason = "memory-mapped files, and bytes read as numbers")]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::{Advice, Mmap, MmapMut};

// What is on disk is read as it lies there.
#[cfg(target_endian = "big")]
compile_error!("reprise-index stores little-endian numbers and reads them in place");

/// Bytes that begin at a page and don't move.
pub(crate) enum Pages {
    /// This process's own.
    Own(MmapMut),
    /// A part of a file that nobody changes.
    Mapped(Mmap),
    /// None at all: the system maps no empty range.
    Empty,
}

impl Pages {
    /// Own memory, zero, in huge pages where the system has them: a walk reads rows here and there, and with small
    /// pages the processor spends more time on finding a page than on reading it.
    pub(crate) fn zeroed(length: usize) -> io::Result<Pages> {
        if length == 0 {
            return Ok(Pages::Empty);
        }
        let pages = MmapMut::map_anon(length)?;
        #[cfg(target_os = "linux")]
        // Only advice: kernels without huge pages refuse it.
        let _ = pages.advise(Advice::HugePage);
        Ok(Pages::Own(pages))
    }

    /// A part of a file; `from` must be a multiple of 4096.
    pub(crate) fn map(file: &File, from: u64, length: usize) -> io::Result<Pages> {
        if length == 0 {
            return Ok(Pages::Empty);
        }
        // SAFETY: segments are written under another name, renamed when they are whole, and never changed after;
        // what a user does to them meanwhile is noticed by checksums as far as it can be.
        let map = unsafe { memmap2::MmapOptions::new().offset(from).len(length).map(file)? };
        #[cfg(unix)]
        let _ = map.advise(Advice::Random);
        Ok(Pages::Mapped(map))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Pages::Own(pages) => pages,
            Pages::Mapped(pages) => pages,
            Pages::Empty => &[],
        }
    }

    /// Empty for a file's pages: they can't be written.
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

/// Numbers that any bytes are valid for.
pub(crate) trait Number: Copy {}
impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for f32 {}

/// Bytes as numbers, without what is left over at the end.
///
/// # Panics
/// If the bytes don't begin where such a number may: the parts of a segment begin at multiples of 64.
#[inline]
pub(crate) fn cast<T: Number>(bytes: &[u8]) -> &[T] {
    let size = size_of::<T>();
    assert!((bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()));
    // SAFETY: aligned, as long as said, borrowed from `bytes`, and every pattern of bits is a number.
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

/// Numbers as bytes.
pub(crate) fn bytes_of<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: as long as the numbers, borrowed from them, and every number is bytes.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}
