//! `reprise train`: trains the sports model in stages, each resumable, on a folder of labelled clips.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::learn::augment::Augment;
use super::learn::clips::{ClipFeatures, ClipRecipe, train_clips};
use super::learn::composed::{ComposedData, ComposedFolders, ComposedRecipe, Objective, train_composed};
use super::learn::embeddings::{EmbeddedData, EmbeddedRecipe, train_embeddings};
use super::learn::examples::TrainingClips;
use super::learn::features::Features;
use super::learn::frames::{extract_features, train_frames};
use super::learn::loss::{HardNegatives, Mode};
use super::learn::{Progress, Settings};
use crate::rows::Rows;
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use reprise_encoders::TrainedOn;
use reprise_encoders::families::sports::{Config, FusionInputs, TimeModel};

use super::data;
use crate::terminal::say;

/// Arguments of `reprise train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    #[command(subcommand)]
    stage: Stage,
}

#[derive(Debug, Subcommand)]
enum Stage {
    /// Trains the frame encoder on single frames with exact labels, then computes the features of all frames
    Frames(StageArgs),
    /// Trains the temporal transformer on the frame features
    Stage1(StageArgs),
    /// Trains the text transformer and the fusion; writes the model to OUT/model
    Stage2(Stage2Args),
    /// Trains the baselines; writes OUT/baselines/NAME
    Baselines(ComposedArgs),
}

#[derive(Debug, Args)]
struct StageArgs {
    /// Folder of labelled clips, as `reprise synth --split train` writes it
    #[arg(long)]
    data: PathBuf,
    /// Folder for checkpoints, features, curves and models
    #[arg(long)]
    out: PathBuf,
    /// Seed of the random draws
    #[arg(long)]
    seed: Option<u64>,
    /// Steps of the optimiser
    #[arg(long)]
    steps: Option<usize>,
    /// Examples per step, over all shards
    #[arg(long)]
    batch: Option<usize>,
    /// Peak of the learning rate
    #[arg(long)]
    learning_rate: Option<f64>,
    /// Parts of a batch that run in parallel; another number changes the result
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    shards: u8,
    /// Steps from one checkpoint to the next
    #[arg(long)]
    checkpoint_every: Option<usize>,
    /// Take clips exactly as labelled: no moved boundaries, no frames of other clips around them
    #[arg(long)]
    no_augmentation: bool,
}

#[derive(Debug, Args)]
struct ComposedArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// The contrastive loss
    #[arg(long, value_enum, default_value = "hn-nce")]
    loss: ContrastiveLoss,
    /// Weights of HN-NCE: as in the paper, or as in TF-CoVR's released code
    #[arg(long, value_enum, default_value = "clean")]
    mode: LossMode,
    /// Hard negatives: clips with similar labels, or with similar vectors in the batch
    #[arg(long, value_enum, default_value = "labels")]
    hardness: Hardness,
    /// How strongly hard negatives weigh; by default 2 by labels, 0.5 by the batch
    #[arg(long)]
    beta: Option<f64>,
}

#[derive(Debug, Args)]
struct Stage2Args {
    #[command(flatten)]
    composed: ComposedArgs,
    #[command(flatten)]
    embeddings: EmbeddingsArgs,
}

/// Precomputed vectors. With them the stage trains TF-CoVR's Combiner and writes OUT/combiner.safetensors.
#[derive(Debug, Args)]
struct EmbeddingsArgs {
    /// Raw vectors of the videos in triplets.csv: .npy or .safetensors, one row per video, written by `reprise
    /// embed --videos`
    #[arg(long, requires_all = ["names", "texts"])]
    vectors: Option<PathBuf>,
    /// CSV whose columns video[,start,end] name the rows of --vectors
    #[arg(long, requires = "vectors")]
    names: Option<PathBuf>,
    /// Vectors of the modification texts: one row per row of triplets.csv, written by `reprise embed --texts`
    #[arg(long, requires = "vectors")]
    texts: Option<PathBuf>,
    /// Size of the Combiner's projections
    #[arg(long, default_value_t = 3072, requires = "vectors")]
    projection: usize,
    /// Size of the Combiner's hidden layer
    #[arg(long, default_value_t = 6144, requires = "vectors")]
    hidden: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ContrastiveLoss {
    /// Hard negatives weigh more
    HnNce,
    /// All negatives weigh the same
    InfoNce,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LossMode {
    /// As in the paper: weights over the row's own negatives, no gradient through them, no negatives of the same label
    Clean,
    /// As in TF-CoVR's released code: weights divided by the sums of other rows, with gradients, all other targets
    /// are negatives
    Compat,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Hardness {
    /// By the labels of the targets, as in the paper
    Labels,
    /// By the vectors of the batch, as in TF-CoVR's released code
    Batch,
}

impl StageArgs {
    fn settings(&self, usual: Settings) -> Settings {
        Settings {
            steps: self.steps.unwrap_or(usual.steps),
            batch: self.batch.unwrap_or(usual.batch),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            seed: self.seed.unwrap_or(usual.seed),
            shards: usize::from(self.shards),
            checkpoint_every: self.checkpoint_every.unwrap_or(usual.checkpoint_every),
            ..usual
        }
    }

    fn augment(&self) -> Augment {
        if self.no_augmentation { Augment::NONE } else { Augment::USUAL }
    }
}

impl ComposedArgs {
    fn beta(&self, usual: f64) -> f64 {
        match self.loss {
            ContrastiveLoss::InfoNce => 0.0,
            ContrastiveLoss::HnNce => self.beta.unwrap_or(usual),
        }
    }

    fn objective(&self) -> Objective {
        let by_label = self.hardness == Hardness::Labels;
        let mode = match self.mode {
            LossMode::Clean => Mode::Clean,
            LossMode::Compat => Mode::Compat,
        };
        let beta = self.beta(if by_label { 2.0 } else { 0.5 });
        Objective { hard: HardNegatives { alpha: 1.0, beta, mode }, by_label, ..Objective::USUAL }
    }
}

/// Number of threads inside one candle operation; candle reads it once, at first use.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Trains one stage.
pub async fn run(args: TrainArgs) -> anyhow::Result<()> {
    if std::env::var_os(THREADS).is_none() {
        return again_with_one_thread();
    }
    tokio::task::spawn_blocking(move || match &args.stage {
        Stage::Frames(args) => frames(args),
        Stage::Stage1(args) => clips(args, TimeModel::Ordered),
        Stage::Stage2(args) => match &args.embeddings.vectors {
            Some(vectors) => embeddings(&args.composed, &args.embeddings, vectors),
            None => stage2(&args.composed),
        },
        Stage::Baselines(args) => baselines(args),
    })
    .await?
}

/// Settings of glibc's allocator, in bytes: it keeps the memory of a step for the next one. By default it returns most of it,
/// and the kernel then clears the same pages again in every step.
const KEPT_MEMORY: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "1073741824")];

/// Runs the same command again with one thread per operation and [`KEPT_MEMORY`]. Does not return on success. Shards already
/// run in parallel; threads inside every small operation wait for each other and took a third of the time.
fn again_with_one_thread() -> anyhow::Result<()> {
    let program = std::env::current_exe().context("where this program is")?;
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1)).env(THREADS, "1");
    command.envs(KEPT_MEMORY.iter().filter(|(name, _)| std::env::var_os(name).is_none()).copied());
    let code = started(&mut command).context("the training could not be started")?;
    std::process::exit(code)
}

/// Replaces this process with `command`.
#[cfg(unix)]
fn started(command: &mut std::process::Command) -> std::io::Result<i32> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn started(command: &mut std::process::Command) -> std::io::Result<i32> {
    Ok(command.status()?.code().unwrap_or(1))
}

fn frames(args: &StageArgs) -> anyhow::Result<()> {
    let (clips, config) = (data::clips(&args.data)?, Config::default());
    say(format!("{} clips of {} classes", clips.footage.len(), clips.classes.labels.len()))?;
    let settings = args.settings(Settings::frames());
    say("decoding, then training the frame encoder")?;
    with_bar(|bar| train_frames(&clips, &config, &settings, &args.out, bar))?;
    say("computing the features of all frames")?;
    let bar =
        ProgressBar::new(clips.footage.len() as u64).with_style(style("{pos}/{len} clips, {eta} left")?);
    extract_features(&clips, &config, &args.out, &mut |done, _| bar.set_position(done as u64))?;
    bar.finish();
    say(format!("wrote {}", args.out.join("features.npy").display()))?;
    Ok(())
}

fn clips(args: &StageArgs, time: TimeModel) -> anyhow::Result<()> {
    let (clips, features) = clips_and_features(args)?;
    let config = Config { time, ..Config::default() };
    let settings = args.settings(Settings::clips());
    let data = ClipFeatures { clips: &clips, features: &features };
    let recipe = ClipRecipe { config: &config, augment: args.augment() };
    with_bar(|bar| train_clips(data, recipe, &settings, &args.out, bar))
}

fn clips_and_features(args: &StageArgs) -> anyhow::Result<(TrainingClips, Features)> {
    let clips = data::clips(&args.data)?;
    let path = args.out.join("features.npy");
    if !path.is_file() {
        bail!("{} is not there: run `reprise train frames` first", path.display());
    }
    let features = Features::load(&path, &clips.frames())?;
    Ok((clips, features))
}

fn stage2(args: &ComposedArgs) -> anyhow::Result<()> {
    let (clips, features) = clips_and_features(&args.stage)?;
    let texts = data::texts(&args.stage.data, &clips.classes)?;
    let (work, model) = (args.stage.out.join("stage2"), args.stage.out.join("model"));
    let config = Config { trained_on: TrainedOn::RenderedClips, ..Config::default() };
    let data = ComposedData { clips: &clips, features: &features, texts: &texts };
    composed(args, data, &config, &work, &model)
}

fn composed(
    args: &ComposedArgs,
    data: ComposedData<'_>,
    config: &Config,
    work: &Path,
    model: &Path,
) -> anyhow::Result<()> {
    let settings = args.stage.settings(Settings::composed());
    let recipe = ComposedRecipe { config, augment: args.stage.augment(), objective: args.objective() };
    let folders = ComposedFolders { stages: &args.stage.out, work, model };
    with_bar(|bar| train_composed(data, recipe, &settings, folders, bar))?;
    say(format!("wrote {}", model.display()))?;
    Ok(())
}

fn embeddings(args: &ComposedArgs, files: &EmbeddingsArgs, vectors: &Path) -> anyhow::Result<()> {
    let (Some(names), Some(texts)) = (&files.names, &files.texts) else {
        bail!("--vectors needs --names and --texts");
    };
    let (videos, texts) = (Rows::read(vectors)?, Rows::read(texts)?);
    let triplets = data::embedded(&args.stage.data, names, videos.len(), texts.len())?;
    // The paper contrasts the whole batch, so one shard holds all its negatives.
    let settings = Settings { shards: 1, ..args.stage.settings(Settings::embeddings()) };
    let hard = HardNegatives { beta: args.beta(0.5), ..args.objective().hard };
    let recipe = EmbeddedRecipe { projection: files.projection, hidden: files.hidden, hard };
    let (data, out) = (EmbeddedData { videos: &videos, texts: &texts, triplets: &triplets }, &args.stage.out);
    with_bar(|bar| train_embeddings(data, recipe, &settings, out, bar))?;
    say(format!("wrote {}", out.join("combiner.safetensors").display()))?;
    Ok(())
}

/// Name of the baseline, its time model, and the inputs of its fusion.
const BASELINES: [(&str, TimeModel, FusionInputs); 4] = [
    ("stage2_only", TimeModel::Mean, FusionInputs::Both),
    ("order_blind", TimeModel::Shuffled, FusionInputs::Both),
    ("text_only", TimeModel::Ordered, FusionInputs::Text),
    ("video_only", TimeModel::Ordered, FusionInputs::Video),
];

fn baselines(args: &ComposedArgs) -> anyhow::Result<()> {
    let out = &args.stage.out;
    say("order_blind: the temporal transformer on shuffled frames")?;
    clips(&args.stage, TimeModel::Shuffled)?;
    let (clips, features) = clips_and_features(&args.stage)?;
    let texts = data::texts(&args.stage.data, &clips.classes)?;
    let data = ComposedData { clips: &clips, features: &features, texts: &texts };
    let trained_on = TrainedOn::RenderedClips;
    for (name, time, fusion) in BASELINES {
        say(format!("{name}: text transformer and fusion"))?;
        let config = Config { time, fusion, trained_on, ..Config::default() };
        let (work, model) = (out.join("baselines_work").join(name), out.join("baselines").join(name));
        composed(args, data, &config, &work, &model)?;
    }
    Ok(())
}

fn style(template: &str) -> anyhow::Result<ProgressStyle> {
    Ok(ProgressStyle::with_template(&format!("{{wide_bar}} {template}"))?)
}

/// Shows a progress bar with step, loss and remaining time while `train` runs.
fn with_bar<E: Into<anyhow::Error>>(
    train: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<(), E>,
) -> anyhow::Result<()> {
    let bar = ProgressBar::new(0).with_style(style("{pos}/{len} {msg}")?);
    let result = train(&mut |progress| {
        bar.set_length(progress.steps as u64);
        bar.set_position(progress.step as u64);
        bar.set_message(message(progress));
        ControlFlow::Continue(())
    });
    bar.finish();
    result.map_err(Into::into)
}

fn message(progress: &Progress) -> String {
    let parts: String = progress.parts.iter().map(|(name, value)| format!(" {name} {value:.3}")).collect();
    let left = Duration::from_secs(progress.left.as_secs());
    format!("loss {:.3}{parts}, {}:{:02} left", progress.loss, left.as_secs() / 60, left.as_secs() % 60)
}
