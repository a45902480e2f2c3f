//! `reprise index`: checks, rebuilds and measures the index.

mod check;
mod rebuild;

use clap::{Args, Subcommand};

pub(crate) use check::faults_of_index;
pub(crate) use rebuild::mend;

use crate::migrate::MigrateArgs;
use reprise_server::catalog::SpaceRow;
use reprise_server::config::EngineArgs;
use reprise_server::vectors::EngineSettings;
use reprise_server::vectors::builtin::Settings;

/// Arguments of `reprise index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    /// Compare the index with the database and with exact search; a server may be running
    Check(check::CheckArgs),
    /// Build the index anew from the database, or fill another engine while a server goes on answering with its own;
    /// the built-in index needs the server to be stopped
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

/// The settings of an engine, without those of running servers.
pub(crate) fn engine_settings(at: &MigrateArgs, engine: &EngineArgs) -> EngineSettings {
    EngineSettings {
        kind: engine.index_engine,
        url: engine.index_url.clone(),
        catalog_url: at.database.url(),
        folder: at.database.data_dir.join("index"),
        builtin: Settings::default(),
    }
}

/// A space's readable name.
fn name_of(spaces: &[SpaceRow], key: u32) -> &str {
    spaces.iter().find(|row| row.key == key).map_or("?", |row| row.space.name.as_str())
}
