//! Finds stretches of frames in which one picture turns into another: dissolves, fades, wipes. And short interruptions,
//! as by a flash, after which the picture is back.
//!
//! Windows of several lengths are tried at each frame. They need the products of all pairs of near pictures only, which
//! are kept.

use crate::wide::Wide;

use super::judge;
use super::pictures::Pictures;
use super::scores::Blend;
use super::signs::{AROUND, Measured, Measurer, Window};

/// Distances of the two pictures, in frames. A transition is shorter than its window.
const SPANS: [usize; 10] = [8, 10, 13, 16, 20, 25, 31, 38, 47, 58];
/// Coarse pictures that the longest window needs.
const KEPT: usize = SPANS[SPANS.len() - 1] + 2 * AROUND + 1;
/// No window is longer, at whatever frame rate, its surroundings included.
pub(super) const LONGEST_MS: i64 = 2800;

/// An interruption has at most this many frames and lasts at most this long.
const FLASH_FRAMES: usize = 9;
pub(super) const FLASH_MS: i64 = 400;
/// The picture is back if it differs by at most this part of the interruption's difference.
const BACK_PART: f32 = 0.2;
/// Least mean square difference of an interruption.
const FLASH_DISTANCE: f32 = 250.0;

/// Takes the luma of each frame; keeps the coarse pictures that a window needs.
#[derive(Debug)]
pub(super) struct Blends {
    pictures: Pictures,
    measurer: Measurer,
}

/// What is found with one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    pub(super) blend: Option<Blend>,
    pub(super) back_from_ms: Option<i64>,
}

impl Blends {
    pub(super) fn new(wide: Wide) -> Blends {
        Blends { pictures: Pictures::new(wide, KEPT), measurer: Measurer::default() }
    }

    /// Takes the luma of the next frame, `width` pixels a row.
    pub(super) fn push(&mut self, time_ms: i64, width: usize, luma: &[u8]) -> Marks {
        if !self.pictures.push(time_ms, width, luma) {
            return Marks::default();
        }
        let blend = self.measured().into_iter().filter_map(|(window, it)| self.blend(window, &it));
        Marks { blend: blend.min_by_key(|it| (it.misfit, it.began_ms)), back_from_ms: self.interruption() }
    }

    /// The windows that end with the newest frame and its surroundings, and what was measured of them.
    pub(super) fn measured(&mut self) -> Vec<(Window, Measured)> {
        let Some(last) = self.pictures.len().checked_sub(AROUND + 1) else { return Vec::new() };
        let newest_ms = self.pictures.time_ms(self.pictures.len() - 1);
        let (pictures, measurer) = (&self.pictures, &mut self.measurer);
        let windows = SPANS.iter().map_while(|span| Some(Window { first: last.checked_sub(*span)?, last }));
        let is_short =
            |it: &Window| it.first >= AROUND && newest_ms - pictures.time_ms(it.first - AROUND) <= LONGEST_MS;
        let windows = windows.take_while(is_short);
        windows.filter_map(|it| Some((it, measurer.measure(pictures, it)?))).collect()
    }

    /// When a window's stretch begins, has its middle and ends.
    pub(super) fn times_ms(&self, window: Window, measured: &Measured) -> [i64; 3] {
        [window.first + 1, measured.middle, window.last].map(|at| self.pictures.time_ms(at))
    }

    /// The transition of a window, if it may be one.
    fn blend(&self, window: Window, measured: &Measured) -> Option<Blend> {
        let misfit = judge::misfit(&measured.signs)?;
        let [began_ms, middle_ms, ended_ms] = self.times_ms(window, measured);
        Some(Blend { began_ms, middle_ms, ended_ms, misfit })
    }

    /// The shortest interruption after which the newest picture is the one from before it.
    fn interruption(&self) -> Option<i64> {
        let pictures = &self.pictures;
        let back = pictures.len() - 1;
        let befores = (1..=FLASH_FRAMES).map_while(|frames| back.checked_sub(frames + 1));
        let recent = befores.take_while(|it| pictures.time_ms(back) - pictures.time_ms(*it) <= FLASH_MS);
        let found = recent.into_iter().find(|&before| {
            let other = pictures.distance(before, before + 1).min(pictures.distance(back - 1, back));
            other > FLASH_DISTANCE && pictures.distance(before, back) < BACK_PART * other
        });
        found.map(|before| pictures.time_ms(before + 1))
    }
}
