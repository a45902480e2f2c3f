//! `reprise eval replays`: which cuts of a rendered broadcast are near duplicates: replays of a routine, and other routines.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use reprise_encoders::{DEFAULT_MODEL, Embedder, ModelName};
use reprise_index::{SampledSpan, duplicate_cosine};
use serde::Serialize;

use super::methods::unit;
use super::ranges::{self, Cut};
use crate::compute::ComputeArgs;
use crate::encode::{self, Stretch};
use crate::terminal::bar;

/// Arguments of `reprise eval replays`.
#[derive(Debug, Args)]
pub struct ReplaysArgs {
    /// A folder that `reprise synth` wrote, with broadcasts
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

/// Cuts that are encoded at once: their frames are in memory.
const AT_ONCE: usize = 16;

/// Whether pairs of cuts are near duplicates.
#[derive(Debug, Serialize)]
struct Report {
    /// Number of cuts with a routine or its replay.
    cuts: usize,
    /// Least cosine of near duplicates.
    min_similarity: Option<f32>,
    pairs: Vec<Line>,
}

/// The pairs of one kind.
#[derive(Debug, Serialize)]
struct Line {
    kind: &'static str,
    pairs: usize,
    /// Pairs that are near duplicates.
    folded: usize,
    /// The median cosine.
    median: f32,
}

/// Kinds of pairs, in the order of the report.
const KINDS: [&str; 3] = ["replay and routine", "same element", "other element"];

/// Prints the table or JSON.
pub(super) fn run(args: &ReplaysArgs) -> anyhow::Result<()> {
    let cuts = ranges::cuts(&args.data)?;
    ensure!(!cuts.is_empty(), "{} has no broadcasts with routines", args.data.display());
    let mut model = args.compute.load(&args.model).with_context(|| args.model.to_string())?;
    let progress = bar(args.json, cuts.len(), "cuts")?;
    let spans = encoded(&mut model, &args.data, &cuts, &|cuts| progress.inc(cuts))?;
    progress.finish_and_clear();
    super::print(args.json, &report(&cuts, &spans), table)
}

fn encoded(
    model: &mut Embedder,
    folder: &Path,
    cuts: &[Cut],
    done: &dyn Fn(u64),
) -> anyhow::Result<Vec<SampledSpan>> {
    let ms = |seconds: f64| (seconds * 1000.0).round() as i64;
    let mut spans = Vec::with_capacity(cuts.len());
    for cuts in cuts.chunks(AT_ONCE) {
        let stretch = |cut: &Cut| Stretch {
            file: folder.join(&cut.range.video),
            span_ms: ms(cut.range.start)..ms(cut.range.end),
            in_order: false,
        };
        let stretches: Vec<Stretch> = cuts.iter().map(stretch).collect();
        let inputs = encode::decoded(&stretches, model.space.sampler, model.space.scaling)?;
        for (cut, raw) in cuts.iter().zip(encode::inputs(model, &inputs)?) {
            spans.push(SampledSpan { video: cut.broadcast, unit: unit(&raw)? });
        }
        done(cuts.len() as u64);
    }
    Ok(spans)
}

fn report(cuts: &[Cut], spans: &[SampledSpan]) -> Report {
    let min_similarity = duplicate_cosine(spans, spans.len() as u64);
    let mut cosines: [Vec<f32>; 3] = Default::default();
    for (at, one) in cuts.iter().enumerate() {
        for (before, other) in cuts[..at].iter().enumerate() {
            cosines[kind(one, other)].push(spans[at].unit.dot(&spans[before].unit));
        }
    }
    let line = |(kind, mut cosines): (&'static str, Vec<f32>)| {
        cosines.sort_unstable_by(f32::total_cmp);
        let is_near = |cosine: &&f32| min_similarity.is_some_and(|least| least <= **cosine);
        let folded = cosines.iter().filter(is_near).count();
        let median = cosines.get(cosines.len() / 2).copied().unwrap_or_default();
        Line { kind, pairs: cosines.len(), folded, median }
    };
    Report { cuts: cuts.len(), min_similarity, pairs: KINDS.into_iter().zip(cosines).map(line).collect() }
}

/// The place of a pair's kind in [`KINDS`].
fn kind(one: &Cut, other: &Cut) -> usize {
    match (one.shown == other.shown, one.label == other.label) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

fn table(report: &Report) -> Vec<String> {
    let least = report.min_similarity.map_or("unknown".to_owned(), |least| format!("{least:.3}"));
    let heading = format!("{} cuts; near duplicates have a cosine of at least {least}.", report.cuts);
    let head = format!("{:<20} {:>8} {:>8} {:>8} {:>8}", "pairs", "number", "folded", "share", "median");
    let row = |line: &Line| {
        let Line { kind, pairs, folded, median } = line;
        let share = *folded as f64 / (*pairs).max(1) as f64 * 100.0;
        format!("{kind:<20} {pairs:>8} {folded:>8} {share:>7.1}% {median:>8.3}")
    };
    [heading, head].into_iter().chain(report.pairs.iter().map(row)).collect()
}
