//! Cleans texts before tokenization, as the released tokenizers of CLIP and its variants do.
//!
//! `fix_text` ports Python's ftfy 6.3.1 with its default settings. `unescape` ports `html.unescape` of Python's
//! standard library. `docs/decisions/text-cleaning.md` lists the comparisons and the few differences.

mod characters;
mod code_pages;
mod entities;
mod fix;
mod mojibake;
mod unusual;

use std::borrow::Cow;

/// The first step of a family's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Cleaning {
    /// The text stays as it is.
    #[default]
    None,
    /// [`fix_text`] alone, as LanguageBind's tokenizer has it.
    Ftfy,
    /// [`fix_text`], then [`unescape`] twice, then trimming: `basic_clean` of OpenAI's CLIP.
    FtfyHtml,
}

impl Cleaning {
    /// The cleaned text; borrowed if nothing changes but whitespace at the ends.
    pub(crate) fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(text),
            Self::Ftfy => fix_text(text),
            Self::FtfyHtml => match fix_text(text) {
                Cow::Borrowed(fixed) => match unescape(fixed) {
                    Cow::Borrowed(same) => Cow::Borrowed(same.trim()),
                    Cow::Owned(once) => Cow::Owned(unescape(&once).trim().to_owned()),
                },
                Cow::Owned(fixed) => Cow::Owned(unescape(&unescape(&fixed)).trim().to_owned()),
            },
        }
    }

    /// The name in a space's identity. A change to the cleaning changes vectors, so it needs a new name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ftfy => "ftfy-6.3.1",
            Self::FtfyHtml => "ftfy-6.3.1+html",
        }
    }
}

/// Removes mojibake, curly quotes, ligatures, unusual widths and line breaks, terminal escapes and control
/// characters. Replaces complete character references, unless a `<` stands before them or in their line. The result
/// is in NFC.
pub(crate) fn fix_text(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_settled) {
        return Cow::Borrowed(text);
    }
    let fixed = fix::fix_text(text);
    if fixed == text { Cow::Borrowed(text) } else { Cow::Owned(fixed) }
}

/// Replaces the character references of a text. HTML 5 allows some without a semicolon; these are replaced too.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    if text.contains('&') { Cow::Owned(entities::unescape(text)) } else { Cow::Borrowed(text) }
}

/// Whether no step of [`fix_text`] changes this byte.
fn is_settled(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b' '..=b'~') && byte != b'&'
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    const ALL: [Cleaning; 3] = [Cleaning::None, Cleaning::Ftfy, Cleaning::FtfyHtml];

    #[track_caller]
    fn check(text: &str, fixed: &str, cleaned: &str) {
        assert_eq!(Cleaning::None.apply(text), text);
        assert_eq!(Cleaning::Ftfy.apply(text), fixed, "fixed, of {text:?}");
        assert_eq!(Cleaning::FtfyHtml.apply(text), cleaned, "cleaned, of {text:?}");
    }

    #[test]
    fn every_golden_of_ftfy_and_html_comes_out() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/parity/data/clean.json"));
        let goldens: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = goldens["cases"].as_array().unwrap();
        assert!(cases.len() > 300, "{} cases", cases.len());
        for case in cases {
            let [text, fixed, cleaned] = ["text", "fixed", "cleaned"].map(|key| case[key].as_str().unwrap());
            check(text, fixed, cleaned);
        }
    }

    #[test]
    fn whitespace_at_the_ends_falls_with_html_alone() {
        check(" a dog ", " a dog ", "a dog");
        check("\u{3000}a dog&nbsp;", " a dog\u{a0}", "a dog");
    }

    #[test]
    fn each_cleaning_has_its_own_name() {
        assert_eq!(ALL.map(Cleaning::name), ["none", "ftfy-6.3.1", "ftfy-6.3.1+html"]);
    }

    #[test]
    fn texts_that_need_many_passes_end_soon() {
        for text in [
            "Ã".to_owned() + &"ƒ".repeat(20_000),
            "&".to_owned() + &"amp;".repeat(20_000),
            "Ã\u{83}Â\u{83}".repeat(5_000) + "€",
            "é".repeat(1_000_001),
        ] {
            assert!(!Cleaning::FtfyHtml.apply(&text).is_empty());
        }
    }

    /// Texts with many characters that a step may change, and some that none does.
    fn eventful() -> impl Strategy<Value = String> {
        let letters = concat!(
            "[ -~\t\n\r\u{1b}\u{80}-\u{17f}\u{2b0}-\u{45f}",
            "\u{2000}-\u{2122}\u{2500}-\u{25a0}\u{fb00}-\u{ffff}]{0,40}"
        );
        let mojibake = "[ÃÂâðЂГўВàØ][€‚ƒ„\u{80}-\u{bf} ]{1,3}";
        let reference = "&(#[0-9]{0,9}|#[xX][0-9a-f]{0,7}|[a-zA-Z]{1,9}|amp|lt|eacute|EACUTE|notit|nbsp);?";
        let part = prop_oneof![letters, mojibake, reference, Just("\u{1b}[0;1m".to_owned()), any::<String>()];
        prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn any_text_is_cleaned(text in eventful()) {
            for cleaning in ALL {
                cleaning.apply(&text);
            }
            unescape(&text);
        }

        #[test]
        fn a_fixed_text_stays_in_the_next_pass(text in eventful()) {
            let fixed = fix_text(&text).into_owned();
            // An unusual line break now splits a line in two, and each is fixed alone. `<` also changes the next
            // pass.
            if !fixed.contains(['\n', '<']) {
                prop_assert_eq!(fix_text(&fixed), &fixed[..]);
            }
        }

        #[test]
        fn plain_ascii_stays(text in "[ -%'-~\t\n\x0c]*") {
            prop_assert_eq!(Cleaning::Ftfy.apply(&text), &text[..]);
            prop_assert_eq!(Cleaning::FtfyHtml.apply(&text), text.trim());
            prop_assert_eq!(fix::fix_text(&text), text, "without the short cut too");
        }
    }
}
