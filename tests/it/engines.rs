//! Vector engines of their own servers, under the service: equal answers, deaths, two servers, moves, wrong settings.

mod alike;
mod deaths;
mod large;
mod moves;
mod servers;
mod wrong;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reprise_server::catalog::{Catalog, Ingested, IngestedSpan, SpaceRow};
use reprise_server::terms::{Level, UnitVector};
use reprise_server::vectors::builtin::Settings;
use reprise_server::vectors::{EngineKind, EngineSettings, Vectors};
use reprise_tests::milvus::Lite;
use reprise_tests::postgres::Mortal;
use tempfile::TempDir;
use uuid::Uuid;

use crate::catalog::samples::{self, add, facts, lease};

/// A catalog in a folder, with one space.
struct Library {
    catalog: Arc<Catalog>,
    space: SpaceRow,
    folder: TempDir,
}

impl Library {
    async fn new(dim: usize) -> Library {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Library::open(folder.path()).await;
        let space = samples::space(&catalog, "tiny", dim).await;
        Library { catalog, space, folder }
    }

    async fn open(folder: &Path) -> Arc<Catalog> {
        reprise_server::catalog::open(&reprise_server::catalog::embedded_url(folder)).await.unwrap()
    }

    /// Adds a video whose clips have these vectors; its own is the first.
    async fn add(&self, name: &str, clips: &[UnitVector]) -> Uuid {
        let (video, _) = add(&self.catalog, samples::video(name)).await;
        let leased = lease(&self.catalog).await;
        let end_ms = 1000 * i64::try_from(clips.len()).unwrap();
        let span = |level, start_ms, end_ms, unit: &UnitVector| IngestedSpan {
            given: None,
            level,
            start_ms,
            end_ms,
            vectors: vec![(self.space.key, unit.clone(), 1.0)],
        };
        let starts = (0..).step_by(1000);
        let mut spans = vec![span(Level::Video, 0, end_ms, &clips[0])];
        spans.extend(starts.zip(clips).map(|(start, unit)| span(Level::Clip, start, start + 1000, unit)));
        let ingested = Ingested { facts: facts(end_ms), warnings: Vec::new(), spans };
        self.catalog.finish_ingest(&leased.lease, ingested).await.unwrap();
        video.id
    }

    /// Settings of an engine of this library.
    fn settings(&self, kind: EngineKind, url: Option<String>) -> EngineSettings {
        let catalog_url = reprise_server::catalog::embedded_url(self.folder.path());
        EngineSettings { kind, url, catalog_url, folder: self.index(), builtin: Settings::default() }
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    async fn vectors(&self, kind: EngineKind, url: Option<String>) -> Arc<Vectors> {
        let settings = self.settings(kind, url);
        let spaces = vec![self.space.expectation()];
        Arc::new(Vectors::open(settings, Arc::clone(&self.catalog), spaces).await.unwrap())
    }
}

/// A server of an engine that a test may kill.
enum Outside {
    Pgvector(Mortal),
    Milvus(Lite),
}

impl Outside {
    /// `None`, after printing the reason, if it is not installed.
    async fn start(kind: EngineKind) -> Option<Outside> {
        match kind {
            EngineKind::Milvus => Lite::start().await.map(Outside::Milvus),
            _ => Mortal::start().await.map(Outside::Pgvector),
        }
    }

    fn url(&self) -> String {
        match self {
            Outside::Pgvector(server) => server.url(),
            Outside::Milvus(server) => server.url(),
        }
    }

    fn kill(&mut self) {
        match self {
            Outside::Pgvector(server) => server.kill(),
            Outside::Milvus(server) => server.kill(),
        }
    }

    async fn start_again(&mut self) {
        match self {
            Outside::Pgvector(server) => server.start_again().await,
            Outside::Milvus(server) => server.start_again().await,
        }
    }
}

/// A pseudo-random unit vector, one of 40 clusters around a common direction.
fn clustered(seed: u64, dim: usize) -> UnitVector {
    let noise = |seed: u64| samples::vector(u32::try_from(seed).unwrap(), dim).0;
    let (centre, own) = (noise(1_000_000 + seed % 40), noise(seed));
    let values = centre.values().iter().zip(own.values()).enumerate();
    let raw: Vec<f32> =
        values.map(|(at, (centre, own))| 0.1 + centre + own / (1.0 + at as f32 / 8.0)).collect();
    UnitVector::from_raw(&raw).unwrap().0
}
