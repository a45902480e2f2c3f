//! Stores the result of a finished job: a video's spans and vectors, in one transaction.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::database::{Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::jobs::{self, Locked};
use super::tables::spans;
use super::tables::stored::{self, level_name, to_json};
use super::tables::vectors::{self, At, Op};
use super::types::*;
use super::wake::News;
use super::{checks, events, passages};
use crate::terms::{Level, SpanKey};

impl Catalog {
    /// In one transaction: replaces the found spans and all vectors of the job's video by `ingested`, except passages.
    /// Keeps given spans (matched by id), appends to `changes`, finishes the job, and marks the video ready.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`] if the lease is lost or the job was cancelled; nothing has changed.
    pub async fn finish_ingest(&self, lease: &Lease, ingested: Ingested) -> Result<(), CatalogError> {
        check_ranges(&ingested.spans)?;
        let mut tx = self.database.begin().await?;
        let Some(found) = held(&mut tx, lease, JobName::Ingest).await? else { return Ok(()) };
        let video = found.video()?;
        let mut old = vectors::of_video(&mut tx, video).await?;
        // Passages depend on the cues, not on the pictures: they stay.
        old.retain(|at| at.level != Level::Passage);
        let given = update_given(&mut tx, video, &ingested.spans).await?;
        tx.execute("DELETE FROM spans WHERE video = $1 AND NOT given AND level <> 'passage'", values![video])
            .await?;
        let new = insert_spans(&mut tx, video, ingested.spans, &given).await?;
        vectors::insert(&mut tx, &new.vectors).await?;
        let is_new = !is_ready(&mut tx, video).await?;
        store_facts(&mut tx, video, &ingested.facts, &ingested.warnings).await?;
        if let Some(segmentation) = jobs::new_segmentation(&found.job)? {
            let sql = "UPDATE videos SET segmentation = $2 WHERE id = $1";
            tx.execute(sql, values![video, to_json(&segmentation)?]).await?;
        }
        passages::make(&mut tx, video).await?;
        jobs::succeed(&mut tx, lease.job).await?;
        if is_new {
            checks::enqueue(&mut tx, video).await?;
            events::video_ready(&mut tx, video).await?;
        }
        // Waiting fills of this video may be due now.
        tx.announce(News::Jobs).await?;
        let kept: HashSet<SpanKey> =
            spans::given(&mut tx, video).await?.iter().map(|span| span.key).collect();
        vectors::append_changes(&mut tx, changes(old, new, &kept, &given)).await?;
        tx.commit().await
    }

    /// In one transaction: inserts the still missing vectors and the new `moments`, appends to `changes`, and finishes
    /// the job.
    pub async fn finish_fill(&self, lease: &Lease, filled: Filled) -> Result<(), CatalogError> {
        let Filled { mut vectors, moments } = filled;
        check_ranges(&moments)?;
        let mut tx = self.database.begin().await?;
        let Some(found) = held(&mut tx, lease, JobName::Fill).await? else { return Ok(()) };
        let video = found.video()?;
        let new = insert_spans(&mut tx, video, moments, &HashMap::new()).await?;
        vectors.extend(new.vectors);
        let rows = tx.rows("SELECT key, level FROM spans WHERE video = $1", values![video]).await?;
        let levels: HashMap<SpanKey, Level> = rows
            .iter()
            .map(|row| Ok((row.key("key")?, stored::level(row)?)))
            .collect::<Result<_, CatalogError>>()?;
        // A clip may have been deleted since the job began.
        vectors.retain(|vector| levels.contains_key(&vector.span));
        let inserted = vectors::insert(&mut tx, &vectors).await?;
        jobs::succeed(&mut tx, lease.job).await?;
        let change = |(space, span): (u32, SpanKey)| {
            let level = *levels.get(&span)?;
            Some((Op::Insert, At { span, space, level }))
        };
        vectors::append_changes(&mut tx, inserted.into_iter().filter_map(change).collect()).await?;
        tx.commit().await
    }
}

fn check_ranges(ingested: &[IngestedSpan]) -> Result<(), CatalogError> {
    let mut found = ingested.iter().filter(|span| span.given.is_none());
    match found.find(|span| span.start_ms < 0 || span.end_ms <= span.start_ms) {
        Some(bad) => {
            Err(CatalogError::Invalid(format!("{} to {} ms is no range", bad.start_ms, bad.end_ms).into()))
        }
        None => Ok(()),
    }
}

/// The job, if this lease may finish it; `None` if this lease has already finished it.
pub(super) async fn held(tx: &mut Tx, lease: &Lease, kind: JobName) -> Result<Option<Locked>, CatalogError> {
    match jobs::lock(tx, lease.job).await? {
        Some(found) if found.was_finished_by(lease) => Ok(None),
        Some(found) if found.is_held_by(lease) && found.job.kind == kind => Ok(Some(found)),
        _ => Err(CatalogError::LeaseLost),
    }
}

/// Prepares the given clips of `ingested`: cuts them to the video's end and deletes their vectors. Returns id to key.
/// Clips given since the job began are not included: their own job fills them.
async fn update_given(
    tx: &mut Tx,
    video: Uuid,
    ingested: &[IngestedSpan],
) -> Result<HashMap<Uuid, SpanKey>, CatalogError> {
    let ends: HashMap<Uuid, i64> =
        ingested.iter().filter_map(|span| span.given.map(|id| (id, span.end_ms))).collect();
    let mut keys = HashMap::new();
    for span in spans::given(tx, video).await? {
        let Some(&end_ms) = ends.get(&span.id) else { continue };
        keys.insert(span.id, span.key);
        if span.start_ms < end_ms && end_ms < span.end_ms {
            tx.execute("UPDATE spans SET end_ms = $2 WHERE key = $1", values![span.key, end_ms]).await?;
        }
    }
    let sql = Sql::Each {
        sqlite: "DELETE FROM embeddings WHERE span IN (SELECT value FROM json_each($1))",
        postgres: "DELETE FROM embeddings WHERE span = ANY($1)",
    };
    let list: Vec<SpanKey> = keys.values().copied().collect();
    tx.execute(sql, vec![stored::keys(&list)]).await?;
    Ok(keys)
}

/// The inserted vectors, and the level of each of their spans.
struct Inserted {
    vectors: Vec<NewVector>,
    levels: HashMap<SpanKey, Level>,
}

async fn insert_spans(
    tx: &mut Tx,
    video: Uuid,
    ingested: Vec<IngestedSpan>,
    given: &HashMap<Uuid, SpanKey>,
) -> Result<Inserted, CatalogError> {
    let empty = to_json(&serde_json::json!({}))?;
    let ids: Vec<Uuid> = ingested.iter().map(|span| span.given.unwrap_or_else(Uuid::now_v7)).collect();
    let row = |(span, id): (&IngestedSpan, &Uuid)| -> Vec<Value> {
        values![*id, video, level_name(span.level), false, span.start_ms, span.end_ms, empty.as_str()]
    };
    let found = ingested.iter().zip(&ids).filter(|(span, _)| span.given.is_none());
    let mut keys = spans::insert(tx, found.map(row).collect()).await?;
    keys.extend(given);
    let mut inserted = Inserted { vectors: Vec::new(), levels: HashMap::new() };
    for (span, id) in ingested.into_iter().zip(&ids) {
        let Some(&key) = keys.get(id) else { continue };
        inserted.levels.insert(key, span.level);
        let vectors = span.vectors.into_iter();
        inserted.vectors.extend(vectors.map(|(space, unit, norm)| NewVector {
            span: key,
            space,
            unit,
            norm,
        }));
    }
    Ok(inserted)
}

/// Deletes of vanished vectors, then inserts. A replaced vector is only an insert, so its span never vanishes from an
/// index.
fn changes(
    old: Vec<At>,
    new: Inserted,
    kept: &HashSet<SpanKey>,
    replaced: &HashMap<Uuid, SpanKey>,
) -> Vec<(Op, At)> {
    let inserts: Vec<At> = new
        .vectors
        .iter()
        .filter_map(|vector| {
            let level = *new.levels.get(&vector.span)?;
            Some(At { span: vector.span, space: vector.space, level })
        })
        .collect();
    let there: HashSet<At> = inserts.iter().copied().collect();
    let replaced: HashSet<SpanKey> = replaced.values().copied().collect();
    let untouched = |at: &At| kept.contains(&at.span) && !replaced.contains(&at.span);
    let deletes = old.into_iter().filter(|at| !there.contains(at) && !untouched(at));
    let deletes: Vec<(Op, At)> = deletes.map(|at| (Op::Delete, at)).collect();
    deletes.into_iter().chain(inserts.into_iter().map(|at| (Op::Insert, at))).collect()
}

/// Whether a video was searchable before: then it is cut again, which is no news.
async fn is_ready(tx: &mut Tx, video: Uuid) -> Result<bool, CatalogError> {
    let row = tx.row("SELECT id FROM videos WHERE id = $1 AND state = 'ready'", values![video]).await?;
    Ok(row.is_some())
}

async fn store_facts(
    tx: &mut Tx,
    video: Uuid,
    facts: &MediaFacts,
    warnings: &[String],
) -> Result<(), CatalogError> {
    let sql = "UPDATE videos SET state = 'ready', facts = $2, duration_ms = $3, media_offset_ms = $4, \
               warnings = $5 WHERE id = $1";
    let values =
        values![video, to_json(facts)?, facts.duration_ms, facts.media_offset_ms, to_json(&warnings)?];
    tx.execute(sql, values).await?;
    Ok(())
}
