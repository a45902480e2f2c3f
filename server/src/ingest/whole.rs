//! Ingests a whole video: file to all spans, for the first time or with a new segmentation.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use reprise_encoders::video::Probe;
use reprise_encoders::video::segment::ClipRange;
use reprise_encoders::video::thumbnails::Thumbnails;
use uuid::Uuid;

use super::embed::{self, Embedded, Plan};
use super::error::IngestError;
use super::moments::windows_inside;
use super::pass::{Cutting, Target};
use super::pictures::Wanted;
use super::raw_vectors::{moment, pooled, span};
use super::source::Source;
use super::subtitles;
use crate::app::App;
use crate::catalog::{
    CueKind, Ingested, Line, MediaFacts, Segmentation, Span, Video, VideoState, Visibility,
};
use crate::storage::Derived;
use crate::terms::Level;

/// Ids of the found clips that an ingest of a ready video will replace.
///
/// # Errors
/// The catalog could not be read.
pub async fn found_clips(app: &App, video: &Video) -> Result<Vec<Uuid>, IngestError> {
    if video.state != VideoState::Ready {
        return Ok(Vec::new());
    }
    let clips = app.catalog.view(&Visibility::All).clips(video.id, None, u32::MAX).await?;
    Ok(clips.into_iter().filter(|clip| !clip.given).map(|clip| clip.id).collect())
}

/// A video that was cut and encoded.
pub struct Whole {
    /// What the catalog stores.
    pub ingested: Ingested,
    /// Thumbnails, to keep once the spans are stored.
    pub thumbnails: Thumbnails,
}

/// Cuts the video and encodes its spans. Decodes it only if stored scores or features are missing.
///
/// # Errors
/// [`IngestError`]. The catalog then stores nothing.
pub async fn whole(source: Source<'_>) -> Result<Whole, IngestError> {
    let progress = Arc::clone(&source.progress);
    progress.unless_stopped(cut_and_encode(source)).await
}

async fn cut_and_encode(source: Source<'_>) -> Result<Whole, IngestError> {
    let media = source.media().await?;
    let plan = plan(&source, &media.probe).await?;
    let (probe, video) = (media.probe.clone(), source.video);
    let recut = match video.facts.as_ref().filter(|_| video.state == VideoState::Ready) {
        Some(facts) => embed::recut(media.clone(), &plan, facts, Arc::clone(&source.progress)).await?,
        None => None,
    };
    let (mut embedded, unread) = match recut {
        Some(embedded) => (embedded, video.warnings.clone()),
        None => {
            let unread = subtitles::take(source.app, video.id, &media).await?;
            (embed::ingest(media, plan, Arc::clone(&source.progress)).await?, unread)
        }
    };
    keep_sprites(source.app, video.id, embedded.pictures.sprites.as_deref()).await;
    let thumbnails = std::mem::take(&mut embedded.pictures.thumbnails);
    let mut ingested = ingested(source.given, &probe, embedded)?;
    ingested.warnings.extend(unread);
    let mut known = BTreeSet::new();
    ingested.warnings.retain(|warning| known.insert(warning.clone()));
    Ok(Whole { ingested, thumbnails })
}

/// Stores the sprite sheets. They are made anew at the first request if that fails.
async fn keep_sprites(app: &App, video: Uuid, file: Option<&[u8]>) {
    let Some(file) = file else { return };
    let write = async |path: PathBuf| {
        reprise_faults::at("sprites: write")?;
        tokio::fs::write(path, file).await
    };
    if let Err(error) = app.storage.derived(Derived::Sprites, video, write).await {
        tracing::warn!(%error, %video, "the sprite sheets of a video could not be stored");
    }
}

async fn plan(source: &Source<'_>, probe: &Probe) -> Result<Plan, IngestError> {
    let Source { app, video, given: clips, .. } = *source;
    let given_only = video.segmentation == (Segmentation::Given {});
    let given = clips.iter().map(|span| (Target::Given(span.id), range(span.start_ms, span.end_ms)));
    let cutting = Cutting {
        segmentation: video.segmentation.of_parts(app.config.max_clip_seconds),
        cues: cues(app, video.id, probe.media_offset_ms).await?,
        target: if given_only { Target::Pooled } else { Target::Found },
    };
    Ok(Plan {
        segment: Some(cutting),
        known: given.collect(),
        windows: if given_only { windows_inside(clips) } else { Vec::new() },
        spaces: app.spaces.all(),
        features: app.storage.features(video.id),
        pictures: Wanted {
            sprites: !app.storage.has_derived(Derived::Sprites, video.id),
            thumbnails: !given_only,
        },
    })
}

/// Time ranges of the speech cues that are stored already.
async fn cues(app: &App, video: Uuid, media_offset_ms: i64) -> Result<Vec<ClipRange>, IngestError> {
    let cues = app.catalog.view(&Visibility::All).cues(video, None, u32::MAX).await?;
    let spoken = cues.into_iter().filter(|cue| cue.track.kind == CueKind::Speech);
    let at = |line: Line| range(line.start_ms - media_offset_ms, line.end_ms - media_offset_ms);
    Ok(spoken.map(|cue| at(cue.line)).collect())
}

/// The result to store in the catalog.
fn ingested(given: &[Span], probe: &Probe, embedded: Embedded) -> Result<Ingested, IngestError> {
    let mut warnings = embedded.summary.warnings.clone();
    let duration_ms = embedded.summary.duration_ms;
    for span in given.iter().filter(|span| duration_ms <= span.start_ms) {
        warnings.push(format!(
            "the given clip {} starts at {} s, after the video's end at {} s: it can't be searched",
            span.id,
            span.start_ms as f64 / 1000.0,
            duration_ms as f64 / 1000.0
        ));
    }
    let of_clips =
        embedded.spans.iter().filter(|((target, _), _)| matches!(target, Target::Found | Target::Pooled));
    let video = pooled(of_clips.flat_map(|(_, vectors)| vectors));
    let mut spans = vec![span(None, Level::Video, range(0, duration_ms), &video)?];
    for ((target, at), vectors) in &embedded.spans {
        match target {
            Target::Found => spans.push(span(None, Level::Clip, range(at.0, at.1), vectors)?),
            Target::Moment => spans.extend(moment(range(at.0, at.1), duration_ms, vectors)?),
            Target::Given(id) => {
                let at = range(at.0, at.1.min(duration_ms));
                spans.push(span(Some(*id), Level::Clip, at, vectors)?);
            }
            Target::Pooled | Target::Known(_) => {}
        }
    }
    Ok(Ingested { facts: facts(probe, &embedded), warnings, spans })
}

fn facts(probe: &Probe, embedded: &Embedded) -> MediaFacts {
    MediaFacts {
        duration_ms: embedded.summary.duration_ms,
        frame_rate: probe.frame_rate,
        frames: embedded.summary.frames,
        width: probe.width,
        height: probe.height,
        codec: probe.codec.clone(),
        variable_frame_rate: probe.variable_frame_rate,
        media_offset_ms: embedded.summary.media_offset_ms,
        plays_in_browsers: probe.plays_in_browsers,
        seek_is_safe: embedded.seek_is_safe,
        probe: serde_json::to_value(probe).unwrap_or_default(),
    }
}

fn range(start_ms: i64, end_ms: i64) -> ClipRange {
    ClipRange { start_ms, end_ms }
}
