//! The searchable vectors: a vector engine that follows the catalog.
//!
//! Engines return keys and cosines ([`VectorIndex`]). [`Vectors`] keeps one engine equal to the catalog, repairs it and
//! checks it. All searches go through it.

pub mod builtin;
mod check;
mod difference;
mod engine;
mod follow;
mod hnsw_rs;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use clap::ValueEnum;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, CatalogError};
use crate::terms::{Collection, KeySet, SpaceInfo, UnitVector};

pub use check::{CheckSettings, Checked};
pub use difference::{Difference, differences};
pub use engine::{
    Allowed, Ask, Batch, CollectionStatus, EngineError, EngineStatus, Hit, Hits, Limits, Put, Removal,
    Scored, VectorIndex,
};

use builtin::{Builtin, Settings};
use check::Checks;
use engine::Fence;

pub use self::hnsw_rs::HnswRs;

/// Changes or vectors per read from the catalog.
const ROWS_PER_READ: usize = 2_000;

/// The vector engine of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EngineKind {
    /// The index crate.
    #[default]
    Builtin,
    /// The crate hnsw_rs.
    #[value(name = "hnsw_rs")]
    HnswRs,
}

/// Settings to open an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The engine.
    pub kind: EngineKind,
    /// Folder of the built-in engine's snapshots.
    pub folder: PathBuf,
    /// Settings of the built-in engine's graphs and seals.
    pub builtin: Settings,
}

/// A vector engine, kept equal to the catalog.
pub struct Vectors {
    engine: Arc<dyn VectorIndex>,
    catalog: Arc<Catalog>,
    /// The spaces whose vectors the engine holds.
    spaces: RwLock<Vec<SpaceInfo>>,
    /// Held while a batch is applied: one task at a time.
    applying: Mutex<()>,
    /// Held while a space is filled, and while the engine is compared with the catalog.
    filling: Mutex<()>,
    checks: RwLock<Checks>,
}

impl Vectors {
    /// Opens an engine and makes it equal to the catalog for `spaces`.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog can't be read. A bad snapshot is only logged and replaced.
    pub async fn open(
        settings: EngineSettings,
        catalog: Arc<Catalog>,
        spaces: Vec<SpaceInfo>,
    ) -> Result<Vectors, EngineError> {
        let EngineSettings { kind, folder, builtin } = settings;
        let engine: Arc<dyn VectorIndex> = match kind {
            EngineKind::Builtin => {
                Arc::new(Builtin::open(folder, Arc::clone(&catalog), &spaces, builtin).await?)
            }
            EngineKind::HnswRs => Arc::new(HnswRs::default()),
        };
        Vectors::over(engine, catalog, spaces).await
    }

    /// Starts to use an open engine: applies the catalog's later changes, and fills in vectors that the engine lacks.
    /// Does not wait for the engine's background work.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog or the engine can't be read.
    pub async fn over(
        engine: Arc<dyn VectorIndex>,
        catalog: Arc<Catalog>,
        spaces: Vec<SpaceInfo>,
    ) -> Result<Vectors, EngineError> {
        let vectors = Vectors::new(engine, catalog, spaces);
        for space in vectors.spaces() {
            vectors.create(&space).await?;
        }
        if vectors.engine.applied().await? == 0 {
            // An empty engine reads the stored vectors, which is faster than all changes since the first. The seq is
            // set before, because a comparison leaves out the keys that changed after it.
            vectors.remember(vectors.catalog.last_seq().await?).await?;
        } else {
            vectors.apply_all().await?;
        }
        vectors.complete().await?;
        vectors.remember(vectors.engine.applied().await?).await?;
        vectors.apply_all().await?;
        Ok(vectors)
    }

    /// Ends a series of batches without a seq: the engine is now at change `seq`, and may seal the new vectors.
    async fn remember(&self, seq: i64) -> Result<(), EngineError> {
        self.engine.apply(Batch { seq: Some(seq), ..Batch::default() }).await
    }

    fn new(engine: Arc<dyn VectorIndex>, catalog: Arc<Catalog>, spaces: Vec<SpaceInfo>) -> Vectors {
        Vectors {
            engine,
            catalog,
            spaces: RwLock::new(spaces),
            applying: Mutex::default(),
            filling: Mutex::default(),
            checks: RwLock::default(),
        }
    }

    /// The engine's limits and abilities.
    pub fn limits(&self) -> Limits {
        self.engine.limits()
    }

    /// The engine's collections and their sizes.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    pub async fn status(&self) -> Result<EngineStatus, EngineError> {
        self.engine.status().await
    }

    /// The newest change of the catalog that a new search includes.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    pub async fn applied(&self) -> Result<i64, EngineError> {
        self.engine.applied().await
    }

    /// The nearest live keys: one [`Hits`] per query. Scores of shared engines are computed again from the catalog, so
    /// that pages agree to the last bit with any stored number format.
    ///
    /// # Errors
    /// See [`VectorIndex::search`].
    pub async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        let ask = Ask { k: ask.k.min(self.limits().most_hits), ..ask.clone() };
        let mut found = self.engine.search(at, queries, &ask).await?;
        if self.limits().shared {
            for (hits, query) in found.iter_mut().zip(queries) {
                self.score_again(at, query, &mut hits.hits).await?;
            }
        }
        Ok(found)
    }

    async fn score_again(
        &self,
        at: Collection,
        query: &UnitVector,
        hits: &mut Vec<Hit>,
    ) -> Result<(), CatalogError> {
        let keys: Vec<_> = hits.iter().map(|hit| hit.key).collect();
        hits.clear();
        for keys in keys.chunks(ROWS_PER_READ) {
            let stored = self.catalog.vectors_of(at.space, keys).await?;
            hits.extend(stored.iter().map(|it| Hit { key: it.span, score: query.dot(&it.unit) }));
        }
        Hit::sort(hits);
        Ok(())
    }

    /// The cosines of exactly these keys with each query; dead keys are left out.
    ///
    /// # Errors
    /// See [`VectorIndex::scores`].
    pub async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        self.engine.scores(at, keys, queries).await
    }

    /// Adds a space: fills in its stored vectors, and follows its changes from now on.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog can't be read. The engine then holds the vectors read so far, and the next start
    /// reads the rest.
    pub async fn add(&self, space: SpaceInfo) -> Result<(), EngineError> {
        let _filling = self.filling.lock().await;
        {
            let _one = self.applying.lock().await;
            self.create(&space).await?;
            let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
            spaces.retain(|known| known.key != space.key);
            spaces.push(space.clone());
        }
        self.complete_space(&space, &|_, _| ()).await?;
        let _one = self.applying.lock().await;
        self.remember(self.engine.applied().await?).await
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        let most = self.limits().most_values;
        if most < space.dim {
            return Err(EngineError::TooWide { space: space.id.clone(), values: space.dim, most });
        }
        self.engine.create(space).await
    }

    /// Runs the engine's background work until `closing`.
    pub async fn maintain(self: Arc<Self>, closing: CancellationToken) {
        self.engine.maintain(closing).await;
    }

    /// Applies the last changes and closes the engine. Failures are only logged: the catalog has everything.
    pub async fn close(&self) {
        if let Err(error) = self.apply_all().await {
            tracing::warn!(%error, "the index can't follow the catalog to its end");
        }
        self.engine.close().await;
    }

    fn spaces(&self) -> Vec<SpaceInfo> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
