//! Passages: spans made of a track's cues, searched by meaning, and the clips and videos that they count for.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::database::{Database, Row, Sql, Tx, Value, values};
use super::rows::level_name;
use super::types::*;
use super::vectors::{self, At};
use super::{CatalogError, cues, jobs, postgres, rows, spans, videos};
use crate::subtitles::passages::passages;
use crate::subtitles::words::words;
use crate::terms::{KeySet, Level, SpanKey};

/// Makes the passages of those tracks of a locked video that have none. Nothing where the video was not decoded
/// yet: its clock is not known.
pub(super) async fn make(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let sql = "SELECT media_offset_ms, duration_ms FROM videos WHERE id = $1 AND duration_ms IS NOT NULL";
    let Some(row) = tx.row(sql, values![video]).await? else { return Ok(()) };
    let offset = row.get::<Option<i64>>("media_offset_ms")?.unwrap_or(0);
    let duration_ms: i64 = row.get("duration_ms")?;
    let sql = "SELECT t.key FROM tracks t WHERE t.video = $1 AND t.kind = 'speech' \
               AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.track = t.key) ORDER BY t.key";
    for row in tx.rows(sql, values![video]).await? {
        make_of(tx, video, row.get("key")?, (offset, duration_ms)).await?;
    }
    Ok(())
}

async fn make_of(
    tx: &mut Tx,
    video: Uuid,
    track: i64,
    (offset, duration_ms): (i64, i64),
) -> Result<(), CatalogError> {
    let sql = "SELECT start_ms, end_ms, text FROM cues WHERE track = $1 ORDER BY place";
    let lines = tx.rows(sql, values![track]).await?;
    let lines = lines.iter().map(cues::line).collect::<Result<Vec<Line>, _>>()?;
    let (mut rows, mut texts): (Vec<Vec<Value>>, Vec<(Uuid, String)>) = (Vec::new(), Vec::new());
    for passage in passages(&lines) {
        let of_passage = &lines[passage];
        let text = of_passage.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        let start_ms = of_passage.iter().map(|line| line.start_ms).min().unwrap_or(0) - offset;
        let end_ms = of_passage.iter().map(|line| line.end_ms).max().unwrap_or(0) - offset;
        let (start_ms, end_ms) = (start_ms.max(0), end_ms.min(duration_ms));
        if end_ms <= start_ms || words(&text).is_empty() {
            continue;
        }
        let id = Uuid::now_v7();
        rows.push(values![id, video, level_name(Level::Passage), false, start_ms, end_ms, "{}"]);
        texts.push((id, text));
    }
    let keys = spans::insert(tx, rows).await?;
    let rows = texts.into_iter().filter_map(|(id, text)| Some(values![*keys.get(&id)?, track, text]));
    tx.insert("INSERT INTO passages (span, track, text)", rows.collect(), "").await?;
    Ok(())
}

/// Deletes the passages of a track; answers where their vectors were.
pub(super) async fn remove(tx: &mut Tx, track: i64) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM passages p JOIN spans s ON s.key = p.span \
               JOIN embeddings e ON e.span = s.key WHERE p.track = $1 ORDER BY e.space, e.span";
    let gone = tx.rows(sql, values![track]).await?.iter().map(vectors::at).collect::<Result<_, _>>()?;
    let sql = "DELETE FROM spans WHERE key IN (SELECT span FROM passages WHERE track = $1)";
    tx.execute(sql, values![track]).await?;
    Ok(gone)
}

pub(super) async fn without_vector(
    database: &Database,
    video: Uuid,
    space: u32,
) -> Result<Vec<PassageText>, CatalogError> {
    let sql = "SELECT s.key, p.text FROM spans s JOIN passages p ON p.span = s.key WHERE s.video = $1 \
               AND s.level = 'passage' AND NOT EXISTS \
               (SELECT 1 FROM embeddings e WHERE e.space = $2 AND e.span = s.key) ORDER BY s.key";
    let rows = database.rows(sql, values![video, space]).await?;
    rows.iter().map(|row| Ok(PassageText { span: row.key("key")?, text: row.get("text")? })).collect()
}

pub(super) async fn enqueue_fill(database: &Database, video: Uuid) -> Result<bool, CatalogError> {
    let mut tx = database.begin().await?;
    if !videos::lock(&mut tx, video).await? {
        return Ok(false);
    }
    // One that runs may have looked already at what is lacking; one that waits has not.
    let sql = "SELECT 1 AS one FROM jobs WHERE video = $1 AND kind = 'fill' AND state = 'queued'";
    if tx.row(sql, values![video]).await?.is_some() {
        return Ok(false);
    }
    let now = tx.now_ms().await?;
    jobs::enqueue(&mut tx, JobKind::Fill, video, now).await?;
    postgres::notify_jobs(&mut tx).await?;
    tx.commit().await?;
    Ok(true)
}

pub(super) async fn lacking(database: &Database, space: u32) -> Result<Vec<Uuid>, CatalogError> {
    let sql = "SELECT v.id FROM videos v WHERE v.state = 'ready' \
               AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.video = v.id AND j.state IN ('queued', 'running')) \
               AND EXISTS (SELECT 1 FROM spans s WHERE s.video = v.id AND s.level = 'passage' \
               AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $1 AND e.span = s.key)) ORDER BY v.id";
    database.rows(sql, values![space]).await?.iter().map(|row| row.get("id")).collect()
}

macro_rules! within {
    ($keys:literal) => {
        concat!(
            "SELECT q.key FROM spans q WHERE q.level = 'passage' \
             AND q.video IN (SELECT s.video FROM spans s WHERE s.key ",
            $keys,
            ")"
        )
    };
}

pub(super) async fn within(database: &Database, only: &KeySet) -> Result<KeySet, CatalogError> {
    let sql =
        Sql::Each { sqlite: within!("IN (SELECT value FROM json_each($1))"), postgres: within!("= ANY($1)") };
    let keys: Vec<SpanKey> = only.iter().collect();
    database.keys(sql, vec![rows::keys(&keys)]).await
}

/// A passage and the spans that share some of it, that which shares most first.
macro_rules! hits {
    ($keys:literal, $level:literal) => {
        concat!(
            "SELECT q.key AS passage, q.start_ms, q.end_ms, q.video, p.text, t.kind, t.language, t.provenance, \
             s.key AS span FROM spans q JOIN passages p ON p.span = q.key JOIN tracks t ON t.key = p.track \
             JOIN spans s ON s.video = q.video WHERE q.key ",
            $keys,
            " AND s.level = ",
            $level,
            " AND s.start_ms < q.end_ms AND q.start_ms < s.end_ms \
             ORDER BY CASE WHEN s.end_ms < q.end_ms THEN s.end_ms ELSE q.end_ms END \
             - CASE WHEN s.start_ms > q.start_ms THEN s.start_ms ELSE q.start_ms END DESC, s.given, s.key"
        )
    };
}

const CLIPS: (&str, &str) =
    (hits!("IN (SELECT value FROM json_each($1))", "'clip'"), hits!("= ANY($1)", "'clip'"));
const VIDEOS: (&str, &str) =
    (hits!("IN (SELECT value FROM json_each($1))", "'video'"), hits!("= ANY($1)", "'video'"));

pub(super) async fn hits(
    database: &Database,
    passages: &[SpanKey],
    level: Level,
    only: Option<&KeySet>,
) -> Result<Vec<PassageHit>, CatalogError> {
    let (sqlite, postgres) = if level == Level::Video { VIDEOS } else { CLIPS };
    let mut found: HashMap<SpanKey, PassageHit> = HashMap::new();
    for row in database.rows(Sql::Each { sqlite, postgres }, vec![rows::keys(passages)]).await? {
        let hit = hit(&row)?;
        if only.is_none_or(|keys| keys.contains(hit.span)) {
            found.entry(hit.passage).or_insert(hit);
        }
    }
    let mut taken = HashSet::new();
    let in_order = passages.iter().filter_map(|passage| found.remove(passage));
    Ok(in_order.filter(|hit| taken.insert(hit.span)).collect())
}

fn hit(row: &Row) -> Result<PassageHit, CatalogError> {
    Ok(PassageHit {
        passage: row.key("passage")?,
        span: row.key("span")?,
        video: row.get("video")?,
        track: rows::track(row)?,
        start_ms: row.get("start_ms")?,
        end_ms: row.get("end_ms")?,
        text: row.get("text")?,
    })
}
