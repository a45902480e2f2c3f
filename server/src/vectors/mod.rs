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
mod inspect;
#[cfg(feature = "milvus")]
mod milvus;
mod open;
mod pgvector;
mod reach;
mod rebuild;
mod samples;
mod state;
mod writer;

use std::sync::{Arc, PoisonError, RwLock};

use reprise_encoders::with_causes;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::catalog::{Catalog, CatalogError};
use crate::terms::{Collection, KeySet, SpaceInfo, UnitVector};

pub use check::{CheckSettings, Checked};
pub use difference::{Difference, differences};
pub use engine::{
    Allowed, Ask, Batch, CollectionStatus, EngineError, EngineStatus, Hit, Hits, Limits, Put, Removal,
    Scored, VectorIndex,
};
pub use follow::CaughtUp;

use check::Checks;
use engine::Fence;
use reach::Reach;
use samples::Samples;
use writer::Writer;

pub use self::hnsw_rs::HnswRs;
#[cfg(feature = "milvus")]
pub use milvus::Milvus;
pub use open::{EngineKind, EngineSettings, HAS_MILVUS};
pub use pgvector::{Pgvector, is_recent as is_recent_pgvector};
pub use rebuild::Progress;
pub use samples::{Gallery, Sample};
pub use state::Following;

/// Changes or vectors per read from the catalog.
const ROWS_PER_READ: usize = 2_000;

/// A vector engine, kept equal to the catalog.
pub struct Vectors {
    engine: Arc<dyn VectorIndex>,
    kind: EngineKind,
    catalog: Arc<Catalog>,
    /// Present if other servers share the engine.
    writer: Option<Writer>,
    /// Why the engine can't follow the catalog; `None` while it can.
    trouble: RwLock<Option<String>>,
    reach: Reach,
    /// The sizes in the engine's last answer.
    last_status: RwLock<EngineStatus>,
    /// The spaces whose vectors the engine holds.
    spaces: RwLock<Vec<SpaceInfo>>,
    /// Held while a batch is applied: one task at a time.
    applying: Mutex<()>,
    /// Held while a space is filled, and while the engine is compared with the catalog.
    filling: Mutex<()>,
    checks: RwLock<Checks>,
    samples: Samples,
}

impl Vectors {
    /// Opens an engine and makes it equal to the catalog for `spaces`. An engine that servers share follows the catalog in
    /// the background instead, because another server may be its writer.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog or the engine can't be used. A bad snapshot is only logged and replaced.
    pub async fn open(
        settings: EngineSettings,
        catalog: Arc<Catalog>,
        spaces: Vec<SpaceInfo>,
    ) -> Result<Vectors, EngineError> {
        let (kind, name) = (settings.kind, settings.name());
        let engine = open::engine(settings, &catalog, &spaces).await?;
        Vectors::start_on(Opened { engine, kind, name }, catalog, spaces).await
    }

    /// Starts to use an open engine, as [`Vectors::open`] does.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog or the engine can't be read.
    pub async fn over(
        engine: Arc<dyn VectorIndex>,
        catalog: Arc<Catalog>,
        spaces: Vec<SpaceInfo>,
    ) -> Result<Vectors, EngineError> {
        let opened = Opened { engine, kind: EngineKind::default(), name: "engine".to_owned() };
        Vectors::start_on(opened, catalog, spaces).await
    }

    async fn start_on(
        opened: Opened,
        catalog: Arc<Catalog>,
        spaces: Vec<SpaceInfo>,
    ) -> Result<Vectors, EngineError> {
        let vectors = Vectors::new(opened, catalog, spaces);
        for space in vectors.spaces() {
            vectors.create(&space).await?;
        }
        if vectors.writer.is_none() {
            vectors.fill().await?;
        }
        Ok(vectors)
    }

    /// Applies the catalog's later changes, and fills in vectors that the engine lacks. Does not wait for the engine's
    /// background work.
    async fn fill(&self) -> Result<(), EngineError> {
        if self.engine.applied().await? == 0 {
            // An empty engine reads the stored vectors, which is faster than all changes since the first. The seq is
            // set before, because a comparison leaves out the keys that changed after it.
            self.remember(self.catalog.last_seq().await?).await?;
        } else {
            self.apply_all().await?;
        }
        self.complete().await?;
        self.remember(self.engine.applied().await?).await?;
        self.apply_all().await
    }

    /// Ends a series of batches without a seq: the engine is now at change `seq`, and may seal the new vectors.
    async fn remember(&self, seq: i64) -> Result<(), EngineError> {
        self.write(Batch { seq: Some(seq), ..Batch::default() }).await.map(drop)
    }

    fn new(opened: Opened, catalog: Arc<Catalog>, spaces: Vec<SpaceInfo>) -> Vectors {
        let Opened { engine, kind, name } = opened;
        Vectors {
            writer: engine.limits().shared.then(|| Writer::new(name)),
            engine,
            kind,
            catalog,
            trouble: RwLock::default(),
            reach: Reach::default(),
            last_status: RwLock::default(),
            spaces: RwLock::new(spaces),
            applying: Mutex::default(),
            filling: Mutex::default(),
            checks: RwLock::default(),
            samples: Samples::default(),
        }
    }

    /// The kind of the engine.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Why the engine can't follow the catalog at the moment; `None` while it can.
    fn trouble(&self) -> Option<String> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the outcome of the follower's last step. Logs only changes of it.
    fn note(&self, error: Option<&EngineError>) {
        self.reach.note(error);
        let text = error.map(|error| with_causes(error));
        let mut trouble = self.trouble.write().unwrap_or_else(PoisonError::into_inner);
        match &text {
            Some(text) if trouble.as_ref() != Some(text) => {
                tracing::warn!(error = text, "the index can't follow the catalog; trying again");
            }
            None if trouble.is_some() => tracing::info!("the index follows the catalog again"),
            _ => {}
        }
        *trouble = text;
    }

    /// The engine's limits and abilities.
    pub fn limits(&self) -> Limits {
        self.engine.limits()
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
        let span = tracing::debug_span!("index", engine = self.kind.name(), level = ?at.level, k = ask.k);
        self.found(at, queries, ask).instrument(span).await
    }

    async fn found(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        if !self.limits().shared {
            return self.engine.search(at, queries, &ask).await;
        }
        let mut found = Vec::with_capacity(queries.len());
        for hits in self.reach.ask(self.engine.search(at, queries, &ask)).await? {
            let query = &queries[found.len()];
            found.push(self.checked_hits(at, query, &ask, hits).await?);
        }
        Ok(found)
    }

    /// Scores hits again, and leaves out keys that the catalog has no more. Asks for more in their place: the engine
    /// removes them later.
    async fn checked_hits(
        &self,
        at: Collection,
        query: &UnitVector,
        ask: &Ask,
        mut hits: Hits,
    ) -> Result<Hits, EngineError> {
        let most = self.limits().most_hits;
        let mut wanted = ask.k;
        loop {
            let before = hits.hits.len();
            self.score_again(at, query, &mut hits.hits).await?;
            let gone = before - hits.hits.len();
            if gone == 0 || hits.complete || wanted == most || before < wanted {
                hits.complete &= hits.hits.len() <= ask.k;
                hits.hits.truncate(ask.k);
                return Ok(hits);
            }
            wanted = wanted.saturating_add(gone.max(wanted)).min(most);
            let more = Ask { k: wanted, ..ask.clone() };
            let found = self.reach.ask(self.engine.search(at, std::slice::from_ref(query), &more)).await?;
            let Some(found) = found.into_iter().next() else { return Ok(hits) };
            hits = found;
        }
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
        self.reach.ask(self.engine.scores(at, keys, queries)).await
    }

    /// Adds a space: fills in its stored vectors, and follows its changes from now on. In a shared engine the writer follows
    /// every space of the catalog already.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog can't be read. The engine then holds the vectors read so far, and the next start
    /// reads the rest.
    pub async fn add(&self, space: SpaceInfo) -> Result<(), EngineError> {
        let _filling = self.filling.lock().await;
        {
            let _one = self.applying.lock().await;
            self.create(&space).await?;
            self.remember_space(space.clone());
        }
        if self.writer.is_some() {
            return Ok(());
        }
        self.complete_space(&space, &|_, _| ()).await?;
        let _one = self.applying.lock().await;
        self.remember(self.engine.applied().await?).await
    }

    fn remember_space(&self, space: SpaceInfo) {
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        spaces.retain(|known| known.key != space.key);
        spaces.push(space);
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

    /// Applies the last changes and closes the engine. A shared engine goes on with another server or the next start, so
    /// only the right to write is given back. Failures are only logged: the catalog has everything.
    pub async fn close(&self) {
        let done = match &self.writer {
            None => self.apply_all().await,
            Some(writer) => writer.release(&self.catalog).await.map_err(EngineError::from),
        };
        if let Err(error) = done {
            tracing::warn!(error = with_causes(&error), "the vector engine was not closed in order");
        }
        self.engine.close().await;
    }

    fn spaces(&self) -> Vec<SpaceInfo> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An open engine.
struct Opened {
    engine: Arc<dyn VectorIndex>,
    kind: EngineKind,
    /// Its name in the catalog.
    name: String,
}
