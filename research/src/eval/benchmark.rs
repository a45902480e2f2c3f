//! Queries and their relevant clips: TF-CoVR's test columns (arXiv 2506.05274) and the files that `reprise synth`
//! writes beside them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use reprise_encoders::text::normalise::normalise_modification;
use serde::Deserialize;

use crate::encode::file_of;

/// A folder of clips with queries. Clips are numbered in order of appearance.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// The clips' files.
    pub(super) clips: Vec<PathBuf>,
    /// One query per row of triplets.csv.
    pub(super) composed: Vec<ComposedQuery>,
    /// One query per row of descriptions.csv whose label belongs to a clip.
    pub(super) texts: Vec<TextQuery>,
    /// The clips of each label of labels.csv, in order of the labels.
    pub(super) classes: Vec<Vec<usize>>,
}

/// A composed query: a clip and a modification text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComposedQuery {
    /// The query clip.
    pub(super) clip: usize,
    /// The modification text.
    pub(super) modification: String,
    /// The kind of change: `seen_pairs`, `held_out_pairs` or `two_attribute`; `all` if no file states it.
    pub(super) kind: String,
    /// The row's own target.
    pub(super) target: usize,
    /// All relevant clips; never empty.
    pub(super) valid: HashSet<usize>,
    /// Entries in the row's list of relevant clips, repeats included.
    pub(super) listed: usize,
}

/// A text query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextQuery {
    /// The text.
    pub(super) text: String,
    /// The relevant clips; never empty.
    pub(super) valid: HashSet<usize>,
}

/// One row of triplets.csv.
#[derive(Debug, Deserialize)]
struct TripletRow {
    query_video: String,
    target_video: String,
    modification: String,
    /// A Python list literal.
    target_videos_ids: Option<String>,
}

/// One line of triplets.jsonl.
#[derive(Debug, Deserialize)]
struct TripletFacts {
    kind: String,
}

#[derive(Debug, Deserialize)]
struct LabelRow {
    video: String,
    label: String,
}

#[derive(Debug, Deserialize)]
struct DescriptionRow {
    label: String,
    text: String,
}

/// The kind of queries without a stated kind.
const ANY_KIND: &str = "all";
/// The folder of long videos, whose ranges are not clips.
const BROADCASTS: &str = "broadcasts/";

impl Benchmark {
    /// Reads the folder.
    ///
    /// # Errors
    /// Files that are missing, unreadable or contradictory.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Benchmark> {
        let labels: Vec<LabelRow> = match folder.join("labels.csv").exists() {
            true => rows(&folder.join("labels.csv"))?,
            false => Vec::new(),
        };
        let mut numbers = Numbers::default();
        let mut by_label: HashMap<&str, HashSet<usize>> = HashMap::new();
        for row in labels.iter().filter(|row| !row.video.starts_with(BROADCASTS)) {
            by_label.entry(&row.label).or_default().insert(numbers.of(&row.video));
        }
        let composed = composed(folder, &mut numbers)?;
        let clips: Result<Vec<PathBuf>, _> = numbers.names.iter().map(|name| file_of(folder, name)).collect();
        let texts = texts(folder, &by_label)?;
        let mut labelled: Vec<_> = by_label.into_iter().collect();
        labelled.sort_unstable_by_key(|(label, _)| *label);
        let class = |(_, clips): (&str, HashSet<usize>)| {
            let mut clips: Vec<usize> = clips.into_iter().collect();
            clips.sort_unstable();
            clips
        };
        Ok(Benchmark { clips: clips?, composed, texts, classes: labelled.into_iter().map(class).collect() })
    }

    /// Normalises the modification texts as TF-CoVR's data set does, for models of every family.
    pub(super) fn normalise(&mut self) {
        for query in &mut self.composed {
            query.modification = normalise_modification(&query.modification);
        }
    }
}

/// Videos by name, numbered in order of appearance.
#[derive(Default)]
struct Numbers {
    names: Vec<String>,
    known: HashMap<String, usize>,
}

impl Numbers {
    fn of(&mut self, name: &str) -> usize {
        let Numbers { names, known } = self;
        *known.entry(name.to_owned()).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    }
}

fn composed(folder: &Path, numbers: &mut Numbers) -> anyhow::Result<Vec<ComposedQuery>> {
    let path = folder.join("triplets.csv");
    let triplets: Vec<TripletRow> = rows(&path)?;
    ensure!(!triplets.is_empty(), "{} has no rows", path.display());
    let kinds = kinds(&folder.join("triplets.jsonl"), triplets.len())?;
    let query = |(row, kind): (TripletRow, String)| {
        let valid = match &row.target_videos_ids {
            Some(list) => python_list(list).with_context(|| format!("{}: {list}", path.display()))?,
            None => vec![row.target_video.clone()],
        };
        let listed = valid.len();
        let valid: HashSet<usize> = valid.iter().map(|name| numbers.of(name)).collect();
        if valid.is_empty() {
            bail!("{}: the query {} has no valid target", path.display(), row.modification);
        }
        let (clip, target) = (numbers.of(&row.query_video), numbers.of(&row.target_video));
        Ok(ComposedQuery { clip, modification: row.modification, kind, target, valid, listed })
    };
    triplets.into_iter().zip(kinds).map(query).collect()
}

fn kinds(path: &Path, count: usize) -> anyhow::Result<Vec<String>> {
    if !path.exists() {
        return Ok(vec![ANY_KIND.to_owned(); count]);
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let facts: Result<Vec<TripletFacts>, _> = text.lines().map(serde_json::from_str).collect();
    let facts = facts.with_context(|| path.display().to_string())?;
    ensure!(facts.len() == count, "{} has {} lines for {count} triplets", path.display(), facts.len());
    Ok(facts.into_iter().map(|facts| facts.kind).collect())
}

fn texts(folder: &Path, by_label: &HashMap<&str, HashSet<usize>>) -> anyhow::Result<Vec<TextQuery>> {
    let path = folder.join("descriptions.csv");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let described: Vec<DescriptionRow> = rows(&path)?;
    let query = |row: DescriptionRow| {
        let valid = by_label.get(&row.label[..])?.clone();
        Some(TextQuery { text: row.text, valid })
    };
    Ok(described.into_iter().filter_map(query).collect())
}

fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    let rows: Result<Vec<T>, _> = reader.deserialize().collect();
    rows.with_context(|| path.display().to_string())
}

/// The strings and numbers of a Python list literal, as strings.
fn python_list(literal: &str) -> anyhow::Result<Vec<String>> {
    let inside = literal.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let mut rest = inside.context("it is no list")?.trim();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (item, after) = python_item(rest)?;
        items.push(item);
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => ensure!(rest.is_empty(), "its items are not separated by commas"),
        }
    }
    Ok(items)
}

/// The first item and the rest of the text.
fn python_item(text: &str) -> anyhow::Result<(String, &str)> {
    let Some(quote) = text.chars().next().filter(|letter| ['\'', '"'].contains(letter)) else {
        let end = text.find(',').unwrap_or(text.len());
        return Ok((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut item = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => item.extend(letters.next().map(|(_, escaped)| escaped)),
            _ if letter == quote => return Ok((item, &text[at + 1..])),
            _ => item.push(letter),
        }
    }
    bail!("a string is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(literal: &str, expected: Option<&[&str]>) {
        match (python_list(literal), expected) {
            (Ok(items), Some(expected)) => assert_eq!(items, expected),
            (Err(_), None) => {}
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn list_literals_are_read_as_python_writes_them() {
        check("['clips/1.mp4', 'b']", Some(&["clips/1.mp4", "b"]));
        check("[]", Some(&[]));
        check(" [ \"it's\" , 'say \\'hi\\'', 17 ] ", Some(&["it's", "say 'hi'", "17"]));
        check("['a, b']", Some(&["a, b"]));
        check("['a',]", Some(&["a"]));
    }

    #[test]
    fn what_is_no_list_literal_is_refused() {
        check("'a'", None);
        check("['a", None);
        check("['a' 'b']", None);
        check("", None);
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("clips")).unwrap();
        for name in ["1", "2", "3"] {
            std::fs::write(folder.path().join(format!("clips/{name}.mp4")), "").unwrap();
        }
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    const LABELS: &str = "video,start,end,label\nclips/1.mp4,0,1,\"a, b\"\nclips/2.mp4,0,1,c\n\
        clips/3.mp4,0,1,c\nbroadcasts/01.mp4,3,4,c\n";
    const TRIPLETS: &str = "query_id,query_video,target_video,modification,target_videos_ids\n\
        0,clips/1.mp4,clips/3.mp4,show c,\"['clips/3.mp4', 'clips/2.mp4']\"\n\
        1,clips/2.mp4,clips/1.mp4,show a,['clips/1.mp4']\n";

    #[test]
    fn a_rendered_folder_is_read_with_its_kinds_and_texts() {
        let kinds =
            "{\"query_id\": 0, \"kind\": \"seen_pairs\"}\n{\"query_id\": 1, \"kind\": \"two_attribute\"}\n";
        let texts = "label,text\nc,somebody does c\nunseen,nobody\n";
        let files = [
            ("labels.csv", LABELS),
            ("triplets.csv", TRIPLETS),
            ("triplets.jsonl", kinds),
            ("descriptions.csv", texts),
        ];
        let folder = folder(&files);
        let read = Benchmark::read(folder.path()).unwrap();
        let names: Vec<_> =
            read.clips.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["1.mp4", "2.mp4", "3.mp4"], "ranges of broadcasts are no clips");
        let first = &read.composed[0];
        assert_eq!((first.clip, first.target, &first.kind[..]), (0, 2, "seen_pairs"));
        assert_eq!(first.valid, HashSet::from([1, 2]));
        assert_eq!(read.composed[1].kind, "two_attribute");
        let valid = HashSet::from([1, 2]);
        assert_eq!(read.classes, [vec![0], vec![1, 2]]);
        assert_eq!(read.texts, [TextQuery { text: "somebody does c".to_owned(), valid }]);
    }

    #[test]
    fn the_papers_own_table_is_enough() {
        let table = TRIPLETS.replace(".mp4", "");
        let folder = folder(&[("triplets.csv", &table)]);
        let read = Benchmark::read(folder.path()).unwrap();
        assert_eq!((read.clips.len(), read.texts.len()), (3, 0));
        assert!(read.composed.iter().all(|query| query.kind == "all"));
    }

    #[track_caller]
    fn refused(files: &[(&str, &str)], expected: &str) {
        let folder = folder(files);
        let error = format!("{:#}", Benchmark::read(folder.path()).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn folders_that_contradict_themselves_are_refused() {
        refused(&[], "triplets.csv");
        refused(&[("triplets.csv", "query_video,target_video,modification\n")], "no rows");
        refused(&[("triplets.csv", "query_video,modification\n1,2\n")], "target_video");
        refused(&[("triplets.csv", &TRIPLETS.replace("/3", "/4"))], "clips/4.mp4");
        refused(&[("triplets.csv", &TRIPLETS.replace("['clips/1.mp4']", "[]"))], "no valid target");
        refused(&[("triplets.csv", TRIPLETS), ("triplets.jsonl", "{\"kind\": \"a\"}\n")], "1 lines");
    }
}
