//! `reprise restore`: fills an empty database and data folder with a backup.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::migrate::DatabaseArgs;
use crate::step::Step;
use reprise_research::terminal::say;
use reprise_server::backup::{self, Backup, Damage, Restored, Target};
use reprise_server::catalog;
use reprise_server::storage::Storage;

/// Arguments of `reprise restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Folder that `reprise backup` has written
    folder: PathBuf,
    /// Leave out videos and tables that are damaged, and restore the rest
    #[arg(long)]
    skip_damaged: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Restores the backup, and prints what was left out.
pub(crate) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let _hold = catalog::hold(&args.database.url(), "`reprise restore`")?;
    let catalog = args.database.open().await?;
    let storage = Storage::open(&args.database.data_dir)?;
    let backup = Backup::open(&args.folder, catalog.schema_version().await?)?;
    let step = Step::begin("restoring", "steps")?;
    let report = |done, all| {
        if !args.json {
            step.set(done, all);
        }
    };
    let target = Target {
        catalog: catalog.clone(),
        storage: &storage,
        index: &args.database.data_dir.join("index"),
        skip_damaged: args.skip_damaged,
        report: &report,
    };
    let restored = backup::restore(backup, &target).await;
    catalog.close().await;
    let Restored { videos, skipped, without_file } = restored?;
    if args.json {
        let lines = |all: &[Damage]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        say(json!({"videos": videos, "skipped": lines(&skipped), "without_file": lines(&without_file)}))?;
        return Ok(());
    }
    skipped.iter().try_for_each(|damage| say(format!("left out: {damage}")))?;
    without_file.iter().try_for_each(|damage| say(format!("without its file: {damage}")))?;
    step.end(&format!("restored videos: {videos}"))?;
    say("the first start of a server fills the index")?;
    Ok(())
}
