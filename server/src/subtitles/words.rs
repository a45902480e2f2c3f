//! Splits text into folded words for the subtitle search: without case, accents and punctuation.
//!
//! Both databases index these words, so that both find the same cues.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

/// Longer words are cut, because the database index limits their length.
const MAX_CHARACTERS: usize = 64;

/// English words that carry little meaning. They count in a sequence of words, but not in the score.
const STOP_WORDS: &str = " a about above after again against all am an and any are arent as at be because been before \
being below between both but by can cannot could couldnt did didnt do does doesnt doing dont down during each few for \
from further had hadnt has hasnt have havent having he hed hell her here heres hers herself hes him himself his how hows \
i id ill im in into is isnt it its itself ive just lets me more most my myself no nor not now of off on once only or other \
our ours ourselves out over own same she shes should shouldnt so some such than that thats the their theirs them themselves \
then there theres these they theyd theyll theyre theyve this those through to too under until up us very was wasnt we wed \
well were werent weve what whats when where which while who whom why will with wont would wouldnt you youd youll your youre \
yours yourself yourselves youve ";

/// Folded words of `text` in order, with their byte ranges.
///
/// Case and accents are folded, compatibility forms resolved, and apostrophes inside words removed. Other
/// punctuation separates words. Scripts without spaces are split by Unicode's rules.
pub fn words_at(text: &str) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
    text.unicode_word_indices().flat_map(|(at, word)| {
        let folded = folded(word);
        let parts: Vec<(Range<usize>, String)> = folded
            .split(|it: char| !it.is_alphanumeric())
            .filter(|part| !part.is_empty())
            .map(|part| (at..at + word.len(), part.chars().take(MAX_CHARACTERS).collect()))
            .collect();
        parts
    })
}

/// Folded words of `text` in order.
pub fn words(text: &str) -> Vec<String> {
    words_at(text).map(|(_, word)| word).collect()
}

/// Whether a folded word is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    !word.is_empty() && STOP_WORDS.split(' ').any(|it| it == word)
}

/// A text without case, accents and apostrophes, compatibility forms resolved.
pub fn folded(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for character in word.nfkd().filter(|it| !is_combining_mark(*it)).flat_map(char::to_lowercase) {
        match character {
            '\'' | '’' | 'ʼ' => {}
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'þ' => folded.push_str("th"),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            // Lower-casing may add a combining mark.
            other if is_combining_mark(other) => {}
            other => folded.push(other),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).join(" "), expected, "{text:?}");
    }

    #[test]
    fn words_are_compared_without_case_accents_and_punctuation() {
        check("Don’t stop, it's 3.5 %!", "dont stop its 3 5");
        check("Café CAFE\u{301} Ångström straße", "cafe cafe angstrom strasse");
        check("Łódź, Þór, smørrebrød, Œuvre, İstanbul", "lodz thor smorrebrod oeuvre istanbul");
        check("state-of-the-art snake_case e.g. x=1", "state of the art snake case e g x 1");
        check("ﬁne ２０ Ⅷ", "fine 20 viii");
        check("🎬 🤗 <mark> &", "mark");
        check("深度学习", "深 度 学 习");
        check("", "");
    }

    #[test]
    fn stop_words_are_whole_words() {
        for (word, expected) in [
            ("the", true),
            ("dont", true),
            ("a", true),
            ("th", false),
            ("", false),
            ("a about", false),
            ("model", false),
        ] {
            assert_eq!(is_stop_word(word), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_text_its_words_are_plain_and_folding_them_again_changes_nothing(text in ".{0,60}") {
            let once = words(&text);
            for (at, _) in words_at(&text) {
                prop_assert!(text.get(at).is_some());
            }
            for word in &once {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric), "{word:?}");
                prop_assert!(word.chars().count() <= MAX_CHARACTERS);
            }
        }
    }
}
