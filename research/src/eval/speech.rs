//! Word error rate: how far a track is from what was said. Texts are normalised as Whisper's paper does (arXiv 2212.04356,
//! appendix C): for all languages, or for English.

mod english;
mod numbers;
mod rule;

use std::sync::LazyLock;

use anyhow::bail;
use regex::Regex;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

/// Most words of a text; the table of a comparison grows with the product of both.
const MOST_WORDS: usize = 200_000;
/// Most pairs of words that are compared: about a minute.
const MOST_PAIRS: usize = 20_000_000_000;

/// Differences between a reference and a track, in words or letters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WordErrors {
    /// Words of the reference.
    pub reference: usize,
    /// Words of the track.
    pub track: usize,
    /// Words of the reference with another in their place.
    pub substituted: usize,
    /// Words of the reference that the track lacks.
    pub deleted: usize,
    /// Words that only the track has.
    pub inserted: usize,
    /// All three by the words of the reference; may exceed 1. 0 if both texts are empty, 1 if only the reference is.
    pub rate: f64,
}

/// What counts as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// What stands between spaces.
    Words,
    /// The same after Whisper's rules for English: numbers in digits, contractions in full, American spelling.
    English,
    /// Letters, for languages without spaces.
    Letters,
}

/// Compares normalised texts.
///
/// # Errors
/// For texts that are too long to compare.
pub fn word_errors(reference: &str, track: &str, units: Units) -> anyhow::Result<WordErrors> {
    let (reference, track) = (split(reference, units), split(track, units));
    let longest = reference.len().max(track.len());
    if longest > MOST_WORDS || reference.len().saturating_mul(track.len()) > MOST_PAIRS {
        bail!("texts of {} and {} words are too long to compare; cut both", reference.len(), track.len());
    }
    let Edits { substituted, deleted, inserted } = least_edits(&reference, &track);
    let errors = substituted + deleted + inserted;
    let rate = match (reference.len(), errors) {
        (0, 0) => 0.0,
        (0, _) => 1.0,
        (count, _) => errors as f64 / count as f64,
    };
    Ok(WordErrors { reference: reference.len(), track: track.len(), substituted, deleted, inserted, rate })
}

fn split(text: &str, units: Units) -> Vec<String> {
    let text = if units == Units::English { english::normalised(text) } else { normalised(text) };
    match units {
        Units::Words | Units::English => text.split_whitespace().map(str::to_owned).collect(),
        Units::Letters => text.chars().filter(|letter| !letter.is_whitespace()).map(String::from).collect(),
    }
}

/// A text in lower case, without what stands in brackets, without punctuation and symbols.
pub fn normalised(text: &str) -> String {
    static BRACKETS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[<\[][^>\]]*[>\]]").ok());
    static PARENTHESES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\([^)]+?\)").ok());
    static SYMBOLS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{M}\p{S}\p{P}]").ok());
    let without = |pattern: &LazyLock<Option<Regex>>, text: &str, by: &str| match &**pattern {
        Some(pattern) => pattern.replace_all(text, by).into_owned(),
        None => text.to_owned(),
    };
    let text = without(&BRACKETS, &text.to_lowercase(), "");
    let text = without(&PARENTHESES, &text, "");
    let text: String = text.nfkc().collect();
    let text = without(&SYMBOLS, &text, " ").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Edits {
    substituted: usize,
    deleted: usize,
    inserted: usize,
}

impl Edits {
    fn count(&self) -> usize {
        self.substituted + self.deleted + self.inserted
    }
}

/// The fewest edits that turn one into the other (Levenshtein), row by row.
fn least_edits(reference: &[String], track: &[String]) -> Edits {
    let inserted = |inserted| Edits { inserted, ..Edits::default() };
    let mut row: Vec<Edits> = (0..=track.len()).map(inserted).collect();
    for (at, word) in reference.iter().enumerate() {
        let mut corner = row[0];
        row[0] = Edits { deleted: at + 1, ..Edits::default() };
        for (column, other) in track.iter().enumerate() {
            let (above, left) = (row[column + 1], row[column]);
            let best = match word == other {
                true => corner,
                false => [
                    Edits { substituted: corner.substituted + 1, ..corner },
                    Edits { deleted: above.deleted + 1, ..above },
                    Edits { inserted: left.inserted + 1, ..left },
                ]
                .into_iter()
                .min_by_key(Edits::count)
                .unwrap_or_default(),
            };
            corner = above;
            row[column + 1] = best;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, track: &str, expected: [usize; 3]) {
        let errors = word_errors(reference, track, Units::Words).unwrap();
        assert_eq!([errors.substituted, errors.deleted, errors.inserted], expected, "{errors:?}");
    }

    #[test]
    fn words_are_substituted_deleted_and_inserted() {
        check("a dive from ten metres", "A dive, from ten metres!", [0, 0, 0]);
        check("a dive from ten metres", "a drive from metres", [1, 1, 0]);
        check("a dive", "well a very good dive", [0, 0, 3]);
        check("", "", [0, 0, 0]);
        check("", "a dive", [0, 0, 2]);
        check("a dive", "", [0, 2, 0]);
    }

    #[test]
    fn a_rate_is_by_the_words_of_the_reference() {
        let rate = |reference, track, units| word_errors(reference, track, units).unwrap().rate;
        assert!((rate("one two three four", "one two", Units::Words) - 0.5).abs() < 1e-9);
        assert!((rate("跳水运动", "跳水 云动。", Units::Letters) - 0.25).abs() < 1e-9);
        assert!((rate("", "x", Units::Words) - 1.0).abs() < 1e-9);
        let (said, heard) = ("Dr. Low's twenty-one dives aren't grey", "Doctor Low is 21 dives are not gray");
        assert!(rate(said, heard, Units::Words) > 0.5 && rate(said, heard, Units::English) < 1e-9);
    }

    #[test]
    fn texts_are_normalised_as_the_reference_does() {
        for (text, expected) in [
            ("Mr. Smith's [laughter] dive (applause) -- 5.1 pts!", "mr smith s dive 5 1 pts"),
            ("Ｆｕｌｌ　ｗｉｄｔｈ ½", "full width 1 2"),
            ("ÄRGER im Café", "ärger im café"),
            ("<i>so</i>  so", "so so"),
        ] {
            assert_eq!(normalised(text), expected);
        }
    }
}
