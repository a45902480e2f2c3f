//! Compares the vectors with their spans.

use std::time::Duration;

use super::{Fault, Library, VerifyError};
use crate::catalog::LackingVectors;

/// Time between two looks at missing vectors: a server may be about to queue the job that adds them.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Vectors that no search can use.
pub(super) async fn bad(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    let mut snapshot = library.catalog.snapshot().await?;
    let bad = snapshot.bad_vectors().await?;
    snapshot.end().await?;
    Ok(bad.into_iter().map(Fault::from).collect())
}

/// Spans whose vectors are missing and that no job is about to fill.
pub(super) async fn missing(library: &Library<'_>) -> Result<Vec<Fault>, VerifyError> {
    let before = lacking(library).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    let still = lacking(library).await?.into_iter();
    let fault =
        |it: LackingVectors| Fault::VectorsMissing { video: it.video, space: it.space, spans: it.spans };
    Ok(still.filter(|it| before.contains(it)).map(fault).collect())
}

async fn lacking(library: &Library<'_>) -> Result<Vec<LackingVectors>, VerifyError> {
    let mut snapshot = library.catalog.snapshot().await?;
    let lacking = snapshot.lacking_vectors().await?;
    snapshot.end().await?;
    Ok(lacking)
}
