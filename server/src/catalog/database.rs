//! One interface to both databases: statements, values, rows.
//!
//! Both databases accept `$1` placeholders, `RETURNING`, `ON CONFLICT` and row values, so one text serves for most
//! statements. Where the databases differ, [`Sql::Each`] holds both texts. Contains no table names.

use std::sync::Arc;

use futures_util::TryStreamExt;
use roaring::RoaringTreemap;
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Decode, Postgres, Row as _, SqlSafeStr, Sqlite, Transaction, Type};
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::clock::Clock;
use super::error::CatalogError;
use super::instant;
use super::visibility::Visibility;
use super::wake::{News, Wake};
use crate::terms::{KeySet, SpanKey, VideoNumber};

/// Rows of one multi-row `INSERT`: enough to save round trips, and far below the limits of 32,766 (SQLite) and 65,535
/// (Postgres) values.
const ROWS_PER_INSERT: usize = 128;

/// The text of a statement. Only this folder writes these texts, and never puts user input into them.
pub(super) enum Sql {
    /// One text for both.
    Same(&'static str),
    /// One text for each.
    Each {
        /// The text for SQLite.
        sqlite: &'static str,
        /// The text for Postgres.
        postgres: &'static str,
    },
    /// One text for both, composed of literals of this folder.
    Built(String),
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Sql {
        Sql::Same(text)
    }
}

impl Sql {
    /// The text for this database.
    pub(super) fn of(self, is_postgres: bool) -> String {
        match self {
            Sql::Same(text) => text.to_owned(),
            Sql::Each { postgres, .. } if is_postgres => postgres.to_owned(),
            Sql::Each { sqlite, .. } => sqlite.to_owned(),
            Sql::Built(text) => text,
        }
    }

    /// The span of one run of the statement. It names the kind of statement, `SELECT` for example, and no values.
    fn span(&self) -> Span {
        let text = match self {
            Sql::Same(text) | Sql::Each { sqlite: text, .. } => *text,
            Sql::Built(text) => text.as_str(),
        };
        tracing::debug_span!("sql", statement = text.split_whitespace().next())
    }

    fn for_sqlite(self) -> sqlx::SqlStr {
        match self {
            Sql::Same(text) | Sql::Each { sqlite: text, .. } => text.into_sql_str(),
            Sql::Built(text) => AssertSqlSafe(text).into_sql_str(),
        }
    }

    fn for_postgres(self) -> sqlx::SqlStr {
        match self {
            Sql::Same(text) | Sql::Each { postgres: text, .. } => text.into_sql_str(),
            Sql::Built(text) => AssertSqlSafe(text).into_sql_str(),
        }
    }
}

/// A bound value of a statement.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Uuid(Option<Uuid>),
    Bool(bool),
    /// An array on Postgres (`= ANY($1)`), a JSON text on SQLite (`IN (SELECT value FROM json_each($1))`).
    Ints(Vec<i64>),
    /// As [`Value::Ints`].
    Texts(Vec<String>),
}

macro_rules! value_from {
    ($($source:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Value {
                Value::$variant(value.into())
            }
        }
    )+};
}

value_from! {
    i64 => Int, Option<i64> => Int,
    f64 => Real, Option<f64> => Real,
    String => Text, Option<String> => Text,
    Vec<u8> => Bytes, Option<Vec<u8>> => Bytes,
    Uuid => Uuid, Option<Uuid> => Uuid,
    bool => Bool, Vec<i64> => Ints,
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(Some(value.to_owned()))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(Some(i64::from(value)))
    }
}

impl From<SpanKey> for Value {
    fn from(value: SpanKey) -> Value {
        Value::Int(Some(value.number().cast_signed()))
    }
}

/// The values of a statement, in the order of their placeholders.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::catalog::database::Value::from($value)),*] };
}
pub(super) use values;

/// Refuses NUL on both databases, because Postgres texts can't hold it.
fn storable(text: Option<String>) -> Result<Option<String>, CatalogError> {
    match &text {
        Some(found) if found.contains('\0') => {
            Err(CatalogError::Invalid("a text with a NUL character can't be stored".into()))
        }
        _ => Ok(text),
    }
}

fn sqlite_arguments(values: Vec<Value>) -> Result<SqliteArguments, CatalogError> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        match value {
            Value::Int(value) => arguments.add(value),
            Value::Real(value) => arguments.add(value),
            Value::Text(value) => arguments.add(storable(value)?),
            Value::Bytes(value) => arguments.add(value),
            Value::Uuid(value) => arguments.add(value),
            Value::Bool(value) => arguments.add(value),
            Value::Ints(value) => arguments.add(serde_json::Value::from(value).to_string()),
            Value::Texts(value) => arguments.add(serde_json::Value::from(value).to_string()),
        }
        .map_err(|error| CatalogError::Database(error.into()))?;
    }
    Ok(arguments)
}

fn postgres_arguments(values: Vec<Value>) -> Result<PgArguments, CatalogError> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value {
            Value::Int(value) => arguments.add(value),
            Value::Real(value) => arguments.add(value),
            Value::Text(value) => arguments.add(storable(value)?),
            Value::Bytes(value) => arguments.add(value),
            Value::Uuid(value) => arguments.add(value),
            Value::Bool(value) => arguments.add(value),
            Value::Ints(value) => arguments.add(value),
            Value::Texts(value) => arguments.add(value),
        }
        .map_err(|error| CatalogError::Database(error.into()))?;
    }
    Ok(arguments)
}

/// A row of a result.
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// The value of a column.
    pub(super) fn get<T>(&self, column: &str) -> Result<T, CatalogError>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        match self {
            Row::Sqlite(row) => row.try_get(column),
            Row::Postgres(row) => row.try_get(column),
        }
        .map_err(|error| CatalogError::Damaged(error.into()))
    }

    /// A column's value as a span's key.
    pub(super) fn key(&self, column: &str) -> Result<SpanKey, CatalogError> {
        let value: i64 = self.get(column)?;
        span_key(value).ok_or_else(|| CatalogError::Damaged(format!("{column} {value} is no key").into()))
    }

    /// A column's value as a video's number.
    pub(super) fn video_number(&self, column: &str) -> Result<VideoNumber, CatalogError> {
        let value: i64 = self.get(column)?;
        let number = u64::try_from(value).map(VideoNumber::new);
        number.map_err(|_| CatalogError::Damaged(format!("{column} {value} is no video's number").into()))
    }

    /// A column's value as a space's key.
    pub(super) fn space(&self, column: &str) -> Result<u32, CatalogError> {
        let value: i64 = self.get(column)?;
        u32::try_from(value)
            .map_err(|_| CatalogError::Damaged(format!("{column} {value} is no space").into()))
    }
}

fn span_key(value: i64) -> Option<SpanKey> {
    u64::try_from(value).ok().map(SpanKey::new)
}

const NOW: &str = "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint) AS now";

fn now_from(row: Option<Row>) -> Result<i64, CatalogError> {
    row.ok_or_else(|| CatalogError::Database("the database returned no time".into()))?.get("now")
}

/// Connections to the database of either kind.
pub(super) struct Database {
    pub(super) pools: Pools,
    pub(super) clock: Clock,
    /// Wakes waiters of this process after a commit.
    pub(super) wake: Arc<Wake>,
}

/// The connections of each kind of database.
pub(super) enum Pools {
    /// SQLite allows one writer at a time; readers see the last commit.
    Sqlite {
        /// One connection, for writing.
        writer: SqlitePool,
        /// Several connections, read-only.
        readers: SqlitePool,
    },
    /// Postgres.
    Postgres(PgPool),
}

impl Database {
    /// All rows of a reading statement.
    pub(super) async fn rows(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        let sql = sql.into();
        let span = sql.span();
        match &self.pools {
            Pools::Sqlite { readers, .. } => {
                let query = sqlx::query_with(sql.for_sqlite(), sqlite_arguments(values)?);
                let rows = query.fetch_all(readers).instrument(span).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Pools::Postgres(pool) => {
                let query = sqlx::query_with(sql.for_postgres(), postgres_arguments(values)?);
                let rows = query.fetch_all(pool).instrument(span).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// The first row of a reading statement.
    pub(super) async fn row(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// The keys in the first column of a reading statement. Streams the rows instead of collecting them.
    pub(super) async fn keys(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<KeySet, CatalogError> {
        let sql = sql.into();
        let span = sql.span();
        let mut keys = RoaringTreemap::new();
        let mut add = |key: i64| {
            let found =
                span_key(key).ok_or_else(|| CatalogError::Damaged(format!("{key} is no key").into()))?;
            keys.insert(found.number());
            Ok::<(), CatalogError>(())
        };
        let read = async {
            match &self.pools {
                Pools::Sqlite { readers, .. } => {
                    let query = sqlx::query_with(sql.for_sqlite(), sqlite_arguments(values)?);
                    let mut rows = query.fetch(readers);
                    while let Some(row) = rows.try_next().await? {
                        add(row.try_get(0)?)?;
                    }
                }
                Pools::Postgres(pool) => {
                    let query = sqlx::query_with(sql.for_postgres(), postgres_arguments(values)?);
                    let mut rows = query.fetch(pool);
                    while let Some(row) = rows.try_next().await? {
                        add(row.try_get(0)?)?;
                    }
                }
            }
            Ok::<(), CatalogError>(())
        };
        read.instrument(span).await?;
        Ok(keys.into())
    }

    /// A transaction that may write. Dropping it before the commit rolls it back.
    pub(super) async fn begin(&self) -> Result<Tx, CatalogError> {
        let begun = match &self.pools {
            // IMMEDIATE takes the write lock at once. A transaction that reads first could fail at its first write.
            Pools::Sqlite { writer, .. } => Begun::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?),
            Pools::Postgres(pool) => Begun::Postgres(pool.begin().await?),
        };
        let (clock, wake) = (self.clock.clone(), Arc::clone(&self.wake));
        Ok(Tx { begun, clock, wake, news: Vec::new(), visibility: Visibility::All, key: None })
    }

    /// A transaction that sees the rows as they are at its first statement, and changes nothing.
    pub(super) async fn snapshot(&self) -> Result<Tx, CatalogError> {
        let begun = match &self.pools {
            Pools::Sqlite { readers, .. } => Begun::Sqlite(readers.begin().await?),
            Pools::Postgres(pool) => {
                Begun::Postgres(pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        };
        let (clock, wake) = (self.clock.clone(), Arc::clone(&self.wake));
        Ok(Tx { begun, clock, wake, news: Vec::new(), visibility: Visibility::All, key: None })
    }

    /// `sqlite` or `postgres`.
    pub(super) fn kind(&self) -> &'static str {
        match self.pools {
            Pools::Sqlite { .. } => "sqlite",
            Pools::Postgres(_) => "postgres",
        }
    }

    /// Whether this is Postgres.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.pools, Pools::Postgres(_))
    }

    /// The current time in Unix milliseconds. Uses Postgres's clock there, so that workers on several machines agree on
    /// the end of a lease.
    pub(super) async fn now_ms(&self) -> Result<i64, CatalogError> {
        match (self.clock.shown_ms(), &self.pools) {
            (Some(now_ms), _) => Ok(now_ms),
            (None, Pools::Sqlite { .. }) => Ok(instant::now_ms()),
            (None, Pools::Postgres(_)) => now_from(self.row(NOW, values![]).await?),
        }
    }

    /// Closes all connections after their running statements.
    pub(super) async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}

/// A transaction on one of the two databases.
pub(super) struct Tx {
    begun: Begun,
    clock: Clock,
    wake: Arc<Wake>,
    /// The events to announce at the commit.
    news: Vec<News>,
    /// The videos that it may change.
    visibility: Visibility,
    /// The caller's API key.
    key: Option<Uuid>,
}

enum Begun {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    /// The same transaction, for changes to these videos only.
    pub(super) fn within(self, visibility: Visibility) -> Tx {
        Tx { visibility, ..self }
    }

    /// The same transaction, for the holder of an API key.
    pub(super) fn of_key(self, key: Option<Uuid>) -> Tx {
        Tx { key, ..self }
    }

    /// The caller's API key.
    pub(super) fn key(&self) -> Option<Uuid> {
        self.key
    }

    /// The videos that it may change.
    pub(super) fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// Runs a statement; returns the number of affected rows.
    pub(super) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, CatalogError> {
        let sql = sql.into();
        let span = sql.span();
        fault("catalog: write")?;
        match &mut self.begun {
            Begun::Sqlite(tx) => {
                let query = sqlx::query_with(sql.for_sqlite(), sqlite_arguments(values)?);
                Ok(query.execute(&mut **tx).instrument(span).await?.rows_affected())
            }
            Begun::Postgres(tx) => {
                let query = sqlx::query_with(sql.for_postgres(), postgres_arguments(values)?);
                Ok(query.execute(&mut **tx).instrument(span).await?.rows_affected())
            }
        }
    }

    /// All rows of a statement.
    pub(super) async fn rows(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        let sql = sql.into();
        let span = sql.span();
        match &mut self.begun {
            Begun::Sqlite(tx) => {
                let query = sqlx::query_with(sql.for_sqlite(), sqlite_arguments(values)?);
                let rows = query.fetch_all(&mut **tx).instrument(span).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Begun::Postgres(tx) => {
                let query = sqlx::query_with(sql.for_postgres(), postgres_arguments(values)?);
                let rows = query.fetch_all(&mut **tx).instrument(span).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// Calls `each` with one row of a statement after the other, instead of collecting them.
    pub(super) async fn each<E: From<CatalogError>>(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
        mut each: impl FnMut(Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = sql.into();
        match &mut self.begun {
            Begun::Sqlite(tx) => {
                let query = sqlx::query_with(sql.for_sqlite(), sqlite_arguments(values)?);
                let mut rows = query.fetch(&mut **tx);
                while let Some(row) = rows.try_next().await.map_err(CatalogError::from)? {
                    each(Row::Sqlite(row))?;
                }
            }
            Begun::Postgres(tx) => {
                let query = sqlx::query_with(sql.for_postgres(), postgres_arguments(values)?);
                let mut rows = query.fetch(&mut **tx);
                while let Some(row) = rows.try_next().await.map_err(CatalogError::from)? {
                    each(Row::Postgres(row))?;
                }
            }
        }
        Ok(())
    }

    /// The first row of a statement.
    pub(super) async fn row(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Inserts rows of equal width. `head` is `INSERT INTO table (columns)`; `tail` follows the values (`RETURNING …`,
    /// `ON CONFLICT …`). Returns the returned rows in any order.
    pub(super) async fn insert(
        &mut self,
        head: &str,
        rows: Vec<Vec<Value>>,
        tail: &str,
    ) -> Result<Vec<Row>, CatalogError> {
        let mut returned = Vec::new();
        fault("catalog: insert")?;
        let mut rows = rows.into_iter().peekable();
        while let Some(width) = rows.peek().map(Vec::len) {
            let chunk: Vec<Vec<Value>> = rows.by_ref().take(ROWS_PER_INSERT).collect();
            let sql = format!("{head} VALUES {} {tail}", placeholders(chunk.len(), width));
            returned.extend(self.rows(Sql::Built(sql), chunk.into_iter().flatten().collect()).await?);
        }
        Ok(returned)
    }

    /// See [`Database::now_ms`].
    pub(super) async fn now_ms(&mut self) -> Result<i64, CatalogError> {
        match (self.clock.shown_ms(), &self.begun) {
            (Some(now_ms), _) => Ok(now_ms),
            (None, Begun::Sqlite(_)) => Ok(instant::now_ms()),
            (None, Begun::Postgres(_)) => now_from(self.row(NOW, values![]).await?),
        }
    }

    /// Whether this is Postgres.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.begun, Begun::Postgres(_))
    }

    /// Makes the commit wake the waiters for `news` in this process and, on Postgres, in every process.
    pub(super) async fn announce(&mut self, news: News) -> Result<(), CatalogError> {
        if self.is_postgres() {
            self.execute("SELECT pg_notify($1, '')", values![news.channel()]).await?;
        }
        self.news.push(news);
        Ok(())
    }

    /// Undoes the transaction, and waits until it is undone.
    pub(super) async fn rollback(self) -> Result<(), CatalogError> {
        match self.begun {
            Begun::Sqlite(tx) => tx.rollback().await?,
            Begun::Postgres(tx) => tx.rollback().await?,
        }
        Ok(())
    }

    /// Makes the transaction durable and visible.
    pub(super) async fn commit(self) -> Result<(), CatalogError> {
        fault("catalog: commit")?;
        match self.begun {
            Begun::Sqlite(tx) => tx.commit().await?,
            Begun::Postgres(tx) => tx.commit().await?,
        }
        // The change stands, but nobody learns of it.
        fault("catalog: acknowledge a commit")?;
        self.news.into_iter().for_each(|news| self.wake.tell(news));
        Ok(())
    }
}

/// A step that a test may make fail.
fn fault(place: &'static str) -> Result<(), CatalogError> {
    reprise_faults::at(place).map_err(|error| CatalogError::Database(error.into()))
}

/// `($1, $2), ($3, $4)` for two rows of width two.
fn placeholders(rows: usize, width: usize) -> String {
    let row = |row: usize| {
        let numbers: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
        format!("({})", numbers.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::placeholders;

    #[track_caller]
    fn check(rows: usize, width: usize, expected: &str) {
        assert_eq!(placeholders(rows, width), expected);
    }

    #[test]
    fn placeholders_are_numbered_through_all_rows() {
        check(1, 1, "($1)");
        check(1, 3, "($1, $2, $3)");
        check(2, 2, "($1, $2), ($3, $4)");
        check(3, 1, "($1), ($2), ($3)");
    }
}
