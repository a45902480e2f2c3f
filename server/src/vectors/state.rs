//! How far an engine follows the catalog, also while it does not answer.

use std::sync::PoisonError;

use reprise_encoders::with_causes;

use super::{EngineError, EngineKind, EngineStatus, Vectors};
use crate::catalog::CatalogError;

/// How far an engine follows the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Following {
    /// The engine.
    pub kind: EngineKind,
    /// The newest change in the engine; `None` while it does not answer.
    pub applied: Option<i64>,
    /// The newest change of the catalog.
    pub newest: i64,
    /// Why the engine does not follow; `None` while it does.
    pub trouble: Option<String>,
}

impl Following {
    /// Number of changes that the engine lacks; `None` while it does not answer.
    pub fn behind(&self) -> Option<u64> {
        self.applied.map(|applied| u64::try_from(self.newest - applied).unwrap_or(0))
    }
}

impl Vectors {
    /// How far the engine follows the catalog.
    ///
    /// # Errors
    /// [`CatalogError`] if the catalog can't be read. An engine that does not answer is no error here.
    pub async fn state(&self) -> Result<Following, CatalogError> {
        let (applied, away) = match self.reach.ask(self.engine.applied()).await {
            Ok(applied) => (Some(applied), None),
            Err(error) => (None, Some(with_causes(&error))),
        };
        let newest = self.catalog.last_seq().await?;
        Ok(Following { kind: self.kind, applied, newest, trouble: away.or_else(|| self.trouble()) })
    }

    /// The engine's collections and their sizes; while it does not answer, those of its last answer.
    ///
    /// # Errors
    /// [`EngineError`] if the engine answers with an error.
    pub async fn status(&self) -> Result<EngineStatus, EngineError> {
        match self.reach.ask(self.engine.status()).await {
            Ok(status) => {
                *self.last_status.write().unwrap_or_else(PoisonError::into_inner) = status.clone();
                Ok(status)
            }
            Err(EngineError::Away(_)) => {
                Ok(self.last_status.read().unwrap_or_else(PoisonError::into_inner).clone())
            }
            Err(error) => Err(error),
        }
    }
}
