//! Finds stretches of frames in which one picture turns into another: dissolves, fades, wipes. And short interruptions,
//! as by a flash, after which the picture is back.
//!
//! A dissolve shows a sum of two pictures, and so does a fade, in whose middle there is little of either. The parts of
//! both in a frame are found by least squares, on coarse pictures without their mean ([`super::grid`]). In a transition,
//! one part rises and the other falls, without a jump, and the sum leaves little of the frame unexplained. Frames of a
//! pan or of a moving object are no such sum. In a wipe each block shows one of the two pictures.
//!
//! Windows of several lengths are tried at each frame. They need the products of all pairs of near pictures only, which
//! are kept. The constants were chosen on the films of `tests/bench/transition_films.py`, seed 0.

use std::collections::VecDeque;

use crate::video::wide::Wide;

use super::grid::{Coarse, STEPS, product};
use super::scores::Blend;

/// Distances of the two pictures, in frames. A transition is shorter than its window.
const SPANS: [usize; 10] = [8, 10, 13, 16, 20, 25, 31, 38, 47, 58];
/// Frames on either side of a window in which the pictures must stay.
const AROUND: usize = 6;
/// Coarse pictures that the longest window needs.
const KEPT: usize = SPANS[SPANS.len() - 1] + 2 * AROUND + 1;
/// No window is longer, at whatever frame rate, its surroundings included.
pub(super) const LONGEST_MS: i64 = 2800;
/// Frames that follow each other faster are left out: 60 frames a second count as 30.
const STEP_MS: i64 = 30;
/// Pictures of fewer blocks tell too little.
const LEAST_BLOCKS: usize = 16;

/// Energy of a picture's noise: of the mean square over its blocks, in square luma levels, as all energies.
const NOISE: f32 = 4.0;
/// Least energy of both pictures: a plain one has no shape to find again.
const LEAST_ENERGY: f32 = 28.0;
/// Least mean square difference of the two pictures.
const LEAST_DISTANCE: f32 = 206.0;
/// Largest correlation of the two pictures: of a slow pan it is higher.
const MOST_ALIKE: f32 = 0.39;
/// Limits of a transition; `Blends::misfit` says what they are of.
const MOST_JUMP: f32 = 0.6;
const MOST_BACK: f32 = 0.4;
const MOST_MOTION: f32 = 1.15;
const MOST_SUM: f32 = 1.4;
/// Of several windows, the frames that are unexplained say most.
const REST_WEIGHT: f32 = 5.5;
const MOST_REST: f32 = 0.56;
const MOST_REST_EVER: f32 = 0.76;
const MOST_REST_AROUND: f32 = 1.17;
const MOST_NEITHER: f32 = 0.11;
const MOST_WIPE_JUMP: f32 = 0.3;
/// Blocks whose luma differs by more than this have changed.
const CHANGED: i32 = 12;
/// Least share of changed blocks.
const LEAST_CHANGED: f32 = 0.6;

/// An interruption has at most this many frames and lasts at most this long.
const FLASH_FRAMES: usize = 9;
pub(super) const FLASH_MS: i64 = 400;
/// The picture is back if it differs by at most this part of the interruption's difference.
const BACK_PART: f32 = 0.2;
/// Least mean square difference of an interruption.
const FLASH_DISTANCE: f32 = 250.0;

/// Takes the luma of each frame; keeps the coarse pictures that a window needs.
#[derive(Debug, Default)]
pub(super) struct Blends {
    coarse: Coarse,
    width: usize,
    pixels: usize,
    /// In order of time.
    pictures: VecDeque<Picture>,
    shares: Vec<Share>,
}

#[derive(Debug, Default)]
struct Picture {
    time_ms: i64,
    /// Mean luma in units of 1 / [`STEPS`], as the cells.
    mean: i16,
    cells: Vec<i16>,
    /// Mean products with this picture and those before it, by their distance.
    products: Vec<f32>,
}

/// What is found with one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    pub(super) blend: Option<Blend>,
    pub(super) back_from_ms: Option<i64>,
}

/// Indices of the two pictures.
#[derive(Debug, Clone, Copy)]
struct Window {
    first: usize,
    last: usize,
}

/// What a frame has of the two pictures.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// The part of the last less that of the first: from -1 to 1.
    lead: f32,
    /// The sum of both parts.
    sum: f32,
    /// Energy that neither explains.
    rest: f32,
}

/// How well a window fits a transition.
#[derive(Debug, Clone, Copy)]
struct Fit {
    misfit: f32,
    /// Whether its blocks show one of the two pictures, rather than a sum.
    is_wipe: bool,
}

impl Blends {
    /// Takes the luma of the next frame, `width` pixels a row.
    pub(super) fn push(&mut self, wide: Wide, time_ms: i64, width: usize, luma: &[u8]) -> Marks {
        if (self.width, self.pixels) != (width, luma.len()) {
            self.pictures.clear();
            (self.width, self.pixels) = (width, luma.len());
        }
        if self.pictures.back().is_some_and(|it| time_ms - it.time_ms < STEP_MS) {
            return Marks::default();
        }
        self.add(wide, time_ms, luma);
        if self.pictures.back().is_none_or(|it| it.cells.len() < LEAST_BLOCKS) {
            return Marks::default();
        }
        Marks { blend: self.best(), back_from_ms: self.interruption() }
    }

    fn add(&mut self, wide: Wide, time_ms: i64, luma: &[u8]) {
        let mut new =
            if self.pictures.len() < KEPT { None } else { self.pictures.pop_front() }.unwrap_or_default();
        new.time_ms = time_ms;
        new.mean = self.coarse.fill(wide, self.width, luma, &mut new.cells);
        new.products.clear();
        let scale = 1.0 / (STEPS * STEPS) as f32 / new.cells.len().max(1) as f32;
        let (cells, products) = (&new.cells, &mut new.products);
        wide.run(
            #[inline(always)]
            || {
                products.push(product(cells, cells) as f32 * scale);
                for earlier in self.pictures.iter().rev() {
                    products.push(product(cells, &earlier.cells) as f32 * scale);
                }
            },
        );
        self.pictures.push_back(new);
    }

    fn product(&self, a: usize, b: usize) -> f32 {
        let products = &self.pictures[a.max(b)].products;
        products.get(a.abs_diff(b)).copied().unwrap_or(0.0)
    }

    /// Mean square difference of two pictures, of their means too.
    fn distance(&self, a: usize, b: usize) -> f32 {
        let mean = f32::from(self.pictures[a].mean - self.pictures[b].mean) / STEPS as f32;
        self.product(a, a) + self.product(b, b) - 2.0 * self.product(a, b) + mean * mean
    }

    /// The shortest interruption after which the newest picture is the one from before it.
    fn interruption(&self) -> Option<i64> {
        let back = self.pictures.len() - 1;
        let befores = (1..=FLASH_FRAMES).map_while(|frames| back.checked_sub(frames + 1));
        let recent =
            befores.take_while(|it| self.pictures[back].time_ms - self.pictures[*it].time_ms <= FLASH_MS);
        let found = recent.into_iter().find(|&before| {
            let other = self.distance(before, before + 1).min(self.distance(back - 1, back));
            other > FLASH_DISTANCE && self.distance(before, back) < BACK_PART * other
        });
        found.map(|before| self.pictures[before + 1].time_ms)
    }

    /// The window with the least misfit.
    fn best(&mut self) -> Option<Blend> {
        let last = self.pictures.len().checked_sub(AROUND + 1)?;
        let windows = SPANS.iter().map_while(|span| Some(Window { first: last.checked_sub(*span)?, last }));
        let windows = windows.filter(|it| it.first >= AROUND);
        windows.filter_map(|it| self.blend(it)).min_by_key(|it| (it.misfit, it.began_ms))
    }

    /// The transition of a window, if it may be one.
    fn blend(&mut self, window: Window) -> Option<Blend> {
        let Window { first, last } = window;
        let newest = self.pictures.len() - 1;
        if self.pictures[newest].time_ms - self.pictures[first - AROUND].time_ms > LONGEST_MS {
            return None;
        }
        let energies = [self.product(first, first), self.product(last, last)];
        let both = self.product(first, last);
        let alike = both / ((energies[0] + NOISE) * (energies[1] + NOISE)).sqrt();
        let (least, distance) = (energies[0].min(energies[1]), self.distance(first, last));
        if least < LEAST_ENERGY || alike > MOST_ALIKE || distance < LEAST_DISTANCE {
            return None;
        }
        self.measure_shares(window);
        let inside = &self.shares[AROUND..self.shares.len() - AROUND];
        let middle = inside.iter().position(|it| it.lead > 0.0)?.clamp(1, last - first - 1);
        let scale = (0.5 * (energies[0] + energies[1]) + NOISE) * (1.0 - alike).max(0.05);
        let Fit { misfit: fit, is_wipe } = self.misfit(window, middle, scale)?;
        let of_pictures =
            (1.0 + alike) / (1.0 + MOST_ALIKE) + LEAST_DISTANCE / distance + LEAST_ENERGY / least;
        let misfit = (1000.0 * (fit + of_pictures)).min(65_000.0) as u16;
        let time_ms = |at: usize| self.pictures[at].time_ms;
        let middle = if is_wipe { self.nearer_to_last(window) } else { first + middle };
        Some(Blend {
            began_ms: time_ms(first + 1),
            middle_ms: time_ms(middle),
            ended_ms: time_ms(last),
            misfit,
        })
    }

    /// The first frame that is nearer to the last picture. In a wipe, an edge moves between two shades, of which the least
    /// squares of pictures without their mean know nothing.
    fn nearer_to_last(&self, Window { first, last }: Window) -> usize {
        let mut inside = first + 1..last;
        inside.find(|&at| self.distance(at, last) <= self.distance(first, at)).unwrap_or(last - 1)
    }

    /// The least squares of the window's frames and of those around it.
    fn measure_shares(&mut self, Window { first, last }: Window) {
        let [aa, bb] = [first, last].map(|it| self.product(it, it));
        let ab = self.product(first, last);
        let (wide_a, wide_b) = (aa + NOISE, bb + NOISE);
        let scale = 1.0 / (wide_a * wide_b - ab * ab).max(1e-3);
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        shares.extend((first - AROUND..=last + AROUND).map(|at| {
            let (with_a, with_b) = (self.product(at, first), self.product(at, last));
            let a = (with_a * wide_b - with_b * ab) * scale;
            let b = (with_b * wide_a - with_a * ab) * scale;
            let explained = 2.0 * (a * with_a + b * with_b) - a * a * aa - b * b * bb - 2.0 * a * b * ab;
            Share { lead: b - a, sum: a + b, rest: self.product(at, at) - explained }
        }));
        self.shares = shares;
    }

    /// Compares the shares with those of a transition: the sum of all misfits, each in parts of its limit; `None` if one
    /// exceeds it. `scale` is the energy that a frame of neither picture would leave unexplained.
    fn misfit(&self, window: Window, middle: usize, scale: f32) -> Option<Fit> {
        let (around, end) = (AROUND, self.shares.len() - AROUND);
        let (before, inside, after) =
            (&self.shares[..around], &self.shares[around..end], &self.shares[end..]);
        let steps = || inside.windows(2).map(|it| it[1].lead - it[0].lead);
        let jump = steps().map(f32::abs).fold(0.0, f32::max);
        let back = steps().map(|it| (-it).max(0.0)).sum::<f32>() / MOST_BACK;
        let moves = |shares: &[Share], from: &Share| {
            shares.iter().map(|it| (it.lead - from.lead).abs()).fold(0.0, f32::max) / MOST_MOTION
        };
        let rests = |shares: &[Share], of: usize| {
            let worst = shares.iter().map(|it| it.rest).fold(0.0, f32::max);
            worst / (self.product(of, of) + NOISE) / MOST_REST_AROUND
        };
        let motions = [moves(before, inside.first()?), moves(after, inside.last()?)];
        let strange = [rests(before, window.first), rests(after, window.last)];
        let sum = inside[middle].sum / MOST_SUM;
        let others = [jump / MOST_JUMP, back, motions[0], motions[1], strange[0], strange[1], sum];
        if others.iter().any(|it| *it > 1.0) {
            return None;
        }
        let unchanged = (1.0 - self.changed(window)) / (1.0 - LEAST_CHANGED);
        let interior = &inside[1..inside.len() - 1];
        let near = &interior[middle.saturating_sub(2)..(middle + 1).min(interior.len())];
        let of_middle = near.iter().map(|it| it.rest).sum::<f32>() / near.len() as f32 / scale / MOST_REST;
        let worst = interior.iter().map(|it| it.rest).fold(0.0, f32::max) / scale / MOST_REST_EVER;
        let of_blocks = self.neither(window) / MOST_NEITHER;
        let is_one = of_middle.max(worst) <= 1.0 || of_blocks.max(jump / MOST_WIPE_JUMP) <= 1.0;
        let others = others.iter().sum::<f32>() + unchanged;
        let misfit = REST_WEIGHT * of_middle.min(of_blocks) + others;
        (is_one && unchanged <= 1.0).then_some(Fit { misfit, is_wipe: of_blocks < of_middle })
    }

    /// Share of the blocks that differ between the two pictures.
    fn changed(&self, Window { first, last }: Window) -> f32 {
        let (a, b) = (&self.pictures[first], &self.pictures[last]);
        let mean = i32::from(a.mean) - i32::from(b.mean);
        let differs =
            |(a, b): &(&i16, &i16)| (i32::from(**a) - i32::from(**b) + mean).abs() > CHANGED * STEPS;
        a.cells.iter().zip(&b.cells).filter(differs).count() as f32 / a.cells.len() as f32
    }

    /// How far the blocks of the worst of three frames, a quarter, half and three quarters on the way, are from the nearer
    /// of the two pictures, in parts of the pictures' distance: a quarter in a dissolve, little in a wipe.
    fn neither(&self, Window { first, last }: Window) -> f32 {
        let inside = &self.shares[AROUND..self.shares.len() - AROUND];
        let (a, b) = (&self.pictures[first], &self.pictures[last]);
        let whole = |it: &Picture, at: usize| f32::from(it.cells[at]) + f32::from(it.mean);
        let mut worst = 0.0_f32;
        for quarter in [-0.5, 0.0, 0.5] {
            let at = inside.iter().position(|it| it.lead >= quarter).unwrap_or(0);
            let frame = &self.pictures[first + at];
            let (mut all, mut far) = (0.0_f32, 0.0_f32);
            for cell in 0..a.cells.len() {
                let (a, b, it) = (whole(a, cell), whole(b, cell), whole(frame, cell));
                far += ((it - a) * (it - a)).min((it - b) * (it - b));
                all += (a - b) * (a - b);
            }
            worst = worst.max(far / all.max(1.0));
        }
        worst
    }
}
