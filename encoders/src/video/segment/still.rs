//! Finds the areas of the picture that are at rest, and when such an area shows something new.
//!
//! The picture is divided into blocks that are judged separately: a lecturer moving in a corner keeps only those blocks
//! restless and hides no slide change elsewhere. A block is compared with its last rest state, not with the previous
//! frame. So a slow fade adds up, and compression noise does not.
//!
//! A change counts if the block was at rest, changed quickly, and is at rest again with another content. A passing
//! object (a hand, a pointer) leaves the block as it was. A moving object that stops reached its blocks one after the
//! other. So only blocks that began to change at about the same time are counted together.

use crate::wide::Wide;

use super::scores::{Settled, WHOLE};

/// Side of a block, in pixels of the small frame.
const SIDE: usize = 8;
/// A luma difference above noise.
const NOISE: u8 = 14;
/// Pixels of a block that must differ.
const PIXELS: u8 = 2;
/// A block at rest for this long has settled. Less than a second, for slides filmed at one frame per second.
pub(super) const STILL_MS: i64 = 900;
/// A change that takes longer is movement.
pub(super) const TRANSITION_MS: i64 = 1500;
/// Blocks that begin to change within this time may belong together.
pub(super) const TOGETHER_MS: i64 = 500;

/// The state of all blocks.
#[derive(Debug, Default)]
pub(super) struct Stillness {
    width: usize,
    /// Each block's last rest state.
    anchor: Vec<u8>,
    /// Each block's content when it last settled.
    settled: Vec<u8>,
    blocks: Vec<Block>,
    /// Differing pixels in each pixel column, for one row of blocks.
    differing: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    changed_ms: i64,
    /// Time of the first change since the block settled. `None` while it is settled.
    began_ms: Option<i64>,
    /// Whether the block ever settled.
    known: bool,
}

/// The changes of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Change {
    /// Share of the moving blocks, in units of 1 / [`WHOLE`].
    pub(super) moving: u16,
    /// Share of the blocks that were at rest and now move.
    pub(super) began: u16,
    pub(super) settled: Option<Settled>,
}

impl Stillness {
    /// Takes the luma of the next frame, `width` pixels a row.
    pub(super) fn push(&mut self, wide: Wide, time_ms: i64, width: usize, luma: &[u8]) -> Change {
        if width == 0 || self.width != width || self.anchor.len() != luma.len() {
            self.begin(time_ms, width.max(1), luma);
            return Change::default();
        }
        let columns = width.div_ceil(SIDE);
        let (mut moved, mut rested) = (0, 0);
        let mut began = Vec::new();
        for row in 0..self.blocks.len() / columns {
            let from = row * SIDE * width;
            let until = (from + SIDE * width).min(luma.len());
            count(wide, &mut self.differing, &luma[from..until], &self.anchor[from..until]);
            let moved_before = moved;
            for column in 0..columns {
                let left = column * SIDE;
                let right = (left + SIDE).min(width);
                let block = &mut self.blocks[row * columns + column];
                let has_moved = sum(&self.differing[left..right]) >= PIXELS;
                self.differing[left..right].fill(if has_moved { u8::MAX } else { 0 });
                if has_moved {
                    moved += 1;
                    rested += usize::from(block.began_ms.is_none());
                    block.changed_ms = time_ms;
                    block.began_ms.get_or_insert(time_ms);
                } else if block.began_ms.is_some() && time_ms - block.changed_ms >= STILL_MS {
                    let area = Area { from: from + left, length: right - left, until, width };
                    began.extend(block.settle(&area, &self.anchor, &self.settled));
                    area.copy(&self.anchor, &mut self.settled);
                }
            }
            if moved > moved_before {
                overwrite(wide, &self.differing, &mut self.anchor[from..until], &luma[from..until]);
            }
        }
        Change { moving: self.share(moved), began: self.share(rested), settled: self.largest_group(began) }
    }

    fn begin(&mut self, time_ms: i64, width: usize, luma: &[u8]) {
        let blocks = width.div_ceil(SIDE) * luma.len().div_ceil(width).div_ceil(SIDE);
        *self = Stillness {
            width,
            anchor: luma.to_vec(),
            settled: luma.to_vec(),
            blocks: vec![Block { changed_ms: time_ms, began_ms: Some(time_ms), known: false }; blocks],
            differing: vec![0; width],
        };
    }

    fn share(&self, blocks: usize) -> u16 {
        (blocks * usize::from(WHOLE) / self.blocks.len().max(1)) as u16
    }

    /// The largest group of blocks that began to change within [`TOGETHER_MS`] of each other.
    fn largest_group(&self, mut began: Vec<i64>) -> Option<Settled> {
        began.sort_unstable();
        let size = |from: usize| began.partition_point(|at| *at <= began[from] + TOGETHER_MS) - from;
        // The first of the largest groups: `max_by_key` would return the last.
        let from = (0..began.len()).min_by_key(|from| std::cmp::Reverse(size(*from)))?;
        Some(Settled { area: self.share(size(from)), began_ms: began[from] }).filter(|it| it.area > 0)
    }
}

impl Block {
    /// Settles the block. If it changed as a slide does, returns when the change began.
    fn settle(&mut self, area: &Area, anchor: &[u8], settled: &[u8]) -> Option<i64> {
        let began_ms = self.began_ms.take()?;
        let was_known = std::mem::replace(&mut self.known, true);
        let quick = self.changed_ms - began_ms <= TRANSITION_MS;
        (was_known && quick && area.differ(anchor, settled)).then_some(began_ms)
    }
}

/// The pixels of one block.
struct Area {
    from: usize,
    length: usize,
    until: usize,
    width: usize,
}

impl Area {
    fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (length, until) = (self.length, self.until);
        (self.from..until).step_by(self.width).map(move |at| at..(at + length).min(until))
    }

    fn copy(&self, from: &[u8], to: &mut [u8]) {
        self.rows().for_each(|row| to[row.clone()].copy_from_slice(&from[row]));
    }

    fn differ(&self, a: &[u8], b: &[u8]) -> bool {
        let pairs = self.rows().flat_map(|row| a[row.clone()].iter().zip(&b[row]));
        pairs.filter(|(a, b)| a.abs_diff(**b) > NOISE).nth(usize::from(PIXELS) - 1).is_some()
    }
}

/// For each pixel column, the number of rows in which two pictures differ by more than noise.
fn count(wide: Wide, differing: &mut [u8], a: &[u8], b: &[u8]) {
    let width = differing.len();
    differing.fill(0);
    wide.run(
        #[inline(always)]
        || {
            for (a, b) in a.chunks_exact(width).zip(b.chunks_exact(width)) {
                for ((count, a), b) in differing.iter_mut().zip(a).zip(b) {
                    let difference = a.max(b).wrapping_sub(*a.min(b));
                    *count = count.wrapping_add(u8::from(difference > NOISE));
                }
            }
        },
    );
}

/// Copies the pixels of `from` in the columns whose mask is all ones; the other masks are zero.
fn overwrite(wide: Wide, mask: &[u8], to: &mut [u8], from: &[u8]) {
    wide.run(
        #[inline(always)]
        || {
            for (to, from) in to.chunks_exact_mut(mask.len()).zip(from.chunks_exact(mask.len())) {
                for ((to, from), mask) in to.iter_mut().zip(from).zip(mask) {
                    *to = (*to & !mask) | (from & mask);
                }
            }
        },
    );
}

/// The sum of at most eight numbers, each at most eight.
fn sum(counts: &[u8]) -> u8 {
    match counts.first_chunk::<SIDE>() {
        Some(all) => (u64::from_le_bytes(*all).wrapping_mul(0x0101_0101_0101_0101) >> 56) as u8,
        None => counts.iter().sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 80;
    const HEIGHT: usize = 45;

    /// A white picture with a black rectangle (left, top, right, bottom).
    fn picture(box_at: Option<[usize; 4]>) -> Vec<u8> {
        let mut luma = vec![235; WIDTH * HEIGHT];
        if let Some([left, top, right, bottom]) = box_at {
            (top..bottom).for_each(|y| luma[y * WIDTH + left..y * WIDTH + right].fill(20));
        }
        luma
    }

    /// At 10 frames per second: the settled areas, as (time, area, began).
    #[track_caller]
    fn check(frames: usize, draw: impl Fn(usize) -> Vec<u8>, expected: &[(i64, u16, i64)]) {
        let mut stillness = Stillness::default();
        let mut found = Vec::new();
        for frame in 0..frames {
            let time_ms = frame as i64 * 100;
            let change = stillness.push(Wide::detect(), time_ms, WIDTH, &draw(frame));
            found.extend(change.settled.map(|it| (time_ms, it.area, it.began_ms)));
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_word_that_appears_settles_as_a_change() {
        let word = Some([8, 8, 40, 16]);
        // Four of sixty blocks.
        check(40, |frame| picture(word.filter(|_| frame >= 20)), &[(2900, 666, 2000)]);
        check(40, |frame| picture(word.filter(|_| frame < 20)), &[(2900, 666, 2000)]);
    }

    #[test]
    fn a_slow_fade_adds_up() {
        let shade = |frame: usize| 235 - (frame.clamp(20, 30) - 20) as u8 * 10;
        check(60, |frame| vec![shade(frame); WIDTH * HEIGHT], &[(3900, 10_000, 2200)]);
    }

    #[test]
    fn what_passes_through_leaves_no_trace() {
        let pointer =
            |frame: usize| Some([frame % 70, 20, frame % 70 + 8, 28]).filter(|_| (20..40).contains(&frame));
        check(80, |frame| picture(pointer(frame)), &[]);
    }

    #[test]
    fn what_never_rests_is_no_change() {
        check(80, |frame| picture(Some([8 + frame % 2, 8, 40 + frame % 2, 16])), &[]);
    }

    #[test]
    fn a_change_before_the_first_rest_is_none() {
        check(40, |frame| picture(Some([8, 8, 40, 16]).filter(|_| frame >= 5)), &[]);
    }

    #[test]
    fn a_thing_that_comes_to_rest_counts_by_where_it_came_last() {
        // Ten pixels per second: each block on its way began to change 0.8 s after the previous one.
        let thing = |frame: usize| {
            let left = frame.clamp(20, 60) - 20;
            Some([left, 16, left + 24, 24])
        };
        let mut stillness = Stillness::default();
        let areas = (0..100).filter_map(|frame| {
            stillness.push(Wide::detect(), frame as i64 * 100, WIDTH, &picture(thing(frame))).settled
        });
        assert!(areas.map(|it| it.area).max().unwrap_or(0) <= 334);
    }

    #[test]
    fn pictures_of_any_size_are_taken() {
        for (width, height) in [(1, 1), (3, 200), (200, 3), (8, 8), (17, 10)] {
            let mut stillness = Stillness::default();
            for (time_ms, shade) in [(0, 0), (1000, 0), (2000, 200), (3000, 200)] {
                let change = stillness.push(Wide::detect(), time_ms, width, &vec![shade; width * height]);
                let expected = (time_ms == 3000 && width * height > 1)
                    .then_some(Settled { area: WHOLE, began_ms: 2000 });
                assert_eq!(change.settled, expected, "{width}x{height} {time_ms}");
            }
        }
    }
}
