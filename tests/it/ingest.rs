//! Ingest of a file through a running server: several models, given clips, long videos.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::is_full;
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::faults::bed::{
    Bed, assert_consistent, assert_covered, assert_whole, clips, job, see_through, text, until, upload,
};

/// A model with vectors of another dimension.
const OTHER_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/legacy");

async fn space_of(server: &Server, model: &str) -> Value {
    let (_, spaces) = server.get("/v1/spaces").await;
    let all = spaces["items"].as_array().expect("spaces are a list");
    all.iter().find(|it| it["model"] == model).unwrap_or_else(|| panic!("no {model} in {spaces}")).clone()
}

async fn assert_covers_all(server: &Server, model: &str) -> Value {
    let covers = async || {
        let space = space_of(server, model).await;
        (space["coverage"].as_f64() == Some(1.0)).then_some(space)
    };
    until("the space covers all videos", covers).await
}

/// Number of ffmpeg runs that read a file from its start.
fn passes(bed: &Bed) -> usize {
    bed.runs().iter().filter(|run| !run.contains(" -ss ") && !run.contains(" -i pipe:0 ")).count()
}

#[tokio::test]
async fn two_models_are_filled_from_one_decode() {
    let bed = Bed::sqlite();
    let server =
        bed.start(&["--model", "text,composed=builtin:tiny", "--model", &format!("clip={OTHER_MODEL}")]);
    let before = passes(&bed);
    let (status, answer) = server.upload(&bed.film(0, 3), &[]).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let uploaded = passes(&bed);
    see_through(&server, text(&answer, "/job/id")).await;
    assert_eq!(passes(&bed) - uploaded, 1, "{:?}", bed.runs());
    assert_eq!(uploaded - before, 0, "an upload is only probed: {:?}", bed.runs());
    for model in ["builtin:tiny", OTHER_MODEL] {
        let space = assert_covers_all(&server, model).await;
        assert_eq!(space["clips"], 3, "{space}");
    }
    assert_whole(&server, text(&answer, "/video/id")).await;
}

#[tokio::test]
async fn a_new_model_fills_its_space_in_the_background() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let mut videos = Vec::new();
    for number in 0..2 {
        videos.push(text(&server.ingest(&bed.film(number, 3)).await, "/id").to_owned());
    }
    assert!(server.stop(), "it did not stop well");
    let server = bed.start(&["--model", OTHER_MODEL, "--model", "builtin:tiny"]);
    let before = bed.runs().len();
    let new = assert_covers_all(&server, OTHER_MODEL).await;
    assert_eq!((&new["clips"], &new["videos"]), (&json!(6), &json!(2)), "{new}");
    assert_covers_all(&server, "builtin:tiny").await;
    for video in &videos {
        assert_whole(&server, video).await;
    }
    // Three clips are measured. Then one pass over each file gives clips and full video. The next start has nothing to fill.
    assert_eq!(passes(&bed), 3 + 4, "{:?}", &bed.runs()[before..]);
    assert!(server.stop(), "it did not stop well");
    let server = bed.start(&["--model", OTHER_MODEL, "--model", "builtin:tiny"]);
    let (_, queued) = server.get("/v1/jobs?kind=fill&state=queued").await;
    let (_, all) = server.get("/v1/jobs?kind=fill").await;
    assert_eq!(queued["items"], json!([]));
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2), "{all}");
}

#[tokio::test]
async fn a_process_without_ffmpeg_hands_its_job_back_to_one_that_has_it() {
    let bed = Bed::sqlite();
    let server = Server::try_start_with(&bed.data(), &[], &[("REPRISE_FFMPEG", Path::new("/no/such"))]);
    let server = server.unwrap_or_else(|said| panic!("the server did not start:\n{said}"));
    let (_, id) = upload(&server, &bed.film(0, 3)).await;
    let released = async || server.metric(r#"reprise_jobs_total{outcome="released"}"#).await;
    assert_eq!(until("the job is handed back", released).await, 1.0);
    let queued = job(&server, &id).await;
    assert_eq!((&queued["state"], &queued["attempts"]), (&json!("queued"), &json!(0)), "{queued}");
    assert!(server.stop(), "it did not stop well");
    see_through(&bed.start(&[]), &id).await;
}

#[tokio::test]
async fn given_clips_of_any_length_are_searchable_beside_found_ones() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    // Given clips: shorter than a sampling interval, one frame long, overlapping, long enough to be subsampled, past
    // the end.
    let given = [(0.3, 0.4), (2.0, 2.04), (1.0, 5.0), (0.0, 76.0), (70.0, 500.0)];
    let given = given.map(|(start, end)| json!({"start": start, "end": end, "metadata": {"start": start}}));
    let parts = [("segmentation", json!({"policy": "content", "clips": given}))];
    let video = server.ingest_with(&bed.film(0, 38), &parts).await;
    let id = text(&video, "/id");
    let all = assert_covered(&server, id).await;
    let mut kept: Vec<(f64, f64)> = all
        .iter()
        .filter(|clip| clip["given"] == true)
        .map(|clip| (clip["start"].as_f64().unwrap(), clip["end"].as_f64().unwrap()))
        .collect();
    kept.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(kept, [(0.0, 76.0), (0.3, 0.4), (1.0, 5.0), (2.0, 2.04), (70.0, 76.0)]);
    assert_eq!(all.len() - kept.len(), 38, "one clip a shot");
    assert_whole(&server, id).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_clip_given_after_the_end_is_kept_with_a_warning() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let given = json!([{"start": 1.0, "end": 2.0}, {"start": 100.0, "end": 101.0}]);
    let parts = [("segmentation", json!({"policy": "given", "clips": given}))];
    let video = server.ingest_with(&bed.film(0, 2), &parts).await;
    assert_eq!((&video["state"], &video["clips"]), (&json!("ready"), &json!(2)), "{video}");
    assert!(text(&video, "/warnings/0").contains("after the video's end"), "{video}");
    assert!(server.stop(), "it did not stop well");
    // The clip past the end needs no fill, however often the server starts.
    let server = bed.start(&[]);
    assert_eq!(server.get("/v1/jobs?kind=fill").await.1["items"], json!([]));
}

#[tokio::test]
async fn many_given_clips_between_the_samples_cost_one_more_pass() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let given: Vec<Value> =
        (0..60).map(|i| f64::from(i) * 0.1).map(|at| json!({"start": at, "end": at + 0.05})).collect();
    let parts = [("segmentation", json!({"policy": "given", "clips": given}))];
    let before = bed.runs().len();
    let video = server.ingest_with(&bed.film(0, 3), &parts).await;
    assert_eq!(video["clips"], 60, "{video}");
    assert_eq!(passes(&bed), 2, "{:?}", &bed.runs()[before..]);
    for clip in clips(&server, text(&video, "/id")).await {
        let query =
            json!({"query": {"clip_id": clip["id"]}, "exact": true, "exclude": {"self": false}, "limit": 60});
        assert!(server.search_hits(query).await.iter().any(|hit| hit["clip_id"] == clip["id"]), "{clip}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_clip_given_later_is_sought_and_not_decoded_from_the_start() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 10)).await;
    let before = passes(&bed);
    let path = format!("/v1/videos/{}/clips", text(&video, "/id"));
    let (status, added) = server.post(&path, &json!({"start": 12.5, "end": 13.5})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{added}");
    see_through(&server, text(&added, "/job/id")).await;
    assert_eq!(passes(&bed), before, "{:?}", bed.runs());
    assert_whole(&server, text(&video, "/id")).await;
    assert_consistent(&server).await;
}

/// Length of a shot in the long film, in seconds.
const SHOT: usize = 7;

/// A film of `shots` shots that stream copy joins from a few rendered ones: two hours take seconds to render.
fn long_film(folder: &Path, shots: usize) -> PathBuf {
    let hues = [0, 120, 240, 60, 180, 300];
    let mut list = String::new();
    for (number, hue) in hues.into_iter().enumerate() {
        let negate = if number % 2 == 1 { ",negate" } else { "" };
        let source = format!("testsrc2=s=320x180:r=25,hue=h={hue}{negate}");
        let file = folder.join(format!("shot{number}.mp4"));
        let encode = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"];
        run(ffmpeg().args(["-f", "lavfi", "-i", &source, "-t", &SHOT.to_string()]).args(encode).arg(&file));
    }
    for shot in 0..shots {
        list += &format!("file 'shot{}.mp4'\n", shot % hues.len());
    }
    fs::write(folder.join("list.txt"), list).unwrap();
    let film = folder.join("long.mp4");
    run(ffmpeg()
        .args(["-f", "concat", "-safe", "0", "-i"])
        .arg(folder.join("list.txt"))
        .args(["-c", "copy"])
        .arg(&film));
    film
}

/// Peak resident memory of a process in kB; `None` if it is gone.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn children(pid: u32) -> Vec<u32> {
    let of_thread = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .map(of_thread)
        .flat_map(|all| all.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_long_video_never_sits_in_memory_and_its_clips_cover_it() {
    let shots = if is_full() { 1029 } else { 43 };
    let bed = Bed::sqlite();
    let film = long_film(bed.folder(), shots);
    let server = bed.start(&[]);
    let (status, answer) = server.upload(&film, &[]).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let (video, id) = (text(&answer, "/video/id"), text(&answer, "/job/id"));
    let started = Instant::now();
    let mut of_children: BTreeMap<u32, u64> = BTreeMap::new();
    let ended = loop {
        of_children.extend(children(server.pid()).into_iter().filter_map(|pid| Some((pid, peak(pid)?))));
        let (_, job) = server.get(&format!("/v1/jobs/{id}")).await;
        if job["state"] != "queued" && job["state"] != "running" {
            break job;
        }
        assert!(started.elapsed() < Duration::from_secs(3600), "still {job}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let (own, child) = (peak(server.pid()).unwrap(), of_children.values().copied().max().unwrap_or_default());
    println!(
        "{} s of video in {:.0} s; peak memory: server {} MB, its ffmpeg {} MB",
        shots * SHOT,
        started.elapsed().as_secs_f64(),
        own / 1000,
        child / 1000
    );
    assert!(own + child < 1_500_000, "{own} + {child} kB");
    let clips = assert_covered(&server, video).await;
    let starts: Vec<f64> = clips.iter().map(|clip| clip["start"].as_f64().unwrap()).collect();
    let expected: Vec<f64> = (0..shots).map(|shot| (shot * SHOT) as f64).collect();
    assert_eq!(starts, expected, "one clip a shot");
    assert_consistent(&server).await;
}
