//! The steps that replace or drop single characters.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::code_pages::without_c1;

/// A terminal's colour and cursor sequences. Matches digits of any script, as Python's `\d` does.
static TERMINAL_ESCAPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\x1b\[[\d;]*[a-zA-Z]").expect("a valid pattern"));

/// Fixes C1 controls, ligatures, widths, quotes, line breaks, terminal escapes and control characters in one pass.
pub(super) fn fix(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\r' && letters.peek() == Some(&'\n') {
            continue;
        }
        let letter = without_c1(letter);
        match letters_of_ligature(letter) {
            Some(parts) => out.extend(parts.chars().map(plain)),
            None => out.extend(usual_width(letter).map(plain)),
        }
    }
    let mut out = if out.contains('\x1b') { TERMINAL_ESCAPE.replace_all(&out, "").into_owned() } else { out };
    out.retain(|letter| !is_dropped(letter));
    out
}

/// Latin ligatures, and digraphs that only old encodings needed.
fn letters_of_ligature(letter: char) -> Option<&'static str> {
    Some(match letter {
        'Ĳ' => "IJ",
        'ĳ' => "ij",
        'ŉ' => "ʼn",
        'Ǳ' => "DZ",
        'ǲ' => "Dz",
        'ǳ' => "dz",
        'Ǆ' => "DŽ",
        'ǅ' => "Dž",
        'ǆ' => "dž",
        'Ǉ' => "LJ",
        'ǈ' => "Lj",
        'ǉ' => "lj",
        'Ǌ' => "NJ",
        'ǋ' => "Nj",
        'ǌ' => "nj",
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' => "ſt",
        '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Full-width Latin, half-width katakana and hangul, and the ideographic space in their usual form.
fn usual_width(letter: char) -> impl Iterator<Item = char> {
    let wide = matches!(letter, '\u{ff01}'..='\u{ffef}');
    let space = if letter == '\u{3000}' { ' ' } else { letter };
    let (usual, same) = if wide { (Some(letter.nfkc()), None) } else { (None, Some(space)) };
    usual.into_iter().flatten().chain(same)
}

/// Straight quotes, and one kind of line break.
fn plain(letter: char) -> char {
    match letter {
        '\u{2bc}' | '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\r' | '\u{2028}' | '\u{2029}' => '\n',
        other => other,
    }
}

/// Control characters without visible effect. Joiners, directions, tags and whitespace stay.
fn is_dropped(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\x08'
            | '\x0b'
            | '\x0e'..='\x1f'
            | '\x7f'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffc}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(fix(text), expected);
    }

    #[test]
    fn every_line_break_becomes_a_line_feed() {
        check("a\r\nb\rc\u{2028}d\u{2029}e\r\r\nf", "a\nb\nc\nd\ne\n\nf");
    }

    #[test]
    fn curly_quotes_become_straight_and_others_stay() {
        check("‘a’ “b” ‛c‟ ʼd „e‚ «f» ′g″", "'a' \"b\" 'c\" 'd \"e' «f» ′g″");
    }

    #[test]
    fn ligatures_of_latin_are_taken_apart() {
        check("\u{fb02}u\u{fb03}e\u{fb06} ŉ æ", "fluffiest 'n æ");
    }

    #[test]
    fn widths_become_usual() {
        check("Ｕﾀｰﾝ　１￥￩", "Uターン 1¥←");
    }

    #[test]
    fn terminal_escapes_and_controls_fall() {
        check("\x1b[36;44mblue\x1b[0m \x1b[٣mx\x1b[\x07\u{feff}\u{200d}\t", "blue x[\u{200d}\t");
    }

    #[test]
    fn c1_controls_are_read_as_windows_1252() {
        check("\u{93}a\u{94} \u{80} \u{81}\u{85}", "\"a\" € \u{81}…");
    }
}
