//! The audit log: changes, and downloads of media.

use super::database::{Row, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::types::{AuditEntry, NewAuditEntry};

impl Catalog {
    /// Adds an entry to the audit log.
    pub async fn log_request(&self, entry: NewAuditEntry) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "INSERT INTO audit (at_ms, key, key_name, method, path, status, request_id) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let NewAuditEntry { key, key_name, method, path, status, request_id } = entry;
        let values = values![now, key, key_name, method, path, i64::from(status), request_id];
        tx.execute(sql, values).await?;
        tx.commit().await
    }

    /// Entries of the audit log, newest first, before the entry number `before`.
    pub async fn audit_log(&self, before: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>, CatalogError> {
        let sql = "SELECT seq, at_ms, key, key_name, method, path, status, request_id FROM audit \
                   WHERE seq < $1 ORDER BY seq DESC LIMIT $2";
        let rows = self.database.rows(sql, values![before.unwrap_or(i64::MAX), limit]).await?;
        rows.iter().map(from_row).collect()
    }

    /// Deletes the entries older than this many milliseconds.
    pub async fn forget_audit(&self, older_than_ms: i64) -> Result<u64, CatalogError> {
        let mut tx = self.database.begin().await?;
        let oldest = tx.now_ms().await?.saturating_sub(older_than_ms);
        let gone = tx.execute("DELETE FROM audit WHERE at_ms < $1", values![oldest]).await?;
        tx.commit().await?;
        Ok(gone)
    }
}

fn from_row(row: &Row) -> Result<AuditEntry, CatalogError> {
    let status: i64 = row.get("status")?;
    let request = NewAuditEntry {
        key: row.get("key")?,
        key_name: row.get("key_name")?,
        method: row.get("method")?,
        path: row.get("path")?,
        status: u16::try_from(status).unwrap_or_default(),
        request_id: row.get("request_id")?,
    };
    Ok(AuditEntry { seq: row.get("seq")?, at_ms: row.get("at_ms")?, request })
}
