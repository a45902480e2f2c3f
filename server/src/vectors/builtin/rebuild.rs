//! The snapshot made anew from the catalog alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_index::{Settings, SnapshotError};

use super::super::Vectors;
use super::{Builtin, EngineError, EngineStatus, VectorIndex, failed};
use crate::catalog::{Catalog, CatalogError};
use crate::terms::{Collection, SpaceInfo};

/// How far a rebuild is.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Vectors of a space are read from the catalog.
    Reading {
        /// The space's public id.
        space: String,
        /// Vectors read.
        done: u64,
        /// Of how many.
        of: u64,
    },
    /// Vectors of one collection are linked.
    Linking {
        /// Which.
        at: Collection,
        /// Vectors linked.
        done: usize,
        /// Of how many.
        of: usize,
    },
}

/// A new snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// The newest change of the catalog that it holds.
    pub seq: i64,
    /// What it holds.
    pub status: EngineStatus,
}

/// Why there is no new snapshot; the old one is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The index failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The disk is full or not writable: the operator's to mend.
    #[error("the snapshot can't be written")]
    Unwritten(#[source] SnapshotError),
}

/// Reads every vector, seals every collection, and writes the snapshot in the place of what is in `folder`, which is used
/// by nobody else; `report` hears how far it is. What was there stays until the new one is whole.
///
/// # Errors
/// See [`RebuildError`].
pub async fn rebuild(
    folder: PathBuf,
    catalog: Arc<Catalog>,
    spaces: Vec<SpaceInfo>,
    settings: Settings,
    report: Arc<dyn Fn(Step) + Send + Sync>,
) -> Result<Rebuilt, RebuildError> {
    let newest = catalog.last_seq().await?;
    let builtin = Arc::new(Builtin::empty(folder, Arc::clone(&catalog), &spaces, settings)?);
    // Before the vectors are read: a comparison leaves out the keys that changed after the engine's seq.
    builtin.applied.store(newest, Ordering::Release);
    let engine: Arc<dyn VectorIndex> = Arc::clone(&builtin) as Arc<dyn VectorIndex>;
    let vectors = Vectors::new(engine, catalog, spaces);
    for space in vectors.spaces() {
        let read = |done, of| report(Step::Reading { space: space.id.clone(), done, of });
        vectors.complete_space(&space, &read).await?;
    }
    for at in builtin.index.levels() {
        let (index, report) = (Arc::clone(&builtin.index), Arc::clone(&report));
        let seal = move || {
            index.seal_with(at, settings.build_threads, &|done, of| report(Step::Linking { at, done, of }));
        };
        tokio::task::spawn_blocking(seal).await.map_err(failed)?;
    }
    vectors.apply_all().await?;
    builtin.try_save().await?;
    Ok(Rebuilt { seq: builtin.applied().await?, status: builtin.status().await? })
}
