//! The forms of a query and of a relevant range in the OpenAPI file: one schema with a title for each. Requests are read by
//! `body`, whose errors point at the wrong field.

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::search::{ClipBody, FilterForms};

/// A query with what it should find, in one of three forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = NewEvaluationQuery)]
pub(super) enum QueryForms {
    Text(TextEvaluationQuery),
    Range(RangeEvaluationQuery),
    Clip(ClipEvaluationQuery),
}

/// What a query should find, in one of three forms.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(untagged)]
#[schema(as = RelevantRange)]
pub(super) enum RelevantForms {
    Clip(RelevantClip),
    TimeRange(RelevantTimeRange),
    Video(RelevantVideo),
}

/// A form of a query: its own fields, and those of all forms.
macro_rules! query_form {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(ToSchema)]
        #[expect(dead_code, reason = "describes the request in the OpenAPI file")]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(in crate::http) struct $name {
            $($own)*
            /// A name for it, 1 to 200 characters.
            #[schema(min_length = 1, max_length = 200)]
            label: Option<String>,
            /// Finds only videos and clips that match.
            #[schema(value_type = Option<FilterForms>)]
            filter: Option<Value>,
            /// What it should find, at least one. Clips are stored as their time ranges: they may be cut anew.
            #[schema(min_items = 1)]
            relevant: Vec<RelevantForms>,
        }
    };
}

query_form! {
    /// Searches by a text.
    #[schema(title = "Text evaluation query")]
    TextEvaluationQuery {
        /// The text, not only white space.
        #[schema(min_length = 1, pattern = r"\S")]
        text: String,
    }
}

query_form! {
    /// Searches by a time range of a stored video.
    #[schema(title = "Range evaluation query")]
    RangeEvaluationQuery {
        /// The time range.
        clip: ClipBody,
        /// Text that describes a change to the clip, not only white space. It makes a composed query.
        #[schema(min_length = 1, pattern = r"\S")]
        modification: Option<String>,
    }
}

query_form! {
    /// Searches by a stored clip.
    #[schema(title = "Clip evaluation query")]
    ClipEvaluationQuery {
        /// Id of the clip.
        clip_id: Uuid,
        /// Text that describes a change to the clip, not only white space. It makes a composed query.
        #[schema(min_length = 1, pattern = r"\S")]
        modification: Option<String>,
    }
}

/// The time range that a clip has now.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Relevant clip")]
pub(in crate::http) struct RelevantClip {
    /// Id of the clip.
    clip_id: Uuid,
}

/// A time range of a video.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Relevant time range")]
pub(in crate::http) struct RelevantTimeRange {
    /// Id of the video.
    video_id: Uuid,
    /// Start, in seconds, 0 to 10000000; before the video's end.
    #[schema(minimum = 0, maximum = 10_000_000)]
    start: f64,
    /// End, in seconds, exclusive, 0 to 10000000; at least a millisecond after the start.
    #[schema(minimum = 0, maximum = 10_000_000)]
    end: f64,
}

/// All of a video.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(title = "Relevant video")]
pub(in crate::http) struct RelevantVideo {
    /// Id of the video.
    video_id: Uuid,
}
