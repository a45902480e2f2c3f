//! What an evaluation asks: spaces, level, depth. And the search of one query.

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};

use crate::catalog::{EvaluationQuery, Filter, FilterError};
use crate::search::{Exclude, Fusion, Levels, NearDuplicates, Overlaps, Query, Request, Sources, Weights};
use crate::terms::{Aggregation, QueryKind};

/// What an evaluation asks of which spaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The spaces, 1 to 8.
    pub spaces: Vec<AskedSpace>,
    /// Level of the hits: clips or full videos.
    pub levels: Levels,
    /// Least temporal intersection over union with a relevant range that finds it, over 0 to 1. Full videos find every range
    /// in them.
    pub min_iou: f64,
    /// The K of recall and mean average precision at K, ascending.
    pub cutoffs: Vec<u32>,
    /// Hits that are looked at for each query.
    pub depth: u32,
    /// Whether every vector is compared. The engine decides it.
    pub exact: bool,
    /// Whether the queries are from feedback.
    pub is_from_log: bool,
    /// Judged queries of the log that can't be asked again.
    pub left_out: usize,
}

/// A space that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedSpace {
    /// Its id.
    pub id: String,
    /// Its readable name at that time.
    pub name: String,
}

/// The kind of a query.
pub fn kind_of(query: &EvaluationQuery) -> QueryKind {
    match (&query.clip, &query.text) {
        (None, _) => QueryKind::Text,
        (Some(_), Some(_)) => QueryKind::Composed,
        (Some(_), None) => QueryKind::Clip,
    }
}

impl Settings {
    /// The search of a query in a space. It compares frames only: the spaces differ in nothing else.
    ///
    /// # Errors
    /// This version does not read the filter.
    pub(super) fn request(
        &self,
        query: &EvaluationQuery,
        space: &AskedSpace,
    ) -> Result<Request, FilterError> {
        let (query_of, modification) = match (query.clip, &query.text) {
            (None, text) => (Query::Text(text.clone().unwrap_or_default()), None),
            (Some(clip), text) => {
                let range = Query::Range { video: clip.video, start_ms: clip.start_ms, end_ms: clip.end_ms };
                (range, text.clone())
            }
        };
        Ok(Request {
            query: query_of,
            modification,
            space: Some(space.id.clone()),
            levels: self.levels,
            limit: self.depth as usize,
            per_group: None,
            filter: query.filter.as_ref().map(Filter::parse).transpose()?,
            exclude: Exclude { itself: true, same_video: false },
            fusion: Fusion { mode: None, alpha: 0.5 },
            sources: Sources { visual: true, spoken: false, screen: false, by_default: false },
            weights: Weights::default(),
            overflow: Overflow::Window,
            aggregation: Aggregation::default(),
            exact: self.exact,
            overlaps: Overlaps::Fold,
            near_duplicates: NearDuplicates::Keep,
            diversity: None,
            facets: Vec::new(),
            min_z: None,
            merge_adjacent: false,
            explain: false,
        })
    }
}
