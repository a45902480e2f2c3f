//! `reprise index check`: compares the index with the database, with exact search and, if it is a snapshot, with its
//! checksums. Changes nothing.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{engine_settings, name_of};
use crate::migrate::MigrateArgs;
use reprise_encoders::with_causes;
use reprise_research::terminal::say;
use reprise_server::catalog::{self, Catalog, SpaceRow};
use reprise_server::config::{EngineArgs, share};
use reprise_server::terms::{Level, SpanKey};
use reprise_server::vectors::builtin::{self, InspectError, Inspected, Inspection};
use reprise_server::vectors::{EngineKind, EngineSettings, Vectors};

/// Stored vectors that a check of everything searches for.
const SAMPLE: usize = 200;
/// Smallest recall at 10 that such a check accepts.
const MIN_RECALL: f64 = 0.95;
/// Number of differing keys to show.
const SHOWN: usize = 10;

/// Arguments of `reprise index check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    at: MigrateArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Stored vectors to search for when measuring recall; each costs a scan
    #[arg(long, default_value_t = 1000)]
    sample: usize,
    /// Smallest accepted recall at 10
    #[arg(long, default_value_t = 0.95, value_parser = share)]
    min_recall: f64,
}

/// Result for one level of a space.
#[derive(Debug, Serialize)]
struct Found {
    space: String,
    level: Level,
    vectors: u64,
    bytes: u64,
    graph: bool,
    /// `None` without a graph: then all searches are exact.
    recall_at_10: Option<f64>,
    keys_equal: bool,
    missing: u64,
    extra: u64,
    missing_keys: Vec<SpanKey>,
    extra_keys: Vec<SpanKey>,
    /// Number of live vectors that can't be read.
    damaged: u64,
}

/// Prints the result; fails if the index has a fault.
pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<()> {
    let CheckArgs { at, engine, sample, min_recall } = args;
    let settings = engine_settings(&at, &engine);
    let catalog = catalog::open_to_read(&settings.catalog_url).await?;
    let spaces = catalog.spaces().await?;
    let inspected = match settings.kind {
        EngineKind::Builtin => builtin::inspect(settings.folder, &catalog, sample).await?,
        EngineKind::HnswRs => {
            bail!("hnsw_rs keeps its index only in memory: a running server checks it by itself")
        }
        _ => Vectors::open_to_mend(settings, Arc::clone(&catalog)).await?.inspect(sample).await?,
    };
    catalog.close().await;
    let Inspection { seq, newest, generation, collections, left_out } = inspected;
    let found: Vec<Found> = collections.iter().map(|it| Found::new(&spaces, it)).collect();
    let mut wrong: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    wrong.extend(found.iter().flat_map(|level| level.wrong(min_recall)));
    if at.json {
        say(json!({"seq": seq, "generation": generation, "levels": found, "wrong": wrong}))?;
    } else {
        found.iter().try_for_each(|level| say(level.line()))?;
        say(format!("compared as of change {seq} of {newest}"))?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!(
        "the index is not as it should be:\n  {}\nA server mends keys and damage by itself; `reprise index rebuild` makes all of it anew",
        wrong.join("\n  ")
    )
}

/// The faults of the index, one sentence each; none if no server has written one yet, or if it is only in memory.
pub(crate) async fn faults_of_index(
    settings: EngineSettings,
    catalog: &Arc<Catalog>,
) -> anyhow::Result<Vec<String>> {
    let inspected = match settings.kind {
        EngineKind::Builtin => match builtin::inspect(settings.folder, catalog, SAMPLE).await {
            Err(error) if error.is_missing() => return Ok(Vec::new()),
            Err(error @ InspectError::Unusable(_)) => return Ok(vec![with_causes(&error)]),
            inspected => inspected?,
        },
        EngineKind::HnswRs => return Ok(Vec::new()),
        _ => Vectors::open_to_mend(settings, Arc::clone(catalog)).await?.inspect(SAMPLE).await?,
    };
    let spaces = catalog.spaces().await?;
    let of_levels = inspected.collections.iter().flat_map(|it| Found::new(&spaces, it).wrong(MIN_RECALL));
    Ok(inspected.left_out.iter().map(ToString::to_string).chain(of_levels).collect())
}

impl Found {
    fn new(spaces: &[SpaceRow], it: &Inspected) -> Found {
        Found {
            space: name_of(spaces, it.at.space).to_owned(),
            level: it.at.level,
            vectors: it.vectors,
            bytes: it.bytes,
            graph: it.graph,
            recall_at_10: it.recall_at_10,
            keys_equal: it.missing.is_empty() && it.extra.is_empty(),
            missing: it.missing.len(),
            extra: it.extra.len(),
            missing_keys: it.missing.iter().take(SHOWN).collect(),
            extra_keys: it.extra.iter().take(SHOWN).collect(),
            damaged: it.damaged,
        }
    }
}

fn listed(keys: &[SpanKey]) -> String {
    format!("[{}]", keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

impl Found {
    fn name(&self) -> String {
        format!("{} {}", self.space, format!("{:?}", self.level).to_lowercase())
    }

    fn line(&self) -> String {
        let how = match self.recall_at_10 {
            Some(recall) => format!("recall@10 {recall:.4}"),
            None => "no graph, every search is exact".to_owned(),
        };
        let equal = if self.keys_equal { "keys equal" } else { "keys differ" };
        format!(
            "{}: {} vectors, {} bytes, {how}, {equal}, {} damaged",
            self.name(),
            self.vectors,
            self.bytes,
            self.damaged
        )
    }

    /// The faults, one sentence each.
    fn wrong(&self, min_recall: f64) -> Vec<String> {
        let name = self.name();
        let mut wrong = Vec::new();
        if self.missing > 0 {
            wrong.push(format!(
                "{name}: {} spans are missing, as {}",
                self.missing,
                listed(&self.missing_keys)
            ));
        }
        if self.extra > 0 {
            wrong.push(format!(
                "{name}: {} spans are not in the database, as {}",
                self.extra,
                listed(&self.extra_keys)
            ));
        }
        if self.damaged > 0 {
            wrong.push(format!("{name}: {} vectors are damaged on disk", self.damaged));
        }
        if let Some(recall) = self.recall_at_10.filter(|recall| *recall < min_recall) {
            wrong.push(format!("{name}: recall@10 is {recall:.4}, under {min_recall}"));
        }
        wrong
    }
}
