//! Reels: ordered lists of ranges.
//!
//! A caller sees a reel if it sees the videos of all its ranges, and there is one. Ranges of deleted videos do not count
//! and are shown to nobody. So a caller never changes ranges that it does not see.

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::ranges;
use super::tables::stored::parse_json;
use super::types::*;
use super::view::View;
use super::visibility::Visibility;

/// Columns of `reels r` and of what the caller sees of its ranges.
const COLUMNS: &str = "r.id, r.name, r.version, r.created_at_ms, r.updated_at_ms, \
    (SELECT count(*) FROM reel_ranges c JOIN visible_videos v ON v.id = c.video WHERE c.reel = r.id) AS ranges, \
    (SELECT CAST(COALESCE(sum(c.end_ms - c.start_ms), 0) AS bigint) FROM reel_ranges c \
     JOIN visible_videos v ON v.id = c.video WHERE c.reel = r.id) AS duration_ms";

/// The condition on `reels r` under which a caller sees it.
pub(super) fn is_seen(visibility: &Visibility) -> &'static str {
    match visibility {
        Visibility::All => "TRUE",
        Visibility::Matching(_) => {
            "EXISTS (SELECT 1 FROM reel_ranges c JOIN visible_videos v ON v.id = c.video WHERE c.reel = r.id) \
             AND NOT EXISTS (SELECT 1 FROM reel_ranges c JOIN videos d ON d.id = c.video WHERE c.reel = r.id \
             AND d.deleted_at_ms IS NULL AND NOT EXISTS (SELECT 1 FROM visible_videos v WHERE v.id = c.video))"
        }
    }
}

impl View<'_> {
    /// Stores a reel.
    ///
    /// # Errors
    /// [`CatalogError::Range`] for a range that the caller can't name; [`CatalogError::Conflict`] beyond [`MOST_REELS`].
    pub async fn add_reel(&self, new: &NewReel) -> Result<Reel, CatalogError> {
        let mut tx = self.begin().await?;
        ranges::check(&mut tx, &new.ranges).await?;
        let row = tx.row("SELECT count(*) AS reels FROM reels", values![]).await?;
        let reels: i64 = row.map_or(Ok(0), |row| row.get("reels"))?;
        if reels >= MOST_REELS {
            let text = format!("the library has {reels} reels, which is the most; delete some first");
            return Err(CatalogError::Conflict(text));
        }
        let (id, now) = (Uuid::now_v7(), tx.now_ms().await?);
        let sql =
            "INSERT INTO reels (id, name, version, created_at_ms, updated_at_ms) VALUES ($1, $2, 1, $3, $3)";
        tx.execute(sql, values![id, new.name.as_str(), now]).await?;
        insert_ranges(&mut tx, id, &new.ranges).await?;
        stored(tx, id).await
    }

    /// Replaces name and ranges of a reel; `None` if there is no such reel. `expected`: the states that it may have;
    /// `None`: any.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] in another state; as [`View::add_reel`].
    pub async fn update_reel(
        &self,
        id: Uuid,
        expected: Option<&[ReelVersion]>,
        new: &NewReel,
    ) -> Result<Option<Reel>, CatalogError> {
        let mut tx = self.begin().await?;
        let Some(found) = lock(&mut tx, id).await? else { return Ok(None) };
        check_version(&found, expected)?;
        ranges::check(&mut tx, &new.ranges).await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE reels SET name = $2, version = version + 1, updated_at_ms = $3 WHERE id = $1";
        tx.execute(sql, values![id, new.name.as_str(), now]).await?;
        tx.execute("DELETE FROM reel_ranges WHERE reel = $1", values![id]).await?;
        insert_ranges(&mut tx, id, &new.ranges).await?;
        stored(tx, id).await.map(Some)
    }

    /// Deletes a reel; `None` if there is no such reel. `expected` as in [`View::update_reel`].
    ///
    /// # Errors
    /// [`CatalogError::Stale`] in another state.
    pub async fn delete_reel(
        &self,
        id: Uuid,
        expected: Option<&[ReelVersion]>,
    ) -> Result<Option<()>, CatalogError> {
        let mut tx = self.begin().await?;
        let Some(found) = lock(&mut tx, id).await? else { return Ok(None) };
        check_version(&found, expected)?;
        tx.execute("DELETE FROM reel_ranges WHERE reel = $1", values![id]).await?;
        tx.execute("DELETE FROM reels WHERE id = $1", values![id]).await?;
        tx.commit().await.map(Some)
    }

    /// One reel with its ranges.
    pub async fn reel(&self, id: Uuid) -> Result<Option<Reel>, CatalogError> {
        let sql = format!("SELECT {COLUMNS} FROM reels r WHERE r.id = $1 AND {}", is_seen(self.visibility()));
        let Some(row) = self.row(Sql::Built(sql), values![id]).await? else { return Ok(None) };
        let ranges = self.rows(RANGES, values![id]).await?;
        let videos = self.rows(VIDEOS, values![id]).await?;
        whole(&row, &ranges, &videos).map(Some)
    }

    /// Reels in order of id, newest first, before `before`, without their ranges.
    pub async fn reels(&self, before: Option<Uuid>, limit: u32) -> Result<Vec<Reel>, CatalogError> {
        let seen = is_seen(self.visibility());
        let sql =
            format!("SELECT {COLUMNS} FROM reels r WHERE r.id < $1 AND {seen} ORDER BY r.id DESC LIMIT $2");
        let rows = self.rows(Sql::Built(sql), values![before.unwrap_or(Uuid::max()), limit]).await?;
        rows.iter().map(from_row).collect()
    }
}

/// $1 the reel.
const RANGES: &str = "SELECT c.video, c.start_ms, c.end_ms, c.note FROM reel_ranges c \
                      JOIN visible_videos v ON v.id = c.video WHERE c.reel = $1 ORDER BY c.place";

/// $1 the reel.
const VIDEOS: &str = "SELECT v.id, v.facts FROM visible_videos v \
                      WHERE v.id IN (SELECT c.video FROM reel_ranges c WHERE c.reel = $1) ORDER BY v.id";

/// Locks a reel that the caller sees.
pub(super) async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Reel>, CatalogError> {
    let sql = Sql::Each {
        sqlite: "SELECT id FROM reels WHERE id = $1",
        postgres: "SELECT id FROM reels WHERE id = $1 FOR UPDATE",
    };
    if tx.row(sql, values![id]).await?.is_none() {
        return Ok(None);
    }
    let sql = format!("SELECT {COLUMNS} FROM reels r WHERE r.id = $1 AND {}", is_seen(tx.visibility()));
    let row = tx.visible_row(Sql::Built(sql), values![id]).await?;
    row.as_ref().map(from_row).transpose()
}

fn check_version(found: &Reel, expected: Option<&[ReelVersion]>) -> Result<(), CatalogError> {
    match expected {
        Some(expected) if !expected.contains(&found.version) => Err(CatalogError::Stale),
        _ => Ok(()),
    }
}

async fn insert_ranges(tx: &mut Tx, id: Uuid, ranges: &[ReelRange]) -> Result<(), CatalogError> {
    let row = |(place, range): (usize, &ReelRange)| {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        values![id, place, range.video, range.start_ms, range.end_ms, range.note.as_str()]
    };
    let rows: Vec<Vec<Value>> = ranges.iter().enumerate().map(row).collect();
    tx.insert("INSERT INTO reel_ranges (reel, place, video, start_ms, end_ms, note)", rows, "").await?;
    Ok(())
}

/// Commits, and returns the stored reel.
async fn stored(mut tx: Tx, id: Uuid) -> Result<Reel, CatalogError> {
    let sql = format!("SELECT {COLUMNS} FROM reels r WHERE r.id = $1");
    let row = tx.visible_row(Sql::Built(sql), values![id]).await?;
    let row =
        row.ok_or_else(|| CatalogError::Damaged(format!("reel {id} was stored and is not there").into()))?;
    let ranges = tx.visible_rows(RANGES, values![id]).await?;
    let videos = tx.visible_rows(VIDEOS, values![id]).await?;
    let reel = whole(&row, &ranges, &videos)?;
    tx.commit().await?;
    Ok(reel)
}

fn from_row(row: &Row) -> Result<Reel, CatalogError> {
    Ok(Reel {
        id: row.get("id")?,
        name: row.get("name")?,
        version: ReelVersion { version: row.get("version")?, ranges: row.get("ranges")? },
        ranges: Vec::new(),
        videos: Vec::new(),
        duration_ms: row.get("duration_ms")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

/// A reel with its ranges and their videos.
fn whole(row: &Row, ranges: &[Row], videos: &[Row]) -> Result<Reel, CatalogError> {
    let range = |row: &Row| {
        Ok(ReelRange {
            video: row.get("video")?,
            start_ms: row.get("start_ms")?,
            end_ms: row.get("end_ms")?,
            note: row.get("note")?,
        })
    };
    let ranges = ranges.iter().map(range).collect::<Result<Vec<ReelRange>, CatalogError>>()?;
    let videos = videos.iter().map(video).collect::<Result<Vec<ReelVideo>, CatalogError>>()?;
    Ok(Reel { ranges, videos, ..from_row(row)? })
}

fn video(row: &Row) -> Result<ReelVideo, CatalogError> {
    let facts = row.get::<Option<String>>("facts")?.as_deref().map(parse_json::<MediaFacts>).transpose()?;
    Ok(ReelVideo {
        id: row.get("id")?,
        media_offset_ms: facts.as_ref().map(|facts| facts.media_offset_ms),
        plays_in_browsers: facts.as_ref().map(|facts| facts.plays_in_browsers),
    })
}
