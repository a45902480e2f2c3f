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

/// The nearest allowed vectors.
pub(super) async fn nearest(
    connection: &mut PgConnection,
    state: State,
    query: &UnitVector,
    ask: &Ask,
) -> Result<Hits, EngineError> {
    let only = ask.only.as_ref().map(|only| &only.keys);
    let allowed = only.map_or(state.live, |only| only.len().min(state.live));
    if allowed == 0 {
        return Ok(Hits { hits: Vec::new(), complete: true, exact: true });
    }
    if let Some(only) = only.filter(|only| only.len() <= LISTED) {
        return listed(connection, state, query, only, ask.k).await;
    }
    let is_few = state.live <= COMPARED || state.live / 4 <= ask.k as u64;
    if !ask.exact && state.graph && !is_few {
        let hits = walk(connection, state, query, ask).await?;
        if hits.len() > ask.k || allowed > COMPARED_AFTER_A_WALK {
            return Ok(first(hits, ask.k, false));
        }
    }
    compared(connection, state, query, ask).await
}

/// The best `k` of more hits than that, if there are more.
fn first(mut hits: Vec<Hit>, k: usize, exact: bool) -> Hits {
    Hit::sort(&mut hits);
    let complete = exact && hits.len() <= k;
    hits.truncate(k);
    Hits { hits, complete, exact }
}

async fn listed(
    connection: &mut PgConnection,
    state: State,
    query: &UnitVector,
    only: &KeySet,
    k: usize,
) -> Result<Hits, EngineError> {
    let sql = format!(
        "SELECT key, -(unit <#> {}) AS score FROM {} WHERE level = {} AND key = ANY($2) ORDER BY score DESC, key LIMIT $3",
        query_value(state),
        table(state.at.space),
        level_number(state.at.level)
    );
    let found = sqlx::query(AssertSqlSafe(sql)).bind(PgUnit(query)).bind(bigints(only)).bind(one_more(k));
    let rows = found.fetch_all(connection).await.map_err(failed)?;
    Ok(first(rows.iter().map(hit).collect::<Result<_, _>>()?, k, true))
}

/// Compares all allowed vectors. The score is no expression of the graph's index, so Postgres can't walk it.
async fn compared(
    connection: &mut PgConnection,
    state: State,
    query: &UnitVector,
    ask: &Ask,
) -> Result<Hits, EngineError> {
    let only = ask.only.as_ref().map(|only| &only.keys);
    let mut wanted = ask.k;
    loop {
        let sql = format!(
            "SELECT key, -(unit <#> {}) AS score FROM {} WHERE level = {}{} ORDER BY score DESC, key LIMIT $2",
            query_value(state),
            table(state.at.space),
            level_number(state.at.level),
            condition(only)
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(PgUnit(query)).bind(one_more(wanted));
        let found = found.bind(only.map(|only| multirange(only, RANGES)));
        let rows = found.fetch_all(&mut *connection).await.map_err(failed)?;
        let hits = allowed(rows.iter().map(hit).collect::<Result<_, _>>()?, only);
        if hits.len() > ask.k || rows.len() <= wanted {
            return Ok(first(hits, ask.k, true));
        }
        wanted = wanted.saturating_mul(4);
    }
}

/// Walks the graph. Returns one hit more than asked for, unless the walk ended at pgvector's limits.
async fn walk(
    connection: &mut PgConnection,
    state: State,
    query: &UnitVector,
    ask: &Ask,
) -> Result<Vec<Hit>, EngineError> {
    let only = ask.only.as_ref().map(|only| &only.keys);
    let mut wanted = ask.k;
    loop {
        let candidates = wanted.saturating_mul(2).clamp(CANDIDATES, MOST_CANDIDATES);
        let mut tx = sqlx::Connection::begin(&mut *connection).await.map_err(failed)?;
        // Postgres knows nothing about how many vectors a range of keys excludes, and would rather sort the table.
        let settings = format!(
            "SET LOCAL hnsw.ef_search = {candidates}; SET LOCAL hnsw.iterative_scan = 'strict_order'; \
             SET LOCAL hnsw.max_scan_tuples = 100000; SET LOCAL enable_seqscan = off; \
             SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; \
             SET LOCAL plan_cache_mode = 'force_custom_plan'"
        );
        sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut *tx).await.map_err(failed)?;
        let sql = format!(
            "SELECT key, -(unit <#> {value}) AS score FROM {} WHERE level = {}{} ORDER BY unit <#> {value} LIMIT $2",
            table(state.at.space),
            level_number(state.at.level),
            condition(only),
            value = query_value(state),
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(PgUnit(query)).bind(one_more(wanted));
        let found = found.bind(only.map(|only| multirange(only, RANGES)));
        let rows = found.fetch_all(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        let hits = allowed(rows.iter().map(hit).collect::<Result<_, _>>()?, only);
        if hits.len() > ask.k || rows.len() <= wanted {
            return Ok(hits);
        }
        wanted = wanted.saturating_mul(4);
    }
}

/// The condition of a filter. Without one the parameter is bound all the same, so that statements have the same values.
fn condition(only: Option<&KeySet>) -> &'static str {
    match only {
        None => " AND $3::text IS NULL",
        Some(_) => " AND key <@ $3::text::int8multirange",
    }
}

/// Drops keys that the ranges of a filter took in besides.
fn allowed(mut hits: Vec<Hit>, only: Option<&KeySet>) -> Vec<Hit> {
    hits.retain(|hit| only.is_none_or(|only| only.contains(hit.key)));
    hits
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
