//! The right to write to a vector engine that several servers share: a lease in the catalog.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use uuid::Uuid;

use crate::catalog::{Catalog, CatalogError, WriterRequest};

/// After the death of a writer another server writes within this time.
const LEASE: Duration = Duration::from_secs(4);
/// Age of a lease at which it is renewed.
const RENEW_AFTER: Duration = Duration::from_secs(1);

/// This process as a writer to one engine.
pub(super) struct Writer {
    engine: String,
    holder: Uuid,
    held: Mutex<Option<Held>>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    fence: u64,
    since: Instant,
}

impl Writer {
    /// A writer without a lease. `engine` is the engine's name in the catalog.
    pub(super) fn new(engine: String) -> Writer {
        Writer { engine, holder: Uuid::new_v4(), held: Mutex::default() }
    }

    /// The fencing number of the lease, which is taken or renewed if necessary. `None` while another server writes.
    pub(super) async fn fence(&self, catalog: &Catalog) -> Result<Option<u64>, CatalogError> {
        let mut held = self.held.lock().await;
        if let Some(held) = held.filter(|held| held.since.elapsed() < RENEW_AFTER) {
            return Ok(Some(held.fence));
        }
        let since = Instant::now();
        let fence = catalog.lease_writer(&self.request()).await?;
        *held = fence.map(|fence| Held { fence, since });
        Ok(fence)
    }

    /// Raises the fencing number above one that the engine has seen. The catalog's numbers start anew when it was
    /// restored, or when the engine's URL is written otherwise. Does nothing if another server writes.
    pub(super) async fn raise(&self, catalog: &Catalog, seen: u64) -> Result<(), CatalogError> {
        let mut held = self.held.lock().await;
        *held = None;
        catalog.raise_writer(&self.request(), seen).await
    }

    /// Ends the lease, so that another server can write at once.
    pub(super) async fn release(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        let was = self.held.lock().await.take();
        match was {
            Some(_) => catalog.release_writer(&self.engine, self.holder).await,
            None => Ok(()),
        }
    }

    /// Whether a rebuild of the engine has begun and not ended.
    pub(super) async fn is_rebuilding(&self, catalog: &Catalog) -> Result<bool, CatalogError> {
        catalog.is_rebuilding(&self.engine).await
    }

    /// Records that a rebuild begins or ends.
    pub(super) async fn set_rebuilding(&self, catalog: &Catalog, is: bool) -> Result<(), CatalogError> {
        catalog.set_rebuilding(&self.engine, is).await
    }

    fn request(&self) -> WriterRequest<'_> {
        WriterRequest { engine: &self.engine, holder: self.holder, lease: LEASE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_server_writes_until_it_ends_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("catalog.db").display());
        let catalog = crate::catalog::open(&url).await.unwrap();
        let [one, other] = [(), ()].map(|()| Writer::new("an engine".to_owned()));
        let first = one.fence(&catalog).await.unwrap();
        assert!(first.is_some());
        assert_eq!(other.fence(&catalog).await.unwrap(), None);
        assert_eq!(one.fence(&catalog).await.unwrap(), first);
        one.release(&catalog).await.unwrap();
        assert!(
            other.fence(&catalog).await.unwrap() > first,
            "an engine refuses what the first one still sends"
        );
        assert_eq!(one.fence(&catalog).await.unwrap(), None);
    }
}
