//! `reprise index`: looks after the index of a server that is not running, and measures it.

mod bench;

use anyhow::Context;
use clap::{Args, Subcommand};
use reprise_index::SpaceExpectation;
use serde_json::{Value, json};

use super::migrate::MigrateArgs;
use super::say;
use crate::catalog::{self, SpaceRow};
use crate::gallery::Gallery;

/// Arguments of `reprise index`.
#[derive(Debug, Args)]
pub(super) struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    /// Build the snapshot anew from the database; the server must be stopped
    Rebuild(MigrateArgs),
    /// Measure recall and speed on vectors from .npy files; needs no server and no database
    Bench(bench::BenchArgs),
}

/// Runs one of the subcommands.
pub(super) async fn run(args: IndexArgs) -> anyhow::Result<()> {
    let at = match args.command {
        IndexCommand::Rebuild(at) => at,
        IndexCommand::Bench(args) => return tokio::task::spawn_blocking(move || bench::run(&args)).await?,
    };
    let url = at.database_url.unwrap_or_else(|| catalog::embedded_url(&at.data_dir));
    let catalog = catalog::open(&url).await?;
    let spaces = catalog.spaces().await?;
    let expected: Vec<SpaceExpectation> = spaces
        .iter()
        .map(|row| SpaceExpectation { key: row.key, id: row.space.id.clone(), dim: row.space.dim })
        .collect();
    let folder = at.data_dir.join("index");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("{} can't be removed", folder.display()))?;
    }
    let gallery = Gallery::open(folder, std::sync::Arc::clone(&catalog), expected).await?;
    gallery.save().await;
    print(&gallery, &spaces, at.json)?;
    catalog.close().await;
    Ok(())
}

/// Vectors by space and level, and how far the snapshot is.
fn print(gallery: &Gallery, spaces: &[SpaceRow], as_json: bool) -> anyhow::Result<()> {
    let mut levels = Vec::new();
    for at in gallery.index().levels() {
        let space = spaces.iter().find(|row| row.key == at.space).map_or("?", |row| row.space.name.as_str());
        levels.push(json!({"space": space, "level": at.level, "vectors": gallery.index().live(at)}));
    }
    if as_json {
        say(json!({"levels": levels, "seq": gallery.applied()}))?;
        return Ok(());
    }
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for level in &levels {
        say(format!("{} {}: {} vectors", word(&level["space"]), word(&level["level"]), level["vectors"]))?;
    }
    say(format!("rebuilt up to change {}", gallery.applied()))?;
    Ok(())
}
