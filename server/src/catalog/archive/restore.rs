//! Fills an empty catalog with the rows of a backup, in one transaction.

use serde_json::Value as Json;

use super::layout::{LIBRARY, Table};
use super::snapshot::{self, Counter, Positions};
use crate::catalog::cues::Ledger;
use crate::catalog::database::{Sql, Tx, Value, values};
use crate::catalog::error::CatalogError;
use crate::catalog::filter::attributes::{Attribute, attributes};
use crate::catalog::store::Catalog;
use crate::catalog::tables::listed;
use crate::catalog::tables::stored::parse_json;

/// How far the first change after a restore is above the last one before the backup. An engine that outlived the
/// library has seen changes after the backup; they must not be taken for the restored ones.
const CHANGES_APART: i64 = 1 << 32;

/// A restore that is under way. Dropping it leaves the catalog as it was.
pub struct Restoring {
    tx: Tx,
    words: Ledger,
    /// Whether the last video is in the trash. Its words do not count.
    is_trashed: bool,
}

impl Catalog {
    /// Fails if the catalog holds videos or API keys.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`].
    pub async fn must_be_empty(&self) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        must_be_empty(&mut tx).await?;
        tx.rollback().await
    }

    /// Begins to fill an empty catalog. What a server has stored at its start is replaced.
    ///
    /// # Errors
    /// As [`Catalog::must_be_empty`].
    pub async fn begin_restore(&self) -> Result<Restoring, CatalogError> {
        let mut tx = self.database.begin().await?;
        if tx.is_postgres() {
            tx.execute("LOCK TABLE videos IN EXCLUSIVE MODE", values![]).await?;
        }
        must_be_empty(&mut tx).await?;
        let more = ["changes", "cue_terms", "engine_writers"];
        for name in LIBRARY.iter().rev().map(|table| table.name).chain(more) {
            tx.execute(Sql::Built(format!("DELETE FROM {name}")), values![]).await?;
        }
        Ok(Restoring { tx, words: Ledger::default(), is_trashed: false })
    }
}

async fn must_be_empty(tx: &mut Tx) -> Result<(), CatalogError> {
    let sql = "SELECT (SELECT count(*) FROM videos) AS videos, (SELECT count(*) FROM api_keys) AS keys";
    let Some(row) = tx.row(sql, values![]).await? else { return Ok(()) };
    let (videos, keys): (i64, i64) = (row.get("videos")?, row.get("keys")?);
    if videos + keys == 0 {
        return Ok(());
    }
    Err(CatalogError::Conflict(format!(
        "the database holds {videos} videos and {keys} API keys: restore into an empty one"
    )))
}

impl Restoring {
    /// Inserts rows of a table, and what follows from them. The row of a video comes before those that belong to it.
    ///
    /// # Errors
    /// [`CatalogError::Damaged`] for a row of another form.
    pub async fn insert(&mut self, table: &Table, rows: Vec<Vec<Json>>) -> Result<(), CatalogError> {
        let derived = derived(table, &rows)?;
        if let Some((place, video)) = table.place("deleted_at_ms").zip(rows.last()) {
            self.is_trashed = video.get(place).is_some_and(|it| !it.is_null());
        }
        if let Some(words) = table.place("words").filter(|_| !self.is_trashed) {
            rows.iter()
                .filter_map(|row| row.get(words)?.as_str())
                .for_each(|words| self.words.count(words, 1));
        }
        let rows = rows.into_iter().map(|row| table.values(row)).collect::<Result<Vec<_>, _>>()?;
        self.tx.insert(&table.insert(self.tx.is_postgres()), rows, "").await?;
        self.tx.insert(derived.head, derived.rows, "").await?;
        self.words.count_words(&mut self.tx).await
    }

    /// Queues jobs that were running, lists all vectors as changes, and goes on with the numbers of the backup. Durable
    /// when this returns.
    pub async fn finish(mut self, positions: &Positions) -> Result<(), CatalogError> {
        let sql = "UPDATE jobs SET state = 'queued', stage = '', fraction = 0, frames_done = 0, frames_total = NULL, \
                   eta_s = NULL, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END WHERE state = 'running'";
        self.tx.execute(sql, values![]).await?;
        let changes = positions.changes.saturating_add(CHANGES_APART);
        for (counter, last) in [
            (snapshot::SPANS, positions.spans),
            (snapshot::TRACKS, positions.tracks),
            (snapshot::CUES, positions.cues),
            (snapshot::SPACES, positions.spaces),
            (snapshot::AUDIT, positions.audit),
            (snapshot::CHANGES, changes),
            (snapshot::VIDEOS, positions.videos),
        ] {
            self.go_on_after(&counter, last).await?;
        }
        let sql = "INSERT INTO changes (op, span, space, level) SELECT 'insert', e.span, e.space, s.level \
                   FROM embeddings e JOIN spans s ON s.key = e.span JOIN videos v ON v.id = s.video \
                   WHERE v.deleted_at_ms IS NULL ORDER BY e.space, e.span";
        self.tx.execute(sql, values![]).await?;
        while listed::index_some(&mut self.tx).await? > 0 {}
        self.tx.commit().await
    }

    async fn go_on_after(&mut self, counter: &Counter, last: i64) -> Result<(), CatalogError> {
        let Counter { table, column } = counter;
        let statements = match (self.tx.is_postgres(), *table) {
            (true, _) if last < 1 => vec![],
            (true, _) => {
                vec![format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', '{column}')::regclass, {last})"
                )]
            }
            (false, "videos") => vec![format!("UPDATE video_numbers SET last = {last}")],
            (false, _) => vec![
                format!("DELETE FROM sqlite_sequence WHERE name = '{table}'"),
                format!("INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {last})"),
            ],
        };
        for sql in statements {
            self.tx.execute(Sql::Built(sql), values![]).await?;
        }
        Ok(())
    }
}

/// Rows that follow from others.
struct Derived {
    head: &'static str,
    rows: Vec<Vec<Value>>,
}

/// The values that metadata filters look at.
fn derived(table: &Table, rows: &[Vec<Json>]) -> Result<Derived, CatalogError> {
    let (head, owner) = match table.name {
        "videos" => ("INSERT INTO video_attributes (video, path, kind, number, text)", "id"),
        "spans" => ("INSERT INTO span_attributes (span, path, kind, number, text)", "key"),
        _ => return Ok(Derived { head: "", rows: Vec::new() }),
    };
    let mut derived = Vec::new();
    for row in rows {
        let at = |name: &str| table.place(name).and_then(|place| row.get(place));
        let metadata: Json = parse_json(at("metadata").and_then(Json::as_str).unwrap_or("{}"))?;
        let owner = match at(owner) {
            Some(Json::Number(key)) => Value::Int(key.as_i64()),
            Some(Json::String(id)) => Value::Uuid(id.parse().ok()),
            _ => Value::Int(None),
        };
        derived.extend(attributes(&metadata).into_iter().map(|Attribute { path, kind, number, text }| {
            let mut row = vec![owner.clone()];
            row.extend(values![path, kind, number, text]);
            row
        }));
    }
    Ok(Derived { head, rows: derived })
}
