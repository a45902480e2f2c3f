//! Watches the blocks of a video: which show something new that may be text and has come to rest, and since when.
//!
//! A block is compared with the picture before, which says whether it moves, and with what was last read there. A person
//! before a slide looks like text now and then; a block in which nothing was found is read again only after a growing
//! time. A cut or a new slide ends that wait.

use super::blocks::{Grid, SIDE};
use super::follow::{End, Follower, Reading, Verdict};
use super::page::Page;
use super::regions::regions;
use super::table::Place;
use crate::video::LumaPicture;

/// A block is read at most once in this time: once a second, with a little slack for uneven frames.
const APART_MS: i64 = 900;
/// A block that moves for this long is read while it moves, where little else does.
const MOVES_ON_MS: i64 = 1000;
/// Readings of a block that may wait for their answers while it is read again: slides in a row.
const MOST_PENDING: u32 = 4;
/// The longest wait after readings of a block that found nothing.
const LONGEST_WAIT_MS: i64 = 32_000;
/// The share of blocks that may move while a moving region is read, in per cent.
const PART_PERCENT: usize = 25;
/// The share of blocks that move in a cut or a change of slides, in per cent.
const CUT_PERCENT: usize = 20;
/// Whole pictures that may be read per minute of video, on average, and at once.
const PICTURES_PER_MINUTE: f64 = 20.0;
const PICTURES_AT_ONCE: f64 = 30.0;
/// Pictures up to this height, and regions up to this part of a picture, are read twice as large.
const SMALL_HEIGHT: usize = 480;
const SMALL_PART: usize = 8;
/// Regions up to this part of a picture may be a board that lies over other things.
const BOARD_PART: usize = 4;
/// Pixels from the border of a region to such a board, at most: a block of margin, and two that touch its text.
const AROUND_BOARD: usize = 3 * SIDE;

/// The state of all blocks.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    grid: Grid,
    now_ms: i64,
    /// The picture now, the one before, and what was last read in each block.
    now: Vec<u8>,
    before: Vec<u8>,
    read: Vec<u8>,
    blocks: Vec<Block>,
    /// Blocks that differ from the picture before, and from what was read.
    moved: Vec<bool>,
    differs: Vec<bool>,
    moving_percent: usize,
    /// Whole pictures that may still be read.
    budget: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Since when it shows what it shows.
    since_ms: i64,
    /// Since when it differs from what was read.
    differs_ms: Option<i64>,
    /// Whether it was ever read or found empty.
    is_known: bool,
    /// The reading that holds for it.
    reading: Option<u32>,
    next_look_ms: i64,
    /// Readings in a row that found nothing here.
    barren: u32,
    /// Whether the last answered reading found text here.
    is_fruitful: bool,
    /// Readings of it that wait for their answers.
    pending: u32,
    /// Since when it has moved in every picture.
    moves_ms: Option<i64>,
}

impl Watcher {
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Since when a block differs from what was read there.
    pub(super) fn differs_ms(&self, block: usize) -> Option<i64> {
        self.blocks.get(block).and_then(|it| it.differs_ms)
    }

    /// Takes the next picture.
    pub(super) fn push(&mut self, picture: &LumaPicture) {
        let grid = Grid { width: picture.width, height: picture.height };
        if grid != self.grid || self.blocks.is_empty() {
            self.begin(grid, picture);
            return;
        }
        let passed = (picture.time_ms - self.now_ms).max(0) as f64 / 60_000.0;
        self.budget = (self.budget + passed * PICTURES_PER_MINUTE).min(PICTURES_AT_ONCE);
        self.now_ms = picture.time_ms;
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.copy_from_slice(&picture.luma);
        grid.differing(&self.now, &self.before, &mut self.moved);
        grid.differing(&self.now, &self.read, &mut self.differs);
        for (number, block) in self.blocks.iter_mut().enumerate() {
            if self.moved[number] {
                block.since_ms = self.now_ms;
            }
            block.moves_ms = if self.moved[number] { block.moves_ms.or(Some(self.now_ms)) } else { None };
            self.differs[number] |= !block.is_known;
            block.differs_ms =
                if self.differs[number] { block.differs_ms.or(Some(self.now_ms)) } else { None };
        }
        let moving = self.moved.iter().filter(|it| **it).count() * 100 / self.blocks.len();
        if moving >= CUT_PERCENT && self.moving_percent < CUT_PERCENT {
            self.blocks.iter_mut().for_each(Block::forget_waits);
        }
        self.moving_percent = moving;
    }

    fn begin(&mut self, grid: Grid, picture: &LumaPicture) {
        // What the first picture shows was there from the start.
        let since_ms = if self.blocks.is_empty() { 0 } else { picture.time_ms };
        let block = Block {
            since_ms,
            differs_ms: Some(since_ms),
            moves_ms: Some(since_ms),
            next_look_ms: i64::MIN,
            ..Block::default()
        };
        *self = Watcher {
            grid,
            now_ms: picture.time_ms,
            now: picture.luma.to_vec(),
            before: picture.luma.to_vec(),
            read: picture.luma.to_vec(),
            blocks: vec![block; grid.count()],
            // Nothing is at rest before the second picture.
            moved: vec![true; grid.count()],
            differs: vec![true; grid.count()],
            moving_percent: 100,
            budget: PICTURES_AT_ONCE,
        };
    }

    /// Whether a block is to be read whose last readings, not yet answered, decide whether that is worth it.
    pub(super) fn needs_answers(&self, is_end: bool) -> bool {
        let is_open = |block: &Block| block.pending >= MOST_PENDING && !block.is_fruitful;
        (0..self.blocks.len()).any(|number| is_open(&self.blocks[number]) && self.is_new(number, is_end))
    }

    /// Hands the regions that are to be read now to `follower`, and tells it which earlier readings end.
    pub(super) fn look(&mut self, is_end: bool, follower: &mut Follower) {
        self.drop_emptied(follower);
        let new: Vec<usize> = (0..self.blocks.len()).filter(|block| self.is_new(*block, is_end)).collect();
        if new.is_empty() {
            return;
        }
        let mut texts: Vec<bool> = (0..self.blocks.len())
            .map(|block| (is_end || !self.moved[block]) && self.grid.may_hold_text(&self.now, block))
            .collect();
        new.iter().for_each(|block| texts[*block] = true);
        for place in regions(self.grid, &texts, &new) {
            if self.pay(place) {
                // Blocks that wait are read with their region, and wait on with it. If each were read when its own wait is
                // over, a speaker would be read in every picture.
                let new = self.grid.blocks(place).filter(|block| self.is_readable(*block, is_end)).collect();
                self.read(place, new, follower);
            }
        }
    }

    /// What a reading found in a block.
    pub(super) fn answered(&mut self, verdict: Verdict) {
        let Verdict { block, is_fruitful } = verdict;
        let Some(block) = self.blocks.get_mut(block) else { return };
        block.pending = block.pending.saturating_sub(1);
        block.is_fruitful = is_fruitful;
        block.barren = if is_fruitful { 0 } else { (block.barren + 1).min(16) };
        if !is_fruitful {
            let wait = (1000_i64 << block.barren).min(LONGEST_WAIT_MS);
            block.next_look_ms = block.next_look_ms.max(self.now_ms + wait);
        }
    }

    /// Whether a block is to be read: it is readable, and its wait is over.
    fn is_new(&self, number: usize, is_end: bool) -> bool {
        (is_end || self.blocks[number].next_look_ms <= self.now_ms) && self.is_readable(number, is_end)
    }

    /// Whether a block differs from what was read, may hold text, and rests or is part of a region that moves on and on.
    fn is_readable(&self, number: usize, is_end: bool) -> bool {
        let moves_on = || {
            let is_part = self.moving_percent <= PART_PERCENT;
            let moves_ms = self.blocks[number].moves_ms;
            is_part && moves_ms.is_some_and(|ms| ms + MOVES_ON_MS <= self.now_ms)
        };
        self.differs[number]
            && (is_end || !self.moved[number] || moves_on())
            && self.grid.may_hold_text(&self.now, number)
    }

    /// Ends readings of blocks that now rest without text.
    fn drop_emptied(&mut self, follower: &mut Follower) {
        for number in 0..self.blocks.len() {
            let is_emptied =
                self.differs[number] && !self.moved[number] && !self.grid.may_hold_text(&self.now, number);
            if is_emptied {
                self.replace(number, None, follower);
            }
        }
    }

    fn read(&mut self, place: Place, new: Vec<usize>, follower: &mut Follower) {
        let number = follower.next_number();
        let blocks: Vec<usize> = self.grid.blocks(place).collect();
        // What fades in slowly moves in no picture, but it did not begin before it differed from what was read.
        let since = |block: &Block| block.since_ms.max(block.differs_ms.unwrap_or(i64::MIN));
        let since_ms = blocks.iter().map(|block| since(&self.blocks[*block])).collect();
        for block in &blocks {
            self.replace(*block, Some(number), follower);
        }
        for block in &new {
            let block = &mut self.blocks[*block];
            block.pending += 1;
            block.next_look_ms = self.now_ms + APART_MS;
        }
        let (page, scale) = self.page(place);
        follower.add(Reading {
            at_ms: self.now_ms,
            grid: self.grid,
            place,
            scale,
            page,
            blocks,
            since_ms,
            new,
        });
    }

    /// Ends the reading of a block, and begins another one.
    fn replace(&mut self, number: usize, reading: Option<u32>, follower: &mut Follower) {
        let block = &mut self.blocks[number];
        if let Some(old) = block.reading {
            let at_ms = block.differs_ms.unwrap_or(self.now_ms);
            follower.ended(old, number, End { at_ms, is_changed: block.differs_ms.is_some() });
        }
        block.reading = reading;
        block.is_known = true;
        block.differs_ms = None;
        self.differs[number] = false;
        self.grid.copy(number, &self.now, &mut self.read);
    }

    /// Takes a region from the budget if that suffices.
    fn pay(&mut self, place: Place) -> bool {
        let price = place.area() as f64 / (self.grid.width * self.grid.height).max(1) as f64;
        let is_paid = price <= self.budget;
        if is_paid {
            self.budget -= price;
        }
        is_paid
    }

    /// The page of a region, and how much larger it is than the picture.
    fn page(&self, place: Place) -> (Page, usize) {
        let rows = (place.top..place.bottom)
            .flat_map(|y| &self.now[y * self.grid.width + place.left..y * self.grid.width + place.right]);
        let page = Page {
            width: place.right - place.left,
            height: place.bottom - place.top,
            luma: rows.copied().collect(),
        };
        let texts = self.grid.blocks(place).filter(|block| self.grid.may_hold_text(&self.now, *block));
        let ground = self.grid.ground(&self.now, texts);
        let is_at_most = |part: usize| place.area() * part <= self.grid.width * self.grid.height;
        let page =
            if is_at_most(BOARD_PART) { page.without_surroundings(ground, AROUND_BOARD) } else { page };
        let page = page.light(ground);
        let is_small = is_at_most(SMALL_PART) || self.grid.height <= SMALL_HEIGHT;
        if is_small { (page.doubled(), 2) } else { (page, 1) }
    }
}

impl Block {
    fn forget_waits(&mut self) {
        if self.barren > 0 {
            self.barren = 0;
            self.next_look_ms = i64::MIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEP_MS;
    use super::super::follow::Follower;
    use super::*;

    const WIDTH: usize = 320;
    const HEIGHT: usize = 192;

    /// A white picture with strokes in rows of blocks; the shift moves them.
    fn picture(time_ms: i64, rows: &[usize], shift: usize) -> LumaPicture {
        let mut luma = vec![235; WIDTH * HEIGHT];
        for row in rows {
            for y in row * 16 + 4..row * 16 + 12 {
                (20..200).step_by(6).for_each(|x| luma[y * WIDTH + x + shift..][..2].fill(20));
            }
        }
        LumaPicture { time_ms, width: WIDTH, height: HEIGHT, luma: luma.into() }
    }

    /// The times at which something is read, for one picture each half second, where readings find text or do not.
    #[track_caller]
    fn check(pictures: usize, draw: impl Fn(usize) -> LumaPicture, finds: bool, expected: &[i64]) {
        let (mut watcher, mut follower) = (Watcher::default(), Follower::default());
        let mut times = Vec::new();
        for number in 0..pictures {
            let picture = LumaPicture { time_ms: number as i64 * STEP_MS, ..draw(number) };
            watcher.push(&picture);
            watcher.look(false, &mut follower);
            let new = follower.waiting_blocks();
            times.extend((!new.is_empty()).then_some(picture.time_ms));
            new.into_iter().for_each(|block| watcher.answered(Verdict { block, is_fruitful: finds }));
        }
        assert_eq!(times, expected);
    }

    #[test]
    fn a_slide_is_read_once_when_it_rests() {
        check(40, |_| picture(0, &[2, 4, 6], 0), true, &[500]);
        check(40, |at| picture(0, if at < 10 { &[2] } else { &[4] }, 0), true, &[500, 5500]);
        check(40, |at| picture(0, if at < 10 { &[2] } else { &[2, 4] }, 0), true, &[500, 5500]);
    }

    #[test]
    fn a_region_that_moves_on_is_read_once_a_second() {
        check(9, |at| picture(0, &[2], at % 5), true, &[1000, 2000, 3000, 4000]);
    }

    #[test]
    fn where_nothing_is_found_readings_become_rare() {
        check(60, |at| picture(0, &[2], at % 5), false, &[1000, 3000, 7000, 15_000]);
    }

    #[test]
    fn what_waits_side_by_side_is_read_together() {
        let rows = |at: usize| if at < 3 { vec![2] } else { vec![2, 3] };
        check(60, |at| picture(0, &rows(at), at % 5), false, &[1000, 2500, 4500, 8500, 16_500]);
    }

    #[test]
    fn a_cut_ends_the_wait() {
        let rows = |at: usize| if at < 10 { vec![1] } else { (0..12).collect() };
        check(24, |at| picture(0, &rows(at), 0), false, &[500, 5500]);
    }

    #[test]
    fn what_moves_everywhere_is_not_read() {
        check(40, |at| picture(0, &(0..12).collect::<Vec<_>>(), at % 3), true, &[]);
    }
}
