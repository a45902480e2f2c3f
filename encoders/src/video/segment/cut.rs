//! Cuts, clips, and the shortest scene.

use serde::{Deserialize, Serialize};

/// The first frame of a new scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Frame number, from 0.
    pub frame: u64,
    /// Time in milliseconds since the first frame.
    pub time_ms: i64,
}

/// Shortest scene, in frames or seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum MinSceneLen {
    /// In frames.
    #[serde(rename = "min_scene_frames")]
    Frames(u64),
    /// In seconds.
    #[serde(rename = "min_scene_seconds")]
    Seconds(f64),
}

impl MinSceneLen {
    /// The default of PySceneDetect's detectors: 15 frames.
    pub const DEFAULT: MinSceneLen = MinSceneLen::Frames(15);

    /// Whether the range from `a` to `b` is at least this long.
    pub(super) fn is_met(self, a: Cut, b: Cut) -> bool {
        match self {
            MinSceneLen::Frames(frames) => b.frame.saturating_sub(a.frame) >= frames,
            MinSceneLen::Seconds(seconds) => b.time_ms.saturating_sub(a.time_ms) >= millis(seconds),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        match self {
            MinSceneLen::Frames(frames) => frames == 0,
            MinSceneLen::Seconds(seconds) => millis(seconds) <= 0,
        }
    }
}

/// A clip or a cue, in milliseconds since the first frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipRange {
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
}

/// Converts seconds to milliseconds, rounded.
pub(super) fn millis(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}
