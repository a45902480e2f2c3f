//! Streams frames and clips into vectors. Frames pass the frame stage or go straight into spans, spans go into every
//! space. A few batches run at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use futures_util::stream::{FuturesOrdered, StreamExt};
use reprise_encoders::video::segment::ClipRange;
use reprise_encoders::{Clip, EncodeError, Frame, Input};
use tokio::sync::mpsc;

use super::assemble::{Assembled, Assembler, Feature, Featured};
use super::error::IngestError;
use super::feature_cache::FeatureCache;
use super::moments;
use super::pass::{Step, Tap, Target};
use super::progress::JobProgress;
use super::raw_vectors::{RawVector, Spans};
use super::subsample::Timed;
use crate::models::LoadedSpace;
use crate::telemetry::names;

/// Largest number of batches in the pools at once: one is encoded, one waits, one is prepared.
const IN_FLIGHT: usize = 3;

/// Largest number of clips of one video. Each has a vector in every space, which stays in memory until the commit.
const MOST_CLIPS: usize = 50_000;

/// Spans of each tap, in the order of the taps.
pub(super) type PerTap = Vec<Vec<(Target, ClipRange)>>;

/// Spaces that take the same frames share a tap of the decoder.
pub(super) type Taps = Vec<(Tap, Vec<Arc<LoadedSpace>>)>;

/// The frames of one tap, to be assembled into spans.
enum Consumer {
    /// The encoder takes whole spans of frames.
    Pictures(Assembler<Target, Frame>),
    /// The frame stage takes single frames. One `FeatureCache` per space.
    Features(Assembler<Target, Featured>, Vec<FeatureCache>),
}

impl Consumer {
    fn new(
        tap: &Tap,
        kept: Vec<FeatureCache>,
        known: Vec<(Target, ClipRange)>,
        clips_from_ms: i64,
    ) -> Consumer {
        match tap.features {
            true => Consumer::Features(Assembler::new(tap.sampler, tap.feed, known, clips_from_ms), kept),
            false => Consumer::Pictures(Assembler::new(tap.sampler, tap.feed, known, clips_from_ms)),
        }
    }
}

/// The result of a batch.
enum Landed {
    Features { tap: usize, frames: Vec<Featured> },
    Vectors(Vectors),
}

/// A batch that runs in the pools.
type Flying = BoxFuture<'static, Result<Landed, EncodeError>>;

/// Streams the frames and clips of one video into vectors.
pub(super) struct Flow<'a> {
    taps: &'a Taps,
    consumers: Vec<Consumer>,
    /// Target of the found clips.
    target: Option<Target>,
    flying: FuturesOrdered<Flying>,
    /// Spans of each tap that have no frame.
    lacking: PerTap,
    /// Number of clips so far.
    clips: usize,
    spans: &'a mut Spans,
}

impl<'a> Flow<'a> {
    /// `kept` holds the feature caches of each tap, one per space. `known` holds each tap's spans that were known
    /// before the pass.
    pub(super) fn new(
        taps: &'a Taps,
        kept: Vec<Vec<FeatureCache>>,
        known: PerTap,
        target: Option<Target>,
        spans: &'a mut Spans,
    ) -> Flow<'a> {
        let clips_from_ms = if target.is_some() { 0 } else { i64::MAX };
        let of_taps = taps.iter().map(|(tap, _)| tap).zip(kept).zip(known);
        let consumers = of_taps.map(|((tap, kept), known)| Consumer::new(tap, kept, known, clips_from_ms));
        let consumers = consumers.collect();
        let lacking = vec![Vec::new(); taps.len()];
        Flow { taps, consumers, target, flying: FuturesOrdered::new(), lacking, clips: 0, spans }
    }

    /// Takes all steps of a pass.
    pub(super) async fn take(&mut self, steps: &mut mpsc::Receiver<Step>) -> Result<(), IngestError> {
        loop {
            tokio::select! {
                Some(landed) = self.flying.next() => self.land(landed?).await?,
                step = steps.recv(), if self.flying.len() < IN_FLIGHT => match step {
                    Some(step) => self.step(step)?,
                    None => return Ok(()),
                },
            }
        }
    }

    /// Takes `clips` and the cached features of every tap, instead of a pass.
    pub(super) async fn replay(
        &mut self,
        clips: Vec<ClipRange>,
        progress: &JobProgress,
    ) -> Result<(), IngestError> {
        clips.into_iter().try_for_each(|clip| self.clip(clip))?;
        for tap in 0..self.consumers.len() {
            let mut from_ms = i64::MIN;
            while let Some(frames) = self.kept_from(tap, from_ms)? {
                if let Some(why) = progress.stopped() {
                    return Err(IngestError::Stopped(why));
                }
                from_ms = frames.last().map_or(i64::MAX, |last| last.time_ms + 1);
                self.featured(tap, frames);
                while self.flying.len() >= IN_FLIGHT
                    && let Some(landed) = self.flying.next().await
                {
                    self.land(landed?).await?;
                }
            }
        }
        Ok(())
    }

    /// The next cached frames of a tap, from a time on.
    fn kept_from(&mut self, tap: usize, from_ms: i64) -> Result<Option<Vec<Featured>>, IngestError> {
        let Consumer::Features(_, kept) = &mut self.consumers[tap] else { return Ok(None) };
        let Some((first, others)) = kept.split_first_mut() else { return Ok(None) };
        let rows = first.next(from_ms)?;
        let times: Vec<i64> = rows.iter().map(|(time_ms, _)| *time_ms).collect();
        let others: Vec<Vec<Option<Feature>>> = others.iter_mut().map(|kept| kept.find(&times)).collect();
        let featured = |(at, (time_ms, row)): (usize, (i64, Feature))| {
            let others = others.iter().map(|rows| rows[at].clone());
            let features = std::iter::once(Some(row)).chain(others).collect::<Option<Vec<_>>>()?;
            Some(Featured { time_ms, features })
        };
        let frames: Vec<Featured> = rows.into_iter().enumerate().filter_map(featured).collect();
        Ok((!frames.is_empty()).then_some(frames))
    }

    /// Encodes the remaining spans. Returns each tap's spans that have no sampled frame.
    pub(super) async fn finish(mut self) -> Result<PerTap, IngestError> {
        self.land_all().await?;
        for tap in 0..self.consumers.len() {
            match &mut self.consumers[tap] {
                Consumer::Pictures(assembler) => {
                    let over = assembler.finish();
                    self.encode_pictures(tap, over);
                }
                Consumer::Features(assembler, kept) => {
                    let (over, mut kept) = (assembler.finish(), std::mem::take(kept));
                    self.encode_features(tap, over);
                    blocking(move || kept.iter_mut().try_for_each(FeatureCache::finish)).await?;
                }
            }
        }
        self.land_all().await?;
        Ok(self.lacking)
    }

    async fn land_all(&mut self) -> Result<(), IngestError> {
        while let Some(landed) = self.flying.next().await {
            self.land(landed?).await?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), IngestError> {
        match step {
            Step::Clips(clips) => clips.into_iter().try_for_each(|clip| self.clip(clip))?,
            Step::Frames { tap, frames } => match &mut self.consumers[tap] {
                Consumer::Pictures(assembler) => {
                    frames.into_iter().for_each(|frame| assembler.frame(frame));
                    let over = assembler.ready();
                    self.encode_pictures(tap, over);
                }
                Consumer::Features(_, kept) => {
                    let frames = features(tap, self.taps[tap].1.clone(), kept, frames);
                    self.flying.push_back(frames.boxed());
                }
            },
        }
        Ok(())
    }

    /// Adds a clip with final bounds, and its windows.
    fn clip(&mut self, clip: ClipRange) -> Result<(), IngestError> {
        let Some(target) = self.target else { return Ok(()) };
        self.clips += 1;
        if self.clips > MOST_CLIPS {
            return Err(IngestError::TooManyClips { most: MOST_CLIPS });
        }
        // A clip exists even if no model encodes it. Its subtitles can be found.
        self.spans.entry((target, (clip.start_ms, clip.end_ms))).or_default();
        for ((tap, _), consumer) in self.taps.iter().zip(&mut self.consumers) {
            let with_moments = tap.moments && target == Target::Found;
            match consumer {
                Consumer::Pictures(assembler) => announce(assembler, target, clip, with_moments),
                Consumer::Features(assembler, _) => announce(assembler, target, clip, with_moments),
            }
        }
        Ok(())
    }

    async fn land(&mut self, landed: Landed) -> Result<(), IngestError> {
        match landed {
            Landed::Vectors(vectors) => vectors.store(self.spans),
            Landed::Features { tap, frames } => {
                self.keep(tap, &frames).await?;
                self.featured(tap, frames);
            }
        }
        Ok(())
    }

    /// Writes new features to disk.
    async fn keep(&mut self, tap: usize, frames: &[Featured]) -> Result<(), IngestError> {
        let Consumer::Features(_, kept) = &mut self.consumers[tap] else { return Ok(()) };
        let mut files = std::mem::take(kept);
        let rows = |space: usize| -> Vec<(i64, Feature)> {
            frames.iter().map(|frame| (frame.time_ms, Arc::clone(&frame.features[space]))).collect()
        };
        let rows: Vec<_> = (0..files.len()).map(rows).collect();
        let keep = move || {
            files.iter_mut().zip(&rows).try_for_each(|(file, rows)| file.keep(rows))?;
            Ok::<_, crate::storage::features::FeaturesError>(files)
        };
        let files = blocking(keep).await?;
        if let Consumer::Features(_, kept) = &mut self.consumers[tap] {
            *kept = files;
        }
        Ok(())
    }

    fn featured(&mut self, tap: usize, frames: Vec<Featured>) {
        let Consumer::Features(assembler, _) = &mut self.consumers[tap] else { return };
        frames.into_iter().for_each(|frame| assembler.frame(frame));
        let over = assembler.ready();
        self.encode_features(tap, over);
    }

    fn encode_pictures(&mut self, tap: usize, over: Vec<Assembled<Target, Frame>>) {
        let over = self.without_empty(tap, over);
        let spans = over.into_iter().map(|it| (it.span, it.range, it.frames)).collect();
        self.encode(tap, Inputs::of_frames(spans));
    }

    fn encode_features(&mut self, tap: usize, over: Vec<Assembled<Target, Featured>>) {
        let over = self.without_empty(tap, over);
        let spaces = self.taps[tap].1.len();
        self.encode(tap, Inputs::of_features(over, spaces));
    }

    fn without_empty<P>(&mut self, tap: usize, over: Vec<Assembled<Target, P>>) -> Vec<Assembled<Target, P>> {
        let (empty, full): (Vec<_>, Vec<_>) = over.into_iter().partition(|it| it.frames.is_empty());
        self.lacking[tap].extend(empty.into_iter().map(|it| (it.span, it.range)));
        full
    }

    fn encode(&mut self, tap: usize, inputs: Inputs) {
        if inputs.names.is_empty() {
            return;
        }
        let spaces = self.taps[tap].1.clone();
        self.flying.push_back(async move { encode(spaces, inputs).await.map(Landed::Vectors) }.boxed());
    }
}

fn announce<P: Timed>(
    assembler: &mut Assembler<Target, P>,
    target: Target,
    clip: ClipRange,
    with_moments: bool,
) {
    if with_moments {
        moments::windows(clip).into_iter().for_each(|window| assembler.wait(Target::Moment, window));
    }
    assembler.clip(target, clip);
}

/// The features of frames in every space: cached ones, and the frame stage's output for the others.
fn features(
    tap: usize,
    spaces: Vec<Arc<LoadedSpace>>,
    kept: &mut [FeatureCache],
    frames: Vec<Frame>,
) -> impl Future<Output = Result<Landed, EncodeError>> + Send + 'static {
    let times: Vec<i64> = frames.iter().map(|frame| frame.time_ms).collect();
    let found: Vec<Vec<Option<Feature>>> = kept.iter_mut().map(|kept| kept.find(&times)).collect();
    async move {
        let of_space = |(space, found): (Arc<LoadedSpace>, Vec<Option<Feature>>)| {
            let unknown = frames.iter().zip(&found).filter(|(_, found)| found.is_none());
            let inputs: Vec<Input> = unknown.map(|(frame, _)| Input::Frame(frame.clone())).collect();
            count(&space, inputs.len(), frames.len() - inputs.len());
            async move {
                let mut made = match inputs.is_empty() {
                    true => Vec::new(),
                    false => space.pool.encode_bulk(inputs).await?,
                }
                .into_iter();
                let rows = found.into_iter().map(|row| row.or_else(|| made.next().map(Arc::from)));
                let fewer = || EncodeError::Failed("fewer features than frames".into());
                rows.collect::<Option<Vec<_>>>().ok_or_else(fewer)
            }
        };
        let rows = try_join_all(spaces.into_iter().zip(found).map(of_space)).await?;
        let featured = |(at, time_ms): (usize, i64)| {
            let features = rows.iter().map(|rows| Arc::clone(&rows[at])).collect();
            Featured { time_ms, features }
        };
        Ok(Landed::Features { tap, frames: times.into_iter().enumerate().map(featured).collect() })
    }
}

fn count(space: &LoadedSpace, encoded: usize, kept: usize) {
    for (source, frames) in [("encoder", encoded), ("kept", kept)] {
        let labels = [("space", space.space.name.clone()), ("source", source.to_owned())];
        metrics::counter!(names::FRAMES.name, &labels).increment(frames as u64);
    }
}

/// A span and its range in milliseconds.
type Name = (Target, (i64, i64));

/// Spans to encode.
pub(super) struct Inputs {
    /// Each span with its range and its number of frames.
    names: Vec<(Name, usize)>,
    /// One list per space, or one list for all spaces.
    of_spaces: Vec<Vec<Input>>,
}

impl Inputs {
    pub(super) fn of_frames(spans: Vec<(Target, ClipRange, Vec<Frame>)>) -> Inputs {
        let name = |(span, range, frames): &(Target, ClipRange, Vec<Frame>)| {
            ((*span, (range.start_ms, range.end_ms)), frames.len())
        };
        let names = spans.iter().map(name).collect();
        let inputs = spans.into_iter().map(|(_, _, frames)| Input::Frames(Clip { frames })).collect();
        Inputs { names, of_spaces: vec![inputs] }
    }

    fn of_features(over: Vec<Assembled<Target, Featured>>, spaces: usize) -> Inputs {
        let name = |it: &Assembled<Target, Featured>| {
            ((it.span, (it.range.start_ms, it.range.end_ms)), it.frames.len())
        };
        let rows = |it: &Assembled<Target, Featured>, space: usize| {
            Input::Features(it.frames.iter().map(|frame| Arc::clone(&frame.features[space])).collect())
        };
        let of_space = |space: usize| over.iter().map(|it| rows(it, space)).collect();
        Inputs { names: over.iter().map(name).collect(), of_spaces: (0..spaces).map(of_space).collect() }
    }
}

/// The raw vectors of encoded spans.
pub(super) struct Vectors(BTreeMap<Name, Vec<RawVector>>);

impl Vectors {
    pub(super) fn store(self, spans: &mut Spans) {
        for (name, vectors) in self.0 {
            let of_span = spans.entry(name).or_default();
            for vector in vectors {
                // Overlapping clips may share a window.
                if of_span.iter().all(|it| it.space != vector.space) {
                    of_span.push(vector);
                }
            }
        }
    }
}

/// Encodes spans in all spaces of a tap, concurrently.
pub(super) async fn encode(spaces: Vec<Arc<LoadedSpace>>, inputs: Inputs) -> Result<Vectors, EncodeError> {
    let Inputs { names, of_spaces } = inputs;
    let encode = |(at, space): (usize, &Arc<LoadedSpace>)| {
        let inputs = of_spaces.get(at).or(of_spaces.first()).cloned().unwrap_or_default();
        let space = Arc::clone(space);
        async move { Ok::<_, EncodeError>((space.key, space.pool.encode_bulk(inputs).await?)) }
    };
    let mut vectors: BTreeMap<Name, Vec<RawVector>> = BTreeMap::new();
    for (space, raw) in try_join_all(spaces.iter().enumerate().map(encode)).await? {
        for ((name, frames), values) in names.iter().zip(raw) {
            vectors.entry(*name).or_default().push(RawVector { space, values, frames: *frames });
        }
    }
    Ok(Vectors(vectors))
}

/// Runs blocking work outside the async threads.
pub(super) async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, IngestError>
where
    IngestError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done??)
}
