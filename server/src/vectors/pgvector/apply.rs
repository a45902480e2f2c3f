//! Applies a batch in one transaction, together with its seq.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::failure::failed;
use super::tables::{get, level_number, table};
use super::values::{PgUnit, bigint};
use super::{Batch, EngineError};
use crate::terms::Collection;
use crate::vectors::{Put, Removal};

/// Values of the vectors in one statement: 16 MB.
const VALUES_PER_STATEMENT: usize = 4 << 20;

/// Stores the batch's vectors, removes its keys, counts both, and records its seq.
///
/// # Errors
/// [`EngineError::StaleWriter`]: nothing is applied. After any other error, too.
pub(super) async fn apply(connection: &mut PgConnection, batch: Batch) -> Result<(), EngineError> {
    let mut tx = connection.begin().await.map_err(failed)?;
    // A batch that is cut off is tried again, and would be cut off again.
    tx.execute("SET LOCAL statement_timeout = '10min'").await.map_err(failed)?;
    check_fence(&mut tx, batch.fence).await?;
    let mut grown: BTreeMap<Collection, i64> = BTreeMap::new();
    let mut put: BTreeMap<Collection, Vec<&Put>> = BTreeMap::new();
    batch.put.iter().for_each(|it| put.entry(it.at).or_default().push(it));
    for (at, vectors) in put {
        *grown.entry(at).or_default() += store(&mut tx, at, &vectors).await?;
    }
    let mut remove: BTreeMap<Collection, Vec<i64>> = BTreeMap::new();
    batch.remove.iter().for_each(|Removal { at, key }| remove.entry(*at).or_default().push(bigint(*key)));
    for (at, keys) in remove {
        *grown.entry(at).or_default() -= remove_keys(&mut tx, at, &keys).await?;
    }
    for (at, by) in grown.into_iter().filter(|(_, by)| *by != 0) {
        let sql = "INSERT INTO reprise_vectors.collections (space, level, live) VALUES ($1, $2, $3) \
                   ON CONFLICT (space, level) DO UPDATE SET live = collections.live + excluded.live";
        let counted = sqlx::query(sql).bind(at.space.cast_signed()).bind(level_number(at.level)).bind(by);
        counted.execute(&mut *tx).await.map_err(failed)?;
    }
    if let Some(seq) = batch.seq {
        let sql = "UPDATE reprise_vectors.engine SET applied = $1";
        sqlx::query(sql).bind(seq).execute(&mut *tx).await.map_err(failed)?;
    }
    tx.commit().await.map_err(failed)
}

/// Locks the engine's row until the end of the transaction, so that writers follow each other.
async fn check_fence(tx: &mut PgConnection, fence: u64) -> Result<(), EngineError> {
    let sql = "SELECT fence FROM reprise_vectors.engine FOR UPDATE";
    let row: PgRow = sqlx::query(sql).fetch_one(&mut *tx).await.map_err(failed)?;
    let newest = get::<i64>(&row, "fence")?.cast_unsigned();
    if fence < newest {
        return Err(EngineError::StaleWriter { fence, newest });
    }
    if newest < fence {
        let sql = "UPDATE reprise_vectors.engine SET fence = $1";
        sqlx::query(sql).bind(fence.cast_signed()).execute(tx).await.map_err(failed)?;
    }
    Ok(())
}

/// Stores or replaces vectors. Returns the number of new keys.
async fn store(tx: &mut PgConnection, at: Collection, vectors: &[&Put]) -> Result<i64, EngineError> {
    let values = vectors.first().map_or(1, |first| first.unit.values().len().max(1));
    // A row that was there has a transaction in xmax: the one that locks it for the update.
    let sql = format!(
        "WITH stored AS (INSERT INTO {} AS held (level, key, video, unit) \
         SELECT {}, new.key, new.video, new.unit FROM unnest($1::bigint[], $2::bigint[], $3::vector[]) \
         AS new (key, video, unit) ON CONFLICT (level, key) DO UPDATE SET video = excluded.video, unit = excluded.unit \
         RETURNING (xmax = 0) AS is_new) SELECT count(*) AS fresh FROM stored WHERE is_new",
        table(at.space),
        level_number(at.level)
    );
    let mut fresh = 0;
    for vectors in vectors.chunks((VALUES_PER_STATEMENT / values).max(1)) {
        let keys: Vec<i64> = vectors.iter().map(|it| bigint(it.key)).collect();
        let videos: Vec<i64> = vectors.iter().map(|it| it.video.number().cast_signed()).collect();
        let units: Vec<PgUnit> = vectors.iter().map(|it| PgUnit(&it.unit)).collect();
        let stored = sqlx::query(AssertSqlSafe(sql.clone())).bind(keys).bind(videos).bind(units);
        fresh += get::<i64>(&stored.fetch_one(&mut *tx).await.map_err(failed)?, "fresh")?;
    }
    Ok(fresh)
}

/// Removes keys, and returns how many rows it removed.
async fn remove_keys(tx: &mut PgConnection, at: Collection, keys: &[i64]) -> Result<i64, EngineError> {
    let (table, level) = (table(at.space), level_number(at.level));
    let sql = format!("DELETE FROM {table} WHERE level = {level} AND key = ANY($1)");
    let removed = sqlx::query(AssertSqlSafe(sql)).bind(keys).execute(tx).await.map_err(failed)?;
    Ok(i64::try_from(removed.rows_affected()).unwrap_or(i64::MAX))
}
