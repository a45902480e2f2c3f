//! Composed queries for ranges of long videos, and their relevant hits. Pure functions over the ground truth of
//! `reprise synth`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// The smallest temporal IoU of a correct hit.
const OVERLAP: f64 = 0.5;

/// A segment of a long video, in seconds, end exclusive.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// Name of the video's file in the folder.
    pub video: String,
    /// Start in seconds, inclusive.
    pub start: f64,
    /// End in seconds, exclusive.
    pub end: f64,
}

impl Range {
    /// Whether a hit at `other` counts as a hit on this segment.
    pub fn is_found_by(&self, other: &Range) -> bool {
        let both = self.end.min(other.end) - self.start.max(other.start);
        let either = self.end.max(other.end) - self.start.min(other.start);
        self.video == other.video && both > 0.0 && both / either >= OVERLAP
    }
}

/// One element in a long video.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// The element's range. If it is alone between two cuts, the range is from cut to cut. Otherwise it is the
    /// element's own start and end.
    pub range: Range,
    /// The element's label.
    pub label: String,
    /// Whether other elements precede or follow it without a cut.
    pub uncut: bool,
}

/// A stretch between two cuts that shows one element: a routine, or a replay of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// From cut to cut.
    pub range: Range,
    /// The element's label.
    pub label: String,
    /// Number of the video.
    pub broadcast: u64,
    /// Number of the routine that it shows. A replay has that of its routine.
    pub shown: usize,
}

/// A query with all its relevant elements.
#[derive(Debug, PartialEq)]
pub struct Query {
    /// The query clip.
    pub from: Range,
    /// The modification text.
    pub modification: String,
    /// Indices of the relevant elements; never empty.
    pub targets: HashSet<usize>,
}

/// TargetLocation of a query's targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetLocation {
    /// At least one target between two cuts.
    CutRoutines,
    /// All targets in uncut routines.
    UncutRoutines,
}

impl TargetLocation {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            TargetLocation::CutRoutines => "cut_routines",
            TargetLocation::UncutRoutines => "uncut_routines",
        }
    }
}

/// One line of broadcasts.jsonl.
#[derive(Debug, Deserialize)]
struct RangeLine {
    video: String,
    start: f64,
    end: f64,
    kind: String,
    #[serde(default)]
    range: usize,
    /// The replayed range.
    replays: Option<usize>,
    elements: Vec<ElementLine>,
}

#[derive(Debug, Deserialize)]
struct ElementLine {
    start: f64,
    end: f64,
    label: String,
}

/// A modification of a triplet, without its clips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The query's label.
    pub from: String,
    /// The target's label.
    pub to: String,
    /// The modification text.
    pub modification: String,
}

#[derive(Debug, Deserialize)]
struct TripletLine {
    label1: String,
    label2: String,
}

#[derive(Debug, Deserialize)]
struct TripletRow {
    modification: String,
}

/// All elements of a folder's long videos.
///
/// # Errors
/// broadcasts.jsonl is missing or unreadable.
pub fn elements(folder: &Path) -> anyhow::Result<Vec<Element>> {
    let mut elements = Vec::new();
    for line in lines::<RangeLine>(&folder.join("broadcasts.jsonl"))? {
        let uncut = line.kind == "uncut_routine";
        for it in line.elements {
            let (start, end) = if uncut { (it.start, it.end) } else { (line.start, line.end) };
            let range = Range { video: line.video.clone(), start, end };
            elements.push(Element { range, label: it.label, uncut });
        }
    }
    Ok(elements)
}

/// All cuts of a folder's long videos that show one element.
///
/// # Errors
/// broadcasts.jsonl is missing or unreadable.
pub fn cuts(folder: &Path) -> anyhow::Result<Vec<Cut>> {
    let (mut cuts, mut videos, mut routines) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines::<RangeLine>(&folder.join("broadcasts.jsonl"))? {
        let [element] = &line.elements[..] else { continue };
        if line.kind == "uncut_routine" {
            continue;
        }
        let broadcast = place_of(&mut videos, line.video.clone()) as u64;
        let shown = place_of(&mut routines, (line.video.clone(), line.replays.unwrap_or(line.range)));
        let range = Range { video: line.video, start: line.start, end: line.end };
        cuts.push(Cut { range, label: element.label.clone(), broadcast, shown });
    }
    Ok(cuts)
}

/// The place of a value among those known, where it is added if it is new.
fn place_of<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    known.iter().position(|it| *it == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// The changes of a folder's triplets.
///
/// # Errors
/// triplets.csv or triplets.jsonl is missing, unreadable, or shorter than the other.
pub fn changes(folder: &Path) -> anyhow::Result<Vec<Change>> {
    let path = folder.join("triplets.csv");
    let mut reader = csv::Reader::from_path(&path).with_context(|| path.display().to_string())?;
    let rows: Result<Vec<TripletRow>, _> = reader.deserialize().collect();
    let rows = rows.with_context(|| path.display().to_string())?;
    let facts: Vec<TripletLine> = lines(&folder.join("triplets.jsonl"))?;
    anyhow::ensure!(
        rows.len() == facts.len(),
        "triplets.csv and triplets.jsonl are not of the same triplets"
    );
    let change = |(row, facts): (TripletRow, TripletLine)| Change {
        from: facts.label1,
        to: facts.label2,
        modification: row.modification,
    };
    Ok(rows.into_iter().zip(facts).map(change).collect())
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let parsed: Result<Vec<T>, _> = text.lines().map(serde_json::from_str).collect();
    parsed.with_context(|| path.display().to_string())
}

/// Up to `most` queries per location, an even subsample. Each change gives a query if both its labels occur in the
/// videos. The query clip is an element between cuts if one exists. Changes use a label's elements in turn.
pub fn queries(
    elements: &[Element],
    changes: &[Change],
    most: usize,
) -> BTreeMap<TargetLocation, Vec<Query>> {
    let mut by_place: BTreeMap<TargetLocation, Vec<Query>> = BTreeMap::new();
    for (turn, change) in changes.iter().enumerate() {
        let cut: Vec<_> = shown(elements, &change.from, false).collect();
        let from = if cut.is_empty() { shown(elements, &change.from, true).collect() } else { cut };
        let between_cuts = shown(elements, &change.to, false).count() > 0;
        let targets = shown(elements, &change.to, false).chain(shown(elements, &change.to, true));
        let targets: HashSet<usize> = targets.map(|(at, _)| at).collect();
        if from.is_empty() || targets.is_empty() {
            continue;
        }
        let from = from[turn % from.len()].1.range.clone();
        let place = if between_cuts { TargetLocation::CutRoutines } else { TargetLocation::UncutRoutines };
        let modification = change.modification.clone();
        by_place.entry(place).or_default().push(Query { from, modification, targets });
    }
    by_place.into_iter().map(|(place, queries)| (place, spread(queries, most))).collect()
}

/// The elements of a label, in uncut routines or between cuts, with their indices.
fn shown<'a>(
    elements: &'a [Element],
    label: &'a str,
    uncut: bool,
) -> impl Iterator<Item = (usize, &'a Element)> {
    elements.iter().enumerate().filter(move |(_, it)| it.label == label && it.uncut == uncut)
}

/// At most `most` items, evenly spread.
fn spread<T>(items: Vec<T>, most: usize) -> Vec<T> {
    let count = items.len();
    let is_kept = |at: usize| count <= most || at * most / count != (at + 1) * most / count;
    items.into_iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, item)| item).collect()
}

/// The elements found by the hits, best hit first. A hit without an element of `wanted` counts as wrong. An element
/// found by several hits counts once.
pub fn found(elements: &[Element], wanted: &HashSet<usize>, hits: &[Range]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut ranked = Vec::new();
    for (rank, hit) in hits.iter().enumerate() {
        let right: Vec<usize> =
            wanted.iter().copied().filter(|at| elements[*at].range.is_found_by(hit)).collect();
        match right.iter().copied().min() {
            Some(element) if !seen.insert(element) => {}
            Some(element) => ranked.push(element),
            None => ranked.push(elements.len() + rank),
        }
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: f64, end: f64) -> Range {
        Range { video: "broadcasts/01.mp4".to_owned(), start, end }
    }

    fn element(start: f64, label: &str, uncut: bool) -> Element {
        Element { range: range(start, start + 2.0), label: label.to_owned(), uncut }
    }

    #[track_caller]
    fn check(hit: Range, expected: bool) {
        assert_eq!(range(10.0, 12.0).is_found_by(&hit), expected, "{hit:?}");
    }

    #[test]
    fn a_hit_is_right_from_half_of_the_union_on() {
        check(range(10.0, 12.0), true);
        check(range(10.0, 14.0), true);
        check(range(10.0, 14.1), false);
        check(range(11.0, 12.0), true);
        check(range(11.1, 12.0), false);
        check(range(12.0, 14.0), false);
        check(Range { video: "broadcasts/02.mp4".to_owned(), ..range(10.0, 12.0) }, false);
    }

    fn change(from: &str, to: &str) -> Change {
        Change { from: from.to_owned(), to: to.to_owned(), modification: format!("{from} to {to}") }
    }

    #[test]
    fn queries_are_sorted_by_where_their_targets_lie() {
        let elements = [
            element(0.0, "a", false),
            element(5.0, "b", false),
            element(10.0, "b", true),
            element(12.0, "c", true),
        ];
        let changes = [change("a", "b"), change("a", "c"), change("c", "a"), change("a", "unseen")];
        let queries = queries(&elements, &changes, 9);
        let of = |place: TargetLocation| -> Vec<(&str, f64, usize)> {
            let it = |it: &Query| (it.from.start, it.targets.len());
            queries[&place].iter().map(|query| (&query.modification[..], it(query).0, it(query).1)).collect()
        };
        assert_eq!(of(TargetLocation::CutRoutines), [("a to b", 0.0, 2), ("c to a", 12.0, 1)]);
        assert_eq!(of(TargetLocation::UncutRoutines), [("a to c", 0.0, 1)]);
    }

    #[test]
    fn of_many_queries_some_from_everywhere_are_kept() {
        assert_eq!(spread((0..10).collect(), 5), [1, 3, 5, 7, 9]);
        assert_eq!(spread((0..7).collect(), 3).len(), 3);
        assert_eq!(spread(vec![1, 2], 3), [1, 2]);
    }

    #[test]
    fn each_element_counts_once_and_wrong_hits_keep_their_rank() {
        let elements = [element(0.0, "a", false), element(5.0, "b", false)];
        let hits = [range(20.0, 22.0), range(5.0, 7.0), range(5.2, 7.0), range(0.0, 2.0)];
        assert_eq!(found(&elements, &HashSet::from([1]), &hits), [2, 1, 5]);
        assert_eq!(found(&elements, &HashSet::from([0, 1]), &hits), [2, 1, 0]);
    }

    #[test]
    fn the_truth_of_a_folder_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let lines = r#"{"video": "broadcasts/01.mp4", "range": 0, "start": 0, "end": 3, "kind": "routine", "label": "a", "elements": [{"start": 1, "end": 2, "class": 0, "label": "a"}], "replays": null}
{"video": "broadcasts/01.mp4", "range": 1, "start": 3, "end": 9, "kind": "uncut_routine", "label": null, "elements": [{"start": 4, "end": 6, "class": 1, "label": "b"}], "replays": null}
{"video": "broadcasts/01.mp4", "range": 2, "start": 9, "end": 10, "kind": "pause", "label": null, "elements": [], "replays": null}
"#;
        std::fs::write(folder.path().join("broadcasts.jsonl"), lines).unwrap();
        std::fs::write(folder.path().join("triplets.csv"), "query_id,modification\n0,\"show, b\"\n").unwrap();
        std::fs::write(folder.path().join("triplets.jsonl"), "{\"label1\": \"a\", \"label2\": \"b\"}\n")
            .unwrap();
        let elements = elements(folder.path()).unwrap();
        assert_eq!(elements.len(), 2);
        assert_eq!((elements[0].range.clone(), elements[0].uncut), (range(0.0, 3.0), false));
        assert_eq!((elements[1].range.clone(), elements[1].uncut), (range(4.0, 6.0), true));
        let expected = Change { modification: "show, b".to_owned(), ..change("a", "b") };
        assert_eq!(changes(folder.path()).unwrap(), [expected]);
    }
}
