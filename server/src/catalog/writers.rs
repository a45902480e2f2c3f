//! The library's identity, and the leases of those who write to a shared vector engine.

use std::time::Duration;

use uuid::Uuid;

use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;

/// A request for the right to write to a shared vector engine.
#[derive(Debug, Clone, Copy)]
pub struct WriterRequest<'a> {
    /// The engine's name in the catalog.
    pub engine: &'a str,
    /// The process that writes.
    pub holder: Uuid,
    /// How long the right lasts unless it is renewed.
    pub lease: Duration,
}

impl Catalog {
    /// The library's identity; made at the first call.
    pub async fn library_id(&self) -> Result<Uuid, CatalogError> {
        if let Some(row) = self.database.row("SELECT id FROM library", values![]).await? {
            return row.get("id");
        }
        let mut tx = self.database.begin().await?;
        let sql = "INSERT INTO library (one, id) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
        tx.execute(sql, values![Uuid::new_v4()]).await?;
        let row = tx.row("SELECT id FROM library", values![]).await?;
        tx.commit().await?;
        let missing = || CatalogError::Damaged("the library's identity is not there".into());
        row.ok_or_else(missing)?.get("id")
    }

    /// Takes or renews the lease to write to an engine. Returns its fencing number, which rises with each new holder;
    /// `None` while another process holds the lease. A lease that ends in more than ten times `lease` is of a time before
    /// the clock was set back, and counts as ended.
    pub async fn lease_writer(&self, request: &WriterRequest<'_>) -> Result<Option<u64>, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let lease_ms = i64::try_from(request.lease.as_millis()).unwrap_or(i64::MAX);
        let sql = "INSERT INTO engine_writers (engine, holder, fence, until_ms) VALUES ($1, $2, 1, $3) \
                   ON CONFLICT (engine) DO UPDATE SET \
                   fence = engine_writers.fence + CASE WHEN engine_writers.holder = excluded.holder THEN 0 ELSE 1 END, \
                   holder = excluded.holder, until_ms = excluded.until_ms \
                   WHERE engine_writers.holder = excluded.holder OR engine_writers.until_ms <= $4 \
                   OR engine_writers.until_ms > $5 RETURNING fence";
        let until = |leases: i64| now.saturating_add(lease_ms.saturating_mul(leases));
        let values = values![request.engine, request.holder, until(1), now, until(10)];
        let row = tx.row(sql, values).await?;
        let fence = row.map(|row| row.get::<i64>("fence")).transpose()?;
        tx.commit().await?;
        Ok(fence.map(i64::cast_unsigned))
    }

    /// Raises the fencing number of a held lease above `seen`. Does nothing if another process holds the lease.
    pub async fn raise_writer(&self, request: &WriterRequest<'_>, seen: u64) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE engine_writers SET fence = $3 + 1 \
                   WHERE engine = $1 AND holder = $2 AND until_ms > $4 AND fence <= $3";
        let values = values![request.engine, request.holder, seen.cast_signed(), now];
        tx.execute(sql, values).await?;
        tx.commit().await
    }

    /// Ends a lease early, so that another process can write at once.
    pub async fn release_writer(&self, engine: &str, holder: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let sql = "UPDATE engine_writers SET until_ms = 0 WHERE engine = $1 AND holder = $2";
        tx.execute(sql, values![engine, holder]).await?;
        tx.commit().await
    }

    /// Whether a rebuild of an engine has begun and not ended.
    pub async fn is_rebuilding(&self, engine: &str) -> Result<bool, CatalogError> {
        let sql = "SELECT engine FROM engine_writers WHERE engine = $1 AND rebuilding";
        Ok(self.database.row(sql, values![engine]).await?.is_some())
    }

    /// Records that a rebuild of an engine begins or ends. Somebody has held the engine's lease before.
    pub async fn set_rebuilding(&self, engine: &str, is: bool) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let sql = "UPDATE engine_writers SET rebuilding = $2 WHERE engine = $1";
        tx.execute(sql, values![engine, is]).await?;
        tx.commit().await
    }
}
