//! `reprise eval absent`: how well the best hit's z tells queries with an answer in the gallery from the same queries
//! after their answers were removed.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use reprise_encoders::{DEFAULT_MODEL, ModelName};
use reprise_index::eval::auroc;
use reprise_index::{Background, UnitVector};
use serde::Serialize;

use super::benchmark::{Benchmark, ComposedQuery};
use super::methods::{Models, queries, unit};
use crate::compute::ComputeArgs;
use crate::encode;
use crate::terminal::bar;

/// Arguments of `reprise eval absent`.
#[derive(Debug, Args)]
pub struct AbsentArgs {
    /// A folder that `reprise synth` wrote, or videos with TF-CoVR's test table as triplets.csv
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

/// The kind of plain text queries in the report.
const TEXTS: &str = "text";

/// A query with its answers.
struct Query<'a> {
    kind: &'a str,
    vector: UnitVector,
    /// The query's own clip, which is never a hit.
    own: Option<usize>,
    answers: &'a HashSet<usize>,
}

/// The best hit's z, divided by the z that the best clip has by chance.
#[derive(Debug, Clone, Copy)]
struct Best {
    z: f32,
    strength: f32,
}

/// The best hit of a query with its answers in the gallery, and without them.
struct Asked<'a> {
    kind: &'a str,
    present: Best,
    absent: Best,
}

/// The figures of one kind of query.
#[derive(Debug, Serialize)]
struct Line {
    kind: String,
    queries: usize,
    /// Area under the ROC curve of the best hit's z.
    auroc: f64,
    /// The bound that separates the first half of the queries best: a multiple of the z that chance gives.
    bound: f32,
    /// Share of the second half's queries with an answer whose best hit is weak.
    missed: f64,
    /// Share of the second half's queries without an answer whose best hit is weak.
    noticed: f64,
}

/// Prints the table or JSON.
pub(super) fn run(args: &AbsentArgs) -> anyhow::Result<()> {
    let benchmark = Benchmark::read(&args.data)?;
    let mut models = Models::load(&args.model, None, args.compute.into())?;
    let progress = bar(args.json, benchmark.clips.len(), "clips")?;
    let vectors = encode::clips(&mut models.loaded, &benchmark.clips, &|clips| progress.inc(clips))?;
    progress.finish_and_clear();
    let asked = asked(&mut models, &benchmark, &vectors[0])?;
    super::print(args.json, &lines(&asked), |lines| table(lines, benchmark.clips.len()))
}

/// All queries of a benchmark.
fn asked<'a>(
    models: &mut Models,
    benchmark: &'a Benchmark,
    raw: &[Vec<f32>],
) -> anyhow::Result<Vec<Asked<'a>>> {
    let clips = raw.iter().map(|raw| unit(raw)).collect::<anyhow::Result<Vec<_>>>()?;
    let model = &mut models.loaded[0];
    let mut all = Vec::new();
    // The last method is the model's best.
    if let Some(method) = models.methods.last() {
        let composed: Vec<&ComposedQuery> = benchmark.composed.iter().collect();
        let vectors = queries(model, method.fusion, &composed, raw, &benchmark.clips)?;
        let of = |(query, vector): (&'a ComposedQuery, UnitVector)| Query {
            kind: &query.kind,
            vector,
            own: Some(query.clip),
            answers: &query.valid,
        };
        all.extend(benchmark.composed.iter().zip(vectors).map(of));
    }
    if model.space.can.text {
        for query in &benchmark.texts {
            let vector = encode::text(model, &query.text)?;
            all.push(Query { kind: TEXTS, vector, own: None, answers: &query.valid });
        }
    }
    Ok(all.iter().filter_map(|query| ask(query, &clips)).collect())
}

/// `None` if the gallery is too small for a background.
fn ask<'a>(query: &Query<'a>, clips: &[UnitVector]) -> Option<Asked<'a>> {
    let others = || clips.iter().enumerate().filter(|(clip, _)| Some(*clip) != query.own);
    let present = others().map(|(_, unit)| query.vector.dot(unit)).collect();
    let absent = others().filter(|(clip, _)| !query.answers.contains(clip));
    let absent = absent.map(|(_, unit)| query.vector.dot(unit)).collect();
    Some(Asked { kind: query.kind, present: best(present)?, absent: best(absent)? })
}

fn best(scores: Vec<f32>) -> Option<Best> {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (all, most) = (scores.len(), Background::SAMPLE);
    let sample = (0..all.min(most)).map(|place| scores[place * all / all.min(most)]).collect();
    let background = Background::of(sample, all as u64)?;
    let z = background.z(best);
    Some(Best { z, strength: z / background.chance() })
}

fn lines(asked: &[Asked]) -> Vec<Line> {
    let mut kinds: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    for one in asked {
        kinds.entry(one.kind).or_default().push(one);
        kinds.entry("all").or_default().push(one);
    }
    kinds.into_iter().filter_map(|(kind, asked)| line(kind, &asked)).collect()
}

fn line(kind: &str, asked: &[&Asked]) -> Option<Line> {
    let of = |pick: fn(&Asked) -> Best| asked.iter().map(|it| pick(it).z).collect::<Vec<f32>>();
    let auroc = auroc(&of(|it| it.present), &of(|it| it.absent))?;
    let halves: [Vec<&Asked>; 2] = [0, 1].map(|half| asked.iter().skip(half).step_by(2).copied().collect());
    let bound = bound(&halves[0])?;
    let weak = |pick: fn(&Asked) -> Best| {
        let weak = halves[1].iter().filter(|it| pick(it).strength < bound).count();
        weak as f64 / halves[1].len().max(1) as f64
    };
    let (missed, noticed) = (weak(|it| it.present), weak(|it| it.absent));
    Some(Line { kind: kind.to_owned(), queries: asked.len(), auroc, bound, missed, noticed })
}

/// The bound with the fewest errors: weak hits that are answers, and hits that are neither.
fn bound(asked: &[&Asked]) -> Option<f32> {
    let strengths = asked.iter().flat_map(|it| [it.present.strength, it.absent.strength]);
    let errors = |bound: f32| {
        let of = |it: &&&Asked| {
            usize::from(it.present.strength < bound) + usize::from(bound <= it.absent.strength)
        };
        asked.iter().map(|it| of(&it)).sum::<usize>()
    };
    strengths.min_by(|one, other| errors(*one).cmp(&errors(*other)).then(one.total_cmp(other)))
}

fn table(lines: &[Line], clips: usize) -> Vec<String> {
    let heading = format!(
        "{clips} clips. The bound is chosen on the first half of the queries, the rest is the second half's."
    );
    let head = format!(
        "{:<16} {:>8} {:>7} {:>7} {:>7} {:>8}",
        "queries", "number", "AUROC", "bound", "missed", "noticed"
    );
    let row = |line: &Line| {
        let Line { kind, queries, auroc, bound, missed, noticed } = line;
        format!(
            "{kind:<16} {queries:>8} {auroc:>7.3} {bound:>7.2} {:>6.1}% {:>7.1}%",
            missed * 100.0,
            noticed * 100.0
        )
    };
    [heading, head].into_iter().chain(lines.iter().map(row)).collect()
}
