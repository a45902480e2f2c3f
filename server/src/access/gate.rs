//! Finds the caller of a request by its key, and counts its requests against the key's limits.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, NotUntil, Quota, RateLimiter};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::caller::Caller;
use super::token::KeyToken;
use crate::catalog::{ApiKey, Catalog, CatalogError, HashedKey, KeyLimits, instant};

/// Longest time for which a stored key is not read again. A revoked key works for that long.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Finds callers. Keeps the keys that were used lately, with their rates.
#[derive(Default)]
pub struct Gate {
    known: Mutex<HashMap<Uuid, Arc<Known>>>,
    /// When the catalog was asked whether it holds keys, and the answer.
    has_keys: Mutex<Option<(Instant, bool)>>,
}

/// A stored key and the use of its limits.
struct Known {
    read_at: Instant,
    key: Arc<ApiKey>,
    hash: Vec<u8>,
    usage: Usage,
}

/// How much of a key's limits is used in this process.
#[derive(Clone)]
struct Usage {
    rate: Option<Arc<DefaultDirectRateLimiter>>,
    searches: Option<Arc<Semaphore>>,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The request has no key, or an unknown, expired or revoked one.
    #[error("no valid API key")]
    NoKey,
    /// The key's rate is used up for this long.
    #[error("the key's requests per minute are used up")]
    TooManyRequests(Duration),
    /// The key's searches at once are used up.
    #[error("the key's searches at once are used up")]
    TooManySearches,
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl Gate {
    /// The caller who sent these keys; one valid key is enough. `own`: the key that the server was started with.
    ///
    /// A server without any key admits everybody. As soon as a key was made, even one that has expired, it does not.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn caller(
        &self,
        catalog: &Catalog,
        own: Option<&str>,
        sent: &[String],
    ) -> Result<Caller, Refusal> {
        for text in sent {
            if own.is_some_and(|own| same(text, own)) {
                return Ok(Caller::unlimited());
            }
            let Ok(token) = text.parse::<KeyToken>() else { continue };
            let Some(known) = self.known(catalog, token.id()).await? else { continue };
            if token.has_hash(&known.hash) && known.key.is_valid_at(instant::now_ms()) {
                return known.admit(catalog).await;
            }
        }
        if own.is_none() && !self.has_keys(catalog).await? {
            return Ok(Caller::unlimited());
        }
        Err(Refusal::NoKey)
    }

    /// The caller who signed a link, by the key's id. `None`: a caller without an API key.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn link_owner(&self, catalog: &Catalog, key: Option<Uuid>) -> Result<Caller, Refusal> {
        let Some(id) = key else { return Ok(Caller::unlimited()) };
        let known = self.known(catalog, id).await?.ok_or(Refusal::NoKey)?;
        if !known.key.is_valid_at(instant::now_ms()) {
            return Err(Refusal::NoKey);
        }
        known.admit(catalog).await
    }

    /// Takes a place for a search, if the caller's key limits them.
    ///
    /// # Errors
    /// [`Refusal::TooManySearches`].
    pub fn search_place(&self, caller: &Caller) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        let known = caller.key_id().and_then(|id| self.known.lock().get(&id).cloned());
        let Some(places) = known.and_then(|known| known.usage.searches.clone()) else { return Ok(None) };
        places.try_acquire_owned().map(Some).map_err(|_| Refusal::TooManySearches)
    }

    /// Counts a further search of a request that holds several.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`].
    pub fn count_request(&self, caller: &Caller) -> Result<(), Refusal> {
        let known = caller.key_id().and_then(|id| self.known.lock().get(&id).cloned());
        known.map_or(Ok(()), |known| known.usage.count())
    }

    /// Whether a key was ever made; asks the catalog once a second.
    ///
    /// # Errors
    /// The catalog fails.
    pub async fn has_keys(&self, catalog: &Catalog) -> Result<bool, CatalogError> {
        let asked = *self.has_keys.lock();
        if let Some((at, has_keys)) = asked
            && (has_keys || at.elapsed() < READ_EVERY)
        {
            return Ok(has_keys);
        }
        let has_keys = catalog.has_keys().await?;
        *self.has_keys.lock() = Some((Instant::now(), has_keys));
        Ok(has_keys)
    }

    /// Forgets what was read, after a key was made or revoked in this process.
    pub fn forget(&self) {
        *self.has_keys.lock() = None;
        self.known.lock().values_mut().for_each(|known| *known = Arc::new(known.outdated()));
    }

    async fn known(&self, catalog: &Catalog, id: Uuid) -> Result<Option<Arc<Known>>, CatalogError> {
        let held = self.known.lock().get(&id).cloned();
        if let Some(known) = held.as_ref().filter(|known| known.is_fresh()) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(HashedKey { key, hash }) = catalog.key(id).await? else { return Ok(None) };
        let mut known = self.known.lock();
        // Its rate goes on, unless its limits are others now.
        let usage =
            known.get(&id).filter(|held| held.key.limits == key.limits).map(|held| held.usage.clone());
        let usage = usage.unwrap_or_else(|| Usage::new(key.limits));
        let new = Arc::new(Known { read_at: Instant::now(), key: Arc::new(key), hash, usage });
        known.insert(id, Arc::clone(&new));
        Ok(Some(new))
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < READ_EVERY
    }

    fn outdated(&self) -> Known {
        let read_at = Instant::now().checked_sub(READ_EVERY).unwrap_or(self.read_at);
        Known { read_at, key: Arc::clone(&self.key), hash: self.hash.clone(), usage: self.usage.clone() }
    }

    async fn admit(&self, catalog: &Catalog) -> Result<Caller, Refusal> {
        self.usage.count()?;
        // A database that takes no writes must not end reads.
        if let Err(error) = catalog.note_use(&self.key).await {
            tracing::warn!(%error, key = %self.key.id, "the use of a key could not be stored");
        }
        Ok(Caller::of_key(Arc::clone(&self.key)))
    }
}

impl Usage {
    /// Counts a request.
    fn count(&self) -> Result<(), Refusal> {
        let Some(rate) = &self.rate else { return Ok(()) };
        let over =
            |wait: NotUntil<_>| Refusal::TooManyRequests(wait.wait_time_from(DefaultClock::default().now()));
        rate.check().map_err(over)
    }

    fn new(limits: KeyLimits) -> Usage {
        let rate = limits.requests_per_minute.and_then(NonZeroU32::new);
        let searches = limits.searches_at_once.map(|places| Arc::new(Semaphore::new(places as usize)));
        Usage { rate: rate.map(|most| Arc::new(RateLimiter::direct(Quota::per_minute(most)))), searches }
    }
}

/// Compares hashes, so that the duration reveals nothing about the key.
fn same(sent: &str, key: &str) -> bool {
    Sha256::digest(sent).ct_eq(&Sha256::digest(key)).into()
}
