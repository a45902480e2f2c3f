//! The snapshot made anew from the catalog alone.

use std::path::PathBuf;
use std::sync::Arc;

use reprise_index::{Index, Settings, SpaceExpectation, SpaceLevel};

use super::{Gallery, empty, panicked};
use crate::catalog::{Catalog, CatalogError};

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
    /// Vectors of one level are linked.
    Linking {
        /// Which.
        at: SpaceLevel,
        /// Vectors linked.
        done: usize,
        /// Of how many.
        of: usize,
    },
}

/// Why there is no new snapshot; the old one is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The disk is full or not writable: the operator's to mend.
    #[error("the snapshot can't be written: {0}")]
    Unwritten(String),
}

impl Gallery {
    /// Reads every vector, seals every level, and writes the snapshot in the place of what is in `folder`, which is used
    /// by nobody else; `report` hears how far it is. What was there stays until the new one is whole.
    ///
    /// # Errors
    /// See [`RebuildError`].
    pub async fn rebuild(
        folder: PathBuf,
        catalog: Arc<dyn Catalog>,
        spaces: Vec<SpaceExpectation>,
        settings: Settings,
        report: Arc<dyn Fn(Step) + Send + Sync>,
    ) -> Result<Gallery, RebuildError> {
        let newest = catalog.last_seq().await?;
        let gallery = Gallery::new(empty(&folder, &spaces, settings)?, folder, catalog, spaces, newest);
        for space in gallery.spaces() {
            let read = |done, of| report(Step::Reading { space: space.id.clone(), done, of });
            gallery.complete_space(&space, &read).await?;
        }
        gallery.apply_all(Index::fill).await?;
        for at in gallery.index.levels() {
            let (index, report) = (Arc::clone(&gallery.index), Arc::clone(&report));
            let seal = move || {
                index.seal_with(at, settings.build_threads, &|done, of| {
                    report(Step::Linking { at, done, of })
                });
            };
            tokio::task::spawn_blocking(seal).await.map_err(panicked)?;
        }
        gallery.try_save().await.map_err(RebuildError::Unwritten)?;
        Ok(gallery)
    }
}
