//! Excerpt of a cue's text for one hit, with the ranges of the query's words.

use std::collections::HashSet;
use std::ops::Range;

use super::words::{is_stop_word, words, words_at};

/// Longest snippet, in characters of the text.
const MAX_CHARACTERS: usize = 240;
/// Characters before the first match in a cut snippet.
const LEAD_IN: usize = 60;

/// An excerpt of a text, with marks on the query's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Plain text, with `…` at each cut.
    pub text: String,
    /// Byte ranges in `text` (UTF-8), at character boundaries, in order and disjoint.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    /// Takes an excerpt of `text` and marks the words of `query`.
    ///
    /// Stop words are marked only if the query has no other words. A long text is cut around its first match.
    pub fn new(text: &str, query: &str) -> Snippet {
        let matches = matches(text, query);
        let shown = shown(text, matches.first().map_or(0, |first| first.start));
        let before = if shown.start > 0 { "…" } else { "" };
        let after = if shown.end < text.len() { "…" } else { "" };
        let mut marks: Vec<Range<usize>> = Vec::new();
        let mut end = shown.start;
        for found in matches.into_iter().filter(|it| shown.start <= it.start && it.end <= shown.end) {
            // Parts of one word, like `3.5`, have the same range.
            if found.start >= end {
                end = found.end;
                let at = |byte: usize| byte - shown.start + before.len();
                marks.push(at(found.start)..at(found.end));
            }
        }
        Snippet { text: format!("{before}{}{after}", &text[shown]), marks }
    }
}

fn matches(text: &str, query: &str) -> Vec<Range<usize>> {
    let all: HashSet<String> = words(query).into_iter().collect();
    let telling: HashSet<String> = all.iter().filter(|word| !is_stop_word(word)).cloned().collect();
    let wanted = if telling.is_empty() { all } else { telling };
    words_at(text).filter(|(_, word)| wanted.contains(word)).map(|(at, _)| at).collect()
}

/// The range of `text` to show. It contains the byte `first`.
fn shown(text: &str, first: usize) -> Range<usize> {
    if text.chars().count() <= MAX_CHARACTERS {
        return 0..text.len();
    }
    let before = text[..first].char_indices().rev().nth(LEAD_IN).map_or(0, |(at, _)| at);
    // Start at a word, if one starts here.
    let start = match text[before..first].find(char::is_whitespace) {
        Some(space) if before > 0 => text[before + space..].trim_start().len(),
        _ => text.len() - before,
    };
    let start = text.len() - start;
    let end = text[start..].char_indices().nth(MAX_CHARACTERS).map_or(text.len(), |(at, _)| start + at);
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The snippet with its marks as brackets.
    fn bracketed(snippet: &Snippet) -> String {
        let (mut shown, mut at) = (String::new(), 0);
        for mark in &snippet.marks {
            shown += &format!("{}[{}]", &snippet.text[at..mark.start], &snippet.text[mark.clone()]);
            at = mark.end;
        }
        shown + &snippet.text[at..]
    }

    #[track_caller]
    fn check(text: &str, query: &str, expected: &str) {
        assert_eq!(bracketed(&Snippet::new(text, query)), expected, "{text:?} for {query:?}");
    }

    #[test]
    fn the_words_of_the_query_are_marked() {
        check("this is the bias of it", "The BIAS", "this is the [bias] of it");
        check("this is the end", "the", "this is [the] end");
        check("Café au lait", "cafe", "[Café] au lait");
        check("pi is 3.14, not 14.3", "3.14", "pi is [3.14], not [14.3]");
        check("<b>alert</b> & '🎬'", "alert 🎬", "<b>[alert]</b> & '🎬'");
        check("nothing here", "else", "nothing here");
        check("", "x", "");
    }

    #[test]
    fn a_long_text_is_cut_around_its_first_match() {
        let text = format!("{}needle {}", "hay ".repeat(100), "straw ".repeat(100));
        let cut = Snippet::new(&text, "needle");
        let shown = bracketed(&cut);
        assert!(shown.starts_with("…hay ") && shown.ends_with('…') && shown.contains("[needle]"), "{shown}");
        assert!(cut.text.chars().count() <= MAX_CHARACTERS + 2, "{cut:?}");
    }

    proptest! {
        #[test]
        fn whatever_the_text_the_marks_lie_inside_it_in_order_and_apart(
            text in "\\PC{0,400}",
            query in "\\PC{0,30}",
        ) {
            let snippet = Snippet::new(&text, &query);
            let mut end = 0;
            for mark in &snippet.marks {
                prop_assert!(end <= mark.start && mark.start < mark.end, "{snippet:?}");
                prop_assert!(snippet.text.get(mark.clone()).is_some(), "{snippet:?}");
                end = mark.end;
            }
            prop_assert!(text.contains(snippet.text.trim_matches('…').trim()));
        }
    }
}
