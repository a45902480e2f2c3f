//! Postgres: a pool, and a listener that wakes those who wait.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::task::JoinHandle;

use super::database::{Database, Tx, values};
use super::wake::Wake;
use super::{CatalogError, migrations};

const CONNECTIONS: u32 = 10;
/// How long a call waits for a connection before it fails: a database that is away is reported, not waited for.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Channel of [`notify_jobs`].
const JOBS: &str = "reprise_jobs";
/// Channel of [`notify_changes`].
const CHANGES: &str = "reprise_changes";

/// Connects to `url` and migrates. Several processes may do so at once: the migrator holds a lock.
pub(super) async fn open(url: &str) -> Result<Database, CatalogError> {
    let pool = pool(url).await?;
    migrations::postgres().run(&pool).await.map_err(|error| unopened(&error))?;
    Ok(Database::Postgres(pool))
}

/// Connects to `url`, whatever schema is there.
pub(super) async fn connect(url: &str) -> Result<Database, CatalogError> {
    pool(url).await.map(Database::Postgres)
}

async fn pool(url: &str) -> Result<PgPool, CatalogError> {
    let options = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE_TIMEOUT);
    options.connect(url).await.map_err(|error| unopened(&error))
}

fn unopened(error: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::Database(format!("can't open postgres: {error}"))
}

/// Wakes waiters of this process whenever any process announces news. Ends when it is aborted.
pub(super) fn listen(url: String, wake: Arc<Wake>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            if let Err(error) = listen_once(&url, &wake).await {
                tracing::warn!(%error, "not listening for news from the database; polling until it is back");
            }
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
        }
    })
}

async fn listen_once(url: &str, wake: &Wake) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect(url).await?;
    listener.listen_all([JOBS, CHANGES]).await?;
    loop {
        // `None`: the connection was lost and made anew; something may have been missed.
        let heard = listener.try_recv().await?;
        let channel = heard.as_ref().map(|notification| notification.channel());
        if channel != Some(CHANGES) {
            wake.jobs();
        }
        if channel != Some(JOBS) {
            wake.changes();
        }
    }
}

/// Announces, on commit, that a job may be waiting. SQLite's waiters are woken in the process alone.
pub(super) async fn notify_jobs(tx: &mut Tx) -> Result<(), CatalogError> {
    notify(tx, JOBS).await
}

/// Announces, on commit, that `changes` has grown.
pub(super) async fn notify_changes(tx: &mut Tx) -> Result<(), CatalogError> {
    notify(tx, CHANGES).await
}

async fn notify(tx: &mut Tx, channel: &str) -> Result<(), CatalogError> {
    if let Tx::Postgres(_) = tx {
        tx.execute("SELECT pg_notify($1, '')", values![channel]).await?;
    }
    Ok(())
}
