//! Speed of models and of the index on this machine.

mod encode;
mod generate;
pub mod index;
mod memory;
mod meter;
mod workload;

use clap::{Args, Subcommand};
use reprise_encoders::on_cores;

/// Arguments of `reprise bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Measure how many pictures, clips and texts a model encodes per second, one batch after the other
    Encode(encode::EncodeArgs),
    /// Measure how fast a model that writes texts reads prompts and writes tokens
    Generate(generate::GenerateArgs),
}

/// Runs a benchmark and prints the figures.
pub async fn run(args: BenchArgs) -> anyhow::Result<()> {
    let measure = move || match &args.what {
        Bench::Encode(args) => encode::run(args),
        Bench::Generate(args) => generate::run(args),
    };
    // As in a server, where a worker has its own threads.
    tokio::task::spawn_blocking(|| on_cores("bench", measure)).await?
}
