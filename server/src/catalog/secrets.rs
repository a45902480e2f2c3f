//! Keys that the library signs with.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;

/// A key for signatures: 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new one. A version 4 UUID has 122 random bits of the operating system.
    pub fn random() -> Secret {
        let random = Sha256::new().chain_update(Uuid::new_v4()).chain_update(Uuid::new_v4());
        Secret(random.chain_update(Uuid::new_v4()).finalize().into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Secret {
    fn from(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Catalog {
    /// The library's secret of this name; made at the first call.
    pub async fn secret(&self, name: &str) -> Result<Secret, CatalogError> {
        let sql = "SELECT value FROM secrets WHERE name = $1";
        let mut row = self.database.row(sql, values![name]).await?;
        if row.is_none() {
            let mut tx = self.database.begin().await?;
            let new = Secret::random().bytes().to_vec();
            let insert = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
            tx.execute(insert, values![name, new]).await?;
            row = tx.row(sql, values![name]).await?;
            tx.commit().await?;
        }
        let damaged = || CatalogError::Damaged(format!("the secret {name} does not have 32 bytes").into());
        let value: Vec<u8> = row.ok_or_else(damaged)?.get("value")?;
        value.try_into().map(Secret).map_err(|_| damaged())
    }
}
