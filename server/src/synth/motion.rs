//! An element in time: where the body is, how it is turned and shaped.
//!
//! What must not tell the label is drawn by [`Performance::draw`], which never sees the class: duration,
//! apex, travel, timing, poses of take-off and landing. The label decides how far the body turns, to which
//! side, and its shape in flight; nothing else.

use std::f64::consts::{PI, TAU};

use super::body::{self, Pose};
use super::classes::{Class, Direction, Event, Position};
use super::draw::Draw;

/// Frames a second of everything that is rendered.
pub const FRAMES_PER_SECOND: f64 = 25.0;
/// Height of the high bar, the beam's top, the trampoline's bed, in metres.
pub const BAR_HEIGHT: f64 = 2.6;
/// See [`BAR_HEIGHT`].
pub const BEAM_HEIGHT: f64 = 1.2;
/// See [`BAR_HEIGHT`].
pub const BED_HEIGHT: f64 = 1.1;

/// How somebody does whatever element it is: the nuisance of motion. Shares are of the flight.
#[derive(Debug, Clone)]
pub struct Performance {
    /// Seconds of all.
    pub duration: f64,
    /// Share of `duration` at which the flight begins and ends.
    pub flight: [f64; 2],
    /// Height of the athlete against the standard body.
    pub stature: f64,
    /// Where in the event's range of heights the support, the apex and the travel lie, each 0 to 1.
    pub height: f64,
    /// See `height`.
    pub apex: f64,
    /// See `height`.
    pub travel: f64,
    /// Share at which the shape is begun and reached.
    pub enter: [f64; 2],
    /// Share at which the shape is left and the body long.
    pub leave: [f64; 2],
    /// Share at which twisting begins and ends.
    pub twisting: [f64; 2],
    /// Where in a straight body the arms are.
    pub arms: Pose,
    /// Angular speed at the begin and at the end, against the middle.
    pub slow: [f64; 2],
    /// How deep the shape is, against the standard one.
    pub depth: f64,
    /// How far through its preparation the athlete is when the clip begins.
    pub prepared: f64,
    /// Angle of the last swing before the release of the bar, in radians past the vertical.
    pub release: f64,
    /// Whether it is seen from the other side.
    pub mirrored: bool,
}

impl Performance {
    /// Draws one, without knowing the element.
    pub fn draw(draw: &mut Draw) -> Performance {
        let enter = draw.within(0.04, 0.12);
        let leave = draw.within(0.76, 0.86);
        let begin = draw.within(0.03, 0.14);
        Performance {
            duration: draw.within(1.3, 2.3),
            flight: [draw.within(0.05, 0.19), draw.within(0.84, 0.95)],
            stature: draw.within(0.88, 1.12),
            height: draw.unit(),
            apex: draw.unit(),
            travel: draw.unit(),
            enter: [enter, enter + draw.within(0.08, 0.15)],
            leave: [leave, leave + draw.within(0.07, 0.13)],
            twisting: [begin, draw.within(0.78, 0.94)],
            arms: draw.pick(&[body::WRAP, body::WRAP, body::ARMS_DOWN, body::REACH]),
            slow: [draw.within(0.55, 1.0), draw.within(0.45, 0.95)],
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

    /// A value of the event's range.
    fn in_range(share: f64, range: [f64; 2]) -> f64 {
        range[0] + (range[1] - range[0]) * share
    }
}

/// Body and place at one moment, before camera and mirror. The athlete travels to +x; +y is up.
#[derive(Debug, Clone, Copy)]
pub struct State {
    /// Shape of the body.
    pub pose: Pose,
    /// Body angle in the plane of travel, radians, clockwise (head towards +x) positive; 0 is upright.
    pub angle: f64,
    /// Turned about the vertical, radians: π travels to -x.
    pub heading: f64,
    /// Cumulative twist in radians, 0 at the begin.
    pub twist: f64,
    /// Whether the chest faces +x before any twist.
    pub faces_ahead: bool,
    /// Place of the centre of mass in metres; y from the floor or the water.
    pub place: [f64; 2],
    /// Between take-off and landing; on the bars also between leaving and reaching the handstand of a giant.
    pub airborne: bool,
    /// How hard the support is pressed: 0 to 1.
    pub press: f64,
    /// Seconds since the water was touched.
    pub splash: Option<f64>,
}

/// What the place of an event allows, in metres.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// Height of the support at the take-off.
    pub start_height: f64,
    /// Height at which the feet land, or of the water.
    pub end_height: f64,
    /// How far above the higher one of start and end the centre of mass rises.
    pub rise: f64,
    /// How far it travels.
    pub travel: f64,
}

impl Course {
    /// The course of an event for one performance.
    pub fn new(event: Event, how: &Performance) -> Course {
        let (start, end, rise, travel) = match event {
            Event::Platform => ([4.5, 6.5], 0.0, [0.4, 0.9], [1.1, 2.0]),
            Event::Springboard => ([1.0, 3.0], 0.0, [1.0, 1.8], [1.1, 2.0]),
            Event::Floor => ([0.0, 0.0], 0.0, [0.9, 1.6], [0.7, 2.2]),
            Event::Beam => ([BEAM_HEIGHT, BEAM_HEIGHT], BEAM_HEIGHT, [0.8, 1.4], [0.4, 1.3]),
            Event::Vault => ([0.2, 0.2], 0.2, [1.5, 2.2], [2.6, 3.6]),
            Event::Bars => ([BAR_HEIGHT, BAR_HEIGHT], 0.2, [0.3, 0.9], [1.2, 2.2]),
            Event::Trampoline => ([BED_HEIGHT, BED_HEIGHT], BED_HEIGHT, [1.5, 2.8], [0.0, 0.4]),
        };
        Course {
            start_height: Performance::in_range(how.height, start),
            end_height: end,
            rise: Performance::in_range(how.apex, rise),
            travel: Performance::in_range(how.travel, travel),
        }
    }
}

/// One element as somebody does it.
#[derive(Debug, Clone)]
pub struct Element {
    class: Class,
    how: Performance,
    course: Course,
}

/// Where head-first bodies are when they touch the water, in metres above it.
const ENTRY_HEIGHT: f64 = 0.6;

impl Element {
    /// The element `class` done as `how` says.
    pub fn new(class: Class, how: Performance) -> Element {
        let course = Course::new(class.event, &how);
        Element { class, how, course }
    }

    /// The element.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// How it is done.
    pub fn performance(&self) -> &Performance {
        &self.how
    }

    /// Where it leads.
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

    /// Which way the chest looks at the take-off. Gymnasts travel the way they turn; divers always leave the
    /// board.
    fn faces_ahead(&self) -> bool {
        match (self.class.event, self.class.direction) {
            (Event::Bars, direction) => direction == Direction::Back,
            (_, direction) => matches!(direction, Direction::Forward | Direction::Reverse),
        }
    }

    /// Clockwise or not: with the head towards the travel, or away from it.
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
            body::SQUAT.towards(body::REACH, smooth((part - 0.6) / 0.4))
        };
        let press = (PI * part).sin();
        let support = self.course.start_height - self.sag(press);
        let height = support + body::joints(pose).feet_below() * self.how.stature;
        State { press, ..self.resting(pose, [0.0, height]) }
    }

    /// How far the support gives way, in metres.
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

    /// Hanging from the bar, up to the release.
    fn swing(&self, part: f64) -> State {
        let from = -0.9 + 0.9 * self.how.prepared;
        let past = from + (self.how.release - from) * part;
        let angle = self.sense() * past;
        State { angle, ..self.resting(body::REACH, self.on_bar(angle)) }
    }

    /// Where the centre of mass is when the hands hold the bar and the long body is at `angle`.
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
        let from = if self.class.event == Event::Bars { self.how.release } else { 0.0 };
        let to = TAU * self.class.somersaults.count();
        State {
            angle: self.sense() * (from + (to - from) * self.progress(part)),
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
            body::ARMS_UP.towards(body::LAND, smooth(part / 0.5))
        } else {
            body::LAND.towards(body::ARMS_UP, smooth((part - 0.5) / 0.5))
        };
        let press = (PI * part).sin();
        let support = self.course.end_height - self.sag(press);
        let height = support + body::joints(pose).feet_below() * self.how.stature;
        State { pose, place: [landed.place[0], height], airborne: false, press, ..landed }
    }

    /// The parabola from take-off to landing; knows no label.
    fn path(&self, part: f64) -> [f64; 2] {
        let stature = self.how.stature;
        let (x, start) = match self.class.event {
            Event::Bars => {
                let [x, y] = self.on_bar(self.sense() * self.how.release);
                (x, y)
            }
            _ => (0.0, self.course.start_height + body::joints(body::REACH).feet_below() * stature),
        };
        let end = match self.class.event.is_diving() {
            true => ENTRY_HEIGHT * stature,
            false => self.course.end_height + body::joints(body::ARMS_UP).feet_below() * stature,
        };
        let rise = (end - start).max(0.0) + self.course.rise;
        let slope = 2.0 * (rise + (rise * (rise + start - end)).sqrt());
        [x + self.course.travel * part, start + slope * part + (end - start - slope) * part * part]
    }

    /// Share of the rotation that is done at `part` of the flight: slower at both ends, whatever the shape.
    fn progress(&self, part: f64) -> f64 {
        let [first, last] = self.how.slow;
        // Speed runs linearly from `first` to 1 over the first fifth and from 1 to `last` over the last.
        let edge = 0.2;
        let ramp = |at: f64, speed: f64| speed * at + (1.0 - speed) * at * at / (2.0 * edge);
        let (head, tail) = (ramp(edge, first), ramp(edge, last));
        let whole = head + (1.0 - 2.0 * edge) + tail;
        let done = match part {
            part if part < edge => ramp(part, first),
            part if part < 1.0 - edge => head + part - edge,
            part => whole - ramp((1.0 - part).max(0.0), last),
        };
        done / whole
    }

    fn twist(&self, part: f64) -> f64 {
        let [begin, mut end] = self.how.twisting;
        if self.twists_before_shape() {
            end = begin + (self.leave_straight() - begin) * (end - 0.3);
        }
        TAU * self.class.twists.count() * ((part - begin) / (end - begin)).clamp(0.0, 1.0)
    }

    /// Twisting dives in pike twist long first, then bend.
    fn twists_before_shape(&self) -> bool {
        self.class.event.is_diving()
            && self.class.position != Position::Straight
            && self.class.twists.halves > 0
    }

    /// When a twisting dive bends.
    fn leave_straight(&self) -> f64 {
        0.58
    }

    fn shape(&self, part: f64) -> Pose {
        let held = match self.class.position {
            Position::Tuck => scaled(body::TUCK, self.how.depth),
            Position::Pike => scaled(body::PIKE, self.how.depth),
            Position::Straight | Position::Giant => self.how.arms,
        };
        let [enter, entered] = self.how.enter;
        let [leave, left] = self.how.leave;
        let end = if self.class.event.is_diving() { body::REACH } else { body::ARMS_UP };
        if part >= leave {
            return held.towards(end, smooth((part - leave) / (left - leave)));
        }
        let begin = body::REACH;
        if self.twists_before_shape() {
            let bend = self.leave_straight();
            let long = begin.towards(self.how.arms, smooth((part - enter) / (entered - enter)));
            return long.towards(held, smooth((part - bend) / 0.1));
        }
        begin.towards(held, smooth((part - enter) / (entered - enter)))
    }
}

fn scaled(pose: Pose, depth: f64) -> Pose {
    Pose { hip: pose.hip * depth, knee: pose.knee * depth, ..pose }
}

/// 0 to 1 without a jolt.
fn smooth(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}
