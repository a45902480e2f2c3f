//! An element in time: position, rotation and shape of the body.
//!
//! Features that must not reveal the label come from [`Performance::draw`], which has no access to the class: duration,
//! apex, travel, timing, poses of take-off and landing. The label decides only how far and to which side the body
//! turns, and its shape in flight.

use std::f64::consts::{PI, TAU};

use super::body::{self, Pose};
use super::classes::{Class, Direction, Event, Position};
use super::draw::Draw;

/// Frame rate of all rendered videos.
pub const FRAMES_PER_SECOND: f64 = 25.0;
/// Height of the high bar, in metres.
pub const BAR_HEIGHT: f64 = 2.6;
/// Height of the beam's top, in metres.
pub const BEAM_HEIGHT: f64 = 1.2;
/// Height of the trampoline's bed, in metres.
pub const BED_HEIGHT: f64 = 1.1;

/// How an athlete performs any element: the nuisance parameters of motion. Shares are of the flight.
#[derive(Debug, Clone)]
pub struct Performance {
    /// Duration in seconds.
    pub duration: f64,
    /// Start and end of the flight, as shares of `duration`.
    pub flight: [f64; 2],
    /// The athlete's height relative to the standard body.
    pub stature: f64,
    /// Position of the support's height in the event's range, 0 to 1.
    pub height: f64,
    /// Position of the apex in the event's range, 0 to 1.
    pub apex: f64,
    /// Position of the travel in the event's range, 0 to 1.
    pub travel: f64,
    /// Start and end of entering the shape.
    pub enter: [f64; 2],
    /// Start and end of leaving the shape.
    pub leave: [f64; 2],
    /// The straight body after the take-off and before the end. One pose for both: two would distinguish early
    /// from late frames.
    pub reach: Pose,
    /// Start and end of the twisting.
    pub twisting: [f64; 2],
    /// The time at which a twisting dive bends.
    pub bend: f64,
    /// Lead of the rotation over an even one in the middle, as a share of the whole. It hides the number of
    /// rotations: no body angle at a single moment reveals it.
    pub surge: f64,
    /// Lean of the body at the take-off and at the end, in radians.
    pub lean: [f64; 2],
    /// Arm position of a straight body.
    pub arms: Pose,
    /// Angular speed at the start and at the end, relative to the middle.
    pub slow: [f64; 2],
    /// Depth of the shape, relative to the standard one.
    pub depth: f64,
    /// Completed share of the preparation at the clip's start.
    pub prepared: f64,
    /// Angle of the last swing before the release of the bar, in radians past the vertical.
    pub release: f64,
    /// Whether the camera is on the other side.
    pub mirrored: bool,
}

impl Performance {
    /// Draws a performance, without access to the element.
    pub fn draw(draw: &mut Draw) -> Performance {
        let entered = draw.within(0.12, 0.6);
        let leave = (entered + draw.within(0.24, 0.4)).min(0.92);
        let flight = draw.within(0.04, 0.28);
        let arms_up = |draw: &mut Draw| Pose { shoulder: draw.within(2.0, 3.1), ..body::REACH };
        let length = draw.within(0.5, 0.75);
        let begin = draw.within(0.03, 0.95 - length);
        Performance {
            duration: draw.within(1.3, 2.3),
            flight: [flight, (flight + draw.within(0.66, 0.82)).min(0.96)],
            stature: draw.within(0.88, 1.12),
            height: draw.unit(),
            apex: draw.unit(),
            travel: draw.unit(),
            enter: [entered - draw.within(0.08, 0.13), entered],
            leave: [leave, leave + draw.within(0.06, 0.1)],
            reach: arms_up(draw),
            twisting: [begin, begin + length],
            bend: draw.within(0.5, 0.66),
            surge: draw.within(-0.23, 0.23),
            lean: [draw.within(-0.6, 0.6), draw.within(-0.6, 0.6)],
            arms: draw.pick(&[body::WRAP, body::WRAP, body::ARMS_DOWN, body::REACH]),
            slow: [draw.within(0.05, 0.8), draw.within(0.05, 0.8)],
            depth: draw.within(0.92, 1.04),
            prepared: draw.within(0.0, 0.7),
            release: draw.within(0.7, 1.15),
            mirrored: draw.chance(0.5),
        }
    }

    /// Frames at [`FRAMES_PER_SECOND`], at least two.
    pub fn frames(&self) -> usize {
        ((self.duration * FRAMES_PER_SECOND).round() as usize).max(2)
    }

    /// Maps a share to the event's range.
    fn in_range(share: f64, range: [f64; 2]) -> f64 {
        range[0] + (range[1] - range[0]) * share
    }
}

/// Body and position at one moment, before camera and mirror. The athlete travels to +x; +y is up.
#[derive(Debug, Clone, Copy)]
pub struct State {
    /// Shape of the body.
    pub pose: Pose,
    /// Body angle in the plane of travel, radians, clockwise (head towards +x) positive; 0 is upright.
    pub angle: f64,
    /// Rotation about the vertical, in radians: π travels to -x.
    pub heading: f64,
    /// Cumulative twist in radians, 0 at the start.
    pub twist: f64,
    /// Whether the chest faces +x before any twist.
    pub faces_ahead: bool,
    /// Position of the centre of mass in metres; y from the floor or the water.
    pub place: [f64; 2],
    /// Between take-off and landing. On the bars also between leaving and reaching the handstand of a giant.
    pub airborne: bool,
    /// Load on the support: 0 to 1.
    pub press: f64,
    /// Seconds since the contact with the water.
    pub splash: Option<f64>,
}

/// The course of an event, in metres.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// The event.
    pub event: Event,
    /// Height of the support at the take-off.
    pub start_height: f64,
    /// Height at which the feet land, or of the water.
    pub end_height: f64,
    /// Rise of the centre of mass above the higher one of start and end.
    pub rise: f64,
    /// Horizontal travel.
    pub travel: f64,
}

impl Course {
    /// The course of an event for one performance.
    pub fn new(event: Event, how: &Performance) -> Course {
        let (start, end, rise, travel) = match event {
            Event::Platform => ([4.5, 6.5], 0.0, [0.3, 1.1], [0.9, 2.0]),
            Event::Springboard => ([1.4, 3.0], 0.0, [1.2, 2.6], [0.9, 2.0]),
            Event::Floor => ([0.0, 0.0], 0.0, [1.4, 2.8], [0.5, 2.2]),
            Event::Beam => ([BEAM_HEIGHT, BEAM_HEIGHT], BEAM_HEIGHT, [1.2, 2.6], [0.3, 1.3]),
            Event::Vault => ([0.2, 0.2], 0.2, [1.6, 3.0], [2.4, 3.2]),
            Event::Bars => ([BAR_HEIGHT, BAR_HEIGHT], 0.2, [0.5, 1.8], [1.0, 2.2]),
            Event::Trampoline => ([BED_HEIGHT, BED_HEIGHT], BED_HEIGHT, [1.8, 3.6], [0.0, 0.4]),
        };
        Course {
            event,
            start_height: Performance::in_range(how.height, start),
            end_height: end,
            rise: Performance::in_range(how.apex, rise),
            travel: Performance::in_range(how.travel, travel),
        }
    }
}

/// One element as an athlete performs it.
#[derive(Debug, Clone)]
pub struct Element {
    class: Class,
    how: Performance,
    course: Course,
}

/// Height of the centre of mass at a head-first entry, in metres above the water.
const ENTRY_HEIGHT: f64 = 0.6;

impl Element {
    /// The element `class`, performed as `how`.
    pub fn new(class: Class, how: Performance) -> Element {
        let course = Course::new(class.event, &how);
        Element { class, how, course }
    }

    /// The element.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// Its performance.
    pub fn performance(&self) -> &Performance {
        &self.how
    }

    /// Its course.
    pub fn course(&self) -> &Course {
        &self.course
    }

    /// The state at `part` (0 to 1) of the duration.
    pub fn state(&self, part: f64) -> State {
        let [begin, end] = self.how.flight;
        let flight = (part - begin) / (end - begin);
        let seconds_after = (part - end) * self.how.duration;
        match (self.class.position, flight) {
            (Position::Giant, flight) => self.giant(flight.clamp(0.0, 1.0)),
            (_, flight) if flight < 0.0 => self.before((part / begin).clamp(0.0, 1.0)),
            (_, flight) if flight <= 1.0 => self.airborne(flight),
            _ => self.after(((part - end) / (1.0 - end)).clamp(0.0, 1.0), seconds_after),
        }
    }

    /// Whether the chest faces the travel at the take-off. Gymnasts travel in the direction of their rotation;
    /// divers always leave the board.
    fn faces_ahead(&self) -> bool {
        match (self.class.event, self.class.direction) {
            (Event::Bars, direction) => direction == Direction::Back,
            (_, direction) => matches!(direction, Direction::Forward | Direction::Reverse),
        }
    }

    /// The sense of rotation: clockwise (head towards the travel) or not.
    fn sense(&self) -> f64 {
        match (self.class.event, self.class.direction) {
            (Event::Bars, _) | (_, Direction::Reverse | Direction::Inward) => -1.0,
            _ => 1.0,
        }
    }

    fn before(&self, part: f64) -> State {
        if self.class.event == Event::Bars {
            return self.swing(part);
        }
        let part = self.how.prepared + (1.0 - self.how.prepared) * part;
        let pose = if part < 0.6 {
            body::STAND.towards(body::SQUAT, smooth(part / 0.6))
        } else {
            body::SQUAT.towards(self.how.reach, smooth((part - 0.6) / 0.4))
        };
        let press = (PI * part).sin();
        let angle = self.how.lean[0] * smooth((part - 0.4) / 0.6);
        let support = [0.0, self.course.start_height - self.sag(press)];
        State { press, angle, ..self.resting(pose, self.standing(pose, support, angle)) }
    }

    /// The centre of mass when the feet are at `support`.
    fn standing(&self, pose: Pose, support: [f64; 2], angle: f64) -> [f64; 2] {
        let length = body::joints(pose).feet_below() * self.how.stature;
        [support[0] + length * angle.sin(), support[1] + length * angle.cos()]
    }

    /// How far the support bends, in metres.
    fn sag(&self, press: f64) -> f64 {
        match self.class.event {
            Event::Trampoline => 0.25 * press,
            Event::Springboard => 0.15 * press,
            _ => 0.0,
        }
    }

    fn resting(&self, pose: Pose, place: [f64; 2]) -> State {
        State {
            pose,
            angle: 0.0,
            heading: 0.0,
            twist: 0.0,
            faces_ahead: self.faces_ahead(),
            place,
            airborne: false,
            press: 0.0,
            splash: None,
        }
    }

    /// The swing on the bar, up to the release.
    fn swing(&self, part: f64) -> State {
        let from = -0.9 + 0.9 * self.how.prepared;
        let past = from + (self.how.release - from) * part;
        let angle = self.sense() * past;
        State { angle, ..self.resting(body::REACH, self.on_bar(angle)) }
    }

    /// The centre of mass when the hands hold the bar and the straight body is at `angle`.
    pub fn on_bar(&self, angle: f64) -> [f64; 2] {
        let reach = body::joints(body::REACH).hands_above() * self.how.stature;
        [-reach * angle.sin(), BAR_HEIGHT - reach * angle.cos()]
    }

    fn giant(&self, part: f64) -> State {
        let circles = TAU * self.class.somersaults.count();
        let angle = self.sense() * (PI + circles * self.progress(part));
        State {
            angle,
            twist: self.twist(part),
            airborne: part > 0.0 && part < 1.0,
            ..self.resting(body::REACH, self.on_bar(angle))
        }
    }

    fn airborne(&self, part: f64) -> State {
        let from = match self.class.event {
            Event::Bars => self.sense() * self.how.release,
            _ => self.how.lean[0],
        };
        let to = self.sense() * TAU * self.class.somersaults.count() + self.how.lean[1];
        State {
            angle: from + (to - from) * self.progress(part),
            twist: self.twist(part),
            airborne: true,
            ..self.resting(self.shape(part), self.path(part))
        }
    }

    fn after(&self, part: f64, seconds: f64) -> State {
        let landed = self.airborne(1.0);
        if self.class.event.is_diving() {
            let depth = 3.4 * seconds;
            let place = [landed.place[0], landed.place[1] - depth];
            return State { place, airborne: false, splash: Some(seconds), ..landed };
        }
        let pose = if part < 0.5 {
            self.how.reach.towards(body::LAND, smooth(part / 0.5))
        } else {
            body::LAND.towards(self.how.reach, smooth((part - 0.5) / 0.5))
        };
        let press = (PI * part).sin();
        // The feet stay at the landing point; the body straightens up.
        let lean = self.how.lean[1];
        let length = body::joints(self.how.reach).feet_below() * self.how.stature;
        let feet = [landed.place[0] - length * lean.sin(), self.course.end_height - self.sag(press)];
        let left = lean * (1.0 - smooth(part / 0.5));
        let place = self.standing(pose, feet, left);
        State { pose, place, angle: landed.angle - lean + left, airborne: false, press, ..landed }
    }

    /// The parabola from take-off to landing; independent of the label.
    fn path(&self, part: f64) -> [f64; 2] {
        let stature = self.how.stature;
        let [x, start] = match self.class.event {
            Event::Bars => self.on_bar(self.sense() * self.how.release),
            _ => self.standing(self.how.reach, [0.0, self.course.start_height], self.how.lean[0]),
        };
        let end = match self.class.event.is_diving() {
            true => ENTRY_HEIGHT * stature,
            false => self.standing(self.how.reach, [0.0, self.course.end_height], self.how.lean[1])[1],
        };
        let rise = (end - start).max(0.0) + self.course.rise;
        let slope = 2.0 * (rise + (rise * (rise + start - end)).sqrt());
        [x + self.course.travel * part, start + slope * part + (end - start - slope) * part * part]
    }

    /// The completed share of the rotation at `part` of the flight. Slower at both ends and uneven between, for
    /// every shape.
    fn progress(&self, part: f64) -> f64 {
        let [first, last] = self.how.slow;
        // The speed runs linearly from `first` to 1 over the first fifth and from 1 to `last` over the last.
        let edge = 0.2;
        let ramp = |at: f64, speed: f64| speed * at + (1.0 - speed) * at * at / (2.0 * edge);
        let (head, tail) = (ramp(edge, first), ramp(edge, last));
        let whole = head + (1.0 - 2.0 * edge) + tail;
        let done = match part {
            part if part < edge => ramp(part, first),
            part if part < 1.0 - edge => head + part - edge,
            part => whole - ramp((1.0 - part).max(0.0), last),
        };
        done / whole + self.how.surge * (PI * part).sin().powi(2)
    }

    fn twist(&self, part: f64) -> f64 {
        let [mut begin, mut end] = self.how.twisting;
        if self.twists_before_shape() {
            begin = 0.03 + 0.2 * (begin - 0.03);
            end = self.how.bend + 0.06;
        }
        TAU * self.class.twists.count() * ((part - begin) / (end - begin)).clamp(0.0, 1.0)
    }

    /// Whether twisting comes first: twisting dives in pike twist straight, then bend.
    fn twists_before_shape(&self) -> bool {
        self.class.event.is_diving()
            && self.class.position != Position::Straight
            && self.class.twists.halves > 0
    }

    fn shape(&self, part: f64) -> Pose {
        let held = match self.class.position {
            Position::Tuck => scaled(body::TUCK, self.how.depth),
            Position::Pike => scaled(body::PIKE, self.how.depth),
            Position::Straight | Position::Giant => self.how.arms,
        };
        let [enter, entered] = self.how.enter;
        let [leave, left] = self.how.leave;
        let end = self.how.reach;
        let begin = if self.class.event == Event::Bars { body::REACH } else { end };
        if part >= leave {
            return held.towards(end, smooth((part - leave) / (left - leave)));
        }
        if self.twists_before_shape() {
            let bend = self.how.bend;
            let long = begin.towards(self.how.arms, smooth((part - enter) / (entered - enter)));
            return long.towards(held, smooth((part - bend) / 0.1));
        }
        begin.towards(held, smooth((part - enter) / (entered - enter)))
    }
}

fn scaled(pose: Pose, depth: f64) -> Pose {
    Pose { hip: pose.hip * depth, knee: pose.knee * depth, ..pose }
}

/// Smoothstep from 0 to 1.
fn smooth(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

#[cfg(test)]
mod tests {
    use super::super::classes::classes;
    use super::super::draw::Purpose;
    use super::*;

    fn performance(seed: u64) -> Performance {
        Performance::draw(&mut Draw::new(seed, 0, Purpose::Performance, 0))
    }

    fn states(class: &Class, seed: u64) -> Vec<State> {
        let element = Element::new(*class, performance(seed));
        (0..=1000).map(|at| element.state(f64::from(at) / 1000.0)).collect()
    }

    #[track_caller]
    fn check(class: &Class, seed: u64, largest_step: f64) {
        let states = states(class, seed);
        for (at, two) in states.windows(2).enumerate() {
            let (dx, dy) = (two[1].place[0] - two[0].place[0], two[1].place[1] - two[0].place[1]);
            let step = dx.hypot(dy).max((two[1].angle - two[0].angle).abs());
            assert!(step < largest_step, "{}: {step} after {at}", class.label());
        }
    }

    #[test]
    fn bodies_never_jump() {
        for (seed, class) in classes().iter().enumerate() {
            // The limit covers the fastest cases: seven half turns in two thirds of the time, and a diver's plunge.
            check(class, seed as u64, 0.08);
        }
    }

    #[test]
    fn the_trajectory_knows_only_the_event() {
        for seed in 0..3 {
            for two in classes().windows(2) {
                let alike =
                    two[0].event == two[1].event && two.iter().all(|it| it.position != Position::Giant);
                if !alike {
                    continue;
                }
                let [one, other] = [&two[0], &two[1]].map(|it| states(it, seed));
                for (a, b) in one.iter().zip(&other).step_by(20) {
                    let apart = (a.place[0] - b.place[0]).hypot(a.place[1] - b.place[1]);
                    assert!(apart < 1e-9, "{} and {}", two[0].label(), two[1].label());
                    assert_eq!(a.airborne, b.airborne);
                }
            }
        }
    }

    #[test]
    fn the_body_turns_as_often_as_the_label_says() {
        for (seed, class) in classes().iter().enumerate() {
            let how = performance(seed as u64);
            let from = match (class.event, class.position) {
                (_, Position::Giant) => -PI,
                (Event::Bars, _) => -how.release,
                _ => how.lean[0],
            };
            let to = if class.position == Position::Giant { 0.0 } else { how.lean[1] };
            let element = Element::new(*class, how);
            let [begin, end] = element.performance().flight;
            let (first, last) = (element.state(begin + 1e-9), element.state(end - 1e-9));
            let turned = (last.angle - to).abs() - if class.position == Position::Giant { PI } else { 0.0 };
            assert!((first.angle - from).abs() < 1e-3, "{}: {}", class.label(), first.angle);
            assert!((turned - TAU * class.somersaults.count()).abs() < 1e-3, "{}: {turned}", class.label());
            assert!((last.twist - TAU * class.twists.count()).abs() < 1e-3, "{}", class.label());
        }
    }
}
