//! Compares the keys of an index with the catalog's.

use std::collections::BTreeMap;

use super::ROWS_PER_READ;
use crate::catalog::{Catalog, CatalogError};
use crate::terms::{Collection, KeySet, Level};

/// Keys that only the index or only the catalog has; at least one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The collection.
    pub at: Collection,
    /// Keys that the index lacks.
    pub missing: KeySet,
    /// Keys that the catalog lacks.
    pub extra: KeySet,
}

/// Compares the keys that an index holds of a space, as of change `seq`, with the catalog. A key that changed later is no
/// difference: the change is still to be applied.
///
/// # Errors
/// [`CatalogError`] if the catalog can't be read.
pub async fn differences(
    catalog: &Catalog,
    space: u32,
    held: &BTreeMap<Level, KeySet>,
    seq: i64,
) -> Result<Vec<Difference>, CatalogError> {
    let mut found = Vec::new();
    let nothing = KeySet::new();
    for level in Level::ALL {
        let stored = catalog.vector_keys(space, level).await?;
        let held = held.get(&level).unwrap_or(&nothing);
        let (missing, extra) = (&stored - held, held - &stored);
        if !missing.is_empty() || !extra.is_empty() {
            found.push(Difference { at: Collection { space, level }, missing, extra });
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    // Read after the keys, so that it includes all changes committed meanwhile.
    let changed = changed_after(catalog, space, seq).await?;
    for difference in &mut found {
        difference.missing -= &changed;
        difference.extra -= &changed;
    }
    found.retain(|it| !it.missing.is_empty() || !it.extra.is_empty());
    Ok(found)
}

async fn changed_after(catalog: &Catalog, space: u32, mut seq: i64) -> Result<KeySet, CatalogError> {
    let mut changed = KeySet::new();
    loop {
        let changes = catalog.changes(seq, ROWS_PER_READ as u32).await?;
        let Some(last) = changes.last() else { return Ok(changed) };
        seq = last.seq;
        changed.extend(changes.iter().filter(|change| change.space == space).map(|change| change.span));
    }
}
