//! Makes a map: reads the vectors from the catalog in portions, lays out anchors and places all spans.

use std::sync::Arc;

use tokio::task::{JoinError, spawn_blocking};

use super::anchors::{Anchors, chosen};
use super::axes::Axes;
use super::rows::Rows;
use crate::catalog::{Catalog, CatalogError, MapPoint, NewMap, StoredVector};
use crate::ingest::{JobProgress, Stop};
use crate::terms::{Collection, SpanKey};

/// Vectors of one read.
const PORTION: usize = 2048;
/// Anchors from which the principal components are computed: more hardly move 50 axes.
const FOR_AXES: usize = 5000;

/// Why a map was not made.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The job was stopped.
    #[error("the map was stopped")]
    Stopped(Stop),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A part of it panicked.
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// Makes the map of a space and level.
///
/// # Errors
/// See [`MapError`].
pub async fn make(
    catalog: &Arc<Catalog>,
    of: Collection,
    progress: &Arc<JobProgress>,
) -> Result<NewMap, MapError> {
    progress.stage("read");
    // Read before the keys: a change in between is then counted as one that the map lacks.
    let seq = catalog.last_seq().await?;
    let keys = catalog.vector_keys(of.space, of.level).await?;
    let anchors = chosen(&keys);
    progress.expect(i64::try_from(keys.len() + anchors.len() as u64).unwrap_or(i64::MAX), 0.0);
    let reader = Reader { catalog, of, progress };
    let axes = reader.axes(&anchors).await?;
    let (axes, rows) = reader.project(axes, &anchors).await?;
    progress.stage("project");
    let (stopping, count) = (Arc::clone(progress), rows.len());
    let laid_out =
        spawn_blocking(move || Anchors::lay_out(axes, rows, || stopping.stopped().is_some())).await?;
    let laid_out = laid_out.ok_or_else(|| MapError::Stopped(progress.stopped().unwrap_or(Stop::Lost)))?;
    progress.stage("place");
    let all: Vec<SpanKey> = keys.iter().collect();
    let points = reader.place(laid_out, &all, count).await?;
    Ok(NewMap { of, seq, anchors: i64::try_from(count).unwrap_or(i64::MAX), points })
}

/// Reads vectors of a map.
struct Reader<'a> {
    catalog: &'a Catalog,
    of: Collection,
    progress: &'a JobProgress,
}

impl Reader<'_> {
    /// The vectors of spans, in order of key. Those deleted meanwhile are left out.
    async fn read(&self, keys: &[SpanKey]) -> Result<Vec<StoredVector>, MapError> {
        if let Some(stop) = self.progress.stopped() {
            return Err(MapError::Stopped(stop));
        }
        Ok(self.catalog.vectors_of(self.of.space, keys).await?)
    }

    async fn axes(&self, anchors: &[SpanKey]) -> Result<Axes, MapError> {
        let mut vectors = Vec::new();
        for portion in anchors.chunks(PORTION).take(FOR_AXES.div_ceil(PORTION)) {
            vectors.extend(self.read(portion).await?.into_iter().map(|stored| stored.unit.values().to_vec()));
        }
        let dim = vectors.first().map_or(0, Vec::len);
        Ok(spawn_blocking(move || Axes::of(&vectors, dim)).await?)
    }

    /// The anchors' coordinates on the axes.
    async fn project(&self, mut axes: Axes, anchors: &[SpanKey]) -> Result<(Axes, Rows), MapError> {
        let mut rows = Rows::new(axes.count());
        for (number, portion) in anchors.chunks(PORTION).enumerate() {
            let read = self.read(portion).await?;
            (axes, rows) = spawn_blocking(move || {
                read.iter().for_each(|stored| axes.project(stored.unit.values(), rows.add()));
                (axes, rows)
            })
            .await?;
            self.reached((number + 1) * PORTION);
        }
        Ok((axes, rows))
    }

    async fn place(
        &self,
        anchors: Anchors,
        keys: &[SpanKey],
        before: usize,
    ) -> Result<Vec<MapPoint>, MapError> {
        let anchors = Arc::new(anchors);
        let mut points = Vec::with_capacity(keys.len());
        for portion in keys.chunks(PORTION) {
            let read = self.read(portion).await?;
            let anchors = Arc::clone(&anchors);
            let placed = spawn_blocking(move || {
                read.iter().map(|stored| anchors.place(stored.span, &stored.unit)).collect::<Vec<_>>()
            });
            points.extend(placed.await?);
            self.reached(before + points.len());
        }
        Ok(points)
    }

    fn reached(&self, spans: usize) {
        self.progress.reached(i64::try_from(spans).unwrap_or(i64::MAX));
    }
}
