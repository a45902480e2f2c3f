//! English text as Whisper's normaliser writes it (arXiv 2212.04356, appendix C): contractions and titles in full, numbers in
//! digits, American spelling, no fillers.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::numbers::in_digits;
use super::rule::{Rule, rules};

/// Before symbols are dropped, in order.
const FIRST: &[(&str, &str)] = &[
    // What stands in brackets.
    (r"[<\[][^>\]]*[>\]]", ""),
    (r"\([^)]+?\)", ""),
    (r"\b(hmm|mm|mhm|mmm|uh|um)\b", ""),
    (r"\s+'", "'"),
    (r"\bwon't\b", "will not"),
    (r"\bcan't\b", "can not"),
    (r"\blet's\b", "let us"),
    (r"\bain't\b", "aint"),
    (r"\by'all\b", "you all"),
    (r"\bwanna\b", "want to"),
    (r"\bgotta\b", "got to"),
    (r"\bgonna\b", "going to"),
    (r"\bi'ma\b", "i am going to"),
    (r"\bimma\b", "i am going to"),
    (r"\bwoulda\b", "would have"),
    (r"\bcoulda\b", "could have"),
    (r"\bshoulda\b", "should have"),
    (r"\bma'am\b", "madam"),
    (r"\bmr\b", "mister "),
    (r"\bmrs\b", "missus "),
    (r"\bst\b", "saint "),
    (r"\bdr\b", "doctor "),
    (r"\bprof\b", "professor "),
    (r"\bcapt\b", "captain "),
    (r"\bgov\b", "governor "),
    (r"\bald\b", "alderman "),
    (r"\bgen\b", "general "),
    (r"\bsen\b", "senator "),
    (r"\brep\b", "representative "),
    (r"\bpres\b", "president "),
    (r"\brev\b", "reverend "),
    (r"\bhon\b", "honorable "),
    (r"\basst\b", "assistant "),
    (r"\bassoc\b", "associate "),
    (r"\blt\b", "lieutenant "),
    (r"\bcol\b", "colonel "),
    (r"\bjr\b", "junior "),
    (r"\bsr\b", "senior "),
    (r"\besq\b", "esquire "),
    (r"'d been\b", " had been"),
    (r"'s been\b", " has been"),
    (r"'d gone\b", " had gone"),
    (r"'s gone\b", " has gone"),
    (r"'d done\b", " had done"),
    (r"'s got\b", " has got"),
    (r"n't\b", " not"),
    (r"'re\b", " are"),
    (r"'s\b", " is"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    (r"'t\b", " not"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
    // Commas inside of numbers; full stops outside.
    (r"(\d),(\d)", "${1}${2}"),
    (r"\.([^0-9]|$)", " ${1}"),
];
/// Marks and symbols, but for those of numbers.
const SYMBOLS: &[(&str, &str)] = &[(r"\p{Mn}", ""), (r"[\p{M}\p{S}\p{P}&&[^.%$¢€£]]", " ")];
/// Symbols of numbers that stand alone.
const LAST: &[(&str, &str)] = &[(r"[.$¢€£]([^0-9])", " ${1}"), (r"([^0-9])%", "${1} ")];

static FIRST_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(FIRST));
static SYMBOL_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(SYMBOLS));
static LAST_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(LAST));
/// British spelling to American (https://www.tysto.com/uk-us-spelling-list.html, as the reference has it).
static SPELLING: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| include_str!("spelling.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// The text, its words parted by single spaces.
pub(super) fn normalised(text: &str) -> String {
    let all = |rules: &[Rule], text: String| rules.iter().fold(text, |text, rule| rule.apply(&text));
    let text = all(&FIRST_RULES, text.to_lowercase());
    let mut plain = String::with_capacity(text.len());
    for letter in text.nfkd() {
        match undivided(letter) {
            Some(letters) => plain.push_str(letters),
            None => plain.push(letter),
        }
    }
    let text = in_digits(&all(&SYMBOL_RULES, plain));
    let words = text.split_whitespace().map(|word| SPELLING.get(word).copied().unwrap_or(word));
    let text = all(&LAST_RULES, words.collect::<Vec<_>>().join(" "));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The ASCII spelling of a letter that Unicode decomposition leaves whole.
fn undivided(letter: char) -> Option<&'static str> {
    Some(match letter {
        'œ' => "oe",
        'ø' => "o",
        'æ' => "ae",
        'ß' => "ss",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ł' => "l",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_normalised(
            words in proptest::collection::vec("\\PC{0,6}|[0-9.$¢%]{1,5}|one|twenty|thirds|double|point|decillion", 0..12),
        ) {
            let plain = normalised(&words.join(" "));
            prop_assert_eq!(plain.split_whitespace().collect::<Vec<_>>().join(" "), plain);
        }
    }

    #[test]
    fn every_rule_is_read() {
        for (given, read) in [(FIRST, &*FIRST_RULES), (SYMBOLS, &*SYMBOL_RULES), (LAST, &*LAST_RULES)] {
            assert_eq!(given.len(), read.len());
        }
        assert!(SPELLING.len() > 1700);
    }

    #[test]
    fn texts_are_the_references() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/parity/data/english.json"));
        let goldens: Vec<(String, String)> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(goldens.len() > 400);
        for (text, expected) in goldens {
            assert_eq!(normalised(&text), expected, "{text:?}");
        }
    }
}
