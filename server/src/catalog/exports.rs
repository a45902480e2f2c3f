//! Exports: requests, files, ends. An export and its job have one id.
//!
//! A caller sees an export if it sees the videos of all its ranges, those of deleted videos too. A caller who sees all
//! videos sees every export. The deletion of a video ends the made exports that may show it.

use std::collections::HashSet;
use std::time::Duration;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::exports::{is_seen, sees};
use super::tables::jobs::{self, NewJob, job_columns};
use super::tables::stored::{parse_json, to_json};
use super::types::*;
use super::view::View;
use super::visibility::Visibility;
use super::wake::News;
use super::{events, keys, ranges};

/// How a job stored the file of its export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is stored.
    Stored,
    /// A video in it was deleted meanwhile: the file must be made again.
    Outdated,
}

const COLUMNS: &str = concat!(
    job_columns!(),
    ", e.request, e.expires_at_ms, e.file, e.file_name, e.media_type, e.bytes, e.content_hash, e.report"
);

/// A select over exports that a caller sees. `$1`: now.
fn select(visibility: &Visibility, tail: &str) -> Sql {
    let seen = is_seen(visibility);
    Sql::Built(format!(
        "SELECT {COLUMNS} FROM exports e JOIN jobs j ON j.id = e.id \
         WHERE (e.expires_at_ms IS NULL OR e.expires_at_ms > $1) AND {seen} {tail}"
    ))
}

impl View<'_> {
    /// Stores an export with its job.
    ///
    /// # Errors
    /// [`CatalogError::Range`] for a range that the caller can't name; [`CatalogError::Conflict`] beyond [`MOST_EXPORTS`].
    pub async fn add_export(&self, new: &NewExport) -> Result<Export, CatalogError> {
        let mut tx = self.begin().await?;
        ranges::check(&mut tx, &new.ranges).await?;
        let now = tx.now_ms().await?;
        let sql = "SELECT count(*) AS exports FROM exports WHERE expires_at_ms IS NULL OR expires_at_ms > $1";
        let row = tx.row(sql, values![now]).await?;
        let exports: i64 = row.map_or(Ok(0), |row| row.get("exports"))?;
        if exports >= MOST_EXPORTS {
            let text = format!("the library has {exports} exports, which is the most; delete some first");
            return Err(CatalogError::Conflict(text));
        }
        let job = jobs::enqueue(&mut tx, NewJob::export()).await?;
        let sql = "INSERT INTO exports (id, request, added_by) VALUES ($1, $2, $3)";
        tx.execute(sql, values![job.id, to_json(&new.request)?, new.added_by]).await?;
        let videos: HashSet<Uuid> = new.ranges.iter().map(|range| range.video).collect();
        let rows: Vec<Vec<Value>> = videos.into_iter().map(|video| values![job.id, video]).collect();
        tx.insert("INSERT INTO export_videos (export, video)", rows, "").await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(Export { job, request: new.request.clone(), made: None, expires_at_ms: None })
    }

    /// One export that has not expired.
    pub async fn export(&self, id: Uuid) -> Result<Option<Export>, CatalogError> {
        let now = self.database().now_ms().await?;
        let rows = self.seen_exports("AND e.id = $2", values![now, id]).await?;
        rows.first().map(from_row).transpose()
    }

    /// Exports that have not expired, in order of id, newest first, before `before`.
    pub async fn exports(&self, before: Option<Uuid>, limit: u32) -> Result<Vec<Export>, CatalogError> {
        let now = self.database().now_ms().await?;
        let values = values![now, before.unwrap_or(Uuid::max()), limit];
        let rows = self.seen_exports("AND e.id < $2 ORDER BY e.id DESC LIMIT $3", values).await?;
        rows.iter().map(from_row).collect()
    }

    /// Rows of [`select`].
    async fn seen_exports(&self, tail: &str, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        let sql = select(self.visibility(), tail);
        // A caller who sees all videos sees every export.
        if self.visibility().is_limited() {
            self.rows(sql, values).await
        } else {
            self.database().rows(sql, values).await
        }
    }

    /// Ends an export: nobody reads it from now on, and a job that makes it stops. `None` if there is no such export. Its
    /// file and rows stay until [`Catalog::purge_export`].
    pub async fn end_export(&self, id: Uuid) -> Result<Option<()>, CatalogError> {
        let mut tx = self.begin().await?;
        let Some(found) = jobs::lock(&mut tx, id).await? else { return Ok(None) };
        if !sees(&mut tx, id).await? {
            return Ok(None);
        }
        if matches!(found.job.state, JobState::Queued | JobState::Running) {
            jobs::cancel(&mut tx, id).await?;
        }
        tx.execute("UPDATE exports SET expires_at_ms = 0 WHERE id = $1", values![id]).await?;
        tx.commit().await.map(Some)
    }
}

impl Catalog {
    /// Stores the file of an export, and finishes its job. `shown`: the videos that it may show. It expires after `lasts`.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`]; [`CatalogError::OverQuota`] if the caller's key has no room for the file.
    pub async fn finish_export(
        &self,
        lease: &Lease,
        made: &MadeExport,
        shown: &[Uuid],
        lasts: Duration,
    ) -> Result<Finished, CatalogError> {
        let mut tx = self.database.begin().await?;
        let Some(found) = jobs::lock(&mut tx, lease.job).await? else { return Err(CatalogError::LeaseLost) };
        if found.was_finished_by(lease) {
            return Ok(Finished::Stored);
        }
        if !found.is_held_by(lease) {
            return Err(CatalogError::LeaseLost);
        }
        let living = lock_videos(&mut tx, lease.job).await?;
        if !shown.iter().all(|video| living.contains(video)) {
            return Ok(Finished::Outdated);
        }
        let until = tx.now_ms().await?.saturating_add(milliseconds(lasts));
        let sql = "UPDATE exports SET file = $2, file_name = $3, media_type = $4, bytes = $5, content_hash = $6, \
                   report = $7, expires_at_ms = $8 WHERE id = $1";
        let values = values![
            lease.job,
            made.file.as_str(),
            made.file_name.as_str(),
            made.media_type.as_str(),
            made.bytes,
            made.content_hash.as_str(),
            to_json(&made.report)?,
            until,
        ];
        tx.execute(sql, values).await?;
        let row = tx.row("SELECT added_by FROM exports WHERE id = $1", values![lease.job]).await?;
        if let Some(key) = row.map(|row| row.get::<Option<Uuid>>("added_by")).transpose()?.flatten() {
            keys::check_quota(&mut tx, key).await?;
        }
        jobs::succeed(&mut tx, lease.job).await?;
        events::export_ready(&mut tx, lease.job, until).await?;
        tx.commit().await?;
        Ok(Finished::Stored)
    }

    /// The exports that nobody can read any more: expired ones, and those whose job has failed or was cancelled `lasts` ago.
    pub async fn expired_exports(&self, lasts: Duration) -> Result<Vec<ExpiredExport>, CatalogError> {
        let now = self.database.now_ms().await?;
        let sql = "SELECT e.id, e.file FROM exports e JOIN jobs j ON j.id = e.id WHERE e.expires_at_ms <= $1 \
                   OR (e.expires_at_ms IS NULL AND j.state IN ('failed', 'cancelled') AND j.updated_at_ms <= $2) \
                   ORDER BY e.id";
        let ended = now.saturating_sub(milliseconds(lasts));
        let rows = self.database.rows(sql, values![now, ended]).await?;
        rows.iter().map(|row| Ok(ExpiredExport { id: row.get("id")?, file: row.get("file")? })).collect()
    }

    /// Deletes the rows of an export that nobody can read any more. A second call changes nothing.
    pub async fn purge_export(&self, id: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        // The export goes with its job (cascade).
        tx.execute("DELETE FROM jobs WHERE id = $1 AND kind = 'export'", values![id]).await?;
        tx.commit().await
    }

    /// Makes an export expire whose file was lost.
    pub async fn expire_export(&self, id: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("UPDATE exports SET expires_at_ms = 0 WHERE id = $1", values![id]).await?;
        tx.commit().await
    }

    /// The files of all exports, expired ones too.
    pub async fn export_files(&self) -> Result<HashSet<String>, CatalogError> {
        let sql = "SELECT file FROM exports WHERE file IS NOT NULL";
        let rows = self.database.rows(sql, values![]).await?;
        rows.iter().map(|row| row.get("file")).collect()
    }
}

/// Ends the made exports that may show a video.
pub(super) async fn end_those_of(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let sql = "UPDATE exports SET expires_at_ms = 0 WHERE file IS NOT NULL \
               AND id IN (SELECT export FROM export_videos WHERE video = $1)";
    tx.execute(sql, values![video]).await?;
    Ok(())
}

/// The videos of an export that are not deleted. No other transaction deletes them until this one ends.
async fn lock_videos(tx: &mut Tx, id: Uuid) -> Result<HashSet<Uuid>, CatalogError> {
    let sql = Sql::Each {
        sqlite: "SELECT v.id FROM videos v JOIN export_videos m ON m.video = v.id \
                 WHERE m.export = $1 AND v.deleted_at_ms IS NULL",
        postgres: "SELECT v.id FROM videos v JOIN export_videos m ON m.video = v.id \
                   WHERE m.export = $1 AND v.deleted_at_ms IS NULL ORDER BY v.id FOR SHARE OF v",
    };
    let rows = tx.rows(sql, values![id]).await?;
    rows.iter().map(|row| row.get("id")).collect()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn from_row(row: &Row) -> Result<Export, CatalogError> {
    Ok(Export {
        job: jobs::from_row(row)?,
        request: parse_json(&row.get::<String>("request")?)?,
        made: made(row)?,
        expires_at_ms: row.get("expires_at_ms")?,
    })
}

fn made(row: &Row) -> Result<Option<MadeExport>, CatalogError> {
    let Some(file) = row.get::<Option<String>>("file")? else { return Ok(None) };
    let text = |column: &str| Ok::<_, CatalogError>(row.get::<Option<String>>(column)?.unwrap_or_default());
    let report: Option<String> = row.get("report")?;
    Ok(Some(MadeExport {
        file,
        file_name: text("file_name")?,
        media_type: text("media_type")?,
        bytes: row.get("bytes")?,
        content_hash: text("content_hash")?,
        report: report.as_deref().map(parse_json).transpose()?.unwrap_or_default(),
    }))
}
