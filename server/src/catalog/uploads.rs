//! The rows of resumable uploads: owner, received bytes, expiry. The storage keeps the bytes in files.
//!
//! An upload belongs to the API key that makes it; callers without a key share theirs.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, values};
use super::error::CatalogError;
use super::keys;
use super::store::Catalog;
use super::types::*;
use super::view::View;

const COLUMNS: &str =
    "u.id, u.length, u.received, u.metadata, u.repeat_key, u.video, u.job, u.duplicate, u.expires_at_ms";

/// The advisory lock of transactions that begin an upload.
const BEGIN_LOCK: i64 = 7267;

/// Uploads whose file is not complete, and their bytes: of all, and of the key $1. $2: now.
const UNFINISHED: &str = "SELECT count(*) AS uploads, CAST(COALESCE(sum(u.length), 0) AS bigint) AS bytes, \
    CAST(COALESCE(sum(CASE WHEN u.added_by = $1 THEN 1 ELSE 0 END), 0) AS bigint) AS uploads_of_key, \
    CAST(COALESCE(sum(CASE WHEN u.added_by = $1 THEN u.length ELSE 0 END), 0) AS bigint) AS bytes_of_key \
    FROM uploads u WHERE u.video IS NULL AND u.expires_at_ms > $2";

impl View<'_> {
    /// Stores a new upload of which nothing has arrived.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] beyond the bounds; [`CatalogError::OverQuota`] if the caller's key has no room for it.
    pub async fn add_upload(&self, new: &NewPartialUpload) -> Result<PartialUpload, CatalogError> {
        let mut tx = self.begin().await?;
        let now = tx.now_ms().await?;
        check_bounds(&mut tx, self.key(), new, now).await?;
        let id = Uuid::now_v7();
        let sql = "INSERT INTO uploads (id, added_by, length, metadata, repeat_key, expires_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let until = now.saturating_add(milliseconds(new.bounds.lasts));
        let (metadata, key) = (new.metadata.as_str(), new.repeat_key.clone());
        tx.execute(sql, values![id, self.key(), new.length, metadata, key, until]).await?;
        tx.commit().await?;
        let missing = || CatalogError::Damaged(format!("upload {id} was stored and is not there").into());
        self.upload(id).await?.ok_or_else(missing)
    }

    /// One of the caller's uploads that has not expired.
    pub async fn upload(&self, id: Uuid) -> Result<Option<PartialUpload>, CatalogError> {
        let now = self.database().now_ms().await?;
        let sql = format!(
            "SELECT {COLUMNS} FROM uploads u \
             WHERE u.id = $1 AND u.added_by IS NOT DISTINCT FROM $2 AND u.expires_at_ms > $3"
        );
        let row = self.database().row(Sql::Built(sql), values![id, self.key(), now]).await?;
        row.as_ref().map(from_row).transpose()
    }
}

impl Catalog {
    /// Stores how many bytes of an upload are durable. It expires after `lasts`, counted from now. Returns the time of its
    /// expiry, in Unix milliseconds; `None` if it is gone or complete.
    pub async fn keep_received(
        &self,
        id: Uuid,
        bytes: i64,
        lasts: Duration,
    ) -> Result<Option<i64>, CatalogError> {
        let mut tx = self.database.begin().await?;
        let until = tx.now_ms().await?.saturating_add(milliseconds(lasts));
        let sql = "UPDATE uploads SET received = $2, expires_at_ms = $3 WHERE id = $1 AND video IS NULL";
        let kept = tx.execute(sql, values![id, bytes, until]).await?;
        tx.commit().await?;
        Ok((kept > 0).then_some(until))
    }

    /// Stores the answer to an upload whose request was answered before.
    pub async fn finish_upload(&self, id: Uuid, made: &FinishedUpload) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        finish(&mut tx, id, made).await?;
        tx.commit().await
    }

    /// Deletes an upload. Its file stays.
    pub async fn delete_upload(&self, id: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("DELETE FROM uploads WHERE id = $1", values![id]).await?;
        tx.commit().await
    }

    /// Deletes the uploads that have expired. Their files stay.
    pub async fn forget_uploads(&self) -> Result<u64, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let gone = tx.execute("DELETE FROM uploads WHERE expires_at_ms <= $1", values![now]).await?;
        tx.commit().await?;
        Ok(gone)
    }

    /// Whether an upload still needs its file.
    pub async fn needs_part(&self, id: Uuid) -> Result<bool, CatalogError> {
        let sql = "SELECT id FROM uploads WHERE id = $1 AND video IS NULL";
        Ok(self.database.row(sql, values![id]).await?.is_some())
    }
}

/// Stores what an upload has become.
pub(super) async fn finish(tx: &mut Tx, id: Uuid, made: &FinishedUpload) -> Result<(), CatalogError> {
    let sql = "UPDATE uploads SET received = length, video = $2, job = $3, duplicate = $4 WHERE id = $1";
    tx.execute(sql, values![id, made.video, made.job, made.duplicate]).await?;
    Ok(())
}

async fn check_bounds(
    tx: &mut Tx,
    key: Option<Uuid>,
    new: &NewPartialUpload,
    now: i64,
) -> Result<(), CatalogError> {
    if tx.is_postgres() {
        // Two uploads that begin at once must not share the last place. SQLite has one writer anyway.
        tx.execute("SELECT pg_advisory_xact_lock($1)", values![BEGIN_LOCK]).await?;
    }
    let Some(row) = tx.row(UNFINISHED, values![key, now]).await? else { return Ok(()) };
    let no_key = UploadBounds { uploads_of_key: i64::MAX, bytes_of_key: i64::MAX, ..new.bounds };
    let bounds = if key.is_some() { new.bounds } else { no_key };
    let checks = [
        (row.get::<i64>("uploads")? + 1, bounds.uploads, "the server", "unfinished uploads"),
        (row.get::<i64>("bytes")? + new.length, bounds.bytes, "the server", "bytes of unfinished uploads"),
        (row.get::<i64>("uploads_of_key")? + 1, bounds.uploads_of_key, "your key", "unfinished uploads"),
        (
            row.get::<i64>("bytes_of_key")? + new.length,
            bounds.bytes_of_key,
            "your key",
            "bytes of unfinished uploads",
        ),
    ];
    if let Some((_, most, who, what)) = checks.into_iter().find(|(wanted, most, ..)| wanted > most) {
        let text =
            format!("{who} may have {most} {what}; finish or delete some first, or send the file at once");
        return Err(CatalogError::Conflict(text));
    }
    match key {
        Some(key) => keys::check_room(tx, key, row.get::<i64>("bytes_of_key")? + new.length).await,
        None => Ok(()),
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn from_row(row: &Row) -> Result<PartialUpload, CatalogError> {
    let made = match row.get("video")? {
        Some(video) => Some(FinishedUpload { video, job: row.get("job")?, duplicate: row.get("duplicate")? }),
        None => None,
    };
    Ok(PartialUpload {
        id: row.get("id")?,
        length: row.get("length")?,
        received: row.get("received")?,
        metadata: row.get("metadata")?,
        repeat_key: row.get("repeat_key")?,
        made,
        expires_at_ms: row.get("expires_at_ms")?,
    })
}
