//! Adds models to a running server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_encoders::{LoadOptions, ModelName};

use crate::app::App;
use crate::catalog::CatalogError;
use crate::models::{self, LoadedSpace, SpacesError};
use crate::terms::{QueryKind, SpaceInfo};

/// Result of adding a model.
pub struct Added {
    /// The space.
    pub space: Arc<LoadedSpace>,
    /// Whether this call loaded it. Otherwise it was loaded before.
    pub is_new: bool,
}

/// Loads a model into the running server, now and at each start. Background jobs fill its space.
///
/// Continues if the caller stops waiting, because a download may take long. A repeated call waits for the same load.
/// Searches and ingests continue meanwhile.
///
/// # Errors
/// [`SpacesError`]. Nothing was added.
pub async fn add_model(app: &Arc<App>, model: ModelName) -> Result<Added, SpacesError> {
    let (app, name) = (Arc::clone(app), model.to_string());
    let added = tokio::spawn(async move { load_and_add(&app, &model).await }).await;
    added.map_err(|panic| SpacesError::Panicked { model: name, panic: panic.to_string() })?
}

async fn load_and_add(app: &App, model: &ModelName) -> Result<Added, SpacesError> {
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
    // Before anything is stored in the space.
    app.vectors.add(expectation(&space)).await?;
    app.spaces.add(Arc::clone(&space), &app.catalog).await?;
    // Running jobs keep the spaces from their start. Afterwards they enqueue a fill for the new space.
    let fills = enqueue_fills(app, std::slice::from_ref(&space)).await?;
    tracing::info!(space = space.space.name, videos = fills, "a model was added; filling its space");
    Ok(Added { space, is_new: true })
}

/// Enqueues fills for vectors that ready videos lack in `spaces`, passages included. Returns the number of jobs.
pub(crate) async fn enqueue_fills(app: &App, spaces: &[Arc<LoadedSpace>]) -> Result<u64, CatalogError> {
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
