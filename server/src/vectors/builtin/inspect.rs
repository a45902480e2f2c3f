//! The snapshot against the database, exact search and its own checksums. Changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reprise_index::snapshot::Loaded;
use reprise_index::{Index, Settings, SnapshotError};

use super::super::{Difference, differences};
use crate::catalog::{Catalog, CatalogError, SpaceRow};
use crate::terms::{Collection, KeySet, SpaceInfo};

/// A running server may replace the snapshot while it is read.
const ATTEMPTS: usize = 3;

/// What a snapshot holds, and what is wrong with it.
#[derive(Debug)]
pub struct Inspection {
    /// The change of the catalog that the snapshot is at.
    pub seq: i64,
    /// The newest change of the catalog.
    pub newest: i64,
    /// The index's generation.
    pub generation: u64,
    /// What it holds and what it should hold.
    pub collections: Vec<Inspected>,
    /// Parts that are damaged and were left out.
    pub left_out: Vec<SnapshotError>,
}

/// One collection of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// Which.
    pub at: Collection,
    /// Live vectors.
    pub vectors: u64,
    /// Bytes of memory, mapped files included.
    pub bytes: u64,
    /// Whether there is a graph.
    pub graph: bool,
    /// Recall at 10 of the graphs against exact search; `None` without a graph.
    pub recall_at_10: Option<f64>,
    /// Keys that the snapshot lacks.
    pub missing: KeySet,
    /// Keys that the catalog hasn't.
    pub extra: KeySet,
    /// Live vectors that can't be read.
    pub damaged: u64,
}

/// Why a snapshot can't be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// There is none, or it is of another version.
    #[error(
        "the snapshot can't be used; a server that starts builds another, as `reprise index rebuild` does"
    )]
    Unusable(#[from] SnapshotError),
    /// It belongs to another database: the operator named the wrong one.
    #[error("the snapshot is at change {seq}, the database at {newest}: it is of another database")]
    Foreign {
        /// The snapshot's change.
        seq: u64,
        /// The newest change of the catalog.
        newest: i64,
    },
    /// A part of it panicked; ours.
    #[error("the snapshot could not be read")]
    Panicked(#[from] tokio::task::JoinError),
}

/// Inspects the snapshot in `folder`, with about `sample` stored vectors as queries for recall. A server may run beside it.
///
/// # Errors
/// See [`InspectError`].
pub async fn inspect(folder: PathBuf, catalog: &Catalog, sample: usize) -> Result<Inspection, InspectError> {
    let spaces = catalog.spaces().await?;
    let expected: Vec<SpaceInfo> = spaces.iter().map(SpaceRow::expectation).collect();
    let Loaded { index, seq, left_out } =
        tokio::task::spawn_blocking(move || load(&folder, &expected)).await??;
    let newest = catalog.last_seq().await?;
    let at = i64::try_from(seq).ok().filter(|at| *at <= newest);
    let seq = at.ok_or(InspectError::Foreign { seq, newest })?;
    let differing = compare(catalog, &spaces, &index, seq).await?;
    let generation = index.generation();
    let collections = tokio::task::spawn_blocking(move || look(&index, differing, sample)).await?;
    Ok(Inspection { seq, newest, generation, collections, left_out })
}

/// The newest snapshot, as whole as it is.
fn load(folder: &Path, expected: &[SpaceInfo]) -> Result<Loaded, SnapshotError> {
    let mut attempts = 1;
    loop {
        match Index::load(folder, expected, Settings::default()) {
            Ok(loaded) if loaded.left_out.is_empty() || attempts == ATTEMPTS => return Ok(loaded),
            Err(error) if attempts == ATTEMPTS => return Err(error),
            _ => attempts += 1,
        }
    }
}

/// Where the keys differ. A space of which the snapshot holds nothing beside others belongs to a server with other models.
async fn compare(
    catalog: &Catalog,
    spaces: &[SpaceRow],
    index: &Index,
    seq: i64,
) -> Result<Vec<Difference>, CatalogError> {
    let levels = index.levels();
    let mut found = Vec::new();
    for space in spaces {
        let of_space = levels.iter().filter(|at| at.space == space.key);
        let held: BTreeMap<_, KeySet> = of_space.map(|at| (at.level, index.keys(*at).into())).collect();
        if !held.is_empty() || levels.is_empty() {
            found.extend(differences(catalog, space.key, &held, seq).await?);
        }
    }
    Ok(found)
}

fn look(index: &Index, differing: Vec<Difference>, sample: usize) -> Vec<Inspected> {
    let damaged: BTreeMap<Collection, u64> =
        index.verify().into_iter().map(|(at, keys)| (at, keys.len() as u64)).collect();
    let mut differing: BTreeMap<Collection, Difference> =
        differing.into_iter().map(|it| (it.at, it)).collect();
    let mut levels = index.levels();
    levels.extend(differing.keys().filter(|at| index.live(**at) == 0));
    let found = levels.into_iter().map(|at| {
        let difference = differing.remove(&at);
        let (missing, extra) = difference.map(|it| (it.missing, it.extra)).unwrap_or_default();
        Inspected {
            at,
            vectors: index.live(at),
            bytes: index.bytes(at),
            graph: index.has_graph(at),
            recall_at_10: index.check(at, sample),
            missing,
            extra,
            damaged: damaged.get(&at).copied().unwrap_or_default(),
        }
    });
    found.collect()
}
