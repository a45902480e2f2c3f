//! The waiting half of an ingest: takes spans from a decode pass as they are over and encodes them into
//! every space.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use reprise_encoders::video::segment::{ClipRange, SegmenterSettings};
use reprise_encoders::video::{self, Summary, VideoError};
use reprise_encoders::{Clip, EncodeError, Input};
use tokio::sync::mpsc;

use super::assemble::{Assembled, Feed};
use super::pass::{self, Media, Pass, Ready, Seen, Tap, Target};
use super::watch::{Stop, Watch};
use crate::spaces::LoadedSpace;

/// Spans that are decoded but not encoded yet; more make the decoder wait.
const SPANS_AHEAD: usize = 4;
/// Up to so many spans are sought one by one; for more a pass over the file is cheaper.
const SPANS_TO_SEEK: usize = 16;

/// What is to be encoded.
pub(super) struct Plan {
    /// Cut the video, and call what is found this.
    pub(super) segment: Option<(SegmenterSettings, Target)>,
    /// Spans that are known before.
    pub(super) known: Vec<(Target, ClipRange)>,
    /// Windows inside them, for the spaces that have moments.
    pub(super) windows: Vec<ClipRange>,
    /// The spaces to fill.
    pub(super) spaces: Vec<Arc<LoadedSpace>>,
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

/// What an ingest found out.
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

/// Decodes `media` once and encodes every span of `plan` into every space of it.
///
/// Few spans need a second look: those so short that no sampled frame lies in them.
pub(super) async fn ingest(media: Media, plan: Plan, watch: Arc<Watch>) -> Result<Embedded, PassError> {
    let mut work = Work::new(media, &plan.spaces, watch);
    let known = work.for_each_tap(&plan.known, &plan.windows);
    let (seen, lacking) = work.pass(plan.segment, known).await?;
    work.watch.stage("finish");
    let Seen { summary, references } = seen;
    let seek_is_safe = work.seek_agrees_with(references).await?;
    work.complete(lacking, seek_is_safe, summary.duration_ms).await?;
    Ok(Embedded { summary, spans: work.spans, seek_is_safe })
}

/// Encodes the spans of `plan` of a video whose facts are known, by seeking where that is cheaper than a pass.
pub(super) async fn fill(
    media: Media,
    plan: Plan,
    (duration_ms, seek_is_safe): (i64, bool),
    watch: Arc<Watch>,
) -> Result<Spans, PassError> {
    let mut work = Work::new(media, &plan.spaces, watch);
    let known = work.for_each_tap(&plan.known, &plan.windows);
    let length: i64 = plan.known.iter().map(|(_, range)| range.end_ms - range.start_ms).sum();
    let is_little = plan.known.len() + plan.windows.len() <= SPANS_TO_SEEK && length < duration_ms / 2;
    let lacking = if plan.segment.is_none() && seek_is_safe && is_little {
        known
    } else {
        work.pass(plan.segment, known).await?.1
    };
    work.complete(lacking, seek_is_safe, duration_ms).await?;
    Ok(work.spans)
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

/// Spans of each tap, in the order of the taps.
type PerTap = Vec<Vec<(Target, ClipRange)>>;

/// One video's spans on their way into the spaces.
struct Work {
    media: Media,
    /// Spaces that take the same frames share a tap of the decoder.
    taps: Vec<(Tap, Vec<Arc<LoadedSpace>>)>,
    watch: Arc<Watch>,
    spans: Spans,
}

impl Work {
    fn new(media: Media, spaces: &[Arc<LoadedSpace>], watch: Arc<Watch>) -> Work {
        let mut taps: Vec<(Tap, Vec<Arc<LoadedSpace>>)> = Vec::new();
        for space in spaces.iter().filter(|it| it.space.can.frames) {
            let tap = Tap::of(&space.space);
            match taps.iter_mut().find(|(other, _)| *other == tap) {
                Some((_, spaces)) => spaces.push(Arc::clone(space)),
                None => taps.push((tap, vec![Arc::clone(space)])),
            }
        }
        Work { media, taps, watch, spans: Spans::new() }
    }

    /// The known spans, and the windows inside them where a tap has moments.
    fn for_each_tap(&self, known: &[(Target, ClipRange)], windows: &[ClipRange]) -> PerTap {
        let of_tap = |(tap, _): &(Tap, Vec<_>)| {
            let windows = windows.iter().filter(|_| tap.moments).map(|window| (Target::Moment, *window));
            known.iter().copied().chain(windows).collect()
        };
        self.taps.iter().map(of_tap).collect()
    }

    /// One pass; answers the spans in which it found no frame.
    async fn pass(
        &mut self,
        segment: Option<(SegmenterSettings, Target)>,
        known: PerTap,
    ) -> Result<(Seen, PerTap), PassError> {
        let taps = self.taps.iter().map(|(tap, _)| *tap).zip(known).collect();
        self.run(Pass { segment, taps }).await
    }

    async fn run(&mut self, pass: Pass) -> Result<(Seen, PerTap), PassError> {
        let (sender, mut receiver) = mpsc::channel(SPANS_AHEAD);
        let (media, watch) = (self.media.clone(), Arc::clone(&self.watch));
        let decoding = tokio::task::spawn_blocking(move || pass::run(&media, &pass, &watch, &sender));
        let mut lacking = vec![Vec::new(); self.taps.len()];
        let mut over: Vec<Ready> = Vec::with_capacity(SPANS_AHEAD);
        while receiver.recv_many(&mut over, SPANS_AHEAD).await > 0 {
            for (tap, lacking) in lacking.iter_mut().enumerate() {
                let of_tap = over.extract_if(.., |(of, _)| *of == tap).map(|(_, assembled)| assembled);
                let (empty, full): (Vec<_>, Vec<_>) = of_tap.partition(|it| it.frames.is_empty());
                lacking.extend(empty.into_iter().map(|it| (it.span, it.range)));
                if let Err(error) = self.encode(tap, full).await {
                    // Else the decoder would go on until it next has something to hand over.
                    self.watch.stop(Stop::Lost);
                    return Err(error);
                }
            }
        }
        let seen = decoding.await.map_err(|panic| PassError::Panicked(panic.to_string()))??;
        Ok((seen, lacking))
    }

    async fn seek_agrees_with(&self, references: Vec<reprise_encoders::Frame>) -> Result<bool, PassError> {
        let media = self.media.clone();
        blocking(move || video::seek_agrees_with(&media.path, &media.probe, &references, &media.limits)).await
    }

    /// Encodes spans in which the sampled frames left out all: sought one by one, or, where they are many or
    /// seeking can't be trusted, from a pass that looks at every frame.
    async fn complete(
        &mut self,
        lacking: PerTap,
        seek_is_safe: bool,
        duration_ms: i64,
    ) -> Result<(), PassError> {
        let inside = |spans: Vec<(Target, ClipRange)>| {
            let cut = |range: ClipRange| ClipRange { end_ms: range.end_ms.min(duration_ms), ..range };
            let spans = spans.into_iter().map(|(target, range)| (target, cut(range)));
            spans.filter(|(_, range)| range.start_ms < range.end_ms).collect::<Vec<_>>()
        };
        let mut lacking: PerTap = lacking.into_iter().map(inside).collect();
        let count: usize = lacking.iter().map(Vec::len).sum();
        if count > SPANS_TO_SEEK || (count > 0 && !seek_is_safe) {
            let every = |tap: Tap| Tap { feed: Feed::Every, ..tap };
            let taps = self.taps.iter().map(|(tap, _)| every(*tap)).zip(lacking).collect();
            lacking = self.run(Pass { segment: None, taps }).await?.1;
        }
        for (tap, spans) in lacking.into_iter().enumerate() {
            for (target, range) in spans {
                self.seek(tap, target, range, seek_is_safe).await?;
            }
        }
        Ok(())
    }

    async fn seek(
        &mut self,
        tap: usize,
        span: Target,
        range: ClipRange,
        seek_is_safe: bool,
    ) -> Result<(), PassError> {
        if let Some(why) = self.watch.stopped() {
            return Err(PassError::Stopped(why));
        }
        let (media, of) = (self.media.clone(), self.taps[tap].0);
        let frames = blocking(move || pass::frames_of(&media, range, &of, seek_is_safe)).await?;
        self.encode(tap, vec![Assembled { span, range, frames }]).await
    }

    /// Encodes spans into all spaces of a tap, side by side.
    async fn encode(&mut self, tap: usize, over: Vec<Assembled<Target>>) -> Result<(), PassError> {
        if over.is_empty() {
            return Ok(());
        }
        let mut inputs = Vec::with_capacity(over.len());
        let mut names = Vec::with_capacity(over.len());
        for Assembled { span, range, frames } in over {
            names.push(((span, (range.start_ms, range.end_ms)), frames.len()));
            inputs.push(Input::Frames(Clip { frames }));
        }
        let encode = |space: &Arc<LoadedSpace>| {
            let (space, inputs) = (Arc::clone(space), inputs.clone());
            async move { Ok::<_, EncodeError>((space.key, space.pool.encode_bulk(inputs).await?)) }
        };
        for (space, vectors) in try_join_all(self.taps[tap].1.iter().map(encode)).await? {
            for ((name, frames), values) in names.iter().zip(vectors) {
                let of_span = self.spans.entry(*name).or_default();
                // Windows of two overlapping clips may be the same.
                if of_span.iter().all(|it| it.space != space) {
                    of_span.push(RawVector { space, values, frames: *frames });
                }
            }
        }
        Ok(())
    }
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
