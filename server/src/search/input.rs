//! Input for the ranking of one page, beside the plan: allowed keys, and hits in subtitles and text on screen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::SearchError;
use super::spoken::{self, SpokenHit, SpokenQuery};
use super::timings::millis;
use super::types::Levels;
use crate::app::Authorized;
use crate::catalog::Filter;
use crate::terms::{KeySet, Level, VideoNumber};
use crate::vectors::CaughtUp;

/// Longest wait of a page for changes committed before its request.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Up to this many keys a shared engine takes in a filter.
const FILTERED_BY_KEY: u64 = 10_000;

/// Input for the ranking of one page, beside the plan.
#[derive(Debug, Default)]
pub struct RankInput {
    /// Keys that the filter and visibility allow. `None`: all.
    pub(super) keys: Option<KeySet>,
    /// The videos of these keys, for shared engines, which filter by video where keys are many. `None` if not computed.
    pub(super) videos: Option<Arc<[VideoNumber]>>,
    /// Hits in subtitles and text on screen, each in order. `None`: they are not part of the ranking.
    pub(super) spoken: Option<Vec<SpokenHit>>,
    /// The same for the full videos beside clips.
    pub(super) spoken_of_videos: Option<Vec<SpokenHit>>,
    /// The catalog's newest change.
    pub(super) newest: i64,
    /// Number of committed changes that the index does not contain yet.
    pub(super) behind: u64,
    /// Milliseconds spent on waiting for changes and on the filter.
    pub(super) catalog_ms: f64,
}

impl RankInput {
    /// Waits for committed changes, then queries the catalog. Only the `first` page has full videos beside clips.
    pub(super) async fn gather(
        app: &Authorized,
        filter: Option<&Filter>,
        query: Option<&SpokenQuery>,
        levels: Levels,
        first: bool,
    ) -> Result<RankInput, SearchError> {
        let started = Instant::now();
        let CaughtUp { newest, behind } = app.vectors.catch_up_within(CATCH_UP).await?;
        let keys = app.view().keys_allowed(filter).await?;
        let videos = match &keys {
            Some(keys) if app.vectors.limits().shared && keys.len() > FILTERED_BY_KEY => {
                Some(app.view().videos_matching(filter).await?.into())
            }
            _ => None,
        };
        // A caller with a filter does not learn how much others have changed.
        let behind = if app.caller().visibility().is_limited() { behind.min(1) } else { behind };
        let mut input =
            RankInput { keys, videos, newest, behind, catalog_ms: millis(started), ..RankInput::default() };
        if let Some(query) = query {
            input.spoken = Some(spoken::hits(app, query, levels.of_results(), input.keys.clone()).await?);
            if first && levels == Levels::Both {
                let of_videos = spoken::hits(app, query, Level::Video, input.keys.clone()).await?;
                input.spoken_of_videos = Some(of_videos);
            }
        }
        Ok(input)
    }

    /// Whether no subtitle and no text on screen matched.
    pub(super) fn found_nothing_spoken(&self) -> bool {
        let is_empty = |hits: &Option<Vec<SpokenHit>>| hits.as_ref().is_none_or(Vec::is_empty);
        is_empty(&self.spoken) && is_empty(&self.spoken_of_videos)
    }
}
