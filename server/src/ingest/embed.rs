//! The async half of an ingest: plans the spans, encodes them from one decode pass or from stored features, and then
//! completes the spans without a frame.

use std::path::PathBuf;
use std::sync::Arc;

use reprise_encoders::video::segment::{ClipRange, Curve, Segmentation};
use reprise_encoders::video::{self, References, Summary};
use tokio::sync::mpsc;

use super::assemble::Feed;
use super::error::{IngestError, Stop};
use super::feature_cache::{self, FeatureCache};
use super::flow::{Flow, Inputs, PerTap, Taps, blocking, encode};
use super::pass::{self, Cutting, Media, Pass, PassOutcome, Tap, Target};
use super::pictures::{Pictures, Wanted};
use super::progress::JobProgress;
use super::raw_vectors::Spans;
use crate::catalog::MediaFacts;
use crate::models::LoadedSpace;
use crate::storage::features::FeaturesError;

/// Decoded steps in the channel. The decoder blocks when it is full.
const STEPS_AHEAD: usize = 2;
/// Up to this many spans are decoded by seeking. For more, a pass over the file is cheaper.
const SPANS_TO_SEEK: usize = 16;

/// Videos of fewer pixels in all frames are not checked, and decoded in order: decoding a whole one takes at most half a
/// second, and a check an eighth of a second.
const FEWEST_PIXELS: u64 = 100_000_000;
/// Decoding a frame takes at least as long as decoding this many pixels.
const FEWEST_OF_A_FRAME: u64 = 1 << 14;

/// File of a video's frame scores, in its features folder.
const CURVE: &str = "curve";

/// The work of an ingest.
pub(super) struct Plan {
    /// How to cut the video. `None`: don't cut it.
    pub(super) segment: Option<Cutting>,
    /// Spans known before the pass.
    pub(super) known: Vec<(Target, ClipRange)>,
    /// Moments inside the known spans, for the spaces that encode moments.
    pub(super) windows: Vec<ClipRange>,
    /// The spaces to fill.
    pub(super) spaces: Vec<Arc<LoadedSpace>>,
    /// Folder of the video's features.
    pub(super) features: PathBuf,
    /// The pictures for people that a pass makes too.
    pub(super) pictures: Wanted,
}

/// Facts about a video, known before a pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFacts {
    pub(super) duration_ms: i64,
    /// Whether seeking yields the same frames as decoding in order.
    pub(super) seek_is_safe: bool,
}

/// Result of an ingest.
pub(super) struct Embedded {
    pub(super) summary: Summary,
    pub(super) spans: Spans,
    /// Whether seeking yields the same frames as decoding in order. False for small videos, which are not checked.
    pub(super) seek_is_safe: bool,
    /// The pictures for people that a pass made.
    pub(super) pictures: Pictures,
}

/// Decodes `media` once and encodes every span of `plan` in every space of the plan.
///
/// A second decode is needed only for spans so short that they have no sampled frame.
pub(super) async fn ingest(
    media: Media,
    plan: Plan,
    progress: Arc<JobProgress>,
) -> Result<Embedded, IngestError> {
    let mut work = Work::new(media, &plan, progress);
    let known = work.for_each_tap(&plan);
    let (seen, lacking) = work.pass(plan.segment, known).await?;
    work.progress.stage("finish");
    let PassOutcome { summary, references, curve, pictures } = seen;
    work.keep_curve(curve).await?;
    let (width, height) = (work.media.probe.width, work.media.probe.height);
    let is_checked = is_worth_seeking(summary.frames, width, height);
    let seek_is_safe = is_checked && work.seek_agrees_with(references).await?;
    work.complete(lacking, seek_is_safe, summary.duration_ms).await?;
    Ok(Embedded { summary, spans: work.spans, seek_is_safe, pictures })
}

/// Whether seeking saves more time than its check takes. `frames` counts decoded frames, because a container may lie about
/// its length.
fn is_worth_seeking(frames: u64, width: u32, height: u32) -> bool {
    let of_a_frame = u64::from(width) * u64::from(height);
    frames.saturating_mul(of_a_frame.max(FEWEST_OF_A_FRAME)) >= FEWEST_PIXELS
}

/// Cuts and encodes a video from stored scores and features, without decoding it. `None` if any of them is missing.
pub(super) async fn recut(
    media: Media,
    plan: &Plan,
    facts: &MediaFacts,
    progress: Arc<JobProgress>,
) -> Result<Option<Embedded>, IngestError> {
    let mut work = Work::new(media, plan, progress);
    let Some(cutting) = plan.segment.clone().filter(|_| work.has_features()) else { return Ok(None) };
    let Some(curve) = work.curve(&cutting.segmentation).await else { return Ok(None) };
    work.progress.stage("features");
    let known = work.for_each_tap(plan);
    let clips = curve.clips(cutting.segmentation, &cutting.cues);
    let lacking = work.replay_features(known, Some((cutting.target, clips))).await?;
    work.complete(lacking, facts.seek_is_safe, facts.duration_ms).await?;
    let summary = Summary {
        frames: facts.frames,
        duration_ms: facts.duration_ms,
        media_offset_ms: facts.media_offset_ms,
        warnings: Vec::new(),
    };
    let seek_is_safe = facts.seek_is_safe;
    Ok(Some(Embedded { summary, spans: work.spans, seek_is_safe, pictures: Pictures::default() }))
}

/// Encodes the spans of `plan` from stored features, by seeking if that is cheaper than a pass, or else in a pass.
pub(super) async fn fill(
    media: Media,
    plan: Plan,
    facts: SourceFacts,
    progress: Arc<JobProgress>,
) -> Result<Spans, IngestError> {
    let SourceFacts { duration_ms, seek_is_safe } = facts;
    let mut work = Work::new(media, &plan, progress);
    let known = work.for_each_tap(&plan);
    let length: i64 = plan.known.iter().map(|(_, range)| range.end_ms - range.start_ms).sum();
    let is_little = plan.known.len() + plan.windows.len() <= SPANS_TO_SEEK && length < duration_ms / 2;
    let lacking = if plan.segment.is_none() && work.has_features() {
        work.replay_features(known, None).await?
    } else if plan.segment.is_none() && seek_is_safe && is_little {
        known
    } else {
        work.pass(plan.segment, known).await?.1
    };
    work.complete(lacking, seek_is_safe, duration_ms).await?;
    Ok(work.spans)
}

/// The state of one ingest.
struct Work {
    media: Media,
    taps: Taps,
    features: PathBuf,
    pictures: Wanted,
    progress: Arc<JobProgress>,
    spans: Spans,
}

impl Work {
    fn new(media: Media, plan: &Plan, progress: Arc<JobProgress>) -> Work {
        let mut taps = Taps::new();
        for space in plan.spaces.iter().filter(|it| it.space.can.frames) {
            let tap = Tap::of(&space.space);
            match taps.iter_mut().find(|(other, _)| *other == tap) {
                Some((_, spaces)) => spaces.push(Arc::clone(space)),
                None => taps.push((tap, vec![Arc::clone(space)])),
            }
        }
        let (features, pictures) = (plan.features.clone(), plan.pictures);
        Work { media, taps, features, pictures, progress, spans: Spans::new() }
    }

    /// The known spans for each tap. Taps with moments also get the windows.
    fn for_each_tap(&self, plan: &Plan) -> PerTap {
        let of_tap = |(tap, _): &(Tap, Vec<_>)| {
            let windows = plan.windows.iter().filter(|_| tap.moments).map(|window| (Target::Moment, *window));
            plan.known.iter().copied().chain(windows).collect()
        };
        self.taps.iter().map(of_tap).collect()
    }

    /// Runs one decode pass. Returns the spans without a frame.
    async fn pass(
        &mut self,
        segment: Option<Cutting>,
        known: PerTap,
    ) -> Result<(PassOutcome, PerTap), IngestError> {
        let target = segment.as_ref().map(|cutting| cutting.target);
        let (taps, pictures) = (self.taps.iter().map(|(tap, _)| *tap).collect(), self.pictures);
        let pass = Pass { segment, taps, pictures };
        let (sender, mut receiver) = mpsc::channel(STEPS_AHEAD);
        let (media, progress) = (self.media.clone(), Arc::clone(&self.progress));
        let kept = self.kept().await?;
        let span = tracing::debug_span!("decode");
        let decode = move || span.in_scope(|| pass::run(&media, &pass, &progress, &sender));
        let decoding = tokio::task::spawn_blocking(decode);
        let mut flow = Flow::new(&self.taps, kept, known, target, &mut self.spans);
        if let Err(error) = flow.take(&mut receiver).await {
            // Otherwise the decoder would go on until its next step.
            self.progress.stop(Stop::Lost);
            return Err(error);
        }
        let seen = decoding.await.map_err(IngestError::Panicked)??;
        let lacking = flow.finish().await?;
        Ok((seen, lacking))
    }

    /// Opens the feature caches: one per space of each tap that stores features.
    async fn kept(&self) -> Result<Vec<Vec<FeatureCache>>, IngestError> {
        let (folder, taps, progress) = (self.features.clone(), self.taps.clone(), Arc::clone(&self.progress));
        blocking(move || {
            let of_tap = |(tap, spaces): &(Tap, Vec<Arc<LoadedSpace>>)| match tap.features {
                true => {
                    spaces.iter().map(|space| FeatureCache::open(&folder, &space.space, &progress)).collect()
                }
                false => Ok(Vec::new()),
            };
            taps.iter().map(of_tap).collect::<Result<_, FeaturesError>>()
        })
        .await
    }

    /// Whether all spaces have stored features of all frames.
    fn has_features(&self) -> bool {
        let mut spaces = self.taps.iter().flat_map(|(_, spaces)| spaces);
        spaces.all(|space| {
            space.space.frame_stage.is_some() && feature_cache::is_complete(&self.features, &space.space)
        })
    }

    /// Encodes the known spans and `clips` from stored features. Returns the spans without a frame.
    async fn replay_features(
        &mut self,
        known: PerTap,
        clips: Option<(Target, Vec<ClipRange>)>,
    ) -> Result<PerTap, IngestError> {
        let kept = self.kept().await?;
        let target = clips.as_ref().map(|(target, _)| *target);
        let mut flow = Flow::new(&self.taps, kept, known, target, &mut self.spans);
        flow.replay(clips.map(|(_, clips)| clips).unwrap_or_default(), &self.progress).await?;
        flow.finish().await
    }

    /// Writes the scores of a video's frames to disk.
    async fn keep_curve(&self, curve: Vec<u8>) -> Result<(), IngestError> {
        let folder = self.features.clone();
        blocking(move || {
            std::fs::create_dir_all(&folder)?;
            let begun = folder.join("curve.part");
            reprise_faults::at("curve: write")?;
            std::fs::write(&begun, curve)?;
            reprise_faults::at("curve: rename")?;
            std::fs::rename(begun, folder.join(CURVE))?;
            Ok::<_, FeaturesError>(())
        })
        .await
    }

    /// Reads the stored scores. `None` if they lack edges that `segmentation` needs.
    async fn curve(&self, segmentation: &Segmentation) -> Option<Curve> {
        let bytes = tokio::fs::read(self.features.join(CURVE)).await.ok()?;
        Curve::read(&bytes).ok().filter(|curve| curve.has_edges || !segmentation.needs_edges())
    }

    async fn seek_agrees_with(&self, references: References) -> Result<bool, IngestError> {
        let media = self.media.clone();
        blocking(move || video::seek_agrees_with(&media.path, &media.probe, &references, &media.limits)).await
    }

    /// Encodes spans that have no sampled frame. Few spans are decoded by seeking. If there are many, or seeking is not
    /// safe, a pass over every frame comes first.
    async fn complete(
        &mut self,
        lacking: PerTap,
        seek_is_safe: bool,
        duration_ms: i64,
    ) -> Result<(), IngestError> {
        let inside = |spans: Vec<(Target, ClipRange)>| {
            let cut = |range: ClipRange| ClipRange { end_ms: range.end_ms.min(duration_ms), ..range };
            let spans = spans.into_iter().map(|(target, range)| (target, cut(range)));
            spans.filter(|(_, range)| range.start_ms < range.end_ms).collect::<Vec<_>>()
        };
        let mut lacking: PerTap = lacking.into_iter().map(inside).collect();
        let count: usize = lacking.iter().map(Vec::len).sum();
        if count > SPANS_TO_SEEK || (count > 0 && !seek_is_safe) {
            lacking = self.look_at_every_frame(lacking).await?;
        }
        for (tap, spans) in lacking.into_iter().enumerate() {
            for (target, range) in spans {
                self.seek(tap, target, range, seek_is_safe).await?;
            }
        }
        Ok(())
    }

    /// Runs a pass with every frame. It stores no features.
    async fn look_at_every_frame(&mut self, lacking: PerTap) -> Result<PerTap, IngestError> {
        let taps = self.taps.clone();
        for (tap, _) in &mut self.taps {
            *tap = Tap { feed: Feed::Every, features: false, ..*tap };
        }
        let passed = self.pass(None, lacking).await;
        self.taps = taps;
        Ok(passed?.1)
    }

    async fn seek(
        &mut self,
        tap: usize,
        span: Target,
        range: ClipRange,
        seek_is_safe: bool,
    ) -> Result<(), IngestError> {
        if let Some(why) = self.progress.stopped() {
            return Err(IngestError::Stopped(why));
        }
        let (media, (of, spaces)) = (self.media.clone(), self.taps[tap].clone());
        let frames = blocking(move || pass::frames_of(&media, range, &of, seek_is_safe)).await?;
        encode(spaces, Inputs::of_frames(vec![(span, range, frames)])).await?.store(&mut self.spans);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(frames: u64, width: u32, height: u32, expected: bool) {
        assert_eq!(is_worth_seeking(frames, width, height), expected);
    }

    #[test]
    fn videos_are_checked_where_seeking_saves_time() {
        check(0, 1280, 720, false);
        check(100, 1280, 720, false);
        check(125, 1280, 720, true);
        check(1500, 320, 180, false);
        check(3000, 320, 180, true);
        // Each frame takes time, however small it is.
        check(6000, 2, 2, false);
        check(6200, 2, 2, true);
        check(u64::MAX, 1280, 720, true);
    }
}
