//! Which evaluations a caller's key owns.

use uuid::Uuid;

use crate::catalog::database::{Tx, values};
use crate::catalog::error::CatalogError;

/// Whether the key of the transaction's caller made an evaluation.
pub(in crate::catalog) async fn owns(tx: &mut Tx, id: Uuid) -> Result<bool, CatalogError> {
    let Some(key) = tx.key() else { return Ok(false) };
    let sql = "SELECT id FROM evaluations WHERE id = $1 AND owner = $2";
    Ok(tx.row(sql, values![id, key]).await?.is_some())
}
