//! Figures of the query log and of added videos between two times, for a dashboard.
//!
//! All figures of searches are of one list, the newest searches that were asked for, so that no range of time costs more
//! than the longest list.

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::instant::DAY_MS;
use super::searches::{Conditions, kind};
use super::types::*;
use super::view::View;

/// Entries of a list of texts or of slow searches.
const LISTED: u32 = 20;

/// The percentiles of durations. Of `n` searches in order of duration, percentile `p` is the one at place `ceil(n * p / 100)`.
const PERCENTILES: [u8; 3] = [50, 95, 99];

impl View<'_> {
    /// Figures of the newest `asked.limit` searches that were asked for, and of the visible videos that were added in the same
    /// time. `asked.before` does not count.
    pub async fn insights(&self, asked: &SearchesAsked) -> Result<Insights, CatalogError> {
        // One snapshot: a search that is logged meanwhile is in all figures or in none.
        let mut tx = self.database().snapshot().await?.within(self.visibility().clone());
        let counted = Counted::of(asked);
        let (searches, days) = (counted.all(&mut tx).await?, counted.days(&mut tx).await?);
        let insights = Insights {
            complete: searches.searches < i64::from(asked.limit) || !counted.leaves_out(&mut tx).await?,
            searches,
            days,
            added: added(&mut tx, asked).await?,
            kinds: counted.kinds(&mut tx).await?,
            frequent: counted.texts(&mut tx, "").await?,
            unanswered: counted.texts(&mut tx, "AND s.hits = 0").await?,
            slowest: counted.slowest(&mut tx).await?,
        };
        tx.rollback().await?;
        Ok(insights)
    }
}

/// The counted searches, as a part of statements.
struct Counted {
    /// `searches s WHERE …`.
    wanted: String,
    /// `(SELECT … LIMIT …) s`: the newest of them.
    newest: String,
    /// Values of the conditions, and the number of searches as the last.
    values: Vec<Value>,
}

impl Counted {
    fn of(asked: &SearchesAsked) -> Counted {
        let Conditions { texts, mut values } = Conditions::without_position(asked);
        let texts = if texts.is_empty() { "TRUE".to_owned() } else { texts.join(" AND ") };
        values.push(asked.limit.into());
        let wanted = format!("searches s WHERE {texts}");
        let newest = format!(
            "(SELECT s.id, s.at_ms, s.kind, s.text, s.query_hash, s.hits, s.total_ms FROM {wanted} \
             ORDER BY s.at_ms DESC, s.id DESC LIMIT ${}) s",
            values.len()
        );
        Counted { wanted, newest, values }
    }

    /// Whether there are more searches than are counted.
    async fn leaves_out(&self, tx: &mut Tx) -> Result<bool, CatalogError> {
        let sql = format!("SELECT s.id FROM {} LIMIT 1 OFFSET ${}", self.wanted, self.values.len());
        Ok(tx.row(Sql::Built(sql), self.values.clone()).await?.is_some())
    }

    async fn all(&self, tx: &mut Tx) -> Result<SearchFigures, CatalogError> {
        let row = tx.row(self.figures("CAST(0 AS bigint)"), self.values.clone()).await?;
        row.as_ref().map_or(Ok(SearchFigures::default()), figures)
    }

    async fn days(&self, tx: &mut Tx) -> Result<Vec<SearchDay>, CatalogError> {
        let rows = tx.rows(self.figures(&format!("s.at_ms / {DAY_MS}")), self.values.clone()).await?;
        rows.iter().map(|row| Ok(SearchDay { day: row.get("part")?, figures: figures(row)? })).collect()
    }

    /// Figures of the searches that agree in an expression, in its order.
    fn figures(&self, part: &str) -> Sql {
        let within = PERCENTILES.map(|p| {
            format!("max(CASE WHEN d.place <= (d.searches * {p} + 99) / 100 THEN d.total_ms END) AS p{p}")
        });
        Sql::Built(format!(
            "SELECT d.part, max(d.searches) AS searches, sum(d.is_empty) AS without_results, {} FROM \
             (SELECT {part} AS part, s.total_ms, CASE WHEN s.hits = 0 THEN 1 ELSE 0 END AS is_empty, \
             row_number() OVER (PARTITION BY {part} ORDER BY s.total_ms) AS place, \
             count(*) OVER (PARTITION BY {part}) AS searches FROM {}) d GROUP BY d.part ORDER BY d.part",
            within.join(", "),
            self.newest
        ))
    }

    async fn kinds(&self, tx: &mut Tx) -> Result<Vec<KindFigures>, CatalogError> {
        let sql = format!(
            "SELECT s.kind, count(*) AS searches, sum(CASE WHEN s.hits = 0 THEN 1 ELSE 0 END) AS without_results \
             FROM {} GROUP BY s.kind ORDER BY count(*) DESC, s.kind",
            self.newest
        );
        let rows = tx.rows(Sql::Built(sql), self.values.clone()).await?;
        let figures = |row: &Row| {
            let (searches, without_results) = (row.get("searches")?, row.get("without_results")?);
            Ok(KindFigures { kind: kind(row)?, searches, without_results })
        };
        rows.iter().map(figures).collect()
    }

    /// The most frequent texts of text searches. The change to a clip says little without the clip, and is left out.
    async fn texts(&self, tx: &mut Tx, condition: &str) -> Result<Vec<FrequentText>, CatalogError> {
        // The newest search by each text has place 1.
        let sql = format!(
            "SELECT q.id, q.text, q.at_ms, q.searches, q.without_results FROM (SELECT s.id, s.text, s.at_ms, \
             row_number() OVER (PARTITION BY s.query_hash ORDER BY s.at_ms DESC, s.id DESC) AS place, \
             count(*) OVER (PARTITION BY s.query_hash) AS searches, \
             sum(CASE WHEN s.hits = 0 THEN 1 ELSE 0 END) OVER (PARTITION BY s.query_hash) AS without_results \
             FROM {} WHERE s.kind = 'text' AND s.text IS NOT NULL {condition}) q \
             WHERE q.place = 1 ORDER BY q.searches DESC, q.at_ms DESC, q.id DESC LIMIT {LISTED}",
            self.newest
        );
        let rows = tx.rows(Sql::Built(sql), self.values.clone()).await?;
        let text = |row: &Row| {
            Ok(FrequentText {
                text: row.get("text")?,
                searches: row.get("searches")?,
                without_results: row.get("without_results")?,
                newest: row.get("id")?,
                newest_at_ms: row.get("at_ms")?,
            })
        };
        rows.iter().map(text).collect()
    }

    async fn slowest(&self, tx: &mut Tx) -> Result<Vec<SlowSearch>, CatalogError> {
        let sql = format!(
            "SELECT s.id, s.at_ms, s.kind, s.total_ms FROM {} \
             ORDER BY s.total_ms DESC, s.at_ms DESC, s.id DESC LIMIT {LISTED}",
            self.newest
        );
        let rows = tx.rows(Sql::Built(sql), self.values.clone()).await?;
        let search = |row: &Row| {
            let (id, at_ms, total_ms) = (row.get("id")?, row.get("at_ms")?, row.get("total_ms")?);
            Ok(SlowSearch { id, at_ms, kind: kind(row)?, total_ms })
        };
        rows.iter().map(search).collect()
    }
}

fn figures(row: &Row) -> Result<SearchFigures, CatalogError> {
    let latency = Latency { p50: row.get("p50")?, p95: row.get("p95")?, p99: row.get("p99")? };
    Ok(SearchFigures {
        searches: row.get("searches")?,
        without_results: row.get("without_results")?,
        latency: Some(latency),
    })
}

/// The days on which visible videos were added.
async fn added(tx: &mut Tx, asked: &SearchesAsked) -> Result<Vec<AddedDay>, CatalogError> {
    let (since, until) = (asked.since_ms.unwrap_or(i64::MIN), asked.until_ms.unwrap_or(i64::MAX));
    let sql = format!(
        "SELECT v.created_at_ms / {DAY_MS} AS day, count(*) AS videos, \
         CAST(COALESCE(sum(v.duration_ms), 0) AS bigint) AS duration_ms FROM visible_videos v \
         WHERE v.created_at_ms >= $1 AND v.created_at_ms < $2 GROUP BY v.created_at_ms / {DAY_MS} ORDER BY 1"
    );
    let rows = tx.visible_rows(Sql::Built(sql), values![since, until]).await?;
    let day = |row: &Row| {
        let (videos, duration_ms) = (row.get("videos")?, row.get("duration_ms")?);
        Ok(AddedDay { day: row.get("day")?, videos, duration_ms })
    };
    rows.iter().map(day).collect()
}
