//! A cue's text as a hit shows it: HTML, short, with the query's words marked.

use std::collections::HashSet;
use std::ops::Range;

use super::words::{is_stop_word, words, words_at};

/// Longest snippet, in characters of the text.
const MAX_CHARACTERS: usize = 240;
/// Characters shown before the first match where a snippet is cut.
const LEAD_IN: usize = 60;

/// `text` escaped for HTML, the words that it shares with `query` between `<mark>` and `</mark>`.
///
/// Stop words are marked only in a query that has no others. A long text is cut around its first match; `…`
/// says where.
pub fn snippet(text: &str, query: &str) -> String {
    let matches = matches(text, query);
    let shown = shown(text, matches.first().map_or(0, |first| first.start));
    let mut html = String::with_capacity(shown.len() + 32);
    if shown.start > 0 {
        html.push('…');
    }
    let mut at = shown.start;
    for found in matches.into_iter().filter(|it| shown.start <= it.start && it.end <= shown.end) {
        // Parts of one word, like `3.5`, share its place.
        if found.start < at {
            continue;
        }
        escape(&text[at..found.start], &mut html);
        html.push_str("<mark>");
        escape(&text[found.clone()], &mut html);
        html.push_str("</mark>");
        at = found.end;
    }
    escape(&text[at..shown.end], &mut html);
    if shown.end < text.len() {
        html.push('…');
    }
    html
}

fn matches(text: &str, query: &str) -> Vec<Range<usize>> {
    let all: HashSet<String> = words(query).into_iter().collect();
    let telling: HashSet<String> = all.iter().filter(|word| !is_stop_word(word)).cloned().collect();
    let wanted = if telling.is_empty() { all } else { telling };
    words_at(text).filter(|(_, word)| wanted.contains(word)).map(|(at, _)| at).collect()
}

/// The part of `text` that is shown, with the byte `first` in it.
fn shown(text: &str, first: usize) -> Range<usize> {
    if text.chars().count() <= MAX_CHARACTERS {
        return 0..text.len();
    }
    let before = text[..first].char_indices().rev().nth(LEAD_IN).map_or(0, |(at, _)| at);
    // From the beginning of a word, if one begins there.
    let start = match text[before..first].find(char::is_whitespace) {
        Some(space) if before > 0 => text[before + space..].trim_start().len(),
        _ => text.len() - before,
    };
    let start = text.len() - start;
    let end = text[start..].char_indices().nth(MAX_CHARACTERS).map_or(text.len(), |(at, _)| start + at);
    start..end
}

fn escape(text: &str, into: &mut String) {
    for character in text.chars() {
        match character {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '"' => into.push_str("&quot;"),
            '\'' => into.push_str("&#39;"),
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, query: &str, expected: &str) {
        assert_eq!(snippet(text, query), expected, "{text:?} for {query:?}");
    }

    #[test]
    fn the_words_of_the_query_are_marked() {
        check("this is the bias of it", "The BIAS", "this is the <mark>bias</mark> of it");
        check("this is the end", "the", "this is <mark>the</mark> end");
        check("Café au lait", "cafe", "<mark>Café</mark> au lait");
        check("pi is 3.14, not 14.3", "3.14", "pi is <mark>3.14</mark>, not <mark>14.3</mark>");
        check("nothing here", "else", "nothing here");
        check("", "x", "");
    }

    #[test]
    fn html_of_the_text_is_shown_and_not_run() {
        let expected = "&lt;script&gt;<mark>alert</mark>(&quot;1&quot;)&lt;/script&gt; &amp; &#39;🎬&#39;";
        check("<script>alert(\"1\")</script> & '🎬'", "alert", expected);
    }

    #[test]
    fn a_long_text_is_cut_around_its_first_match() {
        let text = format!("{}needle {}", "hay ".repeat(100), "straw ".repeat(100));
        let cut = snippet(&text, "needle");
        assert!(
            cut.starts_with("…hay ") && cut.ends_with('…') && cut.contains("<mark>needle</mark>"),
            "{cut}"
        );
        assert!(cut.chars().count() <= MAX_CHARACTERS + 20, "{cut}");
    }

    proptest! {
        #[test]
        fn whatever_the_text_nothing_of_it_is_markup(text in "\\PC{0,400}", query in "\\PC{0,30}") {
            let html = snippet(&text, &query);
            let bare = html.replace("<mark>", "").replace("</mark>", "");
            prop_assert!(!bare.contains(['<', '>', '"', '\'']), "{html}");
        }
    }
}
