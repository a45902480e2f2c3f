//! The index as a cache of the catalog: loaded from a snapshot or rebuilt, kept up by following
//! `changes`, snapshotted now and then.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reprise_index::{Index, SpaceExpectation, SpaceLevel};
use tokio::sync::Mutex;

use crate::catalog::{Catalog, CatalogError, Change};

/// Changes applied per read of the catalog.
const CHANGES_PER_READ: u32 = 2_000;
/// A snapshot is written after this many changes.
const CHANGES_PER_SNAPSHOT: i64 = 20_000;

/// The searched vectors, and how far they are.
pub struct Gallery {
    index: Arc<Index>,
    catalog: Arc<dyn Catalog>,
    folder: PathBuf,
    spaces: Vec<SpaceExpectation>,
    /// The newest change that the index holds.
    applied: AtomicI64,
    saved: AtomicI64,
    /// Changes are applied by one task at a time.
    applying: Mutex<()>,
}

impl Gallery {
    /// Loads the snapshot in `folder`, or rebuilds from the catalog where there is none or it is refused,
    /// and applies what came after.
    ///
    /// # Errors
    /// [`CatalogError`] only; a bad snapshot is logged and replaced.
    pub async fn open(
        folder: PathBuf,
        catalog: Arc<dyn Catalog>,
        spaces: Vec<SpaceExpectation>,
    ) -> Result<Gallery, CatalogError> {
        let (index, seq) = match load(folder.clone(), spaces.clone()).await {
            Some(loaded) => loaded,
            None => rebuild(&*catalog, &spaces).await?,
        };
        let gallery = Gallery {
            index: Arc::new(index),
            catalog,
            folder,
            spaces,
            applied: AtomicI64::new(seq),
            saved: AtomicI64::new(seq),
            applying: Mutex::new(()),
        };
        gallery.catch_up().await?;
        Ok(gallery)
    }

    /// The index.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The newest change that the index holds.
    pub fn applied(&self) -> i64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Applies all changes that the catalog has now.
    ///
    /// # Errors
    /// [`CatalogError`] if the changes can't be read; what was read is applied.
    pub async fn catch_up(&self) -> Result<(), CatalogError> {
        let _one = self.applying.lock().await;
        loop {
            let changes = self.catalog.changes(self.applied(), CHANGES_PER_READ).await?;
            let Some(last) = changes.last().map(|change| change.seq) else { return Ok(()) };
            let index = Arc::clone(&self.index);
            let known: Vec<u32> = self.spaces.iter().map(|space| space.key).collect();
            let applied = tokio::task::spawn_blocking(move || apply(&index, &known, changes)).await;
            applied
                .map_err(|panic| CatalogError::Damaged(format!("a change could not be applied: {panic}")))?;
            self.applied.store(last, Ordering::Release);
        }
    }

    /// Catches up if the catalog is ahead, waiting no longer than `at_most`: a searcher sees what was
    /// committed before it asked, unless a flood of changes is being applied.
    ///
    /// # Errors
    /// [`CatalogError`] if the catalog does not answer.
    pub async fn catch_up_within(self: &Arc<Self>, at_most: Duration) -> Result<(), CatalogError> {
        if self.catalog.last_seq().await? <= self.applied() {
            return Ok(());
        }
        // A task of its own: a caller who stops waiting must not leave changes half applied.
        let gallery = Arc::clone(self);
        let catching_up = tokio::spawn(async move { gallery.catch_up().await });
        match tokio::time::timeout(at_most, catching_up).await {
            Ok(Ok(caught_up)) => caught_up,
            Ok(Err(panic)) => Err(CatalogError::Damaged(panic.to_string())),
            Err(_still_running) => Ok(()),
        }
    }

    /// Follows the catalog until the task is aborted.
    pub async fn follow(self: Arc<Self>) {
        loop {
            if let Err(error) = self.catch_up().await {
                tracing::warn!(%error, "the index can't follow the catalog; trying again");
            }
            if self.applied() - self.saved.load(Ordering::Acquire) >= CHANGES_PER_SNAPSHOT {
                self.save().await;
            }
            self.catalog.wait_for_change(self.applied(), Duration::from_secs(2)).await;
        }
    }

    /// Writes a snapshot if something changed since the last one; a failure is logged, for the catalog
    /// holds everything.
    pub async fn save(&self) {
        let one = self.applying.lock().await;
        let seq = self.applied();
        if seq == self.saved.load(Ordering::Acquire) && self.folder.exists() {
            return;
        }
        let (index, folder) = (Arc::clone(&self.index), self.folder.clone());
        let saved = tokio::task::spawn_blocking(move || index.save(&folder, seq.unsigned_abs())).await;
        drop(one);
        match saved {
            Ok(Ok(())) => self.saved.store(seq, Ordering::Release),
            Ok(Err(error)) => tracing::warn!(%error, "the index snapshot could not be written"),
            Err(panic) => tracing::warn!(%panic, "the index snapshot could not be written"),
        }
    }
}

async fn load(folder: PathBuf, spaces: Vec<SpaceExpectation>) -> Option<(Index, i64)> {
    if !folder.exists() {
        return None;
    }
    let loaded = tokio::task::spawn_blocking(move || Index::load(&folder, &spaces)).await;
    match loaded {
        Ok(Ok((index, seq))) => Some((index, i64::try_from(seq).unwrap_or(i64::MAX))),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the index snapshot is refused; rebuilding from the catalog");
            None
        }
        Err(panic) => {
            tracing::warn!(%panic, "the index snapshot is refused; rebuilding from the catalog");
            None
        }
    }
}

/// A new index with all vectors of `spaces`. The seq is read first: a change that comes while vectors are
/// read is applied again later, which changes nothing.
async fn rebuild(catalog: &dyn Catalog, spaces: &[SpaceExpectation]) -> Result<(Index, i64), CatalogError> {
    let seq = catalog.last_seq().await?;
    let index = Arc::new(Index::new());
    for space in spaces {
        index.declare(space).map_err(|error| CatalogError::Damaged(error.to_string()))?;
        let mut after = None;
        loop {
            let vectors = catalog.vectors(space.key, after, CHANGES_PER_READ).await?;
            let Some(last) = vectors.last().map(|vector| vector.span) else { break };
            after = Some(last);
            let (index, key) = (Arc::clone(&index), space.key);
            let inserted = tokio::task::spawn_blocking(move || {
                for vector in vectors {
                    insert(&index, SpaceLevel { space: key, level: vector.level }, vector.span, &vector.unit);
                }
            });
            inserted.await.map_err(|panic| CatalogError::Damaged(panic.to_string()))?;
        }
    }
    let index =
        Arc::try_unwrap(index).map_err(|_| CatalogError::Damaged("the index is still in use".into()))?;
    Ok((index, seq))
}

fn apply(index: &Index, known: &[u32], changes: Vec<Change>) {
    for change in changes.into_iter().filter(|change| known.contains(&change.space)) {
        let at = SpaceLevel { space: change.space, level: change.level };
        match change.vector {
            Some(vector) => insert(index, at, change.span, &vector),
            None => index.remove(at, change.span),
        }
    }
}

fn insert(index: &Index, at: SpaceLevel, key: u32, vector: &reprise_index::UnitVector) {
    if let Err(error) = index.insert(at, key, vector) {
        tracing::error!(%error, span = key, "a stored vector can't be searched");
    }
}
