//! The lease of a running backup, renewed in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use uuid::Uuid;

use super::BackupError;
use crate::catalog::Catalog;

/// How long purges wait for a backup that has died.
const LEASE: Duration = Duration::from_secs(60);
const RENEW_EVERY: Duration = Duration::from_secs(15);

/// Keeps purges from removing files. Ends with [`PurgeLease::end`], or a while after the process.
pub(super) struct PurgeLease {
    catalog: Arc<Catalog>,
    id: Uuid,
    lost: Arc<AtomicBool>,
    renewing: JoinHandle<()>,
}

impl PurgeLease {
    pub(super) async fn begin(catalog: &Arc<Catalog>) -> Result<PurgeLease, BackupError> {
        let (id, lost) = (Uuid::now_v7(), Arc::new(AtomicBool::new(false)));
        catalog.begin_backup(id, LEASE).await?;
        let renewing = tokio::spawn(renew(Arc::clone(catalog), id, Arc::clone(&lost)));
        Ok(PurgeLease { catalog: Arc::clone(catalog), id, lost, renewing })
    }

    /// Lets purges go on. Fails if the lease had run out before.
    pub(super) async fn end(self) -> Result<(), BackupError> {
        self.renewing.abort();
        let held = self.catalog.renew_backup(self.id, LEASE).await?;
        self.catalog.end_backup(self.id).await?;
        if held && !self.lost.load(Ordering::Acquire) { Ok(()) } else { Err(BackupError::Overtaken) }
    }
}

async fn renew(catalog: Arc<Catalog>, id: Uuid, lost: Arc<AtomicBool>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match catalog.renew_backup(id, LEASE).await {
            Ok(true) => {}
            Ok(false) => return lost.store(true, Ordering::Release),
            Err(error) => tracing::warn!(%error, "the backup can't hold up purges; trying again"),
        }
    }
}
