//! Triplets from feedback on composed searches: the query's clip, the change, and a clip that a user found relevant.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use reprise_encoders::Cause;
use serde::Deserialize;

use super::CovrError;
use super::footage::{Stretch, TrainRow};

/// A line of the file: what was done with one hit of one search. Other fields do not count.
#[derive(Debug, Clone, Deserialize)]
pub struct Judged {
    /// Kind of query; only `composed` ones make triplets.
    kind: String,
    /// What was done: `relevant` and `not_relevant` count.
    verdict: String,
    query: JudgedQuery,
    hit: JudgedHit,
}

#[derive(Debug, Clone, Deserialize)]
struct JudgedQuery {
    /// The change.
    text: Option<String>,
    file: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
struct JudgedHit {
    file: String,
    start: f64,
    end: f64,
}

/// Triplets, and the clips that they name.
#[derive(Debug, Clone, PartialEq)]
pub struct FromFeedback {
    /// The triplets, each once.
    pub rows: Vec<TrainRow>,
    /// The clips of all triplets, each once. Their labels are empty.
    pub clips: Vec<Stretch>,
    /// Number of triplets that were left out because verdicts contradict each other.
    pub contradictory: usize,
}

/// A query clip and a change, with the names of the clips that were judged.
#[derive(Debug, Default)]
struct Asked {
    relevant: BTreeSet<String>,
    not_relevant: BTreeSet<String>,
}

/// Reads a file of JSON lines, as `reprise feedback export` writes it.
///
/// # Errors
/// The file cannot be read, or a line is of another form; the error names the line.
pub fn read(path: &Path) -> Result<Vec<Judged>, CovrError> {
    let wrong = |reason: Cause| CovrError::Labels { path: path.to_owned(), reason };
    let file = std::fs::File::open(path).map_err(|error| wrong(error.into()))?;
    let line = |(at, line): (usize, std::io::Result<String>)| {
        let parsed = line.map_err(Cause::from).and_then(|line| Ok(serde_json::from_str(&line)?));
        parsed.map_err(|error| wrong(format!("line {}: {error}", at + 1).into()))
    };
    BufReader::new(file).lines().enumerate().map(line).collect()
}

/// The triplets of composed searches of stored clips. Targets that were relevant to one query share a label, because none of
/// them is a wrong answer to it.
pub fn triplets(judged: &[Judged]) -> FromFeedback {
    let mut clips: BTreeMap<String, Stretch> = BTreeMap::new();
    let mut queries: BTreeMap<(String, String), Asked> = BTreeMap::new();
    for it in judged.iter().filter(|it| it.kind == "composed") {
        let (Some(query), Some(text), Some(target)) =
            (it.query.stretch(), it.query.change(), it.hit.stretch())
        else {
            continue;
        };
        let asked = queries.entry((query.name(), text)).or_default();
        match it.verdict.as_str() {
            "relevant" if query.name() != target.name() => asked.relevant.insert(target.name()),
            "not_relevant" => asked.not_relevant.insert(target.name()),
            _ => continue,
        };
        clips.extend([query, target].map(|clip| (clip.name(), clip)));
    }
    let contradictory = queries.values().map(|it| it.relevant.intersection(&it.not_relevant).count()).sum();
    for asked in queries.values_mut() {
        asked.relevant.retain(|name| !asked.not_relevant.contains(name));
    }
    let labels = labels(queries.values().map(|asked| &asked.relevant));
    let mut rows = Vec::new();
    for ((query, text), asked) in &queries {
        rows.extend(asked.relevant.iter().map(|target| TrainRow {
            query_video: query.clone(),
            target_video: target.clone(),
            label1: labels.get(query).unwrap_or(query).clone(),
            label2: labels.get(target).unwrap_or(target).clone(),
            modification: text.clone(),
        }));
    }
    let named: BTreeSet<&String> =
        rows.iter().flat_map(|row| [&row.query_video, &row.target_video]).collect();
    clips.retain(|name, _| named.contains(name));
    FromFeedback { rows, clips: clips.into_values().collect(), contradictory }
}

/// A label for each clip: the name of one of the clips that queries connect with it.
fn labels<'a>(answers: impl Iterator<Item = &'a BTreeSet<String>>) -> BTreeMap<String, String> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    // Of each clip one that it is connected with, or itself.
    let mut parents: Vec<usize> = Vec::new();
    for together in answers {
        let mut first = None;
        for name in together {
            let number = *numbers.entry(name).or_insert_with(|| {
                names.push(name);
                parents.push(parents.len());
                parents.len() - 1
            });
            let own = root(&mut parents, number);
            let joined = root(&mut parents, *first.get_or_insert(own));
            parents[own.max(joined)] = own.min(joined);
        }
    }
    numbers
        .into_iter()
        .map(|(name, number)| (name.to_owned(), names[root(&mut parents, number)].to_owned()))
        .collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

impl JudgedQuery {
    fn stretch(&self) -> Option<Stretch> {
        stretch(self.file.as_ref()?, self.start?, self.end?)
    }

    fn change(&self) -> Option<String> {
        self.text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

impl JudgedHit {
    fn stretch(&self) -> Option<Stretch> {
        stretch(&self.file, self.start, self.end)
    }
}

fn stretch(file: &str, start: f64, end: f64) -> Option<Stretch> {
    let is_sensible = start >= 0.0 && end > start && end.is_finite();
    is_sensible.then(|| Stretch { video: file.to_owned(), start, end, label: String::new() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A composed search of the clip `query`, with a verdict on the clip `hit`; both begin at this second of `a.mp4`.
    fn line(query: u32, text: &str, hit: u32, verdict: &str) -> Value {
        json!({"search_id": "x", "kind": "composed", "verdict": verdict,
            "query": {"text": text, "file": "a.mp4", "start": query, "end": query + 1, "hash": "y"},
            "hit": {"file": "a.mp4", "start": hit, "end": hit + 1, "rank": 1}})
    }

    fn judged(lines: &[Value]) -> Vec<Judged> {
        lines.iter().map(|line| serde_json::from_value(line.clone()).unwrap()).collect()
    }

    /// `expected`: query, target and label of each triplet, by the seconds at which the clips begin.
    #[track_caller]
    fn check(lines: &[Value], expected: &[(u32, u32, u32)]) -> FromFeedback {
        let made = triplets(&judged(lines));
        let name = |second: &u32| format!("a.mp4#t={second},{}", second + 1);
        let got: Vec<_> = made
            .rows
            .iter()
            .map(|it| [&it.query_video, &it.target_video, &it.label2].map(String::clone))
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(query, target, label)| [query, target, label].map(name)).collect();
        assert_eq!(got, expected);
        made
    }

    #[test]
    fn a_relevant_hit_of_a_composed_search_is_a_triplet() {
        let mut text = line(1, "higher", 2, "relevant");
        text["kind"] = json!("text");
        let mut upload = line(1, "higher", 3, "relevant");
        upload["query"]["file"] = Value::Null;
        let mut hashed = line(1, "higher", 4, "relevant");
        hashed["query"]["text"] = Value::Null;
        let made = check(
            &[
                line(1, " higher", 5, "relevant"),
                line(1, "higher", 5, "relevant"),
                line(1, "higher", 6, "opened"),
                line(1, "higher", 1, "relevant"),
                line(1, "higher", 7, "not_relevant"),
                text,
                upload,
                hashed,
            ],
            &[(1, 5, 5)],
        );
        assert_eq!(
            (made.rows[0].modification.as_str(), made.clips.len(), made.contradictory),
            ("higher", 2, 0)
        );
    }

    #[test]
    fn verdicts_that_contradict_each_other_make_no_triplet() {
        let made = check(
            &[
                line(1, "higher", 5, "relevant"),
                line(1, "higher", 5, "not_relevant"),
                line(1, "lower", 5, "relevant"),
            ],
            &[(1, 5, 5)],
        );
        assert_eq!((made.contradictory, made.rows[0].modification.as_str()), (1, "lower"));
    }

    #[test]
    fn targets_of_one_query_share_a_label_also_through_others() {
        check(
            &[
                line(1, "higher", 5, "relevant"),
                line(1, "higher", 6, "relevant"),
                line(2, "higher", 7, "relevant"),
                line(2, "higher", 8, "relevant"),
                line(3, "lower", 6, "relevant"),
                line(3, "lower", 8, "relevant"),
                line(4, "lower", 9, "relevant"),
            ],
            &[(1, 5, 5), (1, 6, 5), (2, 7, 5), (2, 8, 5), (3, 6, 5), (3, 8, 5), (4, 9, 9)],
        );
    }

    #[test]
    fn a_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("feedback.jsonl");
        std::fs::write(&path, format!("{}\n{{\"kind\": 7}}\n", line(1, "x", 2, "relevant"))).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        std::fs::write(&path, "").unwrap();
        assert!(read(&path).unwrap().is_empty());
    }
}
