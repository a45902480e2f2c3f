//! The forms of a search request in the OpenAPI file: one schema with a title for each. Requests are read by `body`,
//! whose errors point at the wrong field.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use uuid::Uuid;

/// Asks for the next page of a search.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Next page")]
pub(in crate::http) struct NextPage {
    /// `next_cursor` of the previous page. It carries the whole search.
    cursor: String,
}

/// What to search for, in one of six forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = Query)]
pub(super) enum QueryForms {
    Text(TextQuery),
    Range(RangeQuery),
    Clip(ClipQuery),
    Image(ImageQuery),
    Upload(UploadQuery),
    Examples(ExamplesQuery),
}

/// Searches by a text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Text query")]
pub(in crate::http) struct TextQuery {
    /// A text of 1 to some thousands of words, not only white space.
    #[schema(min_length = 1, pattern = r"\S")]
    text: String,
}

/// Searches by a time range of a stored video.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Range query")]
pub(in crate::http) struct RangeQuery {
    /// The time range.
    clip: ClipBody,
    /// Text that describes a change to the clip, not only white space. It makes a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// Searches by a stored clip.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Clip query")]
pub(in crate::http) struct ClipQuery {
    /// Id of the clip.
    clip_id: Uuid,
    /// Text that describes a change to the clip, not only white space. It makes a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// Searches by the part `file` of a multipart request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Upload query")]
pub(in crate::http) struct UploadQuery {
    /// Always `true`.
    #[schema(schema_with = only_true)]
    upload: bool,
    /// Start of the query in the file, in seconds, 0 to 10000000. Default 0.
    #[schema(minimum = 0, maximum = 10_000_000)]
    start: Option<f64>,
    /// End of the query in the file, in seconds, exclusive, 0 to 10000000. Default: the file's end.
    #[schema(minimum = 0, maximum = 10_000_000)]
    end: Option<f64>,
    /// Text that describes a change to the clip, not only white space. It makes a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// Searches for more like some examples and less like others, 1 to 16 together. The query's vector is the mean of the liked
/// examples' unit vectors, minus a quarter of the mean of the others. One model must answer all of them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Examples query")]
pub(in crate::http) struct ExamplesQuery {
    /// Examples of what to find. One that is given twice counts twice.
    #[schema(min_items = 1, max_items = 16)]
    like: Vec<ExampleForms>,
    /// Examples of what not to find. Their own spans are left out too.
    #[schema(max_items = 15)]
    unlike: Option<Vec<ExampleForms>>,
}

/// Searches by a still image. The model gets it as a clip of one frame, which is repeated if it takes more.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Image query")]
pub(in crate::http) struct ImageQuery {
    /// The image.
    image: ImageForms,
    /// Text that describes a change to the image, not only white space. It makes a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// A still image, in one of two forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = Image)]
pub(in crate::http) enum ImageForms {
    Stored(StoredImage),
    Upload(UploadedImage),
}

/// The frame that a stored video shows at a time.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Stored image")]
pub(in crate::http) struct StoredImage {
    /// Id of the video.
    video_id: Uuid,
    /// Time in the video, in seconds, 0 to 10000000.
    #[schema(minimum = 0, maximum = 10_000_000)]
    at: f64,
}

/// The image in the part `file` of a multipart request: JPEG, PNG or WebP.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Uploaded image")]
pub(in crate::http) struct UploadedImage {
    /// Always `true`.
    #[schema(schema_with = only_true)]
    upload: bool,
}

/// One of several examples, in one of five forms. At most one may be an upload.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = Example)]
pub(super) enum ExampleForms {
    Text(TextQuery),
    Range(RangeExample),
    Clip(ClipExample),
    Image(ImageExample),
    Upload(UploadExample),
}

/// A time range of a stored video as an example.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Range example")]
pub(in crate::http) struct RangeExample {
    /// The time range.
    clip: ClipBody,
}

/// A stored clip as an example.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Clip example")]
pub(in crate::http) struct ClipExample {
    /// Id of the clip.
    clip_id: Uuid,
}

/// A still image as an example.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Image example")]
pub(in crate::http) struct ImageExample {
    /// The image.
    image: ImageForms,
}

/// The part `file` of a multipart request as an example.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Upload example")]
pub(in crate::http) struct UploadExample {
    /// Always `true`.
    #[schema(schema_with = only_true)]
    upload: bool,
    /// Start of the example in the file, in seconds, 0 to 10000000. Default 0.
    #[schema(minimum = 0, maximum = 10_000_000)]
    start: Option<f64>,
    /// End of the example in the file, in seconds, exclusive, 0 to 10000000. Default: the file's end.
    #[schema(minimum = 0, maximum = 10_000_000)]
    end: Option<f64>,
}

/// What to embed, in one of three forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = EmbeddingInput)]
pub(in crate::http) enum InputForms {
    Text(TextQuery),
    Range(RangeInput),
    Upload(UploadInput),
}

/// Embeds a time range of a stored video.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Range input")]
pub(in crate::http) struct RangeInput {
    /// The time range.
    clip: ClipBody,
    /// Text that describes a change to the clip, not only white space. It makes the vector of a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// Embeds the part `file` of a multipart request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Upload input")]
pub(in crate::http) struct UploadInput {
    /// Always `true`.
    #[schema(schema_with = only_true)]
    upload: bool,
    /// Text that describes a change to the clip, not only white space. It makes the vector of a composed query.
    #[schema(min_length = 1, pattern = r"\S")]
    modification: Option<String>,
}

/// A filter: a test of one field, or a combination of filters. At most 8 levels deep, with at most 200 tests and
/// combinations and 1000 values.
#[derive(ToSchema)]
#[expect(
    dead_code,
    clippy::large_enum_variant,
    reason = "describes the request in the OpenAPI file; is never made"
)]
#[serde(untagged)]
#[schema(as = Filter)]
pub(in crate::http) enum FilterForms {
    Test(FilterTest),
    All(AllFilters),
    Any(AnyFilter),
    Not(NotFilter),
}

/// A test of one field. It has exactly one operator beside `field`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Filter test")]
pub(in crate::http) struct FilterTest {
    /// `duration` (of the video, in seconds), `recorded_at`, `created_at` (RFC 3339), `title`, `video_id`, `level`, `tags` (one
    /// of them must match; without case), `folder` (without case), or `metadata.x` for the field x of the metadata. Dots go
    /// into nested objects; a backslash escapes one.
    field: String,
    /// The field equals this number, string or boolean.
    #[schema(nullable = false)]
    eq: Option<Value>,
    /// The field equals one of these, at most 1000.
    #[schema(nullable = false, max_items = 1000)]
    r#in: Option<Vec<Value>>,
    /// The field is less than this number or string.
    #[schema(nullable = false)]
    lt: Option<Value>,
    /// The field is at most this number or string.
    #[schema(nullable = false)]
    lte: Option<Value>,
    /// The field is greater than this number or string.
    #[schema(nullable = false)]
    gt: Option<Value>,
    /// The field is at least this number or string.
    #[schema(nullable = false)]
    gte: Option<Value>,
    /// The field `folder` is this folder or lies below it.
    #[schema(nullable = false)]
    under: Option<String>,
    /// Whether the field is there and not null.
    #[schema(nullable = false)]
    exists: Option<bool>,
}

/// Matches if every filter does.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "All filters")]
pub(in crate::http) struct AllFilters {
    /// The filters. An empty list matches everything.
    #[schema(no_recursion)]
    all: Vec<FilterForms>,
}

/// Matches if one of the filters does.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Any filter")]
pub(in crate::http) struct AnyFilter {
    /// The filters. An empty list matches nothing.
    #[schema(no_recursion)]
    any: Vec<FilterForms>,
}

/// Matches if the filter does not.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Not filter")]
pub(in crate::http) struct NotFilter {
    /// The filter.
    #[schema(no_recursion, value_type = FilterForms)]
    not: Box<FilterForms>,
}

fn only_true() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .enum_values(Some([true]))
        .description(Some("Always `true`"))
        .build()
}

/// A time range of a stored video, in seconds, end exclusive.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TimeRange)]
pub(in crate::http) struct ClipBody {
    /// Id of the video.
    pub(in crate::http) video_id: Uuid,
    /// Start, in seconds, 0 to 10000000.
    #[schema(minimum = 0, maximum = 10_000_000)]
    pub(in crate::http) start: f64,
    /// End, in seconds, exclusive, 0 to 10000000; at least a millisecond after the start.
    #[schema(minimum = 0, maximum = 10_000_000)]
    pub(in crate::http) end: f64,
}
