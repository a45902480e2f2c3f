//! Opens the parts of a server, starts its background tasks, and closes everything in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use reprise_encoders::screen_text::TesseractError;

use crate::access::{Downloads, Gate, LinkSigner};
use crate::activity::alerts;
use crate::activity::webhooks::Sender;
use crate::add_model::{Measurement, enqueue_fills, expectation, unmeasured};
use crate::app::{App, Renders};
use crate::catalog::{self, CatalogError};
use crate::config::Config;
use crate::http;
use crate::ingest;
use crate::jobs::{self, Duty, MetNeeds};
use crate::library;
use crate::models::{Spaces, SpacesError};
use crate::probes::Probes;
use crate::query_frames::QueryFrames;
use crate::query_log::QueryLog;
use crate::speech::{Speech, SpeechError};
use crate::storage::Storage;
use crate::vectors::{EngineError, Vectors};

/// Error of a server's start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder can't be used. The operator should choose another or free it.
    #[error("the data folder {folder} can't be used: {error}")]
    DataFolder {
        /// The folder.
        folder: String,
        /// The cause.
        error: std::io::Error,
    },
    /// The database can't be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A model can't be used.
    #[error(transparent)]
    Spaces(#[from] SpacesError),
    /// Speech can't be written down as the operator wants.
    #[error(transparent)]
    Speech(#[from] SpeechError),
    /// Text on screen can't be read as the operator wants.
    #[error("--read-text: {0}")]
    ScreenText(#[from] TesseractError),
    /// The index can't be used.
    #[error(transparent)]
    Vectors(#[from] EngineError),
}

/// The background tasks of an open [`App`].
pub struct Background {
    closing: CancellationToken,
    runners: Vec<JoinHandle<()>>,
    /// Tasks that follow the catalog, purge and sweep files, repair and check the index, write the query log, send webhooks
    /// and run alerts.
    caretakers: Vec<JoinHandle<()>>,
}

/// Longest wait for a job to stop.
const RUNNER_PATIENCE: Duration = Duration::from_secs(20);

/// Longest wait for the models' workers to finish their queues.
const POOL_PATIENCE: Duration = Duration::from_secs(20);

/// Opens folder, catalog, models and index, in this order. The app is not ready yet, and has no background tasks.
///
/// # Errors
/// [`StartError`] names the part that failed.
pub async fn open(config: Config) -> Result<Arc<App>, StartError> {
    let data_folder = |error| StartError::DataFolder { folder: config.data_dir.display().to_string(), error };
    std::fs::create_dir_all(&config.data_dir).map_err(data_folder)?;
    let storage = Storage::open(&config.data_dir).map_err(data_folder)?;
    if config.screen_text.read_text {
        let reader = ingest::text_reader(&config.screen_text.text_languages).await?;
        tracing::info!(reader = reader.name(), "text on screen is read in every new video");
    }
    let hold = catalog::hold(&config.catalog_url(), "a server")?;
    let catalog = catalog::open(&config.catalog_url()).await?;
    let spaces = Spaces::load(&config, &catalog).await?;
    let speech = Speech::open(&config).await?.map(Arc::new);
    let expected = spaces.all().iter().map(|it| expectation(it)).collect();
    let vectors = Vectors::open(config.index_engine(), Arc::clone(&catalog), expected).await?;
    let cursor_secret = catalog.secret("cursors").await?;
    let links = LinkSigner::new(catalog.secret("links").await?);
    let query_log = QueryLog::new(config.query_log, catalog.secret("queries").await?);
    let uploads = || Arc::new(Semaphore::new(config.max_uploads.max(1)));
    Ok(Arc::new(App {
        cursor_secret,
        links,
        query_log,
        gate: Gate::default(),
        uploads: uploads(),
        query_uploads: uploads(),
        query_decodes: Arc::new(Semaphore::new(config.query_decodes.max(1))),
        probes: Probes::default(),
        query_frames: QueryFrames::default(),
        downloads: Downloads::default(),
        renders: Renders::default(),
        fills: Arc::new(Semaphore::new(config.runners.max(1))),
        exports: Arc::new(Semaphore::new(config.exports_at_once)),
        evaluations: Arc::new(Semaphore::new(1)),
        readings: Arc::new(Semaphore::new(1)),
        maps: Arc::new(Semaphore::new(1)),
        examples: OnceLock::new(),
        ready: AtomicBool::new(false),
        vectors: Arc::new(vectors),
        config,
        catalog,
        spaces,
        speech,
        storage,
        deleted: Notify::new(),
        hold,
    }))
}

/// Starts the background tasks, enqueues fills for missing vectors, and marks the app as ready.
///
/// # Errors
/// The catalog failed.
pub async fn start(app: &Arc<App>) -> Result<Background, StartError> {
    let fills = enqueue_fills(app, &app.spaces.all()).await?;
    if fills > 0 {
        tracing::info!(videos = fills, "videos lack vectors of a loaded space; filling them in");
    }
    let closing = CancellationToken::new();
    let measurements = unmeasured(app).await?;
    if !measurements.is_empty() {
        // No runner has begun, so the places are free.
        let places = u32::try_from(app.fills.available_permits()).unwrap_or(u32::MAX);
        let held = Arc::clone(&app.fills).acquire_many_owned(places).await.ok();
        let work = measure(Arc::clone(app), measurements, held);
        tokio::spawn(closing.clone().run_until_cancelled_owned(work));
    }
    if app.config.runners > 0 && app.speech.is_none() {
        tracing::info!(
            "this process writes down no speech (no --transcribe or --transcribe-url): such jobs are left to others"
        );
    }
    let needs = Arc::new(MetNeeds::default());
    let run = |duty| jobs::run_forever(Arc::clone(app), duty, Arc::clone(&needs), closing.clone());
    let runner = |duty| tokio::spawn(run(duty));
    let usual = (0..app.config.runners).map(|_| Duty::Usual);
    let apart = (0..app.config.speech.runners(app.config.runners)).map(|_| Duty::Apart);
    let runners = usual.chain(apart).map(runner).collect();
    let follower = tokio::spawn(Arc::clone(&app.vectors).follow(closing.clone()));
    let librarian = tokio::spawn(library::tend(Arc::clone(app), closing.clone()));
    let keeper = tokio::spawn(Arc::clone(&app.vectors).maintain(closing.clone()));
    let checks = app.config.index_checks();
    let checker = tokio::spawn(Arc::clone(&app.vectors).check_until(checks, closing.clone()));
    let scribe = tokio::spawn(write_query_log(Arc::clone(app), closing.clone()));
    let mut caretakers = vec![follower, librarian, keeper, checker, scribe];
    if app.config.runners > 0 {
        let sender = Sender::new(Arc::clone(&app.catalog), app.config.webhooks_reach(), app.config.lease());
        caretakers.push(tokio::spawn(sender.run(closing.clone())));
        caretakers.push(tokio::spawn(alerts::run(Arc::clone(app), http::stored_search, closing.clone())));
    }
    app.ready.store(true, Ordering::Release);
    Ok(Background { closing, runners, caretakers })
}

/// Measures the time of a clip in some spaces. Fills wait meanwhile: they would slow the measurement, and users see the
/// time before they begin.
async fn measure(app: Arc<App>, measurements: Vec<Measurement>, places: Option<OwnedSemaphorePermit>) {
    for measurement in measurements {
        measurement.run(&app).await;
    }
    drop(places);
}

async fn write_query_log(app: Arc<App>, closing: CancellationToken) {
    app.query_log.write(&app.catalog, app.config.query_log_days, closing).await;
}

/// Closes the server in order, after the last request. Runners return their jobs, pools finish, the index writes a
/// snapshot, and the catalog closes.
pub async fn close(app: &Arc<App>, background: Background) {
    app.ready.store(false, Ordering::Release);
    background.closing.cancel();
    for runner in background.runners {
        if tokio::time::timeout(RUNNER_PATIENCE, runner).await.is_err() {
            tracing::warn!("a job did not stop in time; its lease will run out");
        }
    }
    let spaces = Arc::clone(app);
    let closed = tokio::task::spawn_blocking(move || spaces.spaces.close());
    match tokio::time::timeout(POOL_PATIENCE, closed).await {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => tracing::warn!(%panic, "a pool did not close cleanly"),
        Err(_) => tracing::warn!("a model's worker did not finish in time; its batch is dropped"),
    }
    for caretaker in background.caretakers {
        if let Err(panic) = caretaker.await {
            tracing::warn!(%panic, "a background task had ended early");
        }
    }
    app.vectors.close().await;
    app.catalog.close().await;
}
