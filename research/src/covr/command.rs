//! `reprise covr`: composed retrieval data from a user's own footage.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use reprise_encoders::{Cause, ModelName};

use crate::compute::ComputeArgs;
use crate::covr::feedback;
use crate::covr::footage::{Stretch, read_labels, write, write_test, write_train};
use crate::covr::grammar::{Grammar, built_in, read};
use crate::covr::label::Label;
use crate::covr::pairs::{LabelPair, PairLimits, Similarity, label_pairs};
use crate::covr::triplets::{OrderedPair, Part, PartClips, Shares, parts};
use crate::covr::writer::Writer;
use crate::covr::{embedded, labels, with_sentences, with_writer};
use crate::encode;
use crate::terminal::say;

/// Arguments of `reprise covr`.
#[derive(Debug, Args)]
pub struct CovrArgs {
    #[command(subcommand)]
    command: CovrCommand,
}

#[derive(Debug, Subcommand)]
enum CovrCommand {
    /// Make triplets (query clip, modification, target clips) from labelled segments of videos, or from feedback on
    /// composed searches
    Triplets(Box<TripletsArgs>),
}

#[derive(Debug, Args)]
struct TripletsArgs {
    /// CSV with the columns video, start, end (seconds) and label
    #[arg(long, required_unless_present = "feedback")]
    labels: Option<PathBuf>,
    /// JSON lines of `reprise feedback export`, instead of labels: OUT gets triplets.csv for `reprise train stage2`, and
    /// clips.csv for `reprise embed --videos`
    #[arg(
        long,
        conflicts_with_all = [
            "labels", "grammar", "neighbours", "min_similarity", "same_action", "per_pair", "validation", "test",
            "seed", "endpoint",
        ]
    )]
    feedback: Option<PathBuf>,
    /// Folder for train.csv, val.csv, test.csv and pairs.csv
    #[arg(long)]
    out: PathBuf,
    /// Grammar that splits the labels into parts, a JSON file; those of FineGym, FineDiving and Diving48 are built in. A
    /// label that no grammar knows is taken whole
    #[arg(long)]
    grammar: Option<PathBuf>,
    /// Text encoder that compares labels: a folder or .pt file, a hub id, or builtin:sports (knows the rendered labels
    /// only); without it, the share of their words does
    #[arg(long, env = "REPRISE_MODEL")]
    model: Option<ModelName>,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Largest number of pairs per label and kind of change, the most similar first [default: all]
    #[arg(long)]
    neighbours: Option<usize>,
    /// Lowest similarity of two labels of a pair
    #[arg(long, allow_negative_numbers = true)]
    min_similarity: Option<f32>,
    /// Lowest similarity of the actions of a pair of two events [default: the actions must be equal]
    #[arg(long)]
    same_action: Option<f32>,
    /// Largest number of training triplets per pair
    #[arg(long, default_value_t = 20)]
    per_pair: usize,
    /// Share of the source videos for validation
    #[arg(long, default_value_t = 0.1, value_parser = share)]
    validation: f64,
    /// Share of the source videos for the test
    #[arg(long, default_value_t = 0.1, value_parser = share)]
    test: f64,
    /// Seed of the split and the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Base address of an OpenAI-compatible API (https://host/v1) that writes the modifications; without it, the grammar
    /// does
    #[arg(long, requires = "endpoint_model")]
    endpoint: Option<String>,
    /// Model name for the endpoint
    #[arg(long)]
    endpoint_model: Option<String>,
    /// Key for the endpoint
    #[arg(long, env = "REPRISE_ENDPOINT_KEY", hide_env_values = true)]
    endpoint_key: Option<String>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to below 1".to_owned()),
    }
}

/// Runs the command.
pub async fn run(args: CovrArgs) -> anyhow::Result<()> {
    match args.command {
        CovrCommand::Triplets(args) => triplets(*args).await,
    }
}

async fn triplets(args: TripletsArgs) -> anyhow::Result<()> {
    match (&args.feedback, &args.labels) {
        (Some(file), _) => of_feedback(file, &args.out),
        (None, Some(file)) => of_labels(&args, file).await,
        (None, None) => bail!("name --labels or --feedback"),
    }
}

fn of_feedback(file: &Path, out: &Path) -> anyhow::Result<()> {
    let judged = feedback::read(file)?;
    let made = feedback::triplets(&judged);
    let lines = judged.len();
    ensure!(
        !made.rows.is_empty(),
        "{} has {lines} lines, and no relevant hit of a composed search of a stored clip",
        file.display()
    );
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    write_train(&out.join("triplets.csv"), &made.rows)?;
    let row = |it: &Stretch| [it.video.clone(), it.start.to_string(), it.end.to_string()];
    write(&out.join("clips.csv"), ["video", "start", "end"], made.clips.iter().map(row))?;
    say(format!(
        "{} triplets of {} clips from {lines} lines; {} left out, because verdicts contradict each other",
        made.rows.len(),
        made.clips.len(),
        made.contradictory
    ))?;
    Ok(())
}

async fn of_labels(args: &TripletsArgs, file: &Path) -> anyhow::Result<()> {
    let footage = read_labels(file)?;
    let labels = labels(&footage, &grammars(args)?);
    let (pairs, by) = (pairs_of(args, &labels).await?, similarity_name(args));
    let texts = modifications(args, &labels, &pairs).await?;
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    write_pairs(&args.out.join("pairs.csv"), &labels, &pairs)?;

    let parts = parts(&footage, &Shares { seed: args.seed, validation: args.validation, test: args.test });
    let clips = |part| PartClips::new(&footage, &labels, &parts, part, args.seed);
    let train = clips(Part::Train).train_rows(&texts, args.per_pair);
    let validation = clips(Part::Validation).test_rows(&texts);
    let test = clips(Part::Test).test_rows(&texts);
    write_train(&args.out.join("train.csv"), &train)?;
    write_test(&args.out.join("val.csv"), &validation)?;
    write_test(&args.out.join("test.csv"), &test)?;
    say(format!(
        "{} labels, {} pairs, compared by {by}: {} training triplets, {} validation and {} test queries",
        labels.len(),
        pairs.len(),
        train.len(),
        validation.len(),
        test.len()
    ))?;
    Ok(())
}

async fn modifications(
    args: &TripletsArgs,
    labels: &[Label],
    pairs: &[LabelPair],
) -> anyhow::Result<Vec<OrderedPair>> {
    let (Some(endpoint), Some(model)) = (&args.endpoint, &args.endpoint_model) else {
        return Ok(with_sentences(labels, pairs, args.seed));
    };
    let writer = Writer::new(endpoint, model, args.endpoint_key.clone())?;
    let bar = ProgressBar::new(2 * pairs.len() as u64);
    let written = with_writer(labels, pairs, &writer, &|| bar.inc(1)).await?;
    bar.finish_and_clear();
    if written.refused > 0 {
        let all = written.pairs.len();
        say(format!(
            "{} of {all} texts are the grammar's: the model named too little or too much",
            written.refused
        ))?;
    }
    Ok(written.pairs)
}

/// The user's grammar before those of the build.
fn grammars(args: &TripletsArgs) -> anyhow::Result<Vec<Grammar>> {
    let own = args.grammar.as_deref().map(read).transpose()?;
    Ok(own.into_iter().chain(built_in()?).collect())
}

async fn pairs_of(args: &TripletsArgs, labels: &[Label]) -> anyhow::Result<Vec<LabelPair>> {
    let limits = PairLimits {
        neighbours: args.neighbours,
        similarity: args.min_similarity,
        same_action: args.same_action,
    };
    let (compute, model, labels) = (args.compute, args.model.clone(), labels.to_vec());
    let pairs = move || {
        let similarity = match &model {
            Some(model) => similarity(&compute, model, &labels)?,
            None => Similarity::Words,
        };
        anyhow::Ok(label_pairs(&labels, &similarity, limits))
    };
    tokio::task::spawn_blocking(pairs).await?
}

fn similarity(compute: &ComputeArgs, model: &ModelName, labels: &[Label]) -> anyhow::Result<Similarity> {
    let mut loaded = compute.load(model)?;
    let vectors = embedded(labels, |text| encode::text(&mut loaded, text).map_err(Cause::from))?;
    Ok(Similarity::Vectors(vectors))
}

fn similarity_name(args: &TripletsArgs) -> &'static str {
    if args.model.is_some() { "sentence vectors" } else { "their words" }
}

fn write_pairs(path: &Path, labels: &[Label], pairs: &[LabelPair]) -> anyhow::Result<()> {
    let row = |it: &LabelPair| {
        let [one, other] = [it.one, it.other].map(|at| labels[at].text.clone());
        [one, other, it.change.name().to_owned(), format!("{:.4}", it.similarity)]
    };
    Ok(write(path, ["label1", "label2", "change", "similarity"], pairs.iter().map(row))?)
}
