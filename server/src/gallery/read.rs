//! Searches that answer right although a part of a segment's file can't be read: that part is read from the catalog.

use reprise_index::{Filter, Hit, Hits, IndexError, Mode, SpaceLevel, UnitVector};

use super::{Gallery, ROWS_PER_READ};
use crate::catalog::CatalogError;

/// Why the gallery could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GalleryError {
    /// The index refused the query.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A part of the index is damaged and the catalog, which has the same, failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// For threads that may block, as those of `spawn_blocking`: a task that calls these may panic.
impl Gallery {
    /// [`reprise_index::Index::search`] with nothing unreadable: such vectors are scored as the catalog has them, and are
    /// mended in the background.
    ///
    /// # Errors
    /// See [`GalleryError`].
    pub fn search(
        &self,
        at: SpaceLevel,
        query: &UnitVector,
        k: usize,
        filter: &Filter,
        mode: Mode,
    ) -> Result<Hits, GalleryError> {
        let mut found = self.index.search(at, query, k, filter, mode)?;
        let unreadable = std::mem::take(&mut found.unreadable);
        if unreadable.is_empty() {
            return Ok(found);
        }
        self.damage.report(at, &unreadable);
        for keys in unreadable.chunks(ROWS_PER_READ) {
            let vectors = self.runtime.block_on(self.catalog.vectors_of(at.space, keys))?;
            found.hits.extend(
                vectors.iter().map(|vector| Hit { key: vector.span, score: query.dot(&vector.unit) }),
            );
        }
        found.hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
        found.hits.truncate(k);
        found.exact |= mode == Mode::Exact;
        Ok(found)
    }

    /// [`reprise_index::Index::vector`], from the catalog if it can't be read; `None` if the key isn't live.
    ///
    /// # Errors
    /// [`GalleryError::Catalog`].
    pub fn vector(&self, at: SpaceLevel, key: u32) -> Result<Option<UnitVector>, GalleryError> {
        let found = self.index.vector(at, key);
        if found.is_some() || !self.index.contains(at, key) {
            return Ok(found);
        }
        self.damage.report(at, &[key]);
        let stored = self.runtime.block_on(self.catalog.vectors_of(at.space, &[key]))?;
        Ok(stored.into_iter().next().map(|stored| stored.unit))
    }
}
