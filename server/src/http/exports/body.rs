//! Wire format of a request for an export, and its checks.

use reprise_encoders::video::FrameRate;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::ranges::{self, RangeBody};
use super::super::reels;
use super::super::search::{self, SearchBody};
use crate::app::Authorized;
use crate::catalog::{CatalogError, MOST_RANGES, ReelRange};
use crate::exports::{Cut, ExportRequest, Files, Format, MOST_EVENTS};

/// A request for an export: of exactly one of `reel_id`, `search` and `ranges`. `forms` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportBody {
    format: FormatName,
    reel_id: Option<Uuid>,
    search: Option<SearchBody>,
    ranges: Option<Vec<RangeBody>>,
    title: Option<String>,
    cut: Option<CutName>,
    files: Option<FilesName>,
    frame_rate: Option<String>,
    drop_frame: Option<bool>,
}

/// The form of an export's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportFormat)]
pub(super) enum FormatName {
    /// A film with its sound. All ranges get the size and the rate of the first.
    Mp4,
    /// An edit decision list, CMX 3600: at most 999 ranges, and one rate.
    Edl,
    /// OpenTimelineIO's JSON.
    Otio,
    /// Final Cut Pro's XML.
    Fcpxml,
    /// A table.
    Csv,
    /// The table as JSON.
    Json,
    /// Chapters in WebVTT, with the times of the `mp4`.
    Vtt,
}

/// How a film is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportCut)]
pub(super) enum CutName {
    /// Encoded anew, exact to the frame.
    Exact,
    /// Copied, from the key frame before the start to the one after the end. The answer has the real times.
    Copy,
}

/// The files of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportFiles)]
pub(super) enum FilesName {
    /// One film of all ranges.
    One,
    /// A film for each range, with its own size and rate, in a zip.
    Each,
}

/// Where the ranges of a request come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Reel,
    Search,
    Ranges,
}

impl Source {
    /// The error of storing the export, with a pointer into this request.
    pub(super) fn error(self, error: CatalogError) -> ApiError {
        let is_of_range = matches!(error, CatalogError::Range { .. });
        let answer = ApiError::from(error);
        match self {
            Source::Reel if is_of_range => answer.at("/reel_id"),
            Source::Search if is_of_range => answer.at("/search"),
            _ => answer,
        }
    }
}

/// Ranges, and the name of where they come from.
struct Chosen {
    source: Source,
    ranges: Vec<ReelRange>,
    name: Option<String>,
}

impl ExportBody {
    /// Checks the request, and finds its ranges.
    pub(super) async fn checked(self, app: &Authorized) -> Result<(Source, ExportRequest), ApiError> {
        self.check_options()?;
        let title = self.title.clone().map(|title| ranges::checked_name(title, "/title")).transpose()?;
        let (format, cut, files) = (self.format, self.cut, self.files);
        let (frame_rate, drop_frame) = (self.frame_rate.clone(), self.drop_frame);
        let chosen = self.chosen(app).await?;
        let request = ExportRequest {
            title: title.or(chosen.name).unwrap_or_else(|| "export".to_owned()),
            format: format.into(),
            cut: cut.map_or(Cut::Exact, Cut::from),
            files: files.map_or(Files::One, Files::from),
            frame_rate,
            drop_frame: drop_frame.unwrap_or(true),
            ranges: chosen.ranges,
        };
        check_together(&request)?;
        Ok((chosen.source, request))
    }

    /// Refuses options that would do nothing.
    fn check_options(&self) -> Result<(), ApiError> {
        let is_film = self.format == FormatName::Mp4;
        let only_film = |pointer: &str| Err(ApiError::invalid(pointer, "only `mp4` has this option"));
        if self.cut.is_some() && !is_film {
            return only_film("/cut");
        }
        if self.files.is_some() && !is_film {
            return only_film("/files");
        }
        if self.drop_frame.is_some() && matches!(self.format, FormatName::Mp4 | FormatName::Vtt) {
            return Err(ApiError::invalid("/drop_frame", "this format has no timecode"));
        }
        self.check_rate()
    }

    fn check_rate(&self) -> Result<(), ApiError> {
        let Some(name) = &self.frame_rate else { return Ok(()) };
        let Some(rate) = FrameRate::named(name) else {
            let known: Vec<String> = FrameRate::standard().map(|rate| rate.to_string()).collect();
            return Err(ApiError::invalid("/frame_rate", format!("must be one of {}", known.join(", "))));
        };
        if self.cut == Some(CutName::Copy) || self.files == Some(FilesName::Each) {
            return Err(ApiError::invalid("/frame_rate", "copies and single files keep their own rate"));
        }
        if self.drop_frame == Some(true) && !rate.may_drop() {
            return Err(ApiError::invalid("/drop_frame", "only 29.97 and 59.94 have drop-frame timecode"));
        }
        Ok(())
    }

    async fn chosen(self, app: &Authorized) -> Result<Chosen, ApiError> {
        match (self.reel_id, self.search, self.ranges) {
            (Some(id), None, None) => of_reel(app, id).await,
            (None, Some(search), None) => {
                of_search(app, search).await.map_err(|error| error.within("/search"))
            }
            (None, None, Some(named)) => {
                Ok(Chosen { source: Source::Ranges, ranges: ranges::checked(named)?, name: None })
            }
            _ => Err(ApiError::invalid("", "give exactly one of reel_id, search and ranges")),
        }
    }
}

async fn of_reel(app: &Authorized, id: Uuid) -> Result<Chosen, ApiError> {
    let reel = app.view().reel(id).await?;
    let reel = reels::found(reel, id).map_err(|error| error.at("/reel_id"))?;
    if reel.ranges.is_empty() {
        return Err(ApiError::invalid("/reel_id", "the videos of the reel were deleted"));
    }
    Ok(Chosen { source: Source::Reel, ranges: reel.ranges, name: Some(reel.name) })
}

async fn of_search(app: &Authorized, body: SearchBody) -> Result<Chosen, ApiError> {
    let matches = search::matches(app, body).await?;
    let range = |hit: crate::search::Match| {
        let span = hit.span.span;
        ReelRange { video: span.video, start_ms: span.start_ms, end_ms: span.end_ms, note: String::new() }
    };
    let ranges: Vec<ReelRange> = matches.into_iter().take(MOST_RANGES).map(range).collect();
    if ranges.is_empty() {
        return Err(ApiError::invalid("", "the search finds nothing to export"));
    }
    Ok(Chosen { source: Source::Search, ranges, name: None })
}

/// Checks options that depend on the ranges.
fn check_together(request: &ExportRequest) -> Result<(), ApiError> {
    if request.format == Format::Edl && request.ranges.len() > MOST_EVENTS {
        let detail = format!("an edit decision list has at most {MOST_EVENTS} ranges");
        return Err(ApiError::invalid("/format", detail));
    }
    let first = request.ranges.first().map(|range| range.video);
    let is_mixed = request.ranges.iter().any(|range| Some(range.video) != first);
    if request.cut == Cut::Copy && request.files == Files::One && is_mixed {
        let detail = "copies of several videos can't be joined: ask for `files: each`, or for `cut: exact`";
        return Err(ApiError::invalid("/cut", detail));
    }
    Ok(())
}

impl From<FormatName> for Format {
    fn from(format: FormatName) -> Format {
        match format {
            FormatName::Mp4 => Format::Mp4,
            FormatName::Edl => Format::Edl,
            FormatName::Otio => Format::Otio,
            FormatName::Fcpxml => Format::Fcpxml,
            FormatName::Csv => Format::Csv,
            FormatName::Json => Format::Json,
            FormatName::Vtt => Format::Vtt,
        }
    }
}

impl From<CutName> for Cut {
    fn from(cut: CutName) -> Cut {
        match cut {
            CutName::Exact => Cut::Exact,
            CutName::Copy => Cut::Copy,
        }
    }
}

impl From<FilesName> for Files {
    fn from(files: FilesName) -> Files {
        match files {
            FilesName::One => Files::One,
            FilesName::Each => Files::Each,
        }
    }
}
