//! Opening, closing, waiting and counting. The other methods of [`Catalog`] are in the files of their topics.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::with_causes;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::clock::Clock;
use super::database::{Database, Pools, values};
use super::error::CatalogError;
use super::types::JobName;
use super::wake::{News, Wake};
use super::{migrations, postgres, sqlite, upgrade};

/// Polling interval of waiters. SQLite notifies no other process, and no event marks the end of a lease.
const POLL: Duration = Duration::from_secs(1);
/// Interval of the checks of [`Catalog::write_trouble`].
const CHECK_WRITES_EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a write of such a check. A long transaction may hold SQLite's one writer for seconds.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// The stored rows. All times are milliseconds; instants are Unix milliseconds.
///
/// Every method is atomic. After `Ok` its changes are durable; after an error nothing has changed.
pub struct Catalog {
    pub(super) database: Database,
    /// Forwards news of other processes; ends with the catalog.
    listener: Option<JoinHandle<()>>,
    write_check: Mutex<Option<WriteCheck>>,
}

/// The outcome of the last write that was rolled back.
struct WriteCheck {
    at: Instant,
    trouble: Option<String>,
}

/// Opens the catalog at `url` (`sqlite:PATH`, `postgres://…`). Creates and migrates it if necessary.
///
/// PATH is literal: no percent encoding, no parameters.
///
/// # Errors
/// [`CatalogError::Database`] if the database can't be reached or migrated; [`CatalogError::Invalid`] for another URL.
pub async fn open(url: &str) -> Result<Arc<Catalog>, CatalogError> {
    open_with_clock(url, Clock::Real).await
}

/// Opens the catalog at `url`, as [`open`] does, with another clock.
///
/// # Errors
/// As [`open`].
pub async fn open_with_clock(url: &str, clock: Clock) -> Result<Arc<Catalog>, CatalogError> {
    match place(url)? {
        DatabaseUrl::Postgres => {
            let mut catalog = Catalog::on(postgres::open(url).await?, clock);
            upgrade::run(&catalog.database).await?;
            let wake = Arc::clone(&catalog.database.wake);
            catalog.listener = Some(postgres::listen(url.to_owned(), wake));
            Ok(Arc::new(catalog))
        }
        DatabaseUrl::Sqlite(path) => {
            let catalog = Catalog::on(sqlite::open(path).await?, clock);
            upgrade::run(&catalog.database).await?;
            Ok(Arc::new(catalog))
        }
    }
}

/// Opens the catalog at `url`, as [`open`], but only to read, even while a server runs. Creates and migrates nothing.
///
/// # Errors
/// [`CatalogError::Database`] if the database does not exist or can't be reached; [`CatalogError::Invalid`] for
/// another URL. A schema of another version fails at the first read.
pub async fn open_to_read(url: &str) -> Result<Arc<Catalog>, CatalogError> {
    let pools = match place(url)? {
        DatabaseUrl::Postgres => postgres::connect(url).await?,
        DatabaseUrl::Sqlite(path) => sqlite::open_to_read(path).await?,
    };
    Ok(Arc::new(Catalog::on(pools, Clock::Real)))
}

/// Opens the catalog at `url`, as [`open`], if it exists and has this binary's schema. Creates and migrates nothing.
///
/// # Errors
/// [`CatalogError::Schema`] if the schema is of another version; else as [`open_to_read`].
pub async fn open_existing(url: &str) -> Result<Arc<Catalog>, CatalogError> {
    let found = open_to_read(url).await?;
    let version = found.schema_version().await;
    found.close().await;
    let (version, newest) = (version?, migrations::newest());
    if newest < version {
        return Err(migrations::unknown(version));
    }
    if version < newest {
        return Err(CatalogError::Schema(format!(
            "the database's newest migration is {version}, that of this reprise is {newest}: run the reprise that has \
             used it until now, or bring it to the newest schema with `reprise migrate`"
        )));
    }
    open(url).await
}

/// The database that a URL names.
pub(super) enum DatabaseUrl<'a> {
    /// A server that several processes share.
    Postgres,
    /// An embedded database in this file.
    Sqlite(&'a Path),
}

/// The database of a URL.
pub(super) fn place(url: &str) -> Result<DatabaseUrl<'_>, CatalogError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(DatabaseUrl::Postgres);
    }
    match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
        Some(path) => Ok(DatabaseUrl::Sqlite(Path::new(path))),
        None => {
            let text = "the database's URL must start with sqlite: or postgres://";
            Err(CatalogError::Invalid(text.into()))
        }
    }
}

/// The file of an SQLite database's URL; `None` for Postgres.
pub(super) fn sqlite_path(url: &str) -> Result<Option<&Path>, CatalogError> {
    Ok(match place(url)? {
        DatabaseUrl::Postgres => None,
        DatabaseUrl::Sqlite(path) => Some(path),
    })
}

/// The URL of the embedded database in `data_dir`.
pub fn embedded_url(data_dir: &Path) -> String {
    format!("sqlite:{}", data_dir.join("catalog.sqlite").display())
}

impl Catalog {
    fn on(pools: Pools, clock: Clock) -> Catalog {
        let database = Database { pools, clock, wake: Arc::new(Wake::default()) };
        Catalog { database, listener: None, write_check: Mutex::default() }
    }

    /// Waits until a job of these kinds may be due, or `at_most` has passed. Uses NOTIFY on Postgres, in-process
    /// notifications on SQLite.
    pub async fn wait_for_job(&self, kinds: &[JobName], at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            // Register before the check, so that no job is missed between the two.
            let mut woken = pin!(self.database.wake.next(News::Jobs));
            woken.as_mut().enable();
            // A failing database is reported by the next lease; here the wait continues.
            if self.is_job_due(kinds).await.unwrap_or(false) || Instant::now() >= end {
                return;
            }
            let _ = timeout_at(end.min(Instant::now() + POLL), woken).await;
        }
    }

    /// Waits until `changes` may have a seq above `after`, or `at_most` has passed.
    pub async fn wait_for_change(&self, after: i64, at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            let mut woken = pin!(self.database.wake.next(News::Changes));
            woken.as_mut().enable();
            if self.last_seq().await.is_ok_and(|seq| seq > after) || Instant::now() >= end {
                return;
            }
            let _ = timeout_at(end.min(Instant::now() + POLL), woken).await;
        }
    }

    /// Waits until a delivery may be due, or `at_most` has passed, as [`Catalog::wait_for_job`].
    pub async fn wait_for_delivery(&self, at_most: Duration) {
        self.wait_for(News::Deliveries, at_most).await;
    }

    /// Waits until an alert's check may be due, or `at_most` has passed, as [`Catalog::wait_for_job`].
    pub async fn wait_for_check(&self, at_most: Duration) {
        self.wait_for(News::Checks, at_most).await;
    }

    async fn wait_for(&self, news: News, at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            let mut woken = pin!(self.database.wake.next(news));
            woken.as_mut().enable();
            let is_due = match news {
                News::Deliveries => self.is_delivery_due().await,
                _ => self.is_check_due().await,
            };
            if is_due.unwrap_or(false) || Instant::now() >= end {
                return;
            }
            let _ = timeout_at(end.min(Instant::now() + POLL), woken).await;
        }
    }

    /// Succeeds if the database answers.
    pub async fn ping(&self) -> Result<(), CatalogError> {
        self.database.row("SELECT 1 AS one", values![]).await.map(|_| ())
    }

    /// Why the database takes no writes; `None` if it does. Writes a row as it was, at most once a second. It commits: a write
    /// that is rolled back needs no room on the disk.
    pub async fn write_trouble(&self) -> Option<String> {
        let mut checked = self.write_check.lock().await;
        if let Some(check) = &*checked
            && check.at.elapsed() < CHECK_WRITES_EVERY
        {
            return check.trouble.clone();
        }
        let trouble = match timeout(WRITE_PATIENCE, self.try_write()).await {
            Ok(written) => written.err().map(|error| with_causes(&error)),
            Err(_) => Some(format!("a write waited for more than {} s", WRITE_PATIENCE.as_secs())),
        };
        *checked = Some(WriteCheck { at: Instant::now(), trouble: trouble.clone() });
        trouble
    }

    async fn try_write(&self) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("UPDATE library SET id = id", values![]).await?;
        tx.commit().await
    }

    /// The number of the newest migration.
    pub async fn schema_version(&self) -> Result<i64, CatalogError> {
        let sql = "SELECT COALESCE(max(version), 0) AS version FROM _sqlx_migrations";
        let row = self.database.row(sql, values![]).await?;
        row.map_or(Ok(0), |row| row.get("version"))
    }

    /// `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        self.database.kind()
    }

    /// Closes all connections after their running statements.
    pub async fn close(&self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
        self.database.close().await;
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}
