//! The exact ground truth of each frame, as the rows of `truth.jsonl`.

use super::scene;
use super::shot::Shot;

/// Names of the columns, in order. Angles in radians.
///
/// - `somersault`: the body angle in the picture (mirror applied), counter-clockwise positive, unwrapped; 0 is
///   upright. A giant begins at ±π, in the handstand.
/// - `twist`: cumulative twist from 0, in the athlete's own sense.
/// - `airborne`: 1 between take-off and landing; in a giant, while the body circles.
/// - `facing_vertical`, `facing_horizontal`, `facing_camera`: facing of the chest in the picture: up, right (mirror
///   applied), towards the camera; a unit vector.
/// - `center_x`, `center_y`: centre of mass in shares of the picture from the top left; may lie outside.
/// - `scale`: height of a standing athlete of 1.7 m, as a share of the picture's side.
/// - `hip`, `knee`, `shoulder`, `elbow`: joint angles; 0 for standing with the arms down.
/// - `start_x`, `start_y`: point of the take-off, in the units of `center_x`; `end_y`: height of the landing or the
///   water in the picture.
pub const COLUMNS: [&str; 16] = [
    "somersault",
    "twist",
    "airborne",
    "facing_vertical",
    "facing_horizontal",
    "facing_camera",
    "center_x",
    "center_y",
    "scale",
    "hip",
    "knee",
    "shoulder",
    "elbow",
    "start_x",
    "start_y",
    "end_y",
];

/// A row of `truth.jsonl`.
pub type Row = [f64; COLUMNS.len()];

/// One row per frame; empty for a shot that does not show a single element.
pub fn rows(shot: &Shot, size: u32) -> Vec<Row> {
    (0..shot.frames).filter_map(|frame| row(shot, frame, size)).collect()
}

/// The row of one frame; `None` for a shot that does not show a single element.
pub fn row(shot: &Shot, frame: usize, size: u32) -> Option<Row> {
    let (state, view) = shot.seen(frame, size)?;
    let seen = scene::seen(&state, &view);
    let side = f64::from(size);
    let pose = state.pose;
    let element = shot.element()?;
    let course = element.course();
    let start = view.point([0.0, course.start_height]);
    let end = view.point([state.place[0], course.end_height]);
    Some([
        scene::angle_as_seen(&state, shot.mirrored()),
        state.twist,
        if state.airborne { 1.0 } else { 0.0 },
        seen.facing[1],
        seen.facing[0],
        seen.facing[2],
        seen.centre[0] / side,
        seen.centre[1] / side,
        1.7 * element.performance().stature * seen.scale / side,
        pose.hip,
        pose.knee,
        pose.shoulder,
        pose.elbow,
        start[0] / side,
        start[1] / side,
        end[1] / side,
    ])
}
