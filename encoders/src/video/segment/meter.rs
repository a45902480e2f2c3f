//! Measures frames: turns small pictures into frame scores.
//!
//! Only this part of segmentation reads pixels. Its scores can be stored and segmented again.

use crate::wide::Wide;

use super::blend::Blends;
use super::edges::EdgeMap;
use super::hsv::Planes;
use super::scores::FrameScores;
use super::shrink::Shrink;
use super::signs::{Measured, Window};
use super::still::Stillness;
use crate::Frame;

/// The longer side of the compared pictures.
const SIDE: usize = 256;

/// Takes the frames of a video in order, all of one size. Frames of more than 256 pixels on a side are scaled down
/// first.
#[derive(Debug)]
pub struct Meter {
    wide: Wide,
    shrink: Shrink,
    last: Planes,
    current: Planes,
    edges: Option<EdgeMap>,
    stillness: Stillness,
    blends: Blends,
}

/// What is measured of a stretch: the judge of gradual transitions is fitted to it (`tests/bench/transition_fit.py`).
#[derive(Debug, Clone)]
pub struct MeasuredStretch {
    /// As in [`Blend`](super::Blend), in milliseconds.
    pub began_ms: i64,
    /// The same.
    pub middle_ms: i64,
    /// The same.
    pub ended_ms: i64,
    /// What tells transitions from movement, as the judge sees it.
    pub signs: Vec<f32>,
}

impl Meter {
    /// A meter before the first frame. Measuring edges takes longer than all other measurements together.
    #[must_use]
    pub fn new(with_edges: bool) -> Meter {
        let wide = Wide::detect();
        Meter {
            wide,
            shrink: Shrink::default(),
            last: Planes::default(),
            current: Planes::default(),
            edges: with_edges.then(EdgeMap::default),
            stillness: Stillness::default(),
            blends: Blends::new(wide),
        }
    }

    /// The stretches that may be a gradual transition and end with the newest frame, whatever the judge says of them.
    pub fn stretches(&mut self) -> Vec<MeasuredStretch> {
        let measured = self.blends.measured();
        let stretch = |(window, it): (Window, Measured)| {
            let [began_ms, middle_ms, ended_ms] = self.blends.times_ms(window, &it);
            MeasuredStretch { began_ms, middle_ms, ended_ms, signs: it.signs.to_vec() }
        };
        measured.into_iter().map(stretch).collect()
    }

    /// Measures the next frame.
    pub fn measure(&mut self, frame: &Frame) -> FrameScores {
        let width = frame.width as usize;
        let (width, rgb) = match width.max(frame.height as usize) > SIDE {
            true => self.shrink.picture(self.wide, width, &frame.rgb, SIDE),
            false => (width, &frame.rgb[..]),
        };
        let differences = self.current.fill(self.wide, rgb, &self.last);
        let edges = self.edges.as_mut().map(|it| it.push(width, &self.current.value));
        let change = self.stillness.push(self.wide, frame.time_ms, width, &self.current.luma);
        let marks = self.blends.push(frame.time_ms, width, &self.current.luma);
        std::mem::swap(&mut self.last, &mut self.current);
        FrameScores {
            time_ms: frame.time_ms,
            hue: differences.hue as f32,
            saturation: differences.saturation as f32,
            value: differences.value as f32,
            edges: edges.map(|it| it as f32),
            brightness: self.last.brightness as f32,
            moving: change.moving,
            began: change.began,
            settled: change.settled,
            blend: marks.blend,
            back_from_ms: marks.back_from_ms,
        }
    }
}
