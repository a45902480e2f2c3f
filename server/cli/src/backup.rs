//! `reprise backup`: writes all rows and stored files into a folder, while servers run.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use crate::migrate::DatabaseArgs;
use crate::step::Step;
use reprise_research::terminal::say;
use reprise_server::backup::{self, Media, Request, Written};
use reprise_server::catalog;
use reprise_server::storage::Storage;

/// Arguments of `reprise backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Folder to make; it must not exist
    folder: PathBuf,
    /// Link the stored files instead of copying them, where backup and data folder are on one file system; they are
    /// then not compared with their hashes
    #[arg(long)]
    link: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the backup. Fails after that if a video has no whole file.
pub(crate) async fn run(args: BackupArgs) -> anyhow::Result<()> {
    let catalog = catalog::open_existing(&args.database.url()).await?;
    let storage = Storage::open(&args.database.data_dir)?;
    let step = Step::begin("saving", "videos")?;
    let report = |done, all| {
        if !args.json {
            step.set(done, all);
        }
    };
    let request = Request {
        catalog: catalog.clone(),
        storage: &storage,
        folder: &args.folder,
        link: args.link,
        report: &report,
    };
    let written = backup::write(request).await;
    catalog.close().await;
    let Written { videos, media_bytes, lost } = written?;
    if args.json {
        say(
            json!({"folder": args.folder, "videos": videos, "media_bytes": media_bytes, "without_file": lost}),
        )?;
    } else {
        step.end(&format!("saved videos: {videos}, with {media_bytes} bytes of media"))?;
    }
    if lost.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = lost
        .iter()
        .map(|video| match &video.media {
            Media::Lost { why } => format!("video {} {:?}: {why}", video.id, video.title),
            _ => video.id.to_string(),
        })
        .collect();
    bail!("the backup is written, but it lacks files:\n  {}", lines.join("\n  "))
}
