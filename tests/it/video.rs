//! Videos made by ffmpeg with the oddities of real files, checked against ffprobe's times and plainly extracted
//! pictures.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::{Meter, Segmentation, Segmenter};
use reprise_encoders::video::{
    Event, Limits, Output, Probe, Request, Summary, VideoError, VideoFile, decode, frames_of_span, probe,
    rendition,
};
use reprise_encoders::{Frame, FrameSize};
use reprise_tests::skip;
use tempfile::TempDir;

/// Everything from decoding a file.
pub(crate) struct Watched {
    pub(crate) probe: Probe,
    pub(crate) detect: Vec<Frame>,
    pub(crate) sampled: Vec<Frame>,
    pub(crate) every: Vec<Frame>,
    pub(crate) cuts: Vec<u64>,
    pub(crate) clips: Vec<Range<i64>>,
    pub(crate) summary: Summary,
}

pub(crate) const RATE: f64 = 4.0;

pub(crate) fn watch(path: &Path) -> Result<Watched, VideoError> {
    watch_within(path, &Limits::default())
}

fn watch_within(path: &Path, limits: &Limits) -> Result<Watched, VideoError> {
    let probe = probe(path, limits)?;
    let small = FrameSize::Exact { width: 16, height: 16 };
    let outputs = vec![
        Output { scaling: FrameSize::ShortEdge(64).into(), per_second: Some(RATE) },
        Output { scaling: small.into(), per_second: None },
        Output { scaling: FrameSize::ShortEdge(64).into(), per_second: Some(RATE) },
    ];
    let mut decoder = decode(path, &probe, Request { detect_width: Some(256), outputs }, limits)?;
    let mut meter = Meter::new(false);
    let mut segmenter = Segmenter::new(Segmentation::content(20.0));
    let (mut detect, mut sampled, mut every, mut again, mut clips) = (vec![], vec![], vec![], vec![], vec![]);
    for event in decoder.by_ref() {
        match event? {
            Event::Detect(frame) => {
                clips.extend(segmenter.push(&meter.measure(&frame)));
                detect.push(frame);
            }
            Event::Sampled { output: 0, frame } => sampled.push(frame),
            Event::Sampled { output: 1, frame } => every.push(frame),
            Event::Sampled { frame, .. } => again.push(frame),
        }
    }
    assert_eq!(sampled, again, "equal outputs get equal frames");
    let summary = decoder.summary();
    clips.extend(segmenter.finish(summary.duration_ms));
    let cuts = segmenter.cuts().iter().map(|cut| cut.0).collect();
    let clips = clips.iter().map(|clip| clip.start_ms..clip.end_ms).collect();
    Ok(Watched { probe, detect, sampled, every, cuts, clips, summary })
}

pub(crate) fn times(frames: &[Frame]) -> Vec<i64> {
    frames.iter().map(|frame| frame.time_ms).collect()
}

/// The output of a program, which must succeed.
#[track_caller]
pub(crate) fn output(program: &str, args: &[&str], path: &Path) -> Vec<u8> {
    let args: Vec<_> =
        args.iter().map(|arg| if *arg == "FILE" { path.as_os_str() } else { arg.as_ref() }).collect();
    let output = Command::new(program).args(&args).output().expect("ffmpeg is installed");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// ffprobe's times of the frames, in milliseconds from the first one, and the first frame's time on the container's
/// clock. For some containers it reports no time of the last frames.
#[track_caller]
pub(crate) fn times_by_ffprobe(path: &Path, stream: u32) -> (Vec<i64>, i64) {
    let stream = stream.to_string();
    let ask = |entries: &str| {
        let args = [
            "-v",
            "quiet",
            "-select_streams",
            &stream,
            "-show_entries",
            entries,
            "-of",
            "csv=p=0",
            "-i",
            "FILE",
        ];
        String::from_utf8(output("ffprobe", &args, path)).unwrap()
    };
    let base = ask("stream=time_base");
    let (num, den) = base.lines().next().unwrap().trim_end_matches(',').split_once('/').unwrap();
    let (num, den): (i128, i128) = (num.parse().unwrap(), den.parse().unwrap());
    let frames = ask("frame=best_effort_timestamp");
    let pts: Vec<i128> = frames.lines().filter_map(|line| line.trim_end_matches(',').parse().ok()).collect();
    let first = pts.first().copied().unwrap_or(0);
    let ms = |ticks: i128| (ticks * 1000 * num).div_euclid(den) as i64;
    (pts.iter().map(|pts| ms(pts - first)).collect(), ms(first))
}

/// Every frame at 16x16 pixels by plain extraction.
#[track_caller]
pub(crate) fn pictures_by_ffmpeg(path: &Path, stream: u32) -> Vec<Vec<u8>> {
    let map = format!("0:{stream}");
    let args = [
        "-v",
        "quiet",
        "-i",
        "FILE",
        "-map",
        &map,
        "-vf",
        "scale=16:16:flags=bicubic+accurate_rnd+full_chroma_int",
        sync(),
        "passthrough",
    ];
    let raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
    let bytes = output("ffmpeg", &[&args[..], &raw].concat(), path);
    bytes.chunks_exact(16 * 16 * 3).map(<[u8]>::to_vec).collect()
}

pub(crate) fn difference(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64
}

/// Checks times, pictures, sampling and clips of a file against ffprobe, plain extraction and the rules.
#[track_caller]
pub(crate) fn check(path: &Path) -> Watched {
    let watched = watch(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.display();
    let (expected, offset) = times_by_ffprobe(path, watched.probe.stream);
    if !expected.is_empty() {
        assert!(expected.len() + 1 >= watched.detect.len(), "{name}: {} times", expected.len());
        assert_eq!(times(&watched.detect)[..expected.len()], expected, "{name}");
        assert_eq!(watched.summary.media_offset_ms, offset, "{name}");
        assert_eq!(watched.probe.media_offset_ms, offset, "{name}");
    }
    assert_eq!(times(&watched.every), times(&watched.detect), "{name}");
    assert_eq!(watched.summary.frames, watched.detect.len() as u64, "{name}");
    let pictures = pictures_by_ffmpeg(path, watched.probe.stream);
    assert_eq!(pictures.len(), watched.every.len(), "{name}");
    for (ours, plain) in watched.every.iter().zip(&pictures) {
        let difference = difference(&ours.rgb, plain);
        assert!(difference < 2.0, "{name} at {} ms: {difference}", ours.time_ms);
    }
    check_sampling(&watched, &name.to_string());
    check_clips(&watched, &name.to_string());
    watched
}

#[track_caller]
fn check_sampling(watched: &Watched, name: &str) {
    let all = times(&watched.detect);
    let picked = Sampler::PerSecond { rate: RATE, at_most: usize::MAX >> 8 }.pick(&all, 0);
    let expected: Vec<i64> = picked.iter().map(|&i| all[i]).collect();
    assert_eq!(times(&watched.sampled), expected, "{name}");
    for frame in &watched.sampled {
        assert_eq!(frame.width.min(frame.height), 64, "{name}");
        let small = watched.every.iter().find(|other| other.time_ms == frame.time_ms).unwrap();
        let difference = difference(&mean_colour(frame), &mean_colour(small));
        assert!(difference < 4.0, "{name} at {} ms: {difference}", frame.time_ms);
    }
}

#[track_caller]
fn check_clips(watched: &Watched, name: &str) {
    let clips = &watched.clips;
    assert_eq!(clips.first().map(|clip| clip.start), Some(0), "{name}");
    assert_eq!(clips.last().map(|clip| clip.end), Some(watched.summary.duration_ms), "{name}");
    assert!(clips.windows(2).all(|pair| pair[0].end == pair[1].start), "{name}: {clips:?}");
    assert!(watched.summary.duration_ms > watched.detect.last().unwrap().time_ms, "{name}");
}

pub(crate) fn mean_colour(frame: &Frame) -> [u8; 3] {
    let pixels = frame.rgb.len() / 3;
    [0, 1, 2].map(|channel| {
        let sum: usize = frame.rgb.iter().skip(channel).step_by(3).map(|&value| usize::from(value)).sum();
        (sum / pixels) as u8
    })
}

/// A file made by ffmpeg, in a temporary folder.
pub(crate) struct Made {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) const H264: [&str; 6] = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"];

/// Runs ffmpeg with `args`; the last one names the file.
#[track_caller]
pub(crate) fn make(args: &[&str]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let (name, args) = args.split_last().unwrap();
    let path = folder.path().join(name);
    let full = [&["-v", "error", "-nostdin", "-y"], args, &["FILE"]].concat();
    output("ffmpeg", &full, &path);
    Made { folder, path }
}

/// Moving test pictures of `seconds` at 25 frames per second, encoded with `options`.
#[track_caller]
pub(crate) fn moving(seconds: u32, options: &[&str]) -> Made {
    let source = format!("testsrc2=size=320x180:rate=25:duration={seconds}");
    make(&[&["-f", "lavfi", "-i", &source], options].concat())
}

/// The option for keeping frame times: `-fps_mode`, or `-vsync` before ffmpeg 5.1.
pub(crate) fn sync() -> &'static str {
    static OPTION: OnceLock<&str> = OnceLock::new();
    OPTION.get_or_init(|| {
        let args = [
            "-v",
            "quiet",
            "-f",
            "lavfi",
            "-i",
            "nullsrc=duration=0.04",
            "-fps_mode",
            "vfr",
            "-f",
            "null",
            "-",
        ];
        let known = Command::new("ffmpeg").args(args).status().is_ok_and(|status| status.success());
        if known { "-fps_mode" } else { "-vsync" }
    })
}

fn has_encoder(name: &str) -> bool {
    let found = Command::new("ffmpeg").args(["-v", "quiet", "-h", &format!("encoder={name}")]).output();
    found.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Encoder "))
}

#[test]
fn a_plain_file_comes_in_whole() {
    let made = moving(3, &[&H264[..], &["plain.mp4"]].concat());
    let watched = check(&made.path);
    assert_eq!((watched.probe.width, watched.probe.height), (320, 180));
    assert_eq!((watched.summary.frames, watched.summary.duration_ms), (75, 3000));
    assert_eq!((watched.detect[0].width, watched.detect[0].height), (320, 180));
    assert_eq!((watched.sampled[0].width, watched.sampled[0].height), (113, 64));
    assert!(
        watched.probe.plays_in_browsers && !watched.probe.variable_frame_rate && !watched.probe.has_audio
    );
    assert_eq!(watched.summary.warnings, [""; 0]);
}

#[test]
fn times_count_from_the_first_frame_of_a_delayed_start() {
    let made = moving(2, &[&H264[..], &["-output_ts_offset", "1.075", "late.mp4"]].concat());
    let watched = check(&made.path);
    assert_eq!(watched.summary.media_offset_ms, 1075);
    assert_eq!(watched.summary.duration_ms, 2000);
}

#[test]
fn timestamps_from_an_hour_on_are_times_from_zero() {
    let made = moving(3, &[&H264[..], &["-f", "mpegts", "-output_ts_offset", "3600", "hour.ts"]].concat());
    let watched = check(&made.path);
    assert!((3_600_000..3_602_000).contains(&watched.summary.media_offset_ms));
    assert_eq!(watched.summary.duration_ms, 3000);
    assert!(!watched.probe.plays_in_browsers);
    let span = frames_of_span(
        VideoFile { path: &made.path, probe: &watched.probe, in_order: false, limits: &Limits::default() },
        2500..2600,
        &Sampler::Stride { frames: 1 },
        SMALL.into(),
    );
    assert_eq!(times(&span.unwrap()), [2520, 2560]);
}

#[test]
fn uneven_frames_keep_their_own_times() {
    let uneven = "select='not(mod(n,3))+lt(random(1),0.3)',setpts='PTS+random(2)*0.01/TB'";
    for name in ["uneven.mp4", "uneven.mkv"] {
        let made = moving(
            6,
            &[&["-vf", uneven, sync(), "vfr", "-enc_time_base", "1:90000"], &H264[..], &[name]].concat(),
        );
        let watched = check(&made.path);
        assert!(watched.probe.variable_frame_rate, "{name}");
    }
}

#[test]
fn a_picture_that_stays_is_sampled_once_and_answers_for_all_its_time() {
    let slides = "select='lt(t,0.4)+between(t,5,5.2)+eq(n,299)'";
    let made = moving(12, &[&["-vf", slides, sync(), "vfr"], &H264[..], &["slides.mp4"]].concat());
    let watched = check(&made.path);
    assert!(
        times(&watched.sampled).contains(&360),
        "the last picture before the pause: {:?}",
        times(&watched.sampled)
    );
    let at = |span: Range<i64>| {
        frames_of_span(
            VideoFile {
                path: &made.path,
                probe: &watched.probe,
                in_order: false,
                limits: &Limits::default(),
            },
            span,
            &Sampler::Middles { frames: 3 },
            SMALL.into(),
        )
    };
    assert_eq!(times(&at(3000..4000).unwrap()), [360]);
    assert_eq!(times(&at(9000..10_000).unwrap()), [5200]);
}

#[test]
fn rotated_video_is_shown_upright() {
    let made = moving(1, &[&H264[..], &["upright.mp4"]].concat());
    let turned = made.folder.path().join("turned.mp4");
    let by_option =
        ["-v", "error", "-display_rotation", "90", "-i", "FILE", "-c", "copy", turned.to_str().unwrap()];
    let by_tag =
        ["-v", "error", "-i", "FILE", "-c", "copy", "-metadata:s:v", "rotate=270", turned.to_str().unwrap()];
    let run = |args: &[&str]| {
        let args = args.iter().map(|arg| if *arg == "FILE" { made.path.as_os_str() } else { arg.as_ref() });
        Command::new("ffmpeg").arg("-y").args(args).output().is_ok_and(|output| output.status.success())
    };
    if !run(&by_option) && !run(&by_tag) {
        return skip("this ffmpeg writes no rotation");
    }
    let watched = check(&turned);
    assert_eq!((watched.probe.width, watched.probe.height), (180, 320));
    assert_eq!((watched.sampled[0].width, watched.sampled[0].height), (64, 113));
}

#[test]
fn pixels_that_are_not_square_are_made_so() {
    let made = moving(1, &[&["-vf", "setsar=16/11"], &H264[..], &["wide.mp4"]].concat());
    let watched = check(&made.path);
    assert_eq!((watched.probe.width, watched.probe.height), (465, 180));
}

#[test]
fn codecs_depths_and_containers_all_come_in() {
    for (encoder, options, name, plays) in [
        ("libx264", &["-pix_fmt", "yuv420p10le"][..], "ten-bits.mp4", false),
        ("libx264", &["-pix_fmt", "yuv444p"], "full-colour.mkv", false),
        ("libx265", &["-pix_fmt", "yuv420p10le", "-x265-params", "log-level=none"], "hevc.mp4", false),
        ("libvpx-vp9", &["-deadline", "realtime", "-cpu-used", "8"], "vp9.webm", true),
        ("libvpx", &["-deadline", "realtime"], "vp8.webm", true),
        ("libsvtav1", &["-preset", "12"], "av1.mkv", false),
        ("mpeg4", &["-bf", "2"], "mpeg4.avi", false),
        ("ffv1", &[], "lossless.mkv", false),
        ("prores_ks", &[], "prores.mov", false),
        ("mpeg2video", &[], "dvd.mpg", false),
        ("gif", &["-r", "10"], "loop.gif", false),
        ("libx264", &["-pix_fmt", "yuv420p", "-movflags", "frag_keyframe+empty_moov"], "fragments.mp4", true),
        ("libx264", &["-pix_fmt", "yuv420p", "-f", "h264"], "bare.h264", false),
    ] {
        if !has_encoder(encoder) {
            skip(&format!("this ffmpeg has no {encoder}"));
            continue;
        }
        let made = moving(2, &[&["-c:v", encoder], options, &[name]].concat());
        let watched = check(&made.path);
        assert_eq!(watched.probe.plays_in_browsers, plays, "{name}");
        assert!((1900..=2100).contains(&watched.summary.duration_ms), "{name}: {:?}", watched.summary);
        assert!((1900..=2100).contains(&watched.probe.duration_ms), "{name}: {:?}", watched.probe);
    }
}

pub(crate) const SOUND: [&str; 4] = ["-f", "lavfi", "-i", "sine=duration=6"];

#[test]
fn a_container_longer_than_its_video_does_not_matter() {
    let picture = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2"];
    for name in ["long.mp4", "long.mkv"] {
        let made = make(&[&picture[..], &SOUND, &H264, &["-c:a", "aac", name]].concat());
        let watched = check(&made.path);
        assert_eq!(watched.summary.duration_ms, 2000, "{name}");
        assert!((1900..=2100).contains(&watched.probe.duration_ms), "{name}: {}", watched.probe.duration_ms);
        assert!(watched.probe.has_audio, "{name}");
        let behind = frames_of_span(
            VideoFile {
                path: &made.path,
                probe: &watched.probe,
                in_order: false,
                limits: &Limits::default(),
            },
            4000..5000,
            &Sampler::Stride { frames: 1 },
            SMALL.into(),
        );
        assert!(matches!(behind, Err(VideoError::EmptySpan { .. })), "{name}: {behind:?}");
    }
}

#[test]
fn of_several_video_streams_the_default_one_is_taken() {
    let two = [
        "-f",
        "lavfi",
        "-i",
        "color=red:size=64x64:duration=1",
        "-f",
        "lavfi",
        "-i",
        "color=blue:size=32x32:duration=1",
    ];
    let flags = ["-disposition:v:0", "0", "-disposition:v:1", "default", "-map", "0", "-map", "1", "two.mkv"];
    let made = make(&[&two[..], &H264, &flags].concat());
    let watched = check(&made.path);
    assert_eq!((watched.probe.stream, watched.probe.width), (1, 32));
    assert!(mean_colour(&watched.detect[0])[2] > 200);
}

#[test]
fn one_frame_is_a_video() {
    let made = moving(1, &[&["-frames:v", "1"], &H264[..], &["one.mp4"]].concat());
    let watched = check(&made.path);
    assert_eq!((watched.detect.len(), watched.sampled.len(), watched.clips.len()), (1, 1, 1));
    assert_eq!(watched.summary.duration_ms, 40);
    let frames = frames_of_span(
        VideoFile { path: &made.path, probe: &watched.probe, in_order: false, limits: &Limits::default() },
        0..40,
        &Sampler::Middles { frames: 4 },
        SMALL.into(),
    );
    assert_eq!(times(&frames.unwrap()), [0; 4]);
}

#[test]
fn what_a_truncated_file_still_holds_is_used_with_a_warning() {
    let made = moving(6, &[&H264[..], &["-movflags", "+faststart", "cut.mp4"]].concat());
    let bytes = std::fs::read(&made.path).unwrap();
    std::fs::write(&made.path, &bytes[..bytes.len() * 6 / 10]).unwrap();
    let watched = watch(&made.path).unwrap();
    assert!((2000..5500).contains(&watched.summary.duration_ms), "{:?}", watched.summary);
    assert_eq!(times(&watched.detect), (0..watched.detect.len() as i64).map(|i| i * 40).collect::<Vec<_>>());
    assert!(watched.summary.warnings[0].contains("damaged or cut off"), "{:?}", watched.summary.warnings);
    assert!(watched.summary.warnings[0].contains("of the 6.0 s"), "{:?}", watched.summary.warnings);
}

#[track_caller]
fn check_refused(path: &Path, why: &str) {
    match watch(path) {
        Err(VideoError::NotVideo(reason)) => assert!(reason.contains(why), "{}: {reason}", path.display()),
        Err(other) => panic!("{}: {other}", path.display()),
        Ok(watched) => panic!("{}: {:?}", path.display(), watched.summary),
    }
}

#[test]
fn what_is_no_video_is_refused_with_the_reason() {
    let made = moving(4, &[&H264[..], &["index-at-end.mp4"]].concat());
    let bytes = std::fs::read(&made.path).unwrap();
    std::fs::write(&made.path, &bytes[..bytes.len() * 6 / 10]).unwrap();
    check_refused(&made.path, "no moov atom");
    check_refused(&make(&[&SOUND[..], &["song.m4a"]].concat()).path, "it holds audio but no video");
    check_refused(&make(&[&SOUND[..], &["song.wav"]].concat()).path, "it holds audio but no video");
    check_refused(&moving(1, &["-frames:v", "1", "still.png"]).path, "it is a still image");
    check_refused(&moving(1, &["-frames:v", "1", "still.jpg"]).path, "it is a still image");

    let folder = made.folder.path();
    for (name, content, why) in [
        ("text.mp4", "this is not a video\n", "no known video format"),
        ("empty.mp4", "", "the file is empty"),
        ("subtitles.srt", "1\n00:00:00,000 --> 00:00:01,000\nhello\n", "not a playlist, an image or a text"),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
        check_refused(&folder.join(name), why);
    }
    check_refused(&folder.join("absent.mp4"), "can't be opened");
}

#[test]
fn a_song_with_cover_art_is_no_video() {
    let cover = ["-f", "lavfi", "-i", "color=red:size=64x64:duration=0.04"];
    let options = [
        "-map",
        "0",
        "-map",
        "1",
        "-c:a",
        "aac",
        "-c:v",
        "mjpeg",
        "-disposition:v:0",
        "attached_pic",
        "cover.m4a",
    ];
    let made = make(&[&SOUND[..], &cover, &options].concat());
    check_refused(&made.path, "it holds audio but no video");
}

#[test]
fn playlists_can_not_reach_other_files() {
    let made = moving(1, &[&H264[..], &["-f", "mpegts", "secret.ts"]].concat());
    let secret = made.path.to_str().unwrap();
    let playlist = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile:{secret}\n#EXT-X-ENDLIST\n");
    let concat = format!("ffconcat version 1.0\nfile '{secret}'\n");
    for (name, content) in
        [("a.m3u8", &playlist), ("a.mp4", &playlist), ("b.txt", &concat), ("b.mp4", &concat)]
    {
        let path = made.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        check_refused(&path, "not a playlist");
    }
}

#[test]
fn names_are_names_and_nothing_else() {
    let made = moving(1, &[&H264[..], &["plain.mp4"]].concat());
    for name in [
        "it's \"quoted\" $(touch pwned) `touch pwned`.mp4",
        "-i -y %03d.mp4",
        "concat:a|b.mp4",
        "[in];x=1,y.mp4",
        "ünï\ncode.mp4",
    ] {
        let path = made.folder.path().join(name);
        std::fs::copy(&made.path, &path).unwrap();
        let watched = watch(&path).unwrap();
        assert_eq!(watched.summary.frames, 25, "{name}");
        let sampler = Sampler::Stride { frames: 10 };
        let frames = frames_of_span(
            VideoFile { path: &path, probe: &watched.probe, in_order: false, limits: &Limits::default() },
            0..1000,
            &sampler,
            SMALL.into(),
        )
        .unwrap();
        assert_eq!(times(&frames), [0, 400, 800], "{name}");
        let out = made.folder.path().join(format!("out {name}"));
        rendition::web(&path, &watched.probe, &out, &Limits::default()).unwrap();
        assert!(probe(&out, &Limits::default()).is_ok(), "{name}");
    }
    assert!(!made.folder.path().join("pwned").exists() && !Path::new("pwned").exists());
}

#[test]
fn limits_on_time_and_pixels_hold() {
    let made = moving(20, &[&H264[..], &["plain.mp4"]].concat());
    let refused = |limits: Limits| match watch_within(&made.path, &limits) {
        Err(VideoError::OverLimit(why)) => why,
        other => panic!("{:?}", other.map(|watched| watched.summary)),
    };
    let default = Limits::default();
    assert!(refused(Limits { max_pixels: 1000, ..default }).contains("320x180"));
    let probe = probe(&made.path, &default).unwrap();
    let hurried = Limits { wall_clock: Duration::from_millis(1), ..default };
    let events: Vec<_> =
        decode(&made.path, &probe, Request { detect_width: Some(256), outputs: vec![] }, &hurried)
            .unwrap()
            .collect();
    assert!(
        matches!(events.last(), Some(Err(VideoError::OverLimit(why))) if why.contains("longer than")),
        "{:?}",
        events.len()
    );
}

pub(crate) const SMALL: FrameSize = FrameSize::Exact { width: 48, height: 32 };
