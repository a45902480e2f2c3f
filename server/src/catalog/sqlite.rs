//! The embedded database: one SQLite file in WAL mode, with one writer and several readers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reprise_encoders::Cause;
use sqlx::Connection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use super::database::Pools;
use super::error::CatalogError;
use super::migrations;

/// Longest wait for a write of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const READERS: u32 = 4;

/// Opens the file at `path`, creating it and its folder, and migrates it.
pub(super) async fn open(path: &Path) -> Result<Pools, CatalogError> {
    let path = path.to_path_buf();
    // Two processes may open a new catalog at once. SQLite's own locks protect neither the switch to WAL nor the
    // migration.
    let lock = {
        let path = path.clone();
        tokio::task::spawn_blocking(move || lock(&path)).await
    };
    let lock = lock.map_err(|error| CatalogError::Database(error.into()))??;
    let opened = connect(&path).await;
    drop(lock);
    opened
}

/// Opens the existing file at `path` read-only.
pub(super) async fn open_to_read(path: &Path) -> Result<Pools, CatalogError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let readers = pool(READERS, options).await.map_err(|error| unopened(path, error))?;
    // The database refuses writes.
    Ok(Pools::Sqlite { writer: readers.clone(), readers })
}

async fn connect(path: &Path) -> Result<Pools, CatalogError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT);
    // Foreign keys are off: a migration that recreates a table must not delete the rows that refer to it.
    let migrating = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options.clone().foreign_keys(false))
        .await
        .map_err(|error| unopened(path, error))?;
    let migrated = migrations::sqlite().run(&migrating).await;
    migrated.map_err(|error| migrations::failed(opening(path), error))?;
    migrating.close().await;
    let writer = pool(1, options.clone()).await.map_err(|error| unopened(path, error))?;
    let readers = pool(READERS, options.read_only(true)).await.map_err(|error| unopened(path, error))?;
    Ok(Pools::Sqlite { writer, readers })
}

/// A pool whose connections stay open while their transactions end as they should.
async fn pool(connections: u32, options: SqliteConnectOptions) -> sqlx::Result<SqlitePool> {
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY_TIMEOUT)
        .after_release(|connection, _| Box::pin(has_no_transaction(connection)));
    pool.idle_timeout(None).max_lifetime(None).connect_with(options).await
}

/// Whether a connection may be used again. On a full disk SQLite ends a transaction by itself, and the driver's ROLLBACK
/// then fails. The driver would go on counting that transaction, so each later BEGIN on this connection would fail.
async fn has_no_transaction(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // The answer comes after a rollback that is still on its way.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

fn unopened(path: &Path, error: impl Into<Cause>) -> CatalogError {
    CatalogError::Database(Cause::in_context(opening(path), error))
}

fn opening(path: &Path) -> String {
    format!("can't open {}", path.display())
}

/// Waits for the exclusive right to open the database. Dropping the file releases it.
fn lock(path: &Path) -> Result<File, CatalogError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let locked = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(&lock_path)?;
        file.lock()?;
        Ok(file)
    };
    locked().map_err(|error: std::io::Error| {
        CatalogError::Database(Cause::in_context(format!("can't lock {}", lock_path.display()), error))
    })
}
