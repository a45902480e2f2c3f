//! Grammars of label sets, as data. A grammar assigns the words of a label to parts, and gives the wording of each
//! part.
//!
//! A grammar parses a label only if it covers every word. Otherwise [`super::label::Label`] takes the label whole. So
//! no part is cut from the middle of a label.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::CovrError;
use super::number;
use reprise_encoders::Cause;

/// Structure of the labels of one set. Comparison ignores case. `#` in a phrase stands for any number.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    /// The set's name.
    pub name: String,
    /// Events by the code in a label's first brackets, in words: `"VT": "vault"`.
    #[serde(default)]
    pub events: BTreeMap<String, String>,
    /// The event of labels without brackets.
    #[serde(default)]
    event: String,
    /// The element of labels that name none, e.g. "dive" in a list of dives.
    #[serde(default)]
    element: String,
    /// Whether elements take an article.
    #[serde(default)]
    article: bool,
    /// Characters that separate words, besides white space. A full stop between two digits never separates.
    #[serde(default)]
    split: String,
    /// Whether to ignore the text in later brackets, because it only explains.
    #[serde(default)]
    asides: bool,
    /// Whether numbers stand before their noun without a space, and two digits without their decimal point: `15som`
    /// is 1.5 som.
    #[serde(default)]
    tenths: bool,
    /// Texts to replace before anything else, in order.
    #[serde(default)]
    rewrite: Vec<[String; 2]>,
    /// Every element.
    #[serde(default)]
    elements: Vec<Phrase>,
    /// The other parts, in the order of their wording.
    parts: Vec<Kind>,
    /// Phrases without a meaning of their own.
    #[serde(default)]
    ignored: Vec<String>,
}

/// One kind of part, such as a position.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    /// Whether the wording comes before the element.
    #[serde(default)]
    before: bool,
    phrases: Vec<Phrase>,
}

/// A phrase in labels, and its wordings. In a wording, `{twist}` becomes the number with that noun, and `{element}`
/// the element.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phrase {
    label: String,
    /// Wording for a known element: "show it ...".
    say: String,
    /// Wording next to the element. Default: `say`.
    named: Option<String>,
    /// Wording for a target without the part. Default: "not ...".
    without: Option<String>,
}

/// A part of a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    /// The kind's place in the grammar.
    at: usize,
    /// The kind: "direction", "turns".
    pub kind: String,
    /// Wording of the part for a known element: "with one turn".
    pub said: String,
    /// Wording of the part next to its element.
    pub(super) named: String,
    /// Wording for a target without the part: "without the turn".
    pub without: String,
    /// Whether the wording comes before the element.
    pub(super) before: bool,
    /// The counted noun: "turn". `None` for a part without a number.
    pub(super) noun: Option<String>,
}

/// A label in parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parts {
    /// The event in words; empty if the label names none.
    pub event: String,
    /// The element of the action, without the other parts: "salto". The whole action if no grammar covers the label.
    pub element: String,
    /// Whether the element takes an article.
    pub(super) article: bool,
    /// The other parts in the order of their wording, at most one of a kind.
    pub others: Vec<Part>,
}

const BUILT_IN: [&str; 3] = [
    include_str!("grammars/finegym.json"),
    include_str!("grammars/finediving.json"),
    include_str!("grammars/diving48.json"),
];

/// The grammars of FineGym, FineDiving and Diving48.
///
/// # Errors
/// A built-in grammar is invalid. A test reads all of them.
pub fn built_in() -> Result<Vec<Grammar>, CovrError> {
    let read = |text: &&str| serde_json::from_str(text).map_err(|error| wrong("built-in", error.into()));
    BUILT_IN.iter().map(read).collect()
}

/// Reads a user's grammar: a JSON file like the files in `research/src/covr/grammars`.
///
/// # Errors
/// The file cannot be read or has another form.
pub fn read(path: &Path) -> Result<Grammar, CovrError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&file, error.into()))?;
    serde_json::from_str(&text).map_err(|error| wrong(&file, error.into()))
}

fn wrong(name: &str, reason: Cause) -> CovrError {
    CovrError::Grammar { name: name.to_owned(), reason }
}

/// Meaning of a phrase in a grammar.
#[derive(Clone, Copy)]
enum Meaning<'a> {
    Element(&'a Phrase),
    Other(usize, &'a Phrase),
    Nothing,
}

/// A phrase found in a label.
struct Found<'a> {
    words: usize,
    number: Option<String>,
    meaning: Meaning<'a>,
}

impl Grammar {
    /// The parts of a label; `None` if a word of it is unknown, or if a kind occurs twice.
    pub fn parts(&self, label: &str) -> Option<Parts> {
        let (event, action) = self.event_of(label.trim())?;
        let action = self.rewrite.iter().fold(action, |text, [from, to]| text.replace(from.as_str(), to));
        let words = self.words(&if self.asides { without_asides(&action) } else { action });
        let (mut elements, mut others): (Vec<&str>, Vec<Part>) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < words.len() {
            let found = self.longest(&words[at..])?;
            at += found.words;
            match found.meaning {
                Meaning::Element(phrase) => elements.push(&phrase.say),
                Meaning::Other(kind, phrase) => others.push(self.part(kind, phrase, found.number)),
                Meaning::Nothing => {}
            }
        }
        let element = match elements.as_slice() {
            [] => self.element.clone(),
            [one] => (*one).to_owned(),
            _ => return None,
        };
        others.sort();
        let twice = others.windows(2).any(|it| it[0].at == it[1].at);
        if twice || element.is_empty() {
            return None;
        }
        for part in &mut others {
            for text in [&mut part.said, &mut part.named, &mut part.without] {
                *text = text.replace("{element}", &element);
            }
        }
        Some(Parts { event, element, article: self.article, others })
    }

    /// The event's words and the rest of the label; `None` for an event of another grammar.
    fn event_of(&self, label: &str) -> Option<(String, String)> {
        if self.events.is_empty() {
            return Some((self.event.clone(), label.to_owned()));
        }
        let (code, action) = label.strip_prefix('(')?.split_once(')')?;
        Some((self.events.get(code.trim())?.clone(), action.trim().to_owned()))
    }

    fn words(&self, text: &str) -> Vec<String> {
        let letters: Vec<char> = text.to_lowercase().chars().collect();
        let digit = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
        let mut spaced = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let point = *letter == '.' && digit(at.checked_sub(1)) && digit(Some(at + 1));
            if self.tenths && letter.is_alphabetic() && digit(at.checked_sub(1)) {
                spaced.push(' ');
            }
            spaced.push(if !point && self.split.contains(*letter) { ' ' } else { *letter });
        }
        spaced
            .split_whitespace()
            .map(|word| if self.tenths { with_point(word) } else { word.to_owned() })
            .collect()
    }

    /// The longest phrase with which `words` begin.
    fn longest(&self, words: &[String]) -> Option<Found<'_>> {
        let elements = self.elements.iter().map(|it| (it.label.as_str(), Meaning::Element(it)));
        let others = self.parts.iter().enumerate().flat_map(|(at, kind)| {
            kind.phrases.iter().map(move |it| (it.label.as_str(), Meaning::Other(at, it)))
        });
        let ignored = self.ignored.iter().map(|it| (it.as_str(), Meaning::Nothing));
        let all = elements.chain(others).chain(ignored);
        all.filter_map(|(phrase, meaning)| self.matched(words, phrase, meaning)).max_by_key(|it| it.words)
    }

    fn matched<'a>(&self, words: &[String], phrase: &str, meaning: Meaning<'a>) -> Option<Found<'a>> {
        let phrase = self.words(phrase);
        let mut number = None;
        let fits = |(pattern, word): (&String, &String)| {
            if pattern == "#" && word.parse::<f64>().is_ok() {
                number = Some(word.clone());
                return true;
            }
            pattern == word
        };
        let matches = words.len() >= phrase.len() && phrase.iter().zip(words).all(fits);
        matches.then_some(Found { words: phrase.len(), number, meaning })
    }

    fn part(&self, at: usize, phrase: &Phrase, number: Option<String>) -> Part {
        let kind = &self.parts[at];
        let noun = noun(&phrase.say);
        let counted = |text: &str| match (&noun, &number) {
            (Some(noun), Some(number)) => {
                text.replace(&format!("{{{noun}}}"), &number::counted(number, noun))
            }
            _ => text.to_owned(),
        };
        let said = counted(&phrase.say);
        Part {
            at,
            kind: kind.name.clone(),
            named: phrase.named.as_deref().map_or_else(|| said.clone(), counted),
            without: phrase.without.as_deref().map_or_else(|| format!("not {said}"), counted),
            before: kind.before,
            noun,
            said,
        }
    }
}

/// The noun of the first placeholder of a text that counts something.
fn noun(text: &str) -> Option<String> {
    let inside = text.split_once('{')?.1.split_once('}')?.0;
    (inside != "element").then(|| inside.to_owned())
}

/// The text outside brackets.
fn without_asides(text: &str) -> String {
    let mut depth = 0usize;
    let outside = text.chars().filter(|it| match it {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    });
    outside.collect()
}

/// Two digits with the point that they lack; other words as they are.
fn with_point(word: &str) -> String {
    match word.as_bytes() {
        [tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit() => {
            format!("{}.{}", &word[..1], &word[1..])
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(grammar: usize, label: &str, expected: Option<&[&str]>) {
        let parts = built_in().unwrap()[grammar].parts(label);
        let said = parts.map(|it| {
            let others = it.others.iter().map(|it| it.said.clone());
            [it.event, it.element].into_iter().chain(others).collect::<Vec<_>>()
        });
        assert_eq!(said, expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect()));
    }

    #[test]
    fn labels_fall_into_parts() {
        let vault = "(VT) round-off, flic-flac with 0.5 turn on, stretched salto forward with 1.5 turn off";
        check(
            0,
            vault,
            Some(&[
                "vault",
                "salto",
                "forward",
                "stretched",
                "with one and a half turns",
                "after a round-off and a flic-flac with half a turn",
            ]),
        );
        check(
            0,
            "(FX) split jump (leg separation 180 degree parallel to the floor)",
            Some(&["floor exercise", "split jump"]),
        );
        check(
            0,
            "(UB) (swing forward) double salto backward tucked with 1 turn",
            Some(&[
                "uneven bars",
                "salto",
                "as a double salto",
                "backward",
                "tucked",
                "with one turn",
                "from a swing forward",
            ]),
        );
        check(
            1,
            "Back, 1.5 Twists, 2.5 Soms.Pike, Entry",
            Some(&[
                "diving",
                "dive",
                "as a back dive",
                "with two and a half somersaults",
                "with one and a half twists",
                "in pike position",
                "with the entry",
            ]),
        );
        check(
            2,
            "Back+15som+05Twis+FREE",
            Some(&[
                "diving",
                "dive",
                "as a back dive",
                "with one and a half somersaults",
                "with half a twist",
                "in free position",
            ]),
        );
    }

    #[test]
    fn a_label_with_an_unknown_word_is_left_alone() {
        check(0, "(FX) salto forward tucked blindfolded", None);
        check(0, "(XX) salto forward tucked", None);
        check(0, "salto forward tucked", None);
        check(0, "(FX) salto tucked piked", None);
        check(1, "Forward, somewhere, Entry", None);
        check(2, "Forward+15som+NoTwis+SIDE", None);
        check(2, "", Some(&["diving", "dive"]));
    }

    #[test]
    fn a_users_grammar_is_read_and_a_wrong_one_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.json");
        let phrase = r#"{"label": "from the # side", "say": "from {side}"}"#;
        let text = format!(
            r#"{{"name": "mine", "elements": [], "element": "pour", "parts": [{{"name": "side", "phrases": [{phrase}]}}]}}"#
        );
        std::fs::write(&path, text).unwrap();
        let parts = read(&path).unwrap().parts("From the 2 side").unwrap();
        assert_eq!(parts.others[0].said, "from two sides");
        std::fs::write(&path, r#"{"name": "mine", "parts": [], "colour": 1}"#).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("colour"));
    }
}
