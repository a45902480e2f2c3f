//! A shot: video without a cut, rendered frame by frame.

use std::f64::consts::{PI, TAU};

use super::body;
use super::canvas::{Canvas, Color};
use super::classes::Event;
use super::draw::Draw;
use super::motion::{Course, Element, FRAMES_PER_SECOND, Performance, State};
use super::scene::{self, Aim, Look, View};
use super::scenery;

/// One shot.
#[derive(Debug, Clone)]
pub struct Shot {
    /// Frames at [`FRAMES_PER_SECOND`].
    pub frames: usize,
    /// Its look.
    pub look: Look,
    /// Its content.
    pub content: Content,
}

/// Content of a shot.
#[derive(Debug, Clone)]
pub enum Content {
    /// One element at a speed (1 is normal), after some frames of waiting.
    Element {
        /// The element.
        element: Box<Element>,
        /// Playback speed relative to the athlete's own.
        speed: f64,
        /// Frames before the element begins.
        wait: usize,
        /// Whether the camera is on the other side.
        mirrored: bool,
    },
    /// Several elements, one after the other.
    Routine(Box<Routine>),
    /// A waiting athlete.
    Pause {
        /// Where.
        event: Event,
        /// The athlete's height and the support's height.
        performance: Box<Performance>,
    },
    /// A scoreboard.
    Scoreboard(Vec<Row>),
}

/// A line of a scoreboard.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Length of the name, as a share of the available width.
    pub name: f64,
    /// Three digits.
    pub score: [u8; 3],
}

impl Shot {
    /// A clip of the element alone.
    pub fn of_clip(element: Element, look: Look) -> Shot {
        let mirrored = element.performance().mirrored;
        Shot {
            frames: element.performance().frames(),
            look,
            content: Content::Element { element: Box::new(element), speed: 1.0, wait: 0, mirrored },
        }
    }

    /// Seconds.
    pub fn seconds(&self) -> f64 {
        self.frames as f64 / FRAMES_PER_SECOND
    }

    /// Renders frame `frame`.
    pub fn draw(&self, canvas: &mut Canvas, frame: usize) {
        let part = self.part(frame);
        match &self.content {
            Content::Element { element, .. } => {
                let (state, view) = self.element_view(element, frame, canvas.width());
                self.draw_state(canvas, element, &state, &view);
            }
            Content::Routine(routine) => {
                let state = routine.state(frame);
                let camera = self.look.camera.following_closely();
                let view = View::new(&camera, canvas.width(), part, at_athlete(&state, routine.mirrored));
                let element = routine.element(frame);
                self.draw_state(canvas, element, &state, &view);
            }
            Content::Pause { event, performance } => self.draw_pause(canvas, *event, performance, part),
            Content::Scoreboard(rows) => self.draw_scoreboard(canvas, rows, part),
        }
        scene::add_noise(canvas, &self.look, frame);
    }

    /// State and view of a frame; `None` if the shot does not show a single element.
    pub fn seen(&self, frame: usize, side: u32) -> Option<(State, View)> {
        match &self.content {
            Content::Element { element, .. } => Some(self.element_view(element, frame, side)),
            _ => None,
        }
    }

    /// The element of a shot that shows a single one.
    pub fn element(&self) -> Option<&Element> {
        match &self.content {
            Content::Element { element, .. } => Some(element),
            _ => None,
        }
    }

    /// Whether the camera is on the other side.
    pub fn mirrored(&self) -> bool {
        match &self.content {
            Content::Element { mirrored, .. } => *mirrored,
            Content::Routine(routine) => routine.mirrored,
            Content::Pause { performance, .. } => performance.mirrored,
            Content::Scoreboard(_) => false,
        }
    }

    fn part(&self, frame: usize) -> f64 {
        (frame as f64 + 0.5) / self.frames.max(1) as f64
    }

    fn element_view(&self, element: &Element, frame: usize, side: u32) -> (State, View) {
        let (speed, wait, mirrored) = match &self.content {
            Content::Element { speed, wait, mirrored, .. } => (*speed, *wait, *mirrored),
            _ => (1.0, 0, false),
        };
        let done = (frame as f64 - wait as f64 + 0.5) * speed / element.performance().frames() as f64;
        let state = element.state(done);
        let course = element.course();
        let anchor = [course.travel / 2.0, (course.start_height + course.end_height) / 2.0 + 1.0];
        let view = View::new(
            &self.look.camera,
            side,
            self.part(frame),
            Aim { place: state.place, anchor, mirrored },
        );
        (state, view)
    }

    fn draw_state(&self, canvas: &mut Canvas, element: &Element, state: &State, view: &View) {
        let (hall, course) = (&self.look.hall, element.course());
        scenery::behind(canvas, hall, course, state, view);
        scene::draw_athlete(canvas, &self.look.athlete, state, view, element.performance().stature);
        scenery::before(canvas, hall, course, state, view);
    }

    fn draw_pause(&self, canvas: &mut Canvas, event: Event, performance: &Performance, part: f64) {
        let course = Course::new(event, performance);
        let sway = 0.06 * (TAU * 0.7 * part * self.seconds()).sin();
        let pose = body::STAND.towards(body::ARMS_UP, 0.5 - 0.5 * (TAU * part).cos());
        let support = if event == Event::Bars { course.end_height } else { course.start_height };
        let height = support + body::joints(pose).feet_below() * performance.stature;
        let state = State {
            pose,
            angle: sway * 0.2,
            heading: performance.release,
            twist: 0.0,
            faces_ahead: true,
            place: [-0.6 + sway, height],
            airborne: false,
            press: 0.0,
            splash: None,
        };
        let aim = at_athlete(&state, performance.mirrored);
        let view = View::new(&self.look.camera, canvas.width(), part, aim);
        let hall = &self.look.hall;
        scenery::behind(canvas, hall, &course, &state, &view);
        scene::draw_athlete(canvas, &self.look.athlete, &state, &view, performance.stature);
        scenery::before(canvas, hall, &course, &state, &view);
    }

    fn draw_scoreboard(&self, canvas: &mut Canvas, rows: &[Row], part: f64) {
        let side = f64::from(canvas.width());
        let hall = &self.look.hall;
        canvas.fill(hall.wall.times(0.35));
        let rect = |canvas: &mut Canvas, x: f64, y: f64, w: f64, h: f64, color: Color| {
            let corner = |x: f64, y: f64| [x * side, y * side];
            canvas.polygon(&[corner(x, y), corner(x + w, y), corner(x + w, y + h), corner(x, y + h)], color);
        };
        rect(canvas, 0.06, 0.08, 0.88, 0.1, hall.mat);
        let shown = ((part * 1.6).min(1.0) * rows.len() as f64).ceil() as usize;
        for (at, row) in rows.iter().enumerate().take(shown.max(1)) {
            let top = 0.22 + 0.72 * at as f64 / rows.len() as f64;
            let height = 0.6 / rows.len() as f64;
            rect(canvas, 0.06, top, 0.88, height, hall.frame);
            rect(canvas, 0.09, top + 0.3 * height, 0.5 * row.name, 0.4 * height, Color([0.9; 3]));
            for (place, digit) in row.score.iter().enumerate() {
                let left = 0.68 + 0.08 * place as f64;
                for stroke in strokes(*digit) {
                    let [x, y, w, h] = stroke;
                    rect(
                        canvas,
                        left + 0.05 * x,
                        top + height * (0.15 + 0.7 * y),
                        0.05 * w,
                        0.7 * height * h,
                        Color([1.0, 0.9, 0.3]),
                    );
                }
            }
        }
    }
}

/// The lit bars of a seven-segment digit in a unit square: left, top, width, height.
fn strokes(digit: u8) -> Vec<[f64; 4]> {
    const LIT: [u8; 10] = [
        0b111_0111, 0b010_0100, 0b101_1101, 0b110_1101, 0b010_1110, 0b110_1011, 0b111_1011, 0b010_0101,
        0b111_1111, 0b110_1111,
    ];
    // Top, upper left, upper right, middle, lower left, lower right, bottom.
    const BARS: [[f64; 4]; 7] = [
        [0.0, 0.0, 1.0, 0.15],
        [0.0, 0.0, 0.22, 0.5],
        [0.78, 0.0, 0.22, 0.5],
        [0.0, 0.43, 1.0, 0.15],
        [0.0, 0.5, 0.22, 0.5],
        [0.78, 0.5, 0.22, 0.5],
        [0.0, 0.85, 1.0, 0.15],
    ];
    let lit = LIT.get(usize::from(digit % 10)).copied().unwrap_or(0);
    BARS.iter().enumerate().filter(|(at, _)| lit >> at & 1 == 1).map(|(_, bar)| *bar).collect()
}

/// Elements of one event, one after the other, without a cut.
#[derive(Debug, Clone)]
pub struct Routine {
    /// The elements, in order.
    pub parts: Vec<RoutinePart>,
    /// Whether the camera is on the other side.
    pub mirrored: bool,
}

/// One element of a routine, and the transition to it.
#[derive(Debug, Clone)]
pub struct RoutinePart {
    /// The element.
    pub element: Element,
    /// Frames of the transition from the previous element.
    pub transition: usize,
    /// First frame of the element in the shot.
    pub start: usize,
    /// End frame (exclusive).
    pub end: usize,
    /// Its start position in metres.
    origin: f64,
    /// 0 to +x, π to -x.
    heading: f64,
    /// Rotation about the vertical before it, relative to its heading.
    turned: f64,
}

/// Athletes turn round at this distance from the centre, in metres.
const ROOM: f64 = 2.0;

impl Routine {
    /// Joins elements; `None` without elements.
    pub fn new(elements: Vec<Element>, mirrored: bool, draw: &mut Draw) -> Option<Routine> {
        let mut parts: Vec<RoutinePart> = Vec::new();
        let (mut frame, mut origin, mut facing) = (0, 0.0, 0.0);
        for element in elements {
            let on_bars = element.class().event == Event::Bars;
            let heading = match on_bars || origin < -ROOM || (origin < ROOM && draw.chance(0.5)) {
                true => 0.0,
                false => PI,
            };
            let first = element.state(0.0);
            let own = heading + facing_of(&first);
            let seconds = draw.within(0.25, 0.8);
            let transition = (seconds * FRAMES_PER_SECOND) as usize;
            let turned = if parts.is_empty() { 0.0 } else { shortest(facing - own) };
            let start = frame + transition;
            let end = start + element.performance().frames();
            let last = element.state(1.0);
            facing = heading + facing_of(&last);
            let next = origin + heading.cos() * if on_bars { 0.0 } else { last.place[0] };
            parts.push(RoutinePart { element, transition, start, end, origin, heading, turned });
            (frame, origin) = (end, next);
        }
        (!parts.is_empty()).then_some(Routine { parts, mirrored })
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.parts.last().map_or(0, |it| it.end)
    }

    fn part_at(&self, frame: usize) -> &RoutinePart {
        let at = self.parts.partition_point(|it| it.end <= frame).min(self.parts.len() - 1);
        &self.parts[at]
    }

    /// The element that a frame shows or prepares.
    pub fn element(&self, frame: usize) -> &Element {
        &self.part_at(frame).element
    }

    /// The state in a frame of the shot.
    pub fn state(&self, frame: usize) -> State {
        let part = self.part_at(frame);
        let frames = part.element.performance().frames() as f64;
        let done = (frame as f64 - part.start as f64 + 0.5) / frames;
        let mut state = part.element.state(done.clamp(0.0, 1.0));
        state.heading = part.heading;
        if frame < part.start && part.transition > 0 {
            let way = 1.0 - (part.start - frame) as f64 / part.transition as f64;
            part.lead_in(&mut state, way, frame < part.transition && part.start == part.transition);
        }
        state.place[0] = part.origin + part.heading.cos() * state.place[0];
        state
    }
}

impl RoutinePart {
    /// Changes the element's first state into a state of the transition to it; `way` runs from 0 to 1.
    fn lead_in(&self, state: &mut State, way: f64, is_first: bool) {
        let smooth = way * way * (3.0 - 2.0 * way);
        state.heading += self.turned * (1.0 - smooth);
        match self.element.class().event {
            Event::Bars if !state.airborne && state.angle.abs() < 2.0 && !is_first => {
                // Down from the handstand to the start of the swing.
                let from = -PI;
                state.angle = from + (state.angle - TAU - from) * way * way;
                state.place = self.element.on_bar(state.angle);
            }
            Event::Trampoline => {
                state.place[1] += 3.6 * way * (1.0 - way);
                state.pose = state.pose.towards(body::REACH, 4.0 * way * (1.0 - way));
            }
            _ => {}
        }
    }
}

/// The chest's facing about the vertical, of the upright body.
fn facing_of(state: &State) -> f64 {
    let ahead = if state.faces_ahead { 0.0 } else { PI };
    ahead + state.twist
}

/// The same angle in (-π, π].
fn shortest(angle: f64) -> f64 {
    let turned = angle.rem_euclid(TAU);
    if turned > PI { turned - TAU } else { turned }
}

/// Aims a camera at the athlete alone.
fn at_athlete(state: &State, mirrored: bool) -> Aim {
    Aim { place: state.place, anchor: state.place, mirrored }
}
