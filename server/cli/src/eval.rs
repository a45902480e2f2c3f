//! `reprise eval`: measures retrieval quality, of models through the research crate, of ranges through its own
//! server.

use clap::{Args, Subcommand};
use reprise_research::eval::{self, Benchmark};

use crate::{broadcast, speech};

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
    /// Composed queries to a server that has ingested long videos; the answers are ranges of them
    Broadcast(Box<broadcast::BroadcastArgs>),
    /// Word error rate of a transcript, against a reference
    Speech(speech::SpeechArgs),
}

/// Prints the figures.
pub(crate) async fn run(args: EvalArgs) -> anyhow::Result<()> {
    match args.what {
        What::Model(benchmark) => tokio::task::spawn_blocking(move || eval::run(&benchmark)).await?,
        What::Broadcast(args) => broadcast::run(*args).await,
        What::Speech(args) => speech::run(args).await,
    }
}
