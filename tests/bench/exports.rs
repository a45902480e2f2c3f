//! Seconds per minute of film: exports beside ffmpeg's own cutting of the same ranges.

use std::path::{Path, PathBuf};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::cpu::{Cost, Meter, median};
use super::ingest::rendered;
use super::report::Report;

const RUNS: usize = 3;
/// Start and end of each range, in seconds.
const RANGES: [(f64, f64); 6] =
    [(2.0, 9.0), (11.0, 15.0), (20.0, 30.0), (31.0, 36.0), (40.0, 52.0), (55.0, 62.0)];

/// A way to cut.
struct Way {
    name: &'static str,
    /// The option `cut` of an export.
    cut: &'static str,
    /// ffmpeg's encoder of pictures.
    encoder: &'static [&'static str],
}

const WAYS: [Way; 2] = [
    Way {
        name: "encoded anew",
        cut: "exact",
        encoder: &["-c:v", "libx264", "-preset", "veryfast", "-crf", "20"],
    },
    Way { name: "copied", cut: "copy", encoder: &["-c", "copy"] },
];

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let file = rendered(folder, 1280, 720, 9);
    let data = folder.join("exports");
    std::fs::create_dir_all(&data).unwrap();
    let server = Server::start(&data, &[]);
    let video = server.ingest(&file).await["id"].as_str().unwrap().to_owned();
    let minutes = RANGES.iter().map(|(start, end)| end - start).sum::<f64>() / 60.0;
    for way in &WAYS {
        let theirs = median(RUNS, async || cut_by_ffmpeg(folder, &file, way)).await.per(minutes);
        let ours = median(RUNS, async || export(&server, &video, way).await).await.per(minutes);
        report.export(&format!("{}, by ffmpeg alone", way.name), theirs, theirs);
        report.export(&format!("{}, **export** (server and its ffmpeg)", way.name), ours, theirs);
    }
}

/// One ffmpeg for each range, and one that joins their files.
fn cut_by_ffmpeg(folder: &Path, file: &Path, way: &Way) -> Cost {
    let meter = Meter::own();
    let mut list = String::new();
    for (place, (start, end)) in RANGES.iter().enumerate() {
        let part: PathBuf = folder.join(format!("part{place}.mp4"));
        let mut ffmpeg = ffmpeg();
        ffmpeg.args(["-ss", &start.to_string(), "-t", &(end - start).to_string(), "-i"]).arg(file);
        run(ffmpeg.args(way.encoder).arg(&part));
        list += &format!("file '{}'\n", part.display());
    }
    let names = folder.join("parts.txt");
    std::fs::write(&names, list).unwrap();
    let mut join = ffmpeg();
    join.args(["-f", "concat", "-safe", "0", "-i"]).arg(&names).args([
        "-c",
        "copy",
        "-movflags",
        "+faststart",
    ]);
    run(join.arg(folder.join("joined.mp4")));
    meter.read()
}

async fn export(server: &Server, video: &str, way: &Way) -> Cost {
    let range = |(start, end): &(f64, f64)| json!({"video_id": video, "start": start, "end": end});
    let ranges: Vec<Value> = RANGES.iter().map(range).collect();
    let meter = Meter::of(server.pid().to_string());
    let request = json!({"format": "mp4", "cut": way.cut, "ranges": ranges});
    let (status, answer) = server.post("/v1/exports", &request).await;
    assert_eq!(status, 202, "{answer}");
    let job = server.job_end(answer["id"].as_str().unwrap()).await;
    assert_eq!(job["state"], "succeeded", "{job}");
    meter.read()
}
