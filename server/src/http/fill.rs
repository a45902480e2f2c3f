//! The fill of a space, as answers show it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::models::{LoadedSpace, Pace};

/// State of a space's fill. `complete`: every stored video is searchable in the space. `filling`: background jobs add the
/// missing vectors; `GET /v1/jobs?kind=fill` lists the jobs, failed ones included. `paused`: no job adds vectors until the
/// fill is resumed; new videos are still encoded into the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FillState {
    /// Every stored video is searchable in the space.
    Complete,
    /// Background jobs add the missing vectors.
    Filling,
    /// Background jobs leave the space out.
    Paused,
}

/// Whether the fill of a new space begins. `start`: at once. `paused`: when it is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FillChoice {
    /// At once.
    #[default]
    Start,
    /// When it is resumed.
    Paused,
}

/// The fill of a space: background jobs that encode stored videos into it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fill)]
pub(super) struct FillOut {
    /// State of the fill.
    state: FillState,
    /// Number of stored clips that are not searchable in the space yet. 0 for a space that takes no frames.
    #[schema(minimum = 0)]
    clips_left: u64,
    /// Estimate of the time that these clips take on this server, in seconds: their number times the time of a clip. It is
    /// measured on up to three stored clips when the model is added, and when a server starts while the space lacks clips;
    /// fills begin after it. Of a clip that would take more than 20 s, only some frames or a part of one are encoded: the time
    /// of the rest is extrapolated by the model's own cost of an input, in tokens. Null before, if nothing could be measured,
    /// for a space that takes no frames, and for a key that may see only some videos.
    #[schema(minimum = 0)]
    estimated_seconds: Option<f64>,
    /// Whether the time of a clip is being measured, which takes up to two minutes. False for a key that may see only some
    /// videos.
    measuring: bool,
}

/// What the library holds of a space.
pub(super) struct Progress {
    /// Number of clips that are not searchable in it.
    pub(super) clips_left: u64,
    /// Share of the ready videos, or of the passages, that are searchable in it: 0 to 1.
    pub(super) coverage: f64,
    /// Whether its fill is paused.
    pub(super) is_paused: bool,
    /// Whether the caller sees only some videos. The time of a clip was measured on any.
    pub(super) is_limited: bool,
}

impl FillOut {
    pub(super) fn new(space: &LoadedSpace, progress: &Progress) -> FillOut {
        let Progress { clips_left, coverage, is_paused, is_limited } = *progress;
        let state = match coverage < 1.0 {
            _ if is_paused => FillState::Paused,
            true => FillState::Filling,
            false => FillState::Complete,
        };
        let pace = (space.space.can.frames && !is_limited).then_some(&space.pace);
        let seconds = pace.and_then(Pace::seconds_a_clip);
        FillOut {
            state,
            clips_left,
            estimated_seconds: seconds.map(|it| it * clips_left as f64),
            measuring: pace.is_some_and(Pace::is_being_measured),
        }
    }
}
