//! The layout of a segment's core: keys, keys in order, rows by key, twins, links, codes, signs.

use std::ops::Range;

use crate::SpanKey;
use crate::build::{Linked, upper_counts};
use crate::codes::{self, Codes, signs};
use crate::kernels::LINE;
use crate::memory;
use crate::walk::{BOTTOM_LINKS, LINKS, NONE};

/// Alignment of a file's sections, so that they can be mapped.
pub(super) const PAGE: usize = 4_096;

/// The sizes that determine all offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) codes: Codes,
    pub(super) dimension: usize,
    pub(super) rows: usize,
    pub(super) twin_pairs: usize,
}

impl Layout {
    pub(super) fn new(codes: Codes, dimension: usize, rows: usize, twin_pairs: usize) -> Layout {
        Layout { codes, dimension, rows, twin_pairs }
    }

    /// The key of each row: 64 bits.
    pub(super) fn keys(&self) -> Range<usize> {
        0..self.rows * 8
    }

    /// All keys in order: a search among listed keys reads them one after the other.
    pub(super) fn sorted_keys(&self) -> Range<usize> {
        self.after(&self.keys(), self.rows * 8)
    }

    /// Row numbers in the order of their keys.
    pub(super) fn by_key(&self) -> Range<usize> {
        self.after(&self.sorted_keys(), self.rows * 4)
    }

    /// (node, twin), sorted.
    pub(super) fn twins(&self) -> Range<usize> {
        self.after(&self.by_key(), self.twin_pairs * 8)
    }

    /// Links of the bottom layer.
    pub(super) fn bottom(&self) -> Range<usize> {
        self.after(&self.twins(), self.rows * BOTTOM_LINKS * 4)
    }

    pub(super) fn upper_layers(&self) -> usize {
        upper_counts(self.rows).len()
    }

    /// Links of an upper layer, from 0 on.
    pub(super) fn upper(&self, layer: usize) -> Range<usize> {
        let counts = upper_counts(self.rows);
        let mut place = self.bottom();
        for count in counts.iter().take(layer + 1) {
            place = self.after(&place, count * LINKS * 4);
        }
        place
    }

    /// One code row per row, then the numbers that lie behind all rows.
    pub(super) fn codes(&self) -> Range<usize> {
        let links_end = match self.upper_layers() {
            0 => self.bottom(),
            layers => self.upper(layers - 1),
        };
        self.after(&links_end, codes::bytes(self.codes, self.dimension, self.rows))
    }

    /// The heads of all rows' signs, then their tails, for codes that have them.
    pub(super) fn signs(&self) -> Range<usize> {
        self.after(&self.codes(), self.rows * signs::Strides::of(self.codes, self.dimension).both())
    }

    /// Bytes of the core, rounded up to a whole page.
    pub(super) fn core_bytes(&self) -> usize {
        self.signs().end.next_multiple_of(PAGE)
    }

    /// Bytes of the original vectors, rounded up to a whole page.
    pub(super) fn vector_bytes(&self) -> usize {
        (self.rows * self.dimension * 4).next_multiple_of(PAGE)
    }

    fn after(&self, before: &Range<usize>, length: usize) -> Range<usize> {
        let start = before.end.next_multiple_of(LINE);
        start..start + length
    }

    pub(super) fn write_keys(&self, core: &mut [u8], keys: impl Iterator<Item = SpanKey>) {
        let keys: Vec<SpanKey> = keys.collect();
        let mut by_key: Vec<u32> = (0..self.rows as u32).collect();
        by_key.sort_unstable_by_key(|&row| keys[row as usize]);
        let sorted: Vec<SpanKey> = by_key.iter().map(|&row| keys[row as usize]).collect();
        memory::cast_mut(&mut core[self.sorted_keys()]).copy_from_slice(&sorted);
        memory::cast_mut(&mut core[self.keys()]).copy_from_slice(&keys);
        memory::cast_mut(&mut core[self.by_key()]).copy_from_slice(&by_key);
    }

    pub(super) fn write_links(&self, core: &mut [u8], linked: &Linked) {
        let twins: Vec<u32> = linked.twins.iter().flat_map(|&(node, twin)| [node, twin]).collect();
        memory::cast_mut(&mut core[self.twins()]).copy_from_slice(&twins);
        memory::cast_mut(&mut core[self.bottom()]).copy_from_slice(&linked.bottom);
        for (layer, links) in linked.upper.iter().enumerate() {
            memory::cast_mut(&mut core[self.upper(layer)]).copy_from_slice(links);
        }
    }

    /// Checks that these bytes are a segment of this layout: every stored row number must be a valid row. Returns the
    /// reason if they are not, which is possible even with correct checksums.
    pub(super) fn check(&self, core: &[u8]) -> Result<(), String> {
        let rows = self.rows as u32;
        let numbers = |range| memory::cast::<u32>(&core[range]);
        let leads = |links: &[u32], nodes: u32| {
            // All links of a chunk are compared at once.
            links.chunks(4_096).all(|chunk| {
                chunk.iter().fold(true, |is_good, &link| is_good & ((link < nodes) | (link == NONE)))
            })
        };
        if !leads(numbers(self.bottom()), rows) {
            return Err("a link leads nowhere".to_owned());
        }
        for (layer, count) in upper_counts(self.rows).into_iter().enumerate() {
            if !leads(numbers(self.upper(layer)), count as u32) {
                return Err("a link of an upper layer leads nowhere".to_owned());
            }
        }
        let twins = numbers(self.twins());
        if !twins.iter().all(|&row| row < rows) || !twins.as_chunks::<2>().0.is_sorted() {
            return Err("twins are out of order".to_owned());
        }
        let by_key = numbers(self.by_key());
        if !by_key.iter().all(|&row| row < rows) {
            return Err("a key leads nowhere".to_owned());
        }
        let keys = |range| memory::cast::<SpanKey>(&core[range]);
        let (keys, sorted) = (keys(self.keys()), keys(self.sorted_keys()));
        if !sorted.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("a key occurs twice or out of order".to_owned());
        }
        let is_same = by_key.iter().zip(sorted).all(|(&row, &key)| keys[row as usize] == key);
        if is_same { Ok(()) } else { Err("a key leads to another one's row".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sections of a core in their order; upper layers follow the bottom one.
    #[track_caller]
    fn check(layout: Layout, sections: &[Range<usize>], core_bytes: usize, vector_bytes: usize) {
        let upper = (0..layout.upper_layers()).map(|layer| layout.upper(layer));
        let before = [layout.keys(), layout.sorted_keys(), layout.by_key(), layout.twins(), layout.bottom()];
        let got: Vec<Range<usize>> =
            before.into_iter().chain(upper).chain([layout.codes(), layout.signs()]).collect();
        assert_eq!(got, sections);
        assert_eq!((layout.core_bytes(), layout.vector_bytes()), (core_bytes, vector_bytes));
    }

    /// Files outlive the program that wrote them. Whoever moves a section gives the file's format another number.
    #[test]
    fn sections_stay_where_they_are() {
        check(
            Layout::new(Codes::Int8, 24, 1_001, 3),
            &[
                0..8_008,
                8_064..16_072,
                16_128..20_132,
                20_160..20_184,
                20_224..148_352,
                148_352..152_320,
                152_320..152_512,
                152_512..280_640,
                280_640..280_640,
            ],
            282_624,
            98_304,
        );
        check(
            Layout::new(Codes::F32, 24, 10, 0),
            &[0..80, 128..208, 256..296, 320..320, 320..1_600, 1_600..2_880, 2_880..2_880],
            4_096,
            4_096,
        );
        check(
            Layout::new(Codes::Int4, 24, 10, 0),
            &[0..80, 128..208, 256..296, 320..320, 320..1_600, 1_600..2_320, 2_368..2_608],
            4_096,
            4_096,
        );
    }

    /// Checks a core of 40 rows with two nodes in the upper layer, of which one `section` has this `number` as its `at`-th.
    #[track_caller]
    fn check_core(section: fn(&Layout) -> Range<usize>, at: usize, number: u32, expected: Result<(), &str>) {
        let layout = Layout::new(Codes::Int4, 24, 40, 2);
        let mut core = crate::memory::Pages::zeroed(layout.core_bytes()).unwrap();
        let linked = Linked {
            bottom: vec![NONE; 40 * BOTTOM_LINKS],
            upper: vec![vec![NONE; 2 * LINKS]],
            twins: vec![(3, 5), (3, 7)],
        };
        layout.write_keys(core.bytes_mut(), (0..40).rev().map(|key| key << 33));
        layout.write_links(core.bytes_mut(), &linked);
        memory::cast_mut(&mut core.bytes_mut()[section(&layout)])[at] = number;
        assert_eq!(layout.check(&core), expected.map_err(str::to_owned));
    }

    #[test]
    fn numbers_that_lead_nowhere_are_refused() {
        let upper = |layout: &Layout| layout.upper(0);
        check_core(Layout::bottom, 7, 39, Ok(()));
        check_core(Layout::bottom, 7, 40, Err("a link leads nowhere"));
        check_core(upper, 7, 1, Ok(()));
        check_core(upper, 7, 2, Err("a link of an upper layer leads nowhere"));
        check_core(Layout::twins, 3, 39, Ok(()));
        check_core(Layout::twins, 3, 40, Err("twins are out of order"));
        check_core(Layout::twins, 3, 4, Err("twins are out of order"));
        check_core(Layout::by_key, 0, 39, Ok(()));
        check_core(Layout::by_key, 0, 40, Err("a key leads nowhere"));
        check_core(Layout::by_key, 0, 38, Err("a key leads to another one's row"));
        // The upper half of the first row's key, which is the largest.
        check_core(Layout::keys, 1, 78, Ok(()));
        check_core(Layout::keys, 1, 79, Err("a key leads to another one's row"));
        // The same of the last key in order.
        check_core(Layout::sorted_keys, 79, 79, Err("a key leads to another one's row"));
        check_core(Layout::sorted_keys, 79, 76, Err("a key occurs twice or out of order"));
    }
}
