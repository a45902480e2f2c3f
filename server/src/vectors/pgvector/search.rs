//! The nearest vectors of one collection: by listed keys, by comparing all, or by walking the graph.

use sqlx::{AssertSqlSafe, PgConnection, Row};

use super::failure::failed;
use super::tables::{column, get, level_number, table};
use super::values::{PgUnit, bigints, multirange};
use super::{EngineError, Hit, Hits, Scored};
use crate::terms::{Collection, KeySet, SpanKey, UnitVector};
use crate::vectors::Ask;

/// Up to this many allowed keys are listed in the statement and compared one by one.
const LISTED: u64 = 10_000;
/// Up to this many live vectors are compared one by one.
pub(super) const COMPARED: u64 = 2_000;
/// If the graph finds too few, up to this many allowed vectors are compared one by one.
const COMPARED_AFTER_A_WALK: u64 = 200_000;
/// Most ranges of keys in a statement.
const RANGES: usize = 50_000;
/// Fewest candidates of a walk: HNSW's efSearch.
const CANDIDATES: usize = 200;
/// Most candidates that pgvector allows.
const MOST_CANDIDATES: usize = 1_000;

/// A collection as a search finds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) at: Collection,
    pub(super) dim: usize,
    pub(super) live: u64,
    pub(super) graph: bool,
}

/// A search of one collection, for any number of queries.
pub(super) struct Search<'a> {
    state: State,
    ask: &'a Ask,
    /// The allowed keys as ranges, if they are too many to be listed. They may take in other keys.
    ranges: Option<String>,
}

impl Search<'_> {
    pub(super) fn new(state: State, ask: &Ask) -> Search<'_> {
        let many = ask.only.as_ref().map(|only| &only.keys).filter(|keys| keys.len() > LISTED);
        Search { state, ask, ranges: many.map(|keys| multirange(keys, RANGES)) }
    }

    fn only(&self) -> Option<&KeySet> {
        self.ask.only.as_ref().map(|only| &only.keys)
    }

    /// The allowed vectors nearest to a query.
    pub(super) async fn nearest(
        &self,
        connection: &mut PgConnection,
        query: &UnitVector,
    ) -> Result<Hits, EngineError> {
        let (live, k) = (self.state.live, self.ask.k);
        let allowed = self.only().map_or(live, |only| only.len().min(live));
        if allowed == 0 {
            return Ok(Hits { hits: Vec::new(), complete: true, exact: true });
        }
        if let Some(only) = self.only().filter(|only| only.len() <= LISTED) {
            return self.listed(connection, query, only).await;
        }
        let is_few = live <= COMPARED || live / 4 <= k as u64;
        if !self.ask.exact && self.state.graph && !is_few {
            let hits = self.walk(connection, query).await?;
            if hits.len() > k || allowed > COMPARED_AFTER_A_WALK {
                return Ok(first(hits, k, false));
            }
        }
        self.compared(connection, query).await
    }

    async fn listed(
        &self,
        connection: &mut PgConnection,
        query: &UnitVector,
        only: &KeySet,
    ) -> Result<Hits, EngineError> {
        let sql = self.statement("key = ANY($2)", "score DESC, key");
        let found = sqlx::query(AssertSqlSafe(sql)).bind(PgUnit(query)).bind(bigints(only));
        let rows = found.bind(one_more(self.ask.k)).fetch_all(connection).await.map_err(failed)?;
        Ok(first(rows.iter().map(hit).collect::<Result<_, _>>()?, self.ask.k, true))
    }

    /// Compares all allowed vectors. The score is no expression of the graph's index, so Postgres can't walk it.
    async fn compared(&self, connection: &mut PgConnection, query: &UnitVector) -> Result<Hits, EngineError> {
        let sql = self.statement(self.condition(), "score DESC, key");
        let mut wanted = self.ask.k;
        loop {
            let found = sqlx::query(AssertSqlSafe(sql.clone())).bind(PgUnit(query)).bind(&self.ranges);
            let rows = found.bind(one_more(wanted)).fetch_all(&mut *connection).await.map_err(failed)?;
            let hits = self.allowed(rows.iter().map(hit).collect::<Result<_, _>>()?);
            if hits.len() > self.ask.k || rows.len() <= wanted {
                return Ok(first(hits, self.ask.k, true));
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// Walks the graph. Returns one hit more than asked for, unless the walk ended at pgvector's limits.
    async fn walk(&self, connection: &mut PgConnection, query: &UnitVector) -> Result<Vec<Hit>, EngineError> {
        let order = format!("unit <#> {}", query_value(self.state));
        let sql = self.statement(self.condition(), &order);
        let mut wanted = self.ask.k;
        loop {
            let mut tx = sqlx::Connection::begin(&mut *connection).await.map_err(failed)?;
            sqlx::raw_sql(AssertSqlSafe(walk_settings(wanted))).execute(&mut *tx).await.map_err(failed)?;
            let found = sqlx::query(AssertSqlSafe(sql.clone())).bind(PgUnit(query)).bind(&self.ranges);
            let rows = found.bind(one_more(wanted)).fetch_all(&mut *tx).await.map_err(failed)?;
            tx.commit().await.map_err(failed)?;
            let hits = self.allowed(rows.iter().map(hit).collect::<Result<_, _>>()?);
            if hits.len() > self.ask.k || rows.len() <= wanted {
                return Ok(hits);
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// The statement for the best vectors that meet a condition: $1 the query, $2 of the condition, $3 how many.
    fn statement(&self, condition: &str, order: &str) -> String {
        let State { at, .. } = self.state;
        format!(
            "SELECT key, -(unit <#> {}) AS score FROM {} WHERE level = {} AND {condition} ORDER BY {order} LIMIT $3",
            query_value(self.state),
            table(at.space),
            level_number(at.level)
        )
    }

    /// The condition of a filter. Without one its parameter is null.
    fn condition(&self) -> &'static str {
        match self.ranges {
            None => "$2::text IS NULL",
            Some(_) => "key <@ $2::text::int8multirange",
        }
    }

    /// Drops keys that the ranges took in besides the allowed ones.
    fn allowed(&self, mut hits: Vec<Hit>) -> Vec<Hit> {
        hits.retain(|hit| self.only().is_none_or(|only| only.contains(hit.key)));
        hits
    }
}

/// Settings of a walk for `wanted` hits. Postgres does not know how many vectors a set of key ranges excludes, and would
/// sort the table instead.
fn walk_settings(wanted: usize) -> String {
    let candidates = wanted.saturating_mul(2).clamp(CANDIDATES, MOST_CANDIDATES);
    format!(
        "SET LOCAL hnsw.ef_search = {candidates}; SET LOCAL hnsw.iterative_scan = 'strict_order'; \
         SET LOCAL hnsw.max_scan_tuples = 100000; SET LOCAL enable_seqscan = off; \
         SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; \
         SET LOCAL plan_cache_mode = 'force_custom_plan'"
    )
}

/// The best `k` of more hits than that, if there are more.
fn first(mut hits: Vec<Hit>, k: usize, exact: bool) -> Hits {
    let complete = exact && hits.len() <= k;
    Hit::keep_best(&mut hits, k);
    Hits { hits, complete, exact }
}

/// The cosines of exactly these keys with each query.
pub(super) async fn scores(
    connection: &mut PgConnection,
    state: State,
    keys: &KeySet,
    queries: &[UnitVector],
) -> Result<Vec<Scored>, EngineError> {
    let cast = if state.dim <= 2_000 { "" } else { "::halfvec" };
    let sql = format!(
        "SELECT key, ARRAY(SELECT -(unit <#> asked.value{cast}) FROM unnest($1::vector[]) WITH ORDINALITY \
         AS asked (value, number) ORDER BY asked.number) AS scores FROM {} WHERE level = {} AND key = ANY($2) ORDER BY key",
        table(state.at.space),
        level_number(state.at.level)
    );
    let mut scored = Vec::new();
    for keys in bigints(keys).chunks(LISTED as usize) {
        let units: Vec<PgUnit> = queries.iter().map(PgUnit).collect();
        let found = sqlx::query(AssertSqlSafe(sql.clone())).bind(units).bind(keys);
        for row in found.fetch_all(&mut *connection).await.map_err(failed)? {
            let cosines: Vec<f64> = get(&row, "scores")?;
            let cosines = cosines.into_iter().map(|cosine| cosine as f32).collect();
            scored.push(Scored { key: key(&row)?, cosines });
        }
    }
    Ok(scored)
}

/// The first parameter as a vector of the column's type.
fn query_value(state: State) -> String {
    match state.dim {
        0..=2_000 => "$1".to_owned(),
        dim => format!("$1::{}", column(dim)),
    }
}

fn one_more(k: usize) -> i64 {
    i64::try_from(k).unwrap_or(i64::MAX - 1).saturating_add(1)
}

fn hit(row: &sqlx::postgres::PgRow) -> Result<Hit, EngineError> {
    Ok(Hit { key: key(row)?, score: get::<f64>(row, "score")? as f32 })
}

fn key(row: &sqlx::postgres::PgRow) -> Result<SpanKey, EngineError> {
    let key: i64 = row.try_get("key").map_err(failed)?;
    Ok(SpanKey::new(key.cast_unsigned()))
}
