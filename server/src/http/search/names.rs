//! Names in the API for kinds, levels and sources. They keep the contract independent of the types of the search.

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::search::{FusionMode, Levels, NearDuplicates, Overlaps, Source};
use crate::terms::{Aggregation, QueryKind, SearchKind};

/// A kind of query. `text`: a text. `clip`: a stored clip or time range, or an uploaded clip. `composed`: a clip changed by
/// a modification text. `spoken`: a text, compared with subtitles by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = QueryKind)]
pub(in crate::http) enum QueryKindName {
    Text,
    Clip,
    Composed,
    Spoken,
}

impl From<QueryKind> for QueryKindName {
    fn from(kind: QueryKind) -> QueryKindName {
        match kind {
            QueryKind::Text => QueryKindName::Text,
            QueryKind::Clip => QueryKindName::Clip,
            QueryKind::Composed => QueryKindName::Composed,
            QueryKind::Spoken => QueryKindName::Spoken,
        }
    }
}

impl From<QueryKindName> for QueryKind {
    fn from(name: QueryKindName) -> QueryKind {
        match name {
            QueryKindName::Text => QueryKind::Text,
            QueryKindName::Clip => QueryKind::Clip,
            QueryKindName::Composed => QueryKind::Composed,
            QueryKindName::Spoken => QueryKind::Spoken,
        }
    }
}

/// A kind of search. `text`: a text. `clip`: a stored clip or time range, or an uploaded clip. `composed`: a clip changed by a
/// modification text. `image`: a still image. `examples`: several examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SearchKind)]
pub(in crate::http) enum SearchKindName {
    Text,
    Clip,
    Composed,
    Image,
    Examples,
}

impl From<SearchKind> for SearchKindName {
    fn from(kind: SearchKind) -> SearchKindName {
        match kind {
            SearchKind::Text => SearchKindName::Text,
            SearchKind::Clip => SearchKindName::Clip,
            SearchKind::Composed => SearchKindName::Composed,
            SearchKind::Image => SearchKindName::Image,
            SearchKind::Examples => SearchKindName::Examples,
        }
    }
}

impl From<SearchKindName> for SearchKind {
    fn from(name: SearchKindName) -> SearchKind {
        match name {
            SearchKindName::Text => SearchKind::Text,
            SearchKindName::Clip => SearchKind::Clip,
            SearchKindName::Composed => SearchKind::Composed,
            SearchKindName::Image => SearchKind::Image,
            SearchKindName::Examples => SearchKind::Examples,
        }
    }
}

/// Levels of the answer. `clip`: `results` are clips. `video`: `results` are full videos. `both`: `results` are clips, and
/// on the first page `videos` are full videos.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Levels)]
pub(super) enum LevelsName {
    #[default]
    Clip,
    Video,
    Both,
}

impl From<LevelsName> for Levels {
    fn from(name: LevelsName) -> Levels {
        match name {
            LevelsName::Clip => Levels::Clip,
            LevelsName::Video => Levels::Video,
            LevelsName::Both => Levels::Both,
        }
    }
}

/// Method of fusing a clip and its modification text into one vector. `combiner`: the space's trained head. `average`:
/// alpha * clip + (1 - alpha) * text, both of norm 1.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FusionMode)]
pub(in crate::http) enum FusionModeName {
    Combiner,
    Average,
}

impl From<FusionMode> for FusionModeName {
    fn from(mode: FusionMode) -> FusionModeName {
        match mode {
            FusionMode::Combiner => FusionModeName::Combiner,
            FusionMode::Average => FusionModeName::Average,
        }
    }
}

impl From<FusionModeName> for FusionMode {
    fn from(name: FusionModeName) -> FusionMode {
        match name {
            FusionModeName::Combiner => FusionMode::Combiner,
            FusionModeName::Average => FusionMode::Average,
        }
    }
}

/// Aggregation of a long text's windows into one score. `mean`: the cosine with the mean of their vectors. `max`: the best
/// window's cosine. `coverage`: 0.95 * the best window's cosine + 0.05 * the mean over all windows.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Aggregation)]
pub(super) enum AggregationName {
    Mean,
    Max,
    // The decisive sentence may stand anywhere in the text, and every window still counts.
    Coverage,
}

impl From<AggregationName> for Aggregation {
    fn from(name: AggregationName) -> Aggregation {
        match name {
            AggregationName::Mean => Aggregation::Mean,
            AggregationName::Max => Aggregation::Max,
            AggregationName::Coverage => Aggregation::Coverage,
        }
    }
}

/// Treatment of hits of one video that overlap. `fold`: one hit stands for all that show the same moment. `keep`: each is a
/// hit.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Overlaps)]
pub(super) enum OverlapsName {
    Fold,
    Keep,
}

impl From<OverlapsName> for Overlaps {
    fn from(name: OverlapsName) -> Overlaps {
        match name {
            OverlapsName::Fold => Overlaps::Fold,
            OverlapsName::Keep => Overlaps::Keep,
        }
    }
}

/// Treatment of hits of any videos that show nearly the same picture. `fold`: one hit stands for all of them. `keep`: each is
/// a hit.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NearDuplicates)]
pub(super) enum NearDuplicatesName {
    Fold,
    Keep,
}

impl From<NearDuplicatesName> for NearDuplicates {
    fn from(name: NearDuplicatesName) -> NearDuplicates {
        match name {
            NearDuplicatesName::Fold => NearDuplicates::Fold,
            NearDuplicatesName::Keep => NearDuplicates::Keep,
        }
    }
}

/// Treatment of a text over the model's token limit. `window`: all of it, in overlapping windows. `truncate`: its start.
/// `error`: 422.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Overflow)]
pub(in crate::http) enum OverflowName {
    Window,
    Truncate,
    Error,
}

impl From<OverflowName> for Overflow {
    fn from(name: OverflowName) -> Overflow {
        match name {
            OverflowName::Window => Overflow::Window,
            OverflowName::Truncate => Overflow::Truncate,
            OverflowName::Error => Overflow::Error,
        }
    }
}

/// Source of evidence. `visual`: embeddings of frames. `spoken`: subtitles. `screen`: text on screen. `full_video`: the cosine with the full video's
/// own vector, before late interaction.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Source)]
pub(in crate::http) enum EvidenceSource {
    Visual,
    Spoken,
    Screen,
    FullVideo,
}

impl From<Source> for EvidenceSource {
    fn from(source: Source) -> EvidenceSource {
        match source {
            Source::Visual => EvidenceSource::Visual,
            Source::Spoken => EvidenceSource::Spoken,
            Source::Screen => EvidenceSource::Screen,
            Source::FullVideo => EvidenceSource::FullVideo,
        }
    }
}
