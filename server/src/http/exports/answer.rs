//! Wire format of an export.

use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::error::ApiError;
use super::super::search::seconds;
use super::super::{instant as rfc3339, links};
use crate::app::Authorized;
use crate::catalog::{Export, JobState, MadeExport, instant};
use crate::exports::{ExportRequest, LeftOut, MadeRange, Report};

/// A file of ranges, made by the job of the same id.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Export)]
pub(super) struct ExportOut {
    /// Its id, a uuid v7: that of its job.
    id: Uuid,
    /// Its title.
    title: String,
    /// Its format.
    #[schema(value_type = super::body::FormatName)]
    format: crate::exports::Format,
    /// State of its job.
    #[schema(value_type = super::super::names::JobStateName)]
    state: JobState,
    /// Fraction of the work done, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    progress: f64,
    /// Estimated seconds left; null unless it is running.
    #[schema(minimum = 0)]
    eta_s: Option<f64>,
    /// Reason for the failure, the next attempt or the cancellation.
    reason: Option<String>,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// The end of the file (RFC 3339). Null until it is made.
    expires_at: Option<String>,
    /// Its file. Null until it is made.
    file: Option<FileOut>,
    /// The rate at which it counts frames. Null until it is made.
    frame_rate: Option<String>,
    /// The ranges in it with their real times, in order. Empty until it is made.
    ranges: Vec<MadeRangeOut>,
    /// The ranges that are not in it. Empty until it is made.
    left_out: Vec<LeftOutOut>,
}

/// The file of an export.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExportFile)]
pub(super) struct FileOut {
    /// Its name.
    name: String,
    /// Its media type.
    media_type: String,
    /// Its length, in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
    /// SHA-256 of its bytes.
    content_hash: String,
    /// Its address with a signature: it needs no key, and ends with the file, with the key that asked, or after a week.
    url: String,
}

/// A range of an export.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExportedRange)]
struct MadeRangeOut {
    /// Its place in the request, from 0.
    range: usize,
    /// Id of the video.
    video_id: Uuid,
    /// Start in the video, in seconds.
    #[schema(minimum = 0)]
    start: f64,
    /// End in the video, in seconds, exclusive.
    #[schema(minimum = 0)]
    end: f64,
}

/// A range that an export lacks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeftOutRange)]
struct LeftOutOut {
    /// Its place in the request, from 0.
    range: usize,
    /// Id of the video.
    video_id: Uuid,
    /// Why, for example because its video's file is gone.
    reason: String,
}

/// One page of exports.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ExportPage {
    /// The exports of this page.
    pub(super) items: Vec<ExportOut>,
    /// Cursor of the next page; null on the last one.
    pub(super) next_cursor: Option<String>,
}

impl ExportOut {
    /// # Errors
    /// The stored request can't be read.
    pub(super) fn of(app: &Authorized, export: Export) -> Result<ExportOut, ApiError> {
        let Export { job, request, made, expires_at_ms } = export;
        let request: ExportRequest = serde_json::from_value(request).map_err(ApiError::internal)?;
        let report = made.as_ref().map(|made| serde_json::from_value::<Report>(made.report.clone()));
        let report = report.transpose().map_err(ApiError::internal)?;
        let url = |made: &MadeExport| file(app, job.id, made, expires_at_ms);
        let frame_rate = report.as_ref().map(|report| report.frame_rate.clone());
        let Report { ranges, left_out, .. } = report.unwrap_or_default();
        let is_done = job.state == JobState::Succeeded;
        Ok(ExportOut {
            file: made.as_ref().map(url).transpose()?,
            id: job.id,
            title: request.title,
            format: request.format,
            state: job.state,
            progress: if is_done { 1.0 } else { job.progress.fraction },
            eta_s: if job.state == JobState::Running { job.progress.eta_s } else { None },
            reason: job.reason,
            created_at: rfc3339(job.created_at_ms),
            expires_at: expires_at_ms.map(rfc3339),
            frame_rate,
            ranges: ranges.into_iter().map(MadeRangeOut::from).collect(),
            left_out: left_out.into_iter().map(LeftOutOut::from).collect(),
        })
    }
}

fn file(
    app: &Authorized,
    id: Uuid,
    made: &MadeExport,
    expires_at_ms: Option<i64>,
) -> Result<FileOut, ApiError> {
    let path = format!("/v1/exports/{id}/download");
    let uri: Uri = path.parse().map_err(ApiError::internal)?;
    let longest = instant::now_ms() / 1000 + links::LONGEST_SECONDS;
    let expires = expires_at_ms.map_or(longest, |ms| (ms / 1000).min(longest));
    Ok(FileOut {
        name: made.file_name.clone(),
        media_type: made.media_type.clone(),
        bytes: made.bytes,
        content_hash: made.content_hash.clone(),
        url: links::signed(app, &uri, expires),
    })
}

impl From<MadeRange> for MadeRangeOut {
    fn from(made: MadeRange) -> MadeRangeOut {
        let MadeRange { range, video, start_ms, end_ms } = made;
        MadeRangeOut { range, video_id: video, start: seconds(start_ms), end: seconds(end_ms) }
    }
}

impl From<LeftOut> for LeftOutOut {
    fn from(left: LeftOut) -> LeftOutOut {
        LeftOutOut { range: left.range, video_id: left.video, reason: left.why }
    }
}
