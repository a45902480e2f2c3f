//! The label set: the elements, their names, and the pairs among them.
//!
//! All of it is constant. The seed changes only which clips and triplets are drawn and how they look.

use std::sync::LazyLock;

/// The event of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Event {
    Platform,
    Springboard,
    Floor,
    Beam,
    Vault,
    Bars,
    Trampoline,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 7] = [
        Event::Platform,
        Event::Springboard,
        Event::Floor,
        Event::Beam,
        Event::Vault,
        Event::Bars,
        Event::Trampoline,
    ];

    /// The name in a label.
    pub fn name(self) -> &'static str {
        match self {
            Event::Platform => "Platform",
            Event::Springboard => "Springboard",
            Event::Floor => "Floor Exercise",
            Event::Beam => "Balance Beam",
            Event::Vault => "Vault",
            Event::Bars => "Uneven Bars",
            Event::Trampoline => "Trampoline",
        }
    }

    /// Whether it ends in water.
    pub fn is_diving(self) -> bool {
        matches!(self, Event::Platform | Event::Springboard)
    }

    /// Whether it has routines of several elements without a cut.
    pub fn has_routines(self) -> bool {
        matches!(self, Event::Floor | Event::Beam | Event::Bars | Event::Trampoline)
    }
}

/// The direction of rotation, relative to the athlete's facing at the take-off. Reverse and inward exist only in
/// diving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Direction {
    Forward,
    Back,
    Reverse,
    Inward,
}

impl Direction {
    /// The name in the plan.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Back => "back",
            Direction::Reverse => "reverse",
            Direction::Inward => "inward",
        }
    }
}

/// The body position; a giant circle (bars) is a position of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Position {
    Tuck,
    Pike,
    Straight,
    Giant,
}

impl Position {
    /// The name in the plan.
    pub fn name(self) -> &'static str {
        match self {
            Position::Tuck => "tuck",
            Position::Pike => "pike",
            Position::Straight => "straight",
            Position::Giant => "giant",
        }
    }
}

/// A number of whole and half rotations, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Turns {
    /// Half rotations.
    pub halves: u8,
}

impl Turns {
    const fn of(halves: u8) -> Turns {
        Turns { halves }
    }

    /// Number of rotations.
    pub fn count(self) -> f64 {
        f64::from(self.halves) / 2.0
    }

    /// In digits, without a trailing `.0`.
    pub fn digits(self) -> String {
        match self.halves % 2 {
            0 => format!("{}", self.halves / 2),
            _ => format!("{}.5", self.halves / 2),
        }
    }

    /// In words, as TF-CoVR's text normaliser writes them.
    pub fn words(self) -> &'static str {
        const WORDS: [&str; 9] = [
            "zero",
            "half",
            "one",
            "one and a half",
            "two",
            "two and a half",
            "three",
            "three and a half",
            "four",
        ];
        WORDS.get(usize::from(self.halves)).copied().unwrap_or("many")
    }
}

/// One of the five attributes in which two elements can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Attribute {
    Event,
    Direction,
    Somersaults,
    Twists,
    Position,
}

impl Attribute {
    /// All attributes.
    pub const ALL: [Attribute; 5] = [
        Attribute::Event,
        Attribute::Direction,
        Attribute::Somersaults,
        Attribute::Twists,
        Attribute::Position,
    ];

    /// The name in `triplets.jsonl`.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::Event => "event",
            Attribute::Direction => "direction",
            Attribute::Somersaults => "somersaults",
            Attribute::Twists => "twists",
            Attribute::Position => "position",
        }
    }
}

/// An element, as clips show it and labels name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Class {
    pub event: Event,
    pub direction: Direction,
    pub somersaults: Turns,
    pub twists: Turns,
    pub position: Position,
}

impl Class {
    /// The attributes in which two elements differ, in the order of [`Attribute::ALL`].
    pub fn differences(&self, other: &Class) -> Vec<Attribute> {
        let differs = |attribute: &Attribute| match attribute {
            Attribute::Event => self.event != other.event,
            Attribute::Direction => self.direction != other.direction,
            Attribute::Somersaults => self.somersaults != other.somersaults,
            Attribute::Twists => self.twists != other.twists,
            Attribute::Position => self.position != other.position,
        };
        Attribute::ALL.into_iter().filter(differs).collect()
    }

    /// The label, in FineDiving's style for dives and FineGym's for the rest.
    pub fn label(&self) -> String {
        if self.event.is_diving() { self.diving_label() } else { self.gymnastics_label() }
    }

    fn diving_label(&self) -> String {
        let direction = match self.direction {
            Direction::Forward => "Forward",
            Direction::Back => "Back",
            Direction::Reverse => "Reverse",
            Direction::Inward => "Inward",
        };
        let position = match self.position {
            Position::Tuck => "Tuck",
            Position::Pike => "Pike",
            Position::Straight | Position::Giant => "Straight",
        };
        let twists = match self.twists.halves {
            0 => String::new(),
            _ => format!("{} Twists, ", self.twists.digits()),
        };
        let somersaults = self.somersaults.digits();
        format!("({}) {direction}, {twists}{somersaults} Soms.{position}, Entry", self.event.name())
    }

    fn gymnastics_label(&self) -> String {
        let direction = if self.direction == Direction::Forward { "forward" } else { "backward" };
        let multiple = ["", "double ", "triple "];
        let multiple =
            multiple.get(usize::from(self.somersaults.halves / 2).saturating_sub(1)).unwrap_or(&"");
        let turn = match self.twists.halves {
            0 => String::new(),
            _ => format!(" with {} turn", self.twists.digits()),
        };
        let event = self.event.name();
        match self.position {
            Position::Giant => format!("({event}) {multiple}giant circle {direction}{turn}"),
            Position::Tuck => format!("({event}) {multiple}salto {direction} tucked{turn}"),
            Position::Pike => format!("({event}) {multiple}salto {direction} piked{turn}"),
            Position::Straight => format!("({event}) {multiple}salto {direction} stretched{turn}"),
        }
    }
}

/// All elements; an element's index is its class number.
pub fn classes() -> &'static [Class] {
    static CLASSES: LazyLock<Vec<Class>> =
        LazyLock::new(|| Event::ALL.into_iter().flat_map(of_event).collect());
    &CLASSES
}

/// (position, half somersaults, half twists) of one direction.
///
/// Unordered frames show the position, whether the body twists, and the remaining half turns. Each such combination has
/// several counts, so that an order-blind model cannot infer the count.
type Shape = (Position, u8, u8);

const DIVES: [Shape; 12] = [
    (Position::Tuck, 3, 0),
    (Position::Tuck, 5, 0),
    (Position::Tuck, 7, 0),
    (Position::Pike, 3, 0),
    (Position::Pike, 5, 0),
    (Position::Pike, 7, 0),
    (Position::Straight, 3, 3),
    (Position::Straight, 5, 3),
    (Position::Straight, 3, 5),
    (Position::Pike, 3, 3),
    (Position::Pike, 5, 3),
    (Position::Pike, 5, 5),
];

const SALTOS: [Shape; 15] = [
    (Position::Tuck, 4, 0),
    (Position::Tuck, 6, 0),
    (Position::Tuck, 4, 2),
    (Position::Tuck, 6, 2),
    (Position::Pike, 4, 0),
    (Position::Pike, 6, 0),
    (Position::Pike, 4, 2),
    (Position::Pike, 6, 2),
    (Position::Straight, 2, 0),
    (Position::Straight, 4, 0),
    (Position::Straight, 6, 0),
    (Position::Straight, 2, 2),
    (Position::Straight, 2, 4),
    (Position::Straight, 4, 2),
    (Position::Straight, 4, 4),
];

const BARS: [Shape; 16] = [
    (Position::Tuck, 4, 0),
    (Position::Tuck, 6, 0),
    (Position::Tuck, 4, 2),
    (Position::Tuck, 6, 2),
    (Position::Straight, 2, 0),
    (Position::Straight, 4, 0),
    (Position::Straight, 6, 0),
    (Position::Straight, 2, 2),
    (Position::Straight, 2, 4),
    (Position::Straight, 4, 2),
    (Position::Straight, 4, 4),
    (Position::Giant, 2, 0),
    (Position::Giant, 4, 0),
    (Position::Giant, 6, 0),
    (Position::Giant, 2, 2),
    (Position::Giant, 4, 2),
];

fn of_event(event: Event) -> Vec<Class> {
    let class = |direction, &(position, somersaults, twists): &Shape| Class {
        event,
        direction,
        somersaults: Turns::of(somersaults),
        twists: Turns::of(twists),
        position,
    };
    let both = [Direction::Forward, Direction::Back];
    let all = [Direction::Forward, Direction::Back, Direction::Reverse, Direction::Inward];
    let of = |directions: &[Direction], shapes: &[Shape]| -> Vec<Class> {
        directions.iter().flat_map(|it| shapes.iter().map(|shape| class(*it, shape))).collect()
    };
    match event {
        Event::Platform | Event::Springboard => of(&all, &DIVES),
        Event::Bars => of(&both, &BARS),
        _ => of(&both, &SALTOS),
    }
}

/// Two elements that a modification text connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Class number of the query.
    pub query: usize,
    /// Class number of the target.
    pub target: usize,
    /// The changed attributes: one or two.
    pub changes: Vec<Attribute>,
    /// Whether it is excluded from training, in both directions.
    pub held_out: bool,
}

/// All ordered pairs that differ in one or two attributes: dives with dives, gymnastics with gymnastics.
pub fn pairs() -> &'static [Pair] {
    static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
        let classes = classes();
        let number = classes.len();
        (0..number)
            .flat_map(|query| (0..number).map(move |target| (query, target)))
            .filter(|(query, target)| query != target)
            .filter(|(query, target)| classes[*query].event.is_diving() == classes[*target].event.is_diving())
            .filter_map(|(query, target)| {
                let changes = classes[query].differences(&classes[target]);
                let held_out = is_held_out(&classes[query], &classes[target]);
                (changes.len() <= 2).then_some(Pair { query, target, changes, held_out })
            })
            .collect()
    });
    &PAIRS
}

/// Holds out one unordered pair in seven by a hash of both labels: without a list, independent of the seed.
fn is_held_out(one: &Class, other: &Class) -> bool {
    let mut labels = [one.label(), other.label()];
    labels.sort();
    fnv1a(&labels.join("\n")).is_multiple_of(7)
}

/// FNV-1a with folded halves: short, and the same on every machine.
fn fnv1a(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check(class: usize, expected: &str) {
        assert_eq!(classes()[class].label(), expected);
    }

    #[test]
    fn labels_read_as_in_the_papers() {
        check(0, "(Platform) Forward, 1.5 Soms.Tuck, Entry");
        check(10, "(Platform) Forward, 1.5 Twists, 2.5 Soms.Pike, Entry");
        check(96, "(Floor Exercise) double salto forward tucked");
        check(104, "(Floor Exercise) salto forward stretched");
        check(217, "(Uneven Bars) double giant circle backward with 1 turn");
    }

    #[test]
    fn there_are_seven_events_and_more_than_180_labels_that_differ() {
        let labels: BTreeSet<_> = classes().iter().map(Class::label).collect();
        assert_eq!(labels.len(), classes().len());
        assert!(classes().len() >= 180, "{}", classes().len());
        let events: BTreeSet<_> = classes().iter().map(|it| it.event).collect();
        assert_eq!(events.len(), 7);
    }

    #[test]
    fn a_pair_is_held_out_in_both_directions_or_in_none() {
        let held: BTreeSet<_> =
            pairs().iter().filter(|it| it.held_out).map(|it| (it.query, it.target)).collect();
        assert!(held.iter().all(|(query, target)| held.contains(&(*target, *query))));
        let share = held.len() as f64 / pairs().len() as f64;
        assert!((0.10..0.19).contains(&share), "{share}");
    }

    #[test]
    fn query_and_changes_leave_one_target() {
        let mut seen = BTreeSet::new();
        let classes = classes();
        for pair in pairs() {
            let value = |attribute: &Attribute| match attribute {
                Attribute::Event => format!("{:?}", classes[pair.target].event),
                Attribute::Direction => format!("{:?}", classes[pair.target].direction),
                Attribute::Somersaults => classes[pair.target].somersaults.digits(),
                Attribute::Twists => classes[pair.target].twists.digits(),
                Attribute::Position => format!("{:?}", classes[pair.target].position),
            };
            let change: Vec<_> = pair.changes.iter().map(|it| (it, value(it))).collect();
            assert!(seen.insert((pair.query, format!("{change:?}"))));
        }
    }
}
