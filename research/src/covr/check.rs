//! Checks that a modification text names the changed parts and nothing else.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::label::Label;
use super::modification::{ActionChange, Difference, PartChange};
use super::number;

/// Largest number of words in a text: TF-CoVR's text normaliser drops the rest.
pub const LONGEST: usize = 30;

/// Words of a sentence that name no part.
const GLUE: &str = "a add additional again also an and any are as at be but by change complete do does done doing drop \
during each exactly execute exercise extra fewer find finish for from give gymnast diver athlete have i in include \
instead into is it its just keep leave less like lose make me more move movement need no not now of omit on only or \
other perform performed performing please position put rather remove repeat replace routine same see show showing shown \
skip so style switch take than that the them then there these they this time to use version want where while \
with without you your";

/// A text about a removed part must contain one of these words.
const NEGATIONS: [&str; 14] = [
    "without", "no", "not", "drop", "remove", "skip", "omit", "lose", "leave", "single", "just", "only",
    "less", "rather",
];

/// Words that cannot end a sentence.
const DANGLING: [&str; 24] = [
    "a", "an", "and", "as", "at", "before", "but", "by", "for", "from", "in", "into", "of", "off", "on",
    "or", "over", "the", "through", "to", "until", "with", "without", "while",
];

/// The form fault of a text: an unbalanced bracket, or a last word that cannot end a sentence. `None` for a good
/// text.
pub fn torn(text: &str) -> Option<&'static str> {
    let mut open = 0i32;
    for letter in text.chars() {
        open += i32::from(letter == '(') - i32::from(letter == ')');
        if open < 0 {
            return Some("it closes a bracket that it did not open");
        }
    }
    if open != 0 {
        return Some("it does not close its bracket");
    }
    let last = text.split_whitespace().last()?.trim_end_matches(['.', '!', ',']).to_lowercase();
    if DANGLING.contains(&last.as_str()) || last.is_empty() {
        return Some("it breaks off");
    }
    last.parse::<f64>().is_ok().then_some("it ends in a number")
}

/// The fault of `text` as a modification from `query` to `target`. `None` if it names each changed part and no other.
pub fn fault(text: &str, query: &Label, target: &Label) -> Option<String> {
    let number = text.split_whitespace().count();
    if number == 0 || number > LONGEST {
        return Some(format!("it has {number} words, not 1 to {LONGEST}"));
    }
    if let Some(why) = torn(text) {
        return Some(why.to_owned());
    }
    let difference = Difference::between(query, target);
    let said = words(text);
    if let Some(missing) = missing(&difference, &said) {
        return Some(format!("it does not say {missing:?}"));
    }
    let allowed = allowed(&difference, query, target);
    let other = said.iter().find(|it| !allowed.contains(*it))?;
    Some(format!("{other:?} is no part of the change"))
}

/// The first change that the words leave out.
fn missing(difference: &Difference, said: &BTreeSet<String>) -> Option<String> {
    if let Some(event) = difference.event.as_deref().filter(|it| words(it).is_disjoint(said)) {
        return Some(event.to_owned());
    }
    match &difference.action {
        ActionChange::Element(action) => (!words(action).is_subset(said)).then(|| action.clone()),
        ActionChange::Parts(parts) => {
            parts.iter().find(|it| !names(it, said)).map(|it| it.clause().to_owned())
        }
    }
}

fn names(change: &PartChange, said: &BTreeSet<String>) -> bool {
    match (&change.to, &change.from) {
        (Some(to), _) => words(&to.named).is_subset(said),
        (None, Some(from)) => {
            let negated = NEGATIONS.iter().any(|it| said.contains(*it));
            let spoken = words(&from.without);
            (negated && !words(&from.named).is_disjoint(said))
                || (!spoken.is_empty() && spoken.is_subset(said))
        }
        (None, None) => true,
    }
}

/// The words that a text of this change may contain: words of the changed parts of both labels, of the element, and
/// of sentences.
fn allowed(difference: &Difference, query: &Label, target: &Label) -> BTreeSet<String> {
    let mut allowed = words(&target.parts.element);
    allowed.extend(words(&difference.said()));
    allowed.extend(NEGATIONS.map(str::to_owned));
    match &difference.action {
        ActionChange::Element(_) => allowed.extend(words(&query.action())),
        ActionChange::Parts(parts) => {
            for part in parts.iter().flat_map(|it| [&it.from, &it.to]).flatten() {
                allowed.extend([&part.said, &part.named, &part.without].into_iter().flat_map(|it| words(it)));
            }
        }
    }
    if difference.event.is_some() {
        allowed.extend(words(&query.parts.event));
    }
    allowed
}

/// The words of a text that may name a part, without their endings; numbers in words.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let split = text.split(|it: char| !(it.is_alphanumeric() || it == '-' || it == '.'));
    let split = split.map(|it| it.trim_matches(['.', '-'])).filter(|it| !it.is_empty());
    let plain = split.flat_map(|word| match word.parse::<f64>() {
        Ok(_) => number::in_words(word).split(' ').map(str::to_owned).collect(),
        Err(_) => vec![word.to_owned()],
    });
    plain.filter(|it| !is_glue(it)).map(|it| stem(&it)).collect()
}

/// A word of which one must stand in a text about a part that goes.
#[cfg(test)]
pub(super) fn is_negation(stem: &str) -> bool {
    NEGATIONS.iter().any(|it| words(it).contains(stem))
}

fn is_glue(word: &str) -> bool {
    static WORDS: LazyLock<BTreeSet<&str>> =
        LazyLock::new(|| GLUE.split(' ').filter(|it| !NEGATIONS.contains(it)).collect());
    WORDS.contains(word)
}

/// The word without the endings of number and tense.
fn stem(word: &str) -> String {
    let ending =
        ["ing", "ed", "es", "s", "e"].into_iter().find(|it| word.len() > it.len() + 2 && word.ends_with(it));
    ending.map_or(word, |it| &word[..word.len() - it.len()]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::grammar::built_in;
    use super::*;

    #[track_caller]
    fn check(query: &str, target: &str, text: &str, expected: Option<&str>) {
        let grammars = built_in().unwrap();
        let fault = fault(text, &Label::new(query, &grammars), &Label::new(target, &grammars));
        match expected {
            None => assert_eq!(fault, None, "{text:?}"),
            Some(part) => assert!(fault.as_ref().is_some_and(|it| it.contains(part)), "{text:?}: {fault:?}"),
        }
    }

    #[test]
    fn a_text_names_what_changes() {
        let (one, two) =
            ("(FX) salto forward stretched with 1 twist", "(FX) salto forward stretched with 2 twist");
        check(one, two, "show with 2 twists", None);
        check(one, two, "Do two twists instead of one.", None);
        check(one, two, "make the salto with two twists", None);
        check(one, two, "show it with three twists", Some("does not say"));
        check(one, two, "show it the other way", Some("does not say"));
        check(
            "(FX) salto backward tucked",
            "(BB) salto backward tucked",
            "show this on the balance beam",
            None,
        );
        check(
            "(FX) salto backward tucked",
            "(BB) salto backward tucked",
            "show this again",
            Some("balance beam"),
        );
        check("(FX) switch leap with 1 turn", "(FX) switch leap", "drop the turn", None);
        check("(FX) switch leap with 1 turn", "(FX) switch leap", "with the turn", Some("without the turn"));
        check("(FX) stag jump", "(FX) split jump with 0.5 turn", "a split jump with half a turn", None);
        check("(FX) stag jump", "(FX) split jump with 0.5 turn", "a split jump", Some("does not say"));
    }

    #[test]
    fn a_text_names_nothing_else() {
        let (one, two) =
            ("(FX) salto forward stretched with 1 twist", "(FX) salto forward stretched with 2 twist");
        check(one, two, "show with 2 twists on the beam", Some("\"beam\""));
        check(one, two, "a stretched salto with 2 twists", Some("\"stretch\""));
        check(one, two, "show with 2 elegant twists", Some("\"elegant\""));
        check(one, two, &"twists ".repeat(31), Some("31 words"));
        check(one, two, " ", Some("0 words"));
        check(one, two, "show it with 2 twists and", Some("breaks off"));
        check(one, two, "show the twists (2", Some("bracket"));
    }

    #[test]
    fn torn_texts_are_seen() {
        let cases = [
            ("show with backward) forward", true),
            ("the same but with piked 1", true),
            ("show it with (2 turns", true),
            ("now to", true),
            ("show it on balance beam", false),
            ("show (slow) pouring.", false),
        ];
        for (text, expected) in cases {
            assert_eq!(torn(text).is_some(), expected, "{text:?}");
        }
    }
}
