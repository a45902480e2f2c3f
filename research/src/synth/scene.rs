//! Renders one frame: athlete, place and camera as pixels.

use std::f64::consts::TAU;

use super::body::{self, Joints, Side, Vector, width};
use super::canvas::{Canvas, Color, Point};
use super::draw::Draw;
use super::motion::State;

/// The look of a clip, drawn without access to the element.
#[derive(Debug, Clone)]
pub struct Look {
    /// Colours of the athlete.
    pub athlete: Athlete,
    /// Colours of the hall.
    pub hall: Hall,
    /// The camera.
    pub camera: Camera,
    /// The largest noise on a pixel, of 255.
    pub noise: u8,
    noise_seed: u64,
}

/// Colours of the athlete.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Athlete {
    pub skin: Color,
    pub hair: Color,
    pub suit_front: Color,
    pub suit_back: Color,
    /// Width of limbs relative to the standard.
    pub build: f64,
}

/// Colours and pattern of the hall.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Hall {
    pub wall: Color,
    pub stripe: Color,
    pub water: Color,
    pub mat: Color,
    pub wood: Color,
    pub frame: Color,
    pub crowd: Vec<Spectator>,
    /// Whether stripes are horizontal.
    pub stripes_lie: bool,
    /// Width of a stripe in metres.
    pub stripe_width: f64,
    /// Height of the lowest row of spectators in metres.
    pub crowd_height: f64,
}

/// A spectator.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spectator {
    pub place: [f64; 2],
    pub color: Color,
}

/// Camera parameters; lengths in metres, angles in radians.
#[derive(Debug, Clone)]
pub struct Camera {
    /// The share of the picture's side that one metre takes.
    pub zoom: f64,
    /// How closely the camera follows the athlete; 1 follows exactly.
    pub follow: f64,
    /// Offset of its target.
    pub offset: [f64; 2],
    /// Rotation about the vertical.
    pub yaw: f64,
    /// Downward tilt.
    pub pitch: f64,
    /// Rotation about the line of sight.
    pub roll: f64,
    /// Slow movements (right, up, in) and fast ones (right, up). Periodic, because a steady drift would reveal
    /// the order of frames.
    waves: [Wave; 5],
}

/// A periodic movement during a shot.
#[derive(Debug, Clone, Copy)]
struct Wave {
    size: f64,
    turns: f64,
    phase: f64,
}

impl Wave {
    fn draw(draw: &mut Draw, size: f64, turns: [f64; 2]) -> Wave {
        Wave {
            size: draw.within(0.0, size),
            turns: draw.within(turns[0], turns[1]),
            phase: draw.within(0.0, TAU),
        }
    }

    fn at(&self, part: f64) -> f64 {
        self.size * (TAU * self.turns * part + self.phase).sin()
    }
}

impl Camera {
    /// The same camera, with the athlete always in the centre.
    pub fn following_closely(&self) -> Camera {
        Camera { follow: 1.0, ..self.clone() }
    }

    fn draw(draw: &mut Draw) -> Camera {
        Camera {
            zoom: draw.within(0.38, 0.46),
            follow: draw.within(0.985, 1.0),
            offset: [draw.within(-0.1, 0.1), draw.within(-0.1, 0.1)],
            yaw: draw.within(-0.35, 0.35),
            pitch: draw.within(-0.08, 0.15),
            roll: draw.within(-0.05, 0.05),
            waves: [
                Wave::draw(draw, 0.13, [0.4, 1.3]),
                Wave::draw(draw, 0.13, [0.4, 1.3]),
                Wave::draw(draw, 0.12, [0.4, 1.3]),
                Wave::draw(draw, 0.05, [2.0, 5.0]),
                Wave::draw(draw, 0.05, [2.0, 5.0]),
            ],
        }
    }
}

impl Look {
    /// Draws a look.
    pub fn draw(draw: &mut Draw) -> Look {
        let light = draw.within(0.72, 1.12);
        let skin =
            draw.pick(&[[0.92, 0.75, 0.60], [0.80, 0.60, 0.44], [0.64, 0.44, 0.31], [0.43, 0.28, 0.20]]);
        let suit = draw.unit();
        let athlete = Athlete {
            skin: Color(skin).times(light * draw.within(0.9, 1.08)),
            hair: Color::hsv(draw.within(0.02, 0.14), 0.5, draw.within(0.1, 0.5)).times(light),
            suit_front: Color::hsv(suit, draw.within(0.65, 0.95), draw.within(0.8, 1.0)).times(light),
            suit_back: Color::hsv(suit + draw.within(0.2, 0.8), 0.8, draw.within(0.3, 0.5)).times(light),
            build: draw.within(0.85, 1.2),
        };
        let noise = draw.below(9) as u8;
        let hall = Hall::draw(draw, light);
        let camera = Camera::draw(draw);
        Look { athlete, hall, camera, noise, noise_seed: draw.below(1 << 30) as u64 }
    }

    /// The same hall and athlete through another camera, as in a replay.
    pub fn from_another_angle(&self, draw: &mut Draw) -> Look {
        Look { camera: Camera::draw(draw), ..self.clone() }
    }
}

impl Hall {
    fn draw(draw: &mut Draw, light: f64) -> Hall {
        let wall = Color::hsv(draw.unit(), draw.within(0.03, 0.35), draw.within(0.4, 0.95)).times(light);
        let mat_hue = if draw.chance(0.5) { draw.within(0.52, 0.7) } else { draw.unit() };
        let number = draw.below(60);
        let crowd = (0..number).map(|_| Spectator {
            place: [draw.unit(), draw.unit()],
            color: Color::hsv(draw.unit(), draw.within(0.0, 0.6), draw.within(0.2, 0.9)).times(light),
        });
        let crowd = crowd.collect();
        Hall {
            wall,
            stripe: wall.times(draw.within(0.75, 0.95)),
            water: Color::hsv(draw.within(0.48, 0.62), draw.within(0.5, 0.85), draw.within(0.5, 0.85))
                .times(light),
            mat: Color::hsv(mat_hue, draw.within(0.3, 0.8), draw.within(0.3, 0.8)).times(light),
            wood: Color::hsv(draw.within(0.05, 0.12), draw.within(0.2, 0.55), draw.within(0.55, 0.9))
                .times(light),
            frame: Color::hsv(draw.unit(), 0.15, draw.within(0.15, 0.45)).times(light),
            crowd,
            stripes_lie: draw.chance(0.5),
            stripe_width: draw.within(0.4, 1.6),
            crowd_height: draw.within(0.6, 2.2),
        }
    }
}

/// The places that a camera aims at.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    /// The athlete's place.
    pub place: [f64; 2],
    /// Target of a camera that does not follow the athlete.
    pub anchor: [f64; 2],
    /// Whether the picture is mirrored.
    pub mirrored: bool,
}

/// Maps world to picture at one moment.
#[derive(Debug, Clone, Copy)]
pub struct View {
    side: f64,
    /// Pixels per metre.
    scale: f64,
    middle: [f64; 2],
    roll: (f64, f64),
    mirror: f64,
    yaw: f64,
    pitch: f64,
}

impl View {
    /// The view at `part` (0 to 1) of a shot, `side` pixels wide and high.
    pub fn new(camera: &Camera, side: u32, part: f64, aim: Aim) -> View {
        let Aim { place, anchor, mirrored } = aim;
        let side = f64::from(side);
        let [right, up, nearer, right_fast, up_fast] = camera.waves.map(|it| it.at(part));
        let moved = [right + right_fast, up + up_fast];
        let along = |axis: usize| {
            let followed = camera.follow * place[axis] + (1.0 - camera.follow) * anchor[axis];
            followed + camera.offset[axis] + moved[axis]
        };
        View {
            side,
            scale: camera.zoom * side * (1.0 + nearer),
            middle: [along(0), along(1)],
            roll: camera.roll.sin_cos(),
            mirror: if mirrored { -1.0 } else { 1.0 },
            yaw: camera.yaw,
            pitch: camera.pitch,
        }
    }

    /// Pixels per metre.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The camera's target, in metres.
    pub fn middle(&self) -> [f64; 2] {
        self.middle
    }

    /// Half of the visible range in each axis, in metres, with a margin for the roll.
    pub fn reach(&self) -> f64 {
        0.56 * self.side / self.scale
    }

    /// A world position in the picture.
    pub fn point(&self, place: [f64; 2]) -> Point {
        self.turned([place[0] - self.middle[0], place[1] - self.middle[1]])
    }

    fn turned(&self, from_middle: [f64; 2]) -> Point {
        let (sine, cosine) = self.roll;
        let [x, y] = from_middle;
        [
            self.side / 2.0 + self.mirror * (x * cosine - y * sine) * self.scale,
            self.side / 2.0 - (x * sine + y * cosine) * self.scale,
        ]
    }

    /// A direction in camera coordinates: right, up, towards it.
    fn direction(&self, [x, y, z]: Vector) -> Vector {
        let (sine, cosine) = self.yaw.sin_cos();
        let (x, z) = (cosine * x + sine * z, cosine * z - sine * x);
        let (sine, cosine) = self.pitch.sin_cos();
        [x, cosine * y - sine * z, cosine * z + sine * y]
    }
}

/// The visible state of the body in one frame; the rows of `truth.jsonl` come from it.
#[derive(Debug, Clone, Copy)]
pub struct VisibleState {
    /// Facing of the chest: right, up, towards the camera.
    pub facing: Vector,
    /// Centre of mass in pixels.
    pub centre: Point,
    /// Pixels per metre.
    pub scale: f64,
}

/// The body in the world: joints rotated by twist, facing and somersault, without translation.
fn turned(joints: &Joints, state: &State, stature: f64) -> Joints {
    joints.map(|point| in_world(state, point).map(|it| it * stature))
}

/// A direction of the body's frame in the world: x along the travel, y up, z towards the camera.
fn in_world(state: &State, [left, up, front]: Vector) -> Vector {
    let (sine, cosine) = state.twist.sin_cos();
    let (left, front) = (cosine * left + sine * front, cosine * front - sine * left);
    let ahead = if state.faces_ahead { 1.0 } else { -1.0 };
    let (x, z) = (ahead * front, -ahead * left);
    // Clockwise is positive, unlike the usual rotation.
    let (sine, cosine) = (-state.angle).sin_cos();
    let (x, y) = (cosine * x - sine * up, sine * x + cosine * up);
    let (sine, cosine) = state.heading.sin_cos();
    [cosine * x + sine * z, y, cosine * z - sine * x]
}

/// The body in the camera's view.
pub fn seen(state: &State, view: &View) -> VisibleState {
    let [right, up, near] = view.direction(in_world(state, [0.0, 0.0, 1.0]));
    VisibleState {
        facing: [view.mirror * right, up, near],
        centre: view.point(state.place),
        scale: view.scale,
    }
}

/// Adds noise; a frame number always gives the same noise.
pub fn add_noise(canvas: &mut Canvas, look: &Look, frame: usize) {
    if look.noise == 0 {
        return;
    }
    let span = u64::from(look.noise) * 2 + 1;
    let mut state = (look.noise_seed << 20) ^ (frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for pixel in canvas.rgba_mut().chunks_exact_mut(4) {
        // xorshift: fast, and random enough for noise.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for (channel, shift) in pixel.iter_mut().zip([0u32, 16, 32]) {
            let change = ((((state >> shift) & 0xffff) * span) >> 16) as i16 - i16::from(look.noise);
            *channel = (i16::from(*channel) + change).clamp(0, 255) as u8;
        }
    }
}

/// A body part to draw, with its depth.
enum Part {
    Limb { from: Point, to: Point, width: f64, shade: f64 },
    Trunk,
    Head,
}

/// Draws the athlete, `stature` metres tall.
pub(super) fn draw_athlete(canvas: &mut Canvas, athlete: &Athlete, state: &State, view: &View, stature: f64) {
    let joints = turned(&body::joints(state.pose), state, stature);
    let joints = joints.map(|point| view.direction(point));
    let at = |point: Vector| {
        let centre = view.point(state.place);
        let origin = view.turned([0.0, 0.0]);
        let moved = view.turned([point[0], point[1]]);
        [centre[0] + moved[0] - origin[0], centre[1] + moved[1] - origin[1]]
    };
    let mut parts = vec![(0.0, Part::Trunk), (joints.head[2] * 0.5 + 0.001, Part::Head)];
    for side in &joints.sides {
        for (from, to, half) in limbs(side) {
            let depth = (from[2] + to[2]) / 2.0;
            let width = 2.0 * half * athlete.build * stature * view.scale;
            let shade = (1.0 + 0.9 * depth).clamp(0.62, 1.15);
            parts.push((depth, Part::Limb { from: at(from), to: at(to), width, shade }));
        }
    }
    parts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let near = view.direction(in_world(state, [0.0, 0.0, 1.0]))[2];
    for (_, part) in parts {
        match part {
            Part::Limb { from, to, width, shade } => {
                canvas.line(from, to, width.max(1.0), athlete.skin.times(shade))
            }
            Part::Trunk => {
                let color = athlete.suit_back.towards(athlete.suit_front, 0.5 + 0.5 * (3.0 * near).tanh());
                draw_trunk(canvas, color, &joints, view.scale * stature, at);
            }
            Part::Head => {
                let metre = view.scale * stature;
                canvas.circle(at(joints.hair), 0.13 * metre, athlete.hair);
                if near > -0.6 {
                    canvas.circle(at(joints.face), 0.095 * metre, athlete.skin.times(1.08));
                }
            }
        }
    }
}

fn limbs(side: &Side) -> [(Vector, Vector, f64); 5] {
    [
        (side.hip, side.knee, width::THIGH),
        (side.knee, side.ankle, width::SHANK),
        (side.ankle, side.toe, width::FOOT),
        (side.shoulder, side.elbow, width::ARM),
        (side.elbow, side.hand, width::FOREARM),
    ]
}

fn draw_trunk(canvas: &mut Canvas, color: Color, joints: &Joints, metre: f64, at: impl Fn(Vector) -> Point) {
    let [left, right] = &joints.sides;
    let middle = |a: Vector, b: Vector| {
        let (a, b) = (at(a), at(b));
        [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0]
    };
    canvas.line(middle(left.shoulder, right.shoulder), middle(left.hip, right.hip), 0.2 * metre, color);
    canvas.polygon(&[at(left.shoulder), at(right.shoulder), at(right.hip), at(left.hip)], color);
    canvas.line(at(left.shoulder), at(right.shoulder), 0.1 * metre, color);
    canvas.line(at(left.hip), at(right.hip), 0.13 * metre, color);
}

/// The body angle in the ground truth: counter-clockwise in the picture, with heading and mirror applied.
pub fn angle_as_seen(state: &State, mirrored: bool) -> f64 {
    let clockwise = state.angle * state.heading.cos().signum();
    if mirrored { clockwise } else { -clockwise }
}
