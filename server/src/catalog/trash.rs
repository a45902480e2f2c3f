//! The trash: videos that are hidden and can be restored, until the purge takes them.
//!
//! A video leaves the trash by one of two changes of its row: a restore clears `deleted_at_ms`, the purge sets `purging`.
//! Both check the other's mark, so exactly one of them wins.

use std::collections::HashSet;
use std::time::Duration;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::jobs;
use super::tables::vectors::{self, Op};
use super::tables::videos::{from_row, lock, read, video_columns};
use super::types::*;
use super::view::View;
use super::wake::News;
use super::{cues, exports};

impl View<'_> {
    /// Hides a video from all reads and indexes (appends to `changes`), and deletes its idempotency keys. Its unfinished jobs
    /// stop, and wait with it. Returns the video.
    pub async fn trash_video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        let mut tx = self.begin().await?;
        if !lock(&mut tx, id).await? {
            return Ok(None);
        }
        let video = hide(&mut tx, id).await?;
        tx.commit().await?;
        Ok(video)
    }

    /// Hides a video as [`View::trash_video`] does, or takes it out of the trash, and lets the purge have it. Deletes its
    /// jobs. Returns the video. Its other rows stay until [`Catalog::purge_video`].
    pub async fn delete_video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        let mut tx = self.begin().await?;
        let video = if lock(&mut tx, id).await? {
            tx.execute("DELETE FROM jobs WHERE video = $1", values![id]).await?;
            tx.execute("UPDATE videos SET purging = TRUE WHERE id = $1", values![id]).await?;
            hide(&mut tx, id).await?
        } else if lock_trashed(&mut tx, id).await? {
            let video = trashed(&mut tx, id).await?;
            tx.execute("DELETE FROM jobs WHERE video = $1", values![id]).await?;
            tx.execute("UPDATE videos SET purging = TRUE WHERE id = $1", values![id]).await?;
            video
        } else {
            return Ok(None);
        };
        tx.commit().await?;
        Ok(video)
    }

    /// Takes a video out of the trash: it is as it was, searches find it again (appends to `changes`), and its unfinished jobs
    /// are due. Returns the video; `None` if it is not in the trash, or the caller may not see it.
    pub async fn restore_video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        let mut tx = self.begin().await?;
        if !lock_trashed(&mut tx, id).await? {
            return Ok(None);
        }
        let now = tx.now_ms().await?;
        let sql = "UPDATE videos SET deleted_at_ms = NULL, restored_at_ms = $2 WHERE id = $1";
        tx.execute(sql, values![id, now]).await?;
        cues::count_video(&mut tx, id, 1).await?;
        let back = vectors::of_video(&mut tx, id).await?;
        let video = read(&mut tx, id).await?;
        tx.announce(News::Jobs).await?;
        vectors::append_changes(&mut tx, back.into_iter().map(|at| (Op::Insert, at)).collect()).await?;
        tx.commit().await?;
        Ok(video)
    }

    /// Videos in the trash in order of id, which is the order of creation, after `after`.
    pub async fn trashed_videos(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Video>, CatalogError> {
        let list = VideoList { trashed: true, ..VideoList::default() };
        let after = after.map(|id| VideoPlace { key: PlaceKey::Nothing, id });
        self.videos_of(&list, after.as_ref(), limit).await
    }
}

impl Catalog {
    /// Lets the purge have the videos that have been in the trash for `lasts`. Returns their number.
    pub async fn empty_trash(&self, lasts: Duration) -> Result<u64, CatalogError> {
        let mut tx = self.database.begin().await?;
        let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        let until = tx.now_ms().await?.saturating_sub(lasts);
        let sql = "UPDATE videos SET purging = TRUE WHERE deleted_at_ms <= $1 AND NOT purging";
        let taken = tx.execute(sql, values![until]).await?;
        tx.commit().await?;
        Ok(taken)
    }

    /// The next video to purge, in order of id after `after`.
    pub async fn next_deleted(&self, after: Option<Uuid>) -> Result<Option<DeletedVideo>, CatalogError> {
        let sql = "SELECT id, file FROM videos WHERE purging AND id > $1 ORDER BY id LIMIT 1";
        let after = after.unwrap_or(Uuid::nil());
        let Some(row) = self.database.row(sql, values![after]).await? else { return Ok(None) };
        let (id, file): (Uuid, String) = (row.get("id")?, row.get("file")?);
        let sql = "SELECT id FROM spans WHERE video = $1 AND level = 'clip' ORDER BY key";
        let clips = self.database.rows(sql, values![id]).await?;
        let clips = clips.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
        Ok(Some(DeletedVideo { id, file, clips }))
    }

    /// Deletes all rows of a video that the purge has. A second call changes nothing.
    pub async fn purge_video(&self, id: Uuid) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        // Spans, vectors, attributes and cues are deleted with it (cascade).
        if tx.execute("DELETE FROM videos WHERE id = $1 AND purging", values![id]).await? > 0 {
            tx.execute("DELETE FROM reel_ranges WHERE video = $1", values![id]).await?;
        }
        tx.commit().await
    }

    /// Videos whose files must stay, those in the trash too, in order of id after `after`.
    pub async fn kept_videos(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<KeptVideo>, CatalogError> {
        let sql =
            "SELECT id, file, content_hash FROM videos WHERE NOT purging AND id > $1 ORDER BY id LIMIT $2";
        let rows = self.database.rows(sql, values![after.unwrap_or(Uuid::nil()), limit]).await?;
        let kept = |row: &Row| {
            let (id, file, content_hash) = (row.get("id")?, row.get("file")?, row.get("content_hash")?);
            Ok(KeptVideo { id, file, content_hash })
        };
        rows.iter().map(kept).collect()
    }

    /// Those of these ids that belong to a video, or to a span of a video, that is not deleted.
    pub async fn known_ids(&self, ids: &[Uuid]) -> Result<HashSet<Uuid>, CatalogError> {
        self.ids_of(ids, "v.deleted_at_ms IS NULL").await
    }

    /// Those of these ids whose files must stay: of videos that are not deleted or are in the trash, and of their spans.
    pub async fn kept_ids(&self, ids: &[Uuid]) -> Result<HashSet<Uuid>, CatalogError> {
        self.ids_of(ids, "NOT v.purging").await
    }

    /// Those of these ids that belong to a video, or to a span of a video, for which the condition holds.
    async fn ids_of(&self, ids: &[Uuid], condition: &'static str) -> Result<HashSet<Uuid>, CatalogError> {
        let listed: Vec<String> = (1..=ids.len()).map(|number| format!("${number}")).collect();
        let listed = listed.join(", ");
        let sql = format!(
            "SELECT v.id FROM videos v WHERE {condition} AND v.id IN ({listed}) UNION ALL \
             SELECT s.id FROM spans s JOIN videos v ON v.id = s.video WHERE {condition} AND s.id IN ({listed})"
        );
        let values = ids.iter().map(|id| Value::from(*id)).collect();
        let rows = self.database.rows(Sql::Built(sql), values).await?;
        rows.iter().map(|row| row.get("id")).collect()
    }
}

/// Hides a locked video. Call last in a transaction: it appends to the changes.
async fn hide(tx: &mut Tx, id: Uuid) -> Result<Option<Video>, CatalogError> {
    let video = read(tx, id).await?;
    let gone = vectors::of_video(tx, id).await?;
    cues::count_video(tx, id, -1).await?;
    jobs::put_back(tx, id).await?;
    tx.execute("DELETE FROM idempotency_keys WHERE video = $1", values![id]).await?;
    let now = tx.now_ms().await?;
    tx.execute("UPDATE videos SET deleted_at_ms = $2 WHERE id = $1", values![id, now]).await?;
    exports::end_those_of(tx, id).await?;
    vectors::append_changes(tx, gone.into_iter().map(|at| (Op::Delete, at)).collect()).await?;
    Ok(video)
}

/// Locks a video in the trash. False if there is no such video, or the caller may not see it.
async fn lock_trashed(tx: &mut Tx, id: Uuid) -> Result<bool, CatalogError> {
    let sql = Sql::Each {
        sqlite: "SELECT id FROM videos WHERE id = $1 AND deleted_at_ms IS NOT NULL AND NOT purging",
        postgres: "SELECT id FROM videos WHERE id = $1 AND deleted_at_ms IS NOT NULL AND NOT purging FOR UPDATE",
    };
    Ok(tx.row(sql, values![id]).await?.is_some() && trashed(tx, id).await?.is_some())
}

/// A video in the trash that the caller may see.
async fn trashed(tx: &mut Tx, id: Uuid) -> Result<Option<Video>, CatalogError> {
    let sql = concat!("SELECT ", video_columns!(), " FROM trashed_videos v WHERE v.id = $1");
    let row = tx.visible_row(sql, values![id]).await?;
    row.as_ref().map(from_row).transpose()
}
