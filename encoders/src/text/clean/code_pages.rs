//! The single-byte encodings in which programs wrongly decode UTF-8.
//!
//! Bytes 0x80 to 0xFF of each encoding come from Unicode's mapping files (unicode.org/Public/MAPPINGS). A byte that a
//! Windows code page leaves open becomes the Latin-1 control character of the same number, as in browsers.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A single-byte encoding.
pub(super) struct CodePage {
    bytes: HashMap<char, u8>,
    /// Whether the decoding may have lost bytes. U+FFFD then stands for [`LOST`], and U+001A is invalid.
    pub(super) is_lossy: bool,
    /// Whether a space may have been byte 0xA0. In Mac Roman that byte is the dagger.
    pub(super) has_space_at_a0: bool,
}

/// Replacement for a lost byte.
const LOST: u8 = 0x1a;

const WINDOWS_1252: &str = concat!(
    "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ",
    "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿",
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
);
const WINDOWS_1251: &str = concat!(
    "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u{98}™љ›њќћџ",
    "\u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї°±Ііґµ¶·ё№є»јЅѕї",
    "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
);
const WINDOWS_1250: &str = concat!(
    "€\u{81}‚\u{83}„…†‡\u{88}‰Š‹ŚŤŽŹ\u{90}‘’“”•–—\u{98}™š›śťžź",
    "\u{a0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{ad}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľż",
    "ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
);
const WINDOWS_1253: &str = concat!(
    "€\u{81}‚ƒ„…†‡\u{88}‰\u{8a}‹\u{8c}\u{8d}\u{8e}\u{8f}",
    "\u{90}‘’“”•–—\u{98}™\u{9a}›\u{9c}\u{9d}\u{9e}\u{9f}",
    "\u{a0}΅Ά£¤¥¦§¨©ª«¬\u{ad}®―°±²³΄µ¶·ΈΉΊ»Ό½ΎΏ",
    "ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡÒΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώÿ",
);
const WINDOWS_1254: &str = concat!(
    "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}\u{8e}\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}\u{9e}Ÿ",
    "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿",
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ",
);
const WINDOWS_1257: &str = concat!(
    "€\u{81}‚\u{83}„…†‡\u{88}‰\u{8a}‹\u{8c}¨ˇ¸\u{90}‘’“”•–—\u{98}™\u{9a}›\u{9c}¯˛\u{9f}",
    "\u{a0}¡¢£¤¥¦§Ø©Ŗ«¬\u{ad}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æ",
    "ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙",
);
/// From byte 0xA0 on; before it each byte is the character of its number.
const ISO_8859_2: &str = concat!(
    "\u{a0}Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{ad}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žż",
    "ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
);
const MAC_ROMAN: &str = concat!(
    "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø",
    "¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›\u{fb01}\u{fb02}‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ",
);
const CP_437: &str = concat!(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐",
    "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
);

/// The Windows code pages, in the order in which they are tried.
const WINDOWS: [&str; 6] =
    [WINDOWS_1252, WINDOWS_1251, WINDOWS_1250, WINDOWS_1253, WINDOWS_1254, WINDOWS_1257];

/// All encodings, in the order in which they are tried.
pub(super) static CODE_PAGES: LazyLock<Vec<CodePage>> = LazyLock::new(|| {
    let mut pages = vec![CodePage::new(latin_1())];
    pages.extend(WINDOWS.map(|high| CodePage { is_lossy: true, ..CodePage::new(high.chars()) }));
    pages.push(CodePage::new(latin_1().take(0x20).chain(ISO_8859_2.chars())));
    pages.push(CodePage { has_space_at_a0: false, ..CodePage::new(MAC_ROMAN.chars()) });
    pages.push(CodePage::new(CP_437.chars()));
    pages
});

/// The positions in UTF-8 sequences that the characters of Latin-1 and the Windows code pages may stand for.
pub(super) static ROLES: LazyLock<HashMap<char, Roles>> = LazyLock::new(|| {
    let mut roles: HashMap<char, Roles> = HashMap::new();
    let pages = WINDOWS.iter().map(|high| high.chars().collect::<Vec<_>>());
    for page in pages.chain([latin_1().collect()]) {
        for (byte, letter) in (0x80..=u8::MAX).zip(page) {
            let role = roles.entry(letter).or_default();
            role.starts_2 |= matches!(byte, 0xc2..=0xdf);
            role.starts_3 |= matches!(byte, 0xe0..=0xef);
            role.starts_4 |= matches!(byte, 0xf0 | 0xf3);
            role.continues |= matches!(byte, 0x80..=0xbf);
        }
    }
    // A no-break space often becomes a plain space.
    roles.entry(' ').or_default().continues = true;
    roles
});

/// The positions in a UTF-8 sequence that a character's byte may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Roles {
    /// First of two bytes.
    pub(super) starts_2: bool,
    /// First of three bytes.
    pub(super) starts_3: bool,
    /// First of four bytes, for emoji and tags only: the other bytes begin scripts out of use.
    pub(super) starts_4: bool,
    /// A byte after the first.
    pub(super) continues: bool,
}

impl CodePage {
    fn new(high: impl Iterator<Item = char>) -> Self {
        let bytes = high.zip(0x80..=u8::MAX).collect();
        Self { bytes, is_lossy: false, has_space_at_a0: true }
    }

    /// Encodes a text. `None` if the encoding lacks a character.
    pub(super) fn encode(&self, text: &str) -> Option<Vec<u8>> {
        let byte = |letter| match letter {
            '\u{1a}' if self.is_lossy => None,
            '\u{fffd}' if self.is_lossy => Some(LOST),
            '\0'..='\x7f' => u8::try_from(letter).ok(),
            _ => self.bytes.get(&letter).copied(),
        };
        text.chars().map(byte).collect()
    }
}

/// Replaces a C1 control character by the Windows-1252 character of the same byte. Other characters stay.
pub(super) fn without_c1(letter: char) -> char {
    match letter {
        '\u{80}'..='\u{9f}' => WINDOWS_1252.chars().nth(letter as usize - 0x80).unwrap_or(letter),
        _ => letter,
    }
}

fn latin_1() -> impl Iterator<Item = char> {
    (0x80..=u8::MAX).map(char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_each_byte_once() {
        for (at, page) in CODE_PAGES.iter().enumerate() {
            assert_eq!(page.bytes.len(), 128, "page {at}");
        }
    }

    #[test]
    fn a_lost_character_has_a_byte_in_windows_pages_alone() {
        let bytes: Vec<_> = CODE_PAGES.iter().map(|page| page.encode("é\u{fffd}").is_some()).collect();
        // é is no letter of windows-1251 and windows-1253.
        assert_eq!(bytes, [false, true, false, true, false, true, true, false, false, false]);
    }
}
