//! Facts about a database, for an operator who asks what is wrong with it. Creates and migrates nothing.

use std::fs::File;

use super::database::{Database, values};
use super::error::CatalogError;
use super::instant;
use super::migrations;
use super::store::{self, Catalog};

/// Facts about a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// `sqlite` or `postgres`.
    pub kind: &'static str,
    /// The database's own version.
    pub version: String,
    /// The newest migration that it has had. `None`: reprise has not used it yet.
    pub schema: Option<i64>,
    /// The newest migration of this binary.
    pub newest_schema: i64,
    /// Whether it takes writes. A standby of Postgres does not.
    pub takes_writes: bool,
    /// Milliseconds by which its clock is ahead of this machine's. SQLite has none: there it is how far its newest row lies
    /// in the future.
    pub clock_ahead_ms: i64,
    /// The extension pgvector. `None` for SQLite, and if it is not installed on the database's machine.
    pub pgvector: Option<ExtensionFacts>,
}

/// Facts about an extension of Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionFacts {
    /// The version that `CREATE EXTENSION` makes.
    pub available: String,
    /// The version that the database has, if any.
    pub created: Option<String>,
}

/// Facts about the database at `url`. `None`: there is no such file yet; the first start makes it.
///
/// # Errors
/// [`CatalogError::Database`] if it can't be opened or read; [`CatalogError::Invalid`] for a wrong URL.
pub async fn facts(url: &str) -> Result<Option<DatabaseFacts>, CatalogError> {
    let path = store::sqlite_path(url)?;
    if path.is_some_and(|path| !path.exists()) {
        return Ok(None);
    }
    let catalog = store::open_to_read(url).await?;
    let database = &catalog.database;
    let facts = match path {
        Some(path) => of_sqlite(database, File::options().write(true).open(path).is_ok()).await,
        None => of_postgres(database).await,
    };
    Catalog::close(&catalog).await;
    facts.map(Some)
}

async fn of_sqlite(database: &Database, takes_writes: bool) -> Result<DatabaseFacts, CatalogError> {
    let sql = "SELECT sqlite_version() AS version,
               EXISTS (SELECT 1 FROM sqlite_master WHERE name = '_sqlx_migrations') AS used";
    let Some(row) = database.row(sql, values![]).await? else { return Err(no_answer()) };
    let schema = schema(database, row.get("used")?).await?;
    Ok(DatabaseFacts {
        kind: database.kind(),
        version: row.get("version")?,
        schema,
        newest_schema: migrations::newest(),
        takes_writes,
        clock_ahead_ms: if schema.is_some() { newest_ahead_ms(database).await? } else { 0 },
        pgvector: None,
    })
}

/// How far the newest row lies in the future: the clock has been set back since.
async fn newest_ahead_ms(database: &Database) -> Result<i64, CatalogError> {
    let sql = "SELECT MAX((SELECT COALESCE(MAX(created_at_ms), 0) FROM videos), \
               (SELECT COALESCE(MAX(updated_at_ms), 0) FROM jobs)) AS newest";
    let Some(row) = database.row(sql, values![]).await? else { return Err(no_answer()) };
    Ok(row.get::<i64>("newest")?.saturating_sub(instant::now_ms()).max(0))
}

async fn of_postgres(database: &Database) -> Result<DatabaseFacts, CatalogError> {
    let sql = "SELECT current_setting('server_version') AS version,
               to_regclass('_sqlx_migrations') IS NOT NULL AS used,
               NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off' AS writes";
    let Some(row) = database.row(sql, values![]).await? else { return Err(no_answer()) };
    let before = instant::now_ms();
    let theirs = database.now_ms().await?;
    let ours = i64::midpoint(before, instant::now_ms());
    Ok(DatabaseFacts {
        kind: database.kind(),
        version: row.get("version")?,
        schema: schema(database, row.get("used")?).await?,
        newest_schema: migrations::newest(),
        takes_writes: row.get("writes")?,
        clock_ahead_ms: theirs - ours,
        pgvector: pgvector(database).await?,
    })
}

async fn schema(database: &Database, is_used: bool) -> Result<Option<i64>, CatalogError> {
    if !is_used {
        return Ok(None);
    }
    let sql = "SELECT MAX(version) AS version FROM _sqlx_migrations WHERE success";
    match database.row(sql, values![]).await? {
        Some(row) => row.get("version"),
        None => Ok(None),
    }
}

async fn pgvector(database: &Database) -> Result<Option<ExtensionFacts>, CatalogError> {
    let sql = "SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'";
    let Some(row) = database.row(sql, values![]).await? else { return Ok(None) };
    let (available, created) = (row.get("default_version")?, row.get("installed_version")?);
    Ok(Some(ExtensionFacts { available, created }))
}

fn no_answer() -> CatalogError {
    CatalogError::Database("the database returned no row".into())
}
