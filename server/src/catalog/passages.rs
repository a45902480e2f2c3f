//! Passages: spans made of a track's cues for semantic search, and the clips and videos for which they count.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::stored::{self, level_name};
use super::tables::vectors::{self, At};
use super::tables::{spans, tracks};
use super::types::*;
use super::view::View;
use crate::subtitles::passages::{passages, passages_on_screen};
use crate::subtitles::words::words;
use crate::terms::{KeySet, Level, SpanKey};

/// Makes the missing passages of a video's tracks. Makes none before the first ingest, because the video's clock is
/// then unknown. The video must be locked.
pub(super) async fn make(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let sql = "SELECT media_offset_ms, duration_ms FROM videos WHERE id = $1 AND duration_ms IS NOT NULL";
    let Some(row) = tx.row(sql, values![video]).await? else { return Ok(()) };
    let offset = row.get::<Option<i64>>("media_offset_ms")?.unwrap_or(0);
    let clock = Clock { video, offset, duration_ms: row.get("duration_ms")? };
    let sql = "SELECT t.key, t.kind, t.language, t.provenance, t.machine FROM tracks t WHERE t.video = $1 \
               AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.track = t.key) ORDER BY t.key";
    for row in tx.rows(sql, values![video]).await? {
        make_of(tx, &clock, row.get("key")?, tracks::from_row(&row)?.kind).await?;
    }
    Ok(())
}

/// Maps the container's clock, on which cues are stored, to the video's time.
struct Clock {
    video: Uuid,
    offset: i64,
    duration_ms: i64,
}

async fn make_of(tx: &mut Tx, clock: &Clock, track: i64, kind: CueKind) -> Result<(), CatalogError> {
    let Clock { video, offset, duration_ms } = *clock;
    let sql = "SELECT start_ms, end_ms, text FROM cues WHERE track = $1 ORDER BY place";
    let lines = tx.rows(sql, values![track]).await?;
    let lines = lines.iter().map(tracks::line).collect::<Result<Vec<Line>, _>>()?;
    let (mut rows, mut texts): (Vec<Vec<Value>>, Vec<(Uuid, String)>) = (Vec::new(), Vec::new());
    let passages = if kind == CueKind::Ocr { passages_on_screen(&lines) } else { passages(&lines) };
    for passage in passages {
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

/// Deletes the passages of a track; returns the positions of their vectors.
pub(super) async fn remove(tx: &mut Tx, track: i64) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM passages p JOIN spans s ON s.key = p.span \
               JOIN embeddings e ON e.span = s.key WHERE p.track = $1 ORDER BY e.space, e.span";
    let gone = tx.rows(sql, values![track]).await?.iter().map(vectors::at).collect::<Result<_, _>>()?;
    let sql = "DELETE FROM spans WHERE key IN (SELECT span FROM passages WHERE track = $1)";
    tx.execute(sql, values![track]).await?;
    Ok(gone)
}

macro_rules! within {
    ($keys:literal) => {
        concat!(
            "SELECT q.key FROM spans q JOIN visible_videos v ON v.id = q.video JOIN passages p ON p.span = q.key \
             JOIN tracks t ON t.key = p.track WHERE q.level = 'passage' AND t.kind = $2 AND q.video IN (SELECT s.video FROM spans s WHERE s.key ",
            $keys,
            ")"
        )
    };
}

/// The number of passages of a kind.
macro_rules! among {
    ($keys:literal) => {
        concat!(
            "SELECT count(*) AS number FROM spans q JOIN visible_videos v ON v.id = q.video \
             JOIN passages p ON p.span = q.key JOIN tracks t ON t.key = p.track WHERE t.kind = $2 AND q.key ",
            $keys
        )
    };
}

/// A passage with the overlapping spans, the largest overlap first.
macro_rules! hits {
    ($keys:literal, $level:literal) => {
        concat!(
            "SELECT q.key AS passage, q.start_ms, q.end_ms, q.video, p.text, t.kind, t.language, t.provenance, t.machine, \
             s.key AS span FROM spans q JOIN passages p ON p.span = q.key JOIN tracks t ON t.key = p.track \
             JOIN visible_videos v ON v.id = q.video JOIN spans s ON s.video = q.video WHERE q.key ",
            $keys,
            " AND t.kind = $2 AND s.level = ",
            $level,
            " AND s.start_ms < q.end_ms AND q.start_ms < s.end_ms \
             ORDER BY CASE WHEN s.end_ms < q.end_ms THEN s.end_ms ELSE q.end_ms END \
             - CASE WHEN s.start_ms > q.start_ms THEN s.start_ms ELSE q.start_ms END DESC, s.given, s.key"
        )
    };
}

impl Catalog {
    /// Passages of a video that lack a vector in `space`, in order of key.
    pub async fn passages_without_vector(
        &self,
        video: Uuid,
        space: u32,
    ) -> Result<Vec<PassageText>, CatalogError> {
        let sql = "SELECT s.key, p.text FROM spans s JOIN passages p ON p.span = s.key WHERE s.video = $1 \
                   AND s.level = 'passage' AND NOT EXISTS \
                   (SELECT 1 FROM embeddings e WHERE e.space = $2 AND e.span = s.key) ORDER BY s.key";
        let rows = self.database.rows(sql, values![video, space]).await?;
        rows.iter().map(|row| Ok(PassageText { span: row.key("key")?, text: row.get("text")? })).collect()
    }

    /// Ready videos without an unfinished job that have a passage without a vector in `space`.
    pub async fn videos_lacking_passages(&self, space: u32) -> Result<Vec<Uuid>, CatalogError> {
        let sql = "SELECT v.id FROM videos v WHERE v.state = 'ready' AND v.deleted_at_ms IS NULL \
                   AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.video = v.id AND j.state IN ('queued', 'running')) \
                   AND EXISTS (SELECT 1 FROM spans s WHERE s.video = v.id AND s.level = 'passage' \
                   AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $1 AND e.span = s.key)) ORDER BY v.id";
        self.database.rows(sql, values![space]).await?.iter().map(|row| row.get("id")).collect()
    }
}

impl View<'_> {
    /// The passages of one kind of cue in the videos of these spans: the candidates of a search that may return only
    /// these spans.
    pub async fn passages_within(&self, kind: CueKind, only: &KeySet) -> Result<KeySet, CatalogError> {
        let sql = Sql::Each {
            sqlite: within!("IN (SELECT value FROM json_each($1))"),
            postgres: within!("= ANY($1)"),
        };
        let keys: Vec<SpanKey> = only.iter().collect();
        self.keys(sql, vec![stored::keys(&keys), tracks::cue_kind_name(kind).into()]).await
    }

    /// All passages of one kind of cue.
    pub async fn passages_of(&self, kind: CueKind) -> Result<KeySet, CatalogError> {
        let sql = "SELECT q.key FROM spans q JOIN visible_videos v ON v.id = q.video \
                   JOIN passages p ON p.span = q.key JOIN tracks t ON t.key = p.track WHERE t.kind = $1";
        self.keys(sql, values![tracks::cue_kind_name(kind)]).await
    }

    /// How many of these passages are of one kind of cue.
    pub async fn passages_among(&self, kind: CueKind, passages: &[SpanKey]) -> Result<usize, CatalogError> {
        let sql = Sql::Each {
            sqlite: among!("IN (SELECT value FROM json_each($1))"),
            postgres: among!("= ANY($1)"),
        };
        let values = vec![stored::keys(passages), tracks::cue_kind_name(kind).into()];
        let number: i64 = self.row(sql, values).await?.map_or(Ok(0), |row| row.get("number"))?;
        Ok(usize::try_from(number).unwrap_or_default())
    }

    /// The spans of `scope` for which these passages count, in the order of the passages. One hit per span, with its
    /// first passage. Deleted passages are left out.
    pub async fn passage_hits(
        &self,
        passages: &[SpanKey],
        scope: &CueScope<'_>,
    ) -> Result<Vec<PassageHit>, CatalogError> {
        let sql = if scope.level == Level::Video { VIDEOS } else { CLIPS };
        let values = vec![stored::keys(passages), tracks::cue_kind_name(scope.kind).into()];
        let mut found: HashMap<SpanKey, PassageHit> = HashMap::new();
        for row in self.rows(sql, values).await? {
            let hit = hit(&row)?;
            if scope.only.is_none_or(|keys| keys.contains(hit.span)) {
                found.entry(hit.passage).or_insert(hit);
            }
        }
        let mut taken = HashSet::new();
        let in_order = passages.iter().filter_map(|passage| found.remove(passage));
        Ok(in_order.filter(|hit| taken.insert(hit.span)).collect())
    }
}

const CLIPS: Sql = Sql::Each {
    sqlite: hits!("IN (SELECT value FROM json_each($1))", "'clip'"),
    postgres: hits!("= ANY($1)", "'clip'"),
};
const VIDEOS: Sql = Sql::Each {
    sqlite: hits!("IN (SELECT value FROM json_each($1))", "'video'"),
    postgres: hits!("= ANY($1)", "'video'"),
};

fn hit(row: &Row) -> Result<PassageHit, CatalogError> {
    Ok(PassageHit {
        passage: row.key("passage")?,
        span: row.key("span")?,
        video: row.get("video")?,
        track: tracks::from_row(row)?,
        start_ms: row.get("start_ms")?,
        end_ms: row.get("end_ms")?,
        text: row.get("text")?,
    })
}
