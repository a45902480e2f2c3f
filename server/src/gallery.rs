//! The index as a cache of the catalog: loaded from a snapshot or rebuilt, kept up by following
//! `changes`, snapshotted now and then.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reprise_index::snapshot::Loaded;
use reprise_index::{Index, IndexError, Settings, SpaceExpectation, SpaceLevel};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, CatalogError, Change};

/// Changes applied per read of the catalog.
const CHANGES_PER_READ: u32 = 2_000;
/// A snapshot is written after this many changes.
const CHANGES_PER_SNAPSHOT: i64 = 20_000;
/// Where there is no snapshot that is worth keeping.
const NEVER_SAVED: i64 = -1;

/// The searched vectors, and how far they are.
pub struct Gallery {
    index: Arc<Index>,
    catalog: Arc<dyn Catalog>,
    folder: PathBuf,
    /// Those whose vectors it holds.
    spaces: RwLock<Vec<SpaceExpectation>>,
    /// The newest change that the index holds.
    applied: AtomicI64,
    saved: AtomicI64,
    /// Changes are applied by one task at a time.
    applying: Mutex<()>,
}

impl Gallery {
    /// Loads the snapshot in `folder`, applies what came after, and fills anew from the catalog each space of
    /// which the index then holds another number of vectors: all of them where there is no snapshot or it is
    /// refused.
    ///
    /// # Errors
    /// [`CatalogError`] only; a bad snapshot is logged and replaced.
    pub async fn open(
        folder: PathBuf,
        catalog: Arc<dyn Catalog>,
        spaces: Vec<SpaceExpectation>,
    ) -> Result<Gallery, CatalogError> {
        let newest = catalog.last_seq().await?;
        let (index, applied, saved) = match load(folder.clone(), spaces.clone(), newest).await {
            Some((index, seq)) => (index, seq, seq),
            // The seq was read first: a change that comes while vectors are read is applied again later,
            // which changes nothing.
            None => (empty(&folder, &spaces)?, newest, NEVER_SAVED),
        };
        let gallery = Gallery {
            index: Arc::new(index),
            catalog,
            folder,
            spaces: RwLock::new(spaces),
            applied: AtomicI64::new(applied),
            saved: AtomicI64::new(saved),
            applying: Mutex::new(()),
        };
        gallery.apply_all().await?;
        gallery.complete().await?;
        gallery.apply_all().await?;
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

    /// Holds the vectors of one more space from now on: those that the catalog has already, and what changes.
    ///
    /// # Errors
    /// [`CatalogError`] if the catalog can't be read; the space is held then as far as it was read, and the next start
    /// reads the rest.
    pub async fn add(&self, space: SpaceExpectation) -> Result<(), CatalogError> {
        {
            let _one = self.applying.lock().await;
            declare(&self.index, &space)?;
            let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
            spaces.retain(|known| known.key != space.key);
            spaces.push(space.clone());
            // The snapshot does not know the space.
            self.saved.store(NEVER_SAVED, Ordering::Release);
        }
        self.fill(space.key).await
    }

    fn spaces(&self) -> Vec<SpaceExpectation> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies all changes that the catalog has now.
    ///
    /// Goes on if the caller stops waiting: what is half applied must not race with the next one who applies.
    ///
    /// # Errors
    /// [`CatalogError`] if the changes can't be read; what was read is applied.
    pub async fn catch_up(self: &Arc<Self>) -> Result<(), CatalogError> {
        let gallery = Arc::clone(self);
        tokio::spawn(async move { gallery.apply_all().await }).await.map_err(panicked)?
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
        let still_running = |_| Ok(());
        tokio::time::timeout(at_most, self.catch_up()).await.unwrap_or_else(still_running)
    }

    /// Follows the catalog until `closing`.
    pub async fn follow(self: Arc<Self>, closing: CancellationToken) {
        while !closing.is_cancelled() {
            if let Err(error) = self.catch_up().await {
                tracing::warn!(%error, "the index can't follow the catalog; trying again");
            }
            if self.applied() - self.saved.load(Ordering::Acquire) >= CHANGES_PER_SNAPSHOT {
                self.save().await;
            }
            tokio::select! {
                () = closing.cancelled() => {}
                () = self.catalog.wait_for_change(self.applied(), Duration::from_secs(2)) => {}
            }
        }
    }

    /// Writes a snapshot if something changed since the last one; a failure is logged, for the catalog
    /// holds everything.
    pub async fn save(&self) {
        let one = self.applying.lock().await;
        let seq = self.applied();
        if seq == self.saved.load(Ordering::Acquire) {
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

    async fn apply_all(&self) -> Result<(), CatalogError> {
        let _one = self.applying.lock().await;
        loop {
            let changes = self.catalog.changes(self.applied(), CHANGES_PER_READ).await?;
            let Some(last) = changes.last().map(|change| change.seq) else { return Ok(()) };
            let index = Arc::clone(&self.index);
            let known: Vec<u32> = self.spaces().iter().map(|space| space.key).collect();
            tokio::task::spawn_blocking(move || apply(&index, &known, changes)).await.map_err(panicked)?;
            self.applied.store(last, Ordering::Release);
        }
    }

    /// Fills anew the spaces that don't hold as many vectors as the catalog has: those that the snapshot did
    /// not know (a server without their model wrote it), or all if it was made from another catalog.
    async fn complete(&self) -> Result<(), CatalogError> {
        let rows = self.catalog.spaces().await?;
        for space in &self.spaces() {
            let stored = rows.iter().find(|row| row.key == space.key).map_or(0, |row| row.vectors);
            if i64::try_from(self.live(space.key)).is_ok_and(|live| live == stored) {
                continue;
            }
            tracing::info!(space = space.id, vectors = stored, "reading vectors from the catalog");
            self.index.forget(space.key);
            declare(&self.index, space)?;
            self.saved.store(NEVER_SAVED, Ordering::Release);
            self.fill(space.key).await?;
        }
        Ok(())
    }

    fn live(&self, space: u32) -> u64 {
        let levels = self.index.levels().into_iter().filter(|at| at.space == space);
        levels.map(|at| self.index.live(at)).sum()
    }

    async fn fill(&self, space: u32) -> Result<(), CatalogError> {
        let mut after = None;
        loop {
            // Between reading and inserting no delete may be applied: it would come back. What is deleted before is not
            // read, what is deleted after is applied after.
            let _one = self.applying.lock().await;
            let vectors = self.catalog.vectors(space, after, CHANGES_PER_READ).await?;
            let Some(last) = vectors.last().map(|vector| vector.span) else {
                self.index.seal_what_is_due();
                return Ok(());
            };
            after = Some(last);
            let index = Arc::clone(&self.index);
            let insert_all = move || {
                for vector in vectors {
                    let at = SpaceLevel { space, level: vector.level };
                    report(index.fill(at, vector.span, &vector.unit), vector.span);
                }
            };
            tokio::task::spawn_blocking(insert_all).await.map_err(panicked)?;
        }
    }
}

/// The snapshot and the change that it is at; `None` if it can't be used.
async fn load(folder: PathBuf, spaces: Vec<SpaceExpectation>, newest: i64) -> Option<(Index, i64)> {
    if !folder.exists() {
        return None;
    }
    let refused = |why: &dyn std::fmt::Display| {
        tracing::warn!(%why, "the index snapshot is refused; rebuilding from the catalog");
        None
    };
    match tokio::task::spawn_blocking(move || Index::load(&folder, &spaces, Settings::default())).await {
        Ok(Ok(Loaded { index, seq, left_out })) => match i64::try_from(seq) {
            Ok(seq) if seq <= newest => {
                for error in left_out {
                    tracing::warn!(%error, "a part of the index is read from the catalog instead");
                }
                tracing::info!(seq, "the index snapshot is loaded");
                Some((index, seq))
            }
            _ => {
                refused(&format!("it is at change {seq}, the catalog at {newest}: it is of another catalog"))
            }
        },
        Ok(Err(error)) => refused(&error),
        Err(panic) => refused(&panic),
    }
}

fn empty(folder: &Path, spaces: &[SpaceExpectation]) -> Result<Index, CatalogError> {
    let index = Index::in_folder(folder, Settings::default());
    spaces.iter().try_for_each(|space| declare(&index, space))?;
    Ok(index)
}

fn declare(index: &Index, space: &SpaceExpectation) -> Result<(), CatalogError> {
    index.declare(space).map_err(|error| CatalogError::Damaged(error.to_string()))
}

fn panicked(panic: tokio::task::JoinError) -> CatalogError {
    CatalogError::Damaged(format!("a change could not be applied: {panic}"))
}

fn apply(index: &Index, known: &[u32], changes: Vec<Change>) {
    for change in changes.into_iter().filter(|change| known.contains(&change.space)) {
        let at = SpaceLevel { space: change.space, level: change.level };
        match change.vector {
            Some(vector) => report(index.insert(at, change.span, &vector), change.span),
            None => index.remove(at, change.span),
        }
    }
}

fn report(inserted: Result<(), IndexError>, key: u32) {
    if let Err(error) = inserted {
        tracing::error!(%error, span = key, "a stored vector can't be searched");
    }
}
