//! CPU seconds per minute of video: an ingest against its unavoidable parts, decoding and encoding.

use std::path::{Path, PathBuf};

use reprise_encoders::video::{self, Event, Limits, Output, Probe, Request};
use reprise_encoders::{Clip, Frame, Input, ModelName};
use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;

use super::cpu::{Cost, Meter, median};
use super::report::Report;

const RUNS: usize = 3;
const MODEL: &str = "builtin:tiny";
/// Sampling rate of `builtin:tiny`, repeated here because this part runs the decoder alone.
const FRAMES_PER_SECOND: f64 = 2.0;
const SHOT_SECONDS: usize = 7;

/// A film to ingest.
struct Footage {
    name: String,
    file: PathBuf,
    probe: Probe,
}

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let mut films = vec![("rendered, 1280x720".to_owned(), rendered(folder, 1280, 720, 9))];
    films.push(("rendered, 320x180".to_owned(), rendered(folder, 320, 180, 9)));
    if let Some(data) = std::env::var_os("REPRISE_TEST_DATA") {
        let real = PathBuf::from(data).join("video/odd/psd_testvideo.mp4");
        films.extend(real.exists().then(|| ("real footage, 1280x720".to_owned(), real)));
    }
    for (name, file) in films {
        let probe = video::probe(&file, &Limits::default()).unwrap();
        one(folder, &Footage { name, file, probe }, report).await;
    }
}

/// Shots of moving test pictures with grain, about as costly to decode as camera footage.
pub(crate) fn rendered(folder: &Path, width: u32, height: u32, shots: usize) -> PathBuf {
    let file = folder.join(format!("{width}x{height}.mp4"));
    let mut ffmpeg = ffmpeg();
    for shot in 0..shots {
        let negate = if shot % 2 == 1 { ",negate" } else { "" };
        let source =
            format!("testsrc2=s={width}x{height}:r=25,hue=h={}{negate},noise=alls=12:allf=t", shot * 67);
        ffmpeg.args(["-t", &SHOT_SECONDS.to_string(), "-f", "lavfi", "-i", &source]);
    }
    let inputs: String = (0..shots).map(|shot| format!("[{shot}:v]")).collect();
    let graph = format!("{inputs}concat=n={shots}:v=1,format=yuv420p[v]");
    run(ffmpeg
        .args(["-filter_complex", &graph, "-map", "[v]", "-c:v", "libx264", "-preset", "veryfast"])
        .args(["-crf", "26", "-movflags", "+faststart"])
        .arg(&file));
    file
}

async fn one(folder: &Path, footage: &Footage, report: &mut Report) {
    let minutes = footage.probe.duration_ms as f64 / 60_000.0;
    let decode = median(RUNS, async || bare_decode(&footage.file)).await.per(minutes);
    let pass = median(RUNS, async || decode_pass(footage).0).await.per(minutes);
    let encode = encode(footage).await.per(minutes);
    let ingest = ingest(&folder.join("ingest"), &footage.file).await.per(minutes);
    let floor = Cost { cpu: decode.cpu + encode.cpu, wall: decode.wall + encode.wall };
    report.ingest(&footage.name, "decode alone (`ffmpeg -f null`)", decode, floor);
    report.ingest(&footage.name, "encode alone", encode, floor);
    report.ingest(&footage.name, "decode and scale for detector and encoder", pass, floor);
    report.ingest(&footage.name, "**ingest** (server and its ffmpeg)", ingest, floor);
}

fn bare_decode(file: &Path) -> Cost {
    let meter = Meter::own();
    run(ffmpeg().arg("-i").arg(file).args(["-an", "-f", "null", "-"]));
    meter.read()
}

/// The decode pass of an ingest; frames for the cut detector are dropped. Returns the cost and the sampled frames.
fn decode_pass(footage: &Footage) -> (Cost, Vec<Frame>) {
    let space = reprise_encoders::load(&MODEL.parse::<ModelName>().unwrap(), 1).unwrap().space;
    let output = Output { scaling: space.scaling, per_second: Some(FRAMES_PER_SECOND) };
    let request = Request { detect_width: Some(256), outputs: vec![output] };
    let meter = Meter::own();
    let mut frames = Vec::new();
    for event in video::decode(&footage.file, &footage.probe, request, &Limits::default()).unwrap() {
        if let Event::Sampled { frame, .. } = event.unwrap() {
            frames.push(frame);
        }
    }
    (meter.read(), frames)
}

async fn encode(footage: &Footage) -> Cost {
    let frames = decode_pass(footage).1;
    let clip = |frames: &[Frame]| Input::Frames(Clip { frames: frames.to_vec() });
    let clips: Vec<Input> = frames.chunks(SHOT_SECONDS * FRAMES_PER_SECOND as usize).map(clip).collect();
    let mut loaded = reprise_encoders::load(&MODEL.parse::<ModelName>().unwrap(), 1).unwrap();
    let encoder = &mut loaded.encoders[0];
    // A single pass is shorter than a clock tick.
    let times = 20;
    let cost = median(RUNS, async || {
        let meter = Meter::own();
        for _ in 0..times {
            clips.iter().for_each(|clip| drop(encoder.encode(std::slice::from_ref(clip)).unwrap()));
        }
        meter.read()
    });
    cost.await.per(f64::from(times))
}

async fn ingest(data: &Path, file: &Path) -> Cost {
    std::fs::create_dir_all(data).unwrap();
    let server = Server::start(data, &["--runners", "1"]);
    median(RUNS, async || {
        let meter = Meter::of(server.pid().to_string());
        let video = server.ingest(file).await;
        let cost = meter.read();
        server.delete(&format!("/v1/videos/{}", video["id"].as_str().unwrap())).await;
        cost
    })
    .await
}
