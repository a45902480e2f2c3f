//! Evaluations: queries, what spaces found for them, figures. An evaluation and its job have one id.
//!
//! An evaluation belongs to the key that made it. Its ranges in videos that a caller does not see are left out of reads.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::filter::Filter;
use super::results::held;
use super::searches::{kind, placeholders};
use super::store::Catalog;
use super::tables::jobs::{self, NewJob, job_columns};
use super::tables::stored::{parse_json, to_json};
use super::types::*;
use super::view::View;
use super::visibility::Visibility;
use super::wake::News;
use crate::terms::SearchKind;

/// Ids of videos or clips of one statement.
const IDS_AT_ONCE: usize = 500;
/// Expired evaluations that one transaction deletes: SQLite's other writers wait for it.
const FORGOTTEN_AT_ONCE: u32 = 10;

const COLUMNS: &str =
    concat!(job_columns!(), ", u.owner, u.name, u.settings, u.queries, u.report, u.expires_at_ms");

/// The condition on `evaluations u` under which an owner sees it. `$2`: the owner's key, null for everybody's.
const IS_OWNED: &str = "($2 IS NULL OR u.owner = $2)";

impl View<'_> {
    /// Stores an evaluation with its job.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] beyond [`MOST_EVALUATIONS`] or [`MOST_EVALUATED_IN_ALL`].
    pub async fn add_evaluation(&self, new: &NewEvaluation) -> Result<Evaluation, CatalogError> {
        let mut tx = self.begin().await?;
        let queries = i64::try_from(new.queries.len()).unwrap_or(i64::MAX);
        check_room(&mut tx, queries).await?;
        let job = jobs::enqueue(&mut tx, NewJob::evaluation()).await?;
        let lasts = i64::try_from(new.lasts.as_millis()).unwrap_or(i64::MAX);
        let expires_at_ms = tx.now_ms().await?.saturating_add(lasts);
        let sql = "INSERT INTO evaluations (id, owner, name, settings, queries, expires_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let settings = to_json(&new.settings)?;
        let row = values![job.id, new.owner, new.name.as_str(), settings, queries, expires_at_ms];
        tx.execute(sql, row).await?;
        let row = |(place, query): (usize, &EvaluationQuery)| {
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            Ok(values![job.id, place, to_json(query)?])
        };
        let rows = new.queries.iter().enumerate().map(row).collect::<Result<_, CatalogError>>()?;
        tx.insert("INSERT INTO evaluation_queries (evaluation, place, query)", rows, "").await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(Evaluation {
            job,
            owner: new.owner,
            name: new.name.clone(),
            settings: new.settings.clone(),
            queries,
            report: None,
            expires_at_ms,
        })
    }

    /// An owner's evaluations in order of id, newest first, before `before`.
    pub async fn evaluations(
        &self,
        owner: Owner,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Evaluation>, CatalogError> {
        let tail = format!("u.id < $1 AND {IS_OWNED} ORDER BY u.id DESC LIMIT $3");
        let values = values![before.unwrap_or(Uuid::max()), owner.key(), limit];
        self.database().rows(select(&tail), values).await?.iter().map(from_row).collect()
    }

    /// One evaluation; `None` if the owner has no such evaluation.
    pub async fn evaluation(&self, owner: Owner, id: Uuid) -> Result<Option<Evaluation>, CatalogError> {
        let sql = select(&format!("u.id = $1 AND {IS_OWNED}"));
        self.database().row(sql, values![id, owner.key()]).await?.as_ref().map(from_row).transpose()
    }

    /// Deletes an evaluation with its job; `None` if the owner has no such evaluation. A worker that runs it loses its lease.
    pub async fn delete_evaluation(&self, owner: Owner, id: Uuid) -> Result<Option<()>, CatalogError> {
        let mut tx = self.begin().await?;
        let sql = format!("SELECT u.id FROM evaluations u WHERE u.id = $1 AND {IS_OWNED}");
        if tx.row(Sql::Built(sql), values![id, owner.key()]).await?.is_none() {
            return Ok(None);
        }
        delete(&mut tx, id).await?;
        tx.commit().await.map(Some)
    }

    /// Queries of an evaluation in order, after the place `after`, without ranges in videos that the caller does not see.
    pub async fn evaluated_queries(
        &self,
        id: Uuid,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EvaluatedQuery>, CatalogError> {
        let sql = "SELECT place, query, outcome FROM evaluation_queries \
                   WHERE evaluation = $1 AND place > $2 ORDER BY place LIMIT $3";
        let rows = self.database().rows(sql, values![id, after, limit]).await?;
        let mut queries = rows.iter().map(query_from).collect::<Result<Vec<_>, _>>()?;
        let ranges = |it: &EvaluatedQuery| -> Vec<VideoRange> {
            it.query.relevant.iter().copied().chain(it.query.clip).collect()
        };
        let named: HashSet<Uuid> = queries.iter().flat_map(ranges).map(|range| range.video).collect();
        let seen = self.video_lengths(&named.into_iter().collect::<Vec<_>>()).await?;
        for EvaluatedQuery { query, .. } in &mut queries {
            query.relevant.retain(|range| seen.contains_key(&range.video));
            query.clip = query.clip.filter(|range| seen.contains_key(&range.video));
        }
        Ok(queries)
    }

    /// Length in milliseconds of each of these videos that the caller sees; `None` while it is not known.
    pub async fn video_lengths(&self, videos: &[Uuid]) -> Result<HashMap<Uuid, Option<i64>>, CatalogError> {
        let mut lengths = HashMap::new();
        for some in videos.chunks(IDS_AT_ONCE) {
            let ids = placeholders(some.len());
            let sql = format!("SELECT v.id, v.duration_ms FROM visible_videos v WHERE v.id IN ({ids})");
            for row in self.rows(Sql::Built(sql), some.iter().map(|id| Value::from(*id)).collect()).await? {
                lengths.insert(row.get("id")?, row.get("duration_ms")?);
            }
        }
        Ok(lengths)
    }

    /// Range of each of these spans that the caller sees.
    pub async fn span_ranges(&self, spans: &[Uuid]) -> Result<HashMap<Uuid, VideoRange>, CatalogError> {
        let mut ranges = HashMap::new();
        for some in spans.chunks(IDS_AT_ONCE) {
            let ids = placeholders(some.len());
            let sql = format!(
                "SELECT s.id, s.video, s.start_ms, s.end_ms FROM spans s \
                 JOIN visible_videos v ON v.id = s.video WHERE s.id IN ({ids})"
            );
            for row in self.rows(Sql::Built(sql), some.iter().map(|id| Value::from(*id)).collect()).await? {
                ranges.insert(row.get("id")?, range(&row, ["video", "start_ms", "end_ms"])?);
            }
        }
        Ok(ranges)
    }

    /// Queries of the log between two times, in Unix milliseconds, with what was judged relevant. Equal queries become one.
    /// `full_videos`: hits that are full videos count too.
    pub async fn judged_queries(
        &self,
        of: SearchesOf,
        between_ms: std::ops::Range<i64>,
        full_videos: bool,
    ) -> Result<JudgedQueries, CatalogError> {
        let sql = "SELECT s.kind, s.query_hash, s.text, s.start_ms, s.end_ms, s.uploaded, s.filter, s.filtered, \
                   q.id AS video, h.video AS hit_video, h.start_ms AS hit_start_ms, h.end_ms AS hit_end_ms \
                   FROM search_feedback f JOIN searches s ON s.id = f.search \
                   JOIN search_hits h ON h.search = f.search AND h.rank = f.rank AND h.span = f.span \
                   JOIN visible_videos v ON v.id = h.video LEFT JOIN visible_videos q ON q.id = s.video \
                   WHERE f.verdict = 'relevant' AND s.at_ms >= $1 AND s.at_ms < $2 AND ($3 IS NULL OR s.key = $3) \
                   AND ($4 OR h.level <> 'video') ORDER BY s.id, h.rank, h.span LIMIT $5";
        let key = match of {
            SearchesOf::Everybody => None,
            SearchesOf::Key(key) => Some(key),
        };
        let most = MOST_RELEVANT as i64;
        let values = values![between_ms.start, between_ms.end, key, full_videos, most + 1];
        let rows = self.rows(sql, values).await?;
        merged(&rows)
    }

    /// The condition on `evaluations u` under which the caller sees its job. Adds its value to those of the statement.
    pub(super) fn sees_evaluation_job(&self, values: &mut Vec<Value>) -> String {
        match self.visibility() {
            Visibility::All => "TRUE".to_owned(),
            Visibility::Matching(_) => {
                values.push(self.key().into());
                format!("u.owner = ${}", values.len())
            }
        }
    }
}

impl Catalog {
    /// Queries of an evaluation that not every space has answered, in order.
    pub async fn unanswered_queries(
        &self,
        id: Uuid,
        limit: u32,
    ) -> Result<Vec<EvaluatedQuery>, CatalogError> {
        let sql = "SELECT place, query, outcome FROM evaluation_queries \
                   WHERE evaluation = $1 AND outcome IS NULL ORDER BY place LIMIT $2";
        self.database.rows(sql, values![id, limit]).await?.iter().map(query_from).collect()
    }

    /// Queries of an evaluation in order, after the place `after`.
    pub async fn answered_queries(
        &self,
        id: Uuid,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EvaluatedQuery>, CatalogError> {
        let sql = "SELECT place, query, outcome FROM evaluation_queries \
                   WHERE evaluation = $1 AND place > $2 AND outcome IS NOT NULL ORDER BY place LIMIT $3";
        self.database.rows(sql, values![id, after, limit]).await?.iter().map(query_from).collect()
    }

    /// Number of queries of an evaluation that every space has answered.
    pub async fn count_answered(&self, id: Uuid) -> Result<i64, CatalogError> {
        let sql = "SELECT count(*) AS answered FROM evaluation_queries \
                   WHERE evaluation = $1 AND outcome IS NOT NULL";
        self.database.row(sql, values![id]).await?.map_or(Ok(0), |row| row.get("answered"))
    }

    /// Stores what the spaces found. Again: no change.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`].
    pub async fn store_outcomes(&self, lease: &Lease, found: &[NewOutcome]) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        if held(&mut tx, lease, JobName::Evaluation).await?.is_none() {
            return Ok(());
        }
        for NewOutcome { place, outcome } in found {
            let sql = "UPDATE evaluation_queries SET outcome = $3 \
                       WHERE evaluation = $1 AND place = $2 AND outcome IS NULL";
            tx.execute(sql, values![lease.job, *place, to_json(outcome)?]).await?;
        }
        tx.commit().await
    }

    /// Stores the figures of an evaluation, and finishes its job. Again: no change.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`].
    pub async fn finish_evaluation(
        &self,
        lease: &Lease,
        report: &serde_json::Value,
    ) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        if held(&mut tx, lease, JobName::Evaluation).await?.is_none() {
            return Ok(());
        }
        let sql = "UPDATE evaluations SET report = $2 WHERE id = $1";
        tx.execute(sql, values![lease.job, to_json(report)?]).await?;
        jobs::succeed(&mut tx, lease.job).await?;
        tx.commit().await
    }

    /// Deletes the evaluations that have expired. Returns their number.
    pub async fn forget_evaluations(&self) -> Result<u64, CatalogError> {
        let mut forgotten = 0;
        loop {
            let mut tx = self.database.begin().await?;
            let now = tx.now_ms().await?;
            let sql = "SELECT id FROM evaluations WHERE expires_at_ms <= $1 ORDER BY id LIMIT $2";
            let rows = tx.rows(sql, values![now, FORGOTTEN_AT_ONCE]).await?;
            if rows.is_empty() {
                return Ok(forgotten);
            }
            for row in &rows {
                delete(&mut tx, row.get("id")?).await?;
            }
            tx.commit().await?;
            forgotten += rows.len() as u64;
        }
    }
}

fn select(condition: &str) -> Sql {
    Sql::Built(format!("SELECT {COLUMNS} FROM evaluations u JOIN jobs j ON j.id = u.id WHERE {condition}"))
}

async fn check_room(tx: &mut Tx, more: i64) -> Result<(), CatalogError> {
    let sql = "SELECT count(*) AS evaluations, CAST(COALESCE(sum(queries), 0) AS bigint) AS queries FROM evaluations";
    let Some(row) = tx.row(sql, values![]).await? else { return Ok(()) };
    let (evaluations, queries): (i64, i64) = (row.get("evaluations")?, row.get("queries")?);
    if evaluations < MOST_EVALUATIONS && queries.saturating_add(more) <= MOST_EVALUATED_IN_ALL {
        return Ok(());
    }
    Err(CatalogError::Conflict(format!(
        "the library has {evaluations} evaluations with {queries} queries; it may have {MOST_EVALUATIONS} with \
         {MOST_EVALUATED_IN_ALL}; delete some first"
    )))
}

/// The job first: a worker that stores outcomes holds its row.
async fn delete(tx: &mut Tx, id: Uuid) -> Result<(), CatalogError> {
    for sql in [
        "DELETE FROM jobs WHERE id = $1 AND kind = 'evaluation'",
        "DELETE FROM evaluation_queries WHERE evaluation = $1",
        "DELETE FROM evaluations WHERE id = $1",
    ] {
        tx.execute(sql, values![id]).await?;
    }
    Ok(())
}

/// The queries in rows of judged hits. Equal queries, with equal filters, become one.
fn merged(rows: &[Row]) -> Result<JudgedQueries, CatalogError> {
    let mut judged = JudgedQueries { is_cut: rows.len() > MOST_RELEVANT, ..JudgedQueries::default() };
    // The place of each query; `None`: it can't be asked again.
    let mut known: HashMap<(String, Option<String>), Option<usize>> = HashMap::new();
    let mut seen: HashSet<(usize, VideoRange)> = HashSet::new();
    for row in rows {
        let key = (row.get("query_hash")?, row.get("filter")?);
        let place = match known.get(&key) {
            Some(place) => *place,
            None => {
                let query = askable(row)?;
                let place = query.is_some().then_some(judged.queries.len());
                judged.left_out += usize::from(query.is_none());
                judged.queries.extend(query);
                known.insert(key, place);
                place
            }
        };
        let hit = range(row, ["hit_video", "hit_start_ms", "hit_end_ms"])?;
        if let Some(place) = place.filter(|place| seen.insert((*place, hit))) {
            judged.queries[place].relevant.push(hit);
        }
    }
    Ok(judged)
}

/// The query of a logged search, without what it should find; `None` if the log does not hold all of it: it was a file, its
/// video is gone, its text is too long, or the log keeps hashes.
fn askable(row: &Row) -> Result<Option<EvaluationQuery>, CatalogError> {
    let text: Option<String> = row.get("text")?;
    let filter: Option<serde_json::Value> =
        row.get::<Option<String>>("filter")?.as_deref().map(parse_json).transpose()?;
    let clip = clip(row)?;
    let is_cut = text.as_ref().is_some_and(|text| text.chars().count() >= LONGEST_LOGGED_TEXT);
    let has_filter = match &filter {
        Some(filter) => Filter::parse(filter).is_ok(),
        None => !row.get::<bool>("filtered")?,
    };
    let has_query = match kind(row)? {
        SearchKind::Text => text.is_some(),
        SearchKind::Clip => clip.is_some() && text.is_none(),
        SearchKind::Composed => clip.is_some() && text.is_some(),
        SearchKind::Image | SearchKind::Examples => false,
    };
    let query = EvaluationQuery { text, clip, filter, ..EvaluationQuery::default() };
    Ok(Some(query).filter(|_| has_filter && has_query && !is_cut))
}

/// The stored clip of a logged query, if its video is there.
fn clip(row: &Row) -> Result<Option<VideoRange>, CatalogError> {
    let video: Option<Uuid> = row.get("video")?;
    let times = row.get::<Option<i64>>("start_ms")?.zip(row.get::<Option<i64>>("end_ms")?);
    let is_upload: bool = row.get("uploaded")?;
    let range = video.zip(times).map(|(video, (start_ms, end_ms))| VideoRange { video, start_ms, end_ms });
    // A still image is logged as a millisecond of its video.
    let is_still = range.is_some_and(|range| range.end_ms - range.start_ms <= 1);
    Ok(range.filter(|_| !is_upload && !is_still))
}

/// The range in these columns: the video, the start and the end.
fn range(row: &Row, [video, start, end]: [&str; 3]) -> Result<VideoRange, CatalogError> {
    Ok(VideoRange { video: row.get(video)?, start_ms: row.get(start)?, end_ms: row.get(end)? })
}

fn from_row(row: &Row) -> Result<Evaluation, CatalogError> {
    Ok(Evaluation {
        job: jobs::from_row(row)?,
        owner: row.get("owner")?,
        name: row.get("name")?,
        settings: parse_json(&row.get::<String>("settings")?)?,
        queries: row.get("queries")?,
        report: row.get::<Option<String>>("report")?.as_deref().map(parse_json).transpose()?,
        expires_at_ms: row.get("expires_at_ms")?,
    })
}

fn query_from(row: &Row) -> Result<EvaluatedQuery, CatalogError> {
    Ok(EvaluatedQuery {
        place: row.get("place")?,
        query: parse_json(&row.get::<String>("query")?)?,
        outcome: row.get::<Option<String>>("outcome")?.as_deref().map(parse_json).transpose()?,
    })
}
