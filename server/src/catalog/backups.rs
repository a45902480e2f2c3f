//! The leases of running backups. While one holds, purges and sweeps leave the stored files alone.

use std::time::Duration;

use uuid::Uuid;

use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;

impl Catalog {
    /// Makes purges wait until `lease` has passed, and forgets the leases of backups that died.
    pub async fn begin_backup(&self, id: Uuid, lease: Duration) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        tx.execute("DELETE FROM backups WHERE until_ms <= $1", values![now]).await?;
        let sql = "INSERT INTO backups (id, until_ms) VALUES ($1, $2)";
        tx.execute(sql, values![id, until(now, lease)]).await?;
        tx.commit().await
    }

    /// Makes purges wait for another `lease` from now. False if the last one has run out: files may be gone.
    pub async fn renew_backup(&self, id: Uuid, lease: Duration) -> Result<bool, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE backups SET until_ms = $2 WHERE id = $1 AND until_ms > $3";
        let renewed = tx.execute(sql, values![id, until(now, lease), now]).await?;
        tx.commit().await?;
        Ok(renewed > 0)
    }

    /// Lets purges go on.
    pub async fn end_backup(&self, id: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("DELETE FROM backups WHERE id = $1", values![id]).await?;
        tx.commit().await
    }

    /// Whether a backup is being made.
    ///
    /// A file may be removed if nothing named it before a call that answers false: every later backup reads its rows
    /// later, so it does not need the file.
    pub async fn is_backed_up(&self) -> Result<bool, CatalogError> {
        let now = self.database.now_ms().await?;
        let sql = "SELECT id FROM backups WHERE until_ms > $1";
        Ok(self.database.row(sql, values![now]).await?.is_some())
    }
}

fn until(now: i64, lease: Duration) -> i64 {
    now.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}
