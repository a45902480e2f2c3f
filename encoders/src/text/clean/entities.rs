//! Character references of HTML. [`unescape`] replaces all of them, as HTML 5 and Python's `html.unescape` do.
//! [`unescape_complete`] replaces only complete ones, as ftfy does.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::code_pages::without_c1;

/// HTML's named references (html.spec.whatwg.org/multipage/named-characters.html), one a line: the name, with its
/// semicolon if it needs one, and the code points. Written by `tests/parity/clean.py`.
static NAMES: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let letter = |point: &str| u32::from_str_radix(point, 16).ok().and_then(char::from_u32);
    let entry = |line: &'static str| {
        let (name, points) = line.split_once(' ')?;
        Some((name, points.split(' ').filter_map(letter).collect()))
    };
    include_str!("entities.txt").lines().filter_map(entry).collect()
});

/// Largest number of characters in a name, without its semicolon.
const NAME: usize = 32;
/// Largest number of characters in a complete reference, without `&#` and semicolon.
const COMPLETE: usize = 24;

/// Replaces all references, as `html.unescape` does.
pub(super) fn unescape(text: &str) -> String {
    replace(text, reference)
}

/// Replaces references that end in a semicolon, including Latin letters in capitals (`&EACUTE;`).
pub(super) fn unescape_complete(text: &str) -> String {
    replace(text, complete_reference)
}

/// Replaces references. `read` takes the text after an `&`, and returns the replacement and the number of replaced
/// bytes.
fn replace(text: &str, read: impl Fn(&str) -> Option<(String, usize)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before);
        match read(after) {
            Some((replacement, taken)) => {
                out.push_str(&replacement);
                rest = &after[taken..];
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out + rest
}

/// The replacement and length in bytes of the reference at the start of `after`, the text after an `&`.
fn reference(after: &str) -> Option<(String, usize)> {
    let Some(number) = after.strip_prefix('#') else { return named(after) };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let end = digits.find(|digit: char| !digit.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let semicolon = usize::from(digits[end..].starts_with(';'));
    let taken = after.len() - digits.len() + end + semicolon;
    // Only a number beyond 32 bits fails.
    let point = u32::from_str_radix(&digits[..end], radix).unwrap_or(u32::MAX);
    Some((numbered(point).map(String::from).unwrap_or_default(), taken))
}

/// The character of a numeric reference. `None` for controls and Unicode noncharacters.
fn numbered(point: u32) -> Option<char> {
    match point {
        0 => Some(char::REPLACEMENT_CHARACTER),
        0x80..=0x9f => char::from_u32(point).map(without_c1),
        0x01..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f | 0xfdd0..=0xfdef => None,
        0..=0x10_ffff if point & 0xfffe == 0xfffe => None,
        _ => Some(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}

/// The longest name that `after` begins with.
fn named(after: &str) -> Option<(String, usize)> {
    let ends = |letter: char| matches!(letter, '\t' | '\n' | '\x0c' | ' ' | '<' | '&' | '#' | ';');
    let stop = after.char_indices().enumerate().find(|&(at, (_, letter))| at == NAME || ends(letter));
    let end = stop.map_or(after.len(), |(_, (at, _))| at);
    let whole = end + usize::from(after[end..].starts_with(';'));
    let lengths = (2..=whole).rev().filter(|&length| after.is_char_boundary(length));
    lengths.into_iter().find_map(|length| Some((NAMES.get(&after[..length])?.clone(), length)))
}

/// The complete reference that `after` begins with, and its length in bytes.
fn complete_reference(after: &str) -> Option<(String, usize)> {
    let body = after.strip_prefix('#').unwrap_or(after);
    let end = body.bytes().position(|byte| !byte.is_ascii_alphanumeric())?;
    if !(1..=COMPLETE).contains(&end) || !body[end..].starts_with(';') {
        return None;
    }
    let taken = after.len() - body.len() + end + 1;
    let name = &after[..taken];
    if let Some(letters) = NAMES.get(name) {
        return Some((letters.clone(), taken));
    }
    if name.starts_with('#') {
        // A number that ends before the semicolon is not meant as one, and `&#59;` stays as it is.
        let replacement = unescape(&format!("&{name}"));
        return (!replacement.contains(';')).then_some((replacement, taken));
    }
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) || named(name).is_some() {
        return None;
    }
    let small = NAMES.get(&name.to_ascii_lowercase()[..])?;
    Some((small.to_uppercase(), taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, all: &str, complete: &str) {
        assert_eq!(unescape(text), all, "of {text:?}");
        assert_eq!(unescape_complete(text), complete, "complete, of {text:?}");
    }

    #[test]
    fn every_line_of_the_table_is_a_name() {
        assert_eq!(NAMES.len(), 2231);
        assert!(NAMES.values().all(|letters| (1..=2).contains(&letters.chars().count())));
    }

    #[test]
    fn a_name_without_semicolon_is_the_longest_that_html_knows() {
        check(
            "&notit; &notin; &amp &ampx &l &copy2020",
            "¬it; ∉ & &x &l ©2020",
            "&notit; ∉ &amp &ampx &l &copy2020",
        );
    }

    #[test]
    fn capitals_of_latin_letters_are_complete_references_too() {
        check("P&EACUTE;REZ &SZLIG; &nTILDE;", "P&EACUTE;REZ &SZLIG; &nTILDE;", "PÉREZ SS &nTILDE;");
        check("&AMP; &NBSP;", "& &NBSP;", "& \u{a0}");
    }

    #[test]
    fn numbers_are_read_as_browsers_read_them() {
        check("&#65;&#x1F600;&#8217", "A😀’", "A😀&#8217");
        check("&#128;&#x99;&#129;", "€™\u{81}", "€™\u{81}");
        check(
            "&#0;&#xd800;&#x110000;&#99999999999999999999;",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        );
        check("a&#1;b&#xfdd0;c&#x1ffff;d", "abcd", "abcd");
    }

    #[test]
    fn what_is_no_reference_stays() {
        check(
            "& &; &# &#; &#x; &#xg; &é; a&b",
            "& &; &# &#; &#x; &#xg; &é; a&b",
            "& &; &# &#; &#x; &#xg; &é; a&b",
        );
        check("&#12a; &#59;", "\u{c}a; ;", "&#12a; &#59;");
    }
}
