//! Models that are added to a running server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_encoders::ModelName;

use super::App;
use crate::catalog::CatalogError;
use crate::config::QueryKind;
use crate::spaces::{self, LoadedSpace, SpacesError};
use crate::terms::SpaceInfo;

/// A space that was asked for.
pub struct Added {
    /// The space.
    pub space: Arc<LoadedSpace>,
    /// Whether it was loaded for this; else it was there.
    pub is_new: bool,
}

impl App {
    /// Loads a model into the running server, now and at each start, and has its space filled in the background.
    ///
    /// Goes on if the caller stops waiting: a download may take longer than anyone waits. Whoever asks again waits for
    /// the same. Searches and ingests go on meanwhile.
    ///
    /// # Errors
    /// [`SpacesError`]: nothing was added.
    pub async fn add_model(self: &Arc<Self>, model: ModelName) -> Result<Added, SpacesError> {
        let (app, name) = (Arc::clone(self), model.to_string());
        let added = tokio::spawn(async move { app.load_and_add(&model).await }).await;
        added.map_err(|panic| SpacesError::Panicked { model: name, panic: panic.to_string() })?
    }

    async fn load_and_add(&self, model: &ModelName) -> Result<Added, SpacesError> {
        let name = model.to_string();
        let _turn = self.spaces.take_turn(&name).await;
        let is_it = |it: &Arc<LoadedSpace>| it.space.model == name;
        if let Some(space) = self.spaces.all().into_iter().find(is_it) {
            return Ok(Added { space, is_new: false });
        }
        let loaded = spaces::load_model(model, self.config.load_options()).await?;
        if let Some(space) = self.spaces.named(&loaded.space.id) {
            return Ok(Added { space, is_new: false });
        }
        let space = Arc::new(spaces::start(loaded, &self.config, &*self.catalog, true).await?);
        if !self.ready.load(Ordering::Acquire) {
            return Err(SpacesError::Closing);
        }
        // Before anything can be stored in it.
        self.vectors.add(expectation(&space)).await?;
        self.spaces.add(Arc::clone(&space), &*self.catalog).await?;
        // Jobs that run now end with the spaces that they began with; their runner asks for the rest.
        let fills = self.enqueue_fills(std::slice::from_ref(&space)).await?;
        tracing::info!(space = space.space.name, videos = fills, "a model was added; filling its space");
        Ok(Added { space, is_new: true })
    }

    /// Asks for the vectors that ready videos lack in `spaces`, those of passages too; in how many jobs.
    pub(super) async fn enqueue_fills(&self, spaces: &[Arc<LoadedSpace>]) -> Result<u64, CatalogError> {
        let sees: Vec<u32> = spaces.iter().filter(|it| it.space.can.frames).map(|it| it.key).collect();
        let mut fills = self.catalog.enqueue_fills(&sees).await?;
        for space in spaces.iter().filter(|it| it.can(QueryKind::Spoken)) {
            for video in self.catalog.videos_lacking_passages(space.key).await? {
                fills += u64::from(self.catalog.enqueue_fill(video).await?);
            }
        }
        Ok(fills)
    }
}

/// What the index must know of a space.
pub(super) fn expectation(space: &LoadedSpace) -> SpaceInfo {
    SpaceInfo { key: space.key, id: space.space.id.clone(), dim: space.space.dim }
}
