//! `reprise synth`: renders the benchmark.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::synth::board;
use crate::synth::check::{self, Effort, Line};
use crate::synth::{self, Settings, Split};
use crate::terminal::{clock, say};

/// Arguments of `reprise synth`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SynthArgs {
    #[command(subcommand)]
    command: Option<SynthCommand>,
    /// The folder to write; empty, or written by an earlier run
    #[arg(required = true)]
    dir: Option<PathBuf>,
    /// Seed of clips, triplets and looks
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Splits to render; all writes the folders train and test
    #[arg(long, value_enum, default_value = "test")]
    split: SplitChoice,
    /// Side of the pictures in pixels, even [default: 192 for test, 96 for train]
    #[arg(long)]
    size: Option<u32>,
    /// Clips in all, spread evenly over the classes [default: 992 for test, 14880 for train]
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

#[derive(Debug, Subcommand)]
enum SynthCommand {
    /// Train small probes on too little information and print their scores: a high one reveals a leak
    Check(CheckArgs),
    /// Render a film of athletes with a score board over it whose names and digits change, and its truth
    Board(BoardArgs),
}

#[derive(Debug, Args)]
struct BoardArgs {
    /// The film to write, as MP4. FILE.jsonl gets row, start, end and text of each line
    file: PathBuf,
    /// Seed of names, digits and the film below
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Length in seconds
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=36_000))]
    seconds: u32,
    /// Side of the pictures in pixels, even
    #[arg(long, default_value_t = 720)]
    size: u32,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// A test split
    dir: PathBuf,
    /// Training clips of each class
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clips: u32,
    /// Epochs of the probes
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=1000))]
    epochs: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitChoice {
    /// At most 1,000 clips, two broadcasts, held-out words and pairs
    Test,
    /// Training split
    Train,
    /// Both, in two folders
    All,
}

/// Runs the command.
pub async fn run(args: SynthArgs) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || match (&args.command, &args.dir) {
        (Some(SynthCommand::Check(args)), _) => check(args),
        (Some(SynthCommand::Board(args)), _) => render_board(args),
        (None, Some(dir)) => render(&args, dir),
        (None, None) => bail!("name a folder"),
    })
    .await?
}

/// Prints the table; a leak is an error.
fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let effort = Effort { clips: args.clips as usize, epochs: args.epochs as usize };
    let lines = check::check(&args.dir, effort, &|step| bar.set_message(step.to_owned()))?;
    bar.finish_and_clear();
    say("composed, seen pairs, mAP@50       through the probe   gallery known   limit")?;
    for line in &lines {
        say(table_row(line))?;
    }
    let leaks: Vec<&str> = lines.iter().filter(|it| !it.passes).map(|it| it.probe).collect();
    if leaks.is_empty() { Ok(()) } else { bail!("over the limit: {}", leaks.join(", ")) }
}

fn table_row(line: &Line) -> String {
    let name = if line.limit.is_some() { format!("{} + text", line.probe) } else { line.probe.to_owned() };
    let judged = match line.limit {
        None => "-".to_owned(),
        Some(limit) => format!("{limit:.1} {}", if line.passes { "ok" } else { "LEAK" }),
    };
    format!("{name:<34} {:>17.1} {:>15.1}   {judged}", line.map, line.known_gallery)
}

fn render(args: &SynthArgs, dir: &Path) -> anyhow::Result<()> {
    match args.split {
        SplitChoice::Test => split(args, Split::Test, dir),
        SplitChoice::Train => split(args, Split::Train, dir),
        SplitChoice::All => {
            std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
            split(args, Split::Train, &dir.join("train"))?;
            split(args, Split::Test, &dir.join("test"))
        }
    }
}

fn render_board(args: &BoardArgs) -> anyhow::Result<()> {
    let settings = Settings { size: args.size, ..Settings::new(args.seed, Split::Test) };
    let lines = board::render(&args.file, &settings, args.seconds)?;
    say(format!("{}: {} s with {lines} lines", args.file.display(), args.seconds))?;
    Ok(())
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
        clock(bar.elapsed().as_secs_f64()),
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
