//! One decode pass for several consumers: small frames for the shot detector, and sampled frames for each encoder.
//! ffmpeg scales them all, and each has its presentation time.
//!
//! [`crate::sample::Sampler::PerSecond`] defines which frames are sampled.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use super::answer::{check_duration, check_gap};
use super::pass::{Branch, Pass, Picture, Plan, Scale, Which};
use super::running::Finished;
use super::{Limits, Probe, VideoError};
use crate::resize::Pixels;
use crate::sample::grid::{Matcher, Rate};
use crate::{Frame, FrameSize, Scaling};

/// One consumer of sampled frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    /// How its frames are scaled.
    pub scaling: Scaling,
    /// `Some(rate)`: the frame on screen at each interval middle (i + 0.5) / rate. `None`: every frame.
    pub per_second: Option<f64>,
}

/// The outputs of one decode pass.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Width of the frames for the shot detector; the height follows the aspect ratio. Narrower videos, and videos of
    /// at most 640x480 pixels, keep their size. `None`: no such frames.
    pub detect_width: Option<u32>,
    /// Consumers of sampled frames; equal ones share one branch of the decode.
    pub outputs: Vec<Output>,
}

/// The decoder's output, in order of time within each kind.
#[derive(Debug, Clone)]
pub enum Event {
    /// A small frame for the shot detector; one for every frame of the video.
    Detect(Frame),
    /// A frame for `Request::outputs[output]`.
    Sampled {
        /// The consumer's index.
        output: usize,
        /// The frame.
        frame: Frame,
    },
}

/// Facts known after the whole video is decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of decoded frames.
    pub frames: u64,
    /// End of the last frame, in milliseconds since the first.
    pub duration_ms: i64,
    /// The first frame's time on the container's clock, in milliseconds.
    pub media_offset_ms: i64,
    /// Faults of the file that did not stop the decode, in plain words.
    pub warnings: Vec<String>,
}

/// A running decode: an iterator of events. Dropping it kills ffmpeg.
///
/// Every output gets at least one frame if the video has one. An error is the last event.
pub struct Decoder {
    path: PathBuf,
    probe: Probe,
    limits: Limits,
    branches: Vec<Branch>,
    consumers: Vec<Consumer>,
    pass: Option<Pass>,
    restarts: u32,
    seen: FrameTimes,
    ready: VecDeque<Result<Event, VideoError>>,
    warnings: Vec<String>,
}

/// The consumer of a branch's pictures. The first branch yields every frame and so defines the times.
struct Consumer {
    detect: bool,
    outputs: Vec<usize>,
    matcher: Option<Matcher<Picture>>,
    last_ms: i64,
}

/// The branches of a pass, and the consumer of each.
struct Planned {
    branches: Vec<Branch>,
    consumers: Vec<Consumer>,
}

/// Statistics of the frame times so far.
#[derive(Default)]
struct FrameTimes {
    frames: u64,
    last: Option<i64>,
    backwards: u64,
    /// The number of occurrences of each spacing, in ticks.
    spacings: BTreeMap<i64, u64>,
}

/// Pictures up to this size reach the detector whole, which scales them as PySceneDetect does. Larger ones are
/// subsampled by ffmpeg: converting them whole costs as much as decoding.
const WHOLE_PIXELS: u64 = 640 * 480;
/// Largest memory of sampled pictures that wait for the frame that decides about them, in bytes. ffmpeg sends the streams
/// in order of time, so few do.
const MOST_WAITING: usize = 512 << 20;
/// The most distinct spacings counted; a video with more has no typical spacing.
const MAX_SPACINGS: usize = 10_000;
/// The most restarts after a wrong estimate of the first frame.
const MAX_RESTARTS: u32 = 2;

/// Starts decoding the whole file.
///
/// # Errors
/// [`VideoError::Ffmpeg`] if ffmpeg cannot be started. Faults of the file come as an event.
pub fn decode(path: &Path, probe: &Probe, request: Request, limits: &Limits) -> Result<Decoder, VideoError> {
    Decoder::open(path, probe, plan(probe, &request), limits)
}

/// Starts decoding the luma of the whole file in this size, `per_second` pictures a second. They come as
/// [`Event::Sampled`] of output 0, with one byte a pixel.
pub(super) fn decode_luma(
    path: &Path,
    probe: &Probe,
    size: Pixels,
    per_second: f64,
    limits: &Limits,
) -> Result<Decoder, VideoError> {
    let times = Branch { which: Which::Every, scale: Scale::Nothing };
    let grid = Which::Grid(Rate::new(per_second));
    let consumer = Consumer { outputs: vec![0], ..Consumer::new(&grid) };
    let luma = Branch { which: grid, scale: Scale::Luma(size.width, size.height) };
    let planned =
        Planned { branches: vec![times, luma], consumers: vec![Consumer::new(&Which::Every), consumer] };
    Decoder::open(path, probe, planned, limits)
}

/// Whether the frames for the shot detector have the size that is stored in the file.
pub(super) fn detects_whole(probe: &Probe) -> bool {
    probe.pixels() <= WHOLE_PIXELS
}

/// The branches of the pass and their consumers; equal outputs share a branch.
fn plan(probe: &Probe, request: &Request) -> Planned {
    let mut plan: Vec<(Branch, Consumer)> = Vec::new();
    if let Some(width) = request.detect_width {
        let branch = Branch { which: Which::Every, scale: for_detector(probe, width) };
        plan.push((branch, Consumer { detect: true, ..Consumer::new(&Which::Every) }));
    }
    for (output, wanted) in request.outputs.iter().enumerate() {
        let which = wanted.per_second.map_or(Which::Every, |rate| Which::Grid(Rate::new(rate)));
        let branch = Branch { which, scale: fine(wanted.scaling, probe) };
        match plan.iter_mut().find(|(other, _)| *other == branch) {
            Some((_, consumer)) => consumer.outputs.push(output),
            None => {
                let consumer = Consumer { outputs: vec![output], ..Consumer::new(&branch.which) };
                plan.push((branch, consumer));
            }
        }
    }
    match plan.iter().position(|(branch, _)| branch.which == Which::Every) {
        Some(times) => plan.swap(0, times),
        None => plan
            .insert(0, (Branch { which: Which::Every, scale: Scale::Nothing }, Consumer::new(&Which::Every))),
    }
    let (branches, consumers) = plan.into_iter().unzip();
    Planned { branches, consumers }
}

/// For sizes in which ffmpeg's scaler mixes chroma differently, ffmpeg makes RGB.
fn for_detector(probe: &Probe, width: u32) -> Scale {
    let is_even = |side: u32| side.is_multiple_of(2);
    if detects_whole(probe) {
        Scale::Whole(probe.matrix.filter(|_| is_even(probe.width) && is_even(probe.height)))
    } else {
        Scale::Detect(width.max(2), probe.matrix.filter(|_| is_even(width) && probe.width >= width))
    }
}

/// Converts a scaling to the pixel size of this video.
pub(super) fn fine(scaling: Scaling, probe: &Probe) -> Scale {
    let (width, height) = pixels(scaling.size, probe.width, probe.height);
    Scale::Fine(width, height, scaling.resampling)
}

/// Converts a frame size to the pixel size for pictures that are shown with this width and height.
pub(super) fn pixels(size: FrameSize, width: u32, height: u32) -> (u32, u32) {
    match size {
        FrameSize::Exact { width, height } => (width.max(1), height.max(1)),
        FrameSize::Area(rule) => {
            let to = rule.decoded(Pixels { width, height });
            (to.width, to.height)
        }
        FrameSize::ShortEdge(short) => {
            let (width, height, short) =
                (u64::from(width.max(1)), u64::from(height.max(1)), u64::from(short.max(1)));
            let long = (short * width.max(height) / width.min(height)).min(1 << 14) as u32;
            if width <= height { (short as u32, long) } else { (long, short as u32) }
        }
    }
}

impl Consumer {
    fn new(which: &Which) -> Consumer {
        let matcher = if let Which::Grid(rate) = which { Some(Matcher::new(*rate)) } else { None };
        Consumer { detect: false, outputs: Vec::new(), matcher, last_ms: i64::MIN }
    }
}

impl Iterator for Decoder {
    type Item = Result<Event, VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.pass.as_mut()?.next_picture() {
                Some(picture) => {
                    if let Err(error) = self.take(picture) {
                        self.pass = None;
                        self.ready.push_back(Err(error));
                    }
                }
                None => self.end(),
            }
        }
    }
}

impl Decoder {
    fn open(path: &Path, probe: &Probe, planned: Planned, limits: &Limits) -> Result<Decoder, VideoError> {
        let Planned { branches, consumers } = planned;
        let mut decoder = Decoder {
            path: path.to_owned(),
            probe: probe.clone(),
            limits: *limits,
            branches,
            consumers,
            pass: None,
            restarts: 0,
            seen: FrameTimes::default(),
            ready: VecDeque::new(),
            warnings: Vec::new(),
        };
        decoder.pass = Some(decoder.start()?);
        Ok(decoder)
    }

    /// The facts of the decode; complete after the iterator has ended.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let clock = self.probe.clock;
        let spacing = self
            .seen
            .typical_spacing()
            .unwrap_or_else(|| clock.ticks(1) as f64 / self.probe.frame_rate.max(0.01))
            as i64;
        Summary {
            frames: self.seen.frames,
            duration_ms: self
                .seen
                .last
                .map_or(0, |last| clock.ms(last.saturating_add(spacing)).max(clock.ms(last) + 1)),
            media_offset_ms: clock.container_ms(clock.origin),
            warnings: self.warnings.clone(),
        }
    }

    fn start(&self) -> Result<Pass, VideoError> {
        let (path, probe, branches) = (&self.path, &self.probe, &self.branches);
        Plan { path, probe, seek_ms: None, until_ms: None, branches }.start(&self.limits)
    }

    fn take(&mut self, picture: Picture) -> Result<(), VideoError> {
        if picture.branch == 0 {
            if self.seen.frames == 0 && picture.at != self.probe.clock.origin && self.restarts < MAX_RESTARTS
            {
                self.restart(picture.at);
                return Ok(());
            }
            let ms = self.probe.clock.ms(picture.at);
            self.check_time(ms)?;
            self.seen.frame(picture.at);
            for matcher in self.consumers.iter_mut().filter_map(|c| c.matcher.as_mut()) {
                matcher.frame(ms);
            }
        }
        match self.branches.get(picture.branch).map(|branch| &branch.which) {
            Some(Which::Grid(rate)) => self.check_time(rate.middle_ms(picture.at))?,
            Some(_) => {}
            None => return Ok(()),
        }
        let consumer = &mut self.consumers[picture.branch];
        match &mut consumer.matcher {
            Some(matcher) => matcher.picture(picture.at, picture),
            None => {
                let ms = self.probe.clock.ms(picture.at);
                consumer.yield_frame(ms, picture, &mut self.ready);
            }
        }
        self.drain();
        self.check_waiting()
    }

    /// Refuses a time that lies implausibly far from the last frame, or beyond the longest video. A picture that ffmpeg
    /// repeats through a gap comes before the frame that ends the gap.
    fn check_time(&self, ms: i64) -> Result<(), VideoError> {
        check_duration(ms, &self.limits)?;
        self.seen.last.map_or(Ok(()), |last| check_gap(self.probe.clock.ms(last), ms))
    }

    fn check_waiting(&self) -> Result<(), VideoError> {
        let matchers = self.consumers.iter().filter_map(|consumer| consumer.matcher.as_ref());
        if matchers.map(Matcher::waiting_bytes).sum::<usize>() <= MOST_WAITING {
            return Ok(());
        }
        let most = MOST_WAITING >> 20;
        Err(VideoError::OverLimit(format!("more than {most} MiB of its pictures came before their frames")))
    }

    /// Starts the pass again with `first` as origin. ffmpeg counts its samples from the first frame, and the probe gave
    /// another one.
    fn restart(&mut self, first: i64) {
        self.restarts += 1;
        self.probe.clock.origin = first;
        self.pass = None;
        self.consumers =
            self.branches.iter().zip(&self.consumers).map(|(branch, old)| old.anew(branch)).collect();
        match self.start() {
            Ok(pass) => self.pass = Some(pass),
            Err(error) => self.ready.push_back(Err(error)),
        }
    }

    fn drain(&mut self) {
        for consumer in &mut self.consumers {
            while let Some((ms, picture)) = consumer.matcher.as_mut().and_then(Matcher::next) {
                consumer.yield_frame(ms, picture, &mut self.ready);
            }
        }
    }

    fn end(&mut self) {
        let Some(pass) = self.pass.take() else { return };
        let finished = pass.finish();
        for matcher in self.consumers.iter_mut().filter_map(|c| c.matcher.as_mut()) {
            matcher.end();
        }
        self.drain();
        if let Some(error) = finished.over_limit(&self.limits) {
            self.ready.push_back(Err(error));
        } else if self.seen.frames == 0 {
            self.ready.push_back(Err(VideoError::NotVideo(why_no_picture(&finished))));
        } else {
            self.warnings = self.warn(&finished);
            self.fetch_unmet();
        }
    }

    fn warn(&self, finished: &Finished) -> Vec<String> {
        let mut warnings = Vec::new();
        let summary = self.summary();
        if let Some(first) = finished.log.errors.first() {
            let missing = self.probe.duration_ms - summary.duration_ms;
            let short = if missing > 100.max(self.probe.duration_ms / 100) {
                let (found, promised) =
                    (summary.duration_ms as f64 / 1000.0, self.probe.duration_ms as f64 / 1000.0);
                format!("; {found:.1} s of the {promised:.1} s that it announces could be decoded")
            } else {
                String::new()
            };
            let count = finished.log.count;
            warnings.push(format!(
                "the file is damaged or cut off: {count} errors while decoding, the first: {first}{short}"
            ));
        } else if !finished.status.is_some_and(|s| s.success()) {
            warnings.push("decoding ended early without a reason".into());
        }
        if self.seen.backwards > 0 {
            warnings.push(format!("{} frames whose times run backwards were left out", self.seen.backwards));
        }
        warnings
    }

    /// If ffmpeg ended before the interval middle of the last sample, this decodes that frame separately.
    fn fetch_unmet(&mut self) {
        let Some(last) = self.seen.last else { return };
        for index in 0..self.consumers.len() {
            let Some(time_ms) = self.consumers[index].matcher.as_ref().and_then(Matcher::unmet) else {
                continue;
            };
            let branches = [Branch { which: Which::These(vec![last]), scale: self.branches[index].scale }];
            let (path, probe) = (&self.path, &self.probe);
            let plan = Plan { path, probe, seek_ms: None, until_ms: None, branches: &branches };
            match plan.start(&self.limits).map(|mut pass| pass.next_picture()) {
                Ok(Some(picture)) => self.consumers[index].yield_frame(time_ms, picture, &mut self.ready),
                Ok(None) => {}
                Err(error) => self.ready.push_back(Err(error)),
            }
        }
    }
}

impl Consumer {
    fn anew(&self, branch: &Branch) -> Consumer {
        Consumer { detect: self.detect, outputs: self.outputs.clone(), ..Consumer::new(&branch.which) }
    }

    fn yield_frame(
        &mut self,
        time_ms: i64,
        picture: Picture,
        ready: &mut VecDeque<Result<Event, VideoError>>,
    ) {
        if time_ms < self.last_ms {
            return;
        }
        self.last_ms = time_ms;
        let frame = Frame { time_ms, width: picture.width, height: picture.height, rgb: picture.rgb };
        if self.detect {
            ready.push_back(Ok(Event::Detect(frame.clone())));
        }
        for &output in &self.outputs {
            ready.push_back(Ok(Event::Sampled { output, frame: frame.clone() }));
        }
    }
}

impl FrameTimes {
    fn frame(&mut self, pts: i64) {
        self.frames += 1;
        let Some(last) = self.last else {
            self.last = Some(pts);
            return;
        };
        if pts < last {
            self.backwards += 1;
            return;
        }
        let spacing = pts - last;
        if self.spacings.len() < MAX_SPACINGS || self.spacings.contains_key(&spacing) {
            *self.spacings.entry(spacing).or_default() += 1;
        }
        self.last = Some(pts);
    }

    /// The median spacing.
    fn typical_spacing(&self) -> Option<f64> {
        let half = self.spacings.values().sum::<u64>().div_ceil(2);
        let mut so_far = 0;
        self.spacings.iter().find_map(|(spacing, count)| {
            so_far += count;
            (so_far >= half).then_some(*spacing as f64)
        })
    }
}

fn why_no_picture(finished: &Finished) -> String {
    match finished.log.errors.first() {
        Some(first) => format!("no picture in it could be decoded: {first}"),
        None => "it holds no picture".into(),
    }
}
