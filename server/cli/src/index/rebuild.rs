//! `reprise index rebuild`: builds a new snapshot from the database.

use std::sync::Arc;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::name_of;
use crate::migrate::MigrateArgs;
use reprise_research::terminal::say;
use reprise_server::catalog::{self, SpaceRow};
use reprise_server::terms::SpaceInfo;
use reprise_server::vectors::CollectionStatus;
use reprise_server::vectors::builtin::{self, Codes, Rebuilt, Settings, Step};

/// Arguments of `reprise index rebuild`.
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    at: MigrateArgs,
    /// Number format for comparisons during a search: int8, f16 or f32
    #[arg(long, env = "REPRISE_INDEX_CODES", default_value = "int8")]
    index_codes: Codes,
}

/// Reads and links all vectors, and replaces the old snapshot.
pub(crate) async fn run(args: RebuildArgs) -> anyhow::Result<()> {
    let at = args.at;
    let url = at.database_url.unwrap_or_else(|| catalog::embedded_url(&at.data_dir));
    let catalog = catalog::open(&url).await?;
    let spaces = catalog.spaces().await?;
    let expected: Vec<SpaceInfo> = spaces.iter().map(SpaceRow::expectation).collect();
    // No server runs meanwhile, so the build takes all cores.
    let build_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let settings = Settings { codes: args.index_codes, build_threads, ..Settings::default() };
    let bar = progress(at.json)?;
    let shown = bar.clone();
    let report = Arc::new(move |step| show(&shown, step));
    let folder = at.data_dir.join("index");
    let rebuilt = builtin::rebuild(folder, Arc::clone(&catalog), expected, settings, report).await?;
    bar.finish_and_clear();
    print(&rebuilt, &spaces, at.json)?;
    catalog.close().await;
    Ok(())
}

fn progress(hidden: bool) -> anyhow::Result<ProgressBar> {
    if hidden {
        return Ok(ProgressBar::hidden());
    }
    let template = "{msg} {wide_bar} {pos}/{len} vectors, {eta} left";
    Ok(ProgressBar::new(0).with_style(ProgressStyle::with_template(template)?))
}

fn show(bar: &ProgressBar, step: Step) {
    let (message, done, of) = match step {
        Step::Reading { done, of, .. } => ("reading", done, of),
        Step::Linking { done, of, .. } => ("linking", done as u64, of as u64),
    };
    if bar.message() != message {
        bar.reset_eta();
        bar.set_message(message);
    }
    bar.set_length(of);
    bar.set_position(done);
}

/// Prints the size of each level and the last change in the snapshot.
fn print(rebuilt: &Rebuilt, spaces: &[SpaceRow], as_json: bool) -> anyhow::Result<()> {
    let mut levels = Vec::new();
    for held in &rebuilt.status.collections {
        let CollectionStatus { at, live: vectors, bytes, graph, .. } = *held;
        let space = name_of(spaces, at.space);
        levels.push(
            json!({"space": space, "level": at.level, "vectors": vectors, "bytes": bytes, "graph": graph}),
        );
        if !as_json {
            let level = format!("{:?}", at.level).to_lowercase();
            let each = bytes / vectors.max(1);
            let how = if graph { "sealed" } else { "few enough for exact search" };
            say(format!("{space} {level}: {vectors} vectors, {bytes} bytes ({each} each), {how}"))?;
        }
    }
    if as_json {
        say(json!({"levels": levels, "seq": rebuilt.seq}))?;
    } else {
        say(format!("rebuilt up to change {}", rebuilt.seq))?;
    }
    Ok(())
}
