//! Makes the file of an export.

use std::sync::Arc;

use uuid::Uuid;

use super::error::ExportError;
use super::film::{self, Film};
use super::pace::Pace;
use super::request::{ExportRequest, Format, MadeRange, Report};
use super::sources::{self, Sources};
use super::timeline::{Clip, Timeline};
use super::{edl, fcpxml, lists, otio};
use crate::app::App;
use crate::ingest::JobProgress;
use crate::storage::Received;

/// A made export, under a temporary name.
pub struct Made {
    /// Its file.
    pub file: Received,
    /// What it holds.
    pub report: Report,
    /// The videos that it shows or names.
    pub shown: Vec<Uuid>,
}

/// Makes the file.
///
/// # Errors
/// [`ExportError`]; nothing is left.
pub async fn make(
    app: Arc<App>,
    request: ExportRequest,
    progress: Arc<JobProgress>,
) -> Result<Made, ExportError> {
    let sources = sources::find(&app, &request).await?;
    if sources.found.is_empty() {
        return Err(film::nothing_left(&sources.left_out));
    }
    let total_ms = sources.found.iter().map(|it| it.clip.end_ms - it.clip.start_ms).sum();
    let mut pace = Pace::new(&app.config, progress, total_ms);
    match request.format {
        Format::Mp4 => filmed(app, request, sources, pace).await,
        _ => {
            pace.last_step("write");
            pace.check()?;
            written(&app, &request, sources).await
        }
    }
}

/// The timeline of the ranges that were found.
fn timeline(request: &ExportRequest, sources: &Sources) -> Timeline {
    let clips: Vec<Clip> = sources.found.iter().map(|source| source.clip.clone()).collect();
    let rate = request.rate().unwrap_or_else(|| Timeline::usual_rate(&clips));
    Timeline { title: request.title.clone(), rate, drop_frame: request.drop_frame, clips }
}

async fn filmed(
    app: Arc<App>,
    request: ExportRequest,
    sources: Sources,
    mut pace: Pace,
) -> Result<Made, ExportError> {
    let rate = timeline(&request, &sources).rate;
    let Sources { found, mut left_out } = sources;
    let filming = tokio::task::spawn_blocking(move || {
        let (cut, files) = (request.cut, request.files);
        film::film(&Film { app: &app, sources: &found, rate, cut, files }, &mut pace)
    });
    let filmed = filming.await??;
    left_out.extend(filmed.left_out);
    left_out.sort_by_key(|missing| missing.range);
    let report = Report { frame_rate: rate.to_string(), ranges: filmed.ranges, left_out };
    let file = filmed.file.finish().await?;
    Ok(Made { file, shown: shown(&report.ranges), report })
}

async fn written(app: &App, request: &ExportRequest, sources: Sources) -> Result<Made, ExportError> {
    let timeline = timeline(request, &sources);
    let range = |clip: &Clip| MadeRange {
        range: clip.range,
        video: clip.media.video,
        start_ms: clip.start_ms,
        end_ms: clip.end_ms,
    };
    let report = Report {
        frame_rate: timeline.rate.to_string(),
        ranges: timeline.clips.iter().map(range).collect(),
        left_out: sources.left_out,
    };
    let mut incoming = app.storage.receive().await?;
    incoming.write(&text(request.format, &timeline)?).await?;
    let file = incoming.finish().await?;
    Ok(Made { file, shown: shown(&report.ranges), report })
}

fn text(format: Format, timeline: &Timeline) -> Result<Vec<u8>, ExportError> {
    let has_timecode = !matches!(format, Format::Vtt | Format::Otio);
    if has_timecode && timeline.frames() > timeline.numbering().frames_a_day() {
        return Err(ExportError::TooLongForTimecode);
    }
    Ok(match format {
        Format::Edl => edl::write(timeline).into_bytes(),
        Format::Otio => serde_json::to_vec_pretty(&otio::write(timeline))
            .map_err(|error| ExportError::List(error.into()))?,
        Format::Fcpxml => fcpxml::write(timeline).into_bytes(),
        Format::Csv => lists::csv(timeline).map_err(|error| ExportError::List(error.into()))?,
        Format::Vtt => lists::chapters(timeline).into_bytes(),
        // Films are made elsewhere.
        Format::Json | Format::Mp4 => {
            lists::json(timeline).map_err(|error| ExportError::List(error.into()))?
        }
    })
}

fn shown(ranges: &[MadeRange]) -> Vec<Uuid> {
    let mut videos: Vec<Uuid> = ranges.iter().map(|range| range.video).collect();
    videos.sort_unstable();
    videos.dedup();
    videos
}
