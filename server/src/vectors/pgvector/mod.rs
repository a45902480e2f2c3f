//! Postgres with the extension pgvector as an engine: a table for each space, a partial HNSW index for each level.
//!
//! The tables lie in the schema `reprise_vectors`, in the catalog's database or another one. Vectors of up to 2,000 values
//! are stored in 32 bits a value, longer ones in 16. Small collections have no graph and are compared whole.

mod apply;
mod failure;
mod graphs;
mod search;
mod tables;
mod values;

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reprise_encoders::with_causes;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection, Postgres, Row};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Ask, Batch, CollectionStatus, EngineError, EngineStatus, Hit, Hits, Limits, Scored, VectorIndex,
};
use crate::terms::{Collection, KeySet, Level, SpaceInfo, SpanKey, UnitVector};
use failure::failed;
use search::{Search, State};
use tables::{get, level_number};

/// Values of the longest vector that pgvector can index.
const LONGEST_VECTOR: usize = 4_000;
/// Most hits of a search.
const MOST_HITS: usize = 100_000;
const CONNECTIONS: u32 = 8;
/// Longest wait for a connection; then the engine counts as away.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Vectors of a batch that shows a fill. A follower that has caught up gets far fewer at once.
const LARGE_BATCH: usize = 1_000;
/// Pause after which a fill has ended.
const FILL_PAUSE: Duration = Duration::from_secs(3);
/// Longest statement, but for those that apply a batch or build a graph.
const STATEMENT_WITHIN: &str = "60s";

/// Whether this version of the extension can be used.
pub fn is_recent(version: &str) -> bool {
    tables::is_recent(version)
}

/// Postgres with the extension pgvector.
pub struct Pgvector {
    pool: PgPool,
    /// Values of the vectors of each declared space.
    dims: RwLock<HashMap<u32, usize>>,
    /// Notified after each batch.
    changed: Notify,
    /// When the last large batch came: more of them follow during a fill.
    large_batch: RwLock<Option<Instant>>,
}

impl Pgvector {
    /// Connects to the database at `url`, and makes the extension and the tables if necessary.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] for a wrong URL, user or password, and without a recent extension;
    /// [`EngineError::Foreign`] if the tables are of another library; [`EngineError::Away`] if nothing answers.
    pub async fn open(url: &str, library: Uuid) -> Result<Pgvector, EngineError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| {
            EngineError::Unusable(format!("--index-url is no URL of a Postgres ({error})"))
        })?;
        let options = options
            .application_name("reprise vectors")
            .options([("statement_timeout", STATEMENT_WITHIN), ("client_min_messages", "warning")]);
        // Connects once outside the pool, whose error would only be that time has run out.
        let connected = tokio::time::timeout(CONNECT_WITHIN, PgConnection::connect_with(&options)).await;
        let mut connection = connected.map_err(|late| EngineError::Away(Box::new(late)))?.map_err(failed)?;
        tables::prepare(&mut connection, library).await?;
        let dims = tables::dims(&mut connection).await?;
        connection.close().await.map_err(failed)?;
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT_WITHIN);
        let pool = pool.connect_lazy_with(options);
        let dims = RwLock::new(dims);
        Ok(Pgvector { pool, dims, changed: Notify::new(), large_batch: RwLock::default() })
    }

    async fn connection(&self) -> Result<PoolConnection<Postgres>, EngineError> {
        self.pool.acquire().await.map_err(failed)
    }

    fn dim(&self, space: u32) -> Option<usize> {
        self.dims.read().unwrap_or_else(PoisonError::into_inner).get(&space).copied()
    }

    fn set_dim(&self, space: u32, dim: Option<usize>) {
        let mut dims = self.dims.write().unwrap_or_else(PoisonError::into_inner);
        match dim {
            Some(dim) => drop(dims.insert(space, dim)),
            None => drop(dims.remove(&space)),
        }
    }

    /// Whether large batches still come. Postgres builds a graph faster from all vectors at once than one by one, so the
    /// graph waits for the end of a fill.
    fn is_filling(&self) -> bool {
        let last = *self.large_batch.read().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < FILL_PAUSE)
    }

    fn check_width(&self, space: u32, unit: &UnitVector) -> Result<(), EngineError> {
        EngineError::check_width(self.dim(space), unit)
    }

    /// A collection as it is now; `None` if it has no vectors.
    async fn state(
        &self,
        connection: &mut PgConnection,
        at: Collection,
    ) -> Result<Option<State>, EngineError> {
        let Some(dim) = self.dim(at.space) else { return Ok(None) };
        let sql = "SELECT live, graph FROM reprise_vectors.collections WHERE space = $1 AND level = $2";
        let found = sqlx::query(sql).bind(at.space.cast_signed()).bind(level_number(at.level));
        let row = found.fetch_optional(connection).await.map_err(failed)?;
        row.map(|row| Ok(State { at, dim, live: count(get(&row, "live")?), graph: get(&row, "graph")? }))
            .transpose()
    }
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[async_trait]
impl VectorIndex for Pgvector {
    fn limits(&self) -> Limits {
        Limits { most_hits: MOST_HITS, most_values: LONGEST_VECTOR, exact: true, shared: true }
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        tables::create(&mut *self.connection().await?, space).await?;
        self.set_dim(space.key, Some(space.dim));
        Ok(())
    }

    async fn forget(&self, space: u32) -> Result<(), EngineError> {
        tables::forget(&mut *self.connection().await?, space).await?;
        self.set_dim(space, None);
        Ok(())
    }

    async fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        batch.put.iter().try_for_each(|it| self.check_width(it.at.space, &it.unit))?;
        let is_large = LARGE_BATCH <= batch.put.len();
        apply::apply(&mut *self.connection().await?, batch).await?;
        if is_large {
            *self.large_batch.write().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.changed.notify_one();
        Ok(())
    }

    async fn applied(&self) -> Result<i64, EngineError> {
        let sql = "SELECT applied FROM reprise_vectors.engine";
        get(&sqlx::query(sql).fetch_one(&self.pool).await.map_err(failed)?, "applied")
    }

    async fn ready(&self) {
        // `apply` returns when the rows are committed, so no work piles up.
    }

    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let mut connection = self.connection().await?;
        let state = self.state(&mut connection, at).await?;
        let Some(state) = state else {
            let nothing = Hits { hits: Vec::new(), complete: true, exact: true };
            return Ok(vec![nothing; queries.len()]);
        };
        let search = Search::new(state, ask);
        let mut found = Vec::with_capacity(queries.len());
        for query in queries {
            found.push(search.nearest(&mut connection, query).await?);
        }
        Ok(found)
    }

    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let mut connection = self.connection().await?;
        match self.state(&mut connection, at).await? {
            Some(state) => search::scores(&mut connection, state, keys, queries).await,
            None => Ok(Vec::new()),
        }
    }

    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
        if self.dim(at.space).is_none() {
            return Ok(KeySet::new());
        }
        tables::keys(&mut *self.connection().await?, at, range).await
    }

    async fn status(&self) -> Result<EngineStatus, EngineError> {
        let sql = "SELECT space, level, live, graph, generation, \
                   (pg_total_relation_size('reprise_vectors.space_' || space) \
                   * (live / sum(live) OVER (PARTITION BY space)))::bigint AS bytes \
                   FROM reprise_vectors.collections, reprise_vectors.engine WHERE live > 0 ORDER BY space, level";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await.map_err(failed)?;
        let generation = rows.first().map_or(Ok(0), |row| get(row, "generation"))?;
        let collections = rows.iter().filter_map(|row| collection(row).transpose());
        Ok(EngineStatus {
            generation: count(generation),
            collections: collections.collect::<Result<_, _>>()?,
        })
    }

    /// Builds graphs that are due, at once and after each batch, until `closing`.
    async fn maintain(&self, closing: CancellationToken) {
        loop {
            let is_filling = self.is_filling() && !closing.is_cancelled();
            if !is_filling && let Err(error) = graphs::build(&self.pool).await {
                tracing::warn!(
                    error = with_causes(&error),
                    "a graph of the vector engine could not be built; trying again later"
                );
            }
            if closing.is_cancelled() {
                return;
            }
            let pause = if is_filling { FILL_PAUSE } else { graphs::LOOK_EVERY };
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.changed.notified(), if !is_filling => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// A collection's size. Its bytes are its share of the table's. `None` for a level of a newer version.
fn collection(row: &sqlx::postgres::PgRow) -> Result<Option<CollectionStatus>, EngineError> {
    let space: i32 = get(row, "space")?;
    let number: i16 = get(row, "level")?;
    let Some(level) = Level::ALL.into_iter().find(|level| level_number(*level) == number) else {
        return Ok(None);
    };
    let live = count(get(row, "live")?);
    let bytes: Option<i64> = row.try_get("bytes").map_err(failed)?;
    let at = Collection { space: space.cast_unsigned(), level };
    Ok(Some(CollectionStatus {
        at,
        live,
        bytes: count(bytes.unwrap_or(0)),
        graph: get(row, "graph")?,
        lost: false,
    }))
}
