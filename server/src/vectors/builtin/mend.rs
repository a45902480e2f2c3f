//! Repairs unreadable vectors of the index's files: finds them, reads them from the catalog, inserts them again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Builtin, EngineError, ROWS_PER_READ, failed};
use crate::telemetry::names;
use crate::terms::{Collection, KeySet, SpanKey};

/// Keys of unreadable vectors, until they are repaired.
#[derive(Default)]
pub(super) struct Damage {
    keys: Mutex<BTreeMap<Collection, KeySet>>,
    found: Notify,
}

impl Damage {
    /// Requests the repair of these keys. Repeated requests have no effect until then.
    pub(super) fn report(&self, at: Collection, keys: &[SpanKey]) {
        let is_news = {
            let mut known = self.keys();
            let known = known.entry(at).or_default();
            let before = known.len();
            known.extend(keys.iter().copied());
            before < known.len()
        };
        if is_news {
            self.found.notify_one();
        }
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<Collection, KeySet>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Builtin {
    /// Reads all parts of the index's files that no search has read yet, and requests the repair of damaged ones. Does
    /// not delay `closing`: it may read gigabytes, and it changes nothing.
    pub(super) async fn verify_until(&self, closing: &CancellationToken) {
        let started = Instant::now();
        let index = Arc::clone(&self.index);
        let verified = tokio::task::spawn_blocking(move || index.verify());
        let verified = tokio::select! {
            () = closing.cancelled() => return,
            verified = verified => verified,
        };
        let damaged = match verified {
            Ok(damaged) => damaged,
            Err(panic) => return tracing::warn!(%panic, "the index's files could not be verified"),
        };
        let seconds = started.elapsed().as_secs_f64();
        metrics::gauge!(names::INDEX_VERIFY_SECONDS.name).set(seconds);
        tracing::info!(
            seconds,
            damaged = damaged.len(),
            "the index's files are read and compared with their checksums"
        );
        for (at, keys) in damaged {
            let keys: Vec<SpanKey> = keys.into_iter().map(SpanKey::new).collect();
            self.damage.report(at, &keys);
        }
    }

    /// Repairs reported damage until `closing`.
    pub(super) async fn mend_until(&self, closing: &CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.damage.found.notified() => {}
            }
            if let Err(error) = self.mend().await {
                tracing::warn!(%error, "what is damaged of the index can't be read from the catalog now");
                // The next search that finds the damage requests the repair again.
                self.damage.keys().clear();
            }
        }
    }

    async fn mend(&self) -> Result<(), EngineError> {
        // The keys stay known meanwhile, so that searches request nothing more.
        let damaged = self.damage.keys().clone();
        for (at, keys) in damaged {
            self.renew(at, &keys).await?;
            let vectors = keys.len();
            tracing::warn!(
                space = at.space,
                level = ?at.level,
                vectors,
                folder = %self.folder.display(),
                "vectors of the index were damaged on disk and are read from the catalog again; look after the disk"
            );
            metrics::counter!(names::INDEX_MENDED.name).increment(vectors);
            self.snapshots().are_damaged();
            // The snapshot is due at once.
            self.changed.notify_one();
            let mut known = self.damage.keys();
            if let Some(known) = known.get_mut(&at) {
                *known -= &keys;
            }
            known.retain(|_, keys| !keys.is_empty());
        }
        self.index.seal_what_is_due();
        Ok(())
    }

    /// Inserts the vectors of some keys from the catalog, and removes keys without one.
    async fn renew(&self, at: Collection, keys: &KeySet) -> Result<(), EngineError> {
        let keys: Vec<SpanKey> = keys.iter().collect();
        for some in keys.chunks(ROWS_PER_READ) {
            // The lock keeps deletes out between reading and inserting: the insert would undo them.
            let _one = self.changing.lock().await;
            let mut stored = self.catalog.vectors_of(at.space, some).await?;
            stored.retain(|it| it.level == at.level);
            let index = Arc::clone(&self.index);
            let mut gone: KeySet = some.iter().copied().collect();
            let put_all = move || {
                for it in &stored {
                    gone.remove(it.span);
                    if let Err(error) = index.fill(at, it.span.number(), &it.unit) {
                        tracing::error!(%error, span = %it.span, "a stored vector can't be searched");
                    }
                }
                gone.iter().for_each(|key| index.remove(at, key.number()));
            };
            tokio::task::spawn_blocking(put_all).await.map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::terms::Level;

    const AT: Collection = Collection { space: 1, level: Level::Clip };

    /// Reports `keys`; checks whether that requests a repair.
    #[track_caller]
    fn check(damage: &Damage, keys: &[u64], expected: bool) {
        let keys: Vec<SpanKey> = keys.iter().copied().map(SpanKey::new).collect();
        damage.report(AT, &keys);
        assert_eq!(damage.found.notified().now_or_never().is_some(), expected);
    }

    #[test]
    fn a_mend_is_asked_for_once_however_many_searches_meet_the_damage() {
        let damage = Damage::default();
        check(&damage, &[], false);
        check(&damage, &[4, 5], true);
        check(&damage, &[5, 4], false);
        check(&damage, &[5, 6], true);
        damage.keys().clear();
        check(&damage, &[4], true);
    }
}
