//! Decodes a subtitle file into rows of text.

use encoding_rs::WINDOWS_1252;

use super::MAX_ROWS;

/// Decodes a file. Returns its text, and a warning if the encoding was guessed.
pub(super) fn decode(bytes: &[u8]) -> (String, Option<String>) {
    if let Some(rest) = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        return utf8(rest);
    }
    let units = |rest: &[u8], read: fn([u8; 2]) -> u16| -> Vec<u16> {
        rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect()
    };
    if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE]) {
        return (String::from_utf16_lossy(&units(rest, u16::from_le_bytes)), None);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xFE, 0xFF]) {
        return (String::from_utf16_lossy(&units(rest, u16::from_be_bytes)), None);
    }
    utf8(bytes)
}

/// A file that isn't UTF-8 is most often an old one in Windows-1252.
fn utf8(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(error) => {
            let row = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
            (
                text.into_owned(),
                Some(format!("line {row}: the file is not UTF-8; it was read as Windows-1252")),
            )
        }
    }
}

/// One row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row<'a> {
    /// Row number, from 1.
    pub(super) number: usize,
    /// The text without line break and surrounding white space.
    pub(super) text: &'a str,
}

impl Row<'_> {
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn has_arrow(&self) -> bool {
        self.text.contains("-->")
    }
}

/// Splits at CRLF, CR and LF. Stops one row beyond the limit of a file.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut rest = text;
    let mut number = 0;
    while !rest.is_empty() && number <= MAX_ROWS {
        number += 1;
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        rows.push(Row { number, text: rest[..end].trim() });
        let after = &rest[end..];
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[&str], is_guessed: bool) {
        let (text, guessed) = decode(bytes);
        let got: Vec<&str> = rows(&text).iter().map(|row| row.text).collect();
        assert_eq!((got.as_slice(), guessed.is_some()), (expected, is_guessed), "{bytes:?}");
    }

    #[test]
    fn rows_end_in_any_line_break_and_files_come_in_several_encodings() {
        check(b"a\nb\r\nc\rd", &["a", "b", "c", "d"], false);
        check(b"\xEF\xBB\xBFa\n\n b ", &["a", "", "b"], false);
        check(b"\xFF\xFEa\0\n\0\xe9\0", &["a", "é"], false);
        check(b"\xFE\xFF\0a\0\n\0\xe9", &["a", "é"], false);
        check(b"caf\xe9\n\x93q\x94", &["café", "“q”"], true);
        check(b"a\x81\x8d\x8f\x90\x9d\x80\xff", &["a\u{81}\u{8d}\u{8f}\u{90}\u{9d}€ÿ"], true);
        check(b"", &[], false);
        check(b"\xFF\xFEa", &[], false);
    }
}
