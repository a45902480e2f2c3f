//! Postgres: a connection pool, and a listener that wakes waiting tasks.

use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::Cause;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgListener, PgPool, PgPoolOptions};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::database::Pools;
use super::error::CatalogError;
use super::migrations;
use super::wake::{News, Wake};

const CONNECTIONS: u32 = 10;
/// Longest wait for a connection. An unreachable database becomes an error, not a hang.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// What an error of the connection is about.
const UNOPENED: &str = "can't open postgres";
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Connects to `url` and migrates. Several processes may do this at once: the migrator holds a lock.
pub(super) async fn open(url: &str) -> Result<Pools, CatalogError> {
    let pool = pool(url).await?;
    let migrated = migrations::postgres().run(&pool).await;
    migrated.map_err(|error| migrations::failed(UNOPENED.to_owned(), error))?;
    Ok(Pools::Postgres(pool))
}

/// Connects to `url` without migrating.
pub(super) async fn connect(url: &str) -> Result<Pools, CatalogError> {
    pool(url).await.map(Pools::Postgres)
}

async fn pool(url: &str) -> Result<PgPool, CatalogError> {
    let options = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE_TIMEOUT);
    match options.connect(url).await {
        Ok(pool) => Ok(pool),
        // The pool tries again and again, and then only says that it did. One more try gives the reason.
        Err(sqlx::Error::PoolTimedOut) => Err(unopened(why_unreachable(url).await)),
        Err(error) => Err(unopened(error)),
    }
}

async fn why_unreachable(url: &str) -> Cause {
    match timeout(ACQUIRE_TIMEOUT, PgConnection::connect(url)).await {
        Ok(Err(error)) => error.into(),
        Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut.into(),
    }
}

fn unopened(error: impl Into<Cause>) -> CatalogError {
    CatalogError::Database(Cause::in_context(UNOPENED, error))
}

/// Wakes waiters of this process when any process announces news. Runs until aborted.
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
    listener.listen_all(News::ALL.map(News::channel)).await?;
    loop {
        // `None` after a reconnect: notifications may have been lost, so all waiters wake.
        let heard = listener.try_recv().await?;
        let channel = heard.as_ref().map(|notification| notification.channel());
        let is_meant = |news: &News| channel.is_none_or(|channel| channel == news.channel());
        News::ALL.into_iter().filter(is_meant).for_each(|news| wake.tell(news));
    }
}
