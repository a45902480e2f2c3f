//! `reprise synth`: renders the benchmark.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::say;
use crate::synth::{self, Settings, Split};

/// Arguments of `reprise synth`.
#[derive(Debug, Args)]
pub(super) struct SynthArgs {
    /// The folder to write; empty, or written by an earlier run
    dir: PathBuf,
    /// Decides which clips and triplets are drawn and how they look
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What to render; all writes the folders train and test
    #[arg(long, value_enum, default_value = "test")]
    split: SplitChoice,
    /// Side of the pictures in pixels, even [default: 192 for test, 96 for train]
    #[arg(long)]
    size: Option<u32>,
    /// Clips in all, spread evenly over the classes [default: 864 for test, 12960 for train]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clips: Option<u32>,
    /// Triplets in all [default: 1800 for test, 120000 for train]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    triplets: Option<u32>,
    /// Long videos of routines, replays, pauses and scoreboards [default: 2 for test, 0 for train]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=99))]
    broadcasts: Option<u32>,
    /// Routines in each broadcast
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(20..=60))]
    routines: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitChoice {
    /// At most 1,000 clips, two broadcasts, held-out words and pairs
    Test,
    /// To learn from
    Train,
    /// Both, in two folders
    All,
}

/// Renders what was asked for.
pub(super) async fn run(args: SynthArgs) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || render(&args)).await?
}

fn render(args: &SynthArgs) -> anyhow::Result<()> {
    match args.split {
        SplitChoice::Test => split(args, Split::Test, &args.dir),
        SplitChoice::Train => split(args, Split::Train, &args.dir),
        SplitChoice::All => {
            std::fs::create_dir_all(&args.dir).with_context(|| args.dir.display().to_string())?;
            split(args, Split::Train, &args.dir.join("train"))?;
            split(args, Split::Test, &args.dir.join("test"))
        }
    }
}

fn split(args: &SynthArgs, split: Split, folder: &Path) -> anyhow::Result<()> {
    let settings = settings(args, split);
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} frames, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_prefix(split.name());
    bar.enable_steady_tick(Duration::from_secs(1));
    synth::generate(folder, &settings, &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    say(format!(
        "{}: {} clips, {} broadcasts, {} frames in {}",
        folder.display(),
        settings.clips,
        settings.broadcasts,
        bar.position(),
        super::clock(bar.elapsed().as_secs_f64()),
    ))?;
    Ok(())
}

fn settings(args: &SynthArgs, split: Split) -> Settings {
    let usual = Settings::new(args.seed, split);
    let or = |given: Option<u32>, usual: usize| given.map_or(usual, |it| it as usize);
    Settings {
        size: args.size.unwrap_or(usual.size),
        clips: or(args.clips, usual.clips),
        triplets: or(args.triplets, usual.triplets),
        broadcasts: or(args.broadcasts, usual.broadcasts),
        routines: args.routines as usize,
        ..usual
    }
}
