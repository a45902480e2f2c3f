//! `reprise eval`: how good the answers are, on a folder that `reprise synth` writes or that has TF-CoVR's columns.

mod benchmark;
mod broadcast;
mod covr;
mod encode;
mod figure;
pub(super) mod letters;
mod methods;
mod ranges;
mod report;

use clap::{Args, Subcommand};

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
}

/// Prints the figures.
pub(super) async fn run(args: EvalArgs) -> anyhow::Result<()> {
    match args.what {
        What::Covr(args) => tokio::task::spawn_blocking(move || covr::run(&args)).await?,
        What::Broadcast(args) => broadcast::run(*args).await,
    }
}
