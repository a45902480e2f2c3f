//! The index as a cache of the catalog: loaded from a snapshot or filled, kept up by following `changes`, snapshotted now
//! and then.

mod check;
mod difference;
mod mend;
mod read;
mod rebuild;
mod snapshots;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use reprise_index::snapshot::Loaded;
use reprise_index::{Index, IndexError, Settings, SpaceExpectation, SpaceLevel, SpanKey, UnitVector};
use roaring::RoaringBitmap;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, CatalogError, Change};

pub use check::{CheckSettings, Checked};
pub use difference::{Difference, differences};
pub use read::GalleryError;
pub use rebuild::{RebuildError, Step};

use check::Checks;
use mend::Damage;
use snapshots::{Mark, Snapshots};

/// Changes, and vectors, that are read from the catalog at once.
const ROWS_PER_READ: usize = 2_000;

/// The searched vectors, and how far they are.
pub struct Gallery {
    index: Arc<Index>,
    catalog: Arc<dyn Catalog>,
    folder: PathBuf,
    /// Those whose vectors it holds.
    spaces: RwLock<Vec<SpaceExpectation>>,
    /// The newest change that the index holds.
    applied: AtomicI64,
    snapshots: Lock<Snapshots>,
    /// Changes are applied by one task at a time.
    applying: Mutex<()>,
    /// Held while a snapshot is written, and while a space is declared: a snapshot that is half written would not list it.
    /// Changes are applied meanwhile: those that get into the snapshot are applied again by who loads it.
    saving: Mutex<()>,
    /// Held by who fills in what the index lacks, and by who compares it with the catalog.
    filling: Mutex<()>,
    damage: Damage,
    checks: RwLock<Checks>,
    /// Where threads that search wait for the catalog.
    runtime: Handle,
}

impl Gallery {
    /// Loads the snapshot in `folder`, applies what came after, and reads from the catalog what the index then lacks: what
    /// was damaged, spaces that the snapshot didn't hold, everything where there is no snapshot or it is refused. Waits
    /// for no seal; the vectors of large snapshots are verified later, by [`Gallery::verify`].
    ///
    /// # Errors
    /// [`CatalogError`] only; a bad snapshot is logged and replaced.
    pub async fn open(
        folder: PathBuf,
        catalog: Arc<dyn Catalog>,
        spaces: Vec<SpaceExpectation>,
        settings: Settings,
    ) -> Result<Gallery, CatalogError> {
        let newest = catalog.last_seq().await?;
        let loaded = load(folder.clone(), spaces.clone(), settings, newest).await;
        let is_whole = loaded.as_ref().is_some_and(|loaded| loaded.is_whole);
        let gallery = match loaded {
            Some(Snapshot { index, seq, .. }) => {
                let gallery = Gallery::new(index, folder, catalog, spaces, seq);
                gallery.snapshots().are_as(gallery.mark());
                gallery
            }
            // The seq was read first: a change that comes while vectors are read is applied again later,
            // which changes nothing.
            None => Gallery::new(empty(&folder, &spaces, settings)?, folder, catalog, spaces, newest),
        };
        gallery.apply_all(Index::fill).await?;
        gallery.complete(is_whole).await?;
        gallery.apply_all(Index::fill).await?;
        gallery.index.seal_what_is_due();
        Ok(gallery)
    }

    fn new(
        index: Index,
        folder: PathBuf,
        catalog: Arc<dyn Catalog>,
        spaces: Vec<SpaceExpectation>,
        applied: i64,
    ) -> Gallery {
        let snapshots = Snapshots::new(Mark { seq: applied, generation: index.generation() });
        Gallery {
            index: Arc::new(index),
            catalog,
            folder,
            spaces: RwLock::new(spaces),
            applied: AtomicI64::new(applied),
            snapshots: Lock::new(snapshots),
            applying: Mutex::new(()),
            saving: Mutex::new(()),
            filling: Mutex::new(()),
            damage: Damage::default(),
            checks: RwLock::default(),
            runtime: Handle::current(),
        }
    }

    /// The index. Its searches leave out what can't be read: [`Gallery::search`] doesn't.
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
        let _filling = self.filling.lock().await;
        {
            let _nobody_saves = self.saving.lock().await;
            let _one = self.applying.lock().await;
            declare(&self.index, &space)?;
            let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
            spaces.retain(|known| known.key != space.key);
            spaces.push(space.clone());
            // The snapshot does not know the space.
            self.snapshots().are_outdated();
        }
        self.complete_space(&space, &|_, _| ()).await?;
        self.index.seal_what_is_due();
        Ok(())
    }

    fn spaces(&self) -> Vec<SpaceExpectation> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn snapshots(&self) -> MutexGuard<'_, Snapshots> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> Mark {
        Mark { seq: self.applied(), generation: self.index.generation() }
    }

    /// Applies all changes that the catalog has now.
    ///
    /// Goes on if the caller stops waiting: what is half applied must not race with the next one who applies.
    ///
    /// # Errors
    /// [`CatalogError`] if the changes can't be read; what was read is applied.
    pub async fn catch_up(self: &Arc<Self>) -> Result<(), CatalogError> {
        let gallery = Arc::clone(self);
        let caught_up = async move {
            gallery.apply_all(Index::fill).await?;
            gallery.index.seal_what_is_due();
            Ok(())
        };
        tokio::spawn(caught_up).await.map_err(panicked)?
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
            let gallery = Arc::clone(&self);
            // Goes on if the server closes: what is half applied must not race with the next one who applies.
            let applied = tokio::spawn(async move { gallery.apply_some(Index::insert).await }).await;
            let is_more = applied.map_err(panicked).flatten().unwrap_or_else(|error| {
                tracing::warn!(%error, "the index can't follow the catalog; trying again");
                false
            });
            let is_due = self.snapshots().is_due(self.mark());
            if is_due {
                self.save().await;
            }
            if is_more {
                continue;
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
        if let Err(error) = self.try_save().await {
            tracing::warn!(error, "the index snapshot could not be written");
        }
    }

    async fn try_save(&self) -> Result<(), String> {
        let _one = self.saving.lock().await;
        let now = self.mark();
        if !self.snapshots().begin(now) {
            return Ok(());
        }
        let (index, folder) = (Arc::clone(&self.index), self.folder.clone());
        let saved = tokio::task::spawn_blocking(move || index.save(&folder, now.seq.unsigned_abs())).await;
        saved.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())?;
        self.snapshots().finish();
        Ok(())
    }

    /// Applies all changes that the catalog has now.
    async fn apply_all(&self, insert: Insert) -> Result<(), CatalogError> {
        let newest = self.catalog.last_seq().await?;
        while self.applied() < newest && self.apply_some(insert).await? {}
        Ok(())
    }

    /// Applies the next changes; whether there were any. [`Index::insert`] waits for seals where they are many: for who
    /// follows, but for nobody that a client waits for, who takes turns with it and does it by [`Index::fill`].
    async fn apply_some(&self, insert: Insert) -> Result<bool, CatalogError> {
        let _one = self.applying.lock().await;
        let changes = self.catalog.changes(self.applied(), ROWS_PER_READ as u32).await?;
        let Some(last) = changes.last().map(|change| change.seq) else { return Ok(false) };
        let index = Arc::clone(&self.index);
        let known: Vec<u32> = self.spaces().iter().map(|space| space.key).collect();
        tokio::task::spawn_blocking(move || apply(&index, &known, changes, insert))
            .await
            .map_err(panicked)?;
        self.applied.store(last, Ordering::Release);
        Ok(true)
    }

    /// Makes the spaces hold what the catalog has: those that the snapshot did not know (a server without their model
    /// wrote it) or holds another number of, or all if it isn't whole.
    async fn complete(&self, is_whole: bool) -> Result<(), CatalogError> {
        let rows = self.catalog.spaces().await?;
        for space in &self.spaces() {
            let stored = rows.iter().find(|row| row.key == space.key).map_or(0, |row| row.vectors);
            if !is_whole || i64::try_from(self.live(space.key)).is_ok_and(|live| live != stored) {
                self.complete_space(space, &|_, _| ()).await?;
            }
        }
        Ok(())
    }

    fn live(&self, space: u32) -> u64 {
        let levels = self.index.levels().into_iter().filter(|at| at.space == space);
        levels.map(|at| self.index.live(at)).sum()
    }

    /// Reads what a space lacks, and removes what the catalog hasn't. `report` hears how many vectors are read, of how
    /// many.
    async fn complete_space(
        &self,
        space: &SpaceExpectation,
        report: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), CatalogError> {
        let differences = self.differences(space.key).await?;
        if differences.is_empty() {
            return Ok(());
        }
        let missing: u64 = differences.iter().map(|it| it.missing.len()).sum();
        let extra: u64 = differences.iter().map(|it| it.extra.len()).sum();
        tracing::info!(space = space.id, missing, extra, "making the index hold what the catalog has");
        self.snapshots().are_outdated();
        let mut done = 0;
        for difference in differences {
            let keys = &difference.missing | &difference.extra;
            self.renew(difference.at, &keys, &|read| report(done + read, missing + extra)).await?;
            done += keys.len();
        }
        Ok(())
    }

    /// How a space differs from the catalog.
    async fn differences(&self, space: u32) -> Result<Vec<Difference>, CatalogError> {
        let (held, seq) = {
            let _one = self.applying.lock().await;
            let levels = self.index.levels().into_iter().filter(|at| at.space == space);
            (levels.map(|at| (at.level, self.index.keys(at))).collect(), self.applied())
        };
        differences(&*self.catalog, space, &held, seq).await
    }

    /// Reads the vectors of some keys from the catalog; those that the catalog hasn't are removed. `report` hears how many
    /// keys are done.
    async fn renew(
        &self,
        at: SpaceLevel,
        keys: &RoaringBitmap,
        report: &(dyn Fn(u64) + Sync),
    ) -> Result<(), CatalogError> {
        let mut keys = keys.iter();
        let mut done = 0;
        loop {
            let some: Vec<u32> = keys.by_ref().take(ROWS_PER_READ).collect();
            if some.is_empty() {
                return Ok(());
            }
            done += some.len() as u64;
            // Between reading and inserting no delete may be applied: it would come back. What is deleted before is not
            // read, what is deleted after is applied after.
            let _one = self.applying.lock().await;
            let vectors = self.catalog.vectors_of(at.space, &some).await?;
            let index = Arc::clone(&self.index);
            let put_all = move || {
                let mut gone = RoaringBitmap::from_iter(some);
                for vector in vectors.iter().filter(|vector| vector.level == at.level) {
                    gone.remove(vector.span);
                    report_refused(index.fill(at, vector.span, &vector.unit), vector.span);
                }
                gone.iter().for_each(|key| index.remove(at, key));
            };
            tokio::task::spawn_blocking(put_all).await.map_err(panicked)?;
            report(done);
        }
    }
}

/// An index from a snapshot.
struct Snapshot {
    index: Index,
    /// The change that it is at.
    seq: i64,
    /// Whether nothing of it was damaged.
    is_whole: bool,
}

/// The snapshot; `None` if it can't be used.
async fn load(
    folder: PathBuf,
    spaces: Vec<SpaceExpectation>,
    settings: Settings,
    newest: i64,
) -> Option<Snapshot> {
    if !folder.exists() {
        return None;
    }
    let refused = |why: &dyn std::fmt::Display| {
        tracing::warn!(%why, "the index snapshot is refused; rebuilding from the catalog");
        None
    };
    match tokio::task::spawn_blocking(move || Index::load(&folder, &spaces, settings)).await {
        Ok(Ok(Loaded { index, seq, left_out })) => match i64::try_from(seq) {
            Ok(seq) if seq <= newest => {
                for error in &left_out {
                    tracing::warn!(%error, "a part of the index is read from the catalog instead");
                }
                tracing::info!(seq, "the index snapshot is loaded");
                Some(Snapshot { index, seq, is_whole: left_out.is_empty() })
            }
            _ => {
                refused(&format!("it is at change {seq}, the catalog at {newest}: it is of another catalog"))
            }
        },
        Ok(Err(error)) => refused(&error),
        Err(panic) => refused(&panic),
    }
}

fn empty(folder: &Path, spaces: &[SpaceExpectation], settings: Settings) -> Result<Index, CatalogError> {
    let index = Index::in_folder(folder, settings);
    spaces.iter().try_for_each(|space| declare(&index, space))?;
    Ok(index)
}

fn declare(index: &Index, space: &SpaceExpectation) -> Result<(), CatalogError> {
    index.declare(space).map_err(|error| CatalogError::Damaged(error.to_string()))
}

fn panicked(panic: tokio::task::JoinError) -> CatalogError {
    CatalogError::Damaged(format!("a change could not be applied: {panic}"))
}

/// How the index takes a vector.
type Insert = fn(&Index, SpaceLevel, SpanKey, &UnitVector) -> Result<(), IndexError>;

fn apply(index: &Index, known: &[u32], changes: Vec<Change>, insert: Insert) {
    for change in changes.into_iter().filter(|change| known.contains(&change.space)) {
        let at = SpaceLevel { space: change.space, level: change.level };
        match change.vector {
            Some(vector) => report_refused(insert(index, at, change.span, &vector), change.span),
            None => index.remove(at, change.span),
        }
    }
}

fn report_refused(inserted: Result<(), IndexError>, key: u32) {
    if let Err(error) = inserted {
        tracing::error!(%error, span = key, "a stored vector can't be searched");
    }
}
