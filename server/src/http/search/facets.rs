//! Wire format of facets: what hits are counted by, and the counts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::error::ApiError;
use crate::catalog::MetadataField;
use crate::search::{Facet, FacetCounts, FacetValue, Facets, MOST_FACETS};

/// What hits are counted by: exactly one of `field` and `by`. [`FacetForms`] describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FacetBody {
    field: Option<String>,
    by: Option<FacetBy>,
}

/// What hits are counted by, in one of two forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = Facet)]
pub(super) enum FacetForms {
    Field(FieldFacet),
    By(ByFacet),
}

/// Counts hits by a field of the metadata.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Field facet")]
pub(super) struct FieldFacet {
    /// The field, `metadata.…`, as in a filter. An array counts once for each of its values.
    #[schema(pattern = r"^metadata\.[^.\\]+$")]
    field: String,
}

/// Counts hits by their video, or by its day, folder or tags.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Video facet")]
pub(super) struct ByFacet {
    /// What hits are counted by.
    by: FacetBy,
}

/// What hits are counted by. `video`: their video. `day`: the day in UTC of the video's `recorded_at`. `folder`: the video's
/// folder, and each folder above it. `tag`: each of the video's tags.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FacetBy {
    Video,
    Day,
    Folder,
    Tag,
}

/// Checks the facets of a request.
///
/// # Errors
/// More than 10, or one that names no field, or an unknown one.
pub(super) fn checked(facets: Vec<FacetBody>) -> Result<Vec<Facet>, ApiError> {
    if facets.len() > MOST_FACETS {
        return Err(ApiError::invalid("/facets", format!("give at most {MOST_FACETS} facets")));
    }
    facets.into_iter().enumerate().map(|(place, body)| one(body, &format!("/facets/{place}"))).collect()
}

fn one(body: FacetBody, pointer: &str) -> Result<Facet, ApiError> {
    match (body.field, body.by) {
        (Some(name), None) => {
            let field = MetadataField::parse(&name);
            field.map(Facet::Field).map_err(|detail| ApiError::invalid(format!("{pointer}/field"), detail))
        }
        (None, Some(FacetBy::Video)) => Ok(Facet::Video),
        (None, Some(FacetBy::Day)) => Ok(Facet::Day),
        (None, Some(FacetBy::Folder)) => Ok(Facet::Folder),
        (None, Some(FacetBy::Tag)) => Ok(Facet::Tag),
        _ => Err(ApiError::invalid(pointer, "give exactly one of `field` and `by`")),
    }
}

/// Counts of the best hits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Facets)]
pub(super) struct FacetsOut {
    /// Number of hits that were counted: the best ones, at most 1000. A hit that stands for others counts once.
    #[schema(maximum = 1000)]
    counted: usize,
    /// Whether these are all hits of the search.
    complete: bool,
    /// The counts, in the order of the request.
    counts: Vec<FacetCountsOut>,
}

/// Counts of the best hits by one facet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FacetCounts)]
struct FacetCountsOut {
    /// The field of the metadata. Absent if hits are counted by something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// What hits are counted by, if it is no field.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<FacetBy>,
    /// The most frequent values, by hits, then by videos, then in order of the value; at most 100.
    #[schema(max_items = 100)]
    values: Vec<FacetValueOut>,
    /// Number of further values: those after the first 100, and texts longer than 256 bytes.
    other_values: usize,
    /// Number of hits of the further values. A hit with several of them counts for each.
    other_hits: usize,
    /// Number of hits without a value.
    missing: usize,
}

/// A value with its counts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FacetValue)]
struct FacetValueOut {
    /// A text, number or boolean of the metadata; the id of a video; a day such as `2024-07-01`; or one spelling of a folder
    /// or tag, which are counted without case.
    value: Value,
    /// The title of a video. Only for `video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Number of hits.
    #[schema(minimum = 1, maximum = 1000)]
    hits: usize,
    /// Number of videos with these hits.
    #[schema(minimum = 1, maximum = 1000)]
    videos: usize,
}

impl From<Facets> for FacetsOut {
    fn from(facets: Facets) -> FacetsOut {
        let Facets { counted, complete, facets } = facets;
        FacetsOut { counted, complete, counts: facets.into_iter().map(FacetCountsOut::from).collect() }
    }
}

impl From<FacetCounts> for FacetCountsOut {
    fn from(counts: FacetCounts) -> FacetCountsOut {
        let FacetCounts { facet, values, other_values, other_hits, missing } = counts;
        let (field, by) = match facet {
            Facet::Field(field) => (Some(field.name().to_owned()), None),
            Facet::Video => (None, Some(FacetBy::Video)),
            Facet::Day => (None, Some(FacetBy::Day)),
            Facet::Folder => (None, Some(FacetBy::Folder)),
            Facet::Tag => (None, Some(FacetBy::Tag)),
        };
        let values = values.into_iter().map(FacetValueOut::from).collect();
        FacetCountsOut { field, by, values, other_values, other_hits, missing }
    }
}

impl From<FacetValue> for FacetValueOut {
    fn from(value: FacetValue) -> FacetValueOut {
        let FacetValue { value, title, hits, videos } = value;
        FacetValueOut { value, title, hits, videos }
    }
}
