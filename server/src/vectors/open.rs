//! Opens the vector engine that the settings name.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use reprise_encoders::with_causes;

use super::builtin::{Builtin, Settings};
use super::{EngineError, HnswRs, Pgvector, VectorIndex};
use crate::catalog::Catalog;
use crate::terms::SpaceInfo;

/// The vector engine of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EngineKind {
    /// The index crate.
    #[default]
    Builtin,
    /// The crate hnsw_rs.
    #[value(name = "hnsw_rs")]
    HnswRs,
    /// Postgres with the extension vector.
    Pgvector,
    /// Milvus.
    Milvus,
}

impl EngineKind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Builtin => "builtin",
            EngineKind::HnswRs => "hnsw_rs",
            EngineKind::Pgvector => "pgvector",
            EngineKind::Milvus => "milvus",
        }
    }
}

/// Settings to open an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The engine.
    pub kind: EngineKind,
    /// Where the engine listens. pgvector uses the catalog's Postgres without one.
    pub url: Option<String>,
    /// URL of the catalog's database.
    pub catalog_url: String,
    /// Folder of the built-in engine's snapshots.
    pub folder: PathBuf,
    /// Settings of the built-in engine's graphs and seals.
    pub builtin: Settings,
}

impl EngineSettings {
    /// The engine's name in the catalog: its kind, and its address without user, password and parameters.
    pub(super) fn name(&self) -> String {
        let url = self.url.as_deref().unwrap_or("catalog");
        let address = url.split_once("://").map_or(url, |(_, rest)| rest);
        let address = address.split(['?', '#']).next().unwrap_or_default();
        let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
        format!("{} {}", self.kind.name(), address.trim_end_matches('/'))
    }

    /// URL of the Postgres database that pgvector uses.
    fn postgres_url(&self) -> Result<&str, EngineError> {
        let is_postgres = |url: &&str| url.starts_with("postgres://") || url.starts_with("postgresql://");
        match (&self.url, Some(self.catalog_url.as_str()).filter(is_postgres)) {
            (Some(url), _) if is_postgres(&url.as_str()) => Ok(url),
            (Some(_), _) => Err(EngineError::Unusable(
                "--index-url must start with postgres:// for --index-engine pgvector".to_owned(),
            )),
            (None, Some(url)) => Ok(url),
            (None, None) => Err(EngineError::Unusable(
                "--index-engine pgvector needs a Postgres: name one with --index-url postgres://…, or keep the catalog in \
                 one with --database-url"
                    .to_owned(),
            )),
        }
    }

    fn milvus_url(&self) -> Result<&str, EngineError> {
        self.url.as_deref().ok_or_else(|| {
            let text = "--index-engine milvus needs --index-url, as in http://HOST:19530";
            EngineError::Unusable(text.to_owned())
        })
    }

    fn refuse_url(&self) -> Result<(), EngineError> {
        match self.url {
            None => Ok(()),
            Some(_) => {
                let kind = self.kind.name();
                let text = format!("--index-url is for pgvector and milvus; --index-engine is {kind}");
                Err(EngineError::Unusable(text))
            }
        }
    }
}

/// Opens the engine. The built-in one starts with its last snapshot, which must fit `spaces`.
///
/// # Errors
/// [`EngineError::Unusable`] and [`EngineError::Foreign`] say what the operator must change, also if nothing answers.
pub(super) async fn engine(
    settings: EngineSettings,
    catalog: &Arc<Catalog>,
    spaces: &[SpaceInfo],
) -> Result<Arc<dyn VectorIndex>, EngineError> {
    let name = settings.name();
    open(settings, catalog, spaces).await.map_err(|error| match error {
        EngineError::Away(cause) => EngineError::Unusable(format!(
            "the vector engine ({name}) does not answer: {}; start it, or mend --index-url",
            with_causes(&*cause)
        )),
        other => other,
    })
}

async fn open(
    settings: EngineSettings,
    catalog: &Arc<Catalog>,
    spaces: &[SpaceInfo],
) -> Result<Arc<dyn VectorIndex>, EngineError> {
    Ok(match settings.kind {
        EngineKind::Builtin => {
            settings.refuse_url()?;
            let EngineSettings { folder, builtin, .. } = settings;
            Arc::new(Builtin::open(folder, Arc::clone(catalog), spaces, builtin).await?)
        }
        EngineKind::HnswRs => {
            settings.refuse_url()?;
            Arc::new(HnswRs::default())
        }
        EngineKind::Pgvector => {
            Arc::new(Pgvector::open(settings.postgres_url()?, catalog.library_id().await?).await?)
        }
        EngineKind::Milvus => milvus(settings.milvus_url()?, catalog).await?,
    })
}

/// Whether this build has the engine `milvus`.
pub const HAS_MILVUS: bool = cfg!(feature = "milvus");

#[cfg(feature = "milvus")]
async fn milvus(url: &str, catalog: &Catalog) -> Result<Arc<dyn VectorIndex>, EngineError> {
    Ok(Arc::new(super::Milvus::open(url, catalog.library_id().await?).await?))
}

#[cfg(not(feature = "milvus"))]
async fn milvus(_: &str, _: &Catalog) -> Result<Arc<dyn VectorIndex>, EngineError> {
    let text = "this reprise was built without Milvus: build it with `cargo build --release --package \
                reprise --features milvus`";
    Err(EngineError::Unusable(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: EngineKind, url: &str, expected: &str) {
        let settings = EngineSettings {
            kind,
            url: (!url.is_empty()).then(|| url.to_owned()),
            catalog_url: "sqlite:catalog".to_owned(),
            folder: PathBuf::new(),
            builtin: Settings::default(),
        };
        assert_eq!(settings.name(), expected);
    }

    #[test]
    fn an_engines_name_holds_neither_user_nor_password() {
        check(EngineKind::Pgvector, "", "pgvector catalog");
        check(
            EngineKind::Pgvector,
            "postgres://me:secret@db:5432/clips?sslmode=require",
            "pgvector db:5432/clips",
        );
        check(EngineKind::Milvus, "http://milvus:19530/", "milvus milvus:19530");
        check(EngineKind::Milvus, "https://me:p@ss@milvus", "milvus milvus");
    }
}
