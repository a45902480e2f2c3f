//! API keys: making, finding, listing, revoking, and the quotas of what they store.

use std::sync::Arc;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, values};
use super::error::CatalogError;
use super::filter::VideoFilter;
use super::store::Catalog;
use super::tables::stored::{parse_json, to_json};
use super::types::{ApiKey, KeyLimits, NewApiKey, Scope};

/// Smallest time between two writes of a key's last use, in milliseconds.
const USE_WRITTEN_EVERY_MS: i64 = 60_000;

macro_rules! columns {
    () => {
        "k.id, k.name, k.hash, k.scopes, k.reach, k.requests_per_minute, k.searches_at_once, k.stored_bytes, \
         k.stored_seconds, k.created_at_ms, k.expires_at_ms, k.last_used_at_ms, k.revoked_at_ms"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM api_keys k WHERE k.id = $1");

/// A key with the SHA-256 of its secret half.
pub struct HashedKey {
    /// The key.
    pub key: ApiKey,
    /// SHA-256 of its secret half.
    pub hash: Vec<u8>,
}

impl Catalog {
    /// Stores a key under `id`. `hash`: SHA-256 of its secret half.
    pub async fn add_key(&self, id: Uuid, hash: [u8; 32], new: NewApiKey) -> Result<ApiKey, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "INSERT INTO api_keys (id, name, hash, scopes, reach, requests_per_minute, searches_at_once, \
                   stored_bytes, stored_seconds, created_at_ms, expires_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let scopes: Vec<&str> = new.scopes.iter().map(|scope| scope.name()).collect();
        let only = new.only.as_ref().map(|only| to_json(only.to_json())).transpose()?;
        let KeyLimits { requests_per_minute, searches_at_once, stored_bytes, stored_seconds } = new.limits;
        let values = values![
            id,
            new.name,
            hash.to_vec(),
            scopes.join(" "),
            only,
            requests_per_minute.map(i64::from),
            searches_at_once.map(i64::from),
            stored_bytes,
            stored_seconds,
            now,
            new.expires_at_ms,
        ];
        tx.execute(sql, values).await?;
        let row = tx.row(BY_ID, values![id]).await?;
        tx.commit().await?;
        let missing = || CatalogError::Damaged(format!("key {id} was stored and is not there").into());
        Ok(from_row(&row.ok_or_else(missing)?)?.key)
    }

    /// The key with this id, revoked or not.
    pub async fn key(&self, id: Uuid) -> Result<Option<HashedKey>, CatalogError> {
        let row = self.database.row(BY_ID, values![id]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// All keys, oldest first, revoked ones too.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, CatalogError> {
        let sql = concat!("SELECT ", columns!(), " FROM api_keys k ORDER BY k.id");
        let rows = self.database.rows(sql, values![]).await?;
        rows.iter().map(|row| Ok(from_row(row)?.key)).collect()
    }

    /// Whether a key was ever made.
    pub async fn has_keys(&self) -> Result<bool, CatalogError> {
        Ok(self.database.row("SELECT id FROM api_keys LIMIT 1", values![]).await?.is_some())
    }

    /// Revokes a key for good. `None` if there is no such key. A second call changes nothing.
    pub async fn revoke_key(&self, id: Uuid) -> Result<Option<ApiKey>, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";
        tx.execute(sql, values![id, now]).await?;
        let row = tx.row(BY_ID, values![id]).await?;
        tx.commit().await?;
        row.as_ref().map(|row| Ok(from_row(row)?.key)).transpose()
    }

    /// Stores that a key was used now, unless that was stored within the last minute.
    pub async fn note_use(&self, key: &ApiKey) -> Result<(), CatalogError> {
        let now = self.database.now_ms().await?;
        if key.last_used_at_ms.is_some_and(|last| now - last < USE_WRITTEN_EVERY_MS) {
            return Ok(());
        }
        let mut tx = self.database.begin().await?;
        tx.execute("UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1", values![key.id, now]).await?;
        tx.commit().await
    }

    /// The current time of the catalog, in Unix milliseconds.
    pub async fn now_ms(&self) -> Result<i64, CatalogError> {
        self.database.now_ms().await
    }
}

/// Checks that a key's videos fit into its quotas. Videos that this transaction adds count.
///
/// # Errors
/// [`CatalogError::OverQuota`].
pub(super) async fn check_quota(tx: &mut Tx, key: Uuid) -> Result<(), CatalogError> {
    check_room(tx, key, 0).await
}

/// Checks that `more_bytes` fit into a key's quotas.
///
/// # Errors
/// [`CatalogError::OverQuota`].
pub(super) async fn check_room(tx: &mut Tx, key: Uuid, more_bytes: i64) -> Result<(), CatalogError> {
    // Two uploads at once must not share the last free byte.
    let sql = Sql::Each {
        sqlite: BY_ID,
        postgres: concat!("SELECT ", columns!(), " FROM api_keys k WHERE k.id = $1 FOR UPDATE"),
    };
    let Some(row) = tx.row(sql, values![key]).await? else { return Ok(()) };
    let limits = from_row(&row)?.key.limits;
    if limits.stored_bytes.is_none() && limits.stored_seconds.is_none() {
        return Ok(());
    }
    let sql = "SELECT CAST(COALESCE(sum(bytes), 0) + (SELECT COALESCE(sum(e.bytes), 0) FROM exports e \
               WHERE e.added_by = $1) AS bigint) AS bytes, \
               CAST(COALESCE(sum(COALESCE(duration_ms, probed_ms)), 0) AS bigint) AS ms \
               FROM videos WHERE added_by = $1 AND NOT purging";
    let Some(used) = tx.row(sql, values![key]).await? else { return Ok(()) };
    let bytes = used.get::<i64>("bytes")?.saturating_add(more_bytes);
    let seconds = used.get::<i64>("ms")? / 1000;
    let over = |used: i64, most: Option<i64>, unit: &str| {
        most.filter(|most| used > *most).map(|most| {
            CatalogError::OverQuota(format!(
                "your key may store {most} {unit} and would have {used}, with those in the trash; delete videos for good, or \
                 exports, first"
            ))
        })
    };
    let error = over(bytes, limits.stored_bytes, "bytes").or(over(seconds, limits.stored_seconds, "seconds"));
    error.map_or(Ok(()), Err)
}

fn from_row(row: &Row) -> Result<HashedKey, CatalogError> {
    let damaged = |text: String| CatalogError::Damaged(text.into());
    let scopes: String = row.get("scopes")?;
    let scopes = scopes.split_whitespace().map(|name| name.parse::<Scope>().map_err(damaged));
    let only = row.get::<Option<String>>("reach")?.as_deref().map(filter).transpose()?;
    let count = |column: &str| -> Result<Option<u32>, CatalogError> {
        Ok(row.get::<Option<i64>>(column)?.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
    };
    let key = ApiKey {
        id: row.get("id")?,
        name: row.get("name")?,
        scopes: scopes.collect::<Result<_, _>>()?,
        only,
        limits: KeyLimits {
            requests_per_minute: count("requests_per_minute")?,
            searches_at_once: count("searches_at_once")?,
            stored_bytes: row.get("stored_bytes")?,
            stored_seconds: row.get("stored_seconds")?,
        },
        created_at_ms: row.get("created_at_ms")?,
        expires_at_ms: row.get("expires_at_ms")?,
        last_used_at_ms: row.get("last_used_at_ms")?,
        revoked_at_ms: row.get("revoked_at_ms")?,
    };
    Ok(HashedKey { key, hash: row.get("hash")? })
}

/// A damaged filter must fail the read: without it the key would reach every video.
fn filter(text: &str) -> Result<Arc<VideoFilter>, CatalogError> {
    let parsed = VideoFilter::parse(&parse_json(text)?);
    parsed.map(Arc::new).map_err(|error| CatalogError::Damaged(error.into()))
}
