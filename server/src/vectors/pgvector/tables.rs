//! The tables of the engine, in a schema of their own: its state, its spaces, the sizes of its collections, and a table
//! of vectors for each space.

use std::collections::HashMap;
use std::ops::Range;

use futures_util::TryStreamExt;
use roaring::RoaringTreemap;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};
use uuid::Uuid;

use super::failure::failed;
use super::values::bigint;
use super::{EngineError, LONGEST_VECTOR};
use crate::terms::{Collection, KeySet, Level, SpaceInfo, SpanKey};

/// Raised when the tables change.
const FORMAT: i32 = 1;
/// Oldest usable version of the extension: 0.8 brought iterative scans.
const OLDEST: [u32; 2] = [0, 8];
/// Values of the longest vector that surely fits a page of 8 kB with the rest of its row.
const LONGEST_IN_ROW: usize = 1_900;

const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS reprise_vectors;
CREATE TABLE IF NOT EXISTS reprise_vectors.engine (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    format     INTEGER NOT NULL,
    library    UUID NOT NULL,
    applied    BIGINT NOT NULL DEFAULT 0,
    fence      BIGINT NOT NULL DEFAULT 0,
    generation BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS reprise_vectors.spaces (
    key INTEGER PRIMARY KEY,
    id  TEXT NOT NULL,
    dim INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS reprise_vectors.collections (
    space INTEGER NOT NULL REFERENCES reprise_vectors.spaces (key) ON DELETE CASCADE,
    level SMALLINT NOT NULL,
    live  BIGINT NOT NULL,
    graph BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (space, level)
);";

/// Number of a level in the tables.
pub(super) fn level_number(level: Level) -> i16 {
    match level {
        Level::Video => 0,
        Level::Clip => 1,
        Level::Moment => 2,
        Level::Passage => 3,
    }
}

/// The table of a space.
pub(super) fn table(space: u32) -> String {
    format!("reprise_vectors.space_{space}")
}

/// The name of a collection's graph, without its schema.
pub(super) fn graph(at: Collection) -> String {
    format!("space_{}_level_{}", at.space, level_number(at.level))
}

/// The column type of vectors of `dim` values. HNSW indexes hold up to 2,000 values of 32 bits, and 4,000 of 16.
pub(super) fn column(dim: usize) -> String {
    match dim {
        0..=2_000 => format!("vector({dim})"),
        _ => format!("halfvec({dim})"),
    }
}

/// The operator class of inner products for vectors of `dim` values.
pub(super) fn operators(dim: usize) -> &'static str {
    match dim {
        0..=2_000 => "vector_ip_ops",
        _ => "halfvec_ip_ops",
    }
}

/// Makes the extension and the tables, and checks that they belong to `library`.
///
/// # Errors
/// [`EngineError::Unusable`] without a recent extension; [`EngineError::Foreign`].
pub(super) async fn prepare(connection: &mut PgConnection, library: Uuid) -> Result<(), EngineError> {
    let mut tx = sqlx::Connection::begin(connection).await.map_err(failed)?;
    // Two servers that start at once would both make extension and schema, and one would fail.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('reprise_vectors', 0))";
    tx.execute(lock).await.map_err(failed)?;
    check_extension(&mut tx).await?;
    tx.execute(TABLES).await.map_err(failed)?;
    let sql =
        "INSERT INTO reprise_vectors.engine (one, format, library) VALUES (1, $1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(FORMAT).bind(library).execute(&mut *tx).await.map_err(failed)?;
    let row = tx.fetch_one("SELECT format, library FROM reprise_vectors.engine").await.map_err(failed)?;
    let (format, found): (i32, Uuid) = (get(&row, "format")?, get(&row, "library")?);
    if format != FORMAT {
        return Err(EngineError::Unusable(format!(
            "another version of reprise made the tables of schema reprise_vectors (format {format}, not {FORMAT}): drop \
             the schema; this version fills it again"
        )));
    }
    if found != library {
        return Err(EngineError::Foreign { found: found.to_string(), library: library.to_string() });
    }
    tx.commit().await.map_err(failed)
}

async fn check_extension(connection: &mut PgConnection) -> Result<(), EngineError> {
    let made = connection.execute("CREATE EXTENSION IF NOT EXISTS vector").await;
    made.map_err(|error| match error.as_database_error().and_then(|error| error.code()).as_deref() {
        // 0A000 and 58P01: Postgres finds no such extension. 42501: no right to make it.
        Some("0A000" | "58P01") => EngineError::Unusable(format!(
            "this Postgres lacks the extension pgvector ({error}): install it on the database's machine, see \
             https://github.com/pgvector/pgvector"
        )),
        Some("42501") => EngineError::Unusable(format!(
            "the user of --index-url may not make the extension ({error}): let the database's owner run \
             CREATE EXTENSION vector"
        )),
        _ => failed(error),
    })?;
    let sql = "SELECT extversion FROM pg_extension WHERE extname = 'vector'";
    let version: String = get(&connection.fetch_one(sql).await.map_err(failed)?, "extversion")?;
    if is_recent(&version) {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the extension vector has version {version}, and 0.8.0 is the oldest that can be used: install a newer one and \
         run ALTER EXTENSION vector UPDATE"
    )))
}

/// Whether this version of the extension can be used.
pub(super) fn is_recent(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= OLDEST
}

/// Makes the table of a space. A second call changes nothing.
///
/// # Errors
/// [`EngineError::Redeclared`], [`EngineError::TooWide`].
pub(super) async fn create(connection: &mut PgConnection, space: &SpaceInfo) -> Result<(), EngineError> {
    if LONGEST_VECTOR < space.dim {
        let (space, values) = (space.id.clone(), space.dim);
        return Err(EngineError::TooWide { space, values, most: LONGEST_VECTOR });
    }
    let mut tx = sqlx::Connection::begin(connection).await.map_err(failed)?;
    let dim = i32::try_from(space.dim).unwrap_or(i32::MAX);
    let sql = "INSERT INTO reprise_vectors.spaces (key, id, dim) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let made = sqlx::query(sql).bind(space.key.cast_signed()).bind(&space.id).bind(dim);
    if made.execute(&mut *tx).await.map_err(failed)?.rows_affected() == 0 {
        let sql = "SELECT id, dim FROM reprise_vectors.spaces WHERE key = $1";
        let row = sqlx::query(sql).bind(space.key.cast_signed());
        let row = row.fetch_one(&mut *tx).await.map_err(failed)?;
        let (id, known): (String, i32) = (get(&row, "id")?, get(&row, "dim")?);
        let known = SpaceInfo { key: space.key, id, dim: usize::try_from(known).unwrap_or(0) };
        return if known == *space { Ok(()) } else { Err(EngineError::redeclared(&known, space)) };
    }
    let (table, column) = (table(space.key), column(space.dim));
    let sql = format!(
        "CREATE TABLE {table} (level SMALLINT NOT NULL, key BIGINT NOT NULL, video BIGINT NOT NULL, \
         unit {column} NOT NULL, PRIMARY KEY (level, key))"
    );
    tx.execute(AssertSqlSafe(sql)).await.map_err(failed)?;
    if space.dim <= LONGEST_IN_ROW {
        // A vector in its row is read at once; elsewhere each comparison follows a pointer.
        let sql = format!("ALTER TABLE {table} ALTER COLUMN unit SET STORAGE PLAIN");
        tx.execute(AssertSqlSafe(sql)).await.map_err(failed)?;
    }
    tx.commit().await.map_err(failed)
}

/// Drops a space with its table.
pub(super) async fn forget(connection: &mut PgConnection, space: u32) -> Result<(), EngineError> {
    let mut tx = sqlx::Connection::begin(connection).await.map_err(failed)?;
    let sql = format!("DROP TABLE IF EXISTS {}", table(space));
    tx.execute(AssertSqlSafe(sql)).await.map_err(failed)?;
    let sql = "DELETE FROM reprise_vectors.spaces WHERE key = $1";
    sqlx::query(sql).bind(space.cast_signed()).execute(&mut *tx).await.map_err(failed)?;
    tx.commit().await.map_err(failed)
}

/// Values of the vectors of each declared space.
pub(super) async fn dims(connection: &mut PgConnection) -> Result<HashMap<u32, usize>, EngineError> {
    let rows = connection.fetch_all("SELECT key, dim FROM reprise_vectors.spaces").await.map_err(failed)?;
    let space = |row: &PgRow| {
        let (key, dim): (i32, i32) = (get(row, "key")?, get(row, "dim")?);
        Ok((key.cast_unsigned(), usize::try_from(dim).unwrap_or(0)))
    };
    rows.iter().map(space).collect()
}

/// The keys of a collection in a range.
pub(super) async fn keys(
    connection: &mut PgConnection,
    at: Collection,
    range: Range<SpanKey>,
) -> Result<KeySet, EngineError> {
    let (table, level) = (table(at.space), level_number(at.level));
    let sql = format!("SELECT key FROM {table} WHERE level = {level} AND key >= $1 AND key < $2");
    let found = sqlx::query(AssertSqlSafe(sql)).bind(bigint(range.start)).bind(bigint(range.end));
    let mut rows = found.fetch(connection);
    let mut keys = RoaringTreemap::new();
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        keys.insert(get::<i64>(&row, "key")?.cast_unsigned());
    }
    Ok(keys.into())
}

/// A value of a row.
pub(super) fn get<'r, T>(row: &'r PgRow, column: &str) -> Result<T, EngineError>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(column).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_0_8_are_recent() {
        for (version, expected) in
            [("0.8.0", true), ("0.8", true), ("0.10.1", true), ("1.0", true), ("0.7.4", false), ("?", false)]
        {
            assert_eq!(is_recent(version), expected, "{version}");
        }
    }
}
