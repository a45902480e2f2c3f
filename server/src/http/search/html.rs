//! Snippets as HTML.

use crate::subtitles::snippet::Snippet;

/// The snippet's text, escaped for HTML, with its marks as `<mark>` elements.
pub(super) fn marked(snippet: &Snippet) -> String {
    let mut html = String::with_capacity(snippet.text.len() + 32);
    let mut at = 0;
    for mark in &snippet.marks {
        escape(&snippet.text[at..mark.start], &mut html);
        html.push_str("<mark>");
        escape(&snippet.text[mark.clone()], &mut html);
        html.push_str("</mark>");
        at = mark.end;
    }
    escape(&snippet.text[at..], &mut html);
    html
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
        assert_eq!(marked(&Snippet::new(text, query)), expected, "{text:?} for {query:?}");
    }

    #[test]
    fn html_of_the_text_is_shown_and_not_run() {
        let expected = "&lt;script&gt;<mark>alert</mark>(&quot;1&quot;)&lt;/script&gt; &amp; &#39;🎬&#39;";
        check("<script>alert(\"1\")</script> & '🎬'", "alert", expected);
        check("Café au lait, 3.14", "cafe 3.14", "<mark>Café</mark> au lait, <mark>3.14</mark>");
        check("", "x", "");
    }

    proptest! {
        #[test]
        fn whatever_the_text_nothing_of_it_is_markup(text in "\\PC{0,400}", query in "\\PC{0,30}") {
            let html = marked(&Snippet::new(&text, &query));
            let bare = html.replace("<mark>", "").replace("</mark>", "");
            prop_assert!(!bare.contains(['<', '>', '"', '\'']), "{html}");
        }
    }
}
