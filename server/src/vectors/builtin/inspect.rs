//! Compares the snapshot with the database, with exact search and with its checksums. Changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reprise_index::snapshot::Loaded;
use reprise_index::{Index, Settings, SnapshotError};

use super::super::{Difference, differences};
use crate::catalog::{Catalog, CatalogError, SpaceRow};
use crate::terms::{Collection, KeySet, SpaceInfo};

/// Attempts to read: a running server may replace the snapshot meanwhile.
const ATTEMPTS: usize = 3;

/// The contents and faults of a snapshot.
#[derive(Debug)]
pub struct Inspection {
    /// The newest change in the snapshot.
    pub seq: i64,
    /// The newest change of the catalog.
    pub newest: i64,
    /// The index's generation.
    pub generation: u64,
    /// Its collections, compared with the catalog.
    pub collections: Vec<Inspected>,
    /// Damaged parts that were left out.
    pub left_out: Vec<SnapshotError>,
}

/// One collection of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The collection.
    pub at: Collection,
    /// Number of live vectors.
    pub vectors: u64,
    /// Bytes of memory, including mapped files.
    pub bytes: u64,
    /// Whether there is a graph.
    pub graph: bool,
    /// Recall at 10 of the graphs against exact search; `None` without a graph.
    pub recall_at_10: Option<f64>,
    /// Keys that the snapshot lacks.
    pub missing: KeySet,
    /// Keys that the catalog lacks.
    pub extra: KeySet,
    /// Number of live vectors that can't be read.
    pub damaged: u64,
}

impl Inspected {
    /// A collection that the engine lacks altogether.
    pub(in crate::vectors) fn absent(difference: Difference) -> Inspected {
        let Difference { at, missing, extra } = difference;
        let (vectors, bytes, damaged) = (0, 0, 0);
        Inspected { at, vectors, bytes, graph: false, recall_at_10: None, missing, extra, damaged }
    }
}

/// Why a snapshot can't be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// There is no snapshot, or it has another version.
    #[error(
        "the snapshot can't be used; a server that starts builds another, as `reprise index rebuild` does"
    )]
    Unusable(#[from] SnapshotError),
    /// It belongs to another database: the operator named the wrong one.
    #[error("the snapshot is at change {seq}, the database at {newest}: it is of another database")]
    Foreign {
        /// The newest change in the snapshot.
        seq: u64,
        /// The newest change of the catalog.
        newest: i64,
    },
    /// A task panicked; an internal fault.
    #[error("the snapshot could not be read")]
    Panicked(#[from] tokio::task::JoinError),
}

impl InspectError {
    /// Whether there is no snapshot yet, as before the first server has stopped.
    pub fn is_missing(&self) -> bool {
        matches!(self, InspectError::Unusable(SnapshotError::Missing(_)))
    }
}

/// Inspects the snapshot in `folder`. Recall uses about `sample` stored vectors as queries. A server may be running.
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

/// Loads the newest snapshot. Retries if parts are damaged; the last attempt accepts them.
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

/// The differing keys. Skips spaces that only the catalog has if the snapshot has others: another server's models.
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
