//! What is exactly true of each frame, as the rows of `truth.jsonl`.

use super::body;
use super::scene;
use super::shot::Shot;

/// Names of the columns, in order. Angles in radians.
///
/// - `somersault`: the body's angle as seen (mirror applied), counter-clockwise positive, unwrapped; 0 is
///   upright. A giant begins at ±π, in the handstand.
/// - `twist`: cumulative, from 0; the sense is that of the athlete.
/// - `airborne`: 1 between take-off and landing; in a giant while the body circles.
/// - `facing_vertical`, `facing_horizontal`, `facing_camera`: where the chest faces as seen: up, right
///   (mirror applied), towards the camera; a unit vector.
/// - `center_x`, `center_y`: the centre of mass in shares of the picture from the top left; may leave it.
/// - `scale`: share of the picture's side that a standing athlete's 1.7 m take.
/// - `hip`, `knee`, `shoulder`, `elbow`: joint angles, 0 for a body that stands with its arms down.
pub const COLUMNS: [&str; 13] = [
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
];

/// A row of `truth.jsonl`.
pub type Row = [f64; COLUMNS.len()];

/// One row a frame; empty for a shot that doesn't show one element.
pub fn rows(shot: &Shot, size: u32, stature: f64, mirrored: bool) -> Vec<Row> {
    (0..shot.frames).filter_map(|frame| row(shot, frame, size, stature, mirrored)).collect()
}

fn row(shot: &Shot, frame: usize, size: u32, stature: f64, mirrored: bool) -> Option<Row> {
    let (state, view) = shot.seen(frame, size)?;
    let seen = scene::seen(&state, &view);
    let side = f64::from(size);
    let pose: body::Pose = state.pose;
    Some([
        scene::angle_as_seen(&state, mirrored),
        state.twist,
        if state.airborne { 1.0 } else { 0.0 },
        seen.facing[1],
        seen.facing[0],
        seen.facing[2],
        seen.centre[0] / side,
        seen.centre[1] / side,
        1.7 * stature * seen.scale / side,
        pose.hip,
        pose.knee,
        pose.shoulder,
        pose.elbow,
    ])
}
