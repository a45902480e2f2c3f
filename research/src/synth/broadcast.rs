//! Long videos: routines cut together, with replays, pauses, scoreboards and uncut routines, and the ground truth of
//! every range.

use super::classes::{Class, Event, classes};
use super::draw::{Draw, Purpose};
use super::motion::{Element, FRAMES_PER_SECOND, Performance};
use super::plan::Settings;
use super::scene::Look;
use super::shot::{Content, Routine, Row, Shot};

/// The kind of a broadcast's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeKind {
    /// One element between two cuts.
    Routine,
    /// Several elements without a cut.
    UncutRoutine,
    /// An earlier routine, shown again.
    Replay,
    /// A pause without an element.
    Pause,
    /// A scoreboard.
    Scoreboard,
}

impl RangeKind {
    /// The name in `broadcasts.jsonl`.
    pub fn name(self) -> &'static str {
        match self {
            RangeKind::Routine => "routine",
            RangeKind::UncutRoutine => "uncut_routine",
            RangeKind::Replay => "replay",
            RangeKind::Pause => "pause",
            RangeKind::Scoreboard => "scoreboard",
        }
    }
}

/// An element in a broadcast, in frames from the broadcast's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labelled {
    /// First frame.
    pub start: usize,
    /// End frame (exclusive).
    pub end: usize,
    /// Its class number.
    pub class: usize,
}

/// A range between two cuts, in frames from the broadcast's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// First frame.
    pub start: usize,
    /// End frame (exclusive).
    pub end: usize,
    /// Its kind.
    pub kind: RangeKind,
    /// Its elements, with their own starts and ends.
    pub elements: Vec<Labelled>,
    /// Index of the replayed range.
    pub replays: Option<usize>,
}

/// A long video: its shots and their labelled ranges.
#[derive(Debug, Clone)]
pub struct Broadcast {
    /// Shots in order.
    pub shots: Vec<Shot>,
    /// One range per shot.
    pub ranges: Vec<Range>,
}

/// The share of uncut routines in a broadcast of forty routines.
const UNCUT_SHARE: f64 = 0.1;
/// Probability of a replay after a routine; below: of a scoreboard, of a pause.
const REPLAY: f64 = 0.3;
const SCOREBOARD: f64 = 0.2;
const PAUSE: f64 = 0.15;

/// Offset that separates performances and looks of broadcasts from those of clips.
const BROADCAST_STREAMS: u64 = 1 << 40;

struct Maker<'a> {
    settings: &'a Settings,
    draw: Draw,
    /// The next index in the streams of performances and looks.
    next: u64,
    broadcast: Broadcast,
}

/// Broadcast number `index` (from 0).
pub fn broadcast(settings: &Settings, index: usize) -> Broadcast {
    let mut maker = Maker {
        settings,
        draw: settings.draw(Purpose::Broadcast, index as u64),
        next: BROADCAST_STREAMS + ((index as u64) << 20),
        broadcast: Broadcast { shots: Vec::new(), ranges: Vec::new() },
    };
    let uncut = ((settings.routines as f64 * UNCUT_SHARE).round() as usize).max(1);
    let mut is_uncut: Vec<bool> = (0..settings.routines).map(|at| at < uncut).collect();
    maker.draw.shuffle(&mut is_uncut);
    for uncut in is_uncut {
        if uncut {
            maker.uncut_routine();
        } else {
            maker.routine();
        }
    }
    maker.broadcast
}

impl Maker<'_> {
    fn nuisance(&mut self) -> (Performance, Look) {
        self.next += 1;
        super::plan::nuisance(self.settings, self.next)
    }

    fn add(&mut self, shot: Shot, kind: RangeKind, elements: Vec<Labelled>, replays: Option<usize>) {
        let start = self.broadcast.ranges.last().map_or(0, |it| it.end);
        let elements =
            elements.into_iter().map(|it| Labelled { start: it.start + start, end: it.end + start, ..it });
        let range = Range { start, end: start + shot.frames, kind, elements: elements.collect(), replays };
        self.broadcast.ranges.push(range);
        self.broadcast.shots.push(shot);
    }

    fn routine(&mut self) {
        let class = self.draw.below(classes().len());
        let (performance, look) = self.nuisance();
        let (event, mirrored) = (classes()[class].event, performance.mirrored);
        let element = Element::new(classes()[class], performance);
        self.element(class, &element, look.clone(), Speed { factor: 1.0, mirrored }, None);
        let routine = self.broadcast.ranges.len() - 1;
        if self.draw.chance(REPLAY) {
            let look = look.from_another_angle(&mut self.draw);
            let speed = Speed { factor: self.draw.within(0.45, 0.8), mirrored: self.draw.chance(0.5) };
            self.element(class, &element, look, speed, Some(routine));
        }
        if self.draw.chance(SCOREBOARD) {
            self.scoreboard(&look);
        }
        if self.draw.chance(PAUSE) {
            self.pause(event, &look);
        }
    }

    fn element(&mut self, class: usize, element: &Element, look: Look, speed: Speed, replays: Option<usize>) {
        let wait = self.draw.below(9);
        let frames = (element.performance().frames() as f64 / speed.factor).round() as usize;
        let after = self.draw.below(9);
        let shot = Shot {
            frames: wait + frames + after,
            look,
            content: Content::Element {
                element: Box::new(element.clone()),
                speed: speed.factor,
                wait,
                mirrored: speed.mirrored,
            },
        };
        let kind = if replays.is_some() { RangeKind::Replay } else { RangeKind::Routine };
        self.add(shot, kind, vec![Labelled { start: wait, end: wait + frames, class }], replays);
    }

    fn uncut_routine(&mut self) {
        let events: Vec<Event> = Event::ALL.into_iter().filter(|it| it.has_routines()).collect();
        let event = self.draw.one_of(&events).copied().unwrap_or(Event::Floor);
        let number = 6 + self.draw.below(5);
        let order = elements_of_routine(event, number, &mut self.draw);
        let (first, look) = self.nuisance();
        let elements = order.iter().map(|class| {
            let (how, _) = self.nuisance();
            let how = Performance { stature: first.stature, arms: first.arms, height: first.height, ..how };
            Element::new(classes()[*class], how)
        });
        let elements: Vec<Element> = elements.collect();
        let Some(routine) = Routine::new(elements, first.mirrored, &mut self.draw) else { return };
        let labelled = routine.parts.iter().zip(&order);
        let labelled =
            labelled.map(|(part, class)| Labelled { start: part.start, end: part.end, class: *class });
        let labelled = labelled.collect();
        let shot = Shot {
            frames: routine.frames(),
            look: look.clone(),
            content: Content::Routine(Box::new(routine)),
        };
        self.add(shot, RangeKind::UncutRoutine, labelled, None);
        if self.draw.chance(0.5) {
            self.scoreboard(&look);
        }
    }

    fn scoreboard(&mut self, look: &Look) {
        let rows = (0..3 + self.draw.below(4)).map(|_| Row {
            name: self.draw.within(0.3, 1.0),
            score: [0; 3].map(|_| self.draw.below(10) as u8),
        });
        let rows = rows.collect();
        let frames = self.seconds(1.5, 3.5);
        let shot = Shot { frames, look: look.clone(), content: Content::Scoreboard(rows) };
        self.add(shot, RangeKind::Scoreboard, Vec::new(), None);
    }

    fn pause(&mut self, event: Event, look: &Look) {
        let (performance, _) = self.nuisance();
        let look = look.from_another_angle(&mut self.draw);
        let frames = self.seconds(1.5, 4.0);
        let shot =
            Shot { frames, look, content: Content::Pause { event, performance: Box::new(performance) } };
        self.add(shot, RangeKind::Pause, Vec::new(), None);
    }

    fn seconds(&mut self, low: f64, high: f64) -> usize {
        (self.draw.within(low, high) * FRAMES_PER_SECOND) as usize
    }
}

/// The playback of an element: its speed factor, and whether it is mirrored.
struct Speed {
    factor: f64,
    mirrored: bool,
}

/// The class indices of a routine. On the bars: giants, and one salto to the floor at the end.
fn elements_of_routine(event: Event, number: usize, draw: &mut Draw) -> Vec<usize> {
    let is_giant = |class: &Class| class.position == super::classes::Position::Giant;
    let numbers = |wanted: &dyn Fn(&Class) -> bool| -> Vec<usize> {
        let all = classes().iter().enumerate();
        all.filter(|(_, it)| it.event == event && wanted(it)).map(|(at, _)| at).collect()
    };
    let saltos = numbers(&|it| !is_giant(it));
    let giants = numbers(&is_giant);
    (0..number)
        .filter_map(|at| {
            let from = if giants.is_empty() || at + 1 == number { &saltos } else { &giants };
            draw.one_of(from).copied()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::Split;
    use super::*;

    fn settings(routines: usize) -> Settings {
        Settings { routines, ..Settings::new(4, Split::Test) }
    }

    #[track_caller]
    fn check(broadcast: &Broadcast, routines: usize) {
        let counted = [RangeKind::Routine, RangeKind::UncutRoutine];
        assert_eq!(broadcast.ranges.iter().filter(|it| counted.contains(&it.kind)).count(), routines);
    }

    #[test]
    fn ranges_cover_the_video_without_gap_and_elements_lie_inside_them() {
        let made = broadcast(&settings(40), 0);
        check(&made, 40);
        let mut end = 0;
        for (range, shot) in made.ranges.iter().zip(&made.shots) {
            assert_eq!((range.start, range.end), (end, end + shot.frames));
            assert!(range.elements.iter().all(|it| range.start <= it.start && it.end <= range.end));
            assert!(range.elements.windows(2).all(|two| two[0].end <= two[1].start));
            end = range.end;
        }
    }

    #[test]
    fn replays_show_an_earlier_routine_of_the_same_label() {
        let made = broadcast(&settings(60), 1);
        let mut replays = 0;
        for (at, range) in made.ranges.iter().enumerate() {
            let Some(shown) = range.replays else { continue };
            assert!(shown < at && made.ranges[shown].kind == RangeKind::Routine);
            assert_eq!(range.elements[0].class, made.ranges[shown].elements[0].class);
            replays += 1;
        }
        assert!(replays > 0);
    }

    #[test]
    fn uncut_routines_hold_six_to_ten_elements_of_one_event() {
        let all: Vec<_> = (0..6).map(|at| broadcast(&settings(20), at)).collect();
        let uncut = || all.iter().flat_map(|it| &it.ranges).filter(|it| it.kind == RangeKind::UncutRoutine);
        assert!(uncut().count() >= 6);
        for range in uncut() {
            assert!((6..=10).contains(&range.elements.len()), "{}", range.elements.len());
            let events: Vec<_> = range.elements.iter().map(|it| classes()[it.class].event).collect();
            assert!(events.windows(2).all(|two| two[0] == two[1]));
        }
    }
}
