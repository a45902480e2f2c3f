//! The map job: makes the map of a space and level.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::catalog::JobName;
use crate::ingest::Stop;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;
use crate::maps::{self, MapError};
use crate::terms::Collection;

/// Makes a map. It takes much of a processor, so one is made at a time.
pub(super) struct Map;

#[async_trait]
impl JobKind for Map {
    fn name(&self) -> JobName {
        JobName::Map
    }

    fn needs(&self) -> &'static [Need] {
        &[]
    }

    fn places(&self, app: &App) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&app.maps))
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        let params = work.job.params.clone().unwrap_or_default();
        let of: Collection = serde_json::from_value(params).map_err(JobError::last)?;
        let map = maps::make(&work.app.catalog, of, &work.progress).await?;
        work.report().await?;
        work.app.catalog.finish_map(&work.lease, &map).await?;
        Ok(())
    }
}

impl From<MapError> for JobError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Stopped(Stop::Closing) => JobError::Stopping,
            MapError::Stopped(Stop::Cancelled | Stop::Lost) => JobError::NotHeld,
            MapError::Catalog(error) => error.into(),
            MapError::Task(_) => JobError::passing(error),
        }
    }
}
