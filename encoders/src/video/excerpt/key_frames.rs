//! Finds the key frames around a span.

use std::io::{BufRead, BufReader};
use std::ops::Range;

use super::super::clock::Clock;
use super::super::run::Run;
use super::super::running::Running;
use super::super::{VideoError, VideoFile};

/// How far after a span the next key frame is looked for, in seconds. Then the rest of the file is read.
const KEY_WITHIN: f64 = 30.0;

/// A stretch of a video from a key frame to a key frame, or to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange {
    /// First millisecond, inclusive: that of a key frame.
    pub start_ms: i64,
    /// End, exclusive: that of a key frame, or of the video.
    pub end_ms: i64,
    /// Timestamp of the first key frame.
    pub(super) start_pts: i64,
    /// Packets of the video in it.
    pub(super) packets: u64,
}

/// The shortest stretch from key frame to key frame that holds the span. Blocks; reads packets, decodes nothing.
///
/// # Errors
/// [`VideoError::EmptySpan`] if the span lies outside the video; [`VideoError::NotVideo`] without a key frame.
pub fn key_range(file: VideoFile<'_>, span: &Range<i64>) -> Result<KeyRange, VideoError> {
    let probe = file.probe;
    if span.start < 0 || span.end <= span.start || span.start >= probe.duration_ms {
        let (start_ms, end_ms) = (span.start, span.end);
        return Err(VideoError::EmptySpan { start_ms, end_ms, duration_ms: probe.duration_ms });
    }
    let seek = probe.seek_for(span.start).filter(|_| !file.in_order);
    let until = probe.clock.container_seconds(span.end) + KEY_WITHIN;
    let from = seek.map(|ms| format!("{:.6}", probe.clock.container_seconds(ms))).unwrap_or_default();
    // Where no key frame follows soon, or the seek went too far, more is read.
    for interval in [format!("{from}%{until:.6}"), format!("{from}%"), "%".to_owned()] {
        let search = read(file, span, &interval)?;
        let is_final = interval == "%";
        if let Some(found) = search.range(probe.duration_ms, interval.ends_with('%'), is_final) {
            return Ok(found);
        }
    }
    Err(VideoError::NotVideo("it has no key frame".into()))
}

fn read(file: VideoFile<'_>, span: &Range<i64>, interval: &str) -> Result<Search, VideoError> {
    let VideoFile { path, probe, limits, .. } = file;
    let mut run = Run::ffprobe();
    run.option("-select_streams", probe.stream.to_string());
    run.args(["-show_entries", "packet=pts,flags", "-of", "csv=p=0", "-read_intervals", interval]);
    run.input(path, limits);
    let mut running = Running::start(run, limits)?;
    let mut search = Search::new(probe.clock, span.clone());
    if let Some(stdout) = running.take_stdout() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if search.take(&line) {
                return Ok(search);
            }
        }
    }
    match running.finish().over_limit(limits) {
        Some(error) => Err(error),
        None => Ok(search),
    }
}

/// The search for the last key frame at or before a span, and the first one at or after its end, in decoding order.
struct Search {
    clock: Clock,
    span: Range<i64>,
    start: Option<i64>,
    /// Whether `start` is not after the span's start.
    is_before: bool,
    packets: u64,
    end: Option<i64>,
}

impl Search {
    fn new(clock: Clock, span: Range<i64>) -> Search {
        Search { clock, span, start: None, is_before: false, packets: 0, end: None }
    }

    /// Takes a line `pts,flags`. True once both are found.
    fn take(&mut self, line: &str) -> bool {
        // ffprobe prints empty lines after packets with side data.
        if line.trim().is_empty() {
            return false;
        }
        let mut fields = line.split(',');
        let (pts, flags) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let Ok(pts) = pts.parse::<i64>() else {
            self.packets += u64::from(self.start.is_some());
            return false;
        };
        let (ms, is_key) = (self.clock.ms(pts), flags.starts_with('K'));
        if is_key && (ms <= self.span.start || self.start.is_none()) {
            self.start = Some(pts);
            self.is_before = ms <= self.span.start;
            self.packets = 0;
        } else if is_key && ms >= self.span.end {
            self.end = Some(pts);
            return true;
        }
        self.packets += u64::from(self.start.is_some());
        false
    }

    /// The range, if both ends are certain. `to_end`: the file was read to its end; `whole`: from its beginning too.
    fn range(&self, duration_ms: i64, to_end: bool, whole: bool) -> Option<KeyRange> {
        let start_pts = self.start.filter(|_| self.is_before || whole)?;
        let end_ms = match self.end {
            Some(end) => self.clock.ms(end),
            None if to_end => duration_ms,
            None => return None,
        };
        Some(KeyRange { start_ms: self.clock.ms(start_pts), end_ms, start_pts, packets: self.packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], span: Range<i64>, expected: Option<(i64, i64, u64)>) {
        let mut search = Search::new(Clock { num: 1, den: 1000, origin: 0 }, span);
        let _ = lines.iter().any(|line| search.take(line));
        let range = search.range(400, true, true);
        assert_eq!(range.map(|it| (it.start_ms, it.end_ms, it.packets)), expected);
    }

    #[test]
    fn a_range_goes_from_key_to_key() {
        let lines = ["0,K_", "80,__", "40,__", "120,K_", "200,__", "160,__", "240,K_", "320,__"];
        check(&lines, 50..130, Some((0, 240, 6)));
        check(&lines, 120..240, Some((120, 240, 3)));
        check(&lines, 120..241, Some((120, 400, 5)));
        check(&lines, 300..320, Some((240, 400, 2)));
        check(&["40,__"], 0..10, None);
        check(&["N/A,__", "100,K_,", "", "N/A,__"], 0..10, Some((100, 400, 2)));
    }
}
