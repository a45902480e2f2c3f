//! Repairs mojibake: UTF-8 that a program decoded in another encoding, once or several times, wholly or in parts.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::code_pages::{CODE_PAGES, ROLES, Roles, without_c1};
use super::unusual::is_unusual;

/// Byte sequences that become UTF-8 if their space becomes byte 0xA0. Programs often replace the no-break space 0xA0
/// by a space.
static SPACE_FOR_A0: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"[\xc2\xc3\xc5\xce\xd0\xd9] |[\xe2\xe3] [\x80-\x84\x86-\x9f\xa1-\xbf]
        |[\xe0-\xe3][\x80-\x84\x86-\x9f\xa1-\xbf] |\xf0 [\x80-\xbf][\x80-\xbf]
        |\xf0[\x80-\xbf] [\x80-\xbf]|\xf0[\x80-\xbf][\x80-\xbf] ",
    )
});

/// The word "à" without its byte 0xA0 but with the space after it. Words that begin with à in Portuguese are
/// excluded.
static WORD_A: LazyLock<Regex> = LazyLock::new(|| pattern(r"\xc3 (?: |quele|quela|quilo|s )?"));

/// UTF-8 and CESU-8 sequences with lost bytes. At most one byte of a sequence may be a question mark.
static WITH_LOST_BYTES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"[\xc2-\xdf]\x1a|[\xc2-\xc3]\?
        |\xed[\xa0-\xaf][\x1a?]\xed[\xb0-\xbf][\x1a?\x80-\xbf]|\xed[\xa0-\xaf][\x1a?\x80-\xbf]\xed[\xb0-\xbf][\x1a?]
        |[\xe0-\xef][\x1a?][\x1a\x80-\xbf]|[\xe0-\xef][\x1a\x80-\xbf][\x1a?]
        |[\xf0-\xf4][\x1a?][\x1a\x80-\xbf]{2}|[\xf0-\xf4][\x1a\x80-\xbf][\x1a?][\x1a\x80-\xbf]
        |[\xf0-\xf4][\x1a\x80-\xbf]{2}[\x1a?]|\x1a",
    )
});

/// Largest number of passes over a text. ftfy has no such bound, and takes quadratic time for some texts.
const PASSES: usize = 64;
/// Largest depth of mojibake inside mojibake.
const DEPTH: usize = 16;

/// The work that remains allowed for a text.
pub(super) struct Budget {
    bytes: usize,
    depth: usize,
}

impl Budget {
    /// The budget of a text: [`PASSES`] passes.
    pub(super) fn of(text: &str) -> Self {
        Self { bytes: PASSES * (text.len() + PASSES), depth: DEPTH }
    }

    /// Subtracts one pass over `text` from the budget. False if too little was left.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let left = self.bytes.checked_sub(text.len() + 1);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}

/// Undoes wrong decodings, until the text is free of mojibake or nothing changes.
pub(super) fn fix_encoding(mut text: String, budget: &mut Budget) -> String {
    while is_unusual(&text) && budget.take(&text) {
        let fixed = undo_once(&text, budget);
        if fixed == text {
            break;
        }
        text = fixed;
    }
    text
}

/// Undoes the last wrong decoding.
fn undo_once(text: &str, budget: &mut Budget) -> String {
    for page in CODE_PAGES.iter() {
        let Some(mut bytes) = page.encode(text) else { continue };
        if page.has_space_at_a0 {
            bytes = with_a0(&bytes);
        }
        if page.is_lossy {
            bytes = WITH_LOST_BYTES.replace_all(&bytes, "\u{fffd}".as_bytes()).into_owned();
        }
        if let Some(text) = decode(&bytes) {
            return text;
        }
    }
    if let Some(fixed) = undo_in_parts(text, budget) {
        return fixed;
    }
    // Windows-1252 that a program decoded as Latin-1.
    text.chars().map(without_c1).collect()
}

/// Restores byte 0xA0 where a space replaced it.
fn with_a0(bytes: &[u8]) -> Vec<u8> {
    let words = WORD_A.replace_all(bytes, |found: &regex::bytes::Captures<'_>| match &found[0] {
        b"\xc3 " => b"\xc3\xa0 ".to_vec(),
        longer => longer.to_vec(),
    });
    let spaces = |found: &regex::bytes::Captures<'_>| -> Vec<u8> {
        found[0].iter().map(|&byte| if byte == b' ' { 0xa0 } else { byte }).collect()
    };
    SPACE_FOR_A0.replace_all(&words, spaces).into_owned()
}

/// Decodes UTF-8, CESU-8 (characters over U+FFFF as two surrogates), and Java's two bytes for U+0000.
fn decode(bytes: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.iter().enumerate().position(|(at, _)| other_utf8(&rest[at..]).is_some()) {
        let (letter, taken) = other_utf8(&rest[at..])?;
        out.push_str(str::from_utf8(&rest[..at]).ok()?);
        out.push(letter);
        rest = &rest[at + taken..];
    }
    out.push_str(str::from_utf8(rest).ok()?);
    Some(out)
}

/// The character at the start of `bytes` in CESU-8 or Java's encoding, if UTF-8 encodes it differently. Also returns
/// its length in bytes.
fn other_utf8(bytes: &[u8]) -> Option<(char, usize)> {
    match *bytes {
        // ftfy's patterns take a line feed at the very end for the last byte.
        [0xc0, 0x80, ..] | [0xc0, b'\n'] => Some(('\0', 2)),
        [0xed, a @ 0xa0..=0xaf, b @ 0x80..=0xbf, 0xed, c @ 0xb0..=0xbf, d, ref after @ ..]
            if matches!(d, 0x80..=0xbf) || (d == b'\n' && after.is_empty()) =>
        {
            let [a, b, c, d] = [a & 0xf, b & 0x3f, c & 0xf, d & 0x3f].map(u32::from);
            let letter = char::from_u32(0x10000 + (a << 16) + (b << 10) + (c << 6) + d)?;
            Some((letter, 6))
        }
        _ => None,
    }
}

/// Undoes wrong decodings in each part whose characters can all be bytes of UTF-8 sequences. `None` if no part
/// changes.
fn undo_in_parts(text: &str, budget: &mut Budget) -> Option<String> {
    if budget.depth == 0 {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let length = if before.is_some_and(surely_continues) { 0 } else { run(rest) };
        let (part, after) = rest.split_at(if length == 0 { letter.len_utf8() } else { length });
        if length > 0 && length < text.len() && is_unusual(part) {
            budget.depth -= 1;
            out.push_str(&fix_encoding(part.to_owned(), budget));
            budget.depth += 1;
        } else {
            out.push_str(part);
        }
        before = part.chars().next_back();
        rest = after;
    }
    (out != text).then_some(out)
}

/// The number of bytes at the start of `text` that sequences like UTF-8 cover.
fn run(text: &str) -> usize {
    let mut rest = text;
    while let Some(length) = sequence(rest) {
        rest = &rest[length..];
    }
    text.len() - rest.len()
}

/// The length in bytes of the sequence at the start of `text`.
fn sequence(text: &str) -> Option<usize> {
    let mut letters = text.chars();
    let first = letters.next()?;
    let Roles { starts_2, starts_3, starts_4, .. } = roles(first);
    if !(starts_2 || starts_3 || starts_4) {
        return None;
    }
    let next: Vec<char> = letters.take(3).take_while(|&letter| roles(letter).continues).collect();
    let count = [(starts_2, 1), (starts_3, 2), (starts_4, 3)];
    let (_, count) = count.into_iter().find(|&(starts, count)| starts && next.len() >= count)?;
    Some(first.len_utf8() + next[..count].iter().map(|letter| letter.len_utf8()).sum::<usize>())
}

/// Whether a character continues a sequence and is seldom correct text there.
fn surely_continues(letter: char) -> bool {
    !matches!(letter, ' ' | '–' | '—' | '―' | '‘' | '’' | '‚' | '“' | '”' | '„' | '•' | '…')
        && roles(letter).continues
}

fn roles(letter: char) -> Roles {
    ROLES.get(&letter).copied().unwrap_or_default()
}

/// A pattern of bytes, not characters. Drops the line breaks of the source.
fn pattern(text: &str) -> Regex {
    let one_line: String = text.split('\n').map(str::trim_start).collect();
    Regex::new(&format!("(?-u){one_line}")).expect("a valid pattern")
}
