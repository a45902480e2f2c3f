//! The order of ftfy's steps, line by line until nothing changes.

use unicode_normalization::UnicodeNormalization;

use super::characters;
use super::entities;
use super::mojibake::{Budget, fix_encoding};

/// Largest number of characters in a piece of a line.
const PIECE: usize = 1_000_000;

/// Fixes each line alone. From the first line with a `<`, character references stay, because the text is HTML.
pub(super) fn fix_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut references = true;
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            references &= !piece.contains('<');
            out.push_str(&fix_piece(piece, references));
            rest = after;
        }
    }
    out
}

fn fix_piece(piece: &str, references: bool) -> String {
    let mut budget = Budget::of(piece);
    let mut text = piece.to_owned();
    while budget.take(&text) {
        let unescaped = if references { entities::unescape_complete(&text) } else { text.clone() };
        let decoded = fix_encoding(unescaped, &mut budget);
        let fixed: String = characters::fix(&decoded).nfc().collect();
        if fixed == text {
            break;
        }
        text = fixed;
    }
    text
}
