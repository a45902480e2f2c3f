//! `reprise index`: checks, rebuilds and measures the index.

mod check;
mod rebuild;

use clap::{Args, Subcommand};

use reprise_server::catalog::SpaceRow;

/// Arguments of `reprise index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    /// Compare the snapshot with the database and with brute force; a server may be running
    Check(check::CheckArgs),
    /// Build the snapshot anew from the database; the server must be stopped
    Rebuild(rebuild::RebuildArgs),
    /// Measure recall and speed on vectors from .npy files; needs no server and no database
    Bench(reprise_research::speed::index::BenchArgs),
}

/// Runs one of the subcommands.
pub(crate) async fn run(args: IndexArgs) -> anyhow::Result<()> {
    match args.command {
        IndexCommand::Check(args) => check::run(args).await,
        IndexCommand::Rebuild(args) => rebuild::run(args).await,
        IndexCommand::Bench(args) => {
            tokio::task::spawn_blocking(move || reprise_research::speed::index::run(&args)).await?
        }
    }
}

/// A space's readable name.
fn name_of(spaces: &[SpaceRow], key: u32) -> &str {
    spaces.iter().find(|row| row.key == key).map_or("?", |row| row.space.name.as_str())
}
