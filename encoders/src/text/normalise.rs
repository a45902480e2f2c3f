//! The text normalisers of TF-CoVR (arXiv 2506.05274; counts as words, lower case, no punctuation noise) and of CoVR
//! (arXiv 2308.14746; counts unchanged).
//!
//! Models of these papers were trained and evaluated on such texts only.

/// The most words of a modification text.
const WORDS: usize = 30;

/// Characters replaced by a space.
const NOISE: [char; 9] = ['!', '"', '(', ')', '*', '#', ':', ';', '~'];

/// Normalises a text without truncation.
pub fn normalise(text: &str) -> String {
    let words = with_counts_in_words(text);
    let clean: String = words
        .to_lowercase()
        .chars()
        .map(|letter| if NOISE.contains(&letter) { ' ' } else { letter })
        .collect();
    single_spaces(&clean)
}

/// Normalises a modification text and keeps its first 30 words.
pub fn normalise_modification(text: &str) -> String {
    // Splits at single spaces only, as the paper's code does.
    normalise(text).split(' ').take(WORDS).collect::<Vec<_>>().join(" ")
}

/// Cleans a modification text as CoVR's code does: lower case, without full stops and noise, first 30 words.
pub fn clean_modification(text: &str) -> String {
    let is_noise = |letter: char| letter == '.' || NOISE.contains(&letter);
    let clean: String =
        text.to_lowercase().chars().map(|letter| if is_noise(letter) { ' ' } else { letter }).collect();
    single_spaces(&clean).split(' ').take(WORDS).collect::<Vec<_>>().join(" ")
}

/// Replaces runs of two or more whitespace characters by one space, and trims the ends.
fn single_spaces(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_whitespace() || !letters.peek().is_some_and(|next| next.is_whitespace()) {
            clean.push(letter);
            continue;
        }
        while letters.next_if(|next| next.is_whitespace()).is_some() {}
        clean.push(' ');
    }
    clean
}

/// Replaces counts that have words. Counts are matches of the pattern `\b\d+(\.\d+)?\b`.
fn with_counts_in_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let number = if before.is_some_and(is_word) { "" } else { number_at(rest) };
        let taken = if number.is_empty() { &rest[..letter.len_utf8()] } else { number };
        out.push_str(if number.is_empty() { taken } else { in_words(number).unwrap_or(number) });
        before = taken.chars().next_back();
        rest = &rest[taken.len()..];
    }
    out
}

/// The number at the start of `text`, if it ends at a word boundary; otherwise empty.
fn number_at(text: &str) -> &str {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let ends_word = |end: usize| !text[end..].chars().next().is_some_and(is_word);
    let whole = digits(text);
    if whole == 0 {
        return "";
    }
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    let long = whole + 1 + fraction;
    if fraction > 0 && ends_word(long) {
        return &text[..long];
    }
    if ends_word(whole) { &text[..whole] } else { "" }
}

/// A letter, digit or underscore: `\w` of regular expressions.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The words of a count, if it has any. Counts are compared as numbers, as the paper's code does: "2.0" is "two".
fn in_words(number: &str) -> Option<&'static str> {
    const HALVES: [&str; 14] = [
        "half",
        "one",
        "one and a half",
        "two",
        "two and a half",
        "three",
        "three and a half",
        "four",
        "four and a half",
        "five",
        "five and a half",
        "six",
        "six and a half",
        "seven",
    ];
    let halves = number.parse::<f64>().ok()? * 2.0;
    let known = halves.fract() == 0.0 && (1.0..=14.0).contains(&halves);
    known.then(|| HALVES[halves as usize - 1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(normalise(text), expected);
        assert_eq!(normalise_modification(text), expected, "shorter than 30 words");
    }

    #[test]
    fn the_protocols_examples_come_out() {
        check("Show with 2.5 turns", "show with two and a half turns");
        check("8 turns.", "8 turns.");
        check("(Show!) ~ 1 twist", "show one twist");
        check("0.5 turn-off, 3.25 x", "half turn-off, 3.25 x");
        check("2.0 twists, 1.50 turns, 01 salto, 0.0", "two twists, one and a half turns, one salto, 0.0");
    }

    #[test]
    fn every_half_up_to_seven_has_its_words() {
        check("1 1.5 2 2.5 3 3.5 4", "one one and a half two two and a half three three and a half four");
        check("4.5 5 5.5 6 6.5 7", "four and a half five five and a half six six and a half seven");
        check("7.5 0 10", "7.5 0 10");
    }

    #[test]
    fn numbers_inside_words_stay() {
        check("x2 2x 2_ 12.5x", "x2 2x 2_ 12.5x");
        check("2.5.5", "two and a half.five");
        check("1.5x", "one.5x");
        check("soms.2.pike", "soms.two.pike");
        check("-1,2;3", "-one,two three");
    }

    #[test]
    fn noise_and_repeated_whitespace_become_one_space() {
        check("  A\t\tb \n c  ", "a b c");
        check("a\tb", "a\tb");
        check("#\"*:;!", "");
        check("", "");
        check("ÉTÉ 水", "été 水");
    }

    #[test]
    fn a_modification_is_cut_after_thirty_words() {
        let long: Vec<String> = (0..40).map(|word| format!("w{word}")).collect();
        assert_eq!(normalise_modification(&long.join(" ")), long[..30].join(" "));
        assert_eq!(normalise(&long.join(" ")), long.join(" "));
    }

    #[test]
    fn a_modification_of_covr_keeps_its_counts_and_loses_its_full_stops() {
        assert_eq!(
            clean_modification("Show 2 dogs. (Now!)  At NIGHT, it's 1.5"),
            "show 2 dogs now at night, it's 1 5"
        );
        assert_eq!(clean_modification(&"a ".repeat(40)), "a ".repeat(30).trim());
    }

    proptest! {
        #[test]
        fn any_text_is_normalised_without_noise(text in "\\PC*") {
            let clean = normalise(&text);
            prop_assert!(!clean.contains(NOISE));
            prop_assert_eq!(clean.trim(), &clean[..]);
            prop_assert!(!clean.contains("  "));
        }
    }
}
