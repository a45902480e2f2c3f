//! Time that a clip takes in a space, measured on stored clips, so that the time of a fill is known before it begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_encoders::video::segment::ClipRange;

use super::error::IngestError;
use super::flow::{Inputs, blocking, encode};
use super::moments::windows;
use super::pass::{self, Tap, Target};
use super::progress::JobProgress;
use super::source::Source;
use crate::app::App;
use crate::catalog::{Span, Video};
use crate::models::LoadedSpace;
use crate::terms::SpanKey;

/// Most clips that are measured.
const CLIPS: u64 = 3;
/// No further clip is measured after this time.
const ENOUGH: Duration = Duration::from_secs(20);
/// Longest measurement. A clip that takes longer is left out.
const MOST: Duration = Duration::from_secs(120);
/// A clip that ends before this time is decoded from the start of its video where seeking is not safe.
const NEAR_MS: i64 = 60_000;

/// Seconds that this machine takes for a stored clip in `space`, with the moments inside it: the mean of three clips from
/// different parts of the library, or of fewer if they take long.
///
/// `None` if the space takes no frames, the library has no clips, or none could be measured. Errors are logged.
pub async fn seconds_a_clip(app: &App, space: &Arc<LoadedSpace>) -> Option<f64> {
    if !space.space.can.frames {
        return None;
    }
    let (began, mut took) = (Instant::now(), Vec::new());
    for (clip, video) in clips(app).await {
        let left = MOST.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, seconds(app, space, &clip, &video)).await {
            Ok(Ok(seconds)) => took.push(seconds),
            Ok(Err(error)) => tracing::info!(%error, video = %video.id, "a clip could not be measured"),
            Err(_) => break,
        }
        if began.elapsed() > ENOUGH {
            break;
        }
    }
    (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64)
}

/// Clips from the middle of each third of the library. Those that only a long decode reaches are left out.
async fn clips(app: &App) -> Vec<(Span, Video)> {
    let mut clips: Vec<(Span, Video)> = Vec::new();
    let newest = app.catalog.newest_key().await.map_or(0, SpanKey::number);
    for part in 0..CLIPS {
        let from = newest / (2 * CLIPS) * (2 * part + 1);
        let found = app.catalog.clip_from(SpanKey::new(from)).await.ok().flatten();
        if let Some((clip, video)) = found.filter(|(clip, video)| is_near(clip, video))
            && clips.iter().all(|(other, _)| other.key != clip.key)
        {
            clips.push((clip, video));
        }
    }
    clips
}

fn is_near(clip: &Span, video: &Video) -> bool {
    clip.end_ms < NEAR_MS || video.facts.as_ref().is_some_and(|facts| facts.seek_is_safe)
}

async fn seconds(
    app: &App,
    space: &Arc<LoadedSpace>,
    clip: &Span,
    video: &Video,
) -> Result<f64, IngestError> {
    let facts = video.facts.as_ref();
    let duration_ms = facts.map_or(clip.end_ms, |facts| facts.duration_ms);
    let seek_is_safe = facts.is_some_and(|facts| facts.seek_is_safe);
    let range = ClipRange { start_ms: clip.start_ms, end_ms: clip.end_ms.min(duration_ms) };
    let source = Source { app, video, given: &[], progress: Arc::new(JobProgress::new()) };
    let media = source.media().await?;
    let tap = Tap::of(&space.space);
    let began = Instant::now();
    let frames = blocking(move || pass::frames_of(&media, range, &tap, seek_is_safe)).await?;
    let decoded = began.elapsed().as_secs_f64();
    let began = Instant::now();
    encode(vec![Arc::clone(space)], Inputs::of_frames(vec![(Target::Known(clip.key), range, frames)]))
        .await?;
    let encoded = began.elapsed().as_secs_f64();
    Ok(decoded + encoded * passes(&tap, range) as f64)
}

/// Number of times that a clip's frames pass the model: once, and once more for each window if nothing of a frame is kept.
fn passes(tap: &Tap, clip: ClipRange) -> usize {
    if tap.moments && !tap.features { 1 + windows(clip).len() } else { 1 }
}
