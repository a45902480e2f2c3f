//! Follows what was read: a line lasts as long as most of its blocks show what they showed.

use std::collections::BTreeMap;

use super::STEP_MS;
use super::blocks::Grid;
use super::lines::Sighting;
use super::page::Page;
use super::table::{Place, ReadLine};

/// The most regions, pixels and milliseconds of video that wait to be read together.
const MOST_WAITING: usize = 24;
const MOST_PIXELS: usize = 24_000_000;
const LONGEST_MS: i64 = 120_000;
/// A line is over when one in three of its blocks shows something else.
const OVER: usize = 3;
/// Pixels from a region's border. A line that comes closer may be cut off by the border.
const BORDER: usize = 2;
/// Text reaches a little into the blocks beside its box, in pixels.
const NEAR: usize = 8;
/// A shorter line tells that a block holds text only if it is this sure: footage is read as a few letters now and then.
const TELLING_LETTERS: usize = 4;
const TELLING: f32 = 0.85;
/// The most sightings of a video.
const MOST_SIGHTINGS: usize = 200_000;

/// A region that is read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) at_ms: i64,
    pub(super) grid: Grid,
    /// In pixels of the picture.
    pub(super) place: Place,
    /// How much larger the page is than its place.
    pub(super) scale: usize,
    pub(super) page: Page,
    /// Its blocks, ascending, and since when each shows what it shows.
    pub(super) blocks: Vec<usize>,
    pub(super) since_ms: Vec<i64>,
    /// The blocks for which it is read.
    pub(super) new: Vec<usize>,
}

/// A reading whose answer is not there yet.
#[derive(Debug)]
struct Waiting {
    number: u32,
    reading: Reading,
    /// Blocks that ended meanwhile.
    ended: Vec<(usize, End)>,
}

/// When a reading no longer holds for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) at_ms: i64,
    /// Whether the block shows something else from then on. If not, it was read again because blocks beside it changed.
    pub(super) is_changed: bool,
}

/// A line on screen.
#[derive(Debug)]
struct Followed {
    line: ReadLine,
    start_ms: i64,
    /// Its blocks, ascending.
    blocks: Vec<usize>,
    ended: Vec<End>,
    picture: (usize, usize),
}

/// Whether a reading found text in a block for which it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) block: usize,
    pub(super) is_fruitful: bool,
}

/// All readings that are not over.
#[derive(Debug, Default)]
pub(super) struct Follower {
    waiting: Vec<Waiting>,
    /// Lines on screen by their reading.
    lines: BTreeMap<u32, Vec<Followed>>,
    sightings: Vec<Sighting>,
    regions: u32,
    runs: u64,
}

impl Follower {
    /// The number of the next reading that is added.
    pub(super) fn next_number(&self) -> u32 {
        self.regions
    }

    pub(super) fn add(&mut self, reading: Reading) {
        self.waiting.push(Waiting { number: self.regions, reading, ended: Vec::new() });
        self.regions = self.regions.saturating_add(1);
    }

    pub(super) fn regions(&self) -> u64 {
        self.regions.into()
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// The sightings so far.
    pub(super) fn sightings(self) -> Vec<Sighting> {
        self.sightings
    }

    /// Whether the waiting regions are to be read.
    pub(super) fn is_full(&self, now_ms: i64) -> bool {
        let pixels: usize = self.waiting.iter().map(|it| it.reading.page.luma.len()).sum();
        let oldest_ms = self.waiting.first().map_or(now_ms, |it| it.reading.at_ms);
        self.waiting.len() >= MOST_WAITING || pixels >= MOST_PIXELS || oldest_ms + LONGEST_MS <= now_ms
    }

    /// The pages that wait, in order.
    pub(super) fn waiting_pages(&self) -> Vec<&Page> {
        self.waiting.iter().map(|it| &it.reading.page).collect()
    }

    /// A reading no longer holds for a block.
    pub(super) fn ended(&mut self, number: u32, block: usize, end: End) {
        if let Some(lines) = self.lines.get_mut(&number) {
            lines.iter_mut().for_each(|it| it.ended(block, end));
        } else if let Some(waiting) = self.waiting.iter_mut().rev().find(|it| it.number == number) {
            waiting.ended.push((block, end));
        }
    }

    /// Takes the lines of each waiting page, in order, and tells in which blocks text was found.
    pub(super) fn answered(&mut self, pages: Vec<Vec<ReadLine>>) -> Vec<Verdict> {
        self.runs += 1;
        let mut verdicts = Vec::new();
        for (waiting, lines) in std::mem::take(&mut self.waiting).into_iter().zip(pages) {
            let Waiting { number, reading, ended } = waiting;
            let mut lines: Vec<Followed> = lines.into_iter().filter_map(|line| reading.line(line)).collect();
            for block in &reading.new {
                let place = reading.grid.place(*block);
                let is_fruitful = lines.iter().any(|it| it.is_telling() && grown(it.line.at).touches(place));
                verdicts.push(Verdict { block: *block, is_fruitful });
            }
            for (block, end) in ended {
                lines.iter_mut().for_each(|it| it.ended(block, end));
            }
            self.lines.insert(number, lines);
        }
        self.close(Followed::end_ms);
        verdicts
    }

    /// Ends the video. `differs_ms`: since when a block differs from what was read there.
    pub(super) fn finish(&mut self, differs_ms: impl Fn(usize) -> Option<i64>, duration_ms: i64) {
        self.close(|line| {
            let differing: Vec<i64> = line.blocks.iter().filter_map(|it| differs_ms(*it)).collect();
            let first_ms = differing.iter().min().filter(|_| 2 * differing.len() >= line.blocks.len());
            Some(line.end_ms().or(first_ms.copied()).unwrap_or(duration_ms))
        });
    }

    /// Moves the lines that have an end to the sightings.
    fn close(&mut self, end: impl Fn(&Followed) -> Option<i64>) {
        for lines in self.lines.values_mut() {
            for line in std::mem::take(lines) {
                match end(&line) {
                    Some(end_ms) if self.sightings.len() < MOST_SIGHTINGS => {
                        self.sightings.push(line.sighting(end_ms));
                    }
                    Some(_) => {}
                    None => lines.push(line),
                }
            }
        }
        self.lines.retain(|_, lines| !lines.is_empty());
    }

    /// Takes the blocks for which regions wait, without an answer.
    #[cfg(test)]
    pub(super) fn waiting_blocks(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting).into_iter().flat_map(|it| it.reading.new).collect()
    }
}

impl Reading {
    /// A line of its page as a line of the picture; `None` if the border cuts it.
    fn line(&self, line: ReadLine) -> Option<Followed> {
        let ReadLine { at, .. } = line;
        let (page_width, page_height) = (self.page.width, self.page.height);
        let border = BORDER * self.scale;
        let is_cut = (at.left < border && self.place.left > 0)
            || (at.top < border && self.place.top > 0)
            || (at.right + border > page_width && self.place.right < self.grid.width)
            || (at.bottom + border > page_height && self.place.bottom < self.grid.height);
        let at = Place {
            left: self.place.left + at.left / self.scale,
            top: self.place.top + at.top / self.scale,
            right: (self.place.left + at.right.div_ceil(self.scale)).min(self.grid.width),
            bottom: (self.place.top + at.bottom.div_ceil(self.scale)).min(self.grid.height),
        };
        if is_cut || at.left >= at.right || at.top >= at.bottom {
            return None;
        }
        let blocks: Vec<usize> = self.grid.blocks(at).collect();
        let since = blocks.iter().filter_map(|block| self.blocks.binary_search(block).ok());
        let start_ms = since.filter_map(|index| self.since_ms.get(index)).max().copied();
        Some(Followed {
            line: ReadLine { at, ..line },
            start_ms: start_ms.unwrap_or(self.at_ms).min(self.at_ms),
            blocks,
            ended: Vec::new(),
            picture: (self.grid.width, self.grid.height),
        })
    }
}

impl Followed {
    fn is_telling(&self) -> bool {
        let letters = self.line.text.chars().filter(|c| c.is_alphanumeric()).count();
        letters >= TELLING_LETTERS || self.line.confidence >= TELLING
    }

    fn ended(&mut self, block: usize, end: End) {
        if self.blocks.binary_search(&block).is_ok() {
            self.ended.push(end);
        }
    }

    /// When the line was over: its readings ended in its share of blocks. `None` before that. A line of which a digit
    /// changed is read again as a whole a moment later; it was over when the digit changed.
    fn end_ms(&self) -> Option<i64> {
        let mut ended = self.ended.clone();
        ended.sort_unstable();
        let over = ended.get(self.blocks.len().div_ceil(OVER).max(1) - 1)?;
        let changed = ended.iter().find(|it| it.is_changed).filter(|_| !over.is_changed);
        Some(changed.unwrap_or(over).at_ms.min(over.at_ms))
    }

    fn sighting(self, end_ms: i64) -> Sighting {
        Sighting {
            start_ms: self.start_ms,
            end_ms: end_ms.max(self.start_ms + STEP_MS / 2),
            text: self.line.text,
            confidence: self.line.confidence,
            at: self.line.at,
            picture: self.picture,
        }
    }
}

fn grown(place: Place) -> Place {
    Place {
        left: place.left.saturating_sub(NEAR),
        top: place.top.saturating_sub(NEAR),
        right: place.right + NEAR,
        bottom: place.bottom + NEAR,
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::SIDE;
    use super::*;

    /// Ends blocks of a line that covers six of them, as (block, milliseconds), then reads the others again at `again`; checks
    /// when the line was on screen.
    #[track_caller]
    fn check(ended: &[(usize, i64)], again: Option<i64>, expected: (i64, i64)) {
        let (width, height) = (6 * SIDE, SIDE);
        let whole = Place { left: 0, top: 0, right: width, bottom: height };
        let mut follower = Follower::default();
        follower.add(Reading {
            at_ms: 0,
            grid: Grid { width, height },
            place: whole,
            scale: 1,
            page: Page { width, height, luma: vec![255; width * height] },
            blocks: (0..6).collect(),
            since_ms: vec![0; 6],
            new: vec![0],
        });
        follower.answered(vec![vec![ReadLine { text: "a line".to_owned(), confidence: 1.0, at: whole }]]);
        for (block, at_ms) in ended {
            follower.ended(0, *block, End { at_ms: *at_ms, is_changed: true });
        }
        if let Some(at_ms) = again {
            let others = (0..6).filter(|block| ended.iter().all(|(it, _)| it != block));
            others.for_each(|block| follower.ended(0, block, End { at_ms, is_changed: false }));
        }
        follower.answered(Vec::new());
        follower.finish(|_| None, 90_000);
        let seen: Vec<(i64, i64)> = follower.sightings().iter().map(|it| (it.start_ms, it.end_ms)).collect();
        assert_eq!(seen, [expected], "{ended:?}");
    }

    #[test]
    fn a_line_lasts_until_a_third_of_its_blocks_show_something_else() {
        check(&[], None, (0, 90_000));
        check(&[(2, 10_000)], None, (0, 90_000));
        check(&[(2, 10_000), (3, 60_000)], None, (0, 60_000));
        check(&[(0, 60_000), (1, 10_000), (2, 70_000)], None, (0, 60_000));
    }

    #[test]
    fn a_line_that_is_read_again_was_over_when_a_part_of_it_changed() {
        check(&[(2, 10_000)], Some(10_500), (0, 10_000));
        check(&[], Some(10_500), (0, 10_500));
    }
}
