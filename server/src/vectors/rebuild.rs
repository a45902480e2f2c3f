//! Fills a shared engine from the catalog: anew, or where an earlier attempt stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::follow::Step;
use super::{Batch, EngineError, EngineSettings, Opened, Vectors, open};
use crate::catalog::{Catalog, SpaceRow};

/// Longest wait for a server that writes to the engine.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How far a rebuild is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The newest change in the engine.
    pub applied: i64,
    /// The newest change of the catalog.
    pub newest: i64,
}

impl Vectors {
    /// Opens a shared engine for tools: declares nothing and fills nothing.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be used.
    pub async fn open_to_mend(
        settings: EngineSettings,
        catalog: Arc<Catalog>,
    ) -> Result<Vectors, EngineError> {
        let rows = catalog.spaces().await?;
        let (kind, name) = (settings.kind, settings.name());
        let engine = open::engine(settings, &catalog, &[]).await?;
        let most = engine.limits().most_values;
        let spaces = rows.iter().map(SpaceRow::expectation).filter(|space| space.dim <= most).collect();
        Ok(Vectors::new(Opened { engine, kind, name }, catalog, spaces))
    }

    /// Empties a shared engine, unless an earlier rebuild was cut off. Servers go on searching it meanwhile, and find what
    /// is in it.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] while a busy server writes to the engine; else [`EngineError`] if the engine or the
    /// catalog fails.
    pub async fn begin_anew(&self) -> Result<(), EngineError> {
        self.wait_to_write().await?;
        let Some(writer) = &self.writer else { return Ok(()) };
        if writer.is_rebuilding(&self.catalog).await? {
            return Ok(());
        }
        writer.set_rebuilding(&self.catalog, true).await?;
        // The number first: an engine that died while it was emptied must not seem to hold everything.
        if !self.write(Batch { seq: Some(0), ..Batch::default() }).await? {
            let text = "another server began to write to this engine: run the command again";
            return Err(EngineError::Unusable(text.to_owned()));
        }
        for space in self.spaces() {
            self.engine.forget(space.key).await?;
        }
        Ok(())
    }

    /// Applies all changes that a shared engine lacks, builds its graphs, and gives the right to write back. After a death
    /// the next call goes on where this one was.
    ///
    /// # Errors
    /// As [`Vectors::begin_anew`].
    pub async fn fill_up(&self, report: &(dyn Fn(Progress) + Sync)) -> Result<Progress, EngineError> {
        for space in self.spaces() {
            self.engine.create(&space).await?;
        }
        let newest = self.catalog.last_seq().await?;
        loop {
            let applied = self.engine.applied().await?;
            report(Progress { applied, newest });
            if newest <= applied {
                break;
            }
            if self.apply_some().await? == Step::OtherWrites {
                self.wait_to_write().await?;
            }
        }
        self.complete().await?;
        let due_at_once = CancellationToken::new();
        due_at_once.cancel();
        self.engine.maintain(due_at_once).await;
        if let Some(writer) = &self.writer {
            writer.set_rebuilding(&self.catalog, false).await?;
            writer.release(&self.catalog).await?;
        }
        Ok(Progress { applied: self.engine.applied().await?, newest })
    }

    async fn wait_to_write(&self) -> Result<(), EngineError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let end = Instant::now() + PATIENCE;
        while writer.fence(&self.catalog).await?.is_none() {
            if Instant::now() >= end {
                let text = "a server is writing to this engine all the time: stop its ingest, or stop it";
                return Err(EngineError::Unusable(text.to_owned()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}
