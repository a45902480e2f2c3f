//! Everything that a running server holds, opened and closed in order.

mod models;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::catalog::{self, Catalog, CatalogError};
use crate::config::Config;
use crate::ingest;
use crate::media::MediaStore;
use crate::spaces::{Spaces, SpacesError};
use crate::vectors::{EngineError, Vectors};

pub use models::Added;

/// The parts of a server.
pub struct App {
    /// Its settings.
    pub config: Config,
    /// What is known.
    pub catalog: Arc<dyn Catalog>,
    /// The models.
    pub spaces: Spaces,
    /// What is searched.
    pub vectors: Arc<Vectors>,
    /// The files.
    pub media: MediaStore,
    /// Places for decoding queries.
    pub query_decodes: Arc<Semaphore>,
    /// Places for rendering pictures and video for people.
    pub renders: Semaphore,
    /// Queries worth trying, which the page offers; set once, by a demo.
    pub examples: OnceLock<Vec<Example>>,
    /// Whether requests should be sent here.
    pub ready: AtomicBool,
}

/// A query as a link of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What is asked, in words.
    pub title: String,
    /// Path and query of the page's address.
    pub href: String,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder can't be used; the operator should choose another or free it.
    #[error("the data folder {folder} can't be used: {error}")]
    DataFolder {
        /// The folder.
        folder: String,
        /// What failed.
        error: std::io::Error,
    },
    /// The database can't be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The index can't be used.
    #[error(transparent)]
    Vectors(#[from] EngineError),
    /// A model can't be used.
    #[error(transparent)]
    Spaces(#[from] SpacesError),
}

/// The background tasks of an open [`App`].
pub struct Background {
    closing: CancellationToken,
    runners: Vec<JoinHandle<()>>,
    /// Those that follow the catalog, sweep the media folder, mend and check the index.
    caretakers: Vec<JoinHandle<()>>,
}

/// How long a job may take to stop.
const RUNNER_PATIENCE: Duration = Duration::from_secs(20);
/// How often files that no video names are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

impl App {
    /// Opens folder, catalog, models and index, in this order. Not ready yet: nothing runs in the background.
    ///
    /// # Errors
    /// [`StartError`] names the part that failed.
    pub async fn open(config: Config) -> Result<Arc<App>, StartError> {
        let data_folder =
            |error| StartError::DataFolder { folder: config.data_dir.display().to_string(), error };
        std::fs::create_dir_all(&config.data_dir).map_err(data_folder)?;
        let media = MediaStore::open(&config.data_dir).map_err(data_folder)?;
        let catalog = catalog::open(&config.catalog_url()).await?;
        let spaces = Spaces::load(&config, &*catalog).await?;
        let expected = spaces.all().iter().map(|it| models::expectation(it)).collect();
        let vectors = Vectors::open(config.index_engine(), Arc::clone(&catalog), expected).await?;
        Ok(Arc::new(App {
            query_decodes: Arc::new(Semaphore::new(config.query_decodes.max(1))),
            renders: Semaphore::new(2),
            examples: OnceLock::new(),
            ready: AtomicBool::new(false),
            vectors: Arc::new(vectors),
            config,
            catalog,
            spaces,
            media,
        }))
    }

    /// Starts runners and follower, asks for vectors that stored videos lack, and becomes ready.
    ///
    /// # Errors
    /// The catalog failed.
    pub async fn start(self: &Arc<Self>) -> Result<Background, StartError> {
        let fills = self.enqueue_fills(&self.spaces.all()).await?;
        if fills > 0 {
            tracing::info!(videos = fills, "videos lack vectors of a loaded space; filling them in");
        }
        let closing = CancellationToken::new();
        let runner = |_| tokio::spawn(ingest::run_forever(Arc::clone(self), closing.clone()));
        let runners = (0..self.config.runners).map(runner).collect();
        let follower = tokio::spawn(Arc::clone(&self.vectors).follow(closing.clone()));
        let sweeper = tokio::spawn(Arc::clone(self).sweep_until(closing.clone()));
        let keeper = tokio::spawn(Arc::clone(&self.vectors).maintain(closing.clone()));
        let checks = self.config.index_checks();
        let checker = tokio::spawn(Arc::clone(&self.vectors).check_until(checks, closing.clone()));
        self.ready.store(true, Ordering::Release);
        Ok(Background { closing, runners, caretakers: vec![follower, sweeper, keeper, checker] })
    }

    /// Whether requests should be sent here: started, not closing, and every model has a living worker.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) && self.spaces.alive()
    }

    /// Closes in order, after the last request: runners hand back their jobs, pools finish, the index is
    /// snapshotted, the catalog closes.
    pub async fn close(self: &Arc<Self>, background: Background) {
        self.ready.store(false, Ordering::Release);
        background.closing.cancel();
        for runner in background.runners {
            if tokio::time::timeout(RUNNER_PATIENCE, runner).await.is_err() {
                tracing::warn!("a job did not stop in time; its lease will run out");
            }
        }
        let app = Arc::clone(self);
        if let Err(panic) = tokio::task::spawn_blocking(move || app.spaces.close()).await {
            tracing::warn!(%panic, "a pool did not close cleanly");
        }
        for caretaker in background.caretakers {
            if let Err(panic) = caretaker.await {
                tracing::warn!(%panic, "a background task had ended early");
            }
        }
        self.vectors.close().await;
        self.catalog.close().await;
    }

    async fn sweep_until(self: Arc<Self>, closing: CancellationToken) {
        while !closing.is_cancelled() {
            if let Err(error) = self.sweep_orphans().await {
                tracing::warn!(%error, "the videos can't be listed to sweep their folder");
            }
            tokio::select! {
                () = closing.cancelled() => {}
                () = tokio::time::sleep(SWEEP_EVERY) => {}
            }
        }
    }

    /// Removes what a crash between storing a file and its row, or between deleting a row and its file, left.
    async fn sweep_orphans(self: &Arc<Self>) -> Result<(), CatalogError> {
        let mut known = HashSet::new();
        let mut after = None;
        loop {
            let videos = self.catalog.videos(after, 1000).await?;
            let Some(last) = videos.last().map(|video| video.id) else { break };
            after = Some(last);
            known.extend(videos.into_iter().map(|video| video.id));
        }
        let app = Arc::clone(self);
        let sweep = move || app.media.sweep_orphans(|id| known.contains(&id));
        match tokio::task::spawn_blocking(sweep).await {
            Ok(Ok(0)) => {}
            Ok(Ok(removed)) => tracing::info!(removed, "removed files that no video names"),
            Ok(Err(error)) => tracing::warn!(%error, "the video folder can't be swept"),
            Err(panic) => tracing::warn!(%panic, "the video folder can't be swept"),
        }
        Ok(())
    }
}
