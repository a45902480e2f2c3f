//! ffprobe's answer about a file: its JSON, and the facts that follow from it.
//!
//! Every number in it comes from the file, and may be any number.

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::colour::Matrix;
use super::{Limits, VideoError};

/// One stream of subtitles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtitleStream {
    /// Its index among all streams of the file.
    pub index: u32,
    /// Codec name as ffprobe prints it, e.g. `mov_text`.
    pub codec: String,
    /// The container's language code, usually of three letters.
    pub language: Option<String>,
    /// Whether players show it by default.
    pub is_default: bool,
}

/// Packets read to determine the spacing of frames.
pub(super) const PACKETS: usize = 2000;
/// Longest time between two frames. Cameras and screen recorders write a frame far more often; a damaged or hostile clock
/// may jump by years, and everything that works by time would follow it.
const LONGEST_GAP_MS: i64 = 3_600_000;

/// Refuses a video that is longer than `limits` allow.
pub(super) fn check_duration(duration_ms: i64, limits: &Limits) -> Result<(), VideoError> {
    if u128::try_from(duration_ms).is_ok_and(|ms| ms > limits.longest.as_millis()) {
        let (hours, most) = (duration_ms as f64 / 3.6e6, limits.longest.as_secs_f64() / 3600.0);
        return Err(VideoError::OverLimit(format!("it lasts {hours:.1} hours, at most {most} are accepted")));
    }
    Ok(())
}

/// Refuses two frames, at these milliseconds, that lie implausibly far apart.
pub(super) fn check_gap(from_ms: i64, to_ms: i64) -> Result<(), VideoError> {
    let gap_ms = to_ms.saturating_sub(from_ms);
    if gap_ms > LONGEST_GAP_MS {
        let (hours, most) = (gap_ms as f64 / 3.6e6, LONGEST_GAP_MS / 3_600_000);
        return Err(VideoError::OverLimit(format!(
            "two of its frames lie {hours:.1} hours apart, at most {most} is accepted; its clock may be damaged"
        )));
    }
    Ok(())
}

/// Checks ascending timestamps.
pub(super) fn check_times(times: &[i64], clock: &Clock, limits: &Limits) -> Result<(), VideoError> {
    times.windows(2).try_for_each(|pair| check_gap(clock.ms(pair[0]), clock.ms(pair[1])))?;
    times.last().map_or(Ok(()), |last| check_duration(clock.ms(*last), limits))
}

pub(super) fn unusable(why: impl Into<String>) -> VideoError {
    VideoError::NotVideo(why.into())
}

#[derive(Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) streams: Vec<Stream>,
    #[serde(default)]
    pub(super) packets: Vec<Packet>,
    #[serde(default)]
    pub(super) format: Format,
}

#[derive(Deserialize, Default)]
pub(super) struct Format {
    #[serde(default)]
    pub(super) format_name: String,
    pub(super) duration: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Stream {
    pub(super) index: u32,
    #[serde(default)]
    pub(super) codec_name: String,
    #[serde(default)]
    pub(super) codec_type: String,
    #[serde(default)]
    pub(super) pix_fmt: String,
    #[serde(default)]
    pub(super) color_space: String,
    #[serde(default)]
    pub(super) color_range: String,
    #[serde(default)]
    pub(super) width: u32,
    #[serde(default)]
    pub(super) height: u32,
    #[serde(default)]
    pub(super) sample_aspect_ratio: String,
    #[serde(default)]
    pub(super) avg_frame_rate: String,
    #[serde(default)]
    pub(super) r_frame_rate: String,
    #[serde(default)]
    pub(super) time_base: String,
    pub(super) start_pts: Option<i64>,
    pub(super) duration_ts: Option<i64>,
    #[serde(default)]
    pub(super) disposition: Disposition,
    #[serde(default)]
    pub(super) tags: Tags,
    #[serde(default)]
    pub(super) side_data_list: Vec<SideData>,
}

#[derive(Deserialize, Default)]
pub(super) struct Disposition {
    #[serde(default)]
    pub(super) default: u8,
    #[serde(default)]
    pub(super) attached_pic: u8,
}

#[derive(Deserialize, Default)]
pub(super) struct Tags {
    #[serde(alias = "DURATION")]
    pub(super) duration: Option<String>,
    #[serde(alias = "LANGUAGE")]
    pub(super) language: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SideData {
    pub(super) rotation: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct Packet {
    pub(super) stream_index: u32,
    pub(super) pts: Option<i64>,
    #[serde(default)]
    pub(super) flags: String,
}

impl Answer {
    /// The default video stream; cover art does not count.
    pub(super) fn default_video(&self) -> Result<&Stream, VideoError> {
        let videos =
            || self.streams.iter().filter(|s| s.codec_type == "video" && s.disposition.attached_pic == 0);
        let chosen = videos().find(|s| s.disposition.default == 1).or_else(|| videos().next());
        let stream = chosen.ok_or_else(|| {
            unusable(if self.audio().is_some() {
                "it holds audio but no video"
            } else {
                "it holds no video stream"
            })
        })?;
        match (stream.codec_name.as_str(), stream.width, stream.height) {
            ("" | "unknown", ..) => Err(unusable("its video codec is unknown")),
            (_, 0, _) | (_, _, 0) => Err(unusable("no picture in it could be read")),
            _ => Ok(stream),
        }
    }

    pub(super) fn audio(&self) -> Option<&Stream> {
        self.streams.iter().find(|s| s.codec_type == "audio")
    }

    pub(super) fn subtitles(&self) -> Vec<SubtitleStream> {
        let subtitles = self.streams.iter().filter(|s| s.codec_type == "subtitle");
        let stream = |s: &Stream| SubtitleStream {
            index: s.index,
            codec: s.codec_name.clone(),
            language: s.tags.language.clone(),
            is_default: s.disposition.default == 1,
        };
        subtitles.map(stream).collect()
    }

    /// The first presentation times of a stream, ascending.
    pub(super) fn times(&self, stream: u32) -> Vec<i64> {
        let of_stream = self.packets.iter().filter(|p| p.stream_index == stream);
        let mut times = ascending(of_stream.filter_map(|p| p.pts));
        if self.packets.len() >= PACKETS {
            // Packets come in decoding order: near the end of the list, earlier times may be missing.
            times.truncate(times.len().saturating_sub(16));
        }
        times
    }

    /// The times of all packets of a stream, ascending, without packets that an edit list discards; `None` if not all packets
    /// were read.
    pub(super) fn all_times(&self, stream: u32) -> Option<Vec<i64>> {
        let of_stream = self.packets.iter().filter(|p| p.stream_index == stream && !p.flags.contains('D'));
        (self.packets.len() < PACKETS).then(|| ascending(of_stream.filter_map(|p| p.pts)))
    }

    /// The time of the first presented frame, if the packets make it certain: the stream begins with a complete key
    /// frame, and no packet has an earlier time. `times` are the first presentation times.
    pub(super) fn certain_start(&self, stream: u32, times: &[i64]) -> Option<i64> {
        let first = self.packets.iter().find(|p| p.stream_index == stream)?;
        let is_whole = first.flags.starts_with('K') && !first.flags.contains(['D', 'C']);
        first.pts.filter(|pts| is_whole && times.first() == Some(pts))
    }
}

/// Times in order, each once.
pub(super) fn ascending(times: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut times: Vec<i64> = times.collect();
    times.sort_unstable();
    times.dedup();
    times
}

impl Stream {
    /// The clock of the stream's timestamps, of which `origin` is the first presented one. Times are numbers of 32 bits in
    /// ffprobe; larger ones could overflow a sum of times.
    pub(super) fn clock(&self, origin: i64) -> Result<Clock, VideoError> {
        let is_sound = |number: i64| (1..=i64::from(i32::MAX)).contains(&number);
        let base = ratio(&self.time_base).filter(|&(num, den)| is_sound(num) && is_sound(den));
        let (num, den) = base.ok_or_else(|| unusable("its clock is broken"))?;
        Ok(Clock { num, den, origin })
    }

    pub(super) fn matrix(&self) -> Option<Matrix> {
        let is_plain = self.pix_fmt == "yuv420p" && self.color_range != "pc";
        is_plain.then(|| Matrix::named(&self.color_space))
    }
}

/// Parses `30000/1001` or `16:11`.
fn ratio(text: &str) -> Option<(i64, i64)> {
    let (a, b) = text.split_once(['/', ':'])?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

fn rate(text: &str) -> Option<f64> {
    ratio(text).filter(|&(n, d)| n > 0 && d > 0).map(|(n, d)| n as f64 / d as f64)
}

pub(super) fn frame_rate(stream: &Stream, times: &[i64], clock: &Clock) -> f64 {
    let measured = || match times {
        [first, .., last] => {
            let seconds = (*last as f64 - *first as f64) * clock.num as f64 / clock.den as f64;
            Some((times.len() - 1) as f64 / seconds)
        }
        _ => None,
    };
    rate(&stream.avg_frame_rate).or_else(measured).or_else(|| rate(&stream.r_frame_rate)).unwrap_or(25.0)
}

/// Whether the spacing varies by more than one tick and by more than the 2 ms of containers' rounding.
pub(super) fn is_variable(times: &[i64], clock: &Clock) -> bool {
    let gaps = || times.windows(2).map(|pair| i128::from(pair[1]) - i128::from(pair[0]));
    let (Some(least), Some(most)) = (gaps().min(), gaps().max()) else { return false };
    most - least > 1 && (most - least) * 1000 * i128::from(clock.num) > 2 * i128::from(clock.den)
}

pub(super) fn shown_size(stream: &Stream, limits: &Limits) -> Result<(u32, u32), VideoError> {
    let pixels = u64::from(stream.width) * u64::from(stream.height);
    if pixels > limits.max_pixels {
        let (width, height, most) = (stream.width, stream.height, limits.max_pixels);
        return Err(VideoError::OverLimit(format!(
            "its pictures have {width}x{height} pixels, at most {most} are accepted"
        )));
    }
    let aspect = rate(&stream.sample_aspect_ratio).filter(|a| (0.05..=20.0).contains(a)).unwrap_or(1.0);
    let width = ((f64::from(stream.width) * aspect).round() as u32).max(1);
    let turn = stream.side_data_list.iter().find_map(|s| s.rotation).unwrap_or(0.0);
    let sideways = (turn.abs().rem_euclid(180.0) - 90.0).abs() < 1.0;
    Ok(if sideways { (stream.height, width) } else { (width, stream.height) })
}

/// The duration that the stream or, failing that, the container states; `None` for raw streams.
pub(super) fn known_duration_ms(stream: &Stream, format: &Format, clock: &Clock) -> Option<i64> {
    let end = || stream.tags.duration.as_deref().and_then(clock_time_ms);
    let own = stream.duration_ts.map(|ticks| clock.ms(clock.origin.saturating_add(ticks)));
    let whole = || Some((format.duration.as_deref()?.parse::<f64>().ok()? * 1000.0) as i64);
    // Matroska counts from its clock's zero, other containers from their first packet.
    let from_zero = format.format_name.contains("matroska");
    let skipped = if from_zero { clock.container_ms(clock.origin) } else { 0 };
    own.or_else(|| end().map(|ms| ms.saturating_sub(skipped)))
        .or_else(|| whole().map(|ms| ms.saturating_sub(skipped)))
        .filter(|&ms| ms > 0)
}

/// Parses `00:01:02.345000000` to milliseconds. A file's tag may hold any number.
fn clock_time_ms(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds: f64 = parts.next()?.parse().ok()?;
    let whole = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60_000)?;
    whole.checked_add((seconds * 1000.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_is_variable_beyond_a_tick_and_two_milliseconds() {
        let milliseconds = Clock { num: 1, den: 1000, origin: 0 };
        let hundredths = Clock { num: 1, den: 100, origin: 0 };
        let fine = Clock { num: 1, den: 90_000, origin: 0 };
        for (clock, times, expected) in [
            (fine, vec![0, 3000, 6180], false),
            (fine, vec![0, 3000, 6181], true),
            (milliseconds, vec![0, 33, 67, 100], false),
            (milliseconds, vec![0, 40, 80, 83], true),
            (hundredths, vec![0, 6, 13, 20], false),
            (hundredths, vec![0, 2, 4, 9], true),
            (milliseconds, vec![0], false),
            (milliseconds, vec![], false),
        ] {
            assert_eq!(is_variable(&times, &clock), expected, "{times:?}");
        }
    }

    /// Packets of stream 1, by time and flags, after a packet of another stream.
    #[track_caller]
    fn check_start(packets: &[(Option<i64>, &str)], expected: Option<i64>) {
        let packet = |stream_index, pts, flags: &str| Packet { stream_index, pts, flags: flags.to_owned() };
        let of_video = packets.iter().map(|(pts, flags)| packet(1, *pts, flags));
        let packets = std::iter::once(packet(0, Some(-9), "K__")).chain(of_video).collect();
        let answer = Answer { streams: Vec::new(), packets, format: Format::default() };
        assert_eq!(answer.certain_start(1, &answer.times(1)), expected);
    }

    #[test]
    fn a_start_is_certain_where_a_whole_key_frame_leads() {
        check_start(&[(Some(7), "K__"), (Some(9), "___"), (Some(8), "___")], Some(7));
        check_start(&[(Some(7), "K_")], Some(7));
        check_start(&[(Some(7), "K__"), (Some(6), "___")], None);
        check_start(&[(Some(7), "KD_"), (Some(8), "K__")], None);
        check_start(&[(Some(7), "K_C"), (Some(8), "___")], None);
        check_start(&[(Some(7), "___"), (Some(8), "K__")], None);
        check_start(&[(None, "K__"), (Some(8), "___")], None);
        check_start(&[], None);
    }

    /// A video stream of ffprobe's answer, with further fields.
    fn video(fields: serde_json::Value) -> serde_json::Value {
        let mut stream = serde_json::json!({
            "index": 0, "codec_type": "video", "codec_name": "h264", "width": 640, "height": 360, "time_base": "1/1000"
        });
        for (name, value) in fields.as_object().unwrap() {
            stream[name] = value.clone();
        }
        stream
    }

    fn stream(fields: serde_json::Value) -> Stream {
        serde_json::from_value(video(fields)).unwrap()
    }

    #[track_caller]
    fn check_chosen(streams: &[serde_json::Value], expected: Result<u32, &str>) {
        let answer: Answer = serde_json::from_value(serde_json::json!({ "streams": streams })).unwrap();
        match (answer.default_video(), expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got.index, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, _) => panic!("{:?}, expected {expected:?}", got.map(|it| it.index)),
        }
    }

    #[test]
    fn the_default_video_stream_is_chosen() {
        use serde_json::json;
        let audio = json!({"index": 1, "codec_type": "audio"});
        let second = video(json!({"index": 2, "disposition": {"default": 1}}));
        let cover = video(json!({"index": 3, "disposition": {"attached_pic": 1, "default": 1}}));
        check_chosen(&[video(json!({})), second.clone()], Ok(2));
        check_chosen(&[video(json!({})), video(json!({"index": 2}))], Ok(0));
        check_chosen(&[cover.clone(), audio.clone(), second], Ok(2));
        check_chosen(&[cover, audio], Err("audio but no video"));
        check_chosen(&[], Err("no video stream"));
        check_chosen(&[video(json!({"codec_name": "unknown"}))], Err("codec is unknown"));
        check_chosen(&[video(json!({"codec_name": ""}))], Err("codec is unknown"));
        check_chosen(&[video(json!({"width": 0}))], Err("no picture"));
        check_chosen(&[video(json!({"height": 0}))], Err("no picture"));
    }

    #[test]
    fn subtitle_streams_are_listed() {
        let answer: Answer = serde_json::from_str(
            r#"{"streams": [{"index": 0, "codec_type": "video"},
            {"index": 1, "codec_type": "subtitle", "codec_name": "subrip", "tags": {"LANGUAGE": "eng"}},
            {"index": 2, "codec_type": "subtitle", "codec_name": "ass", "disposition": {"default": 1}}]}"#,
        )
        .unwrap();
        let got: Vec<_> = answer
            .subtitles()
            .into_iter()
            .map(|it| (it.index, it.codec, it.language, it.is_default))
            .collect();
        let expected =
            [(1, "subrip".to_owned(), Some("eng".to_owned()), false), (2, "ass".to_owned(), None, true)];
        assert_eq!(got, expected);
    }

    /// Checks the size of the shown picture.
    #[track_caller]
    fn check_size(fields: serde_json::Value, expected: Option<(u32, u32)>) {
        let limits = Limits { max_pixels: 640 * 360, ..Limits::default() };
        assert_eq!(shown_size(&stream(fields), &limits).ok(), expected);
    }

    #[test]
    fn pictures_are_shown_upright_with_square_pixels() {
        use serde_json::json;
        check_size(json!({}), Some((640, 360)));
        check_size(json!({"width": 641}), None);
        check_size(json!({"sample_aspect_ratio": "4:3"}), Some((853, 360)));
        check_size(json!({"sample_aspect_ratio": "0:1"}), Some((640, 360)));
        check_size(json!({"sample_aspect_ratio": "1:0"}), Some((640, 360)));
        check_size(json!({"sample_aspect_ratio": "20:1"}), Some((12_800, 360)));
        check_size(json!({"sample_aspect_ratio": "21:1"}), Some((640, 360)));
        check_size(json!({"width": 1, "sample_aspect_ratio": "1:20"}), Some((1, 360)));
        for (turn, expected) in
            [(90, (360, 640)), (-90, (360, 640)), (270, (360, 640)), (180, (640, 360)), (45, (640, 360))]
        {
            check_size(json!({"side_data_list": [{}, {"rotation": turn}]}), Some(expected));
        }
    }

    /// The duration of a stream that begins at two seconds.
    #[track_caller]
    fn check_known(fields: serde_json::Value, format: [Option<&str>; 2], expected: Option<i64>) {
        let [name, duration] = format.map(|text| text.map(str::to_owned));
        let format = Format { format_name: name.unwrap_or_default(), duration };
        let clock = Clock { num: 1, den: 1000, origin: 2000 };
        assert_eq!(known_duration_ms(&stream(fields), &format, &clock), expected);
    }

    #[test]
    fn a_duration_is_the_streams_own_or_the_containers() {
        use serde_json::json;
        check_known(json!({"duration_ts": 5000}), [None, Some("9.5")], Some(5000));
        check_known(json!({}), [Some("mov,mp4"), Some("9.5")], Some(9500));
        check_known(json!({}), [Some("matroska,webm"), Some("9.5")], Some(7500));
        let tagged = json!({"tags": {"DURATION": "00:00:08.25"}});
        check_known(tagged.clone(), [Some("matroska,webm"), Some("9.5")], Some(6250));
        check_known(tagged, [None, Some("9.5")], Some(8250));
        check_known(json!({}), [Some("matroska"), Some("2.0")], None);
        check_known(json!({}), [None, Some("soon")], None);
        check_known(json!({}), [None, None], None);
    }

    #[test]
    fn the_frame_rate_is_the_stated_mean_or_measured_or_a_guess() {
        use serde_json::json;
        let clock = Clock { num: 1, den: 1000, origin: 0 };
        for (fields, times, expected) in [
            (
                json!({"avg_frame_rate": "30000/1001", "r_frame_rate": "60/1"}),
                &[0, 40][..],
                30_000.0 / 1001.0,
            ),
            (json!({"avg_frame_rate": "0/0", "r_frame_rate": "60/1"}), &[100, 150, 200], 20.0),
            (json!({"r_frame_rate": "60/1"}), &[100], 60.0),
            (json!({"avg_frame_rate": "-1/1", "r_frame_rate": "1/0"}), &[], 25.0),
        ] {
            assert_eq!(frame_rate(&stream(fields), times, &clock), expected);
        }
    }

    #[test]
    fn times_ascend_and_the_last_ones_of_a_cut_list_are_left_out() {
        let of = |count: usize| {
            let packet =
                |at: usize| Packet { stream_index: 1, pts: Some((at ^ 1) as i64), flags: String::new() };
            let packets = (0..count).map(packet).collect();
            Answer { streams: Vec::new(), packets, format: Format::default() }.times(1)
        };
        assert_eq!(of(4), [0, 1, 2, 3]);
        assert_eq!((of(PACKETS - 2).len(), of(PACKETS).len()), (PACKETS - 2, PACKETS - 16));
    }

    /// What refuses frames at these milliseconds of a video of two hours at most.
    #[track_caller]
    fn check_length(times: &[i64], expected: &str) {
        let limits = Limits { longest: std::time::Duration::from_secs(7200), ..Limits::default() };
        let clock = Clock { num: 1, den: 1000, origin: 0 };
        let refused =
            check_times(times, &clock, &limits).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(expected) && refused.is_empty() == expected.is_empty(), "{refused:?}");
    }

    #[test]
    fn a_video_may_last_as_long_as_the_limit_and_its_gaps_an_hour() {
        check_length(&[], "");
        check_length(&[0, 3_600_000, 7_200_000], "");
        check_length(&[0, 3_600_001], "two of its frames lie 1.0 hours apart, at most 1 is accepted");
        check_length(&[0, 3_600_000, 7_200_000, 9_000_000], "it lasts 2.5 hours, at most 2 are accepted");
        check_length(&[0, 3_600_000, 7_200_000, 7_200_001], "it lasts 2.0 hours");
    }

    #[test]
    fn colours_are_known_of_plain_pictures_only() {
        for (answer, expected) in [
            (r#"{"index": 0, "pix_fmt": "yuv420p"}"#, Some(Matrix::Bt601)),
            (
                r#"{"index": 0, "pix_fmt": "yuv420p", "color_range": "tv", "color_space": "bt709"}"#,
                Some(Matrix::Bt709),
            ),
            (r#"{"index": 0, "pix_fmt": "yuv420p", "color_range": "pc", "color_space": "bt709"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuvj420p"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuv420p10le"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuv444p"}"#, None),
        ] {
            let stream: Stream = serde_json::from_str(answer).unwrap();
            assert_eq!(stream.matrix(), expected, "{answer}");
        }
    }

    #[test]
    fn durations_in_tags_are_read() {
        assert_eq!(clock_time_ms("00:01:02.345000000"), Some(62_345));
        assert_eq!(clock_time_ms("01:00:00.000"), Some(3_600_000));
        for none in ["12.5", "", "::", "a:b:c", "9223372036854775807:00:00", "153722867280913:00:00", "0:0:-"]
        {
            assert_eq!(clock_time_ms(none), None, "{none}");
        }
    }

    #[test]
    fn numbers_of_any_size_overflow_nothing() {
        let answer: Answer = serde_json::from_str(
            r#"{"streams": [{"index": 0, "codec_type": "video", "time_base": "1/1000",
            "start_pts": -9223372036854775808, "tags": {"DURATION": "2562047788015:12:55.807"}}],
            "packets": [{"stream_index": 0, "pts": -9223372036854775808},
            {"stream_index": 0, "pts": 9223372036854775807}, {"stream_index": 0, "pts": 5000}],
            "format": {"format_name": "matroska", "duration": "1e300"}}"#,
        )
        .unwrap();
        let (stream, times) = (&answer.streams[0], answer.times(0));
        let clock = stream.clock(times[0]).unwrap();
        assert!(frame_rate(stream, &times, &clock) > 0.0 && is_variable(&times, &clock));
        assert_eq!(known_duration_ms(stream, &answer.format, &clock), Some(i64::MAX));
        assert!(check_times(&times, &clock, &Limits::default()).is_err());
    }

    #[test]
    fn a_clock_has_numbers_of_32_bits() {
        for (time_base, expected) in [
            ("1/90000", true),
            ("2147483647/2147483647", true),
            ("1/2147483648", false),
            ("9223372036854775807/1", false),
            ("0/1", false),
            ("1/-1", false),
            ("1", false),
        ] {
            let stream: Stream =
                serde_json::from_value(serde_json::json!({"index": 0, "time_base": time_base})).unwrap();
            assert_eq!(stream.clock(0).is_ok(), expected, "{time_base}");
        }
    }
}
