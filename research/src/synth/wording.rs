//! Modification texts and plain descriptions, from templates and synonyms.
//!
//! Training and test draw from different carrier sentences and phrases: held-out ones never occur in training. Both
//! lists are constants.

use super::classes::{Attribute, Class, Direction, Event, Position, Turns};
use super::draw::Draw;

/// The vocabulary of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// For training.
    Training,
    /// Never in a training text.
    HeldOut,
}

/// Carrier sentences of a modification; `{}` is the change.
pub const CARRIERS: [&str; 33] = [
    "{}",
    "show {}",
    "show it {}",
    "show me this {}",
    "show the same {}",
    "the same but {}",
    "the same element {}",
    "this again, {}",
    "this again but {}",
    "change it to be {}",
    "change this to be {}",
    "find one {}",
    "find the one {}",
    "find it {}",
    "i want it {}",
    "i want to see it {}",
    "do it {}",
    "do this {}",
    "now {}",
    "repeat it {}",
    "instead, {}",
    "{} instead",
    "but {}",
    "give me the version {}",
    "the version {}, please",
    "a similar one {}",
    "how would it be {}",
    "is there this {}?",
    "let them do it {}",
    "i am looking for this {}",
    "turn it into one {}",
    "replace it by the one {}",
    "can i see it {}?",
];

/// Carrier sentences of test texts only.
pub const HELD_OUT_CARRIERS: [&str; 7] = [
    "same action, only {}",
    "now show the athlete {}",
    "make it {}",
    "keep everything else, {}",
    "could you find this {}?",
    "what does it look like {}",
    "switch to one {}",
];

/// Beginnings of a description of a dive.
const DIVE_LEADS: [&str; 13] = [
    "a dive ",
    "a diver ",
    "dive ",
    "video of a dive ",
    "a clip of a dive ",
    "someone diving ",
    "show a dive ",
    "find a dive ",
    "diving, ",
    "the diver ",
    "this is a dive ",
    "where is the dive ",
    "we see a diver ",
];
const GYMNASTICS_LEADS: [&str; 13] = [
    "a gymnast ",
    "an element ",
    "gymnastics element ",
    "video of a gymnast ",
    "a clip of a gymnast ",
    "someone doing gymnastics ",
    "show an element ",
    "find an element ",
    "gymnastics, ",
    "the gymnast ",
    "this is gymnastics ",
    "where is the element ",
    "we see a gymnast ",
];
const HELD_OUT_DIVE_LEADS: [&str; 3] = ["clip of a dive ", "here a diver is seen ", "looking for a dive "];
const HELD_OUT_GYMNASTICS_LEADS: [&str; 3] =
    ["clip of a gymnast ", "here a gymnast is seen ", "looking for a gymnastics element "];

/// Sentences about a recording that name no element, direction, twist, somersault or position.
pub const NEUTRAL: [&str; 36] = [
    "The camera pans slowly across the hall.",
    "The crowd is loud today.",
    "Many spectators sit on the upper stands.",
    "The lighting is rather dim in this hall.",
    "The picture shakes a little.",
    "The camera zooms in on the athlete.",
    "Someone in the crowd waves a flag.",
    "The athlete wears a red suit.",
    "The athlete wears dark blue.",
    "The walls are painted green.",
    "The scoreboard shows the result.",
    "There is a pause before the next athlete comes.",
    "The same routine is shown again as a replay.",
    "The replay is slower than the original.",
    "The athlete is tall.",
    "The athlete looks small in the picture.",
    "Water splashes at the end.",
    "The judges write down their marks.",
    "The audience claps for a while.",
    "It is a bright morning.",
    "The recording begins late.",
    "The clip is short.",
    "The picture is a bit blurred.",
    "The hall is almost empty.",
    "The coach stands at the side.",
    "The colours are pale.",
    "The camera stays where it is.",
    "The athlete takes a deep breath.",
    "The music stops.",
    "Nothing else happens for some time.",
    "A clip of a gymnast.",
    "Here a gymnast is seen.",
    "This was filmed at the uneven bars.",
    "The gymnast is on the balance beam.",
    "The diver stands on the platform and waits.",
    "We see a diver at the springboard.",
];

/// A text that turns the query into `target` in the attributes `changes`.
pub fn modification(target: &Class, changes: &[Attribute], wording: Wording, draw: &mut Draw) -> String {
    let mut phrases: Vec<String> = changes.iter().map(|it| phrase(target, *it, wording, draw)).collect();
    draw.shuffle(&mut phrases);
    let joint: &str = draw.pick(&[" and ", " and ", ", "]);
    let carrier = match wording {
        Wording::Training => draw.pick(&CARRIERS),
        Wording::HeldOut => draw.pick(&HELD_OUT_CARRIERS),
    };
    carrier.replace("{}", &phrases.join(joint))
}

/// A plain text that describes an element completely.
pub fn description(class: &Class, wording: Wording, draw: &mut Draw) -> String {
    if wording == Wording::Training && draw.chance(0.3) {
        return class.label();
    }
    let says_no_twist = draw.chance(0.3);
    let mut phrases: Vec<String> = Attribute::ALL
        .into_iter()
        .filter(|it| *it != Attribute::Twists || class.twists.halves > 0 || says_no_twist)
        .map(|it| phrase(class, it, wording, draw))
        .collect();
    draw.shuffle(&mut phrases);
    let lead: &str = match (class.event.is_diving(), wording) {
        (true, Wording::Training) => draw.pick(&DIVE_LEADS),
        (false, Wording::Training) => draw.pick(&GYMNASTICS_LEADS),
        (true, Wording::HeldOut) => draw.pick(&HELD_OUT_DIVE_LEADS),
        (false, Wording::HeldOut) => draw.pick(&HELD_OUT_GYMNASTICS_LEADS),
    };
    let joint: &str = draw.pick(&[", ", ", ", " and "]);
    format!("{lead}{}", phrases.join(joint))
}

/// One attribute in words.
pub fn phrase(class: &Class, attribute: Attribute, wording: Wording, draw: &mut Draw) -> String {
    match attribute {
        Attribute::Event => event(class.event, wording, draw),
        Attribute::Direction => direction(class, wording, draw),
        Attribute::Somersaults => somersaults(class, wording, draw),
        Attribute::Twists => twists(class, wording, draw),
        Attribute::Position => position(class.position, wording, draw),
    }
}

fn event(event: Event, wording: Wording, draw: &mut Draw) -> String {
    let names = match event {
        Event::Platform => ["Platform", "10m platform", "high platform"],
        Event::Springboard => ["Springboard", "3m springboard", "3m board"],
        Event::Floor => ["Floor Exercise", "floor", "FX"],
        Event::Beam => ["Balance Beam", "beam", "BB"],
        Event::Vault => ["Vault", "vaulting table", "VT"],
        Event::Bars => ["Uneven Bars", "bars", "UB"],
        Event::Trampoline => ["Trampoline", "trampoline bed", "TRA"],
    };
    let name = draw.pick(&names);
    let lead = match wording {
        Wording::Training => draw.pick(&[
            "on the ",
            "on ",
            "performed on the ",
            "from the ",
            "at the ",
            "where one uses the ",
            "off the ",
        ]),
        Wording::HeldOut => draw.pick(&["done on the ", "using the ", "over at the "]),
    };
    format!("{lead}{name}")
}

fn direction(class: &Class, wording: Wording, draw: &mut Draw) -> String {
    let gymnast = !class.event.is_diving();
    let word: &str = match class.direction {
        Direction::Forward if gymnast => draw.pick(&["forward", "forward", "forwards"]),
        Direction::Forward => draw.pick(&["forward", "forward", "front"]),
        Direction::Back if gymnast => draw.pick(&["backward", "backward", "backwards"]),
        Direction::Back => draw.pick(&["back", "back", "backward"]),
        Direction::Reverse => "reverse",
        Direction::Inward => "inward",
    };
    match (wording, gymnast) {
        (Wording::Training, true) => draw
            .pick(&[
                "in the {} direction",
                "going {}",
                "rotating {}",
                "turning over {}",
                "{}",
                "in a {} element",
                "started {}",
                "whose direction is {}",
            ])
            .replace("{}", word),
        (Wording::Training, false) => draw
            .pick(&[
                "in the {} direction",
                "going {}",
                "as a {} dive",
                "from the {} group",
                "{}",
                "rotating {}",
                "started {}",
                "whose direction is {}",
            ])
            .replace("{}", word),
        (Wording::HeldOut, _) => {
            draw.pick(&["with a {} takeoff", "done {}", "in {} direction"]).replace("{}", word)
        }
    }
}

/// The number in digits or in words.
fn number(turns: Turns, draw: &mut Draw) -> String {
    if draw.chance(0.5) { turns.digits() } else { turns.words().to_owned() }
}

fn somersaults(class: &Class, wording: Wording, draw: &mut Draw) -> String {
    let count = class.somersaults;
    if class.event.is_diving() {
        let noun = match count.halves {
            0..=2 => draw.pick(&["somersault", "som"]),
            _ => draw.pick(&["somersaults", "soms"]),
        };
        let number = number(count, draw);
        return match wording {
            Wording::Training => match draw.below(8) {
                0 => format!("{noun} {number}"),
                1 => format!("whose number of {noun} is {number}"),
                2 => format!("turning {number} {noun}"),
                _ => format!("{} {number} {noun}", draw.pick(&["with", "having", "in", "doing", "and"])),
            },
            Wording::HeldOut => match draw.below(3) {
                0 => format!("that has {number} {noun}"),
                1 => format!("{noun}: {number}"),
                _ => format!("making {number} {noun}"),
            },
        };
    }
    let (multiple, repeated) = match count.halves {
        0..=2 => ("single", "once"),
        3..=4 => ("double", "twice"),
        _ => ("triple", "three times"),
    };
    let noun = match (class.position, count.halves) {
        (Position::Giant, 0..=2) => draw.pick(&["giant circle", "circle", "giant"]),
        (Position::Giant, _) => draw.pick(&["giant circles", "circles", "giants"]),
        (_, 0..=2) => draw.pick(&["salto", "somersault", "flip"]),
        _ => draw.pick(&["saltos", "somersaults", "flips"]),
    };
    let singular = noun.trim_end_matches('s');
    let number = number(count, draw);
    match wording {
        Wording::Training => match draw.below(8) {
            0 => format!("with a {multiple} {singular}"),
            1 => format!("as a {multiple} {singular}"),
            2 => format!("with {number} {noun}"),
            3 => format!("turning over {repeated}"),
            4 => format!("{multiple} {singular}"),
            5 => format!("showing {number} {noun}"),
            6 => format!("having {number} {noun}"),
            _ => format!("doing {number} {noun}"),
        },
        Wording::HeldOut => match draw.below(3) {
            0 => format!("in a {multiple} {singular}"),
            1 => format!("that has {number} {noun}"),
            _ => format!("making {number} {noun}"),
        },
    }
}

fn twists(class: &Class, wording: Wording, draw: &mut Draw) -> String {
    let count = class.twists;
    let noun = match count.halves {
        1..=2 => draw.pick(&["twist", "turn"]),
        _ => draw.pick(&["twists", "turns"]),
    };
    if count.halves == 0 {
        return match wording {
            Wording::Training => match draw.below(6) {
                0 => format!("without {noun}"),
                1 => format!("with no {noun}"),
                2 => format!("with zero {noun}"),
                3 => format!("no {noun}"),
                4 => format!("showing no {noun} at all"),
                _ => "without twisting".to_owned(),
            },
            Wording::HeldOut => match draw.below(2) {
                0 => format!("without any {noun}"),
                _ => format!("having no {noun}"),
            },
        };
    }
    let number = number(count, draw);
    match wording {
        Wording::Training => match draw.below(8) {
            0 => format!("and {number} {noun}"),
            1 => format!("having {number} {noun}"),
            2 => format!("adding {number} {noun}"),
            3 => format!("twisting {number} {noun}"),
            4 => format!("showing {number} {noun}"),
            5 => format!("{number} {noun}"),
            _ => format!("with {number} {noun}"),
        },
        Wording::HeldOut => match draw.below(3) {
            0 => format!("that has {number} {noun}"),
            1 => format!("including {number} {noun}"),
            _ => format!("making {number} {noun}"),
        },
    }
}

fn position(position: Position, wording: Wording, draw: &mut Draw) -> String {
    let phrases: &[&str] = match (position, wording) {
        (Position::Tuck, Wording::Training) => &[
            "tucked",
            "in tuck position",
            "in a tuck",
            "with a tucked body",
            "with the knees tucked",
            "tuck",
            "whose position is tucked",
            "keeping a tight tuck",
        ],
        (Position::Tuck, Wording::HeldOut) => {
            &["in the tucked position", "holding a tuck", "in tucked shape"]
        }
        (Position::Pike, Wording::Training) => &[
            "piked",
            "in pike position",
            "in a pike",
            "with a piked body",
            "with the hips piked",
            "pike",
            "whose position is piked",
            "keeping a tight pike",
        ],
        (Position::Pike, Wording::HeldOut) => &["in the piked position", "holding a pike", "in piked shape"],
        (Position::Straight, Wording::Training) => &[
            "stretched",
            "in straight position",
            "straight",
            "with a straight body",
            "with a stretched body",
            "in layout",
            "whose position is stretched",
            "keeping a straight body",
        ],
        (Position::Straight, Wording::HeldOut) => {
            &["in the stretched position", "holding a straight line", "in straight shape"]
        }
        (Position::Giant, Wording::Training) => &[
            "as a giant circle",
            "in giant circles",
            "as a giant",
            "with giant circles around the bar",
            "giant circle",
            "whose position is that of a giant",
            "circling the bar in giants",
        ],
        (Position::Giant, Wording::HeldOut) => {
            &["in the form of a giant circle", "holding the bar in a giant", "in giant shape"]
        }
    };
    draw.one_of(phrases).copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::classes::{classes, pairs};
    use super::super::draw::Purpose;
    use super::*;

    fn draw(index: u64) -> Draw {
        Draw::new(5, 0, Purpose::Modification, index)
    }

    fn texts(wording: Wording, seed: u64) -> BTreeSet<String> {
        let mut draw = draw(seed);
        let of_pair = |pair: &super::super::classes::Pair| {
            modification(&classes()[pair.target], &pair.changes, wording, &mut draw)
        };
        pairs().iter().step_by(3).map(of_pair).collect()
    }

    #[track_caller]
    fn check(text: &str, words: &[&str]) {
        assert!(words.iter().all(|it| text.contains(it)), "{text:?} lacks one of {words:?}");
    }

    #[test]
    fn no_test_text_is_a_training_text() {
        let training: BTreeSet<_> = (0..5).flat_map(|seed| texts(Wording::Training, seed)).collect();
        let held_out = texts(Wording::HeldOut, 99);
        assert!(training.is_disjoint(&held_out));
        assert!(training.len() > 1000);
    }

    #[test]
    fn carriers_are_at_least_twenty_and_none_is_on_both_lists() {
        let training: BTreeSet<_> = CARRIERS.iter().collect();
        assert!(training.len() >= 20);
        assert!(HELD_OUT_CARRIERS.iter().all(|it| !training.contains(it)));
        assert!(CARRIERS.iter().chain(&HELD_OUT_CARRIERS).all(|it| it.matches("{}").count() == 1));
    }

    #[test]
    fn a_modification_names_everything_that_changes() {
        for (at, pair) in pairs().iter().enumerate().step_by(17) {
            let target = &classes()[pair.target];
            for wording in [Wording::Training, Wording::HeldOut] {
                let text = modification(target, &pair.changes, wording, &mut draw(at as u64));
                if pair.changes.contains(&Attribute::Twists) && target.twists.halves > 2 {
                    let digits = target.twists.digits();
                    let words = target.twists.words();
                    check(&text, &[if text.contains(&digits) { &digits } else { words }]);
                }
                if pair.changes.contains(&Attribute::Position) && target.position == Position::Tuck {
                    check(&text, &["tuck"]);
                }
            }
        }
    }

    #[test]
    fn neutral_sentences_name_nothing_that_tells_elements_apart() {
        let telling = "salto somersault som flip twist turn tuck pike straight stretch layout giant circle forward \
                       back front reverse inward single double triple half one two three";
        let telling: BTreeSet<&str> = telling.split_whitespace().collect();
        for sentence in NEUTRAL {
            let words = sentence.to_lowercase();
            let mut words = words.split(|letter: char| !letter.is_alphabetic());
            assert!(!words.any(|word| telling.contains(word.trim_end_matches('s'))), "{sentence}");
        }
    }

    #[test]
    fn modifications_are_as_long_as_in_the_paper() {
        let texts = texts(Wording::Training, 3);
        let words: Vec<_> = texts.iter().map(|it| it.split_whitespace().count()).collect();
        assert!(words.iter().all(|it| (1..=19).contains(it)), "{:?}", words.iter().max());
    }
}
