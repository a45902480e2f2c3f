//! Names in the API for kinds, levels and sources. They keep the contract independent of the types of the search.

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::search::{FusionMode, Levels, Overlaps, Source};
use crate::terms::{Aggregation, QueryKind};

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = QueryKind)]
pub(in crate::http) enum QueryKindName {
    /// A text.
    Text,
    /// A stored clip or time range, or an uploaded clip.
    Clip,
    /// A clip changed by a modification text.
    Composed,
    /// A text, compared with subtitles by meaning.
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

/// Levels of the answer.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Levels)]
pub(super) enum LevelsName {
    /// `results` are clips.
    #[default]
    Clip,
    /// `results` are full videos.
    Video,
    /// `results` are clips. On the first page, `videos` are full videos.
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

/// Method of fusing a clip and its modification text into one vector.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FusionMode)]
pub(in crate::http) enum FusionModeName {
    /// The space's trained head.
    Combiner,
    /// alpha * clip + (1 - alpha) * text, both of norm 1.
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

/// Aggregation of a long text's windows into one score. BENCHMARKS.md compares the methods.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Aggregation)]
pub(super) enum AggregationName {
    /// The cosine with the mean of the windows' vectors.
    Mean,
    /// The best window's cosine.
    Max,
    /// 0.95 * the best window's cosine + 0.05 * the mean over all windows. The decisive sentence may stand anywhere
    /// in the text, and every window still counts.
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

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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

/// Source of evidence.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Source)]
pub(super) enum EvidenceSource {
    /// Embeddings of frames.
    Visual,
    /// Subtitles.
    Spoken,
    /// Cosine with the full video's own vector, before late interaction.
    FullVideo,
}

impl From<Source> for EvidenceSource {
    fn from(source: Source) -> EvidenceSource {
        match source {
            Source::Visual => EvidenceSource::Visual,
            Source::Spoken => EvidenceSource::Spoken,
            Source::FullVideo => EvidenceSource::FullVideo,
        }
    }
}
