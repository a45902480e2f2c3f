//! `reprise eval`: how good the answers are; research judges models, and a server of its own is asked for ranges.

use clap::{Args, Subcommand};
use reprise_research::eval::{self, Benchmark};

use crate::broadcast;

/// Arguments of `reprise eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(flatten)]
    Model(Benchmark),
    /// Composed queries whose answers are ranges of long videos, to a server that has ingested them
    Broadcast(Box<broadcast::BroadcastArgs>),
}

/// Prints the figures.
pub(crate) async fn run(args: EvalArgs) -> anyhow::Result<()> {
    match args.what {
        What::Model(benchmark) => tokio::task::spawn_blocking(move || eval::run(&benchmark)).await?,
        What::Broadcast(args) => broadcast::run(*args).await,
    }
}
