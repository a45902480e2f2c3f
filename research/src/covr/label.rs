//! Labels of annotated footage, such as `(VT) round-off, flic-flac on`: an event in brackets and an action.

/// A label, split into event and action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The whole label.
    pub text: String,
    /// The text of the first brackets; empty without brackets.
    pub event: String,
    /// The rest of the label.
    pub action: String,
}

impl Label {
    /// Splits a label.
    pub fn new(text: &str) -> Label {
        let text = text.trim();
        let parts = text.strip_prefix('(').and_then(|it| it.split_once(')'));
        let (event, action) = parts.map_or(("", text), |(event, action)| (event.trim(), action.trim()));
        Label { text: text.to_owned(), event: event.to_owned(), action: action.to_owned() }
    }

    /// The event's name in words.
    pub fn event_name(&self) -> &str {
        match self.event.as_str() {
            "VT" => "vault",
            "FX" => "floor exercise",
            "BB" => "balance beam",
            "UB" => "uneven bars",
            other => other,
        }
    }
}

/// The word difference of two actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordDifference {
    /// Words of the first action only.
    pub removed: String,
    /// Words of the second action only.
    pub added: String,
}

/// The words outside the longest common subsequence of both texts.
pub fn word_difference(from: &str, to: &str) -> WordDifference {
    let (from, to): (Vec<&str>, Vec<&str>) =
        (from.split_whitespace().collect(), to.split_whitespace().collect());
    // longest[i][j]: length of the subsequence for the words from i and from j on.
    let mut longest = vec![vec![0usize; to.len() + 1]; from.len() + 1];
    for i in (0..from.len()).rev() {
        for j in (0..to.len()).rev() {
            longest[i][j] = match from[i] == to[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    while i < from.len() || j < to.len() {
        if i < from.len() && j < to.len() && from[i] == to[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == to.len() || (i < from.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            removed.push(from[i]);
            i += 1;
        } else {
            added.push(to[j]);
            j += 1;
        }
    }
    let join = |words: Vec<&str>| words.join(" ").trim_matches([',', ' ']).to_owned();
    WordDifference { removed: join(removed), added: join(added) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, to: &str, removed: &str, added: &str) {
        let expected = WordDifference { removed: removed.to_owned(), added: added.to_owned() };
        assert_eq!(word_difference(from, to), expected);
    }

    #[test]
    fn labels_fall_into_event_and_action() {
        let label = Label::new(" (UB) giant circle backward");
        assert_eq!((label.event_name(), label.action.as_str()), ("uneven bars", "giant circle backward"));
        let label = Label::new("pouring (slowly)");
        assert_eq!((label.event.as_str(), label.action.as_str()), ("", "pouring (slowly)"));
    }

    #[test]
    fn differences_keep_the_order_of_words() {
        check(
            "salto forward tucked",
            "salto forward stretched with 2 twist",
            "tucked",
            "stretched with 2 twist",
        );
        check("switch leap with 1 turn", "switch leap", "with 1 turn", "");
        check("same", "same", "", "");
        check("", "new words", "", "new words");
        check("jump, tucked", "leap, tucked", "jump", "leap");
    }
}
