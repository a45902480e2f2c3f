//! Reads the rows of a backup as they are at one moment.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use uuid::Uuid;

use super::layout::Table;
use crate::catalog::database::{Sql, Tx, values};
use crate::catalog::error::CatalogError;
use crate::catalog::store::Catalog;

/// The catalog at one moment. Servers may change it meanwhile.
pub struct Snapshot {
    pub(in crate::catalog) tx: Tx,
}

/// A video of a snapshot, and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedVideo {
    /// Its id.
    pub id: Uuid,
    /// Its title.
    pub title: String,
    /// Name or path of its file, as in [`crate::catalog::Video`].
    pub file: String,
    /// SHA-256 of the file, 64 hex digits.
    pub content_hash: String,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// The last numbers that the database gave out. None of them is used again, not even after a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Positions {
    /// Keys of spans.
    pub spans: i64,
    /// Keys of tracks.
    pub tracks: i64,
    /// Keys of cues.
    pub cues: i64,
    /// Keys of spaces.
    pub spaces: i64,
    /// Numbers of the audit log.
    pub audit: i64,
    /// Numbers of changes.
    pub changes: i64,
    /// Numbers of videos.
    pub videos: i64,
}

/// A number that the database counts up: its table and column.
pub(super) struct Counter {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
}

pub(super) const SPANS: Counter = Counter { table: "spans", column: "key" };
pub(super) const TRACKS: Counter = Counter { table: "tracks", column: "key" };
pub(super) const CUES: Counter = Counter { table: "cues", column: "key" };
pub(super) const SPACES: Counter = Counter { table: "spaces", column: "key" };
pub(super) const AUDIT: Counter = Counter { table: "audit", column: "seq" };
pub(super) const CHANGES: Counter = Counter { table: "changes", column: "seq" };
pub(super) const VIDEOS: Counter = Counter { table: "videos", column: "number" };

impl Catalog {
    /// The catalog as it is now.
    pub async fn snapshot(&self) -> Result<Snapshot, CatalogError> {
        Ok(Snapshot { tx: self.database.snapshot().await? })
    }
}

impl Snapshot {
    /// All videos, those in the trash too, in order of id. Those that are being purged are left out.
    pub async fn videos(&mut self) -> Result<Vec<ArchivedVideo>, CatalogError> {
        let sql = "SELECT id, title, file, content_hash, bytes FROM videos WHERE NOT purging ORDER BY id";
        let mut videos = Vec::new();
        self.tx
            .each(sql, values![], |row| {
                let bytes = u64::try_from(row.get::<i64>("bytes")?).unwrap_or_default();
                let (id, title, file) = (row.get("id")?, row.get("title")?, row.get("file")?);
                videos.push(ArchivedVideo { id, title, file, content_hash: row.get("content_hash")?, bytes });
                Ok::<(), CatalogError>(())
            })
            .await?;
        Ok(videos)
    }

    /// Calls `each` with the rows of a table, of one video for a table of [`super::OF_VIDEO`]; holds one row at a time.
    pub async fn rows<E: From<CatalogError>>(
        &mut self,
        table: &Table,
        video: Option<Uuid>,
        mut each: impl FnMut(Vec<Json>) -> Result<(), E>,
    ) -> Result<(), E> {
        let values = video.map_or_else(Vec::new, |id| values![id]);
        self.tx.each(Sql::Built(table.select()), values, |row| each(table.to_json(&row)?)).await
    }

    /// The last numbers given out, or later ones.
    pub async fn positions(&mut self) -> Result<Positions, CatalogError> {
        Ok(Positions {
            spans: self.last(&SPANS).await?,
            tracks: self.last(&TRACKS).await?,
            cues: self.last(&CUES).await?,
            spaces: self.last(&SPACES).await?,
            audit: self.last(&AUDIT).await?,
            changes: self.last(&CHANGES).await?,
            videos: self.last(&VIDEOS).await?,
        })
    }

    async fn last(&mut self, counter: &Counter) -> Result<i64, CatalogError> {
        let Counter { table, column } = counter;
        let sql = match (self.tx.is_postgres(), *table) {
            (true, _) => format!(
                "SELECT COALESCE(pg_sequence_last_value(pg_get_serial_sequence('{table}', '{column}')::regclass), 0) AS last"
            ),
            (false, "videos") => "SELECT last FROM video_numbers".to_owned(),
            (false, _) => format!("SELECT seq AS last FROM sqlite_sequence WHERE name = '{table}'"),
        };
        self.tx.row(Sql::Built(sql), values![]).await?.map_or(Ok(0), |row| row.get("last"))
    }

    /// Ends the snapshot.
    pub async fn end(self) -> Result<(), CatalogError> {
        self.tx.rollback().await
    }
}
