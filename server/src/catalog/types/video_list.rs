//! Which videos to list, and in which order.

use uuid::Uuid;

use super::{Folder, Tags, Video, VideoState};
use crate::subtitles::words::folded;

/// Most words that a list may ask for.
pub const MOST_LISTED_WORDS: usize = 20;
/// Longest key of a title, in bytes. Postgres can't index much longer values.
const LONGEST_KEY: usize = 1200;

/// Which videos to list. Empty fields limit nothing.
#[derive(Debug, Clone, Default)]
pub struct VideoList {
    /// Those in the trash instead of the others.
    pub trashed: bool,
    /// Those that have all of these tags.
    pub tags: Tags,
    /// Those in this folder or below it.
    pub folder: Option<Folder>,
    /// Those in `folder` itself only.
    pub only_itself: bool,
    /// Those whose title, file name, folder and tags hold all of these.
    pub words: Vec<ListedWord>,
    /// Those in this state.
    pub state: Option<VideoState>,
    /// Those with warnings of the file, or those without.
    pub warned: Option<bool>,
    /// Those that were added at this time or later, in Unix milliseconds.
    pub added_since_ms: Option<i64>,
    /// The order.
    pub order: VideoOrder,
}

/// A word, or a part of one, that a list asks for. Case and accents are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWord(String);

impl ListedWord {
    /// The words of a text: what white space separates, at most [`MOST_LISTED_WORDS`]. `None` for more.
    pub fn all(text: &str) -> Option<Vec<ListedWord>> {
        let words: Vec<_> = text.split_whitespace().map(folded).filter(|word| !word.is_empty()).collect();
        (words.len() <= MOST_LISTED_WORDS).then(|| words.into_iter().map(ListedWord).collect())
    }

    /// A pattern of `LIKE ... ESCAPE '\'` for texts that hold the word.
    pub(in crate::catalog) fn pattern(&self) -> String {
        format!("%{}%", self.0.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_"))
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VideoOrder {
    /// The first added first.
    #[default]
    Oldest,
    /// The last added first.
    Newest,
    /// By title, without case and accents; numbers in titles are compared as numbers.
    Title,
    /// By length, the longest first. Videos that are not decoded yet come last.
    Longest,
    /// The largest file first.
    Largest,
}

/// The place of a video in an order: what its order compares, and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoPlace {
    /// What the order compares before the id.
    pub key: PlaceKey,
    /// The video's id.
    pub id: Uuid,
}

/// What an order compares before the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKey {
    /// Nothing: ids are in the order of creation.
    Nothing,
    /// The key of a title.
    Title(Vec<u8>),
    /// A length in milliseconds, -1 if it is unknown, or a size in bytes.
    Number(i64),
}

impl VideoOrder {
    /// The place of a video.
    pub fn place(self, video: &Video) -> VideoPlace {
        let key = match self {
            VideoOrder::Oldest | VideoOrder::Newest => PlaceKey::Nothing,
            VideoOrder::Title => PlaceKey::Title(title_key(&video.title)),
            VideoOrder::Longest => PlaceKey::Number(video.facts.as_ref().map_or(-1, |it| it.duration_ms)),
            VideoOrder::Largest => PlaceKey::Number(video.bytes),
        };
        VideoPlace { key, id: video.id }
    }

    /// Whether the order compares such keys.
    pub fn compares(self, key: &PlaceKey) -> bool {
        match self {
            VideoOrder::Oldest | VideoOrder::Newest => matches!(key, PlaceKey::Nothing),
            VideoOrder::Title => matches!(key, PlaceKey::Title(_)),
            VideoOrder::Longest | VideoOrder::Largest => matches!(key, PlaceKey::Number(_)),
        }
    }
}

/// The title in the order of a list: bytes that compare like it, without case and accents. A number stands for its value,
/// so that "part 9" comes before "part 10".
pub(in crate::catalog) fn title_key(title: &str) -> Vec<u8> {
    let folded = folded(title.trim());
    let mut key = Vec::with_capacity(folded.len() + 8);
    let mut rest = folded.as_bytes();
    while let Some(&first) = rest.first() {
        let is_digit = first.is_ascii_digit();
        let end = rest.iter().position(|it| it.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if is_digit {
            let zeros = run.iter().take_while(|it| **it == b'0').count();
            let value = run.get(zeros..).unwrap_or_default();
            // The number of digits decides first.
            key.extend([b'0', u8::try_from(value.len()).unwrap_or(u8::MAX)]);
            key.extend(value);
        } else {
            key.extend(run);
        }
        rest = after;
    }
    key.truncate(LONGEST_KEY);
    key
}

/// The text in which a list looks up words.
pub(in crate::catalog) fn look_up<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(folded).collect();
    names.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Titles in the order of a list.
    #[track_caller]
    fn check(expected: &[&str]) {
        let mut titles = expected.to_vec();
        titles.reverse();
        titles.sort_by_key(|title| title_key(title));
        assert_eq!(titles, expected);
    }

    #[test]
    fn titles_are_in_the_order_that_people_expect() {
        check(&["1", "2", "10", "a", "B", "c"]);
        check(&["Final", "final 1", "final 2", "Final 09", "final 10", "final 10 b", "finals"]);
        check(&["Ärger", "eclair", "Éclairs", "Etude", "zebra"]);
        check(&["part 9 of 11", "part 10 of 2", "part 10 of 11"]);
    }

    #[test]
    fn a_key_is_bounded() {
        assert_eq!(title_key(&"x".repeat(5000)).len(), LONGEST_KEY);
        assert_eq!(title_key(&"9".repeat(300)).get(..2), Some(&[b'0', 255][..]));
        assert!(title_key("").is_empty());
    }

    #[test]
    fn words_are_matched_literally() {
        let patterns = |text: &str| -> Vec<String> {
            ListedWord::all(text).expect("few words").iter().map(ListedWord::pattern).collect()
        };
        assert_eq!(patterns(" Übung  100% a_b "), ["%ubung%", r"%100\%%", r"%a\_b%"]);
        assert!(ListedWord::all(&"a ".repeat(21)).is_none());
        assert_eq!(look_up(["Übung 1", "x.MP4"]), "ubung 1\nx.mp4");
    }
}
