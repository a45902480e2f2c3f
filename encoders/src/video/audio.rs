//! The sound of a file as 16 kHz mono samples, decoded by ffmpeg as it is read.
//!
//! Places in the sound are counted in samples since zero of the container's clock, as subtitles are. Gaps between packets
//! become silence, so a sample's place is its time. Sound whose time goes back is left out.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::nut::{Demuxer, Packet};
use super::run::Run;
use super::running::{Output, Running};
use super::{Limits, VideoError};
use crate::transcriber::{SAMPLE_RATE, SAMPLES_PER_MS};

/// Largest answer of ffprobe that is read; far more than it needs.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Seeks aim this far before the first sample: decoders need a packet before it, and streams without an index are
/// searched from where the seek landed.
const SEEK_MARGIN_MS: i64 = 12_000;
/// Bytes of a sample in the pipe.
const SAMPLE_BYTES: usize = 4;
/// Far more than a packet of any codec has.
const MAX_PACKET_BYTES: u64 = 64 << 20;
/// Samples that are added to all times, so that none is negative in the pipe: 100 s.
const BIAS: i64 = 100 * SAMPLE_RATE as i64;
/// Packets at most this far out of place are joined without a gap: 30 ms.
const JITTER: i64 = 30 * SAMPLES_PER_MS;

/// The audio stream of a file that players choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AudioStream {
    /// Its index among all streams of the file.
    pub index: u32,
    /// Codec name as ffprobe prints it, e.g. `aac`.
    pub codec: String,
    /// The container's language code, usually of three letters.
    pub language: Option<String>,
    /// Channels; they are mixed to one.
    pub channels: u32,
    /// Samples per second in the file.
    pub sample_rate: u32,
    /// Start on the container's clock, in milliseconds, rounded down.
    pub start_ms: i64,
    /// Length in milliseconds by the container; an estimate, and not always known.
    pub duration_ms: Option<i64>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize, Default)]
struct Format {
    start_time: Option<String>,
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Stream {
    index: u32,
    #[serde(default)]
    codec_name: String,
    #[serde(default)]
    channels: u32,
    sample_rate: Option<String>,
    start_time: Option<String>,
    duration: Option<String>,
    #[serde(default)]
    disposition: Disposition,
    #[serde(default)]
    tags: Tags,
}

#[derive(Deserialize, Default)]
struct Disposition {
    #[serde(default)]
    default: u8,
}

#[derive(Deserialize, Default)]
struct Tags {
    #[serde(alias = "LANGUAGE")]
    language: Option<String>,
}

const ENTRIES: &str = "format=start_time,duration:\
stream=index,codec_name,channels,sample_rate,start_time,duration:stream_disposition=default:stream_tags=language";

/// The default audio stream of the file, else its first; `None` if it has none. Blocks.
///
/// # Errors
/// [`VideoError::NotAudio`] for a file that is no media, [`VideoError::OverLimit`], [`VideoError::Ffmpeg`].
pub fn audio_stream(path: &Path, limits: &Limits) -> Result<Option<AudioStream>, VideoError> {
    let is_file = std::fs::metadata(path).map(|facts| facts.is_file());
    match is_file {
        Ok(true) => {}
        Ok(false) => return Err(VideoError::NotAudio("it is not a regular file".into())),
        Err(error) => return Err(VideoError::NotAudio(format!("the file can't be opened: {error}"))),
    }
    let mut run = Run::ffprobe();
    run.args(["-select_streams", "a", "-show_entries", ENTRIES, "-of", "json"]);
    run.input(path, limits);
    let (bytes, finished) = Running::start(run, limits)?.output(MAX_ANSWER_BYTES);
    if let Some(error) = finished.over_limit(limits) {
        return Err(error);
    }
    if !finished.status.is_some_and(|status| status.success()) {
        let why = finished.log.errors.first().map_or("ffprobe gave no reason", String::as_str);
        return Err(VideoError::NotAudio(format!("the file can't be read: {why}")));
    }
    let answer: Answer = serde_json::from_slice(&bytes)
        .map_err(|_| VideoError::NotAudio("its content is in no known media format".into()))?;
    Ok(answer.chosen())
}

impl Answer {
    fn chosen(&self) -> Option<AudioStream> {
        let streams = &self.streams;
        let stream = streams.iter().find(|it| it.disposition.default == 1).or_else(|| streams.first())?;
        let start =
            [&stream.start_time, &self.format.start_time].into_iter().find_map(|it| millis(it.as_deref()));
        let duration =
            [&stream.duration, &self.format.duration].into_iter().find_map(|it| millis(it.as_deref()));
        Some(AudioStream {
            index: stream.index,
            codec: stream.codec_name.clone(),
            language: stream.tags.language.clone(),
            channels: stream.channels,
            sample_rate: stream.sample_rate.as_deref().and_then(|rate| rate.parse().ok()).unwrap_or(0),
            start_ms: start.unwrap_or(0),
            duration_ms: duration.filter(|ms| *ms > 0),
        })
    }
}

/// Seconds as ffprobe prints them, in milliseconds rounded down; `None` for other text and times beyond a century.
fn millis(seconds: Option<&str>) -> Option<i64> {
    let ms = (seconds?.parse::<f64>().ok()? * 1000.0 + 1e-6).floor();
    (ms.abs() < 3.2e12).then_some(ms as i64)
}

/// The sound of a file from some place on. Dropping it ends ffmpeg.
pub struct AudioReader {
    running: Running,
    demuxer: Option<Demuxer<BufReader<Output>>>,
    limits: Limits,
    /// Places of the first sample and of the next one.
    from: i64,
    at: i64,
    /// Samples of silence that come before the packet.
    silence: u64,
    packet: Arc<[u8]>,
    /// Bytes of the packet that are done.
    used: usize,
    /// Samples that may still come.
    left: u64,
    /// Samples that were left out, since sound came before in their place.
    overlaps: u64,
    has_sound: bool,
}

impl AudioReader {
    /// Starts to decode `stream` of the file at sample `from`, on the container's clock. If the stream starts later, silence
    /// comes first.
    ///
    /// # Errors
    /// [`VideoError::Ffmpeg`] if ffmpeg can't be started.
    pub fn open(
        path: &Path,
        stream: &AudioStream,
        from: i64,
        limits: &Limits,
    ) -> Result<AudioReader, VideoError> {
        let mut running = Running::start(command(path, stream, from, limits), limits)?;
        let output = running.take_stdout().ok_or_else(|| VideoError::Ffmpeg("its output is gone".into()))?;
        Ok(AudioReader {
            running,
            demuxer: Demuxer::open(BufReader::with_capacity(1 << 16, output), MAX_PACKET_BYTES)
                .unwrap_or(None),
            limits: *limits,
            from,
            at: from,
            silence: 0,
            packet: Arc::from([]),
            used: 0,
            left: limits.longest.as_secs().saturating_mul(SAMPLE_RATE as u64),
            overlaps: 0,
            has_sound: false,
        })
    }

    /// The place of the next sample, on the container's clock.
    pub fn at(&self) -> i64 {
        self.at
    }

    /// Adds up to `count` samples to `samples`, fewer only where the sound ends. Gives how many. Samples that are not
    /// finite become 0.
    ///
    /// # Errors
    /// [`VideoError::OverLimit`] for sound that is longer than the limits allow.
    pub fn read(&mut self, samples: &mut Vec<f32>, count: usize) -> Result<usize, VideoError> {
        let before = samples.len();
        loop {
            let missing = count - (samples.len() - before);
            if missing == 0 || !self.fetch() {
                break;
            }
            self.take(samples, missing);
        }
        let read = samples.len() - before;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let hours = self.limits.longest.as_secs_f64() / 3600.0;
            VideoError::OverLimit(format!("its sound is longer than {hours} hours"))
        })?;
        Ok(read)
    }

    /// Reads packets until something is there to take; `false` at the end.
    fn fetch(&mut self) -> bool {
        while self.silence == 0 && self.used >= self.packet.len() {
            // If the pipe breaks, ffmpeg's exit gives the reason.
            let packet = self.demuxer.as_mut().and_then(|demuxer| demuxer.next_packet().ok().flatten());
            let Some(packet) = packet else { return false };
            let Some(place) = self.demuxer.as_ref().and_then(|demuxer| place(demuxer, &packet)) else {
                return false;
            };
            self.packet = packet.data;
            self.used = 0;
            self.put(place);
        }
        true
    }

    /// Puts the packet at its place: with silence before it, or without what lies before the place of the next sample.
    fn put(&mut self, place: i64) {
        let gap = place.saturating_sub(self.at);
        let jitter = if self.at == self.from { 0 } else { JITTER };
        if gap > jitter {
            self.silence = gap as u64;
        } else if gap < -jitter {
            let length = self.packet.len() / SAMPLE_BYTES;
            let early = (-gap).min(length as i64) as usize;
            self.used = early * SAMPLE_BYTES;
            if self.has_sound {
                self.overlaps += early as u64;
            }
        }
        self.has_sound |= self.used < self.packet.len();
    }

    /// Takes at most `most` samples of the silence, or of the packet after it.
    fn take(&mut self, samples: &mut Vec<f32>, most: usize) {
        let before = samples.len();
        if self.silence > 0 {
            let count = most.min(usize::try_from(self.silence).unwrap_or(usize::MAX));
            samples.resize(before + count, 0.0);
            self.silence -= count as u64;
        } else {
            let rest = &self.packet[self.used..];
            let bytes = rest.len().min(most.saturating_mul(SAMPLE_BYTES));
            samples.extend(rest[..bytes].chunks_exact(SAMPLE_BYTES).map(|sample| {
                let value = f32::from_le_bytes([sample[0], sample[1], sample[2], sample[3]]);
                if value.is_finite() { value.clamp(-32.0, 32.0) } else { 0.0 }
            }));
            self.used += bytes;
        }
        self.at = self.at.saturating_add((samples.len() - before) as i64);
    }

    /// Waits for ffmpeg to end after the last sample; a warning if the file is damaged.
    ///
    /// # Errors
    /// The limit that ended the decoding, or [`VideoError::NotAudio`] if nothing could be decoded.
    pub fn finish(self) -> Result<Option<String>, VideoError> {
        let AudioReader { running, demuxer, limits, overlaps, has_sound, .. } = self;
        drop(demuxer);
        let finished = running.finish();
        if let Some(error) = finished.over_limit(&limits) {
            return Err(error);
        }
        let is_whole = finished.status.is_some_and(|status| status.success());
        let overlap = overlaps / SAMPLE_RATE as u64;
        match finished.log.errors.first() {
            Some(first) if !has_sound => {
                Err(VideoError::NotAudio(format!("no sound in it could be decoded: {first}")))
            }
            Some(first) => {
                let count = finished.log.count;
                Ok(Some(format!("the sound is damaged: {count} errors while decoding, the first: {first}")))
            }
            None if !is_whole => Ok(Some("decoding ended early without a reason".into())),
            None if overlap > 0 => Ok(Some(format!(
                "the sound is damaged: its clock goes back, so {overlap} s of it were left out"
            ))),
            None => Ok(None),
        }
    }
}

/// ffmpeg, which decodes the stream to packets of samples with their times. Gaps between them are not filled here: a
/// jump of the clock by hours would fill its memory with silence.
fn command(path: &Path, stream: &AudioStream, from: i64, limits: &Limits) -> Run {
    let mut run = Run::ffmpeg();
    run.args(["-copyts", "-vn", "-sn", "-dn"]);
    let seek_ms = from.div_euclid(SAMPLES_PER_MS).saturating_sub(SEEK_MARGIN_MS);
    if seek_ms > stream.start_ms.saturating_add(1000) {
        run.args(["-seek_timestamp", "1", "-noaccurate_seek"]);
        run.option("-ss", format!("{:.3}", seek_ms as f64 / 1000.0));
    }
    run.input(path, limits);
    run.option("-map", format!("0:{}", stream.index));
    // The first filter mixes channels, and keeps the sum of full channels within 1.
    run.option(
        "-af",
        format!(
            "aresample={SAMPLE_RATE}:rematrix_maxval=1,\
             aformat=sample_fmts=flt:channel_layouts=mono:sample_rates={SAMPLE_RATE},\
             asettb=expr=1/{SAMPLE_RATE},asetpts=PTS+{BIAS}"
        ),
    );
    run.args(["-c:a", "pcm_f32le", "-map_metadata", "-1", "-map_chapters", "-1"]);
    run.args(["-write_index", "0", "-f", "nut", "pipe:1"]);
    run
}

/// The place of a packet's first sample.
fn place<R: Read>(demuxer: &Demuxer<R>, packet: &Packet) -> Option<i64> {
    let (num, den) = demuxer.stream(packet.stream)?.time_base;
    let samples = i128::from(packet.pts) * i128::from(num) * SAMPLE_RATE as i128;
    // Rounded to the nearest.
    let half = i128::from(den) / 2;
    i64::try_from((samples + half).div_euclid(i128::from(den))).ok()?.checked_sub(BIAS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<(u32, i64, Option<i64>)>) {
        let answer: Answer = serde_json::from_str(json).unwrap();
        let chosen = answer.chosen();
        assert_eq!(chosen.map(|it| (it.index, it.start_ms, it.duration_ms)), expected, "{json}");
    }

    #[test]
    fn the_default_stream_is_chosen_and_its_clock_read() {
        check(r#"{"streams": []}"#, None);
        check(
            r#"{"streams": [{"index": 1, "start_time": "4.977000"}], "format": {"duration": "25.5"}}"#,
            Some((1, 4977, Some(25_500))),
        );
        check(
            r#"{"streams": [{"index": 1}, {"index": 3, "disposition": {"default": 1}, "start_time": "-0.021333", "duration": "9"}]}"#,
            Some((3, -22, Some(9000))),
        );
        check(r#"{"streams": [{"index": 0, "start_time": "1e300", "duration": "N/A"}]}"#, Some((0, 0, None)));
    }
}
