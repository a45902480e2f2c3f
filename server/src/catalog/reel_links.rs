//! Signed links to reels: what they show, and their end.
//!
//! Links are not stored. Each holds the epoch of its reel, and raising the epoch revokes them all.

use uuid::Uuid;

use super::database::{Sql, values};
use super::error::CatalogError;
use super::reels;
use super::store::Catalog;
use super::types::ReelPart;
use super::view::View;

/// The visible ranges of the reel `r`.
const SHOWN: &str = "SELECT 1 FROM reel_ranges c JOIN visible_videos v ON v.id = c.video WHERE c.reel = r.id";

impl Catalog {
    /// The epoch of a reel's links; `None` if there is no such reel.
    pub async fn link_epoch(&self, reel: Uuid) -> Result<Option<i64>, CatalogError> {
        let row = self.database.row("SELECT link_epoch FROM reels WHERE id = $1", values![reel]).await?;
        row.map(|row| row.get("link_epoch")).transpose()
    }
}

impl View<'_> {
    /// Whether the caller sees the reel, and the reel shows this. A reel without visible ranges shows nothing.
    pub async fn reel_shows(&self, reel: Uuid, part: ReelPart) -> Result<bool, CatalogError> {
        let (shown, id) = match part {
            ReelPart::Ranges => ("TRUE", Uuid::nil()),
            ReelPart::Video(id) => ("v.id = $2", id),
            ReelPart::Span(id) => ("EXISTS (SELECT 1 FROM spans s WHERE s.id = $2 AND s.video = v.id)", id),
        };
        let seen = reels::is_seen(self.visibility());
        let sql =
            format!("SELECT r.id FROM reels r WHERE r.id = $1 AND EXISTS ({SHOWN} AND {shown}) AND {seen}");
        let values = if part == ReelPart::Ranges { values![reel] } else { values![reel, id] };
        Ok(self.row(Sql::Built(sql), values).await?.is_some())
    }

    /// Revokes the links to a reel, those of every key; `None` if there is no such reel.
    pub async fn revoke_reel_links(&self, reel: Uuid) -> Result<Option<()>, CatalogError> {
        let mut tx = self.begin().await?;
        if reels::lock(&mut tx, reel).await?.is_none() {
            return Ok(None);
        }
        tx.execute("UPDATE reels SET link_epoch = link_epoch + 1 WHERE id = $1", values![reel]).await?;
        tx.commit().await.map(Some)
    }
}
