//! The blocking half of an ingest: one decode pass over a file that cuts it into clips and hands over spans
//! with their frames.

use std::path::PathBuf;

use reprise_encoders::Frame;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::{ClipRange, Meter, Segmenter, SegmenterSettings};
use reprise_encoders::video::{self, Event, Limits, Output, Probe, Request, Summary, VideoError};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::assemble::{Assembled, Assembler, Feed};
use super::embed::PassError;
use super::moments;
use super::watch::{Stop, Watch};

/// Width of the frames that the shot detector sees.
const DETECT_WIDTH: u32 = 256;
/// Where, of 20 parts of a video, seeking is compared with decoding in order. Each look may decode up to a key
/// frame interval: in a short video the last one alone, for a seek to it goes wrong if any does.
const LOOK_AT: [i64; 3] = [18, 5, 10];
/// Videos shorter than this are short.
const SHORT_MS: i64 = 60_000;

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
    /// A window inside a clip, for spaces that see the order of frames.
    Moment,
}

/// The file of a pass.
#[derive(Clone)]
pub(super) struct Media {
    pub(super) path: PathBuf,
    pub(super) probe: Probe,
    pub(super) limits: Limits,
}

/// One consumer of frames: spaces that sample alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tap {
    pub(super) sampler: Sampler,
    pub(super) size: reprise_encoders::FrameSize,
    pub(super) feed: Feed,
    /// Whether windows inside the clips are encoded too.
    pub(super) moments: bool,
}

impl Tap {
    /// What a space needs of the first pass: rates are sampled by the decoder, other rules need every frame.
    pub(super) fn of(space: &reprise_encoders::Space) -> Tap {
        let feed = match space.sampler {
            Sampler::PerSecond { .. } => Feed::Sampled,
            Sampler::Middles { .. } | Sampler::Spread { .. } | Sampler::Stride { .. } => Feed::Every,
        };
        Tap { sampler: space.sampler, size: space.frame_size, feed, moments: space.temporal }
    }

    fn output(&self) -> Output {
        let per_second = match (self.feed, self.sampler) {
            (Feed::Sampled, Sampler::PerSecond { rate, .. }) => Some(rate),
            _ => None,
        };
        Output { size: self.size, per_second }
    }
}

/// What a pass does.
pub(super) struct Pass {
    /// Cut the video, and call what is found this.
    pub(super) segment: Option<(SegmenterSettings, Target)>,
    /// Each tap, and the spans that are known before.
    pub(super) taps: Vec<(Tap, Vec<(Target, ClipRange)>)>,
}

/// A span that is over: which tap, and its frames.
pub(super) type Ready = (usize, Assembled<Target>);

/// What a pass saw.
pub(super) struct Seen {
    pub(super) summary: Summary,
    /// A few small frames, to compare seeking with; none if the video was not cut.
    pub(super) references: Vec<Frame>,
}

/// Decodes all of `media`; sends spans as they are over. Blocks: on ffmpeg, and on whoever takes the spans.
pub(super) fn run(
    media: &Media,
    pass: &Pass,
    watch: &Watch,
    ready: &mpsc::Sender<Ready>,
) -> Result<Seen, PassError> {
    let request = Request {
        detect_width: pass.segment.map(|_| DETECT_WIDTH),
        outputs: pass.taps.iter().map(|(tap, _)| tap.output()).collect(),
    };
    let mut decoder = video::decode(&media.path, &media.probe, request, &media.limits)?;
    let mut cutter = pass.segment.map(|(settings, target)| Cutter::new(settings, target, &media.probe));
    let mut consumers = consumers(pass);
    watch.stage("decode");
    for event in &mut decoder {
        if let Some(why) = watch.stopped() {
            return Err(PassError::Stopped(why));
        }
        match event? {
            Event::Detect(frame) => {
                watch.frame(frame.time_ms);
                if let Some(cutter) = &mut cutter {
                    cutter.push(frame, &mut consumers);
                }
            }
            Event::Sampled { output, frame } => {
                watch.reached(frame.time_ms);
                let assembler = &mut consumers[output].assembler;
                assembler.frame(frame);
                send(output, assembler.ready(), ready)?;
            }
        }
    }
    let summary = decoder.summary();
    let references = cutter.map(|cutter| cutter.finish(summary.duration_ms, &mut consumers));
    for (tap, consumer) in consumers.iter_mut().enumerate() {
        send(tap, consumer.assembler.finish(), ready)?;
    }
    Ok(Seen { summary, references: references.unwrap_or_default() })
}

/// The frames of one span, by a decode of its own. Blocks.
pub(super) fn frames_of(
    media: &Media,
    range: ClipRange,
    tap: &Tap,
    seek_is_safe: bool,
) -> Result<Vec<Frame>, VideoError> {
    let span = range.start_ms..range.end_ms;
    video::frames_of_span(
        &media.path,
        &media.probe,
        span,
        &tap.sampler,
        tap.size,
        !seek_is_safe,
        &media.limits,
    )
}

/// The frames of one tap on their way into spans.
struct Consumer {
    assembler: Assembler<Target>,
    moments: bool,
}

impl Consumer {
    /// A clip became certain, and with it the windows inside it.
    fn clip(&mut self, target: Target, clip: ClipRange) {
        if self.moments && target == Target::Found {
            moments::windows(clip).into_iter().for_each(|window| self.assembler.wait(Target::Moment, window));
        }
        self.assembler.clip(target, clip);
    }
}

fn consumers(pass: &Pass) -> Vec<Consumer> {
    let clips_from_ms = if pass.segment.is_some() { 0 } else { i64::MAX };
    let consumer = |(tap, known): &(Tap, Vec<_>)| Consumer {
        assembler: Assembler::new(tap.sampler, tap.feed, known.clone(), clips_from_ms),
        moments: tap.moments,
    };
    pass.taps.iter().map(consumer).collect()
}

fn send(tap: usize, over: Vec<Assembled<Target>>, ready: &mpsc::Sender<Ready>) -> Result<(), PassError> {
    for assembled in over {
        // The receiver is gone when encoding failed: that error is the one to tell.
        ready.blocking_send((tap, assembled)).map_err(|_| PassError::Stopped(Stop::Lost))?;
    }
    Ok(())
}

/// Cuts the video and keeps a few of its frames.
struct Cutter {
    meter: Meter,
    segmenter: Segmenter,
    target: Target,
    moments: Vec<i64>,
    references: Vec<Frame>,
}

impl Cutter {
    fn new(settings: SegmenterSettings, target: Target, probe: &Probe) -> Cutter {
        let looks = if probe.duration_ms < SHORT_MS { 1 } else { LOOK_AT.len() };
        let mut moments: Vec<i64> =
            LOOK_AT[..looks].iter().map(|part| probe.duration_ms / 20 * part).collect();
        moments.sort_unstable();
        let meter = Meter::new(settings.needs_edges());
        Cutter { meter, segmenter: Segmenter::new(settings), target, moments, references: Vec::new() }
    }

    fn push(&mut self, frame: Frame, consumers: &mut [Consumer]) {
        let scores = self.meter.measure(&frame);
        announce(self.target, &self.segmenter.push(&scores), consumers);
        if self.moments.get(self.references.len()).is_some_and(|moment| *moment <= frame.time_ms) {
            self.references.push(frame);
        }
    }

    fn finish(mut self, duration_ms: i64, consumers: &mut [Consumer]) -> Vec<Frame> {
        announce(self.target, &self.segmenter.finish(duration_ms), consumers);
        self.references
    }
}

fn announce(target: Target, clips: &[ClipRange], consumers: &mut [Consumer]) {
    for consumer in consumers {
        clips.iter().for_each(|clip| consumer.clip(target, *clip));
    }
}
