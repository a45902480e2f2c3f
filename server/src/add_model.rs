//! Adds models to a running server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_encoders::{LoadOptions, ModelName};

use crate::app::App;
use crate::catalog::CatalogError;
use crate::ingest;
use crate::models::{self, LoadedSpace, Measuring, SpacesError};
use crate::terms::{QueryKind, SpaceInfo};

/// Result of adding a model.
pub struct Added {
    /// The space.
    pub space: Arc<LoadedSpace>,
    /// Whether this call loaded it. Otherwise it was loaded before.
    pub is_new: bool,
}

/// A model to add.
pub struct NewModel {
    /// The model.
    pub model: ModelName,
    /// Whether the fill of its space waits until it is resumed.
    pub paused: bool,
}

/// Loads a model into the running server, now and at each start. Then measures it on stored clips. Background jobs fill
/// its space.
///
/// Continues if the caller stops waiting, because a download may take long. A repeated call waits for the same load.
/// Searches and ingests continue meanwhile.
///
/// # Errors
/// [`SpacesError`]. Nothing was added.
pub async fn add_model(app: &Arc<App>, new: NewModel) -> Result<Added, SpacesError> {
    let (app, name) = (Arc::clone(app), new.model.to_string());
    let added = tokio::spawn(async move { load_and_add(&app, &new).await }).await;
    added.map_err(|panic| SpacesError::Panicked { model: name, panic: panic.to_string() })?
}

async fn load_and_add(app: &App, new: &NewModel) -> Result<Added, SpacesError> {
    let NewModel { model, paused } = new;
    let name = model.to_string();
    let turn = app.spaces.take_turn(&name).await;
    let is_it = |it: &Arc<LoadedSpace>| it.space.model == name;
    if let Some(space) = app.spaces.all().into_iter().find(is_it) {
        return Ok(Added { space, is_new: false });
    }
    let progress = Some(Arc::clone(&turn.progress));
    let options = LoadOptions { progress, ..app.config.load_options() };
    let loaded = models::load_model(model, options).await?;
    if let Some(space) = app.spaces.named(&loaded.space.id) {
        return Ok(Added { space, is_new: false });
    }
    let space = Arc::new(models::start(loaded, &app.config, &app.catalog, true).await?);
    if !app.ready.load(Ordering::Acquire) {
        return Err(SpacesError::Closing);
    }
    if *paused {
        app.catalog.pause_fill(space.key).await?;
    }
    // Before others see the space: they see that its time is not known yet.
    let measurement = Measurement::of(&space);
    // Before anything is stored in the space.
    app.vectors.add(expectation(&space)).await?;
    app.spaces.add(Arc::clone(&space), &app.catalog).await?;
    if let Some(measurement) = measurement {
        measurement.run(app).await;
    }
    // Running jobs keep the spaces from their start. Afterwards they enqueue a fill for the new space.
    let fills = enqueue_fills(app, std::slice::from_ref(&space)).await?;
    tracing::info!(space = space.space.name, videos = fills, "a model was added; filling its space");
    Ok(Added { space, is_new: true })
}

/// A measurement of the time of a clip in a space. The space shows it as begun, also before it runs.
pub(crate) struct Measurement {
    space: Arc<LoadedSpace>,
    measuring: Measuring,
}

impl Measurement {
    /// `None` if the space takes no frames, or if its time is known or is being measured.
    pub(crate) fn of(space: &Arc<LoadedSpace>) -> Option<Measurement> {
        let measuring = if space.space.can.frames { space.pace.begin()? } else { return None };
        Some(Measurement { space: Arc::clone(space), measuring })
    }

    /// Measures for some seconds up to two minutes. Errors are logged.
    pub(crate) async fn run(self, app: &App) {
        let Measurement { space, measuring } = self;
        if let Some(seconds) = ingest::seconds_a_clip(app, &space).await {
            tracing::info!(space = space.space.name, seconds, "measured the time of a clip");
            measuring.end(seconds);
        }
    }
}

/// The measurements to make before a start's fills: of the spaces that lack vectors of stored clips, paused or not.
///
/// # Errors
/// The catalog failed.
pub(crate) async fn unmeasured(app: &App) -> Result<Vec<Measurement>, CatalogError> {
    let mut found = Vec::new();
    for space in app.spaces.all().into_iter().filter(|it| it.space.can.frames) {
        if app.catalog.lacks_clips(space.key).await? {
            found.extend(Measurement::of(&space));
        }
    }
    Ok(found)
}

/// Ends the pause of a space's fill, and enqueues the fills that it lacks.
///
/// # Errors
/// The catalog failed.
pub async fn resume_fill(app: &App, space: &Arc<LoadedSpace>) -> Result<(), CatalogError> {
    app.catalog.resume_fill(space.key).await?;
    enqueue_fills(app, std::slice::from_ref(space)).await?;
    Ok(())
}

/// Enqueues fills for vectors that ready videos lack in `spaces`, passages included. Leaves out spaces whose fill is
/// paused. Returns the number of jobs.
pub(crate) async fn enqueue_fills(app: &App, spaces: &[Arc<LoadedSpace>]) -> Result<u64, CatalogError> {
    let paused = app.catalog.paused_fills().await?;
    let spaces: Vec<&Arc<LoadedSpace>> = spaces.iter().filter(|it| !paused.contains(&it.key)).collect();
    let sees: Vec<u32> = spaces.iter().filter(|it| it.space.can.frames).map(|it| it.key).collect();
    let mut fills = app.catalog.enqueue_fills(&sees).await?;
    for space in spaces.iter().filter(|it| it.can(QueryKind::Spoken)) {
        for video in app.catalog.videos_lacking_passages(space.key).await? {
            fills += u64::from(app.catalog.enqueue_fill(video).await?);
        }
    }
    Ok(fills)
}

/// The index's description of a space.
pub(crate) fn expectation(space: &LoadedSpace) -> SpaceInfo {
    SpaceInfo { key: space.key, id: space.space.id.clone(), dim: space.space.dim }
}
