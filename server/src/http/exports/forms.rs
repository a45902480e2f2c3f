//! The forms of a request for an export in the OpenAPI file: one schema with a title for each. Requests are read by `body`,
//! whose errors point at the wrong field.

use utoipa::ToSchema;
use uuid::Uuid;

use super::super::ranges::RangeBody;
use super::super::search::SearchBody;
use super::body::{CutName, FilesName, FormatName};

/// A request for an export, in one of three forms.
#[derive(ToSchema)]
#[expect(
    dead_code,
    clippy::large_enum_variant,
    reason = "describes the request in the OpenAPI file; nobody makes one"
)]
#[serde(untagged)]
#[schema(as = NewExport)]
pub(super) enum ExportForms {
    Reel(ReelExport),
    Search(SearchExport),
    Ranges(RangesExport),
}

/// A form of a request: its own fields, and those of all forms.
macro_rules! export_form {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(ToSchema)]
        #[expect(dead_code, reason = "describes the request in the OpenAPI file")]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(in crate::http) struct $name {
            $($own)*
            /// Its format.
            format: FormatName,
            /// Title and file name, 1 to 200 characters. Default: the reel's name, or `export`.
            #[schema(min_length = 1, max_length = 200)]
            title: Option<String>,
            /// For `mp4`. Default `exact`.
            cut: Option<CutName>,
            /// For `mp4`. Default `one`.
            files: Option<FilesName>,
            /// Frames per second: `23.976`, `24`, `25`, `29.97`, `30`, `50`, `59.94` or `60`. Default: that of the first
            /// video, or the next higher one.
            frame_rate: Option<String>,
            /// Whether timecode at 29.97 and 59.94 drops numbers to follow the clock. Default true. Not for `mp4` and
            /// `vtt`.
            drop_frame: Option<bool>,
        }
    };
}

export_form! {
    /// Exports a reel.
    #[schema(title = "Reel export")]
    ReelExport {
        /// Id of the reel, whose ranges are taken as they are now.
        reel_id: Uuid,
    }
}

export_form! {
    /// Exports the results of a search.
    #[schema(title = "Search export")]
    SearchExport {
        /// The search. Its results are taken as they are now, best first: its first page of at most `limit`, without groups.
        search: SearchBody,
    }
}

export_form! {
    /// Exports ranges.
    #[schema(title = "Ranges export")]
    RangesExport {
        /// The ranges, 1 to 1000, in order.
        #[schema(min_items = 1, max_items = 1000)]
        ranges: Vec<RangeBody>,
    }
}
