//! Time that a clip takes in a space, measured on stored clips, so that the time of a fill is known before it begins.
//!
//! A large model may take minutes for a clip. Of such a clip only a part is encoded, and the time of the rest follows from
//! the model's own cost of an input. All of it is bulk work, so queries pass.

use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::video::segment::ClipRange;
use reprise_encoders::{Clip, EncodeError, Frame, FrameSize, Input};
use tokio::time::{Instant, timeout_at};

use super::error::IngestError;
use super::flow::blocking;
use super::moments::windows;
use super::pass::{self, Tap};
use super::progress::JobProgress;
use super::source::Source;
use crate::app::App;
use crate::catalog::{Span, Video};
use crate::models::LoadedSpace;
use crate::terms::SpanKey;

/// Most clips that are measured.
const CLIPS: u64 = 3;
/// Longest encoding of one clip. Of a clip that takes longer, as many frames as fit are encoded, or a part of a frame.
const OF_A_CLIP: Duration = Duration::from_secs(20);
/// No further clip is measured after this time.
const ENOUGH: Duration = Duration::from_secs(60);
/// Longest measurement. A part of a frame that takes longer is left out.
const MOST: Duration = Duration::from_secs(120);
/// Sides of a part of a frame, as a share of the frame's.
const PART: u32 = 3;
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
        let stored = Stored { app, clip: &clip, video: &video };
        match stored.seconds(space, began + MOST).await {
            Ok(seconds) => took.extend(seconds),
            Err(error) => tracing::info!(%error, video = %video.id, "a clip could not be measured"),
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

/// A clip of the library.
struct Stored<'a> {
    app: &'a App,
    clip: &'a Span,
    video: &'a Video,
}

impl Stored<'_> {
    /// Seconds to decode and encode it. `None` if nothing of it was encoded until `deadline`.
    async fn seconds(&self, space: &LoadedSpace, deadline: Instant) -> Result<Option<f64>, IngestError> {
        let (tap, range) = (Tap::of(&space.space), self.range());
        let began = Instant::now();
        let Ok(frames) = timeout_at(deadline, self.frames(tap, range)).await else { return Ok(None) };
        let (frames, decoded) = (frames?, began.elapsed().as_secs_f64());
        let cost = |frames: &[Frame]| space.pool.cost(&input(frames.to_vec())).unwrap_or_default();
        let encode = |frames| timed(space, frames, deadline);
        let encoded = encoding(&frames, space.space.scaling.size, cost, encode).await?;
        Ok(encoded.map(|encoded| decoded + encoded * passes(&tap, range) as f64))
    }

    fn range(&self) -> ClipRange {
        let duration_ms = self.video.facts.as_ref().map_or(i64::MAX, |facts| facts.duration_ms);
        ClipRange { start_ms: self.clip.start_ms, end_ms: self.clip.end_ms.min(duration_ms) }
    }

    async fn frames(&self, tap: Tap, range: ClipRange) -> Result<Vec<Frame>, IngestError> {
        let Stored { app, video, .. } = *self;
        let seek_is_safe = video.facts.as_ref().is_some_and(|facts| facts.seek_is_safe);
        let source = Source { app, video, given: &[], progress: Arc::new(JobProgress::new()) };
        let media = source.media().await?;
        blocking(move || pass::frames_of(&media, range, &tap, seek_is_safe)).await
    }
}

/// Number of times that a clip's frames pass the model: once, and once more for each window if nothing of a frame is kept.
fn passes(tap: &Tap, clip: ClipRange) -> usize {
    if tap.moments && !tap.features { 1 + windows(clip).len() } else { 1 }
}

fn input(frames: Vec<Frame>) -> Input {
    Input::Frames(Clip { frames })
}

/// Seconds that the model takes for these frames. `None` if it takes longer than until `deadline`.
async fn timed(
    space: &LoadedSpace,
    frames: Vec<Frame>,
    deadline: Instant,
) -> Result<Option<f64>, EncodeError> {
    let began = Instant::now();
    match timeout_at(deadline, space.pool.encode_bulk(vec![input(frames)])).await {
        Ok(encoded) => encoded.map(|_| Some(began.elapsed().as_secs_f64())),
        Err(_) => Ok(None),
    }
}

/// Seconds to encode a clip of these frames, as `encode` times inputs: first a small one, then as many frames as fit into
/// [`OF_A_CLIP`]. The time of the rest grows with the `cost`, in tokens. `None` if not even the small one was encoded.
async fn encoding<E>(
    frames: &[Frame],
    size: FrameSize,
    cost: impl Fn(&[Frame]) -> usize,
    encode: impl Fn(Vec<Frame>) -> E,
) -> Result<Option<f64>, IngestError>
where
    E: Future<Output = Result<Option<f64>, EncodeError>>,
{
    let Some(first) = frames.first() else { return Ok(None) };
    let small = match size {
        // Other models take frames of one size only.
        FrameSize::Area(_) => part(first),
        FrameSize::ShortEdge(_) | FrameSize::Exact { .. } => first.clone(),
    };
    let of_all = cost(frames);
    let grown = |seconds: f64, measured: usize| seconds * of_all as f64 / measured.max(1) as f64;
    let of_small = cost(std::slice::from_ref(&small));
    let Some(rough) = encode(vec![small]).await?.map(|seconds| grown(seconds, of_small)) else {
        return Ok(None);
    };
    let fit = (OF_A_CLIP.as_secs_f64() / rough * frames.len() as f64) as usize;
    let some = &frames[..fit.min(frames.len())];
    if some.is_empty() {
        return Ok(Some(rough));
    }
    let measured = encode(some.to_vec()).await?;
    Ok(Some(measured.map_or(rough, |seconds| grown(seconds, cost(some)))))
}

/// The upper left part of a frame, of the same shape.
fn part(frame: &Frame) -> Frame {
    let (width, height) = ((frame.width / PART).max(1), (frame.height / PART).max(1));
    let row = |y: u32| {
        let from = y as usize * frame.width as usize * 3;
        &frame.rgb[from..from + width as usize * 3]
    };
    let rgb: Vec<u8> = (0..height).flat_map(row).copied().collect();
    Frame { time_ms: frame.time_ms, width, height, rgb: rgb.into() }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use reprise_encoders::{Lift, SizeRule};

    use super::*;

    /// Tokens of frames with 100 pixels a token.
    fn tokens(frames: &[Frame]) -> usize {
        frames.iter().map(|frame| (frame.width * frame.height) as usize / 100).sum()
    }

    /// A clip of 32 frames of 900 tokens, with a model that takes `a_token` seconds for a token, `at_start` for any input, and
    /// nothing longer than `patience`. `expected`: the estimate and the frames of each input.
    #[track_caller]
    fn check(size: FrameSize, model: Model, expected: Option<f64>, inputs: &[usize]) {
        let frame = Frame { time_ms: 0, width: 300, height: 300, rgb: vec![7; 270_000].into() };
        let (frames, encoded) = (vec![frame; 32], RefCell::new(Vec::new()));
        let encode = |frames: Vec<Frame>| {
            let took = model.at_start + model.a_token * tokens(&frames) as f64;
            encoded.borrow_mut().push(frames.len());
            std::future::ready(Ok((took <= model.patience).then_some(took)))
        };
        let work = encoding(&frames, size, tokens, encode);
        let found = futures_util::FutureExt::now_or_never(work).unwrap().unwrap();
        let is_near =
            found.zip(expected).is_some_and(|(found, expected)| (found / expected - 1.0).abs() < 0.01);
        assert!(is_near || found == expected, "{found:?} instead of {expected:?}");
        assert_eq!(encoded.into_inner(), inputs);
    }

    #[derive(Clone, Copy)]
    struct Model {
        a_token: f64,
        at_start: f64,
        patience: f64,
    }

    const AREA: FrameSize =
        FrameSize::Area(SizeRule { factor: 28, min_pixels: 100, max_pixels: 1_000_000, lift: Lift::Before });
    const EXACT: FrameSize = FrameSize::Exact { width: 300, height: 300 };

    fn a_clip_in(seconds: f64) -> Model {
        Model { a_token: seconds / (32.0 * 900.0), at_start: 0.0, patience: 120.0 }
    }

    #[test]
    fn a_clip_that_takes_seconds_is_measured_whole() {
        check(EXACT, a_clip_in(19.0), Some(19.0), &[1, 32]);
        check(AREA, a_clip_in(0.1), Some(0.1), &[1, 32]);
    }

    #[test]
    fn of_a_clip_that_takes_minutes_the_frames_that_fit_are_measured() {
        check(AREA, a_clip_in(435.0), Some(435.0), &[1, 1]);
        check(EXACT, a_clip_in(100.0), Some(100.0), &[1, 6]);
    }

    #[test]
    fn of_a_frame_that_takes_minutes_a_part_is_measured() {
        check(AREA, a_clip_in(16_000.0), Some(16_000.0), &[1]);
        check(EXACT, a_clip_in(3_000.0), Some(3_000.0), &[1]);
    }

    #[test]
    fn what_takes_longer_than_there_is_time_leaves_the_rough_estimate_or_none() {
        let hasty = Model { patience: 1.0, ..a_clip_in(64.0) };
        check(AREA, hasty, Some(64.0), &[1, 10]);
        check(EXACT, hasty, None, &[1]);
    }

    #[test]
    fn the_time_that_any_input_takes_counts_little() {
        // 32 frames in 8 s, and half a second for each input. 26 frames fit: 7 s.
        let model = Model { at_start: 0.5, ..a_clip_in(8.0) };
        check(EXACT, model, Some(7.0 / 26.0 * 32.0), &[1, 26]);
    }

    #[test]
    fn a_part_is_the_upper_left_of_its_frame() {
        let rgb: Vec<u8> = (0..4 * 7 * 3).collect();
        let part = part(&Frame { time_ms: 5, width: 4, height: 7, rgb: rgb.into() });
        assert_eq!((part.width, part.height, &*part.rgb), (1, 2, &[0, 1, 2, 12, 13, 14][..]));
    }
}
