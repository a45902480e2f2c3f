//! Builds the HNSW index of a collection once it is large enough. Searches and writes go on meanwhile.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};

use super::failure::failed;
use super::search::COMPARED;
use super::tables::{get, graph, level_number, operators, table};
use super::{EngineError, Level};
use crate::terms::Collection;

/// Interval of the look for collections without a graph, beside the one after each batch.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Links of a vector in each upper layer (HNSW's M); the lowest has twice as many.
const LINKS: usize = 16;
/// HNSW's efConstruction.
const CANDIDATES_LINKING: usize = 128;

/// Builds the graphs that are due. Does nothing while another server builds one.
pub(super) async fn build(pool: &PgPool) -> Result<(), EngineError> {
    let sql = "SELECT space, level, dim FROM reprise_vectors.collections JOIN reprise_vectors.spaces ON spaces.key = space \
               WHERE NOT graph AND live > $1 ORDER BY space, level";
    let due = sqlx::query(sql).bind(COMPARED.cast_signed()).fetch_all(pool).await.map_err(failed)?;
    if due.is_empty() {
        return Ok(());
    }
    // A connection of its own: the lock and the settings belong to the session.
    let mut connection = PgConnection::connect_with(&pool.connect_options()).await.map_err(failed)?;
    let sql = "SELECT pg_try_advisory_lock(hashtextextended('reprise_vectors graphs', 0)) AS mine";
    if !get::<bool>(&connection.fetch_one(sql).await.map_err(failed)?, "mine")? {
        return Ok(());
    }
    connection.execute("SET statement_timeout = 0").await.map_err(failed)?;
    for row in due {
        let number: i16 = get(&row, "level")?;
        let Some(level) = Level::ALL.into_iter().find(|level| level_number(*level) == number) else {
            continue;
        };
        let at = Collection { space: get::<i32>(&row, "space")?.cast_unsigned(), level };
        let dim = usize::try_from(get::<i32>(&row, "dim")?).unwrap_or(0);
        build_one(&mut connection, at, dim).await?;
    }
    connection.close().await.map_err(failed)
}

async fn build_one(connection: &mut PgConnection, at: Collection, dim: usize) -> Result<(), EngineError> {
    let (name, table, level) = (graph(at), table(at.space), level_number(at.level));
    // What an interrupted build left behind is invalid, and would stand in the way.
    let sql = format!("DROP INDEX CONCURRENTLY IF EXISTS reprise_vectors.{name}");
    connection.execute(AssertSqlSafe(sql)).await.map_err(failed)?;
    let operators = operators(dim);
    let sql = format!(
        "CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (unit {operators}) \
         WITH (m = {LINKS}, ef_construction = {CANDIDATES_LINKING}) WHERE level = {level}"
    );
    connection.execute(AssertSqlSafe(sql)).await.map_err(failed)?;
    let sql = "WITH built AS (UPDATE reprise_vectors.collections SET graph = TRUE WHERE space = $1 AND level = $2) \
               UPDATE reprise_vectors.engine SET generation = generation + 1";
    let built = sqlx::query(sql).bind(at.space.cast_signed()).bind(level);
    built.execute(connection).await.map_err(failed)?;
    tracing::info!(space = at.space, level = ?at.level, "the vector engine has a new graph");
    Ok(())
}
