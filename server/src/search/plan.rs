//! The plan of a search: all that decides its ranking, settled before the first page and never changed.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::admit::Admitted;
use super::encode::{Encoded, QueryEncoder};
use super::error::SearchError;
use super::input::RankInput;
use super::paging::Scores;
use super::rounded::RoundedVectors;
use super::spoken::{self, SpokenQuery};
use super::timings::{Timings, millis};
use super::types::{Exclude, Levels, Origin, QueryInfo, Request};
use crate::app::App;
use crate::catalog::Filter;
use crate::models::LoadedSpace;
use crate::terms::{Aggregation, QueryKind, QueryVectors};

/// All that decides a ranking. Every page of it has an equal plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// Id of the space that answers.
    pub(super) space: String,
    /// `None`: the search compares no pictures. The cursor carries it as bytes.
    #[serde(skip)]
    pub(super) visual: Option<RoundedVectors>,
    /// `None`: subtitles are no part of the ranking.
    pub(super) spoken: Option<SpokenQuery>,
    pub(super) filter: Option<Filter>,
    pub(super) levels: Levels,
    pub(super) exclude: Exclude,
    pub(super) origin: Option<Origin>,
    /// Brute force instead of the graph.
    pub(super) exact: bool,
    pub(super) shape: PageShape,
    /// With the weights of the sources.
    pub(super) info: QueryInfo,
}

/// How pages are cut from the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageShape {
    /// Hits or groups per page.
    pub(super) limit: usize,
    /// Hits per group, if hits are grouped by video.
    pub(super) per_group: Option<usize>,
    pub(super) merge_adjacent: bool,
    pub(super) explain: bool,
}

/// A plan, and what planning has already found for the first page.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: SearchPlan,
    /// The first page's input.
    pub input: RankInput,
    /// The times of planning.
    pub timings: Timings,
}

/// Encodes the query and decides whether subtitles join the ranking.
///
/// # Errors
/// See [`SearchError`].
pub async fn plan(app: &App, request: &Request, admitted: Admitted) -> Result<Planned, SearchError> {
    let started = Instant::now();
    let Admitted { space, permit, passages, kind } = admitted;
    let encoded = match permit {
        Some(permit) => Some(QueryEncoder::new(app, &space, permit).request(request).await?),
        None => None,
    };
    let query = spoken::query(app, request, passages).await?;
    let times = encoded.as_ref().map_or((0.0, 0.0), |encoded| (encoded.decode_ms, encoded.encode_ms));
    let draft = SearchPlan::draft(request, kind, &space, encoded, query)?;
    let input =
        RankInput::gather(app, draft.filter.as_ref(), draft.spoken.as_ref(), draft.levels, true).await?;
    let timings = Timings {
        decode_ms: times.0,
        encode_ms: times.1,
        catalog_ms: input.catalog_ms,
        total_ms: millis(started),
        ..Timings::default()
    };
    let (plan, input) = draft.settle(input);
    Ok(Planned { plan, input, timings })
}

impl SearchPlan {
    fn draft(
        request: &Request,
        kind: QueryKind,
        space: &LoadedSpace,
        encoded: Option<Encoded>,
        spoken: Option<SpokenQuery>,
    ) -> Result<SearchPlan, SearchError> {
        let weights = spoken::weights(request, space, encoded.is_some());
        let visual = encoded.as_ref().map(|encoded| rounded(encoded, request.aggregation)).transpose()?;
        let origin = encoded.as_ref().and_then(|encoded| encoded.origin);
        let info = encoded.map_or_else(|| QueryInfo::of_clip(0), |encoded| encoded.info);
        Ok(SearchPlan {
            space: space.space.id.clone(),
            visual: visual.filter(|_| request.weights.visual != Some(0.0)),
            spoken,
            filter: request.filter.clone(),
            levels: request.levels,
            exclude: request.exclude,
            origin,
            exact: request.exact,
            shape: PageShape {
                limit: request.limit,
                per_group: request.per_group,
                merge_adjacent: request.merge_adjacent,
                explain: request.explain,
            },
            info: QueryInfo { kind, weights, ..info },
        })
    }

    /// Leaves subtitles out where none match: then pictures decide, however few words the model understands.
    fn settle(mut self, input: RankInput) -> (SearchPlan, RankInput) {
        if self.visual.is_none() || self.spoken.is_none() || !input.found_nothing_spoken() {
            return (self, input);
        }
        self.spoken = None;
        let weights = &mut self.info.weights;
        weights.visual = weights.visual.map(|weight| if weight > 0.0 { weight } else { 1.0 });
        (self, RankInput { spoken: None, spoken_of_videos: None, ..input })
    }

    /// The vectors that rank pictures; `None` where they have no weight.
    pub(super) fn ranking_vectors(&self) -> Option<&QueryVectors> {
        let weighs = self.spoken.is_none() || self.info.weights.visual.is_some_and(|weight| weight > 0.0);
        self.query_vectors().filter(|_| weighs)
    }

    /// The vectors of the query, which also show where in a hit its best frame is.
    pub(super) fn query_vectors(&self) -> Option<&QueryVectors> {
        self.visual.as_ref().map(RoundedVectors::vectors)
    }

    /// Whether full videos are ranked by their clips.
    pub(super) fn ranks_videos_by_clips(&self) -> bool {
        self.info.kind == QueryKind::Text
    }

    /// How the scores of `results` hold from page to page. A fused score counts ranks, a group's is that of whichever
    /// hit is its best, and a full video's depends on the videos that it competes with.
    pub(super) fn scores(&self) -> Scores {
        let by_clips = self.levels == Levels::Video && self.ranks_videos_by_clips();
        match self.spoken.is_some() || self.shape.per_group.is_some() || by_clips {
            true => Scores::Relative,
            false => Scores::Fixed,
        }
    }

    /// Whether a client may ask for this: a cursor can be forged.
    pub(super) fn is_within_bounds(&self) -> bool {
        let limits = 1..=super::types::MAX_LIMIT;
        let searches = self.visual.is_some() || self.spoken.is_some();
        searches
            && limits.contains(&self.shape.limit)
            && self.shape.per_group.is_none_or(|it| limits.contains(&it))
    }
}

/// One row per window of a long text; the mean of all where that is what scores.
fn rounded(encoded: &Encoded, aggregation: Aggregation) -> Result<RoundedVectors, SearchError> {
    let windows: Vec<_> = match aggregation {
        Aggregation::Max | Aggregation::Coverage if encoded.windows.len() > 1 => {
            encoded.windows.iter().map(|(_, _, window)| window.clone()).collect()
        }
        _ => vec![encoded.vector.clone()],
    };
    let vanished = SearchError::Internal("the query's vector vanished in rounding");
    RoundedVectors::new(&windows, aggregation).ok_or(vanished)
}
