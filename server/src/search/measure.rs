//! Measures the backgrounds of a query, and what counts as a near duplicate in its space.

use std::sync::Arc;

use super::error::SearchError;
use super::plan::SearchPlan;
use super::standing::Backgrounds;
use super::types::{DuplicateBound, Levels};
use crate::app::Authorized;
use crate::models::LoadedSpace;
use crate::terms::{Background, Level, QueryVectors};
use crate::vectors::{Gallery, Sample};

/// Measures the backgrounds that the plan's hits need. `seq`: the catalog's newest change.
///
/// # Errors
/// [`SearchError`] if the catalog or the engine can't be read; [`SearchError::CursorGone`] if a space is not loaded.
pub(super) async fn measure(
    app: &Authorized,
    space: &LoadedSpace,
    plan: &SearchPlan,
    seq: i64,
) -> Result<Backgrounds, SearchError> {
    let mut measured = Backgrounds { of_text: plan.of_text, ..Backgrounds::default() };
    if let Some(query) = plan.ranking_vectors() {
        let by_clips = plan.ranks_videos_by_clips();
        if plan.levels != Levels::Video || by_clips {
            let gallery = gallery(app, space, Level::Clip);
            measured.clips = background(app, gallery, query, seq).await?;
        }
        if plan.levels != Levels::Clip {
            let mean = query.mean().filter(|_| by_clips);
            let mean = mean.and_then(|mean| QueryVectors::new(vec![mean], Default::default()));
            let gallery = gallery(app, space, Level::Video);
            measured.videos = background(app, gallery, mean.as_ref().unwrap_or(query), seq).await?;
        }
    }
    if let Some(meaning) = plan.spoken.as_ref().and_then(|spoken| spoken.meaning.as_ref()) {
        let space = app.spaces.named(&meaning.space).filter(|it| meaning.vectors.have(it.space.dim));
        let gallery = gallery(app, &*space.ok_or(SearchError::CursorGone)?, Level::Passage);
        measured.passages = background(app, gallery, meaning.vectors.vectors(), seq).await?;
    }
    Ok(measured)
}

/// The gallery of a space that the caller sees. Moments rank among clips.
fn gallery(app: &Authorized, space: &LoadedSpace, level: Level) -> Gallery {
    let caller = app.caller();
    Gallery {
        space: space.key,
        level,
        moments: level == Level::Clip && space.space.temporal,
        viewer: caller.key_id().filter(|_| caller.visibility().is_limited()),
    }
}

async fn background(
    app: &Authorized,
    gallery: Gallery,
    query: &QueryVectors,
    seq: i64,
) -> Result<Option<Background>, SearchError> {
    Ok(sample(app, gallery, seq).await?.background(query))
}

async fn sample(app: &Authorized, gallery: Gallery, seq: i64) -> Result<Arc<Sample>, SearchError> {
    if let Some(sample) = app.vectors.fresh_sample(gallery, seq) {
        return Ok(sample);
    }
    let visible = app.view().keys_allowed(None).await?;
    Ok(app.vectors.sample(gallery, visible.as_ref(), seq).await?)
}

/// Measures what counts as a near duplicate among the results of a plan. `seq`: the catalog's newest change.
///
/// # Errors
/// [`SearchError`] if the catalog or the engine can't be read.
pub(super) async fn duplicate_bound(
    app: &Authorized,
    space: &LoadedSpace,
    plan: &SearchPlan,
    seq: i64,
) -> Result<DuplicateBound, SearchError> {
    let sample = sample(app, gallery(app, space, plan.levels.of_results()), seq).await?;
    let cosine = tokio::task::spawn_blocking(move || sample.duplicate_cosine()).await?;
    Ok(DuplicateBound { cosine })
}

/// The least cosine of near duplicates among the clips of a space that the caller sees. `None` before a search has measured
/// it, and if the clips are too few.
pub fn known_duplicate_cosine(app: &Authorized, space: &LoadedSpace) -> Option<f32> {
    app.vectors.known_duplicate_cosine(gallery(app, space, Level::Clip))
}
