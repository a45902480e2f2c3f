//! One decode pass over a file: cuts it into clips and encodes spans into every space.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::{ClipRange, Segmenter, SegmenterSettings};
use reprise_encoders::video::{self, Event, Limits, Output, Probe, Request, Summary, VideoError};
use reprise_encoders::{Clip, EncodeError, Frame, Input};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::assemble::{Assembled, Assembler, output_of};
use super::watch::{Stop, Watch};
use crate::spaces::LoadedSpace;

/// Width of the frames that the shot detector sees.
const DETECT_WIDTH: u32 = 256;
/// Spans that are decoded but not encoded yet; more make the decoder wait.
const SPANS_AHEAD: usize = 4;

/// Which span a vector is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A clip that this pass found.
    Found,
    /// A stretch that only counts towards the full-video vector.
    Pooled,
    /// A clip given by the user.
    Given(Uuid),
    /// A stored span, by key.
    Known(u32),
}

/// What a pass should do.
pub(super) struct Plan {
    /// Cut the video, and call what is found this.
    pub(super) segment: Option<(SegmenterSettings, Target)>,
    /// Spans that are known before.
    pub(super) known: Vec<(Target, ClipRange)>,
    /// The spaces to fill.
    pub(super) spaces: Vec<Arc<LoadedSpace>>,
}

/// The file of a pass.
#[derive(Clone)]
pub(super) struct Media {
    pub(super) path: PathBuf,
    pub(super) probe: Probe,
    pub(super) limits: Limits,
}

/// A span's raw vector in one space and how many frames it was made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RawVector {
    pub(super) space: u32,
    pub(super) values: Vec<f32>,
    pub(super) frames: usize,
}

/// Raw vectors by span and its `(start_ms, end_ms)`.
pub(super) type Spans = BTreeMap<(Target, (i64, i64)), Vec<RawVector>>;

/// What a pass found out.
pub(super) struct Embedded {
    pub(super) summary: Summary,
    pub(super) spans: Spans,
    /// Whether seeking yields the same pictures as decoding in order.
    pub(super) seek_is_safe: bool,
}

/// Why a pass ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error(transparent)]
    Video(#[from] VideoError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("stopped: {0:?}")]
    Stopped(Stop),
    #[error("a part of the job panicked: {0}")]
    Panicked(String),
}

/// Spaces that take the same frames, served by one decoder output.
struct Group {
    sampler: Sampler,
    output: Output,
    spaces: Vec<Arc<LoadedSpace>>,
}

/// Decodes `media` once and encodes every span of `plan` into every space of it.
pub(super) async fn run(media: Media, plan: Plan, watch: Arc<Watch>) -> Result<Embedded, PassError> {
    let groups = Arc::new(group(&plan.spaces));
    let (long, short): (Vec<_>, Vec<_>) =
        plan.known.into_iter().partition(|(_, range)| groups.iter().any(|it| is_long(&it.sampler, *range)));
    let (sender, mut receiver) = mpsc::channel(SPANS_AHEAD);
    let decoding = {
        let (media, groups, watch) = (media.clone(), Arc::clone(&groups), Arc::clone(&watch));
        tokio::task::spawn_blocking(move || decode(&media, plan.segment, short, &groups, &watch, &sender))
    };
    let mut spans = BTreeMap::new();
    let mut without_frames: Vec<(usize, Target, ClipRange)> = Vec::new();
    while let Some((group, assembled)) = receiver.recv().await {
        if assembled.frames.is_empty() {
            without_frames.push((group, assembled.span, assembled.range));
        } else {
            encode(&groups[group], assembled, &mut spans).await?;
        }
    }
    let summary = decoding.await.map_err(|panic| PassError::Panicked(panic.to_string()))??;
    watch.stage("finish");
    let seek_is_safe = blocking({
        let media = media.clone();
        move || video::seek_is_safe(&media.path, &media.probe, &media.limits)
    })
    .await?;
    for group in 0..groups.len() {
        without_frames.extend(long.iter().map(|(target, range)| (group, *target, *range)));
    }
    for (group, target, range) in without_frames {
        let range = ClipRange { start_ms: range.start_ms, end_ms: range.end_ms.min(summary.duration_ms) };
        if range.start_ms < range.end_ms {
            if let Some(why) = watch.stopped() {
                return Err(PassError::Stopped(why));
            }
            let frames = decode_span(&media, range, &groups[group], seek_is_safe).await?;
            encode(&groups[group], Assembled { span: target, range, frames }, &mut spans).await?;
        }
    }
    Ok(Embedded { summary, spans, seek_is_safe })
}

/// The raw full-video vector of each space: the mean over all frames of `clips`, as LoVR pools
/// (arXiv 2505.13928); clips are weighted by their frames, so it is the mean that one pass over all frames
/// would give.
pub(super) fn pooled<'a>(clips: impl Iterator<Item = &'a RawVector>) -> Vec<RawVector> {
    let mut sums: BTreeMap<u32, RawVector> = BTreeMap::new();
    for clip in clips {
        let zero = || RawVector { space: clip.space, values: vec![0.0; clip.values.len()], frames: 0 };
        let sum = sums.entry(clip.space).or_insert_with(zero);
        sum.frames += clip.frames;
        let weight = clip.frames as f32;
        sum.values.iter_mut().zip(&clip.values).for_each(|(sum, value)| *sum += weight * value);
    }
    let mean = |mut sum: RawVector| {
        let frames = sum.frames.max(1) as f32;
        sum.values.iter_mut().for_each(|value| *value /= frames);
        sum
    };
    sums.into_values().map(mean).collect()
}

fn group(spaces: &[Arc<LoadedSpace>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for space in spaces.iter().filter(|it| it.space.can.frames) {
        let (sampler, output) = (space.space.sampler, output_of(&space.space));
        match groups.iter_mut().find(|it| it.sampler == sampler && it.output == output) {
            Some(group) => group.spaces.push(Arc::clone(space)),
            None => groups.push(Group { sampler, output, spaces: vec![Arc::clone(space)] }),
        }
    }
    groups
}

/// Whether a span's frames are thinned so much that collecting them all would waste memory.
fn is_long(sampler: &Sampler, range: ClipRange) -> bool {
    match sampler {
        Sampler::PerSecond { rate, at_most } => {
            (range.end_ms - range.start_ms) as f64 / 1000.0 * rate > 2.0 * *at_most as f64
        }
        Sampler::Middles { .. } | Sampler::Stride { .. } => range.end_ms - range.start_ms > 60_000,
    }
}

type Ready = (usize, Assembled<Target>);

/// Runs on a blocking thread; sends spans as they are over.
fn decode(
    media: &Media,
    segment: Option<(SegmenterSettings, Target)>,
    known: Vec<(Target, ClipRange)>,
    groups: &[Group],
    watch: &Watch,
    ready: &mpsc::Sender<Ready>,
) -> Result<Summary, PassError> {
    let request = Request {
        detect_width: segment.map(|_| DETECT_WIDTH),
        outputs: groups.iter().map(|group| group.output).collect(),
    };
    let mut decoder = video::decode(&media.path, &media.probe, request, &media.limits)?;
    let mut segmenter = segment.map(|(settings, target)| (Segmenter::new(settings), target));
    let clips_from_ms = if segmenter.is_some() { 0 } else { i64::MAX };
    let mut assemblers: Vec<Assembler<Target>> =
        groups.iter().map(|group| Assembler::new(group.sampler, known.clone(), clips_from_ms)).collect();
    watch.stage("decode");
    for event in &mut decoder {
        if let Some(why) = watch.stopped() {
            return Err(PassError::Stopped(why));
        }
        match event? {
            Event::Detect(frame) => {
                watch.frame(frame.time_ms);
                if let Some((segmenter, target)) = &mut segmenter {
                    let clips = segmenter.push(&frame);
                    announce(&mut assemblers, *target, &clips);
                }
            }
            Event::Sampled { output, frame } => {
                watch.reached(frame.time_ms);
                assemblers[output].frame(frame);
            }
        }
        send(&mut assemblers, Assembler::ready, ready)?;
    }
    let summary = decoder.summary();
    if let Some((segmenter, target)) = &mut segmenter {
        announce(&mut assemblers, *target, &segmenter.finish(summary.duration_ms));
    }
    send(&mut assemblers, Assembler::finish, ready)?;
    Ok(summary)
}

fn announce(assemblers: &mut [Assembler<Target>], target: Target, clips: &[ClipRange]) {
    for assembler in assemblers {
        clips.iter().for_each(|clip| assembler.clip(target, *clip));
    }
}

fn send(
    assemblers: &mut [Assembler<Target>],
    take: fn(&mut Assembler<Target>) -> Vec<Assembled<Target>>,
    ready: &mpsc::Sender<Ready>,
) -> Result<(), PassError> {
    for (group, assembler) in assemblers.iter_mut().enumerate() {
        for assembled in take(assembler) {
            // The receiver is gone when encoding failed: that error is the one to tell.
            ready.blocking_send((group, assembled)).map_err(|_| PassError::Stopped(Stop::Lost))?;
        }
    }
    Ok(())
}

async fn encode(group: &Group, assembled: Assembled<Target>, spans: &mut Spans) -> Result<(), PassError> {
    let frames = assembled.frames.len();
    let input = Input::Frames(Clip { frames: assembled.frames });
    for space in &group.spaces {
        let vectors = space.pool.encode_bulk(vec![input.clone()]).await?;
        let vectors = vectors.into_iter().map(|values| RawVector { space: space.key, values, frames });
        let range = (assembled.range.start_ms, assembled.range.end_ms);
        spans.entry((assembled.span, range)).or_default().extend(vectors);
    }
    Ok(())
}

async fn decode_span(
    media: &Media,
    range: ClipRange,
    group: &Group,
    seek_is_safe: bool,
) -> Result<Vec<Frame>, PassError> {
    let (media, sampler, size) = (media.clone(), group.sampler, group.output.size);
    blocking(move || {
        let span = range.start_ms..range.end_ms;
        video::frames_of_span(&media.path, &media.probe, span, &sampler, size, !seek_is_safe, &media.limits)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VideoError> + Send + 'static,
) -> Result<T, PassError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|panic| PassError::Panicked(panic.to_string()))??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clips: &[(u32, [f32; 2], usize)], expected: &[(u32, [f32; 2], usize)]) {
        let raw =
            |it: &(u32, [f32; 2], usize)| RawVector { space: it.0, values: it.1.to_vec(), frames: it.2 };
        let clips: Vec<RawVector> = clips.iter().map(raw).collect();
        assert_eq!(pooled(clips.iter()), expected.iter().map(raw).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_video_is_the_mean_over_its_frames_per_space() {
        check(&[(1, [1.0, 0.0], 3), (1, [0.0, 1.0], 1)], &[(1, [0.75, 0.25], 4)]);
        check(&[(1, [1.0, 0.0], 2), (2, [0.0, 1.0], 5)], &[(1, [1.0, 0.0], 2), (2, [0.0, 1.0], 5)]);
        check(&[], &[]);
    }
}
