//! `reprise eval examples`: what a second example adds to a query, and what marking the best wrong hit as a negative
//! example does.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use reprise_encoders::{DEFAULT_MODEL, ModelName};
use reprise_index::eval::average_precision;
use reprise_index::{UnitVector, rocchio};
use serde::Serialize;

use super::benchmark::Benchmark;
use super::methods::{Models, unit};
use crate::compute::ComputeArgs;
use crate::encode;
use crate::terminal::bar;

/// Arguments of `reprise eval examples`.
#[derive(Debug, Args)]
pub struct ExamplesArgs {
    /// A folder that `reprise synth` wrote
    #[arg(long)]
    data: PathBuf,
    /// The model: a built-in one, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The shares of the negative examples that are compared. 0: without them.
const SHARES: [f32; 6] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5];
/// Hits in which the unwanted label is counted.
const TOP: usize = 10;

/// The vectors of all clips, and each clip's label.
struct Gallery {
    clips: Vec<UnitVector>,
    /// Number of each clip's label.
    labels: HashMap<usize, usize>,
}

/// Clips as positive and negative examples, with the clips that are right.
struct Query {
    like: Vec<usize>,
    unlike: Vec<usize>,
    right: HashSet<usize>,
    share: f32,
}

/// The figures of one way to ask.
#[derive(Debug, Serialize)]
struct Line {
    queries: String,
    number: usize,
    /// Mean average precision of the label's other clips.
    map: f64,
    /// Share of the first ten hits with the label of the negative example. `null` without one.
    unwanted: Option<f64>,
}

/// What one query found.
struct Found {
    precision: f64,
    unwanted: f64,
}

/// Prints the table or JSON.
pub(super) fn run(args: &ExamplesArgs) -> anyhow::Result<()> {
    let benchmark = Benchmark::read(&args.data)?;
    ensure!(benchmark.classes.iter().any(|class| class.len() > 2), "no label has three clips");
    let mut models = Models::load(&args.model, None, args.compute.into())?;
    let progress = bar(args.json, benchmark.clips.len(), "clips")?;
    let vectors = encode::clips(&mut models.loaded, &benchmark.clips, &|clips| progress.inc(clips))?;
    progress.finish_and_clear();
    let clips = vectors[0].iter().map(|raw| unit(raw)).collect::<anyhow::Result<Vec<_>>>()?;
    let gallery = Gallery { clips, labels: labels(&benchmark.classes) };
    let mut lines = positives(&gallery, &benchmark.classes)?;
    lines.extend(negatives(&gallery, &benchmark.classes)?);
    super::print(args.json, &lines, |lines| table(lines, benchmark.clips.len()))
}

fn labels(classes: &[Vec<usize>]) -> HashMap<usize, usize> {
    let numbered = classes.iter().enumerate();
    numbered.flat_map(|(label, clips)| clips.iter().map(move |clip| (*clip, label))).collect()
}

/// Each pair of clips of a label as one query, and each of the two alone; the others are right.
fn positives(gallery: &Gallery, classes: &[Vec<usize>]) -> anyhow::Result<Vec<Line>> {
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for class in classes.iter().filter(|class| class.len() > 2) {
        for (at, first) in class.iter().enumerate() {
            for second in &class[at + 1..] {
                let pair = vec![*first, *second];
                let right: HashSet<usize> = class.iter().copied().filter(|it| !pair.contains(it)).collect();
                let ask =
                    |like: Vec<usize>| Query { like, unlike: Vec::new(), right: right.clone(), share: 0.0 };
                for one in &pair {
                    alone.push(gallery.found(&ask(vec![*one]), &pair)?);
                }
                together.push(gallery.found(&ask(pair.clone()), &pair)?);
            }
        }
    }
    Ok(vec![Line::of("one example", &alone, false), Line::of("two examples", &together, false)])
}

/// Each clip as a query, with the best wrong hit as a negative example.
fn negatives(gallery: &Gallery, classes: &[Vec<usize>]) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for share in SHARES {
        let mut found = Vec::new();
        for class in classes.iter().filter(|class| class.len() > 2) {
            for clip in class {
                let right: HashSet<usize> = class.iter().copied().filter(|it| it != clip).collect();
                let ranked = gallery.ranked(&gallery.clips[*clip], &[*clip]);
                let wrong =
                    ranked.into_iter().find(|it| !right.contains(it)).context("every hit is right")?;
                let query = Query { like: vec![*clip], unlike: vec![wrong], right, share };
                found.push(gallery.found(&query, &[*clip, wrong])?);
            }
        }
        lines.push(Line::of(&format!("best wrong hit times {share}"), &found, true));
    }
    Ok(lines)
}

impl Gallery {
    /// All clips but `without`, best first.
    fn ranked(&self, query: &UnitVector, without: &[usize]) -> Vec<usize> {
        let others = self.clips.iter().enumerate().filter(|(clip, _)| !without.contains(clip));
        let mut scored: Vec<(usize, f32)> = others.map(|(clip, unit)| (clip, query.dot(unit))).collect();
        scored.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        scored.into_iter().map(|(clip, _)| clip).collect()
    }

    fn found(&self, query: &Query, without: &[usize]) -> anyhow::Result<Found> {
        let units = |clips: &[usize]| clips.iter().map(|clip| self.clips[*clip].clone()).collect::<Vec<_>>();
        let vector = rocchio(&units(&query.like), &units(&query.unlike), query.share);
        let (vector, _) = vector.context("the examples cancel out")?;
        let ranked = self.ranked(&vector, without);
        let unwanted: HashSet<usize> =
            query.unlike.iter().filter_map(|it| self.labels.get(it)).copied().collect();
        let is_unwanted =
            |clip: &&usize| self.labels.get(*clip).is_some_and(|label| unwanted.contains(label));
        let count = ranked.iter().take(TOP).filter(is_unwanted).count();
        let precision = average_precision(&ranked, &query.right, ranked.len());
        Ok(Found { precision, unwanted: count as f64 / TOP as f64 })
    }
}

impl Line {
    fn of(queries: &str, found: &[Found], has_negative: bool) -> Line {
        let mean = |of: fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / found.len().max(1) as f64;
        Line {
            queries: queries.to_owned(),
            number: found.len(),
            map: mean(|it| it.precision),
            unwanted: has_negative.then(|| mean(|it| it.unwanted)),
        }
    }
}

fn table(lines: &[Line], clips: usize) -> Vec<String> {
    let heading = format!("{clips} clips. The right clips are the others of the label.");
    let head = format!("{:<28} {:>8} {:>7} {:>18}", "queries", "number", "mAP", "unwanted in top 10");
    let row = |line: &Line| {
        let unwanted = line.unwanted.map(|share| format!("{:.1}%", share * 100.0)).unwrap_or_default();
        format!("{:<28} {:>8} {:>7.3} {unwanted:>18}", line.queries, line.number, line.map)
    };
    [heading, head].into_iter().chain(lines.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gallery(values: &[[f32; 2]], classes: &[Vec<usize>]) -> Gallery {
        let clips = values.iter().map(|raw| UnitVector::from_raw(raw).unwrap().0).collect();
        Gallery { clips, labels: labels(classes) }
    }

    #[track_caller]
    fn check(lines: &[Line], expected: &[(&str, usize, f64, Option<f64>)]) {
        let got: Vec<_> = lines.iter().map(|it| (&it.queries[..], it.number, it.map, it.unwanted)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn every_pair_asks_for_the_rest_of_its_label() {
        let classes = [vec![0, 1, 2], vec![3, 4]];
        let values = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0], [0.1, 0.9]];
        let lines = positives(&gallery(&values, &classes), &classes).unwrap();
        check(&lines, &[("one example", 6, 1.0, None), ("two examples", 3, 1.0, None)]);
    }

    #[test]
    fn a_negative_example_pushes_its_label_down() {
        // Between the label's clips lies a clip of another one.
        let classes = [vec![0, 1, 2], vec![3, 4]];
        let values = [[1.0, 0.0], [1.0, 0.6], [1.0, 0.7], [1.0, -0.3], [1.0, -0.4]];
        let lines = negatives(&gallery(&values, &classes), &classes).unwrap();
        assert_eq!((lines.len(), lines[0].number), (SHARES.len(), 3));
        assert!(lines[0].map < lines[2].map, "{lines:?}");
        assert!(lines[0].unwanted.is_some_and(|share| (share - 0.1).abs() < 1e-9), "{lines:?}");
    }
}
