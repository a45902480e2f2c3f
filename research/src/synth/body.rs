//! The athlete's body: joint angles to joint positions, in metres, around the centre of mass.

use std::f64::consts::PI;

/// A point or direction. In the body's own frame: x to its left, y to its head, z to its front.
pub type Vector = [f64; 3];

/// Joint angles in radians, equal for both sides of the body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Flexion of the hip: 0 straight, towards the front.
    pub hip: f64,
    /// Flexion of the knee: 0 straight.
    pub knee: f64,
    /// Angle of the upper arm against the trunk, through the front: 0 beside it, π overhead.
    pub shoulder: f64,
    /// Flexion of the elbow: 0 straight.
    pub elbow: f64,
}

const fn degrees(hip: f64, knee: f64, shoulder: f64, elbow: f64) -> Pose {
    let unit = PI / 180.0;
    Pose { hip: hip * unit, knee: knee * unit, shoulder: shoulder * unit, elbow: elbow * unit }
}

/// Upright, arms down.
pub const STAND: Pose = degrees(5.0, 5.0, 10.0, 10.0);
/// Crouched before the jump.
pub const SQUAT: Pose = degrees(60.0, 85.0, -40.0, 10.0);
/// Straight, arms overhead.
pub const REACH: Pose = degrees(0.0, 0.0, 178.0, 0.0);
/// Knees to the chest.
pub const TUCK: Pose = degrees(125.0, 140.0, 75.0, 30.0);
/// Bent at the hip, legs straight.
pub const PIKE: Pose = degrees(128.0, 0.0, 95.0, 0.0);
/// Straight, arms bent in front of the chest.
pub const WRAP: Pose = degrees(0.0, 0.0, 40.0, 110.0);
/// Straight, arms beside the body.
pub const ARMS_DOWN: Pose = degrees(0.0, 0.0, 16.0, 22.0);
/// Knees bent at the landing.
pub const LAND: Pose = degrees(35.0, 50.0, 120.0, 0.0);
/// Standing, arms up.
pub const ARMS_UP: Pose = degrees(-5.0, 5.0, 165.0, 5.0);

impl Pose {
    /// Interpolates from `self` (0) to `other` (1).
    pub fn towards(self, other: Pose, part: f64) -> Pose {
        let mix = |a: f64, b: f64| a + (b - a) * part;
        Pose {
            hip: mix(self.hip, other.hip),
            knee: mix(self.knee, other.knee),
            shoulder: mix(self.shoulder, other.shoulder),
            elbow: mix(self.elbow, other.elbow),
        }
    }
}

/// One side of the body.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Side {
    pub hip: Vector,
    pub knee: Vector,
    pub ankle: Vector,
    pub toe: Vector,
    pub shoulder: Vector,
    pub elbow: Vector,
    pub hand: Vector,
}

/// Joint positions in metres, the centre of mass at the origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joints {
    /// Left, right.
    pub sides: [Side; 2],
    /// Centre of the head.
    pub head: Vector,
    /// Centre of the face.
    pub face: Vector,
    /// Centre of the hair.
    pub hair: Vector,
}

/// Half widths of the limbs in metres.
pub mod width {
    /// Upper leg.
    pub const THIGH: f64 = 0.075;
    /// Lower leg.
    pub const SHANK: f64 = 0.055;
    /// Foot.
    pub const FOOT: f64 = 0.04;
    /// Upper arm.
    pub const ARM: f64 = 0.05;
    /// Lower arm.
    pub const FOREARM: f64 = 0.04;
}

/// The joint positions of `pose`.
pub fn joints(pose: Pose) -> Joints {
    let raw = Joints {
        sides: [side(pose, 1.0), side(pose, -1.0)],
        head: [0.0, 0.70, 0.03],
        face: [0.0, 0.69, 0.09],
        hair: [0.0, 0.72, -0.04],
    };
    let centre = centre_of_mass(&raw);
    raw.map(|point| subtract(point, centre))
}

fn side(pose: Pose, sign: f64) -> Side {
    // A segment hangs down at angle 0 and swings to the front.
    let segment = |from: Vector, length: f64, angle: f64| {
        [from[0], from[1] - length * angle.cos(), from[2] + length * angle.sin()]
    };
    let hip = [sign * 0.11, 0.0, 0.0];
    let shoulder = [sign * 0.20, 0.50, 0.0];
    let knee = segment(hip, 0.43, pose.hip);
    let shank = pose.hip - pose.knee;
    let ankle = segment(knee, 0.43, shank);
    let toe = segment(ankle, 0.14, shank + 0.3);
    let elbow = segment(shoulder, 0.29, pose.shoulder);
    let mut hand = segment(elbow, 0.29, pose.shoulder + pose.elbow);
    // Strongly bent arms close in front of the body.
    let closed = if pose.elbow > 1.2 { pose.elbow.sin().max(0.0) } else { 0.0 };
    hand[0] -= sign * 0.29 * 0.7 * closed;
    Side { hip, knee, ankle, toe, shoulder, elbow, hand }
}

/// The centre of mass from the segments' masses: trunk and head, then thigh, shank with foot, arm of both sides.
fn centre_of_mass(joints: &Joints) -> Vector {
    let mut centre = joints.head.map(|it| it * 0.09);
    for side in &joints.sides {
        // Each segment's own centre, as a part of its length, and its share of the mass.
        for (from, to, part, mass) in [
            (side.hip, side.shoulder, 0.54, 0.23),
            (side.hip, side.knee, 0.5, 0.11),
            (side.knee, side.toe, 0.5, 0.065),
            (side.shoulder, side.hand, 0.5, 0.05),
        ] {
            for axis in 0..3 {
                centre[axis] += mass * (from[axis] + (to[axis] - from[axis]) * part);
            }
        }
    }
    centre
}

fn subtract(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

impl Joints {
    /// The same body with every joint moved by `change`.
    pub fn map(&self, change: impl Fn(Vector) -> Vector) -> Joints {
        let side = |it: &Side| Side {
            hip: change(it.hip),
            knee: change(it.knee),
            ankle: change(it.ankle),
            toe: change(it.toe),
            shoulder: change(it.shoulder),
            elbow: change(it.elbow),
            hand: change(it.hand),
        };
        Joints {
            sides: [side(&self.sides[0]), side(&self.sides[1])],
            head: change(self.head),
            face: change(self.face),
            hair: change(self.hair),
        }
    }

    /// Distance of the feet below the centre of mass, in metres, of the upright body.
    pub fn feet_below(&self) -> f64 {
        -self.sides[0].ankle[1].min(self.sides[0].toe[1])
    }

    /// Distance of the hands above the centre of mass, in metres, of the upright body.
    pub fn hands_above(&self) -> f64 {
        self.sides[0].hand[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pose: Pose, feet_below: std::ops::Range<f64>, hands_above: std::ops::Range<f64>) {
        let joints = joints(pose);
        assert!(feet_below.contains(&joints.feet_below()), "{}", joints.feet_below());
        assert!(hands_above.contains(&joints.hands_above()), "{}", joints.hands_above());
    }

    #[test]
    fn poses_have_the_height_of_a_person() {
        check(STAND, 0.9..1.3, -0.4..0.1);
        check(REACH, 0.95..1.4, 0.7..1.1);
        check(SQUAT, 0.5..1.1, -0.4..0.3);
        check(TUCK, 0.3..0.8, -0.1..0.5);
    }

    #[test]
    fn the_centre_of_mass_is_the_origin_in_every_pose() {
        for pose in [STAND, SQUAT, REACH, TUCK, PIKE, WRAP, LAND] {
            let centre = centre_of_mass(&joints(pose));
            assert!(centre.iter().all(|it| it.abs() < 1e-9), "{centre:?}");
        }
    }
}
