//! The cost of segmenting a video: decoding with the detector, against decoding alone and against PySceneDetect; and
//! the detector alone on frames in memory.
//!
//! PySceneDetect is measured if `REPRISE_SCENEDETECT` names a Python interpreter with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use reprise_encoders::Frame;
use reprise_encoders::video::segment::{Meter, Segmentation, Segmenter};
use reprise_encoders::video::{self, Event, Limits, Request};
use reprise_tests::film::{ffmpeg, run};

use super::cpu::{Cost, Meter as Clock, median, percentile};
use super::report::Report;

const RUNS: usize = 3;
const SECONDS: usize = 30;
const PYTHON: &str = "REPRISE_SCENEDETECT";

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    for (width, height) in [(1280, 720), (1920, 1080)] {
        let file = rendered(folder, width, height);
        one(&format!("rendered, {width}x{height}"), &file, report).await;
    }
    if let Some(data) = std::env::var_os("REPRISE_TEST_DATA") {
        let real = PathBuf::from(data).join("video/odd/psd_testvideo.mp4");
        if real.exists() {
            one("real footage, 1280x720", &real, report).await;
        }
    }
    report.meter("reprise: meter and hybrid", in_memory());
    if let Some(python) = std::env::var_os(PYTHON) {
        let output = Command::new(python).args(["-c", ON_FRAMES]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        report.meter("PySceneDetect: ContentDetector", text.parse().unwrap_or(f64::NAN));
    }
}

async fn one(footage: &str, file: &Path, report: &mut Report) {
    let decode = median(RUNS, async || {
        let clock = Clock::own();
        run(ffmpeg().arg("-i").arg(file).args(["-f", "null", "-"]));
        clock.read()
    })
    .await;
    report.segment(footage, "decode alone (`ffmpeg -i FILE -f null -`)", decode, decode);
    let cut = median(RUNS, async || cut(file)).await;
    report.segment(footage, "**decode, measure and cut**", cut, decode);
    if let Some(python) = std::env::var_os(PYTHON) {
        let other = median(RUNS, async || {
            let clock = Clock::own();
            run(Command::new(&python).args(["-c", ON_FILE]).arg(file));
            clock.read()
        })
        .await;
        let start = median(RUNS, async || {
            let clock = Clock::own();
            run(Command::new(&python).args(["-c", "import scenedetect"]));
            clock.read()
        })
        .await;
        let net = Cost { cpu: other.cpu - start.cpu, wall: other.wall - start.wall };
        report.segment(footage, "PySceneDetect (without its start)", net, decode);
    }
}

const ON_FILE: &str = "import sys, scenedetect as s; s.detect(sys.argv[1], s.ContentDetector())";
/// Prints microseconds per frame, the best of several rounds.
const ON_FRAMES: &str = "
import time, numpy, scenedetect as s
random = numpy.random.default_rng(1)
frames = [random.integers(0, 256, (144, 256, 3), dtype=numpy.uint8) for _ in range(64)]
codes = [s.FrameTimecode(i, fps=25.0) for i in range(64 * 21)]
detector, best = s.ContentDetector(), 1e9
for turn in range(21):
    began = time.perf_counter()
    for i, frame in enumerate(frames):
        detector.process_frame(codes[turn * 64 + i], frame)
    best = min(best, (time.perf_counter() - began) / 64 * 1e6)
print(best)
";

/// Shots of moving test pictures with little grain.
fn rendered(folder: &Path, width: u32, height: u32) -> PathBuf {
    let file = folder.join(format!("segment {width}x{height}.mp4"));
    let source =
        format!("testsrc2=s={width}x{height}:r=25:d={SECONDS},hue=h=90*floor(t/5),noise=alls=8:allf=t");
    run(ffmpeg()
        .args(["-f", "lavfi", "-i", &source, "-pix_fmt", "yuv420p"])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "24"])
        .arg(&file));
    file
}

fn cut(file: &Path) -> Cost {
    let clock = Clock::own();
    let limits = Limits::default();
    let probe = video::probe(file, &limits).unwrap();
    let (mut meter, mut segmenter) = (Meter::new(false), Segmenter::new(Segmentation::hybrid(30.0)));
    let request = Request { detect_width: Some(256), outputs: vec![] };
    for event in video::decode(file, &probe, request, &limits).unwrap() {
        if let Event::Detect(frame) = event.unwrap() {
            segmenter.push(&meter.measure(&frame));
        }
    }
    clock.read()
}

/// Microseconds per frame of 256x144, the best of several rounds. The frames are noise, in which every block moves.
fn in_memory() -> f64 {
    let mut state = 1_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let mut frame = |at: i64| {
        let rgb: Vec<u8> = (0..256 * 144 * 3).map(|_| byte()).collect();
        Frame { time_ms: at * 40, width: 256, height: 144, rgb: rgb.into() }
    };
    let frames: Vec<Frame> = (0..64).map(&mut frame).collect();
    let (mut meter, mut segmenter) = (Meter::new(false), Segmenter::new(Segmentation::hybrid(30.0)));
    let mut rounds = Vec::new();
    for round in 0..41 {
        let began = Instant::now();
        for frame in &frames {
            let mut scores = meter.measure(frame);
            scores.time_ms += round * 64 * 40;
            segmenter.push(&scores);
        }
        rounds.push(began.elapsed().as_secs_f64() / frames.len() as f64 * 1e6);
    }
    percentile(&mut rounds, 1)
}
