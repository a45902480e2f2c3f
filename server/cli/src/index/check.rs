//! `reprise index check`: the snapshot against the database, brute force and its own checksums. Changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use clap::Args;
use reprise_index::snapshot::Loaded;
use reprise_index::{Index, Settings, SpaceExpectation, SpaceLevel};
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::json;

use super::name_of;
use crate::migrate::MigrateArgs;
use reprise_research::terminal::say;
use reprise_server::catalog::{self, Catalog, SpaceRow};
use reprise_server::config::share;
use reprise_server::gallery::{Difference, differences};

/// A running server may replace the snapshot while it is read.
const ATTEMPTS: usize = 3;
/// Differing keys that are shown.
const SHOWN: usize = 10;

/// Arguments of `reprise index check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    at: MigrateArgs,
    /// Stored vectors that are searched for to measure recall; each costs a scan
    #[arg(long, default_value_t = 1000)]
    sample: usize,
    /// Recall at 10 under which the check fails
    #[arg(long, default_value_t = 0.95, value_parser = share)]
    min_recall: f64,
}

/// What was found of one level.
#[derive(Debug, Serialize)]
struct Found {
    space: String,
    level: reprise_index::Level,
    vectors: u64,
    bytes: u64,
    graph: bool,
    /// `None`: no graph, all searches are exact.
    recall_at_10: Option<f64>,
    keys_equal: bool,
    missing: u64,
    extra: u64,
    missing_keys: Vec<u32>,
    extra_keys: Vec<u32>,
    /// Live vectors that can't be read.
    damaged: u64,
}

/// Prints what it found; an error if something is wrong.
pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<()> {
    let CheckArgs { at, sample, min_recall } = args;
    let url = at.database_url.unwrap_or_else(|| catalog::embedded_url(&at.data_dir));
    let catalog = catalog::open_to_read(&url).await?;
    let spaces = catalog.spaces().await?;
    let folder = at.data_dir.join("index");
    let expected: Vec<SpaceExpectation> = spaces.iter().map(SpaceRow::expectation).collect();
    let Loaded { index, seq, left_out } = tokio::task::spawn_blocking(move || load(&folder, &expected))
        .await?
        .context("the snapshot can't be used; a server that starts builds another, as `reprise index rebuild` does")?;
    let seq = i64::try_from(seq)?;
    let newest = catalog.last_seq().await?;
    ensure!(
        seq <= newest,
        "the snapshot is at change {seq}, the database at {newest}: it is of another database"
    );
    let differing = compare(&*catalog, &spaces, &index, seq).await?;
    catalog.close().await;
    let generation = index.generation();
    let found = tokio::task::spawn_blocking(move || look(&index, &spaces, differing, sample)).await?;
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

/// The newest snapshot, as whole as it is.
fn load(folder: &Path, expected: &[SpaceExpectation]) -> anyhow::Result<Loaded> {
    let mut attempts = 1;
    loop {
        match Index::load(folder, expected, Settings::default()) {
            Ok(loaded) if loaded.left_out.is_empty() || attempts == ATTEMPTS => return Ok(loaded),
            Err(error) if attempts == ATTEMPTS => return Err(error.into()),
            _ => attempts += 1,
        }
    }
}

/// Where the keys differ. A space of which the snapshot holds nothing beside others belongs to a server with other models.
async fn compare(
    catalog: &dyn Catalog,
    spaces: &[SpaceRow],
    index: &Index,
    seq: i64,
) -> anyhow::Result<Vec<Difference>> {
    let levels = index.levels();
    let mut found = Vec::new();
    for space in spaces {
        let of_space = levels.iter().filter(|at| at.space == space.key);
        let held: BTreeMap<_, RoaringBitmap> = of_space.map(|at| (at.level, index.keys(*at))).collect();
        if !held.is_empty() || levels.is_empty() {
            found.extend(differences(catalog, space.key, &held, seq).await?);
        }
    }
    Ok(found)
}

fn look(index: &Index, spaces: &[SpaceRow], differing: Vec<Difference>, sample: usize) -> Vec<Found> {
    let damaged: BTreeMap<SpaceLevel, u64> =
        index.verify().into_iter().map(|(at, keys)| (at, keys.len() as u64)).collect();
    let mut differing: BTreeMap<SpaceLevel, Difference> =
        differing.into_iter().map(|it| (it.at, it)).collect();
    let mut levels = index.levels();
    levels.extend(differing.keys().filter(|at| index.live(**at) == 0));
    let found = levels.into_iter().map(|at| {
        let difference = differing.remove(&at);
        let (missing, extra) = difference.map(|it| (it.missing, it.extra)).unwrap_or_default();
        Found {
            space: name_of(spaces, at.space).to_owned(),
            level: at.level,
            vectors: index.live(at),
            bytes: index.bytes(at),
            graph: index.has_graph(at),
            recall_at_10: index.check(at, sample),
            keys_equal: missing.is_empty() && extra.is_empty(),
            missing: missing.len(),
            extra: extra.len(),
            missing_keys: missing.iter().take(SHOWN).collect(),
            extra_keys: extra.iter().take(SHOWN).collect(),
            damaged: damaged.get(&at).copied().unwrap_or_default(),
        }
    });
    found.collect()
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

    /// What is wrong, one sentence each.
    fn wrong(&self, min_recall: f64) -> Vec<String> {
        let name = self.name();
        let mut wrong = Vec::new();
        if self.missing > 0 {
            wrong.push(format!("{name}: {} spans are missing, as {:?}", self.missing, self.missing_keys));
        }
        if self.extra > 0 {
            wrong.push(format!(
                "{name}: {} spans are not in the database, as {:?}",
                self.extra, self.extra_keys
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
