//! A cut, and how long the scene between two of them must be.

/// The first frame of a new scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its number, from 0.
    pub frame: u64,
    /// Its time.
    pub time_ms: i64,
}

/// Shortest scene, in frames or milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MinSceneLen {
    /// In frames.
    Frames(u64),
    /// In milliseconds.
    Millis(i64),
}

impl MinSceneLen {
    /// What PySceneDetect's detectors have when nothing is said: 15 frames.
    pub const DEFAULT: MinSceneLen = MinSceneLen::Frames(15);

    /// Whether the stretch from `a` to `b` is at least this long.
    pub(super) fn is_met(self, a: Cut, b: Cut) -> bool {
        match self {
            MinSceneLen::Frames(frames) => b.frame.saturating_sub(a.frame) >= frames,
            MinSceneLen::Millis(ms) => b.time_ms.saturating_sub(a.time_ms) >= ms,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        matches!(self, MinSceneLen::Frames(0) | MinSceneLen::Millis(i64::MIN..=0))
    }
}
