//! The conformance suite of the catalog: every case runs on SQLite and on Postgres.

mod activations;
mod cues;
mod durability;
mod filters;
mod following;
mod jobs;
mod passages;
pub(crate) mod samples;
mod spans;
mod vectors;
mod videos;

use std::sync::Arc;

use reprise_server::catalog::{self, Catalog};
use tempfile::TempDir;

/// An empty catalog, and how to open it again.
pub(crate) struct Opened {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) url: String,
    _folder: Option<TempDir>,
}

impl Opened {
    pub(crate) async fn sqlite() -> Option<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let url = catalog::embedded_url(folder.path());
        let catalog = catalog::open(&url).await.unwrap();
        Some(Opened { catalog, url, _folder: Some(folder) })
    }

    pub(crate) async fn postgres() -> Option<Opened> {
        let url = reprise_tests::postgres::database().await?;
        let catalog = catalog::open(&url).await.unwrap();
        Some(Opened { catalog, url, _folder: None })
    }
}

/// Makes `sqlite::name` and `postgres::name` of each `async fn name(opened: &Opened)`.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(opened) = crate::catalog::Opened::sqlite().await {
                    super::$name(&opened).await;
                    opened.catalog.close().await;
                }
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(opened) = crate::catalog::Opened::postgres().await {
                    super::$name(&opened).await;
                    opened.catalog.close().await;
                }
            })+
        }
    };
}

pub(crate) use on_both;
