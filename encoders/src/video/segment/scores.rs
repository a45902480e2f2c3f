//! The scores of a frame: the only input of the segmentation rules.

use serde::{Deserialize, Serialize};

/// Parts of a whole in which [`FrameScores::moving`], [`FrameScores::began`] and [`Settled::area`] count.
pub const WHOLE: u16 = 10_000;

/// One frame, compared with the previous one. All scores of the first frame are zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FrameScores {
    /// Time of the frame, in milliseconds.
    pub time_ms: i64,
    /// Mean absolute difference of 8-bit hue, 0 to 179.
    pub hue: f32,
    /// Mean absolute difference of 8-bit saturation, 0 to 255.
    pub saturation: f32,
    /// Mean absolute difference of 8-bit value, 0 to 255.
    pub value: f32,
    /// Mean absolute difference of the edge maps, 0 to 255; `None` if not measured.
    pub edges: Option<f32>,
    /// Mean of all red, green and blue of this frame, 0 to 255.
    pub brightness: f32,
    /// Share of the picture, in parts of [`WHOLE`], that differs from its last rest state.
    pub moving: u16,
    /// Share of the picture, in parts of [`WHOLE`], that was at rest and now moves.
    pub began: u16,
    /// Area that came to rest with this frame and shows something new.
    pub settled: Option<Settled>,
    /// A gradual transition that some frames up to this one may be.
    pub blend: Option<Blend>,
    /// The picture from before this time, in milliseconds, is back after a short interruption.
    pub back_from_ms: Option<i64>,
}

/// A stretch of frames in which one picture may have turned into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blend {
    /// Time of the first frame that shows both pictures, in milliseconds.
    pub began_ms: i64,
    /// Time of the first frame that shows more of the later picture, in milliseconds.
    pub middle_ms: i64,
    /// Time of the first frame behind the transition, in milliseconds.
    pub ended_ms: i64,
    /// Distance from a perfect transition: of several that overlap, the least is meant.
    pub misfit: u16,
}

/// A part of the picture that was at rest, changed quickly, and is at rest again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Size, in parts of [`WHOLE`].
    pub area: u16,
    /// Time of the first frame of the change, in milliseconds.
    pub began_ms: i64,
}

/// Weights of the differences in the content score; at least one is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Weight of the hue.
    pub hue: f64,
    /// Weight of the saturation.
    pub saturation: f64,
    /// Weight of the value.
    pub value: f64,
    /// Weight of the edges.
    pub edges: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights { hue: 1.0, saturation: 1.0, value: 1.0, edges: 0.0 }
    }
}

impl Weights {
    /// PySceneDetect's content score: the weighted mean of the differences, 0 to 255. Unmeasured edges count as
    /// unchanged.
    #[must_use]
    pub fn score(&self, scores: &FrameScores) -> f64 {
        let total = self.hue.abs() + self.saturation.abs() + self.value.abs() + self.edges.abs();
        let sum = f64::from(scores.hue) * self.hue
            + f64::from(scores.saturation) * self.saturation
            + f64::from(scores.value) * self.value
            + f64::from(scores.edges.unwrap_or(0.0)) * self.edges;
        if total > 0.0 { sum / total } else { 0.0 }
    }
}
