//! The real files of the test data: each is decoded with correct times and pictures, or refused with a reason.

use std::path::{Path, PathBuf};

use reprise_encoders::FrameSize;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{
    Limits, References, VideoError, VideoFile, frames_of_span, seek_agrees_with, seek_is_safe,
};
use reprise_tests::test_data;
use serde_json::Value;

use super::video::{Watched, check, difference, times, watch};

/// The expected result for a file.
enum Expected {
    /// Accepted: number of frames, milliseconds, displayed width and height.
    In(usize, i64, u32, u32),
    /// Accepted with a warning that contains this text.
    Warned(usize, &'static str),
    /// Refused with a reason that contains this text.
    Refused(&'static str),
}
use Expected::{In, Refused, Warned};

#[rustfmt::skip]
const FILES: &[(&str, Expected)] = &[
    ("derived/all_black.mp4", In(75, 3000, 320, 180)),
    ("derived/audio_only.mp4", Refused("it holds audio but no video")),
    ("derived/dog_faststart.mp4", In(180, 6006, 480, 270)),
    ("derived/dog_moov_end.mp4", In(180, 6006, 480, 270)),
    ("derived/fragmented.mp4", In(180, 6006, 480, 270)),
    ("derived/hevc10_coffee.mp4", In(120, 4004, 480, 270)),
    ("derived/multi12.mp4", In(1625, 65_000, 480, 270)),
    ("derived/odd_size_161x91_yuv444.mp4", In(60, 2000, 137, 91)),
    ("derived/raw_nocontainer.h264", In(180, 6006, 480, 270)),
    ("derived/rotated90_dog.mp4", In(180, 6006, 270, 480)),
    ("derived/single_frame.mp4", In(1, 33, 320, 180)),
    ("derived/still_as_video.png", Refused("it is a still image")),
    ("derived/text_named.mp4", Refused("no known video format")),
    ("derived/trunc_faststart_60pct.mp4", Warned(99, "3.3 s of the 6.0 s")),
    ("derived/trunc_moov_missing.mp4", Refused("no moov atom")),
    ("derived/ts_start_3600s.ts", In(180, 6006, 480, 270)),
    ("derived/vfr_juggle.mp4", In(70, 5416, 480, 270)),
    ("derived/vp9_frog.webm", In(120, 4000, 720, 480)),
    ("derived/zero_length.mp4", Refused("the file is empty")),
    ("odd/dec_corrupted.mp4", Warned(49, "damaged or cut off")),
    ("odd/dec_unordered.mov", In(4, 125, 50, 50)),
    ("odd/dec_video_0.mov", In(3, 100, 568, 320)),
    ("odd/dec_video_180.mov", In(3, 100, 568, 320)),
    ("odd/dec_video_270.mov", In(3, 100, 320, 568)),
    ("odd/dec_video_90.mov", In(3, 100, 320, 568)),
    ("odd/iio_cockatoo.mp4", In(280, 14_000, 1280, 720)),
    ("odd/iio_newtonscradle.gif", In(36, 820, 200, 150)),
    ("odd/mma_test.avi", In(164, 6560, 320, 240)),
    ("odd/mp4p_bbb_sunflower_QCIF_30fps_mp4v_noaudio_1f.mp4", In(1, 33, 256, 144)),
    ("odd/mp4p_h264_white_frame_sar_16_9.mp4", In(1, 40, 1138, 480)),
    ("odd/mp4p_hevc_white_frame.mp4", In(1, 40, 640, 480)),
    ("odd/psd_counter.mp4", In(30, 3000, 1920, 1080)),
    ("odd/psd_delayed_start.mp4", In(24, 960, 480, 320)),
    ("odd/psd_fades.mp4", In(250, 10_000, 480, 320)),
    ("odd/psd_testvideo.mp4", In(720, 24_024, 1280, 720)),
    ("odd/skv_scene_cuts.mp4", In(250, 10_000, 1280, 272)),
    ("odd/tc_av1_video.mkv", In(125, 5000, 640, 360)),
    ("odd/tc_bt709_full_range.mp4", In(30, 1000, 1280, 720)),
    ("odd/tc_h264_10bits.mp4", In(30, 1000, 200, 200)),
    ("odd/tc_h265_10bits.mp4", In(30, 1000, 200, 200)),
    ("odd/tc_h265_video.mp4", In(10, 1000, 128, 128)),
];

/// Other files in the folder, which the table does not list.
fn is_beside(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "srt")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !is_beside(path));
    files.sort();
    files
}

/// Checks that spans read separately have the same frames as the whole decode.
#[track_caller]
fn check_spans(path: &Path, watched: &Watched) {
    let name = path.display();
    let limits = Limits::default();
    let size = FrameSize::Exact { width: 16, height: 16 };
    let sampler = Sampler::Middles { frames: 5 };
    let in_order = !seek_is_safe(path, &watched.probe, &limits).unwrap();
    let duration = watched.summary.duration_ms;
    for span in [0..duration, duration * 3 / 4..duration * 3 / 4 + 200] {
        let inside: Vec<i64> = times(&watched.every).into_iter().filter(|time| span.contains(time)).collect();
        if inside.is_empty() {
            continue;
        }
        let wanted: Vec<i64> = sampler.pick(&inside, span.start).iter().map(|&i| inside[i]).collect();
        let frames = frames_of_span(
            VideoFile { path, probe: &watched.probe, in_order, limits: &limits },
            span.clone(),
            &sampler,
            size.into(),
        );
        let frames = frames.unwrap_or_else(|error| panic!("{name} {span:?}: {error}"));
        assert_eq!(times(&frames), wanted, "{name} {span:?}");
        for frame in &frames {
            let whole = watched.every.iter().find(|other| other.time_ms == frame.time_ms).unwrap();
            assert!(difference(&frame.rgb, &whole.rgb) < 2.0, "{name} at {} ms", frame.time_ms);
        }
    }
}

#[track_caller]
fn check_file(path: &Path, expected: &Expected) {
    let name = path.display();
    match expected {
        In(frames, duration_ms, width, height) => {
            let watched = check(path);
            check_spans(path, &watched);
            let size = (watched.probe.width, watched.probe.height);
            let found = (watched.detect.len(), watched.summary.duration_ms, size);
            assert_eq!(found, (*frames, *duration_ms, (*width, *height)), "{name}");
            assert_eq!(watched.summary.warnings, [""; 0], "{name}");
            assert!(
                (watched.probe.duration_ms - duration_ms).abs() <= 40,
                "{name}: {}",
                watched.probe.duration_ms
            );
        }
        Warned(frames, why) => {
            let watched = check(path);
            check_spans(path, &watched);
            assert_eq!(watched.detect.len(), *frames, "{name}");
            assert!(
                watched.summary.warnings.iter().any(|warning| warning.contains(why)),
                "{name}: {:?}",
                watched.summary
            );
        }
        Refused(why) => match watch(path) {
            Err(VideoError::NotVideo(reason)) => assert!(reason.contains(why), "{name}: {reason}"),
            other => panic!("{name}: {:?}", other.map(|watched| watched.summary)),
        },
    }
}

#[test]
fn every_odd_file_comes_in_right_or_is_refused_with_the_reason() {
    let Some(folder) = test_data("video") else { return };
    for (name, expected) in FILES {
        check_file(&folder.join(name), expected);
    }
    let listed: Vec<PathBuf> = FILES.iter().map(|(name, _)| folder.join(name)).collect();
    let missing: Vec<PathBuf> = ["derived", "odd"]
        .iter()
        .flat_map(|f| files_in(&folder.join(f)))
        .filter(|f| !listed.contains(f))
        .collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}

#[test]
fn every_ordinary_clip_comes_in_right() {
    let Some(folder) = test_data("video/clips") else { return };
    for path in files_in(&folder) {
        let watched = check(&path);
        check_spans(&path, &watched);
        assert_eq!(watched.summary.warnings, [""; 0], "{}", path.display());
    }
}

/// Checks that all cuts of `reference` are found within one frame.
#[track_caller]
fn check_cuts(watched: &Watched, reference: &[u64]) {
    for cut in reference {
        assert!(
            watched.cuts.iter().any(|found| found.abs_diff(*cut) <= 1),
            "{cut} is not in {:?}",
            watched.cuts
        );
    }
}

#[test]
fn cuts_are_those_of_pyscenedetect() {
    let Some(goldens) = test_data("video/scenedetect_goldens.json") else { return };
    let goldens: Value = serde_json::from_slice(&std::fs::read(goldens).unwrap()).unwrap();
    for (name, path) in
        [("psd_testvideo.mp4", "video/odd/psd_testvideo.mp4"), ("skv_bikes.mp4", "video/clips/skv_bikes.mp4")]
    {
        let Some(path) = test_data(path) else { return };
        let expected: Vec<u64> =
            goldens[name].as_array().unwrap().iter().map(|cut| cut.as_u64().unwrap()).collect();
        assert_eq!(watch(&path).unwrap().cuts, expected, "{name}");
    }
}

#[test]
fn the_true_cuts_of_an_edited_video_are_found() {
    let (Some(path), Some(truth)) =
        (test_data("video/derived/multi12.mp4"), test_data("video/derived/multi12.truth.json"))
    else {
        return;
    };
    let truth: Value = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
    let starts: Vec<u64> = truth["clips"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|clip| clip["start_frame"].as_u64().unwrap())
        .collect();
    assert_eq!(starts.len(), 11);
    check_cuts(&watch(&path).unwrap(), &starts);
}

#[test]
fn a_file_whose_seek_yields_garbage_is_found_out_and_read_in_order() {
    let Some(folder) = test_data("video") else { return };
    let limits = Limits::default();
    let size = FrameSize::Exact { width: 64, height: 36 };
    let sampler = Sampler::Middles { frames: 4 };
    for (name, safe) in
        [("odd/iio_cockatoo.mp4", false), ("derived/multi12.mp4", true), ("clips/mdn_frog.webm", true)]
    {
        let path = folder.join(name);
        let watched = watch(&path).unwrap();
        assert_eq!(seek_is_safe(&path, &watched.probe, &limits).unwrap(), safe, "{name}");
        let spots = [1, 2, 3].map(|i| watched.detect[watched.detect.len() * i / 4].time_ms);
        let mut references = References::near(spots.to_vec());
        watched.detect.iter().for_each(|frame| references.push(frame));
        assert!(references.are_complete(), "{name}");
        assert_eq!(seek_agrees_with(&path, &watched.probe, &references, &limits).unwrap(), safe, "{name}");
        let late = watched.summary.duration_ms * 3 / 4;
        let frames = frames_of_span(
            VideoFile { path: &path, probe: &watched.probe, in_order: !safe, limits: &limits },
            late..late + 1000,
            &sampler,
            size.into(),
        )
        .unwrap();
        for frame in &frames {
            let small = watched.every.iter().find(|other| other.time_ms == frame.time_ms).unwrap();
            let ours = super::video::mean_colour(frame);
            assert!(
                difference(&ours, &super::video::mean_colour(small)) < 4.0,
                "{name} at {} ms",
                frame.time_ms
            );
        }
    }
}
