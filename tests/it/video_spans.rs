//! Parts of a rendered video: frames of spans, thumbnails, previews and web renditions.

use reprise_encoders::Frame;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{
    Event, Limits, Output, Request, VideoError, VideoFile, decode, frames_of_span, probe, rendition,
    seek_is_safe,
};

use super::video::{
    H264, SMALL, SOUND, make, moving, output, pictures_by_ffmpeg, sync, times, times_by_ffprobe,
};

/// Reading a span gives the same frames as selecting from all frames, with and without seeking.
#[test]
fn spans_hold_the_frames_that_a_whole_decode_gives() {
    let made = moving(12, &[&H264[..], &["-g", "50", "-bf", "2", "plain.mp4"]].concat());
    let limits = Limits::default();
    let probe = probe(&made.path, &limits).unwrap();
    let request =
        Request { detect_width: None, outputs: vec![Output { scaling: SMALL.into(), per_second: None }] };
    let all: Vec<Frame> = decode(&made.path, &probe, request, &limits)
        .unwrap()
        .map(|event| match event.unwrap() {
            Event::Sampled { frame, .. } | Event::Detect(frame) => frame,
        })
        .collect();
    assert_eq!(all.len(), 300);
    for span in
        [0..12_000, 0..1, 40..41, 3999..4001, 5000..9000, 7_777..8_888, 11_960..12_000, 11_000..99_000]
    {
        for (sampler, orders) in [
            (Sampler::Middles { frames: 12 }, &[false, true][..]),
            (Sampler::Stride { frames: 7 }, &[false]),
            (Sampler::PerSecond { rate: 3.0, at_most: 20 }, &[false]),
        ] {
            let inside: Vec<&Frame> = all.iter().filter(|frame| span.contains(&frame.time_ms)).collect();
            let inside_times: Vec<i64> = inside.iter().map(|frame| frame.time_ms).collect();
            let expected: Vec<Frame> =
                sampler.pick(&inside_times, span.start).iter().map(|&i| inside[i].clone()).collect();
            for &in_order in orders {
                let found = frames_of_span(
                    VideoFile { path: &made.path, probe: &probe, in_order, limits: &limits },
                    span.clone(),
                    &sampler,
                    SMALL.into(),
                );
                let found = found.unwrap_or_else(|error| panic!("{span:?} {sampler:?}: {error}"));
                assert_eq!(times(&found), times(&expected), "{span:?} {sampler:?} in order: {in_order}");
                assert!(found == expected, "{span:?} {sampler:?} in order: {in_order}");
            }
        }
    }
    #[expect(clippy::reversed_empty_ranges, reason = "that is the case")]
    let outside = [12_000..13_000, 500..500, 900..100, -5..10];
    for span in outside {
        let found = frames_of_span(
            VideoFile { path: &made.path, probe: &probe, in_order: false, limits: &limits },
            span,
            &Sampler::Stride { frames: 1 },
            SMALL.into(),
        );
        assert!(matches!(found, Err(VideoError::EmptySpan { .. })), "{found:?}");
    }
    assert!(seek_is_safe(&made.path, &probe, &limits).unwrap());
}

#[test]
fn a_losslessly_cut_upload_gives_the_frames_of_the_stored_range() {
    let made = moving(
        10,
        &[&H264[..], &["-g", "25", "-keyint_min", "25", "-sc_threshold", "0", "stored.mp4"]].concat(),
    );
    let limits = Limits::default();
    for name in ["cut.mp4", "cut.mkv", "cut.ts"] {
        let cut = made.folder.path().join(name);
        let args =
            ["-v", "error", "-y", "-ss", "4", "-i", "FILE", "-t", "3", "-c", "copy", cut.to_str().unwrap()];
        output("ffmpeg", &args, &made.path);
        let stored = probe(&made.path, &limits).unwrap();
        let uploaded = probe(&cut, &limits).unwrap();
        for sampler in [Sampler::Middles { frames: 12 }, Sampler::PerSecond { rate: 2.0, at_most: 64 }] {
            let ours = frames_of_span(
                VideoFile { path: &made.path, probe: &stored, in_order: false, limits: &limits },
                4000..7000,
                &sampler,
                SMALL.into(),
            )
            .unwrap();
            let theirs = frames_of_span(
                VideoFile { path: &cut, probe: &uploaded, in_order: false, limits: &limits },
                0..3000,
                &sampler,
                SMALL.into(),
            )
            .unwrap();
            assert_eq!(times(&ours).iter().map(|ms| ms - 4000).collect::<Vec<_>>(), times(&theirs), "{name}");
            assert!(ours.iter().zip(&theirs).all(|(a, b)| a.rgb == b.rgb), "{name}");
        }
    }
}

#[test]
fn thumbnails_show_the_frame_of_their_moment() {
    let colours = "color=red:size=320x180:rate=25:duration=3[a];color=blue:size=320x180:rate=25:duration=3[b];[a][b]concat";
    let made = make(&[&["-f", "lavfi", "-i", colours], &H264[..], &["two.mp4"]].concat());
    let limits = Limits::default();
    let facts = probe(&made.path, &limits).unwrap();
    for (at_ms, width, red) in [
        (-5, 160, true),
        (0, 160, true),
        (2960, 160, true),
        (2999, 80, true),
        (3000, 160, false),
        (5990, 5000, false),
        (99_000, 160, false),
    ] {
        for in_order in [false, true] {
            let jpeg = rendition::thumbnail(
                VideoFile { path: &made.path, probe: &facts, in_order, limits: &limits },
                at_ms,
                width,
            )
            .unwrap();
            assert_eq!(&jpeg[..3], b"\xff\xd8\xff");
            let file = made.folder.path().join("thumbnail.jpg");
            std::fs::write(&file, &jpeg).unwrap();
            let size = output(
                "ffprobe",
                &["-v", "quiet", "-show_entries", "stream=width", "-of", "csv=p=0", "FILE"],
                &file,
            );
            assert_eq!(String::from_utf8(size).unwrap().trim(), width.min(320).to_string());
            let colour = &pictures_by_ffmpeg(&file, 0)[0][..3];
            assert_eq!(colour[0] > colour[2], red, "{at_ms} ms: {colour:?}");
        }
    }
}

#[test]
fn previews_are_short_silent_files_that_browsers_play() {
    let made = moving(
        8,
        &[&["-vf", "scale=321:181,setsar=1"], &["-c:v", "libx264", "-pix_fmt", "yuv444p"][..], &["odd.mkv"]]
            .concat(),
    );
    let limits = Limits::default();
    let facts = probe(&made.path, &limits).unwrap();
    let out = made.folder.path().join("preview.mp4");
    for (span, width, duration) in [(0..1000, 160, 1000), (5000..7000, 5000, 2000), (7500..90_000, 160, 500)]
    {
        for in_order in [false, true] {
            rendition::preview(
                VideoFile { path: &made.path, probe: &facts, in_order, limits: &limits },
                span.clone(),
                width,
                &out,
            )
            .unwrap();
            let preview = probe(&out, &limits).unwrap();
            assert!(preview.plays_in_browsers && !preview.has_audio, "{preview:?}");
            assert!((preview.duration_ms - duration).abs() <= 40, "{span:?}: {preview:?}");
            assert_eq!(preview.width, width.min(320), "{span:?}");
        }
    }
    let behind = rendition::preview(
        VideoFile { path: &made.path, probe: &facts, in_order: false, limits: &limits },
        9000..9100,
        160,
        &out,
    );
    assert!(matches!(behind, Err(VideoError::EmptySpan { .. })));
}

#[test]
fn web_renditions_run_on_the_clock_of_the_spans() {
    let picture = ["-itsoffset", "1.5", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=3"];
    let uneven = ["-vf", "select='not(mod(n,3))+gt(n,40)'", sync(), "vfr"];
    let made =
        make(&[&picture[..], &SOUND, &uneven, &["-c:v", "mpeg4", "-c:a", "mp3", "late.avi.mkv"]].concat());
    let limits = Limits::default();
    let facts = probe(&made.path, &limits).unwrap();
    let (expected, offset) = times_by_ffprobe(&made.path, facts.stream);
    assert!(offset > 1000);
    let out = made.folder.path().join("web.mp4");
    rendition::web(&made.path, &facts, &out, &limits).unwrap();
    let web = probe(&out, &limits).unwrap();
    assert!(web.plays_in_browsers && web.has_audio, "{web:?}");
    assert_eq!(web.media_offset_ms, 0);
    assert_eq!(times_by_ffprobe(&out, web.stream).0, expected);
}
