//! Finds sequences of characters that make mojibake likely. UTF-8 read in another encoding gives them; ordinary texts
//! do not contain them.
//!
//! The classes and rules come from ftfy 6.3.1 (`ftfy/badness.py`, Apache-2.0).

use std::sync::LazyLock;

use regex::Regex;

// Classes of characters, as the inside of a pattern's brackets.
const COMMON: &str = "\u{a0}\u{ad}·´–—―…’";
const C1: &str = "\u{80}-\u{9f}";
const BAD: &str = "¦¤¨¬¯¸ƒˆˇ˘˛˜†‡‰⌐◊\u{fffd}ªº";
const LAW: &str = "¶§";
const CURRENCY: &str = "¢£¥₧€";
const START: &str = "¡«¿©΄΅‘‚“„•‹\u{f8ff}";
const END: &str = "®»˝”›™";
const NUMERIC: &str = "²³¹±¼½¾×µ÷⁄∂∆∏∑√∞∩∫≈≠≡≤≥№";
/// Letters of faces made of characters.
const FACES: &str = "Ò-ÖÙ-Üò-öø-üŐŌŪŲ°";
const UPPER: &str = "À-ÑØÜÝĂĀĄĆČĎĐĘĚĒĖĞĢİĪĶĹĽŁĻŃŇŅŒŘŚŞŠŢŤŮŰŸŹŻŽҐ";
const LOWER: &str = "ßà-ñăąāćčďđęěēėğģįīķĺľłļœŕśşšťüźżžґ\u{fb01}\u{fb02}";
const UPPER_OTHER: &str = "ÞΑ-ΩΆΈΉΊΌΎΏΪΫЁ-Я";
const LOWER_OTHER: &str = "α-ωάέήίΰа-џ";
const BOX: &str = "│┌┐┘├┤┬┼═-╬▀▄█▌▐░▒▓";

static UNUSUAL: LazyLock<Regex> = LazyLock::new(|| {
    let around_bad = format!("{LOWER}{UPPER}{BOX}{START}{END}{CURRENCY}{NUMERIC}{LAW}");
    // After Ø and Ù, in mojibake of Arabic.
    let arabic = format!("[ØÙ][{COMMON}{CURRENCY}{BAD}{NUMERIC}{START}ŸŠ®°µ»]");
    let between = format!("{C1}{BAD}{START}{END}{CURRENCY}");
    let rules = [
        format!("[{C1}]"),
        // Classes that do not stand beside each other.
        format!("[{BAD}{around_bad}][{BAD}]"),
        format!("[a-zA-Z][{LOWER_OTHER}{UPPER_OTHER}][{BAD}]"),
        format!("[{BAD}][{around_bad}]"),
        format!("[{LOWER}{LOWER_OTHER}{BOX}{END}{CURRENCY}{NUMERIC}][{UPPER}]"),
        format!("[{BOX}{END}{CURRENCY}{NUMERIC}][{LOWER}]"),
        format!("[{LOWER}{BOX}{END}][{CURRENCY}]"),
        // Python counts four more control characters as whitespace.
        format!(r"[\s\x1c-\x1f][{UPPER}][{CURRENCY}]"),
        format!("[{UPPER}{BOX}][{NUMERIC}{LAW}]"),
        format!("[{LOWER}{UPPER}{BOX}{CURRENCY}{END}][{START}][{NUMERIC}]"),
        format!("[{LOWER}{UPPER}{CURRENCY}{NUMERIC}{BOX}{LAW}][{END}][{START}]"),
        format!("[{CURRENCY}{NUMERIC}{BOX}][{START}]"),
        format!("[a-z][{UPPER}][{START}{CURRENCY}]"),
        format!("[{BOX}][{FACES}]"),
        format!("[{LOWER}{UPPER}{CURRENCY}{NUMERIC}{START}{END}{LAW}][{BOX}]"),
        format!("[{BOX}][{END}]"),
        // `\w` of Python: no combining marks.
        format!(r"[{LOWER}{UPPER}][{START}{END}][\p{{L}}\p{{N}}_]"),
        "[Œœ][^A-Za-z]".to_owned(),
        format!("[{UPPER}]°"),
        // Windows-1252.
        format!("[ÂÃÎÐ][€œŠš¢£Ÿž\u{a0}\u{ad}®©°·»{START}{END}–—´]"),
        "×[²³]".to_owned(),
        format!("{arabic}{arabic}"),
        "à[²µ¹¼½¾]".to_owned(),
        "Ã[\u{a0}¡]".to_owned(),
        r"[a-z][\s\x1c-\x1f]?[ÃÂ] ".to_owned(),
        "^[ÃÂ] ".to_owned(),
        format!("[a-z.,?!{END}]Â[ {START}{END}]"),
        // Mac Roman.
        "√[±∂†≠®™´≤≥¥µø]".to_owned(),
        "≈[°¢]".to_owned(),
        "‚Ä[ìîïòôúùû†°¢π]".to_owned(),
        "‚[âó][àäê°]".to_owned(),
        // Windows-1251.
        "вЂ".to_owned(),
        format!("[ВГРС][{between}°µ][ВГРС]"),
        "ГўВЂВ.[A-Za-z ]".to_owned(),
        // Windows-1253 and Windows-1257.
        "β€[™\u{a0}Ά\u{ad}®°]".to_owned(),
        format!("[ΒΓΞΟ][{between}°][ΒΓΞΟ]"),
        "ā€".to_owned(),
    ];
    Regex::new(&rules.join("|")).expect("a valid pattern")
});

/// Whether a text probably contains mojibake.
pub(super) fn is_unusual(text: &str) -> bool {
    !text.is_ascii() && UNUSUAL.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: bool) {
        for text in texts {
            assert_eq!(is_unusual(text), expected, "{text:?}");
        }
    }

    #[test]
    fn mojibake_is_unusual() {
        check(&["sÃ³", "â€™", "вЂ™", "âœ”", "√©t√©", "Î±Î²", "Ã la mode", "\u{93}a\u{94}"], true);
    }

    #[test]
    fn languages_are_usual() {
        check(
            &[
                "a dog",
                "à la “mode”",
                "ÇA VA ?",
                "Größe 5€",
                "Привет",
                "Ελλάδα",
                "日本語",
                "👍",
                "¯\\_(ツ)_/¯",
            ],
            false,
        );
    }
}
