//! The input of one page's ranking beside the plan: the keys that filter and visibility allow, and the hits among subtitles.

use std::time::{Duration, Instant};

use super::error::SearchError;
use super::spoken::{self, SpokenHit, SpokenQuery};
use super::timings::millis;
use super::types::Levels;
use crate::app::App;
use crate::catalog::{Filter, Visibility};
use crate::terms::{KeySet, Level};

/// How long a page waits for changes that were committed before it was requested.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The input of one page's ranking beside the plan.
#[derive(Debug, Default)]
pub struct RankInput {
    /// `None`: all keys are allowed.
    pub(super) keys: Option<KeySet>,
    /// `None`: subtitles are no part of the ranking.
    pub(super) spoken: Option<Vec<SpokenHit>>,
    /// The same for the full videos beside clips.
    pub(super) spoken_of_videos: Option<Vec<SpokenHit>>,
    /// Time spent on changes and on the filter.
    pub(super) catalog_ms: f64,
}

impl RankInput {
    /// Waits for committed changes, then asks the catalog; full videos stand beside clips on the `first` page alone.
    pub(super) async fn gather(
        app: &App,
        filter: Option<&Filter>,
        query: Option<&SpokenQuery>,
        levels: Levels,
        first: bool,
    ) -> Result<RankInput, SearchError> {
        let started = Instant::now();
        app.vectors.catch_up_within(CATCH_UP).await?;
        let keys = app.catalog.view(&Visibility::All).keys_allowed(filter).await?;
        let mut input = RankInput { keys, catalog_ms: millis(started), ..RankInput::default() };
        if let Some(query) = query {
            input.spoken = Some(spoken::hits(app, query, levels.of_results(), input.keys.clone()).await?);
            if first && levels == Levels::Both {
                let of_videos = spoken::hits(app, query, Level::Video, input.keys.clone()).await?;
                input.spoken_of_videos = Some(of_videos);
            }
        }
        Ok(input)
    }

    /// Whether subtitles were searched and none matched.
    pub(super) fn found_nothing_spoken(&self) -> bool {
        let is_empty = |hits: &Option<Vec<SpokenHit>>| hits.as_ref().is_none_or(Vec::is_empty);
        is_empty(&self.spoken) && is_empty(&self.spoken_of_videos)
    }
}
