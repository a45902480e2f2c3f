//! Labels of annotated footage, such as `(VT) round-off, flic-flac on`, and their parts.

use super::grammar::{Grammar, Part, Parts};

/// A label with its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The whole label.
    pub text: String,
    /// The label's parts.
    pub parts: Parts,
}

impl Label {
    /// Parses a label with the first grammar that covers all its words. Without such a grammar, the text in the first
    /// brackets is the event, and the rest is the element.
    pub fn new(text: &str, grammars: &[Grammar]) -> Label {
        let text = text.trim();
        let known = grammars.iter().find_map(|it| it.parts(text));
        Label { text: text.to_owned(), parts: known.unwrap_or_else(|| whole(text, grammars)) }
    }

    /// Whether two labels have the same action: equal elements and parts. The events may differ.
    pub fn same_action(&self, other: &Label) -> bool {
        self.parts.element.eq_ignore_ascii_case(&other.parts.element)
            && self.parts.others == other.parts.others
    }

    /// The wording of the action, without the event: "a double salto backward tucked with one twist".
    pub fn action(&self) -> String {
        let Parts { element, article, others, .. } = &self.parts;
        let counted = others.iter().find(|it| it.counts(element));
        let (before, after): (Vec<&Part>, Vec<&Part>) =
            others.iter().filter(|it| Some(*it) != counted).partition(|it| it.before);
        let mut words: Vec<&str> = before.iter().map(|it| it.named.as_str()).collect();
        let rest = counted.map(|it| (it.named.trim_start_matches("with "), without_first(element)));
        match rest {
            Some((number, rest)) => words.extend([number, rest]),
            None => words.push(element),
        }
        for (at, part) in after.iter().enumerate() {
            // "with two somersaults and one twist"
            let again = at > 0 && after[at - 1].named.starts_with("with ");
            match part.named.strip_prefix("with ").filter(|_| again) {
                Some(rest) => words.extend(["and", rest]),
                None => words.push(&part.named),
            }
        }
        words.retain(|it| !it.is_empty());
        let said = words.join(" ");
        if *article && counted.is_none() { with_article(&said) } else { said }
    }

    /// The wording of the whole label.
    pub fn said(&self) -> String {
        match self.parts.event.as_str() {
            "" => self.action(),
            event => format!("{} on {event}", self.action()),
        }
    }
}

impl Part {
    /// Whether the part counts the first word of `element`: two turns of "turn on one leg".
    fn counts(&self, element: &str) -> bool {
        let first = element.split(' ').next();
        self.noun.is_some() && self.noun.as_deref() == first && self.named.starts_with("with ")
    }
}

fn without_first(element: &str) -> &str {
    element.split_once(' ').map_or("", |(_, rest)| rest)
}

fn with_article(said: &str) -> String {
    let article = if said.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {said}")
}

/// Event and action of a label that no grammar covers.
fn whole(text: &str, grammars: &[Grammar]) -> Parts {
    let split = text.strip_prefix('(').and_then(|it| it.split_once(')'));
    let (code, action) = split.map_or(("", text), |(event, action)| (event.trim(), action.trim()));
    let named = grammars.iter().find_map(|it| it.events.get(code));
    let element = if action.is_empty() { text } else { action };
    Parts {
        event: named.map_or(code, String::as_str).to_owned(),
        element: element.to_owned(),
        article: false,
        others: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::grammar::built_in;
    use super::*;

    #[track_caller]
    fn check(label: &str, event: &str, action: &str) {
        let label = Label::new(label, &built_in().unwrap());
        assert_eq!((label.parts.event.as_str(), label.action().as_str()), (event, action));
    }

    #[test]
    fn labels_are_said_as_a_coach_says_them() {
        check(" (UB) giant circle backward", "uneven bars", "a giant circle backward");
        check("(FX) arabian double salto tucked", "floor exercise", "a double arabian salto tucked");
        check(
            "(FX) 2 turn on one leg, free leg optional below horizontal",
            "floor exercise",
            "two turns on one leg",
        );
        check(
            "Back+2som+15Twis+FREE",
            "diving",
            "a back dive with two somersaults and one and a half twists in free position",
        );
        check("(BB) free aerial round-off", "balance beam", "an aerial round-off");
        check(
            "Inward, 3.5 Soms.Tuck, Entry",
            "diving",
            "an inward dive with three and a half somersaults in tuck position with the entry",
        );
    }

    #[test]
    fn unknown_labels_stay_whole() {
        check("pouring (slowly)", "", "pouring (slowly)");
        check("(BB) handstand, held", "balance beam", "handstand, held");
        check("(kitchen) pouring", "kitchen", "pouring");
        check("(FX)", "floor exercise", "(FX)");
    }

    #[test]
    fn explanations_and_spellings_make_no_other_action() {
        let grammars = built_in().unwrap();
        let same =
            |one: &str, other: &str| Label::new(one, &grammars).same_action(&Label::new(other, &grammars));
        assert!(same("(FX) switch leap (leap forward with leg change to cross split)", "(BB) switch leap"));
        assert!(same("(FX) aerial cartwheel", "(BB) free aerial cartwheel"));
        assert!(!same("(FX) salto forward tucked", "(BB) salto forward piked"));
        assert!(same("(a) Pouring", "(b) pouring"));
    }
}
