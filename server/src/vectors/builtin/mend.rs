//! Vectors that can't be read from the index's files are found, read from the catalog, and inserted again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Builtin, EngineError, ROWS_PER_READ, failed};
use crate::terms::{Collection, KeySet, SpanKey};

/// Keys whose vectors can't be read, until they are mended.
#[derive(Default)]
pub(super) struct Damage {
    keys: Mutex<BTreeMap<Collection, KeySet>>,
    found: Notify,
}

impl Damage {
    /// Asks for these to be mended; asking again before they are changes nothing.
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
    /// Reads all of the index's files that no search has touched yet, and asks for what is damaged to be mended. Nobody
    /// waits for it at `closing`: it reads gigabytes and changes nothing.
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
        metrics::gauge!("reprise_index_verify_seconds").set(seconds);
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

    /// Mends what is found damaged until `closing`.
    pub(super) async fn mend_until(&self, closing: &CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.damage.found.notified() => {}
            }
            if let Err(error) = self.mend().await {
                tracing::warn!(%error, "what is damaged of the index can't be read from the catalog now");
                // The next search that meets it asks again.
                self.damage.keys().clear();
            }
        }
    }

    async fn mend(&self) -> Result<(), EngineError> {
        // They stay known meanwhile: a search that meets them asks for nothing more.
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
            metrics::counter!("reprise_index_mended_total").increment(vectors);
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

    /// Reads the vectors of some keys from the catalog; those that the catalog hasn't are removed.
    async fn renew(&self, at: Collection, keys: &KeySet) -> Result<(), EngineError> {
        let keys: Vec<SpanKey> = keys.iter().collect();
        for some in keys.chunks(ROWS_PER_READ) {
            // Between reading and inserting no delete may be applied: it would come back.
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

    /// Reports `keys`; whether somebody is asked to mend.
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
