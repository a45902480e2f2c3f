//! Cuts a video into clips.
//!
//! A [`Meter`] turns frames into [`FrameScores`]; a [`Segmenter`] turns scores into clips. Stored scores ([`curve`])
//! let a video be cut again without decoding it.

mod adaptive;
mod blend;
mod blends;
mod columns;
mod content;
pub mod curve;
mod cut;
mod detector;
mod edges;
mod flash;
#[cfg(test)]
mod gradual_tests;
mod grid;
mod hsv;
mod judge;
mod judge_weights;
mod meter;
mod pauses;
mod pictures;
mod policy;
pub mod scores;
mod segmentation;
mod shrink;
#[cfg(target_arch = "x86_64")]
mod shuffled;
mod signs;
mod slides;
mod split;
mod still;
mod taps;
mod threshold;

pub use adaptive::{AdaptiveDetector, AdaptiveSettings};
pub use content::{ContentDetector, ContentSettings};
pub use curve::{Curve, CurveError, CurveWriter};
pub use cut::{ClipRange, Cut, MinSceneLen};
pub use detector::{Detector, DetectorSettings};
pub use flash::FilterMode;
pub use meter::{MeasuredStretch, Meter};
pub use policy::Segmenter;
pub use scores::{Blend, FrameScores, Settled, Weights};
pub use segmentation::{FieldError, Preset, Segmentation};
pub use threshold::{ThresholdDetector, ThresholdSettings};
