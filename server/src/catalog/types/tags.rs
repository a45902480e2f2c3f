//! Tags and folders of videos. Both keep their spelling and are compared by keys, which are the same for every case and
//! every Unicode form of a text.

use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

/// Most tags of a video.
pub const MOST_TAGS: usize = 50;
/// Longest tag, in characters.
pub const LONGEST_TAG: usize = 60;
/// Longest path of a folder, in characters.
pub const LONGEST_FOLDER: usize = 300;
/// Deepest nesting of folders.
pub const DEEPEST_FOLDER: usize = 10;
/// Longest key, in bytes. Postgres can't index much longer values.
const LONGEST_KEY: usize = 1200;
/// Stands between the names in a folder's key. It is less than every character of a name, so a folder and all below it are
/// neighbours in the order of keys.
const BETWEEN: u8 = 1;

/// A tag of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    text: String,
    key: Vec<u8>,
}

impl Tag {
    /// Reads a tag: 1 to [`LONGEST_TAG`] characters without commas and control characters. White space at its ends is
    /// dropped, and other white space becomes one space.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence without a full stop.
    pub fn parse(text: &str) -> Result<Tag, String> {
        let wrong =
            || format!("a tag has 1 to {LONGEST_TAG} characters, without commas and control characters");
        let text = plain(text);
        if text.is_empty() || text.chars().count() > LONGEST_TAG || text.contains([',', '\u{fffd}']) {
            return Err(wrong());
        }
        let key = key_of(&text).ok_or_else(wrong)?;
        Ok(Tag { text, key })
    }

    /// A tag as the catalog holds it.
    pub(in crate::catalog) fn stored(text: String, key: Vec<u8>) -> Tag {
        Tag { text, key }
    }

    /// The tag as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Equal for tags that are the same.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The tags of a video, each once, in order of key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Vec<Tag>);

impl Tags {
    /// Reads tags. Of two spellings of one tag the first stays.
    ///
    /// # Errors
    /// The place of a wrong tag, and what is wrong with it; for more than [`MOST_TAGS`], no place.
    pub fn parse(texts: &[String]) -> Result<Tags, (Option<usize>, String)> {
        if texts.len() > MOST_TAGS {
            return Err((None, format!("a video may have {MOST_TAGS} tags")));
        }
        let read = |(place, text): (usize, &String)| Tag::parse(text).map_err(|why| (Some(place), why));
        let mut tags = texts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        tags.sort_by(|a, b| a.key.cmp(&b.key));
        tags.dedup_by(|later, first| later.key == first.key);
        Ok(Tags(tags))
    }

    /// The tags in order.
    pub fn iter(&self) -> impl Iterator<Item = &Tag> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The folder of a video: a path like `season 2026/finals`, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    path: String,
    key: Vec<u8>,
}

impl Folder {
    /// Reads a path: names with a slash between them, at most [`DEEPEST_FOLDER`] of them and [`LONGEST_FOLDER`]
    /// characters. White space in names is treated as in tags. An empty path is no folder.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence without a full stop.
    pub fn parse(path: &str) -> Result<Folder, String> {
        if path.trim().is_empty() {
            return Ok(Folder::default());
        }
        let names: Vec<String> = path.split('/').map(plain).collect();
        let is_wrong =
            |name: &String| name.is_empty() || name == "." || name == ".." || name.contains('\u{fffd}');
        if names.iter().any(is_wrong) {
            let why = "a folder is a path of names like `season 2026/finals`, without control characters";
            return Err(why.to_owned());
        }
        let path = names.join("/");
        let too_long =
            || format!("a folder has at most {DEEPEST_FOLDER} names and {LONGEST_FOLDER} characters");
        if names.len() > DEEPEST_FOLDER || path.chars().count() > LONGEST_FOLDER {
            return Err(too_long());
        }
        let keys = names.iter().map(|name| key_of(name)).collect::<Option<Vec<_>>>().ok_or_else(too_long)?;
        let key = keys.join(&BETWEEN);
        if key.len() > LONGEST_KEY {
            return Err(too_long());
        }
        Ok(Folder { path, key })
    }

    /// A folder as the catalog holds it.
    pub(in crate::catalog) fn stored(path: String, key: Vec<u8>) -> Folder {
        Folder { path, key }
    }

    /// The path. Empty for no folder.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Equal for folders that are the same. Empty for no folder.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Number of names of the path.
    pub fn depth(&self) -> usize {
        if self.path.is_empty() { 0 } else { self.path.split('/').count() }
    }

    /// The folder with the first `depth` names of this one.
    pub fn ancestor(&self, depth: usize) -> Folder {
        let names: Vec<&str> = self.path.split('/').take(depth).collect();
        let keys: Vec<&[u8]> = self.key.split(|byte| *byte == BETWEEN).take(depth).collect();
        Folder { path: names.join("/"), key: keys.join(&BETWEEN) }
    }

    /// A key after those of the folder and of all below it, and before those of other folders behind it.
    pub fn end(&self) -> Vec<u8> {
        Folder::end_of(&self.key)
    }

    /// As [`Folder::end`], of a folder with this key.
    pub fn end_of(key: &[u8]) -> Vec<u8> {
        // No UTF-8 text holds 255.
        let after = if key.is_empty() { u8::MAX } else { BETWEEN + 1 };
        key.iter().copied().chain([after]).collect()
    }

    /// Whether this folder is `other` or lies below it.
    pub fn is_within(&self, other: &Folder) -> bool {
        self.key >= other.key && self.key < other.end()
    }
}

/// The text in Unicode's composed form, without white space at its ends, and one space for other white space. Control
/// characters become U+FFFD, which no name may hold.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").nfc().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}

/// The key of a name, without case and compatibility forms. `None` if it is too long.
fn key_of(name: &str) -> Option<Vec<u8>> {
    // By way of capitals, so that "ß" and "ss" are the same.
    let folded: String =
        name.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect();
    Some(folded.into_bytes()).filter(|key| !key.is_empty() && key.len() <= LONGEST_KEY)
}

/// The folder and the tags of a video.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Its folder; empty for none.
    pub folder: Folder,
    /// Its tags, in order of key.
    pub tags: Vec<Tag>,
}

/// A tag with the number of its videos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagCount {
    /// One spelling of it.
    pub tag: String,
    /// Its key.
    pub key: Vec<u8>,
    /// Number of videos that have it.
    pub videos: i64,
}

/// A folder with the number of its videos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderCount {
    /// The folder, in one of its spellings.
    pub folder: Folder,
    /// Number of videos in the folder itself.
    pub videos: i64,
    /// Number of videos in the folder and below it.
    pub total: i64,
    /// Whether there are folders with videos below it.
    pub has_folders: bool,
}

/// A change of tags and folder of many videos. Tags are removed before others are added.
#[derive(Debug, Clone, Default)]
pub struct LabelChange {
    /// The videos.
    pub videos: Vec<Uuid>,
    /// Tags that each of them gets.
    pub add: Tags,
    /// Tags that none of them keeps.
    pub remove: Tags,
    /// The folder that they move to; `None`: they stay where they are.
    pub folder: Option<Folder>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tag(text: &str, expected: Option<(&str, &str)>) {
        let tag = Tag::parse(text).ok();
        let shown = tag.as_ref().map(|it| (it.text(), std::str::from_utf8(it.key()).unwrap()));
        assert_eq!(shown, expected, "{text:?}");
    }

    #[track_caller]
    fn check_folder(path: &str, expected: Option<&str>) {
        let folder = Folder::parse(path).ok();
        assert_eq!(folder.as_ref().map(Folder::path), expected, "{path:?}");
    }

    #[test]
    fn a_tag_keeps_its_spelling_and_is_compared_without_case() {
        check_tag("Dive", Some(("Dive", "dive")));
        check_tag("  10 m\t\n platform ", Some(("10 m platform", "10 m platform")));
        check_tag("CAFE\u{301}", Some(("CAFÉ", "café")));
        check_tag("Ｆｉｎａｌ", Some(("Ｆｉｎａｌ", "final")));
        check_tag("Σίσυφος", Some(("Σίσυφος", "σίσυφοσ")));
        check_tag("Straße", Some(("Straße", "strasse")));
        check_tag("it's 100 %_\\", Some(("it's 100 %_\\", "it's 100 %_\\")));
        for wrong in ["", " ", "a,b", "a\0", "a\u{7}b", &"x".repeat(LONGEST_TAG + 1)] {
            check_tag(wrong, None);
        }
        assert!(Tag::parse(&"é".repeat(LONGEST_TAG)).is_ok());
    }

    #[test]
    fn a_video_has_each_tag_once() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
            let tags = Tags::parse(&texts);
            tags.map(|it| it.iter().map(|tag| tag.text().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(read(&["b", "A", "B", "a"]).unwrap(), ["A", "b"]);
        assert_eq!(read(&["a", ""]).unwrap_err().0, Some(1));
        let many: Vec<String> = (0..=MOST_TAGS).map(|it| it.to_string()).collect();
        assert_eq!(Tags::parse(&many).unwrap_err().0, None);
        assert!(Tags::parse(&many[1..]).is_ok());
    }

    #[test]
    fn a_folder_is_a_path_of_names() {
        check_folder("", Some(""));
        check_folder(" ", Some(""));
        check_folder("Season 2026 / Finals", Some("Season 2026/Finals"));
        for wrong in ["/", "/a", "a/", "a//b", "a/ /b", ".", "a/..", "a\0", "a/\u{1}"] {
            check_folder(wrong, None);
        }
        check_folder(&["a"; DEEPEST_FOLDER].join("/"), Some(&["a"; DEEPEST_FOLDER].join("/")));
        check_folder(&["a"; DEEPEST_FOLDER + 1].join("/"), None);
        check_folder(&"x".repeat(LONGEST_FOLDER + 1), None);
        // One character with eighteen in its compatibility form.
        check_folder(&"\u{fdfa}".repeat(LONGEST_FOLDER), None);
    }

    #[test]
    fn a_folder_holds_what_is_below_it_and_nothing_beside_it() {
        let folder = |path: &str| Folder::parse(path).unwrap();
        let (outer, root) = (folder("A b"), Folder::default());
        for inside in ["a B", "a b/c", "A B/c/d", "a b/ü"] {
            assert!(folder(inside).is_within(&outer) && folder(inside).is_within(&root), "{inside}");
        }
        for outside in ["a", "a bc", "a b c/d", "a b-c", "b"] {
            assert!(!folder(outside).is_within(&outer), "{outside}");
        }
        assert!(root.is_within(&root) && !root.is_within(&outer));
        let deep = folder("A/b/C");
        assert_eq!((deep.ancestor(2), deep.ancestor(0), deep.depth()), (folder("A/b"), root, 3));
    }
}
