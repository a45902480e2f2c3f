//! What becomes of a ranking before pages are cut from it: near duplicates fold, and diversity reorders.

use std::collections::HashMap;

use super::plan::SearchPlan;
use super::types::Match;
use super::{diversity, duplicates};
use crate::terms::{SpanKey, UnitVector};

/// How a plan arranges the entries of a ranking. It compares the vectors of their best hits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrangement {
    /// Least cosine of near duplicates. `None`: they are kept.
    duplicates: Option<f32>,
    /// Whether only hits of the same video are folded.
    within_videos: bool,
    spread: Option<Spread>,
}

#[derive(Debug, Clone, Copy)]
struct Spread {
    /// Over 0 to 1.
    diversity: f32,
    /// Number of entries that are reordered.
    depth: usize,
}

impl Arrangement {
    /// `None` if the ranking stays as it is.
    pub(super) fn of(plan: &SearchPlan) -> Option<Arrangement> {
        let duplicates = plan.duplicates.filter(|_| plan.folds_duplicates()).and_then(|bound| bound.cosine);
        let depth = diversity::depth(plan.shape.limit);
        let spread = plan.diversity.map(|diversity| Spread { diversity, depth });
        let within_videos = plan.shape.per_group.is_some();
        let arranges = duplicates.is_some() || spread.is_some();
        arranges.then_some(Arrangement { duplicates, within_videos, spread })
    }

    /// Number of entries whose vectors it compares.
    pub(super) fn compared(&self) -> usize {
        let folded = self.duplicates.map_or(0, |_| duplicates::DEPTH);
        folded.max(self.reordered())
    }

    /// Number of entries that must be known before the order is.
    pub(super) fn reordered(&self) -> usize {
        self.spread.map_or(0, |spread| spread.depth)
    }

    /// Arranges a ranking, best first. Blocks for up to some tenths of a second.
    pub(super) fn apply(&self, ranking: Vec<Match>, units: &HashMap<SpanKey, UnitVector>) -> Vec<Match> {
        let folded = match self.duplicates {
            Some(least) => duplicates::fold(ranking, units, least, self.within_videos),
            None => ranking,
        };
        match self.spread {
            Some(Spread { diversity, depth }) => diversity::spread(folded, units, diversity, depth),
            None => folded,
        }
    }
}
