//! Vectors of time ranges that queries asked for: a cache that is bounded in number and bytes. The least recently used leave
//! first.

use uuid::Uuid;

use super::database::{Row, Tx, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::view::View;

/// A use of a range is stored only if the last one is older, in milliseconds: reads should seldom write.
const USE_EVERY_MS: i64 = 60_000;
/// Ranges that are looked at together when some must leave.
const LEAVING: u32 = 100;

/// A time range of a video in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeOf {
    /// Key of the space.
    pub space: u32,
    /// The video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// Millisecond after the last.
    pub end_ms: i64,
}

/// Bounds of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeBounds {
    /// Most ranges.
    pub most: i64,
    /// Most bytes of their vectors.
    pub most_bytes: i64,
}

impl View<'_> {
    /// The raw vector of a range, if it is kept, and a note of its use.
    pub async fn range_vector(&self, range: &RangeOf) -> Result<Option<Vec<f32>>, CatalogError> {
        let sql = "SELECT r.vector, r.used_at_ms FROM range_vectors r JOIN visible_videos v ON v.id = r.video \
                   WHERE r.space = $1 AND r.video = $2 AND r.start_ms = $3 AND r.end_ms = $4";
        let RangeOf { space, video, start_ms, end_ms } = *range;
        let Some(row) = self.row(sql, values![space, video, start_ms, end_ms]).await? else {
            return Ok(None);
        };
        let used: i64 = row.get("used_at_ms")?;
        let now = self.database().now_ms().await?;
        if used.saturating_add(USE_EVERY_MS) <= now {
            let sql = "UPDATE range_vectors SET used_at_ms = $5 \
                       WHERE space = $1 AND video = $2 AND start_ms = $3 AND end_ms = $4";
            let mut tx = self.begin().await?;
            tx.execute(sql, values![space, video, start_ms, end_ms, now]).await?;
            tx.commit().await?;
        }
        vector(&row).map(Some)
    }
}

impl Catalog {
    /// Keeps the raw vector of a range. Least recently used ranges beyond `bounds` leave. A vector over the bounds is not
    /// kept.
    ///
    /// # Errors
    /// The space or the video is gone, or the catalog failed.
    pub async fn keep_range_vector(
        &self,
        range: &RangeOf,
        raw: &[f32],
        bounds: RangeBounds,
    ) -> Result<(), CatalogError> {
        let vector: Vec<u8> = raw.iter().flat_map(|value| value.to_le_bytes()).collect();
        let bytes = i64::try_from(vector.len()).unwrap_or(i64::MAX);
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "INSERT INTO range_vectors (space, video, start_ms, end_ms, vector, bytes, used_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (space, video, start_ms, end_ms) \
                   DO UPDATE SET vector = excluded.vector, bytes = excluded.bytes, used_at_ms = excluded.used_at_ms";
        let RangeOf { space, video, start_ms, end_ms } = *range;
        tx.execute(sql, values![space, video, start_ms, end_ms, vector, bytes, now]).await?;
        while leave(&mut tx, bounds).await? {}
        tx.commit().await
    }
}

/// Lets some of the ranges leave that are too many. Returns whether more may have to.
async fn leave(tx: &mut Tx, bounds: RangeBounds) -> Result<bool, CatalogError> {
    // Postgres sums to a number of any length.
    let sql =
        "SELECT count(*) AS ranges, CAST(COALESCE(sum(bytes), 0) AS BIGINT) AS bytes FROM range_vectors";
    let Some(row) = tx.row(sql, values![]).await? else { return Ok(false) };
    let (mut ranges, mut bytes): (i64, i64) = (row.get("ranges")?, row.get("bytes")?);
    if ranges <= bounds.most && bytes <= bounds.most_bytes {
        return Ok(false);
    }
    let sql = "SELECT space, video, start_ms, end_ms, bytes FROM range_vectors \
               ORDER BY used_at_ms, space, video, start_ms, end_ms LIMIT $1";
    let oldest = tx.rows(sql, values![LEAVING]).await?;
    for row in &oldest {
        if ranges <= bounds.most && bytes <= bounds.most_bytes {
            return Ok(false);
        }
        let (video, start_ms, end_ms): (Uuid, i64, i64) =
            (row.get("video")?, row.get("start_ms")?, row.get("end_ms")?);
        let sql =
            "DELETE FROM range_vectors WHERE space = $1 AND video = $2 AND start_ms = $3 AND end_ms = $4";
        tx.execute(sql, values![row.space("space")?, video, start_ms, end_ms]).await?;
        (ranges, bytes) = (ranges - 1, bytes - row.get::<i64>("bytes")?);
    }
    Ok(!oldest.is_empty())
}

fn vector(row: &Row) -> Result<Vec<f32>, CatalogError> {
    let bytes: Vec<u8> = row.get("vector")?;
    let (values, rest) = bytes.as_chunks::<4>();
    if values.is_empty() || !rest.is_empty() {
        return Err(CatalogError::Damaged(format!("a range's vector of {} bytes", bytes.len()).into()));
    }
    Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}
