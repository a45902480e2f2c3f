//! What each probe is shown of a clip.
//!
//! Probes of frames see the state of body and apparatus in the picture instead of pixels, as precisely as a
//! picture of 64 pixels shows it: a probe of such pixels can hardly see more of a frame than that.

use super::network::Examples;
use crate::synth::classes::{Event, classes};
use crate::synth::draw::Draw;
use crate::synth::truth::{COLUMNS, Row};

/// What is kept from a probe, and what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Probe {
    /// The middle frame.
    SingleFrame,
    /// Sixteen frames in any order.
    ShuffledFrames,
    /// Where the centre of mass is, in sixteen frames in order, in the picture and against the take-off.
    Trajectory,
    /// The number of frames.
    Duration,
}

impl Probe {
    /// All of them.
    pub(super) const ALL: [Probe; 4] =
        [Probe::SingleFrame, Probe::ShuffledFrames, Probe::Trajectory, Probe::Duration];

    /// As it stands in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Probe::SingleFrame => "single frame",
            Probe::ShuffledFrames => "shuffled frames",
            Probe::Trajectory => "trajectory",
            Probe::Duration => "duration",
        }
    }
}

/// Frames that the probes of several frames see.
const FRAMES: usize = 16;

/// A clip as the probes know it: one row a frame, and its class.
#[derive(Debug, Clone)]
pub(super) struct KnownClip {
    /// Frames of the clip.
    pub frames: usize,
    /// Sixteen rows at the middles of equal parts.
    pub sampled: Vec<Row>,
    /// Class number.
    pub class: usize,
}

/// Frame numbers at the middles of sixteen equal parts of `frames`.
pub(super) fn sampled_frames(frames: usize) -> [usize; FRAMES] {
    let mut numbers = [0; FRAMES];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = (2 * at + 1) * frames / (2 * FRAMES);
    }
    numbers
}

/// The clips as `probe` sees them.
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

/// One pixel of 64.
const PLACE_ERROR: f64 = 1.0 / 64.0;
/// One pixel at both ends of a trunk or thigh of seven pixels, in radians.
const ANGLE_ERROR: f64 = 0.2;
/// The side of the chest shows in two colours and the width of the shoulders only.
const FACING_ERROR: f64 = 0.3;

/// A frame: what is to be seen in it. The body angle only up to whole turns; of the take-off only what stands
/// there, of all places only those in the picture.
fn frame(row: &Row, event: Event, draw: &mut Draw) -> Vec<f32> {
    // Three uniform draws are near enough to a normal one.
    let mut error = |size: f64| (0..3).map(|_| draw.within(-size, size)).sum::<f64>();
    let (sine, cosine) = (column(row, "somersault") + error(ANGLE_ERROR)).sin_cos();
    let mut seen = vec![sine, cosine, column(row, "airborne")];
    let facing = ["facing_vertical", "facing_horizontal", "facing_camera"];
    seen.extend(facing.map(|it| column(row, it) + error(FACING_ERROR)));
    seen.extend(["hip", "knee", "shoulder", "elbow"].map(|it| column(row, it) + error(ANGLE_ERROR)));
    seen.extend(["center_x", "center_y", "scale"].map(|it| column(row, it) + error(PLACE_ERROR)));
    // Nothing marks the take-off on a floor, a beam or a bed.
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
    // All halls look alike: the event shows where its apparatus, floor or water is in the picture.
    let lowest = if event == Event::Vault { 1.3 } else { 1.0 };
    let event_is_seen = starts_inside || (0.0..=lowest).contains(&column(row, "end_y"));
    seen.extend(Event::ALL.map(|it| if event_is_seen && it == event { 1.0 } else { 0.0 }));
    seen.into_iter().map(|it| it as f32).collect()
}

/// The centre in the picture, and its way from the take-off in body heights.
fn trajectory(row: &Row) -> [f32; 4] {
    let (x, y) = (column(row, "center_x"), column(row, "center_y"));
    let height = column(row, "scale").max(1e-3);
    let from_start = [(x - column(row, "start_x")) / height, (y - column(row, "start_y")) / height];
    [x, y, from_start[0], from_start[1]].map(|it| it as f32)
}
