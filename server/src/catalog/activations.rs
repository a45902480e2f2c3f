//! What was done to the spaces of a running server: models added, kinds of query moved.

use super::CatalogError;
use super::database::{Database, values};
use super::types::Activation;
use crate::config::QueryKind;

pub(super) async fn keep(database: &Database, space: u32) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    tx.execute("UPDATE spaces SET added = $2 WHERE key = $1", values![space, true]).await?;
    tx.commit().await
}

pub(super) async fn store(database: &Database, activations: &[Activation]) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    for Activation { kind, space, named } in activations {
        let sql = "INSERT INTO activations (kind, space, named) VALUES ($1, $2, $3) \
                   ON CONFLICT (kind) DO UPDATE SET space = excluded.space, named = excluded.named";
        tx.execute(sql, values![kind.name(), *space, named.clone()]).await?;
    }
    tx.commit().await
}

pub(super) async fn list(database: &Database) -> Result<Vec<Activation>, CatalogError> {
    let rows = database.rows("SELECT kind, space, named FROM activations ORDER BY kind", values![]).await?;
    let mut activations = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: String = row.get("kind")?;
        let kind = QueryKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| CatalogError::Damaged(format!("a kind of query called {name}")))?;
        activations.push(Activation { kind, space: row.space("space")?, named: row.get("named")? });
    }
    Ok(activations)
}

pub(super) async fn forget(database: &Database) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    tx.execute("DELETE FROM activations", values![]).await?;
    tx.execute("UPDATE spaces SET added = $1", values![false]).await?;
    tx.commit().await
}
