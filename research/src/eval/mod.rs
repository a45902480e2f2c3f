//! `reprise eval`: measures retrieval quality of a model, on a folder of `reprise synth` or in the layouts of TF-CoVR,
//! LoVR and CaReBench. Needs no server.

mod absent;
mod benchmark;
mod care;
mod covr;
mod examples;
mod figure;
mod long;
mod lovr;
mod matching;
mod methods;
pub mod ranges;
mod replays;
pub mod report;
pub mod speech;

use clap::Subcommand;
use serde::Serialize;

use crate::terminal::say;

/// The benchmarks that need no server.
#[derive(Debug, Subcommand)]
pub enum Benchmark {
    /// Composed queries over single clips, beside the paper's baselines
    Covr(Box<covr::CovrArgs>),
    /// One decisive sentence inside a long text, and long texts that describe full videos clip by clip
    Long(long::LongArgs),
    /// Long texts to and from clips and full videos (LoVR)
    Lovr(lovr::LovrArgs),
    /// Queries whose answers are in the gallery, and the same queries without them: how well `z` tells them apart
    Absent(absent::AbsentArgs),
    /// Several clips of one label as a query, and hits that are marked as wrong: more and less like examples
    Examples(examples::ExamplesArgs),
    /// Near duplicates in rendered broadcasts: replays, and other routines
    Replays(replays::ReplaysArgs),
    /// Captions of appearance and of motion, to and from clips (CaReBench)
    Care(care::CareArgs),
}

/// Runs a benchmark and prints its figures; blocks.
///
/// # Errors
/// If data is missing or has another layout, or a model does not load.
pub fn run(benchmark: &Benchmark) -> anyhow::Result<()> {
    match benchmark {
        Benchmark::Covr(args) => covr::run(args),
        Benchmark::Long(args) => long::run(args),
        Benchmark::Lovr(args) => lovr::run(args),
        Benchmark::Absent(args) => absent::run(args),
        Benchmark::Examples(args) => examples::run(args),
        Benchmark::Replays(args) => replays::run(args),
        Benchmark::Care(args) => care::run(args),
    }
}

/// Prints a report as JSON or as a table.
fn print<R: Serialize>(json: bool, report: &R, table: impl Fn(&R) -> Vec<String>) -> anyhow::Result<()> {
    match json {
        true => say(serde_json::to_string(report)?)?,
        false => table(report).into_iter().try_for_each(say)?,
    }
    Ok(())
}
