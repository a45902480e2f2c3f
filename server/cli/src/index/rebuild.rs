//! `reprise index rebuild`: fills a vector engine from the database.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{engine_settings, name_of};
use crate::migrate::MigrateArgs;
use reprise_research::terminal::say;
use reprise_server::catalog::{self, Catalog, SpaceRow};
use reprise_server::config::{EngineArgs, IndexArgs};
use reprise_server::terms::SpaceInfo;
use reprise_server::vectors::builtin::{self, Rebuilt, Settings, Step};
use reprise_server::vectors::{
    CollectionStatus, EngineKind, EngineSettings, EngineStatus, Progress, Vectors,
};

/// Arguments of `reprise index rebuild`.
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    at: MigrateArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Fill this engine instead, while servers go on with theirs; goes on where an earlier call was cut off
    #[arg(long, value_enum, value_name = "ENGINE")]
    to: Option<EngineKind>,
    #[command(flatten)]
    index: IndexArgs,
}

/// Fills the engine and prints its sizes.
pub(crate) async fn run(args: RebuildArgs) -> anyhow::Result<()> {
    let RebuildArgs { at, mut engine, to, index } = args;
    engine.index_engine = to.unwrap_or(engine.index_engine);
    let settings = engine_settings(&at, &engine);
    // A server would go on with its own index, and write it over the new one.
    let _hold = match settings.kind {
        EngineKind::Builtin => Some(catalog::hold(&settings.catalog_url, "`reprise index rebuild`")?),
        _ => None,
    };
    let catalog = catalog::open(&settings.catalog_url).await?;
    let spaces = catalog.spaces().await?;
    match settings.kind {
        EngineKind::Builtin => snapshot(&at, settings, &catalog, index).await?,
        EngineKind::HnswRs => {
            bail!("hnsw_rs keeps its index only in memory: each start of a server builds it")
        }
        _ => shared(&at, settings, &catalog, to.is_none()).await?,
    }
    .print(&spaces, at.json)?;
    catalog.close().await;
    Ok(())
}

/// Builds the engine's index anew. `None` if nothing needs it: an index in memory is built at each start.
///
/// # Errors
/// Those of the engine; for the built-in index also a server that runs.
pub(crate) async fn mend(
    at: &MigrateArgs,
    engine: &EngineArgs,
    catalog: &Arc<Catalog>,
    index: IndexArgs,
) -> anyhow::Result<Option<i64>> {
    let settings = engine_settings(at, engine);
    let done = match settings.kind {
        EngineKind::Builtin => {
            let _hold = catalog::hold(&settings.catalog_url, "`reprise verify --fix`")?;
            snapshot(at, settings, catalog, index).await?
        }
        EngineKind::HnswRs => return Ok(None),
        _ => shared(at, settings, catalog, true).await?,
    };
    Ok(Some(done.seq))
}

/// Reads and links all vectors, and replaces the old snapshot.
async fn snapshot(
    at: &MigrateArgs,
    settings: EngineSettings,
    catalog: &Arc<Catalog>,
    index: IndexArgs,
) -> anyhow::Result<Done> {
    let expected: Vec<SpaceInfo> = catalog.spaces().await?.iter().map(SpaceRow::expectation).collect();
    // No server runs meanwhile, so the build takes all cores.
    let build_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let builtin = Settings { build_threads, ..index.settings() };
    let bar = progress(at.json)?;
    let shown = bar.clone();
    let report = Arc::new(move |step| show(&shown, step));
    let Rebuilt { seq, status } =
        builtin::rebuild(settings.folder, Arc::clone(catalog), expected, builtin, report).await?;
    bar.finish_and_clear();
    Ok(Done { seq, status })
}

/// Fills a shared engine. With `anew` it empties the engine first; otherwise it applies the changes that are missing.
async fn shared(
    at: &MigrateArgs,
    settings: EngineSettings,
    catalog: &Arc<Catalog>,
    anew: bool,
) -> anyhow::Result<Done> {
    let vectors = Vectors::open_to_mend(settings, Arc::clone(catalog)).await?;
    if anew {
        vectors.begin_anew().await?;
    }
    let bar = progress(at.json)?;
    bar.set_message("applying changes");
    let report = |Progress { applied, newest }: Progress| {
        bar.set_length(newest.unsigned_abs());
        bar.set_position(applied.unsigned_abs());
    };
    let seq = vectors.fill_up(&report).await?.applied;
    bar.finish_and_clear();
    let status = vectors.status().await?;
    vectors.close().await;
    Ok(Done { seq, status })
}

/// The content of a filled engine.
struct Done {
    seq: i64,
    status: EngineStatus,
}

fn progress(hidden: bool) -> anyhow::Result<ProgressBar> {
    if hidden {
        return Ok(ProgressBar::hidden());
    }
    let template = "{msg} {wide_bar} {pos}/{len}, {eta} left";
    Ok(ProgressBar::new(0).with_style(ProgressStyle::with_template(template)?))
}

fn show(bar: &ProgressBar, step: Step) {
    let (message, done, of) = match step {
        Step::Reading { done, of, .. } => ("reading vectors", done, of),
        Step::Linking { done, of, .. } => ("linking vectors", done as u64, of as u64),
    };
    if bar.message() != message {
        bar.reset_eta();
        bar.set_message(message);
    }
    bar.set_length(of);
    bar.set_position(done);
}

impl Done {
    /// Prints the size of each level and the newest change in the engine.
    fn print(&self, spaces: &[SpaceRow], as_json: bool) -> anyhow::Result<()> {
        let mut levels = Vec::new();
        for held in &self.status.collections {
            let CollectionStatus { at, live: vectors, bytes, graph, .. } = *held;
            let space = name_of(spaces, at.space);
            levels.push(
                json!({"space": space, "level": at.level, "vectors": vectors, "bytes": bytes, "graph": graph}),
            );
            if !as_json {
                let level = format!("{:?}", at.level).to_lowercase();
                let each = bytes / vectors.max(1);
                let how = if graph { "with a graph" } else { "few enough for exact search" };
                say(format!("{space} {level}: {vectors} vectors, {bytes} bytes ({each} each), {how}"))?;
            }
        }
        if as_json {
            say(json!({"levels": levels, "seq": self.seq}))?;
        } else {
            say(format!("rebuilt up to change {}", self.seq))?;
        }
        Ok(())
    }
}
