//! The features of each probe.
//!
//! Frame probes get body and apparatus states instead of pixels, with the precision of a picture 64 pixels
//! wide. A network on those pixels could hardly extract more.

use super::network::Examples;
use crate::synth::classes::{Event, classes};
use crate::synth::draw::Draw;
use crate::synth::truth::{COLUMNS, Row};

/// A probe's view of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Probe {
    /// The middle frame.
    SingleFrame,
    /// Sixteen frames in random order.
    ShuffledFrames,
    /// The centre of mass in sixteen frames in order, in the picture and relative to the take-off.
    Trajectory,
    /// The number of frames.
    Duration,
}

impl Probe {
    /// All probes.
    pub(super) const ALL: [Probe; 4] =
        [Probe::SingleFrame, Probe::ShuffledFrames, Probe::Trajectory, Probe::Duration];

    /// The name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Probe::SingleFrame => "single frame",
            Probe::ShuffledFrames => "shuffled frames",
            Probe::Trajectory => "trajectory",
            Probe::Duration => "duration",
        }
    }
}

/// Frames per clip for probes of several frames.
const FRAMES: usize = 16;

/// A clip's features, one row per frame, and its class.
#[derive(Debug, Clone)]
pub(super) struct KnownClip {
    /// Number of frames.
    pub frames: usize,
    /// Sixteen rows at the middles of equal parts.
    pub sampled: Vec<Row>,
    /// Class number.
    pub class: usize,
}

/// The frame indices at the middles of sixteen equal parts of `frames`.
pub(super) fn sampled_frames(frames: usize) -> [usize; FRAMES] {
    let mut numbers = [0; FRAMES];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = (2 * at + 1) * frames / (2 * FRAMES);
    }
    numbers
}

/// The clips' features for `probe`.
pub(super) fn examples(probe: Probe, clips: &[KnownClip], draw: &mut Draw) -> Examples {
    let rows: Vec<Vec<f32>> = clips.iter().map(|it| rows_of(probe, it, draw)).collect();
    let frames = if probe == Probe::ShuffledFrames { FRAMES } else { 1 };
    Examples {
        width: rows.first().map_or(1, |it| it.len() / frames),
        frames,
        rows: rows.concat(),
        classes: clips.iter().map(|it| it.class).collect(),
    }
}

fn rows_of(probe: Probe, clip: &KnownClip, draw: &mut Draw) -> Vec<f32> {
    let event = classes()[clip.class].event;
    match probe {
        Probe::SingleFrame => {
            clip.sampled.get(FRAMES / 2).map(|it| frame(it, event, draw)).unwrap_or_default()
        }
        Probe::ShuffledFrames => clip.sampled.iter().flat_map(|it| frame(it, event, draw)).collect(),
        Probe::Trajectory => clip.sampled.iter().flat_map(trajectory).collect(),
        Probe::Duration => vec![clip.frames as f32],
    }
}

fn column(row: &Row, name: &str) -> f64 {
    COLUMNS.iter().position(|it| *it == name).map_or(0.0, |at| row[at])
}

/// Position error: one pixel of 64, as a share of the picture.
const PLACE_ERROR: f64 = 1.0 / 64.0;
/// One pixel at both ends of a trunk or thigh of seven pixels, in radians.
const ANGLE_ERROR: f64 = 0.2;
/// Two colours and the width of the shoulders are the only cues to the facing.
const FACING_ERROR: f64 = 0.3;

/// The visible features of a frame. Sine and cosine give the body angle up to whole turns. Positions count only
/// inside the picture; the take-off is visible only through apparatus.
fn frame(row: &Row, event: Event, draw: &mut Draw) -> Vec<f32> {
    // The sum of three uniform draws approximates a normal one.
    let mut error = |size: f64| (0..3).map(|_| draw.within(-size, size)).sum::<f64>();
    let (sine, cosine) = (column(row, "somersault") + error(ANGLE_ERROR)).sin_cos();
    let mut seen = vec![sine, cosine, column(row, "airborne")];
    let facing = ["facing_vertical", "facing_horizontal", "facing_camera"];
    seen.extend(facing.map(|it| column(row, it) + error(FACING_ERROR)));
    seen.extend(["hip", "knee", "shoulder", "elbow"].map(|it| column(row, it) + error(ANGLE_ERROR)));
    seen.extend(["center_x", "center_y", "scale"].map(|it| column(row, it) + error(PLACE_ERROR)));
    // Floor, beam and bed have no mark at the take-off.
    let is_marked = !matches!(event, Event::Floor | Event::Beam | Event::Trampoline);
    let (x, y) = (column(row, "start_x"), column(row, "start_y"));
    let inside = |it: f64| (0.0..=1.0).contains(&it);
    let starts_inside = is_marked && inside(x) && inside(y);
    for (at, is_seen) in
        [(x, starts_inside), (y, starts_inside), (column(row, "end_y"), inside(column(row, "end_y")))]
    {
        seen.push(if is_seen { 1.0 } else { 0.0 });
        seen.push(if is_seen { at + error(PLACE_ERROR) } else { 0.0 });
    }
    // All halls look alike: the position of apparatus, floor or water in the picture identifies the event.
    let lowest = if event == Event::Vault { 1.3 } else { 1.0 };
    let event_is_seen = starts_inside || (0.0..=lowest).contains(&column(row, "end_y"));
    seen.extend(Event::ALL.map(|it| if event_is_seen && it == event { 1.0 } else { 0.0 }));
    seen.into_iter().map(|it| it as f32).collect()
}

/// The centre in the picture, and its offset from the take-off in body heights.
fn trajectory(row: &Row) -> [f32; 4] {
    let (x, y) = (column(row, "center_x"), column(row, "center_y"));
    let height = column(row, "scale").max(1e-3);
    let from_start = [(x - column(row, "start_x")) / height, (y - column(row, "start_y")) / height];
    [x, y, from_start[0], from_start[1]].map(|it| it as f32)
}
