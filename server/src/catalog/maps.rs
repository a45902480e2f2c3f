//! Maps of spans: their state and their points. A map covers all spans; a page shows only the spans that its caller sees.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Row, Tx, Value, values};
use super::error::CatalogError;
use super::results::held;
use super::store::Catalog;
use super::tables::jobs::{self, NewJob};
use super::tables::stored::{level_name, to_json};
use super::types::*;
use super::view::View;
use super::wake::News;
use crate::terms::{Collection, SpanKey};

/// Points of one row.
const POINTS_PER_PART: usize = 4096;
/// Bytes of a point.
const POINT: usize = 16;
/// A map is made anew when more than one in this many spans has changed.
const CHANGED: i64 = 10;
/// Wait after a map's job failed or was cancelled.
const WAIT: Duration = Duration::from_secs(600);
/// Held while a map's job is queued, so that it is queued once.
const MAPS_LOCK: i64 = 0x7265_7072_6973_6502;

/// Ended jobs of a map: $1 their params, $2 a job that stays.
const OLDER: &str = "DELETE FROM jobs WHERE kind = 'map' AND params = $1 AND id <> $2 \
                     AND state IN ('succeeded', 'failed', 'cancelled')";

/// A stored map: $1 its space, $2 its level.
const STORED: &str = "SELECT seq, points, made_at_ms FROM maps WHERE space = $1 AND level = $2";

/// A stored map.
#[derive(PartialEq)]
struct Stored {
    seq: i64,
    points: i64,
    made_at_ms: i64,
}

impl Stored {
    fn of(row: Row) -> Result<Stored, CatalogError> {
        Ok(Stored { seq: row.get("seq")?, points: row.get("points")?, made_at_ms: row.get("made_at_ms")? })
    }
}

impl Catalog {
    /// The state of a map. Queues a job if there is no map, or if a tenth of the spans has changed since it was made.
    pub async fn ask_for_map(&self, of: Collection) -> Result<MapState, CatalogError> {
        let stored = self.stored_map(of).await?;
        let mut state =
            MapState { made_at_ms: stored.as_ref().map(|it| it.made_at_ms), ..MapState::default() };
        if let Some(stored) = &stored
            && !self.is_outdated(of, stored).await?
        {
            return Ok(state);
        }
        let mut tx = self.database.begin().await?;
        if tx.is_postgres() {
            tx.execute("SELECT pg_advisory_xact_lock($1)", values![MAPS_LOCK]).await?;
        }
        let last = last_job(&mut tx, of).await?;
        // Read again, after the job: one that succeeded since the first read has made what this call asks for.
        let newest = tx.row(STORED, values![of.space, level_name(of.level)]).await?;
        let newest = newest.map(Stored::of).transpose()?;
        if newest != stored {
            state.made_at_ms = newest.map(|it| it.made_at_ms);
            return Ok(state);
        }
        let now = tx.now_ms().await?;
        let wait = i64::try_from(WAIT.as_millis()).unwrap_or(i64::MAX);
        match last {
            Some(job) if matches!(job.state, JobState::Queued | JobState::Running) => {
                state.is_waited_for = true;
            }
            Some(job) if job.state != JobState::Succeeded && job.updated_at_ms > now.saturating_sub(wait) => {
                state.trouble = Some(job.reason.unwrap_or_default());
            }
            _ => {
                jobs::enqueue(&mut tx, NewJob::map(of)).await?;
                tx.announce(News::Jobs).await?;
                tx.commit().await?;
                state.is_waited_for = true;
            }
        }
        Ok(state)
    }

    /// Time of a map's making, in Unix milliseconds; `None` if it is not made yet.
    pub async fn map_made_at(&self, of: Collection) -> Result<Option<i64>, CatalogError> {
        Ok(self.stored_map(of).await?.map(|stored| stored.made_at_ms))
    }

    async fn stored_map(&self, of: Collection) -> Result<Option<Stored>, CatalogError> {
        let row = self.database.row(STORED, values![of.space, level_name(of.level)]).await?;
        row.map(Stored::of).transpose()
    }

    async fn is_outdated(&self, of: Collection, stored: &Stored) -> Result<bool, CatalogError> {
        let bound = stored.points / CHANGED;
        let sql = "SELECT count(*) AS changed FROM (SELECT c.seq FROM changes c \
                   WHERE c.seq > $1 AND c.space = $2 AND c.level = $3 LIMIT $4) newer";
        let values = values![stored.seq, of.space, level_name(of.level), bound + 1];
        let changed: i64 = self.database.row(sql, values).await?.map_or(Ok(0), |row| row.get("changed"))?;
        Ok(changed > bound)
    }

    /// Stores a map, and finishes its job. Again: no change.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`].
    pub async fn finish_map(&self, lease: &Lease, map: &NewMap) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let Some(found) = held(&mut tx, lease, JobName::Map).await? else { return Ok(()) };
        let (space, level) = (map.of.space, level_name(map.of.level));
        for sql in [
            "DELETE FROM map_parts WHERE space = $1 AND level = $2",
            "DELETE FROM maps WHERE space = $1 AND level = $2",
        ] {
            tx.execute(sql, values![space, level]).await?;
        }
        let points = i64::try_from(map.points.len()).unwrap_or(i64::MAX);
        let now = tx.now_ms().await?;
        let sql = "INSERT INTO maps (space, level, seq, anchors, points, made_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        tx.execute(sql, values![space, level, map.seq, map.anchors, points, now]).await?;
        let row = |part: &[MapPoint]| {
            let last = part.last().map_or(SpanKey::new(0), |point| point.key);
            values![space, level, last, bytes(part)]
        };
        let rows: Vec<Vec<Value>> = map.points.chunks(POINTS_PER_PART).map(row).collect();
        tx.insert("INSERT INTO map_parts (space, level, last_key, points)", rows, "").await?;
        if let Some(params) = &found.job.params {
            tx.execute(OLDER, values![to_json(params)?, lease.job]).await?;
        }
        jobs::succeed(&mut tx, lease.job).await?;
        tx.commit().await
    }
}

impl View<'_> {
    /// Spans that the caller sees, of a map, in order of id, after the span `after`.
    pub async fn map_page(
        &self,
        of: Collection,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<MapPage, CatalogError> {
        let sql = "SELECT s.key, s.id, s.video, s.start_ms, s.end_ms FROM spans s \
                   JOIN visible_videos v ON v.id = s.video WHERE s.level = $1 AND s.id > $2 ORDER BY s.id LIMIT $3";
        let values = values![level_name(of.level), after.unwrap_or_default(), limit];
        let rows = self.rows(sql, values).await?;
        let is_full = rows.len() == limit as usize;
        let next = rows.last().filter(|_| is_full).map(|row| row.get("id")).transpose()?;
        let mut keys = rows.iter().map(|row| row.key("key")).collect::<Result<Vec<_>, _>>()?;
        keys.sort_unstable();
        let points = self.points(of, &keys).await?;
        let mut spans = Vec::with_capacity(points.len());
        for row in &rows {
            let key = row.key("key")?;
            let Ok(place) = points.binary_search_by_key(&key, |point| point.key) else { continue };
            spans.push(PlacedSpan {
                id: row.get("id")?,
                video: row.get("video")?,
                start_ms: row.get("start_ms")?,
                end_ms: row.get("end_ms")?,
                point: points[place],
            });
        }
        Ok(MapPage { spans, next })
    }

    /// The points of these keys, which are in order, as far as the map has them, in order. Reads one part at a time.
    async fn points(&self, of: Collection, keys: &[SpanKey]) -> Result<Vec<MapPoint>, CatalogError> {
        let sql = "SELECT last_key, points FROM map_parts WHERE space = $1 AND level = $2 AND last_key >= $3 \
                   ORDER BY last_key LIMIT 1";
        let (mut found, mut left) = (Vec::with_capacity(keys.len()), keys);
        while let Some(first) = left.first() {
            let values = values![of.space, level_name(of.level), *first];
            let Some(row) = self.database().row(sql, values).await? else { break };
            let part = points(&row.get::<Vec<u8>>("points")?)?;
            let last = row.key("last_key")?;
            let (here, beyond) = left.split_at(left.partition_point(|key| *key <= last));
            let place = |key: &SpanKey| part.binary_search_by_key(key, |point| point.key).ok();
            found.extend(here.iter().filter_map(|key| Some(part[place(key)?])));
            left = beyond;
        }
        Ok(found)
    }
}

/// The newest job of a map.
async fn last_job(tx: &mut Tx, of: Collection) -> Result<Option<Job>, CatalogError> {
    let params = NewJob::map(of).params.as_ref().map(to_json).transpose()?;
    let sql = "SELECT id FROM jobs WHERE kind = 'map' AND params = $1 ORDER BY id DESC LIMIT 1";
    match tx.row(sql, values![params]).await? {
        Some(row) => jobs::read(tx, row.get("id")?).await,
        None => Ok(None),
    }
}

fn bytes(part: &[MapPoint]) -> Vec<u8> {
    let point = |point: &MapPoint| {
        let (key, x, y) = (point.key.number().to_le_bytes(), point.x.to_le_bytes(), point.y.to_le_bytes());
        key.into_iter().chain(x).chain(y)
    };
    part.iter().flat_map(point).collect()
}

fn points(bytes: &[u8]) -> Result<Vec<MapPoint>, CatalogError> {
    let (points, rest) = bytes.as_chunks::<POINT>();
    if !rest.is_empty() {
        return Err(CatalogError::Damaged("a part of a map is cut off: delete the rows of maps".into()));
    }
    let number = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    let point = |point: &[u8; POINT]| {
        let [a, b, c, d, e, f, g, h, ..] = *point;
        let key = SpanKey::new(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        MapPoint { key, x: number(&point[8..12]), y: number(&point[12..]) }
    };
    Ok(points.iter().map(point).collect())
}
