//! The plan of a search: everything that decides its ranking. All pages use the same plan.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::admit::Admitted;
use super::encode::{Encoded, QueryEncoder};
use super::error::SearchError;
use super::input::RankInput;
use super::paging::Scores;
use super::rounded::RoundedVectors;
use super::spoken::{self, SpokenQuery};
use super::standing::Backgrounds;
use super::timings::{Timings, millis};
use super::types::{
    DuplicateBound, Exclude, Facet, Levels, MAX_EXAMPLES, NearDuplicates, Origin, Overlaps, QueryInfo,
    Request,
};
use crate::app::Authorized;
use crate::catalog::Filter;
use crate::models::LoadedSpace;
use crate::terms::{Aggregation, QueryVectors, SearchKind};

/// Everything that decides a ranking. All pages of a search have an equal plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// Id of the search in the query log. `None`: it is not logged.
    #[serde(default)]
    pub(super) id: Option<Uuid>,
    /// Id of the embedding space.
    pub(super) space: String,
    /// Query vectors. `None`: the search compares no frames. The cursor stores them as bytes.
    #[serde(skip)]
    pub(super) visual: Option<RoundedVectors>,
    /// `None`: neither subtitles nor text on screen are part of the ranking.
    pub(super) spoken: Option<SpokenQuery>,
    pub(super) filter: Option<Filter>,
    pub(super) levels: Levels,
    pub(super) exclude: Exclude,
    pub(super) origins: Vec<Origin>,
    /// Whether the query is nothing but text.
    pub(super) of_text: bool,
    /// Compare every vector instead of searching the graph.
    pub(super) exact: bool,
    /// Leave out hits with a lower z in every source.
    pub(super) min_z: Option<f32>,
    /// The query's backgrounds. `None` until the first page measures them.
    pub(super) backgrounds: Option<Backgrounds>,
    /// What counts as a near duplicate. `None` until the first page measures it, and where they are kept.
    #[serde(default)]
    pub(super) duplicates: Option<DuplicateBound>,
    /// How far hits are spread over what differs, over 0 to 1.
    #[serde(default)]
    pub(super) diversity: Option<f32>,
    /// What the first page counts. The cursor does not carry it.
    #[serde(skip)]
    pub(super) facets: Vec<Facet>,
    pub(super) shape: PageShape,
    /// Includes the weights of the sources.
    pub(super) info: QueryInfo,
}

/// How pages are cut from the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageShape {
    /// Hits or groups per page.
    pub(super) limit: usize,
    /// Largest number of hits per group, if hits are grouped by video.
    pub(super) per_group: Option<usize>,
    pub(super) overlaps: Overlaps,
    #[serde(default)]
    pub(super) near_duplicates: NearDuplicates,
    pub(super) merge_adjacent: bool,
    pub(super) explain: bool,
}

/// A plan, with the input for the first page.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: SearchPlan,
    /// The first page's input.
    pub input: RankInput,
    /// Durations of planning.
    pub timings: Timings,
}

/// Encodes the query and decides whether subtitles join the ranking.
///
/// # Errors
/// See [`SearchError`].
pub async fn plan(app: &Authorized, request: &Request, admitted: Admitted) -> Result<Planned, SearchError> {
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
        kind: SearchKind,
        space: &LoadedSpace,
        encoded: Option<Encoded>,
        spoken: Option<SpokenQuery>,
    ) -> Result<SearchPlan, SearchError> {
        let weights = spoken::weights(request, space, encoded.is_some());
        let visual = encoded.as_ref().map(|encoded| rounded(encoded, request.aggregation)).transpose()?;
        let origins = encoded.as_ref().map(|encoded| encoded.origins.clone()).unwrap_or_default();
        let info = encoded.map_or_else(|| QueryInfo::of_clip(0), |encoded| encoded.info);
        Ok(SearchPlan {
            id: None,
            space: space.space.id.clone(),
            visual: visual.filter(|_| request.weights.visual != Some(0.0)),
            spoken,
            filter: request.filter.clone(),
            levels: request.levels,
            exclude: request.exclude,
            origins,
            of_text: request.is_text(),
            exact: request.exact,
            min_z: request.min_z,
            backgrounds: None,
            duplicates: None,
            diversity: request.diversity.filter(|diversity| *diversity > 0.0),
            facets: request.facets.clone(),
            shape: PageShape {
                limit: request.limit,
                per_group: request.per_group,
                overlaps: request.overlaps,
                near_duplicates: request.near_duplicates,
                merge_adjacent: request.merge_adjacent,
                explain: request.explain,
            },
            info: QueryInfo { kind, weights, ..info },
        })
    }

    /// Drops subtitles and text on screen if none match. Then the visual source gets weight 1 if it had 0.
    fn settle(mut self, input: RankInput) -> (SearchPlan, RankInput) {
        if self.visual.is_none() || self.spoken.is_none() || !input.found_nothing_spoken() {
            return (self, input);
        }
        self.spoken = None;
        let weights = &mut self.info.weights;
        weights.visual = weights.visual.map(|weight| if weight > 0.0 { weight } else { 1.0 });
        (self, RankInput { spoken: None, spoken_of_videos: None, ..input })
    }

    /// The query vectors, if the visual source has weight.
    pub(super) fn ranking_vectors(&self) -> Option<&QueryVectors> {
        let weighs = self.spoken.is_none() || self.info.weights.visual.is_some_and(|weight| weight > 0.0);
        self.query_vectors().filter(|_| weighs)
    }

    /// The query vectors. They also find the best frame of a hit.
    pub(super) fn query_vectors(&self) -> Option<&QueryVectors> {
        self.visual.as_ref().map(RoundedVectors::vectors)
    }

    /// The spaces of its query vectors.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &str> {
        let meaning = self.spoken.as_ref().and_then(|spoken| spoken.meaning.as_ref());
        let visual = self.visual.as_ref().map(|_| self.space.as_str());
        visual.into_iter().chain(meaning.map(|meaning| meaning.space.as_str()))
    }

    /// Whether full videos are ranked by their clips (late interaction).
    pub(super) fn ranks_videos_by_clips(&self) -> bool {
        self.of_text
    }

    /// Whether near duplicates are folded.
    pub(super) fn folds_duplicates(&self) -> bool {
        self.shape.near_duplicates == NearDuplicates::Fold
    }

    /// Whether scores stay the same from page to page. Three kinds depend on other hits: fused scores, group scores,
    /// and late interaction scores of full videos. Diversity gives hits places that other hits decide, and so do near
    /// duplicates, which a deleted hit would set free again.
    pub(super) fn scores(&self) -> Scores {
        let by_clips = self.levels == Levels::Video && self.ranks_videos_by_clips();
        let by_others = self.folds_duplicates() || self.diversity.is_some();
        match self.spoken.is_some() || self.shape.per_group.is_some() || by_clips || by_others {
            true => Scores::Relative,
            false => Scores::Fixed,
        }
    }

    /// Whether the plan keeps the limits of a query. `most_windows`: vectors of one kind.
    pub(super) fn is_within_bounds(&self, most_windows: usize) -> bool {
        let limits = 1..=super::types::MAX_LIMIT;
        let searches = self.visual.is_some() || self.spoken.is_some();
        let meaning = self.spoken.as_ref().and_then(|spoken| spoken.meaning.as_ref());
        let mut vectors = self.visual.iter().chain(meaning.map(|meaning| &meaning.vectors));
        searches
            && self.origins.len() <= MAX_EXAMPLES
            && vectors.all(|vectors| vectors.count() <= most_windows)
            && self.diversity.is_none_or(|it| (0.0..=1.0).contains(&it))
            && limits.contains(&self.shape.limit)
            && self.shape.per_group.is_none_or(|it| limits.contains(&it))
    }
}

/// Rounds the vectors: one per window of a long text, or their mean if the aggregation scores the mean.
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
