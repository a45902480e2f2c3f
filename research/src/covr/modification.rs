//! Differences between two labels, and sentences that describe them.

use super::grammar::Part;
use super::label::Label;
use crate::synth::draw::Draw;

/// The difference between a query's label and its target's label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Clause for the target's event, if it differs: "on balance beam".
    pub event: Option<String>,
    /// The change of the action.
    pub action: ActionChange,
}

/// The change of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionChange {
    /// Another element, or too many changed parts to list. Holds the target's action with all its parts, "a split
    /// jump with one turn".
    Element(String),
    /// The same element with other parts. Empty if the parts are equal.
    Parts(Vec<PartChange>),
}

/// A changed part. At least one side is `Some`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartChange {
    /// The query's part.
    pub from: Option<Part>,
    /// The target's part.
    pub to: Option<Part>,
}

impl PartChange {
    /// The change as a clause: "with two twists", "without the turn".
    pub fn clause(&self) -> &str {
        match (&self.to, &self.from) {
            (Some(to), _) => &to.said,
            (None, Some(from)) => &from.without,
            (None, None) => "",
        }
    }
}

/// Largest number of changes that a sentence lists. A person would not list more.
const MOST_CLAUSES: usize = 3;

/// Sentences of the same element with other parts.
const OF_PARTS: [&str; 8] = [
    "show it {}",
    "the same but {}",
    "do it {}",
    "now {}",
    "find it {}",
    "i want it {}",
    "repeat it {}",
    "this again, but {}",
];

/// Sentences of another element.
const OF_ELEMENT: [&str; 8] = [
    "show {}",
    "change it to {}",
    "find {}",
    "now {}",
    "make it {}",
    "i want {}",
    "switch to {}",
    "replace it with {}",
];

impl Difference {
    /// The change from `query` to `target`. For one query, targets with different parts have different differences.
    pub fn between(query: &Label, target: &Label) -> Difference {
        let (from, to) = (&query.parts, &target.parts);
        let event = (from.event != to.event).then(|| match to.event.as_str() {
            "" => format!("not on {}", from.event),
            event => format!("on {event}"),
        });
        let changes = part_changes(&from.others, &to.others);
        let same_element = from.element.eq_ignore_ascii_case(&to.element);
        let few = changes.is_empty() || (event.is_none() && changes.len() <= MOST_CLAUSES);
        let action = match same_element && few {
            true => ActionChange::Parts(changes),
            false => ActionChange::Element(target.action()),
        };
        Difference { event, action }
    }

    /// The wording of the difference: "with two twists and on balance beam", "a split jump".
    pub fn said(&self) -> String {
        match &self.action {
            ActionChange::Element(action) => match &self.event {
                Some(event) => format!("{action} {event}"),
                None => action.clone(),
            },
            ActionChange::Parts(parts) => {
                let clauses = parts.iter().map(PartChange::clause).chain(self.event.as_deref());
                joined(&clauses.collect::<Vec<_>>())
            }
        }
    }

    /// The first of the sentences, "show it piked".
    pub fn sentence(&self) -> String {
        self.carriers()[0].replace("{}", &self.said())
    }

    /// Another sentence for each draw.
    pub fn drawn_sentence(&self, draw: &mut Draw) -> String {
        draw.pick(self.carriers()).replace("{}", &self.said())
    }

    fn carriers(&self) -> &'static [&'static str; 8] {
        match self.action {
            ActionChange::Element(_) => &OF_ELEMENT,
            ActionChange::Parts(_) => &OF_PARTS,
        }
    }
}

/// The parts that differ, in the order in which they are said.
fn part_changes(from: &[Part], to: &[Part]) -> Vec<PartChange> {
    let lost = from.iter().filter(|it| !to.iter().any(|other| other.kind == it.kind));
    let lost = lost.map(|it| PartChange { from: Some(it.clone()), to: None });
    let gained = to.iter().filter(|it| !from.contains(it)).map(|it| {
        let before = from.iter().find(|other| other.kind == it.kind);
        PartChange { from: before.cloned(), to: Some(it.clone()) }
    });
    let mut changes: Vec<PartChange> = lost.chain(gained).collect();
    changes.sort_by(|a, b| a.to.as_ref().or(a.from.as_ref()).cmp(&b.to.as_ref().or(b.from.as_ref())));
    changes
}

/// "a", "a and b", "a, b and c".
fn joined(clauses: &[&str]) -> String {
    match clauses {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::grammar::built_in;
    use super::*;
    use crate::synth::draw::Purpose;

    #[track_caller]
    fn check(query: &str, target: &str, expected: &str) {
        let grammars = built_in().unwrap();
        let difference = Difference::between(&Label::new(query, &grammars), &Label::new(target, &grammars));
        assert_eq!(difference.sentence(), expected);
        let drawn = difference.drawn_sentence(&mut Draw::new(1, 0, Purpose::Modification, 0));
        assert!(drawn.contains(&difference.said()), "{drawn:?}");
    }

    #[test]
    fn sentences_name_the_parts_that_change() {
        check("(FX) salto forward tucked", "(FX) salto forward piked", "show it piked");
        check("(FX) switch leap", "(FX) switch leap with 1 turn", "show it with one turn");
        check("(FX) switch leap with 1 turn", "(FX) switch leap", "show it without the turn");
        check(
            "(BB) 1 turn on one leg, free leg optional below horizontal",
            "(BB) 2 turn on one leg, free leg optional below horizontal",
            "show it with two turns",
        );
        check("(FX) salto backward tucked", "(BB) salto backward tucked", "show it on balance beam");
        check(
            "(BB) salto backward tucked",
            "(BB) double salto backward piked",
            "show it as a double salto and piked",
        );
        check(
            "(FX) double salto backward tucked",
            "(FX) salto backward stretched with 3 twist",
            "show it as a single salto, stretched and with three twists",
        );
        check(
            "Forward, 1.5 Soms.Pike, Entry",
            "Inward, 1.5 Soms.Tuck, Entry",
            "show it as an inward dive and in tuck position",
        );
        check(
            "Back+15som+05Twis+FREE",
            "Back+25som+NoTwis+FREE",
            "show it with two and a half somersaults and without the twist",
        );
    }

    #[test]
    fn another_element_is_named_with_all_its_parts() {
        check(
            "(FX) split leap with 1 turn",
            "(FX) split jump with 1 turn",
            "show a split jump with one turn",
        );
        check(
            "(FX) switch leap",
            "(FX) salto backward stretched with 2.5 twist",
            "show a salto backward stretched with two and a half twists",
        );
        check(
            "(FX) split jump",
            "(BB) wolf hop or jump (hip angle at 45, knees together)",
            "show a wolf jump on balance beam",
        );
        check("pouring", "(kitchen) stirring", "show stirring on kitchen");
    }
}
