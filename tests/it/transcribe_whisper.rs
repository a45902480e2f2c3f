//! Speech written down by a Whisper in the server's own process, with small seeded weights: on both databases the track is
//! what the command line writes of the same file, after a crash too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::{PATIENCE, Server, binary};
use reprise_tests::test_data;
use serde_json::{Value, json};

/// Some seconds in which somebody speaks.
const SPEECH: &str = "video/clips/tc_nasa_13013.mp4";

/// The small model, as an operator names it.
fn model() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/whisper").to_str().unwrap().to_owned()
}

/// The real video four times over, without its subtitles: a new video that has some is not transcribed.
fn film(of: &Path, folder: &Path) -> PathBuf {
    let film = folder.join("film.mp4");
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-stream_loop", "3", "-i"]).arg(of);
    run(ffmpeg.args(["-map", "0:v", "-map", "0:a", "-c", "copy"]).arg(&film));
    film
}

fn serve(folder: &Path, more: &[&str]) -> Server {
    let model = model();
    let quick = ["--transcribe", &model, "--lease-seconds", "2", "--retry-waits", "0s"];
    Server::start(folder, &[&quick[..], more].concat())
}

/// What the command line writes of a file.
fn written(film: &Path, more: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.args(["transcribe", "--transcribe", &model()]).args(more).arg(film);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn path(video: &Value, of: &str) -> String {
    format!("/v1/videos/{}/{of}", video["id"].as_str().unwrap())
}

/// The newest transcription of a video.
async fn job(server: &Server, video: &Value) -> Value {
    let path = format!("/v1/jobs?kind=transcribe&video_id={}", video["id"].as_str().unwrap());
    server.get(&path).await.1["items"][0].clone()
}

/// Waits for a transcription, which must succeed with a track.
async fn ends(server: &Server, job: &Value) {
    let job = server.job_end(job["id"].as_str().unwrap()).await;
    assert_eq!((&job["state"], &job["note"]), (&json!("succeeded"), &Value::Null), "{job}");
}

/// The only track of a video, which this model made.
async fn track(server: &Server, video: &Value) -> Value {
    let (_, page) = server.get(&path(video, "subtitles")).await;
    let [track] = &page["items"].as_array().unwrap()[..] else { panic!("one track: {page}") };
    let shown = json!([track["kind"], track["provenance"], track["machine"]]);
    assert_eq!(shown, json!(["speech", model(), true]));
    track.clone()
}

/// The track as SubRip, on the file's own clock.
async fn srt(server: &Server, track: &Value) -> String {
    let path = format!("{}?format=srt&offset=0", track["url"].as_str().unwrap());
    let text = server.request("GET", &path).send().await.unwrap().text().await.unwrap();
    text.trim_end().to_owned()
}

/// Transcribes a real video, on the database that `more` names.
async fn check(more: &[&str]) {
    let Some(speech) = test_data(SPEECH) else { return };
    let folder = tempfile::tempdir().unwrap();
    let film = film(&speech, folder.path());
    let server = serve(folder.path(), more);
    let video = server.ingest(&film).await;
    ends(&server, &job(&server, &video).await).await;
    let made = track(&server, &video).await;
    assert!(["en", "de", "haw"].map(Value::from).contains(&made["language"]), "{made}");
    assert_eq!(srt(&server, &made).await, written(&film, &["--srt"]));

    let (_, page) = server.get(&path(&video, "transcript?limit=1000")).await;
    let lines = page["items"].as_array().unwrap();
    assert_eq!(json!(lines.len()), made["cues"]);
    for line in lines {
        let [start, end] = ["start", "end"].map(|name| line[name].as_f64().unwrap());
        assert!(0.0 <= start && start < end && end < 54.0 && line["machine"] == true, "{line}");
    }
    // The times of its words cut what is long.
    let heard: Value = serde_json::from_str(&written(&film, &["--json"])).unwrap();
    assert!(lines.len() > heard["segments"].as_array().unwrap().len(), "{page}");

    let words = lines.iter().flat_map(|line| line["text"].as_str().unwrap().split(' '));
    let is_word = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase());
    let word = words.filter(is_word).max_by_key(|word| word.len()).unwrap();
    let found = server.search_hits(json!({"query": {"text": word}, "sources": ["spoken"]})).await;
    assert_eq!(found[0]["video_id"], video["id"], "{word}: {found:?}");

    let again = server.request("POST", &path(&video, "transcribe"));
    let refused = again.json(&json!({"language": "fr", "replace": true}));
    let problem = server.refused(refused, 422).await;
    assert!(problem["detail"].as_str().unwrap().contains("does not know the language"), "{problem}");
    let german = json!({"language": "de", "replace": true});
    let (status, answer) = server.post(&path(&video, "transcribe"), &german).await;
    assert_eq!(status, 202, "{answer}");
    ends(&server, &answer["job"]).await;
    let made = track(&server, &video).await;
    assert_eq!(made["language"], "de");
    assert_eq!(srt(&server, &made).await, written(&film, &["--srt", "--language", "de"]));
}

#[tokio::test]
async fn a_model_in_the_process_writes_what_the_command_line_writes() {
    check(&[]).await;
}

#[tokio::test]
async fn a_model_in_the_process_writes_what_the_command_line_writes_on_postgres() {
    let Some(url) = reprise_tests::postgres::database().await else { return };
    check(&["--database-url", &url]).await;
}

/// Kills the server while it transcribes a film. `windows`: how many it writes side by side.
async fn check_crash(windows: &str) {
    let Some(speech) = test_data(SPEECH) else { return };
    let folder = tempfile::tempdir().unwrap();
    let film = film(&speech, folder.path());
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/silero/model.safetensors");
    let detector = ["--vad", weights.to_str().unwrap()];
    let flags = [&detector[..], &["--transcribe-windows", windows]].concat();
    let server = serve(folder.path(), &flags);
    let video = server.ingest(&film).await;
    let deadline = Instant::now() + PATIENCE;
    // Some windows are stored; it does not matter how many.
    while job(&server, &video).await["progress"].as_f64().is_none_or(|it| it <= 0.0) {
        assert!(Instant::now() < deadline, "no window is finished");
        tokio::task::yield_now().await;
    }
    server.kill();
    let server = serve(folder.path(), &flags);
    ends(&server, &job(&server, &video).await).await;
    let made = track(&server, &video).await;
    assert_eq!(
        srt(&server, &made).await,
        written(&film, &[&["--srt", "--windows", windows][..], &detector].concat())
    );
}

#[tokio::test]
async fn a_crash_loses_no_window_and_changes_no_word() {
    check_crash("1").await;
}

#[tokio::test]
async fn a_crash_loses_no_window_of_those_that_are_written_side_by_side() {
    check_crash("4").await;
}
