//! What can't be read of the index's files is found, read from the catalog, and inserted again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reprise_index::SpaceLevel;
use roaring::RoaringBitmap;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Gallery;
use crate::catalog::CatalogError;

/// Keys whose vectors can't be read, until they are mended.
#[derive(Default)]
pub(super) struct Damage {
    keys: Mutex<BTreeMap<SpaceLevel, RoaringBitmap>>,
    found: Notify,
}

impl Damage {
    /// Asks for these to be mended; asking again before they are changes nothing.
    pub(super) fn report(&self, at: SpaceLevel, keys: &[u32]) {
        let before_and_after = {
            let mut known = self.keys();
            let known = known.entry(at).or_default();
            let before = known.len();
            known.extend(keys.iter().copied());
            (before, known.len())
        };
        if before_and_after.0 < before_and_after.1 {
            self.found.notify_one();
        }
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<SpaceLevel, RoaringBitmap>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gallery {
    /// Reads all of the index's files that no search has touched yet, and asks for what is damaged to be mended.
    pub async fn verify(&self) {
        let started = Instant::now();
        let index = Arc::clone(&self.index);
        let damaged = match tokio::task::spawn_blocking(move || index.verify()).await {
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
            self.damage.report(at, &keys);
        }
    }

    /// Mends what is found damaged until `closing`.
    pub async fn mend_until(self: Arc<Self>, closing: CancellationToken) {
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

    async fn mend(&self) -> Result<(), CatalogError> {
        // They stay known meanwhile: a search that meets them asks for nothing more.
        let damaged = self.damage.keys().clone();
        for (at, keys) in damaged {
            self.renew(at, &keys, &|_| ()).await?;
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
            let mut known = self.damage.keys();
            if let Some(known) = known.get_mut(&at) {
                *known -= &keys;
            }
            known.retain(|_, keys| !keys.is_empty());
        }
        self.index.seal_what_is_due();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use reprise_index::Level;

    use super::*;

    const AT: SpaceLevel = SpaceLevel { space: 1, level: Level::Clip };

    /// Reports `keys`; whether somebody is asked to mend.
    #[track_caller]
    fn check(damage: &Damage, keys: &[u32], expected: bool) {
        damage.report(AT, keys);
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
