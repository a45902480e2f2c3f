//! `reprise eval covr`: composed queries over single clips by TF-CoVR's protocol (arXiv 2506.05274).

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use reprise_encoders::sample::Sampler;
use reprise_encoders::{DEFAULT_MODEL, Embedder, ModelName};
use reprise_index::eval::{CUTOFFS, Figures, Judged, Protocol, rank};
use reprise_index::{Collection, Filter, Index, Level, Mode, Settings, UnitVector};
use roaring::RoaringTreemap;

use super::benchmark::{Benchmark, ComposedQuery};
use super::figure;
use super::methods::{Loading, Method, Models, queries, unit};
use super::report::{RECALL_AT, Row, inversions, json, table};
use crate::compute::{ComputeArgs, FrameArgs};
use crate::encode;
use crate::terminal::{bar, say};

/// Arguments of `reprise eval covr`.
#[derive(Debug, Args)]
pub struct CovrArgs {
    /// A folder that `reprise synth` wrote, or videos with TF-CoVR's test table as triplets.csv
    #[arg(long)]
    data: PathBuf,
    /// A folder of model folders that `reprise train baselines` wrote
    #[arg(long)]
    baselines: Option<PathBuf>,
    /// The model under test: a built-in one, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    frames: FrameArgs,
    /// TF-CoVR's zero-shot protocol: 15 frames of each target clip and one of each query clip
    #[arg(long, conflicts_with_all = ["baselines", "frames_per_second", "frames_per_clip"])]
    zero_shot: bool,
    /// The expected space of the model, by id or name; another one is an error
    #[arg(long)]
    space: Option<String>,
    /// Protocol: as in the paper, or as in its released code
    #[arg(long, default_value = "clean")]
    mode: ModeArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a picture of some queries with their first three answers; correct ones have a green frame
    #[arg(long, value_name = "PNG")]
    figure: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArg {
    Clean,
    Compat,
}

/// The kind of plain text queries in reports.
const TEXT_TO_VIDEO: &str = "text_to_video";
/// Frames of clips by TF-CoVR's zero-shot protocol, at the middles of equal parts.
const TARGET_FRAMES: Sampler = Sampler::Middles { frames: 15 };
const QUERY_FRAMES: Sampler = Sampler::Middles { frames: 1 };

/// The space and level of all vectors.
const AT: Collection = Collection { space: 0, level: Level::Clip };

/// Prints the table or JSON; writes the picture.
pub(super) fn run(args: &CovrArgs) -> anyhow::Result<()> {
    let protocol = match args.mode {
        ModeArg::Clean => Protocol::Clean,
        ModeArg::Compat => Protocol::Compat,
    };
    let mut benchmark = Benchmark::read(&args.data)?;
    if protocol == Protocol::Compat {
        benchmark.normalise();
    }
    let mut models = Models::load(
        &args.model,
        args.baselines.as_deref(),
        Loading { compute: args.compute, frames: args.frames },
    )?;
    check_space(&models.loaded[0], args.space.as_deref())?;
    if args.zero_shot {
        zero_shot(&mut models.loaded[0])?;
    }
    let progress = bar(args.json, benchmark.clips.len() * models.loaded.len(), "clips")?;
    let vectors = encode::clips(&mut models.loaded, &benchmark.clips, &|clips| progress.inc(clips))?;
    progress.finish_and_clear();
    let asked =
        if args.zero_shot { query_clips(&mut models.loaded[0], &benchmark)? } else { vectors.clone() };
    let (mut rows, mut shown) = (Vec::new(), Vec::new());
    for (at, &method) in models.methods.iter().enumerate() {
        let model = &mut models.loaded[method.model];
        let gallery = Gallery::new(&benchmark, &vectors[method.model], protocol)?;
        let mut judged = judge(method, model, &benchmark, &asked[method.model], &gallery)?;
        // Plain texts depend on the model alone, so each model's figures appear once.
        let is_last = models.methods[at + 1..].iter().all(|later| later.model != method.model);
        if is_last && model.space.can.text {
            let plain = texts(model, &benchmark, &gallery)?;
            judged.row.figures.extend(plain.map(|it| (TEXT_TO_VIDEO.to_owned(), it)));
        }
        rows.push(judged.row);
        // The last method of the model under test is its best.
        shown = if method.model == 0 { judged.answers } else { shown };
    }
    match args.json {
        true => say(json(&rows))?,
        false => {
            say(heading(&benchmark, protocol, args.zero_shot))?;
            for line in table(&rows).into_iter().chain(inversions(&rows)) {
                say(line)?;
            }
        }
    }
    match &args.figure {
        Some(path) => figure::write(path, &benchmark, &shown),
        None => Ok(()),
    }
}

/// Describes the figures: the gallery, the texts, and the definition of recall.
fn heading(benchmark: &Benchmark, protocol: Protocol, zero_shot: bool) -> String {
    let (gallery, texts) = match protocol {
        Protocol::Clean => (format!("{} distinct clips", benchmark.clips.len()), "as they are"),
        Protocol::Compat => (
            format!("{} rows, the target of each triplet", benchmark.composed.len()),
            "normalised as TF-CoVR's",
        ),
    };
    format!(
        "{} clips, protocol {}{}; gallery: {gallery}; modifications: {texts}; R@K: queries with a valid target among the \
         first K",
        benchmark.clips.len(),
        protocol.name(),
        if zero_shot { ", zero-shot: 15 frames of a target, 1 of a query" } else { "" },
    )
}

/// Sets the frames of TF-CoVR's zero-shot protocol.
///
/// # Errors
/// The model takes no videos, or another number of frames only.
fn zero_shot(model: &mut Embedder) -> anyhow::Result<()> {
    let space = &mut model.space;
    ensure!(space.can.frames, "{} takes no videos", space.name);
    ensure!(!space.temporal, "{} takes its own number of frames: leave --zero-shot out", space.name);
    (space.sampler, space.composed_frames) = (TARGET_FRAMES, space.composed_frames.map(|_| QUERY_FRAMES));
    Ok(())
}

/// Raw vectors of all clips as queries, from one frame each: `[0][clip]`.
///
/// # Errors
/// A clip can't be decoded, or the model fails.
fn query_clips(model: &mut Embedder, benchmark: &Benchmark) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
    model.space.sampler = QUERY_FRAMES;
    let vectors = encode::clips(std::slice::from_mut(model), &benchmark.clips, &|_| {});
    model.space.sampler = TARGET_FRAMES;
    vectors
}

/// # Errors
/// The model's space is not the expected one.
fn check_space(model: &Embedder, space: Option<&str>) -> anyhow::Result<()> {
    match space {
        Some(wanted) if wanted != model.space.id && wanted != model.space.name => {
            bail!("the model {} has the space {}, not {wanted}", model.space.model, model.space.name)
        }
        _ => Ok(()),
    }
}

/// One method's figures, and the ranked clips of every composed query, in order.
struct Verdict {
    row: Row,
    answers: Vec<Vec<usize>>,
}

fn judge(
    method: Method,
    model: &mut Embedder,
    benchmark: &Benchmark,
    clips: &[Vec<f32>],
    gallery: &Gallery,
) -> anyhow::Result<Verdict> {
    let all: Vec<&ComposedQuery> = benchmark.composed.iter().collect();
    let vectors = queries(model, method.fusion, &all, clips, &benchmark.clips)?;
    let mut answers = Vec::new();
    let (mut exact, mut walked) = (Kinds::new(gallery.protocol), Kinds::new(gallery.protocol));
    for (query, vector) in all.iter().zip(&vectors) {
        let ranked = gallery.all(vector, Some(query.clip))?;
        exact.add(query, ranked.clone());
        walked.add(query, gallery.walk(vector, query.clip)?);
        answers.push(ranked);
    }
    let figures = exact.figures();
    let (method, space) = (method.name.to_owned(), model.space.name.clone());
    Ok(Verdict { row: Row { method, space, figures, through_index: walked.figures() }, answers })
}

/// Judged answers by kind of query.
struct Kinds<'a> {
    judged: BTreeMap<&'a str, Vec<Judged<usize>>>,
    protocol: Protocol,
}

impl<'a> Kinds<'a> {
    fn new(protocol: Protocol) -> Kinds<'a> {
        Kinds { judged: BTreeMap::new(), protocol }
    }

    fn add(&mut self, query: &'a ComposedQuery, ranked: Vec<usize>) {
        let listed = match self.protocol {
            Protocol::Clean => query.valid.len(),
            Protocol::Compat => query.listed,
        };
        let judged = Judged { ranked, relevant: query.valid.clone(), listed };
        self.judged.entry(&query.kind).or_default().push(judged);
    }

    fn figures(&self) -> BTreeMap<String, Figures> {
        let figures = |judged: &Vec<_>| Figures::of(judged, &CUTOFFS, &RECALL_AT);
        self.judged.iter().filter_map(|(kind, judged)| Some(((*kind).to_owned(), figures(judged)?))).collect()
    }
}

/// Ranks plain texts against all clips.
fn texts(model: &mut Embedder, benchmark: &Benchmark, gallery: &Gallery) -> anyhow::Result<Option<Figures>> {
    let mut judged = Vec::new();
    for query in &benchmark.texts {
        let ranked = gallery.all(&encode::text(model, &query.text)?, None)?;
        judged.push(Judged { ranked, relevant: query.valid.clone(), listed: query.valid.len() });
    }
    Ok(Figures::of(&judged, &CUTOFFS, &RECALL_AT))
}

/// The searched clips in the real index.
struct Gallery {
    index: Index,
    /// The clip of each row.
    rows: Vec<usize>,
    protocol: Protocol,
}

impl Gallery {
    fn new(benchmark: &Benchmark, clips: &[Vec<f32>], protocol: Protocol) -> anyhow::Result<Gallery> {
        let rows: Vec<usize> = match protocol {
            Protocol::Clean => (0..clips.len()).collect(),
            Protocol::Compat => benchmark.composed.iter().map(|query| query.target).collect(),
        };
        // Segments from the first row on: the figures must measure the graph.
        let index = Index::with_settings(Settings { segment_from: 1, ..Settings::default() });
        for (key, &clip) in rows.iter().enumerate() {
            index.fill(AT, key as u64, &unit(&clips[clip])?)?;
        }
        index.seal(AT);
        Ok(Gallery { index, rows, protocol })
    }

    /// All clips by brute force, best first.
    fn all(&self, vector: &UnitVector, query: Option<usize>) -> anyhow::Result<Vec<usize>> {
        let hits = self.index.search(AT, vector, self.rows.len(), &Filter::default(), Mode::Exact)?;
        let mut scores = vec![f32::NEG_INFINITY; self.rows.len()];
        for hit in hits.hits {
            *scores.get_mut(hit.key as usize).context("the index knows a row that was not inserted")? =
                hit.score;
        }
        let rows: Vec<(usize, f32)> = self.rows.iter().copied().zip(scores).collect();
        Ok(rank(&rows, query.as_ref(), self.protocol))
    }

    /// The first clips through the graph; a filter excludes the query clip.
    fn walk(&self, vector: &UnitVector, query: usize) -> anyhow::Result<Vec<usize>> {
        let others =
            self.rows.iter().enumerate().filter(|(_, clip)| **clip != query).map(|(row, _)| row as u64);
        let only = Some(Arc::new(others.collect::<RoaringTreemap>()));
        let most = CUTOFFS.into_iter().max().unwrap_or_default();
        let hits = self.index.search(AT, vector, most, &Filter { only }, Mode::Auto)?;
        let mut seen = HashSet::new();
        let clips = hits.hits.iter().filter_map(|hit| self.rows.get(hit.key as usize).copied());
        Ok(match self.protocol {
            Protocol::Clean => clips.filter(|clip| seen.insert(*clip)).collect(),
            Protocol::Compat => clips.collect(),
        })
    }
}
