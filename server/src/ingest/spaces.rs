//! The spaces that fills encode into.

use std::sync::Arc;

use crate::app::App;
use crate::catalog::CatalogError;
use crate::models::LoadedSpace;

/// The loaded spaces whose fill is not paused.
///
/// # Errors
/// The catalog failed.
pub async fn fillable(app: &App) -> Result<Vec<Arc<LoadedSpace>>, CatalogError> {
    let paused = app.catalog.paused_fills().await?;
    let mut spaces = app.spaces.all();
    spaces.retain(|it| !paused.contains(&it.key));
    Ok(spaces)
}
