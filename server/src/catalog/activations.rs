//! Spaces added to a running server, and the spaces chosen for kinds of query.

use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;
use super::types::Activation;
use crate::terms::QueryKind;

impl Catalog {
    /// Makes each start load the space's model.
    pub async fn keep_space(&self, space: u32) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("UPDATE spaces SET added = $2 WHERE key = $1", values![space, true]).await?;
        tx.commit().await
    }

    /// Stores the spaces that answer these kinds of query; other kinds stay unchanged.
    pub async fn activate(&self, activations: &[Activation]) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        for Activation { kind, space, named } in activations {
            let sql = "INSERT INTO activations (kind, space, named) VALUES ($1, $2, $3) \
                       ON CONFLICT (kind) DO UPDATE SET space = excluded.space, named = excluded.named";
            tx.execute(sql, values![kind.name(), *space, named.clone()]).await?;
        }
        tx.commit().await
    }

    /// All stored choices of a space for a kind of query.
    pub async fn activations(&self) -> Result<Vec<Activation>, CatalogError> {
        let rows =
            self.database.rows("SELECT kind, space, named FROM activations ORDER BY kind", values![]).await?;
        let mut activations = Vec::with_capacity(rows.len());
        for row in &rows {
            let name: String = row.get("kind")?;
            let kind = QueryKind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind =
                kind.ok_or_else(|| CatalogError::Damaged(format!("a kind of query called {name}").into()))?;
            activations.push(Activation { kind, space: row.space("space")?, named: row.get("named")? });
        }
        Ok(activations)
    }

    /// Forgets added models and chosen spaces. The spaces and their vectors stay.
    pub async fn forget_added(&self) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("DELETE FROM activations", values![]).await?;
        tx.execute("UPDATE spaces SET added = $1", values![false]).await?;
        tx.commit().await
    }
}
