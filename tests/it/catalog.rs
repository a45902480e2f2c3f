//! The conformance suite of the catalog: every case runs on SQLite and on Postgres.

mod activations;
mod alerts;
mod backups;
mod cues;
mod durability;
mod evaluations;
mod exports;
mod fills;
mod filters;
mod following;
mod insights;
mod jobs;
mod labels;
mod listing;
mod maps;
mod passages;
mod range_vectors;
mod readings;
mod refusals;
pub(crate) mod samples;
pub(crate) mod searches;
mod spans;
mod transcriptions;
mod trash;
mod upgrade;
mod uploads;
mod vectors;
mod videos;
mod visibility;
mod waits;
mod webhooks;

use std::sync::Arc;

use reprise_server::catalog::{self, Catalog, Clock, CueKind, CueScope, Visibility};
use reprise_server::terms::{KeySet, Level};
use tempfile::TempDir;

/// Readers in these tests see all videos.
pub(crate) const ALL: &Visibility = &Visibility::All;

/// A search scope for speech in spans of `level`.
pub(crate) fn spoken(level: Level, only: Option<&KeySet>) -> CueScope<'_> {
    CueScope { kind: CueKind::Speech, level, only }
}

/// An empty catalog, and its address for opening it again.
pub(crate) struct Opened {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) url: String,
    pub(crate) clock: Clock,
    _folder: Option<TempDir>,
}

impl Opened {
    pub(crate) async fn sqlite() -> Option<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let url = catalog::embedded_url(folder.path());
        let clock = clock();
        let catalog = catalog::open_with_clock(&url, clock.clone()).await.unwrap();
        Some(Opened { catalog, url, clock, _folder: Some(folder) })
    }

    pub(crate) async fn postgres() -> Option<Opened> {
        let url = reprise_tests::postgres::database().await?;
        let clock = clock();
        let catalog = catalog::open_with_clock(&url, clock.clone()).await.unwrap();
        Some(Opened { catalog, url, clock, _folder: None })
    }
}

/// A clock that moves only when a test advances it.
fn clock() -> Clock {
    Clock::set_to(catalog::instant::now_ms())
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
