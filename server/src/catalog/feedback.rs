//! Feedback on the hits of searches: storing it, and reading it for an export.

use std::collections::HashMap;

use uuid::Uuid;

use super::database::{Row, Sql, Value, values};
use super::error::CatalogError;
use super::searches::{HIT_COLUMNS, hit, is_seen, kind, query};
use super::types::*;
use super::view::View;

/// Where a page of exported feedback begins: after this entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackPosition {
    /// The search.
    pub search: Uuid,
    /// The hit's span.
    pub span: Uuid,
    /// The verdict.
    pub verdict: Verdict,
}

impl View<'_> {
    /// Stores what a caller did with a hit. The same again changes nothing; `relevant` takes `not_relevant` back, and the other
    /// way round.
    pub async fn give_feedback(
        &self,
        of: SearchesOf,
        new: &NewFeedback,
    ) -> Result<FeedbackTaken, CatalogError> {
        let mut tx = self.begin().await?;
        let sql = Sql::Each {
            sqlite: "SELECT key FROM searches WHERE id = $1",
            // Two opposite verdicts at once must not both stay.
            postgres: "SELECT key FROM searches WHERE id = $1 FOR UPDATE",
        };
        let owner = tx.row(sql, values![new.search]).await?.map(|row| row.get("key")).transpose()?;
        if !owner.is_some_and(|key| is_seen(of, key)) {
            return Ok(FeedbackTaken::NoSearch);
        }
        let sql = "SELECT h.video, h.rank FROM search_hits h JOIN visible_videos v ON v.id = h.video \
                   WHERE h.search = $1 AND h.span = $2 ORDER BY h.rank LIMIT 1";
        let Some(found) = tx.visible_row(sql, values![new.search, new.span]).await? else {
            return Ok(FeedbackTaken::NoHit);
        };
        if let Some(opposite) = new.verdict.opposite() {
            let sql = "DELETE FROM search_feedback WHERE search = $1 AND span = $2 AND verdict = $3";
            tx.execute(sql, values![new.search, new.span, opposite.name()]).await?;
        }
        let sql = "INSERT INTO search_feedback (search, span, verdict, video, rank, at_ms, key, key_name) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (search, span, verdict) DO NOTHING";
        let (video, rank): (Uuid, i64) = (found.get("video")?, found.get("rank")?);
        let (now, key_name) = (tx.now_ms().await?, new.key_name.clone());
        let verdict = new.verdict.name();
        tx.execute(sql, values![new.search, new.span, verdict, video, rank, now, new.key, key_name]).await?;
        tx.commit().await?;
        Ok(FeedbackTaken::Stored)
    }

    /// Feedback on hits that the caller sees, in order of search, span and verdict, after `after`.
    pub async fn feedback(
        &self,
        after: Option<FeedbackPosition>,
        limit: u32,
    ) -> Result<Vec<JudgedSearch>, CatalogError> {
        let after = after.unwrap_or(FeedbackPosition {
            search: Uuid::nil(),
            span: Uuid::nil(),
            verdict: Verdict::Opened,
        });
        // A span may be shown at several ranks; the best one counts, as for the feedback itself.
        let sql = format!(
            "SELECT f.verdict, f.at_ms, f.key_name, s.kind, s.space, s.text, s.query_hash, s.clip, s.video, s.start_ms, \
             s.end_ms, s.uploaded, s.examples, s.filter, s.filtered, v.file, v.file_name, v.title, q.file AS query_file, \
             q.file_name AS query_file_name, \
             {HIT_COLUMNS} \
             FROM search_feedback f JOIN searches s ON s.id = f.search \
             JOIN search_hits h ON h.search = f.search AND h.rank = f.rank AND h.span = f.span \
             JOIN visible_videos v ON v.id = h.video \
             LEFT JOIN videos q ON q.id = s.video AND q.deleted_at_ms IS NULL \
             WHERE (f.search, f.span, f.verdict) > ($1, $2, $3) ORDER BY f.search, f.span, f.verdict LIMIT $4"
        );
        let values = values![after.search, after.span, after.verdict.name(), limit];
        let rows = self.rows(Sql::Built(sql), values).await?;
        rows.iter().map(from_row).collect()
    }

    /// What was done with the hits of these searches, by search and span, the first first.
    pub(super) async fn feedback_on(
        &self,
        searches: &[LoggedSearch],
    ) -> Result<HashMap<(Uuid, Uuid), Vec<Verdict>>, CatalogError> {
        let ids: Vec<Value> = searches.iter().map(|search| search.id.into()).collect();
        let numbers: Vec<String> = (1..=ids.len()).map(|number| format!("${number}")).collect();
        let sql = format!(
            "SELECT search, span, verdict FROM search_feedback WHERE search IN ({}) ORDER BY at_ms, verdict",
            numbers.join(", ")
        );
        let mut all: HashMap<(Uuid, Uuid), Vec<Verdict>> = HashMap::new();
        for row in self.database().rows(Sql::Built(sql), ids).await? {
            all.entry((row.get("search")?, row.get("span")?)).or_default().push(verdict(&row)?);
        }
        Ok(all)
    }
}

fn verdict(row: &Row) -> Result<Verdict, CatalogError> {
    let name: String = row.get("verdict")?;
    name.parse().map_err(|error: String| CatalogError::Damaged(error.into()))
}

fn from_row(row: &Row) -> Result<JudgedSearch, CatalogError> {
    let query_file: Option<String> = row.get("query_file")?;
    let query_file_name: Option<String> = row.get("query_file_name")?;
    Ok(JudgedSearch {
        search: row.get("search")?,
        at_ms: row.get("at_ms")?,
        verdict: verdict(row)?,
        key_name: row.get("key_name")?,
        kind: kind(row)?,
        space: row.get("space")?,
        query: query(row)?,
        query_file: query_file.zip(query_file_name).map(|(file, file_name)| VideoFile { file, file_name }),
        hit: hit(row)?,
        hit_file: VideoFile { file: row.get("file")?, file_name: row.get("file_name")? },
        hit_title: row.get("title")?,
    })
}
