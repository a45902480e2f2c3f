//! `reprise eval`: how good the answers are, on a folder that `reprise synth` writes, or in the layouts of TF-CoVR,
//! LoVR and CaReBench.

mod benchmark;
mod broadcast;
mod care;
mod covr;
mod figure;
pub(super) mod letters;
mod long;
mod lovr;
mod matching;
mod methods;
mod ranges;
mod report;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::say;

/// Arguments of `reprise eval`.
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Composed queries over single clips, beside the paper's baselines
    Covr(covr::CovrArgs),
    /// Composed queries whose answers are ranges of long videos, to a server that has ingested them
    Broadcast(Box<broadcast::BroadcastArgs>),
    /// One telling sentence inside a long text, and long texts that describe full videos clip by clip
    Long(long::LongArgs),
    /// Long texts to and from clips and full videos (LoVR)
    Lovr(lovr::LovrArgs),
    /// Captions of what is seen and of what moves, to and from clips (CaReBench)
    Care(care::CareArgs),
}

/// Prints the figures.
pub(super) async fn run(args: EvalArgs) -> anyhow::Result<()> {
    match args.what {
        What::Covr(args) => tokio::task::spawn_blocking(move || covr::run(&args)).await?,
        What::Long(args) => tokio::task::spawn_blocking(move || long::run(&args)).await?,
        What::Lovr(args) => tokio::task::spawn_blocking(move || lovr::run(&args)).await?,
        What::Care(args) => tokio::task::spawn_blocking(move || care::run(&args)).await?,
        What::Broadcast(args) => broadcast::run(*args).await,
    }
}

/// A report as JSON or as the lines of its table.
fn print<R: Serialize>(json: bool, report: &R, table: impl Fn(&R) -> Vec<String>) -> anyhow::Result<()> {
    match json {
        true => say(serde_json::to_string(report)?)?,
        false => table(report).into_iter().try_for_each(say)?,
    }
    Ok(())
}
