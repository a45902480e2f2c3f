//! The blocking half of an ingest: one decode pass over a file. It cuts the video into clips and sends sampled frames.

use std::path::PathBuf;

use reprise_encoders::Frame;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::{ClipRange, CurveWriter, Meter, Segmentation, Segmenter};
use reprise_encoders::video::{self, Event, Limits, Output, Probe, References, Request, Summary, VideoError};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::assemble::Feed;
use super::error::{IngestError, Stop};
use super::pictures::{PictureMaker, Pictures, Wanted};
use super::progress::JobProgress;
use crate::sprites;
use crate::terms::SpanKey;

/// Positions at which seeking is compared with decoding in order, in twentieths of the duration. Each check starts a
/// process. A short video is checked only at the last position: if any seek fails, that one fails.
const LOOK_AT: [i64; 3] = [18, 5, 10];
/// Videos shorter than this are short: each further check would take more than a fiftieth of their decode's time.
const SHORT_MS: i64 = 120_000;

/// Largest number of sampled frames per step: one batch of a frame stage.
const FRAMES_PER_STEP: usize = 32;
/// Largest number of bytes of frames per step.
const BYTES_PER_STEP: usize = 8 << 20;

/// The span that a vector belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A clip that this pass found.
    Found,
    /// A range that only counts towards the full-video vector.
    Pooled,
    /// A clip given by the user.
    Given(Uuid),
    /// A stored span, by key.
    Known(SpanKey),
    /// A window inside a clip, for temporal spaces.
    Moment,
}

/// The file of a pass.
#[derive(Clone)]
pub(super) struct Media {
    pub(super) path: PathBuf,
    pub(super) probe: Probe,
    pub(super) limits: Limits,
}

/// One consumer of frames: the spaces with equal sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tap {
    pub(super) sampler: Sampler,
    pub(super) scaling: reprise_encoders::Scaling,
    pub(super) feed: Feed,
    /// Whether to encode windows inside the clips.
    pub(super) moments: bool,
    /// Whether each frame passes a frame stage and its features are stored.
    pub(super) features: bool,
}

impl Tap {
    /// The tap of a space in the first pass. The decoder samples by rate. Other samplers need every frame.
    pub(super) fn of(space: &reprise_encoders::Space) -> Tap {
        let feed = match space.sampler {
            Sampler::PerSecond { .. } => Feed::Sampled,
            _ => Feed::Every,
        };
        let (moments, features) = (space.temporal, space.frame_stage.is_some());
        Tap { sampler: space.sampler, scaling: space.scaling, feed, moments, features }
    }

    fn output(&self) -> Output {
        let per_second = match (self.feed, self.sampler) {
            (Feed::Sampled, Sampler::PerSecond { rate, .. }) => Some(rate),
            _ => None,
        };
        Output { scaling: self.scaling, per_second }
    }
}

/// How to cut a video.
#[derive(Clone)]
pub(super) struct Cutting {
    pub(super) segmentation: Segmentation,
    /// Time ranges of speech.
    pub(super) cues: Vec<ClipRange>,
    /// Target of the found clips.
    pub(super) target: Target,
}

/// The work of a pass.
pub(super) struct Pass {
    /// How to cut the video. `None`: don't cut it.
    pub(super) segment: Option<Cutting>,
    /// Consumers of sampled frames.
    pub(super) taps: Vec<Tap>,
    /// The pictures for people to make. None without cutting.
    pub(super) pictures: Wanted,
}

/// Output of a pass, in order of time within each tap.
pub(super) enum Step {
    /// Sampled frames of a tap, at least one.
    Frames { tap: usize, frames: Vec<Frame> },
    /// Clips with final bounds. Their frames may follow later, and frames of later clips may come first.
    Clips(Vec<ClipRange>),
}

/// Result of a pass.
pub(super) struct PassOutcome {
    pub(super) summary: Summary,
    /// A few small frames for the check of seeking. None if the video was not cut.
    pub(super) references: References,
    /// The scores of all frames as stored ([`Curve`]). Empty if the video was not cut.
    pub(super) curve: Vec<u8>,
    /// The pictures that were asked for.
    pub(super) pictures: Pictures,
}

/// Decodes all of `media` and sends frames and clips. Blocks on ffmpeg and on a full channel.
pub(super) fn run(
    media: &Media,
    pass: &Pass,
    progress: &JobProgress,
    steps: &mpsc::Sender<Step>,
) -> Result<PassOutcome, IngestError> {
    let wanted = pass.segment.as_ref().map_or(Wanted::default(), |_| pass.pictures);
    let mut pictures = PictureMaker::new(wanted, &media.probe);
    let request = Request {
        detect_width: pass.segment.as_ref().map(|_| sprites::FRAME_WIDTH),
        // The output behind those of the taps is that of the pictures.
        outputs: pass.taps.iter().map(Tap::output).chain(pictures.output()).collect(),
    };
    let mut decoder = video::decode(&media.path, &media.probe, request, &media.limits)?;
    let mut cutter = pass.segment.as_ref().map(|cutting| Cutter::new(cutting, &media.probe));
    let mut waiting: Vec<Vec<Frame>> = vec![Vec::new(); pass.taps.len()];
    progress.stage("decode");
    for event in &mut decoder {
        if let Some(why) = progress.stopped() {
            return Err(IngestError::Stopped(why));
        }
        match event? {
            Event::Detect(frame) => {
                progress.frame(frame.time_ms);
                pictures.detect(&frame);
                let clips = cutter.as_mut().map_or(Vec::new(), |cutter| cutter.push(&frame));
                pictures.clips(&clips);
                send_clips(clips, steps)?;
            }
            Event::Sampled { output, frame } if output == pass.taps.len() => pictures.sampled(frame),
            Event::Sampled { output, frame } => {
                progress.reached(frame.time_ms);
                let bytes = frame.rgb.len() * (waiting[output].len() + 1);
                waiting[output].push(frame);
                if waiting[output].len() >= FRAMES_PER_STEP || bytes >= BYTES_PER_STEP {
                    send_frames(output, std::mem::take(&mut waiting[output]), steps)?;
                }
            }
        }
    }
    let summary = decoder.summary();
    for (tap, frames) in waiting.into_iter().enumerate() {
        send_frames(tap, frames, steps)?;
    }
    let Some(cutter) = cutter else {
        return Ok(PassOutcome {
            summary,
            references: References::default(),
            curve: Vec::new(),
            pictures: Pictures::default(),
        });
    };
    let (clips, references, curve) = cutter.finish(summary.duration_ms);
    drop(decoder);
    pictures.clips(&clips);
    send_clips(clips, steps)?;
    let pictures = pictures.finish(summary.duration_ms);
    Ok(PassOutcome { summary, references, curve, pictures })
}

fn send_frames(tap: usize, frames: Vec<Frame>, steps: &mpsc::Sender<Step>) -> Result<(), IngestError> {
    if frames.is_empty() { Ok(()) } else { send(Step::Frames { tap, frames }, steps) }
}

fn send_clips(clips: Vec<ClipRange>, steps: &mpsc::Sender<Step>) -> Result<(), IngestError> {
    if clips.is_empty() { Ok(()) } else { send(Step::Clips(clips), steps) }
}

/// The receiver is closed when encoding failed. The caller reports that error instead.
fn send(step: Step, steps: &mpsc::Sender<Step>) -> Result<(), IngestError> {
    steps.blocking_send(step).map_err(|_| IngestError::Stopped(Stop::Lost))
}

/// Decodes the frames of one span. Blocks.
pub(super) fn frames_of(
    media: &Media,
    range: ClipRange,
    tap: &Tap,
    seek_is_safe: bool,
) -> Result<Vec<Frame>, VideoError> {
    let span = range.start_ms..range.end_ms;
    video::frames_of_span(
        video::VideoFile {
            path: &media.path,
            probe: &media.probe,
            in_order: !seek_is_safe,
            limits: &media.limits,
        },
        span,
        &tap.sampler,
        tap.scaling,
    )
}

/// Cuts the video. Collects the scores of all frames and the reference frames.
struct Cutter {
    meter: Meter,
    segmenter: Segmenter,
    curve: CurveWriter,
    references: References,
}

impl Cutter {
    fn new(cutting: &Cutting, probe: &Probe) -> Cutter {
        let looks = if probe.duration_ms < SHORT_MS { 1 } else { LOOK_AT.len() };
        let moments = LOOK_AT[..looks].iter().map(|part| probe.duration_ms / 20 * part).collect();
        Cutter {
            meter: Meter::new(cutting.segmentation.needs_edges()),
            segmenter: Segmenter::with_cues(cutting.segmentation, &cutting.cues),
            curve: CurveWriter::new(cutting.segmentation.needs_edges()),
            references: References::near(moments),
        }
    }

    fn push(&mut self, frame: &Frame) -> Vec<ClipRange> {
        let scores = self.meter.measure(frame);
        self.curve.push(&scores);
        let clips = self.segmenter.push(&scores);
        self.references.push(frame);
        clips
    }

    fn finish(mut self, duration_ms: i64) -> (Vec<ClipRange>, References, Vec<u8>) {
        (self.segmenter.finish(duration_ms), self.references, self.curve.finish(duration_ms))
    }
}
