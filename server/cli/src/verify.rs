//! `reprise verify`: compares files, rows, vectors and index, and mends what can be made again.

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use crate::index::{self, engine_settings, faults_of_index};
use crate::migrate::MigrateArgs;
use crate::step::Step;
use reprise_research::terminal::say;
use reprise_server::catalog::{self, Catalog};
use reprise_server::config::{EngineArgs, IndexArgs};
use reprise_server::storage::Storage;
use reprise_server::verify::{self, Fault, Library};

/// Arguments of `reprise verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    at: MigrateArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Queue jobs for missing vectors, delete bad vectors and foreign derived files, mark videos whose file is lost, and
    /// build a faulty index anew; the built-in one needs the server to be stopped
    #[arg(long)]
    fix: bool,
    #[command(flatten)]
    index: IndexArgs,
}

/// Prints all faults; fails if there are any.
pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<()> {
    let VerifyArgs { at, engine, fix, index } = args;
    let catalog = catalog::open_existing(&at.database.url()).await?;
    let storage = Storage::open(&at.database.data_dir)?;
    let step = Step::begin("verifying", "files")?;
    let report = |done, all| {
        if !at.json {
            step.set(done, all)
        }
    };
    let library = Library { catalog: catalog.clone(), storage: &storage, report: &report };
    let faults = verify::verify(&library).await?;
    let of_index = faults_of_index(engine_settings(&at, &engine), &catalog).await?;
    let mut done = if fix { verify::fix(&library, &faults).await? } else { Vec::new() };
    if fix && !of_index.is_empty() {
        done.extend(mended_index(&at, &engine, &catalog, index).await?);
    }
    catalog.close().await;
    let number = faults.len() + of_index.len();
    if at.json {
        say(json!({"faults": faults, "index": of_index, "fixed": done}))?;
    } else {
        let lines = faults.iter().map(Fault::to_string).chain(of_index);
        lines.chain(done.into_iter().map(|line| format!("fixed: {line}"))).try_for_each(say)?;
        step.end(&format!("found {number} faults"))?;
    }
    if number == 0 {
        return Ok(());
    }
    bail!(
        "{number} faults; --fix mends what can be made again, and a running server those of the index by itself"
    )
}

/// Builds the index anew; what was done, in words.
async fn mended_index(
    at: &MigrateArgs,
    engine: &EngineArgs,
    catalog: &Arc<Catalog>,
    args: IndexArgs,
) -> anyhow::Result<Option<String>> {
    let mended = index::mend(at, engine, catalog, args).await.context("building the index anew")?;
    Ok(mended.map(|seq| format!("built the index anew, up to change {seq}")))
}
