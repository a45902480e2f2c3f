//! The coarse pictures of the newest frames, and how much any two of them differ.

use std::collections::VecDeque;

use crate::wide::Wide;

use super::grid::{Coarse, Difference, STEPS, difference, neither, product};

/// Frames that follow each other faster are left out: 60 frames a second count as 30.
const STEP_MS: i64 = 30;
/// Pictures of fewer blocks tell too little.
const LEAST_BLOCKS: usize = 16;

/// The newest pictures, in order of time. A picture is named by its place among them.
#[derive(Debug)]
pub(super) struct Pictures {
    wide: Wide,
    coarse: Coarse,
    width: usize,
    pixels: usize,
    /// Most pictures.
    kept: usize,
    newest: VecDeque<Picture>,
}

#[derive(Debug, Default)]
struct Picture {
    time_ms: i64,
    /// Mean luma in units of 1 / [`STEPS`], as the cells.
    mean: i16,
    cells: Vec<i16>,
    /// Mean products with this picture and those before it, by their distance.
    products: Vec<f32>,
    /// Mean absolute difference from the picture before it, in luma levels.
    change: f32,
}

impl Pictures {
    /// None yet; at most `kept` later.
    pub(super) fn new(wide: Wide, kept: usize) -> Pictures {
        Pictures { wide, coarse: Coarse::default(), width: 0, pixels: 0, kept, newest: VecDeque::new() }
    }

    /// Takes the luma of the next frame, `width` pixels a row. Returns whether it was kept: it must not follow the last one too
    /// soon, nor have too few blocks.
    pub(super) fn push(&mut self, time_ms: i64, width: usize, luma: &[u8]) -> bool {
        if (self.width, self.pixels) != (width, luma.len()) {
            self.newest.clear();
            (self.width, self.pixels) = (width, luma.len());
        }
        if self.newest.back().is_some_and(|it| time_ms - it.time_ms < STEP_MS) {
            return false;
        }
        self.add(time_ms, luma);
        self.newest.back().is_some_and(|it| it.cells.len() >= LEAST_BLOCKS)
    }

    fn add(&mut self, time_ms: i64, luma: &[u8]) {
        let mut new =
            if self.newest.len() < self.kept { None } else { self.newest.pop_front() }.unwrap_or_default();
        new.time_ms = time_ms;
        new.mean = self.coarse.fill(self.wide, self.width, luma, &mut new.cells);
        new.products.clear();
        let scale = 1.0 / (STEPS * STEPS) as f32 / new.cells.len().max(1) as f32;
        let (cells, products) = (&new.cells, &mut new.products);
        self.wide.run(
            #[inline(always)]
            || {
                products.push(product(cells, cells) as f32 * scale);
                for earlier in self.newest.iter().rev() {
                    products.push(product(cells, &earlier.cells) as f32 * scale);
                }
            },
        );
        self.newest.push_back(new);
        if let Some(before) = self.len().checked_sub(2) {
            self.newest[before + 1].change = self.difference(before, before + 1).mean;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.newest.len()
    }

    pub(super) fn time_ms(&self, at: usize) -> i64 {
        self.newest[at].time_ms
    }

    /// Mean luma, 0 to 255.
    pub(super) fn mean(&self, at: usize) -> f32 {
        f32::from(self.newest[at].mean) / STEPS as f32
    }

    /// Mean product of two pictures' blocks, without the pictures' means; of a picture with itself, its energy.
    pub(super) fn product(&self, a: usize, b: usize) -> f32 {
        let products = &self.newest[a.max(b)].products;
        products.get(a.abs_diff(b)).copied().unwrap_or(0.0)
    }

    /// Mean square difference of two pictures, of their means too.
    pub(super) fn distance(&self, a: usize, b: usize) -> f32 {
        let mean = self.mean(a) - self.mean(b);
        self.product(a, a) + self.product(b, b) - 2.0 * self.product(a, b) + mean * mean
    }

    /// How two pictures differ block by block.
    pub(super) fn difference(&self, a: usize, b: usize) -> Difference {
        let (a, b) = (&self.newest[a], &self.newest[b]);
        let means = a.mean - b.mean;
        self.wide.run(
            #[inline(always)]
            || difference(&a.cells, &b.cells, means),
        )
    }

    /// The sum of the changes from each picture to the next one, from `first` to `last`: mean absolute differences, in luma levels.
    pub(super) fn path(&self, first: usize, last: usize) -> f32 {
        self.newest.range(first + 1..=last).map(|it| it.change).sum()
    }

    /// The largest change from a picture to the next one, from `first` to `last`.
    pub(super) fn largest_change(&self, first: usize, last: usize) -> f32 {
        self.newest.range(first + 1..=last).map(|it| it.change).fold(0.0, f32::max)
    }

    /// How far the blocks of picture `at` are from the nearer of the pictures `a` and `b`, in parts of the distance of those: a
    /// quarter in the middle of a dissolve, little in a wipe.
    pub(super) fn neither(&self, at: usize, a: usize, b: usize) -> f32 {
        let [at, a, b] = [at, a, b].map(|it| &self.newest[it]);
        let means = [a.mean - at.mean, b.mean - at.mean];
        self.wide.run(
            #[inline(always)]
            || neither(&at.cells, [&a.cells, &b.cells], means),
        )
    }
}
