//! The frames of one span of a video, for queries and uploads.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::answer::ascending;
use super::decode::fine;
use super::pass::{Branch, Picture, Plan, Scale, Which};
use super::run::Run;
use super::running::Running;
use super::{Limits, Probe, VideoError};
use crate::sample::Sampler;
use crate::{Frame, Scaling};

/// Largest number of timestamps in a select expression. A longer one costs more than scaling the other frames.
const MAX_SELECTED: usize = 256;
/// Packets are read this far past the span, because frames come in decoding order.
const REORDER_MS: i64 = 3000;

/// A probed video file, and how to read it.
#[derive(Debug, Clone, Copy)]
pub struct VideoFile<'a> {
    /// The file's path.
    pub path: &'a Path,
    /// The file's probe.
    pub probe: &'a Probe,
    /// Decodes from the beginning instead of seeking, for files in which seeking yields wrong pictures.
    pub in_order: bool,
    /// The limits of ffmpeg.
    pub limits: &'a Limits,
}

/// The frames of one span that `sampler` picks, scaled by `scaling`. Blocks.
///
/// A span in which no frame begins (a slide that stays) gives the frame on screen at its start. Memory is bounded by the
/// picked frames.
///
/// # Errors
/// [`VideoError::EmptySpan`] if the span is inverted or lies outside the video.
pub fn frames_of_span(
    file: VideoFile<'_>,
    span: Range<i64>,
    sampler: &Sampler,
    scaling: Scaling,
) -> Result<Vec<Frame>, VideoError> {
    let pick = |times_ms: &[i64], start_ms: i64| sampler.pick(times_ms, start_ms);
    picked_frames_of_span(file, span, &pick, scaling)
}

/// Picks frames of a span. Takes the times of its frames (ascending, in milliseconds, never empty) and the span's
/// start; returns indices into the times. An index may repeat.
pub type Pick<'a> = &'a (dyn Fn(&[i64], i64) -> Vec<usize> + Sync);

/// As [`frames_of_span`], with any rule instead of a sampler.
///
/// # Errors
/// As [`frames_of_span`], also if the rule picks no frame.
pub fn picked_frames_of_span(
    file: VideoFile<'_>,
    span: Range<i64>,
    pick: Pick<'_>,
    scaling: Scaling,
) -> Result<Vec<Frame>, VideoError> {
    let VideoFile { path, probe, in_order, limits } = file;
    let empty =
        || VideoError::EmptySpan { start_ms: span.start, end_ms: span.end, duration_ms: probe.duration_ms };
    if span.start < 0 || span.end <= span.start {
        return Err(empty());
    }
    let reader = Reader { path, probe, span: span.clone(), pick, scaling, limits };
    let seek = probe.seek_for(span.start).filter(|_| !in_order);
    let guess = reader.pick(&reader.packet_times(seek)?);
    let mut found = reader.read(seek, &guess)?;
    let seek = if found.overshot { None } else { seek };
    let wanted = reader.pick(&found.times);
    if found.overshot || !wanted.iter().all(|pts| found.frames.contains_key(pts)) {
        // The packets' times differ from the frames' times, which are now known.
        let wanted = if found.overshot { reader.pick(&reader.read(None, &[])?.times) } else { wanted };
        found = reader.read(seek, &wanted)?;
    }
    let wanted = reader.pick(&found.times);
    let frames: Vec<Frame> = wanted.iter().filter_map(|pts| found.frames.get(pts).cloned()).collect();
    if frames.is_empty() || !reader.reaches(&found.times)? { Err(empty()) } else { Ok(frames) }
}

struct Reader<'a> {
    path: &'a Path,
    probe: &'a Probe,
    span: Range<i64>,
    pick: Pick<'a>,
    scaling: Scaling,
    limits: &'a Limits,
}

/// The result of one pass over the span.
struct Found {
    /// Timestamps of all decoded frames, ascending.
    times: Vec<i64>,
    /// Scaled frames by timestamp.
    frames: BTreeMap<i64, Frame>,
    /// Whether the first decoded frame lies after the start of the span: the seek went too far.
    overshot: bool,
}

impl Reader<'_> {
    /// Picks from `times`, which may reach beyond the span. If no frame begins in the span, picks the frame on screen
    /// at its start.
    fn pick(&self, times: &[i64]) -> Vec<i64> {
        let clock = self.probe.clock;
        let inside: Vec<i64> =
            times.iter().copied().filter(|&pts| self.span.contains(&clock.ms(pts))).collect();
        if inside.is_empty() {
            return times
                .iter()
                .copied()
                .filter(|&pts| clock.ms(pts) < self.span.start)
                .max()
                .into_iter()
                .collect();
        }
        let inside_ms: Vec<i64> = inside.iter().map(|&pts| clock.ms(pts)).collect();
        (self.pick)(&inside_ms, self.span.start).into_iter().filter_map(|i| inside.get(i).copied()).collect()
    }

    /// Times of the packets around the span, ascending, without decoding: nearly always the frames' times.
    fn packet_times(&self, seek_ms: Option<i64>) -> Result<Vec<i64>, VideoError> {
        let clock = self.probe.clock;
        let until = self.span.end.saturating_add(REORDER_MS).min(self.probe.duration_ms.max(0) + REORDER_MS);
        let times = self.packets(|| {
            let from = seek_ms.map(|ms| format!("{:.6}", clock.container_seconds(ms))).unwrap_or_default();
            format!("{from}%{:.6}", clock.container_seconds(until))
        })?;
        // Frames before the seek point are decoded too; frames after the span are useless.
        Ok(times.iter().copied().filter(|&pts| clock.ms(pts) < self.span.end).collect())
    }

    /// Decodes the span once: the times of all frames, and the pictures of the `wanted` ones.
    fn read(&self, seek_ms: Option<i64>, wanted: &[i64]) -> Result<Found, VideoError> {
        let mut selected = wanted.to_vec();
        selected.sort_unstable();
        selected.dedup();
        let first_ms = selected.first().map(|&pts| self.probe.clock.ms(pts));
        let which = match first_ms {
            Some(first) if selected.len() > MAX_SELECTED => Which::From(first),
            _ => Which::These(selected.clone()),
        };
        let branches = [
            Branch { which: Which::Every, scale: Scale::Nothing },
            Branch { which, scale: fine(self.scaling, self.probe) },
        ];
        let clock = self.probe.clock;
        let plan = Plan {
            path: self.path,
            probe: self.probe,
            seek_ms,
            until_ms: Some(self.span.end),
            branches: &branches,
        };
        let mut pass = plan.start(self.limits)?;
        let mut found = Found { times: Vec::new(), frames: BTreeMap::new(), overshot: false };
        while let Some(picture) = pass.next_picture() {
            if picture.branch == 0 {
                found.times.push(picture.at);
            } else if selected.binary_search(&picture.at).is_ok() {
                let Picture { at, width, height, rgb, .. } = picture;
                let frame = Frame { time_ms: clock.ms(at), width, height, rgb };
                found.frames.entry(picture.at).or_insert(frame);
            }
        }
        if let Some(error) = pass.finish().over_limit(self.limits) {
            return Err(error);
        }
        found.overshot =
            seek_ms.is_some() && found.times.first().is_none_or(|&pts| clock.ms(pts) > self.span.start);
        found.times.sort_unstable();
        found.times.dedup();
        Ok(found)
    }

    /// Whether the start of the span lies before the end of the last frame. Matters only if no frame begins in the
    /// span.
    fn reaches(&self, times: &[i64]) -> Result<bool, VideoError> {
        let Some(last) = times.last().map(|&pts| self.probe.clock.ms(pts)) else { return Ok(false) };
        let spacing_ms = 1000.0 / self.probe.frame_rate.max(0.01);
        if (self.span.start as f64) < last as f64 + spacing_ms {
            return Ok(true);
        }
        let from = self.probe.clock.container_seconds(self.span.end);
        let later = self.packets(|| format!("{from:.6}%+#200"))?;
        Ok(later.iter().any(|&pts| self.probe.clock.ms(pts) >= self.span.end))
    }

    /// The times of all packets if the probe knows them, else of those in an interval of ffprobe's syntax.
    fn packets(&self, interval: impl FnOnce() -> String) -> Result<Arc<[i64]>, VideoError> {
        match &self.probe.packet_times {
            Some(all) => Ok(Arc::clone(all)),
            None => Ok(packets(self.path, self.probe, &interval(), self.limits)?.into()),
        }
    }
}

/// The number of frames by the file's packets, without decoding: nearly always the number of decoded frames. Blocks.
///
/// # Errors
/// As [`super::probe()`].
pub fn count_frames(path: &Path, probe: &Probe, limits: &Limits) -> Result<usize, VideoError> {
    match &probe.packet_times {
        Some(all) => Ok(all.len()),
        None => Ok(packets(path, probe, "%", limits)?.len()),
    }
}

/// Presentation times of the packets in an interval of ffprobe's syntax, ascending, without packets that an edit list
/// discards.
fn packets(path: &Path, probe: &Probe, interval: &str, limits: &Limits) -> Result<Vec<i64>, VideoError> {
    let mut run = Run::ffprobe();
    run.args(["-select_streams", &probe.stream.to_string(), "-show_entries", "packet=pts,flags"]);
    run.args(["-read_intervals", interval, "-of", "csv=p=0"]);
    run.input(path, limits);
    let mut running = Running::start(run, limits)?;
    let mut times = Vec::new();
    if let Some(stdout) = running.take_stdout() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let mut fields = line.split(',');
            let pts = fields.next().and_then(|pts| pts.parse::<i64>().ok());
            let discarded = fields.next().is_some_and(|flags| flags.contains('D'));
            times.extend(pts.filter(|_| !discarded));
        }
    }
    match running.finish().over_limit(limits) {
        Some(error) => Err(error),
        None => Ok(ascending(times.into_iter())),
    }
}
