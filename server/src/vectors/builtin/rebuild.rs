//! Builds a new snapshot from the catalog alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_index::{Settings, SnapshotError};

use super::super::{EngineKind, Opened, Vectors};
use super::{Builtin, EngineError, EngineStatus, VectorIndex, failed};
use crate::catalog::{Catalog, CatalogError};
use crate::terms::{Collection, SpaceInfo};

/// Progress of a rebuild.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Reads the vectors of a space from the catalog.
    Reading {
        /// The space's public id.
        space: String,
        /// Number of vectors read.
        done: u64,
        /// Total number of vectors.
        of: u64,
    },
    /// Links the vectors of one collection.
    Linking {
        /// The collection.
        at: Collection,
        /// Number of linked vectors.
        done: usize,
        /// Total number of vectors.
        of: usize,
    },
}

/// The result of a rebuild.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// The newest change of the catalog in the snapshot.
    pub seq: i64,
    /// The collections of the snapshot.
    pub status: EngineStatus,
}

/// Why no new snapshot was written; the old one is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The index failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The disk is full or not writable: the operator must fix it.
    #[error("the snapshot can't be written")]
    Unwritten(#[source] SnapshotError),
}

/// Reads every vector, seals every collection, and replaces the snapshot in `folder`, which no server may be using.
/// `report` receives the progress. The old snapshot stays until the new one is complete.
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
    // Set before vectors are read: a comparison leaves out the keys that changed after the engine's seq.
    builtin.applied.store(newest, Ordering::Release);
    let engine: Arc<dyn VectorIndex> = Arc::clone(&builtin) as Arc<dyn VectorIndex>;
    let opened = Opened { engine, kind: EngineKind::Builtin, name: String::new() };
    let vectors = Vectors::new(opened, catalog, spaces);
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
