//! Finds the videos of an export's ranges.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use reprise_encoders::video::{self, FrameRate, Limits, Probe, VideoError, VideoFile};
use uuid::Uuid;

use super::error::ExportError;
use super::request::{ExportRequest, LeftOut};
use super::timeline::{Clip, Media};
use crate::app::App;
use crate::catalog::{ReelRange, Video, Visibility};
use crate::storage::{LocalFile, StoredFile};

/// A range with its video.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The range, cut to the video's end.
    pub(super) clip: Clip,
    file: LocalFile,
    probe: Probe,
    in_order: bool,
}

impl Source {
    /// The video's file, for ffmpeg.
    pub(super) fn file<'a>(&'a self, limits: &'a Limits) -> VideoFile<'a> {
        VideoFile { path: self.file.path(), probe: &self.probe, in_order: self.in_order, limits }
    }

    /// The facts of the video.
    pub(super) fn probe(&self) -> &Probe {
        &self.probe
    }
}

/// The ranges that can be exported, and the others.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) found: Vec<Source>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Footage of one video, or why there is none.
type Footage = Result<Found, String>;

#[derive(Debug, Clone)]
struct Found {
    media: Media,
    file: LocalFile,
    probe: Probe,
    in_order: bool,
}

/// Looks for the file of each range's video.
///
/// # Errors
/// The catalog or the disk failed, or ffmpeg does not run.
pub(super) async fn find(app: &App, request: &ExportRequest) -> Result<Sources, ExportError> {
    let mut sources = Sources::default();
    let mut known: HashMap<Uuid, Footage> = HashMap::new();
    for (place, range) in request.ranges.iter().enumerate() {
        let footage = match known.entry(range.video) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(missing) => missing.insert(footage(app, place, range.video).await?),
        };
        match footage.as_ref().map_err(Clone::clone).and_then(|found| source(place, range, found)) {
            Ok(source) => sources.found.push(source),
            Err(why) => sources.left_out.push(LeftOut { range: place, video: range.video, why }),
        }
    }
    Ok(sources)
}

fn source(place: usize, range: &ReelRange, found: &Found) -> Result<Source, String> {
    let end_ms = range.end_ms.min(found.media.duration_ms);
    if end_ms <= range.start_ms {
        return Err("it begins after the video's end".to_owned());
    }
    let (start_ms, note) = (range.start_ms, range.note.clone());
    let clip = Clip { range: place, media: found.media.clone(), start_ms, end_ms, note };
    Ok(Source { clip, file: found.file.clone(), probe: found.probe.clone(), in_order: found.in_order })
}

async fn footage(app: &App, range: usize, id: Uuid) -> Result<Footage, ExportError> {
    // The caller's rights were checked when it asked; what was deleted since is gone.
    let Some(video) = app.catalog.view(&Visibility::All).video(id).await? else {
        return Ok(Err("its video was deleted".to_owned()));
    };
    let file = match app.storage.local(&StoredFile::of(&video.file)).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err("its video's file is gone".to_owned()));
        }
        Err(error) => return Err(error.into()),
    };
    let probe = match stored_probe(&video) {
        Some(probe) => probe,
        None => {
            let (path, limits) = (file.path().to_owned(), app.config.decode_limits());
            match tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await? {
                Ok(probe) => probe,
                Err(error @ VideoError::Ffmpeg(_)) => return Err(ExportError::Video { range, error }),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
    };
    let in_order = video.facts.as_ref().is_some_and(|facts| !facts.seek_is_safe);
    Ok(Ok(Found { media: media(video, &probe), file, probe, in_order }))
}

/// The facts that an ingest has found.
fn stored_probe(video: &Video) -> Option<Probe> {
    let facts = video.facts.as_ref()?;
    let probe = serde_json::from_value::<Probe>(facts.probe.clone()).ok()?;
    Some(Probe { duration_ms: facts.duration_ms, ..probe })
}

fn media(video: Video, probe: &Probe) -> Media {
    Media {
        video: video.id,
        title: video.title,
        file_name: video.file_name,
        rate: FrameRate::measured(probe.frame_rate),
        is_variable: probe.variable_frame_rate,
        duration_ms: probe.duration_ms,
        width: probe.width,
        height: probe.height,
        has_audio: probe.has_audio,
    }
}
