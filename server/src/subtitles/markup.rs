//! Removes markup from cues and keeps the words.

/// Longest tag, in bytes. Without a limit, a line of many `<` would be searched to its end for each of them.
const MAX_TAG_BYTES: usize = 256;

/// SubRip tags. Other tags stay, because lectures show `<s>` and `<unk>` as words.
const SUBRIP_TAGS: [&str; 4] = ["b", "i", "u", "font"];

/// Plain text of a SubRip row: tags and codes like `{\an8}` are removed, entities decoded.
pub(super) fn of_subrip(row: &str) -> String {
    let is_tag = |inside: &str| {
        let name = inside.trim_start_matches('/').split([' ', '\t', '=']).next().unwrap_or_default();
        SUBRIP_TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name.trim()))
    };
    let without_tags = without(row, '<', '>', is_tag);
    entities(&without(&without_tags, '{', '}', |inside| inside.starts_with('\\')))
}

/// Plain text of a WebVTT row: tags and time stamps are removed, entities decoded.
pub(super) fn of_vtt(row: &str) -> String {
    let is_tag = |inside: &str| {
        inside.is_empty() || inside.starts_with(|it: char| it.is_alphanumeric() || it == '/' || it == '.')
    };
    entities(&without(row, '<', '>', is_tag))
}

/// Removes each part between `open` and `close`, delimiters included, for which `goes` returns true. Both are ASCII.
fn without(text: &str, open: char, close: char, goes: impl Fn(&str) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut kept_to, mut from, mut end) = (0, 0, 0);
    while let Some(at) = text[from..].find(open).map(|at| from + at) {
        from = at + 1;
        if end < from {
            // Found once for all that open before it.
            let Some(next) = text[from..].find(close) else { break };
            end = from + next;
        }
        if end - from <= MAX_TAG_BYTES && goes(&text[from..end]) {
            kept.push_str(&text[kept_to..at]);
            from = end + 1;
            kept_to = from;
        }
    }
    kept.push_str(&text[kept_to..]);
    kept
}

fn entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let entity = &rest[at..];
        let end = entity.char_indices().take(12).find(|(_, it)| *it == ';').map(|(end, _)| end);
        match end.and_then(|end| character(&entity[1..end]).map(|it| (it, end))) {
            Some((character, end)) => {
                decoded.extend(character);
                rest = &entity[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &entity[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The character of an entity. `Some(None)` for direction marks, which must not split words. `None` if unknown.
fn character(name: &str) -> Option<Option<char>> {
    let known = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "lrm" | "rlm" => return Some(None),
        _ => {
            let digits = name.strip_prefix('#')?;
            let number = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(number).filter(|it| !it.is_control())?
        }
    };
    Some(Some(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &str, subrip: &str, vtt: &str) {
        assert_eq!((of_subrip(row).as_str(), of_vtt(row).as_str()), (subrip, vtt), "{row:?}");
    }

    #[test]
    fn markup_goes_and_words_stay() {
        check("plain 🎬 é", "plain 🎬 é", "plain 🎬 é");
        check("<i>so</i> <B>be</b> it", "so be it", "so be it");
        check("<font color=\"#ff0000\">red</font>", "red", "red");
        check("{\\an8}above", "above", "{\\an8}above");
        check("{not markup}", "{not markup}", "{not markup}");
        check("<v Ann>hi <c.loud>there</c></v>", "<v Ann>hi <c.loud>there</c></v>", "hi there");
        check("one<00:00:01.500>two", "one<00:00:01.500>two", "onetwo");
        check("between <s> and </s>", "between <s> and </s>", "between  and ");
        check("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d", "a < b && c > d");
        check("&nbsp;&#233;&#xe9;&bogus;&", " éé&bogus;&", " éé&bogus;&");
        check("&quot;it&apos;s&#X41;&rlm;&quot;", "\"it'sA\"", "\"it'sA\"");
        check("1 < 2 and 3 > 2", "1 < 2 and 3 > 2", "1 < 2 and 3 > 2");
        check("I <3 it", "I <3 it", "I <3 it");
        check("<<<b>x", "<<x", "<<x");
        check("<b<i>x", "<bx", "x");
        check("é<b>é</b>é", "ééé", "ééé");
        check("&lrm;x&#0;&#55296;", "x&#0;&#55296;", "x&#0;&#55296;");
    }

    #[test]
    fn a_long_line_that_opens_tags_takes_no_time_for_each() {
        let opened = "<".repeat(1 << 20);
        for line in [opened.clone(), format!("{opened}>"), "<b".repeat(1 << 19), "{\\".repeat(1 << 19)] {
            assert_eq!(of_subrip(&line), line);
        }
        assert_eq!(of_vtt(&opened), opened);
        let long = format!("<v {}>", "x".repeat(MAX_TAG_BYTES));
        assert_eq!(of_vtt(&long), long);
    }
}
