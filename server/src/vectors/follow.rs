//! Follows the catalog: applies its changes in batches, and fills in vectors that the engine lacks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Batch, Difference, EngineError, Put, ROWS_PER_READ, Removal, Vectors, differences};
use crate::catalog::{Change, StoredVector};
use crate::terms::{Collection, KeySet, SpaceInfo, SpanKey};

/// Shortest and longest wait between two looks at a shared engine that is behind; each wait is twice the last.
const LOOK_AFTER: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

/// Wait after a failure, and while another server writes to the engine.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// How far the engine follows the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaughtUp {
    /// The catalog's newest change.
    pub newest: i64,
    /// Number of changes that the engine still lacks.
    pub behind: u64,
}

/// What a step of the follower did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Applied,
    NoChange,
    /// Another server writes to the engine.
    OtherWrites,
}

impl Vectors {
    /// Applies all current changes of the catalog. Does nothing if another server writes to the engine.
    ///
    /// Continues even if the caller is dropped: a half-applied batch must not race with the next one.
    ///
    /// # Errors
    /// [`EngineError`] if the changes can't be read or applied.
    pub async fn catch_up(self: &Arc<Self>) -> Result<(), EngineError> {
        let vectors = Arc::clone(self);
        tokio::spawn(async move { vectors.apply_all().await }).await.map_err(panicked)?
    }

    /// Catches up after a commit, so that the next search need not. A failure is no fault of the commit: it is noted, and
    /// the follower tries again. A shared engine is left to the follower: it may be slow or away.
    pub async fn nudge(self: &Arc<Self>) {
        if self.writer.is_some() {
            return;
        }
        let done = self.catch_up().await;
        self.note(done.as_ref().err());
    }

    /// Waits until the engine has everything that is committed now, for at most `at_most`.
    ///
    /// In this process it applies the changes itself. A shared engine is left to the followers: searches would only compete
    /// for the right to write.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog can't be read or the engine does not answer.
    pub async fn catch_up_within(self: &Arc<Self>, at_most: Duration) -> Result<CaughtUp, EngineError> {
        let end = Instant::now() + at_most;
        let newest = self.catalog.last_seq().await?;
        let [mut wait, longest] = LOOK_AFTER;
        loop {
            let behind = newest - self.reach.ask(self.engine.applied()).await?;
            let left = end.saturating_duration_since(Instant::now());
            if behind <= 0 || left.is_zero() {
                return Ok(CaughtUp { newest, behind: u64::try_from(behind).unwrap_or(0) });
            }
            if self.writer.is_some() {
                tokio::time::sleep(wait.min(left)).await;
                wait = longest.min(wait * 2);
            } else if let Ok(done) = tokio::time::timeout(left, self.catch_up()).await {
                done?;
            }
        }
    }

    /// Applies changes as they come, until `closing`.
    pub async fn follow(self: Arc<Self>, closing: CancellationToken) {
        let mut is_compared = self.writer.is_none();
        while !closing.is_cancelled() {
            self.engine.ready().await;
            let vectors = Arc::clone(&self);
            // A task of its own: a batch is completed even when the server closes, as in `catch_up`.
            let stepped = tokio::spawn(async move { vectors.apply_some().await }).await;
            let stepped = stepped.map_err(panicked).flatten();
            self.note(stepped.as_ref().err());
            match stepped {
                Ok(Step::Applied) => continue,
                Ok(Step::NoChange) if !is_compared => {
                    let compared = self.complete().await;
                    self.note(compared.as_ref().err());
                    is_compared = compared.is_ok();
                    continue;
                }
                Ok(Step::NoChange) => {}
                Ok(Step::OtherWrites) | Err(_) => {
                    tokio::select! {
                        () = closing.cancelled() => {}
                        () = tokio::time::sleep(TRY_AGAIN_AFTER) => {}
                    }
                    continue;
                }
            }
            let seq = self.engine.applied().await.unwrap_or(i64::MAX);
            tokio::select! {
                () = closing.cancelled() => {}
                () = self.catalog.wait_for_change(seq, Duration::from_secs(2)) => {}
            }
        }
    }

    /// Applies all current changes of the catalog.
    pub(super) async fn apply_all(&self) -> Result<(), EngineError> {
        let newest = self.catalog.last_seq().await?;
        while self.engine.applied().await? < newest && self.apply_some().await? == Step::Applied {}
        Ok(())
    }

    /// Applies the next changes.
    pub(super) async fn apply_some(&self) -> Result<Step, EngineError> {
        let _one = self.applying.lock().await;
        let after = self.engine.applied().await?;
        // Cheap questions first: a server that may not write need not read the vectors.
        if let Some(writer) = &self.writer {
            if self.catalog.last_seq().await? <= after {
                return Ok(Step::NoChange);
            }
            if writer.fence(&self.catalog).await?.is_none() {
                return Ok(Step::OtherWrites);
            }
        }
        let changes = self.catalog.changes(after, ROWS_PER_READ as u32).await?;
        if changes.is_empty() {
            return Ok(Step::NoChange);
        }
        if self.writer.is_some() {
            self.know_spaces_of(&changes).await?;
        }
        let is_written = self.write(batch(changes, &self.spaces())).await?;
        Ok(if is_written { Step::Applied } else { Step::OtherWrites })
    }

    /// Applies a batch with this server's fencing number. Returns whether this server may write.
    pub(super) async fn write(&self, batch: Batch) -> Result<bool, EngineError> {
        let Some(writer) = &self.writer else {
            self.engine.apply(batch).await?;
            return Ok(true);
        };
        let Some(fence) = writer.fence(&self.catalog).await? else { return Ok(false) };
        match self.engine.apply(Batch { fence, ..batch }).await {
            Err(EngineError::StaleWriter { newest, .. }) => {
                writer.raise(&self.catalog, newest).await?;
                Ok(false)
            }
            applied => applied.map(|()| true),
        }
    }

    /// Declares the spaces of these changes. The writer to a shared engine also serves servers with other models.
    async fn know_spaces_of(&self, changes: &[Change]) -> Result<(), EngineError> {
        let known = self.spaces();
        if changes.iter().all(|change| known.iter().any(|space| space.key == change.space)) {
            return Ok(());
        }
        for row in self.catalog.spaces().await? {
            let space = row.expectation();
            if !known.contains(&space) && self.limits().most_values >= space.dim {
                self.engine.create(&space).await?;
                self.remember_space(space);
            }
        }
        Ok(())
    }

    /// Makes spaces equal to the catalog if the engine lost a part or holds another number of vectors.
    pub(super) async fn complete(&self) -> Result<(), EngineError> {
        let rows = self.catalog.spaces().await?;
        let status = self.engine.status().await?;
        for space in &self.spaces() {
            let stored = rows.iter().find(|row| row.key == space.key).map_or(0, |row| row.vectors);
            let is_lost = status.collections.iter().any(|held| held.lost);
            if is_lost || i64::try_from(status.live_in(space.key)).is_ok_and(|live| live != stored) {
                self.complete_space(space, &|_, _| ()).await?;
            }
        }
        Ok(())
    }

    /// Inserts the vectors that a space lacks, and removes those that the catalog lacks. `report` receives the number
    /// of vectors read and their total.
    pub(super) async fn complete_space(
        &self,
        space: &SpaceInfo,
        report: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), EngineError> {
        let differences = self.differences(space.key).await?;
        if differences.is_empty() {
            return Ok(());
        }
        let missing: u64 = differences.iter().map(|it| it.missing.len()).sum();
        let extra: u64 = differences.iter().map(|it| it.extra.len()).sum();
        tracing::info!(space = space.id, missing, extra, "making the index hold what the catalog has");
        let mut done = 0;
        for difference in differences {
            let keys = &difference.missing | &difference.extra;
            self.renew(difference.at, &keys, &|read| report(done + read, missing + extra)).await?;
            done += keys.len();
        }
        Ok(())
    }

    /// The differences of a space from the catalog.
    pub(super) async fn differences(&self, space: u32) -> Result<Vec<Difference>, EngineError> {
        let mut held = BTreeMap::new();
        let seq = {
            let _one = self.applying.lock().await;
            // Read before the keys: another server may write to a shared engine meanwhile.
            let seq = self.engine.applied().await?;
            let status = self.engine.status().await?;
            for at in status.collections.iter().map(|held| held.at).filter(|at| at.space == space) {
                held.insert(at.level, self.engine.keys(at, SpanKey::ALL).await?);
            }
            seq
        };
        Ok(differences(&self.catalog, space, &held, seq).await?)
    }

    /// Inserts the vectors of some keys from the catalog, and removes keys without one. `report` receives the number of
    /// finished keys.
    async fn renew(
        &self,
        at: Collection,
        keys: &KeySet,
        report: &(dyn Fn(u64) + Sync),
    ) -> Result<(), EngineError> {
        let dim = self.spaces().iter().find(|space| space.key == at.space).map(|space| space.dim);
        let mut keys = keys.iter();
        let mut done = 0;
        loop {
            let some: Vec<SpanKey> = keys.by_ref().take(ROWS_PER_READ).collect();
            if some.is_empty() {
                return Ok(());
            }
            done += some.len() as u64;
            // The lock keeps deletes out between reading and inserting, because an insert would undo them. Vectors
            // deleted before are not read; later deletes are applied afterwards.
            let _one = self.applying.lock().await;
            let stored = self.catalog.vectors_of(at.space, &some).await?;
            let stored = stored.into_iter().filter(|it| it.level == at.level);
            let put: Vec<Put> = stored.filter_map(|it| put(at, it, dim)).collect();
            let mut gone = KeySet::from_iter(some);
            put.iter().for_each(|it| {
                gone.remove(it.key);
            });
            let remove = gone.iter().map(|key| Removal { at, key }).collect();
            if !self.write(Batch { put, remove, ..Batch::default() }).await? {
                return Ok(());
            }
            report(done);
        }
    }
}

/// The changes of these spaces as one batch. All changes of a key carry its current vector, so the last one suffices.
fn batch(changes: Vec<Change>, spaces: &[SpaceInfo]) -> Batch {
    let seq = changes.last().map(|change| change.seq);
    let mut last: HashMap<(Collection, SpanKey), usize> = HashMap::new();
    for (number, change) in changes.iter().enumerate() {
        last.insert((place(change), change.span), number);
    }
    let mut batch = Batch { seq, ..Batch::default() };
    for (number, change) in changes.into_iter().enumerate() {
        let (at, key) = (place(&change), change.span);
        let Some(space) = spaces.iter().find(|space| space.key == at.space) else { continue };
        if last.get(&(at, key)) != Some(&number) {
            continue;
        }
        match change.vector.and_then(|stored| put(at, stored, Some(space.dim))) {
            Some(put) => batch.put.push(put),
            None => batch.remove.push(Removal { at, key }),
        }
    }
    batch
}

fn place(change: &Change) -> Collection {
    Collection { space: change.space, level: change.level }
}

/// `None`, with a log line, for a vector of the wrong length. An error would block all later batches.
fn put(at: Collection, stored: StoredVector, dim: Option<usize>) -> Option<Put> {
    let got = stored.unit.values().len();
    if dim.is_some_and(|expected| expected != got) {
        tracing::error!(space = at.space, span = %stored.span, got, "a stored vector can't be searched: it is of another length");
        return None;
    }
    Some(Put { at, key: stored.span, video: stored.video, unit: stored.unit })
}

pub(super) fn panicked(panic: tokio::task::JoinError) -> EngineError {
    EngineError::Failed(Box::new(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::{Level, UnitVector, VideoNumber};

    const SPACE: u32 = 3;

    /// `changes` are (span, whether it has a vector). Checks the keys that the batch puts and removes.
    #[track_caller]
    fn check(changes: &[(u64, bool)], put: &[u64], removed: &[u64]) {
        let change = |(number, (span, is_there)): (i64, &(u64, bool))| {
            let (span, level) = (SpanKey::new(*span), Level::Clip);
            let unit = UnitVector::from_raw(&[1.0, 2.0]).unwrap().0;
            let stored = StoredVector { span, level, video: VideoNumber::new(1), unit };
            Change { seq: number, span, space: SPACE, level, vector: is_there.then_some(stored) }
        };
        let changes: Vec<Change> = (1..).zip(changes).map(change).collect();
        let spaces = [SpaceInfo { key: SPACE, id: "a".to_owned(), dim: 2 }];
        let count = changes.len() as i64;
        let batch = batch(changes, &spaces);
        assert_eq!(batch.put.iter().map(|it| it.key.number()).collect::<Vec<_>>(), put);
        assert_eq!(batch.remove.iter().map(|it| it.key.number()).collect::<Vec<_>>(), removed);
        assert_eq!(batch.seq, Some(count));
    }

    #[test]
    fn the_last_change_of_a_key_decides() {
        check(&[(1, true), (2, false), (3, true)], &[1, 3], &[2]);
        check(&[(1, false), (2, true), (1, false)], &[2], &[1]);
        check(&[(5, true), (5, true)], &[5], &[]);
    }

    #[test]
    fn a_vector_of_another_length_and_a_space_without_a_model_are_left_out() {
        let unit = UnitVector::from_raw(&[1.0, 2.0]).unwrap().0;
        let stored = |space| Change {
            seq: 9,
            span: SpanKey::new(4),
            space,
            level: Level::Clip,
            vector: Some(StoredVector {
                span: SpanKey::new(4),
                level: Level::Clip,
                video: VideoNumber::new(1),
                unit: unit.clone(),
            }),
        };
        let spaces = [SpaceInfo { key: SPACE, id: "a".to_owned(), dim: 3 }];
        let wide = batch(vec![stored(SPACE)], &spaces);
        assert_eq!((wide.put.len(), wide.remove.len(), wide.seq), (0, 1, Some(9)));
        let strange = batch(vec![stored(SPACE + 1)], &spaces);
        assert_eq!((strange.put.len(), strange.remove.len(), strange.seq), (0, 0, Some(9)));
    }
}
