//! Milvus as an engine: a server of its own, shared by several servers of this service.
//!
//! Each space and level is a collection with an HNSW graph; a further one has the state. Milvus has no transactions and
//! does not compare every vector on request. So:
//!
//! - A batch arrives in parts, and its seq last. A search in between may find a part of a batch.
//! - A writer whose lease ends during a batch may finish that batch, but its seq does not count. The next is refused.
//! - Searches are never exact on request, and say `complete` only if Milvus counts no more keys than it returned.
//! - If more than 65 vectors share the score of the last place, any of them may be the last hits.
//! - Filters of more than 10,000 keys go by video, or are applied here. An allowed vector behind 16,384 others is then
//!   not found. Such an answer has fewer hits, and is not complete.

mod address;
mod client;
mod rows;
mod search;
mod state;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{
    Ask, Batch, CollectionStatus, EngineError, EngineStatus, Hits, Limits, Put, Scored, VectorIndex,
};
use crate::terms::{Collection, KeySet, Level, SpaceInfo, SpanKey, UnitVector};
use client::Client;
use rows::Names;
use search::Search;
use state::State;

/// Milvus' longest vectors.
const MOST_VALUES: usize = 32_768;
/// Counts are this old at most. Other servers may write too.
const COUNTS_LAST: Duration = Duration::from_secs(2);
/// Bytes of a row beside its vector: key, video and links.
const ROW_BYTES: u64 = 16 + 3 * 16 * 4;

/// Vectors in a Milvus server.
pub struct Milvus {
    client: Client,
    library: Uuid,
    names: Names,
    /// Declared spaces, as far as this server knows. Others may have declared more.
    spaces: RwLock<BTreeMap<u32, SpaceInfo>>,
    /// Held while something is written: one task at a time.
    writing: Mutex<()>,
    counts: Mutex<Option<Counts>>,
}

struct Counts {
    at: Instant,
    status: EngineStatus,
}

impl Milvus {
    /// Connects to the server at `url`: `http://[user:password@]host[:port][/database]`, with `https` for TLS; `milvus`
    /// means `http`. Prepares an empty server for the library.
    ///
    /// # Errors
    /// [`EngineError::Away`] if the server does not answer within 10 seconds. [`EngineError::Unusable`] if the address or
    /// password is wrong. [`EngineError::Foreign`] if it holds the vectors of another library.
    pub async fn open(url: &str, library: Uuid) -> Result<Milvus, EngineError> {
        let client = Client::connect(url).await?;
        state::create(&client).await?;
        let mut state = state::read(&client).await?;
        let own = library.to_string();
        if state.library.is_empty() {
            state::own(&client, &own).await?;
            state.library.clone_from(&own);
        }
        if state.library != own {
            return Err(EngineError::Foreign { found: state.library, library: own });
        }
        Ok(Milvus {
            client,
            library,
            names: Names::of(library),
            spaces: RwLock::new(state.spaces),
            writing: Mutex::default(),
            counts: Mutex::default(),
        })
    }

    /// Reads the state. Refuses that of another library: an operator may have replaced the server's data.
    async fn state(&self) -> Result<State, EngineError> {
        let state = state::read(&self.client).await?;
        let library = self.library.to_string();
        if state.library != library {
            return Err(EngineError::Foreign { found: state.library, library });
        }
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).clone_from(&state.spaces);
        Ok(state)
    }

    fn check_width(&self, space: u32, unit: &UnitVector) -> Result<(), EngineError> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        EngineError::check_width(spaces.get(&space).map(|space| space.dim), unit)
    }

    /// Writes the vectors and removals of a batch.
    async fn write(&self, batch: &Batch) -> Result<(), EngineError> {
        let mut put: BTreeMap<Collection, BTreeMap<SpanKey, &Put>> = BTreeMap::new();
        for it in &batch.put {
            put.entry(it.at).or_default().insert(it.key, it);
        }
        let mut remove: BTreeMap<Collection, Vec<SpanKey>> = BTreeMap::new();
        for it in &batch.remove {
            remove.entry(it.at).or_default().push(it.key);
        }
        for (at, vectors) in put {
            let vectors: Vec<&Put> = vectors.into_values().collect();
            rows::put(&self.client, &self.names.name(at), &vectors).await?;
        }
        for (at, keys) in remove {
            rows::remove(&self.client, &self.names.name(at), &keys).await?;
        }
        Ok(())
    }

    /// Counts the vectors of each collection.
    async fn count(&self) -> Result<EngineStatus, EngineError> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut status = EngineStatus::default();
        for (space, info) in spaces {
            for at in at_each_level(space) {
                let live = self.client.count(&self.names.name(at), "").await?;
                let bytes = live * (info.dim as u64 * 4 + ROW_BYTES);
                if live > 0 {
                    status.collections.push(CollectionStatus { at, live, bytes, graph: true, lost: false });
                }
            }
        }
        Ok(status)
    }
}

/// A space's collections, in order.
fn at_each_level(space: u32) -> [Collection; 4] {
    Level::ALL.map(|level| Collection { space, level })
}

#[async_trait]
impl VectorIndex for Milvus {
    fn limits(&self) -> Limits {
        Limits { most_hits: client::ROWS, most_values: MOST_VALUES, exact: false, shared: true }
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        let _one = self.writing.lock().await;
        let state = self.state().await?;
        match state.spaces.get(&space.key) {
            Some(known) if known == space => return Ok(()),
            Some(known) => return Err(EngineError::redeclared(known, space)),
            None => state::declare(&self.client, space).await?,
        }
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).insert(space.key, space.clone());
        Ok(())
    }

    async fn forget(&self, space: u32) -> Result<(), EngineError> {
        let _one = self.writing.lock().await;
        let dropped = async {
            for at in at_each_level(space) {
                self.client.drop(&self.names.name(at)).await?;
            }
            // Last, so that a failure leaves the declaration, and a second call drops the rest.
            state::withdraw(&self.client, space).await
        };
        let dropped = dropped.await;
        *self.counts.lock().await = None;
        dropped?;
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).remove(&space);
        Ok(())
    }

    async fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let _one = self.writing.lock().await;
        let mut state = self.state().await?;
        if batch.fence < state.fence {
            return Err(EngineError::StaleWriter { fence: batch.fence, newest: state.fence });
        }
        batch.put.iter().try_for_each(|it| self.check_width(it.at.space, &it.unit))?;
        if batch.fence > state.fence {
            // Before the vectors: an older writer is refused from now on.
            state.ended.push(state::lease(state.fence));
            state.fence = batch.fence;
            state::write(&self.client, &state).await?;
        }
        let written = self.write(&batch).await;
        *self.counts.lock().await = None;
        written?;
        match batch.seq {
            Some(seq) if seq != state.seq => {
                state.seq = seq;
                state::write(&self.client, &state).await
            }
            _ => Ok(()),
        }
    }

    async fn applied(&self) -> Result<i64, EngineError> {
        Ok(self.state().await?.seq)
    }

    async fn ready(&self) {
        // `apply` returns when Milvus has everything. Milvus slows writers down by itself.
    }

    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let name = self.names.name(at);
        let search = Search { client: &self.client, name: &name, k: ask.k, only: ask.only.as_ref() };
        search.run(queries).await
    }

    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let keys: Vec<SpanKey> = keys.iter().collect();
        rows::scores(&self.client, &self.names.name(at), &keys, queries).await
    }

    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
        rows::keys(&self.client, &self.names.name(at), range).await
    }

    async fn status(&self) -> Result<EngineStatus, EngineError> {
        let mut counts = self.counts.lock().await;
        if let Some(counts) = counts.as_ref().filter(|counts| counts.at.elapsed() < COUNTS_LAST) {
            return Ok(counts.status.clone());
        }
        let status = self.count().await?;
        *counts = Some(Counts { at: Instant::now(), status: status.clone() });
        Ok(status)
    }
}
