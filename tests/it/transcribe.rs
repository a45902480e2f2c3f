//! Speech written down by a service, through a running server: new videos and stored ones, whose subtitles count, what comes
//! back after a crash, and what a service does wrong.

use std::path::Path;

use reprise_tests::film::{Store, ffmpeg, film, run};
use reprise_tests::server::Server;
use reprise_tests::speech::{Fault, Said, StandIn, spoken_film};
use serde_json::{Value, json};

use crate::faults::bed::until;

/// What the stand-in understands, by pitch.
const SENTENCES: [&str; 5] = [
    "Welcome back to the lecture on tokenizers.",
    "Byte pair encoding merges the pair of symbols that occurs most often.",
    "Unigram removes pieces whose loss hurts least.",
    "A harmonica plays in the background.",
    "Next week we train our own model.",
];
/// Jobs are tried again at once.
const QUICK: [&str; 4] = ["--lease-seconds", "2", "--retry-waits", "0s"];

fn said(start: f64, end: f64, sentence: usize) -> Said {
    Said { start, end, sentence }
}

/// A server whose speech is written down by a stand-in.
struct Bed {
    folder: tempfile::TempDir,
    service: StandIn,
    server: Server,
}

impl Bed {
    fn start(more: &[&str]) -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let service = StandIn::start(&SENTENCES);
        let server = serve(folder.path(), &service, more);
        Bed { folder, service, server }
    }

    fn film(&self, name: &str, seconds: u32, said: &[Said]) -> std::path::PathBuf {
        spoken_film(self.folder.path(), name, seconds, said)
    }

    /// The transcription of a video as it ended.
    async fn transcribed(&self, video: &Value) -> Value {
        let job = self.job(video).await;
        self.server.job_end(job["id"].as_str().unwrap()).await
    }

    /// The newest transcription of a video.
    async fn job(&self, video: &Value) -> Value {
        job(&self.server, video).await
    }

    async fn tracks(&self, video: &Value) -> Vec<Value> {
        let path = format!("/v1/videos/{}/subtitles", id(video));
        self.server.get(&path).await.1["items"].as_array().unwrap().clone()
    }

    async fn text(&self, path: &str) -> String {
        self.server.request("GET", path).send().await.unwrap().text().await.unwrap()
    }

    /// Lines of a video as (start, text), in seconds rounded to tenths.
    async fn lines(&self, video: &Value) -> Vec<(f64, String)> {
        let (_, page) = self.server.get(&format!("/v1/videos/{}/transcript", id(video))).await;
        let line = |it: &Value| {
            let start = it["start"].as_f64().unwrap();
            ((start * 10.0).round() / 10.0, it["text"].as_str().unwrap().to_owned())
        };
        page["items"].as_array().unwrap().iter().map(line).collect()
    }

    /// Asks for a transcription that must be accepted; the job as it ended.
    async fn ask(&self, video: &Value, body: Value) -> Value {
        let (status, answer) = self.server.post(&format!("/v1/videos/{}/transcribe", id(video)), &body).await;
        assert_eq!(status, 202, "{answer}");
        self.server.job_end(answer["job"]["id"].as_str().unwrap()).await
    }

    /// Asks for a transcription that must be refused. Returns the place of the fault.
    async fn refused(&self, video: &Value, body: Value, status: u16, why: &str) -> Value {
        let path = format!("/v1/videos/{}/transcribe", id(video));
        let problem = self.server.refused(self.server.request("POST", &path).json(&body), status).await;
        assert!(problem["detail"].as_str().unwrap().contains(why), "{why}: {problem}");
        problem["errors"][0]["pointer"].clone()
    }

    async fn put(&self, video: &Value, language: &str, text: &str) {
        let path = format!("/v1/videos/{}/subtitles/{language}", id(video));
        let request = self.server.request("PUT", &path).header("content-type", "text/vtt");
        let (status, answer) = self.server.send(request.body(text.to_owned())).await;
        assert_eq!((status.as_u16(), &answer["machine"]), (200, &json!(false)), "{answer}");
    }
}

fn serve(folder: &Path, service: &StandIn, more: &[&str]) -> Server {
    let mut arguments = vec!["--transcribe-url", service.url.as_str(), "--transcribe-model", "whisper-large"];
    arguments.extend(QUICK);
    arguments.extend(more);
    Server::start(folder, &arguments)
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn note(job: &Value) -> &str {
    assert_eq!(job["state"], "succeeded", "{job}");
    job["note"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_new_video_is_found_by_what_is_said_in_it() {
    let bed = Bed::start(&["--transcribe-key", "sesame"]);
    let film = bed.film("lecture.mp4", 14, &[said(1.0, 3.0, 0), said(4.0, 7.0, 1), said(9.0, 11.0, 3)]);
    let video = bed.server.ingest(&film).await;
    let job = bed.transcribed(&video).await;
    assert_eq!((note(&job), &job["progress"]), ("", &json!(1.0)), "{job}");

    let expected = [(1.0, SENTENCES[0]), (4.0, SENTENCES[1]), (9.0, SENTENCES[3])];
    let lines = bed.lines(&video).await;
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for ((start, text), (at, said)) in lines.iter().zip(expected) {
        assert!((start - at).abs() < 0.2 && text == said, "{lines:?}");
    }
    let [track] = &bed.tracks(&video).await[..] else { panic!("one track") };
    let shown =
        json!([track["kind"], track["language"], track["provenance"], track["machine"], track["cues"]]);
    assert_eq!(shown, json!(["speech", "en", "whisper-large", true, 3]));
    let (_, page) = bed.server.get(&format!("/v1/videos/{}/transcript", id(&video))).await;
    assert_eq!(page["items"][0]["machine"], json!(true), "{page}");

    let found = bed.server.search_hits(json!({"query": {"text": "harmonica"}, "sources": ["spoken"]})).await;
    assert_eq!(found[0]["video_id"], video["id"], "{found:?}");
    let url = track["url"].as_str().unwrap();
    assert!(bed.text(url).await.starts_with("WEBVTT\n\n00:00:0"), "WebVTT");
    let srt = bed.text(&format!("{url}?format=srt")).await;
    assert!(srt.starts_with("1\n00:00:0") && srt.contains(SENTENCES[3]), "{srt}");

    let asked = bed.service.asked();
    assert_eq!(asked[0].authorization, "Bearer sesame");
    assert_eq!(asked[0].field("model"), Some("whisper-large"));
    assert_eq!(asked[0].field("response_format"), Some("verbose_json"));
    assert!(asked.iter().all(|it| it.seconds < 120.5), "{asked:?}");
}

#[tokio::test]
async fn a_persons_subtitles_outrank_what_a_machine_hears() {
    let bed = Bed::start(&[]);
    let video = bed.server.ingest(&bed.film("a.mp4", 6, &[said(1.0, 3.0, 0)])).await;
    bed.transcribed(&video).await;
    for (body, status, why, place) in [
        (json!({}), 409, "by whisper-large: send \"replace\": true", "/replace"),
        (json!({"language": "english"}), 422, "language tag", "/language"),
        (json!({"languages": "en"}), 422, "languages", "/languages"),
    ] {
        assert_eq!(bed.refused(&video, body, status, why).await, place);
    }

    bed.service.speaks("german");
    assert_eq!(note(&bed.ask(&video, json!({"replace": true})).await), "");
    let languages: Vec<Value> = bed.tracks(&video).await.iter().map(|it| it["language"].clone()).collect();
    assert_eq!(languages, [json!("de")], "a machine's track replaces those of machines");

    // A correction: from then on the track is a person's.
    bed.put(&video, "de", "WEBVTT\n\n00:01.000 --> 00:03.000\nWillkommen zurück\n").await;
    assert_eq!(bed.lines(&video).await, [(1.0, "Willkommen zurück".to_owned())]);
    let asked = json!({"language": "de-AT", "replace": true});
    assert_eq!(bed.refused(&video, asked, 409, "a person's subtitles in `de`").await, "/language");
    let job = bed.ask(&video, json!({})).await;
    assert!(note(&job).contains("a person's subtitles in `de` (upload) stay"), "{job}");
    assert_eq!(bed.lines(&video).await, [(1.0, "Willkommen zurück".to_owned())]);
    // In another language both stay.
    assert_eq!(note(&bed.ask(&video, json!({"language": "en-GB"})).await), "");
    assert_eq!(bed.tracks(&video).await.len(), 2);
    assert_eq!(bed.service.asked().last().unwrap().field("language"), Some("en"));
}

#[tokio::test]
async fn a_new_video_with_subtitles_is_left_alone() {
    let bed = Bed::start(&[]);
    let film = bed.film("a.mp4", 6, &[said(1.0, 3.0, 0)]);
    let subtitles = bed.folder.path().join("a.en.srt");
    std::fs::write(&subtitles, "1\n00:00:01,000 --> 00:00:02,000\nwelcome\n").unwrap();
    let form = reqwest::multipart::Form::new().file("file", &film).await.unwrap();
    let form = form.file("subtitles", &subtitles).await.unwrap();
    let (_, added) = bed.server.send(bed.server.request("POST", "/v1/videos").multipart(form)).await;
    bed.server.job_end(id(&added["job"])).await;
    let silent = bed.server.ingest(&film_without_sound(bed.folder.path())).await;
    for video in [&added["video"], &silent] {
        assert_eq!(bed.job(video).await, Value::Null, "no transcription");
    }
    assert_eq!(note(&bed.ask(&silent, json!({})).await), "the video has no sound");
    assert!(bed.service.asked().is_empty());
    let quiet = bed.server.ingest(&bed.film("quiet.mp4", 8, &[])).await;
    assert_eq!(note(&bed.transcribed(&quiet).await), "nobody speaks in the video");
    assert!(bed.tracks(&quiet).await.is_empty());
}

/// The film with its sound as ffmpeg makes it by these options.
fn changed(film: &Path, name: &str, options: &[&str]) -> std::path::PathBuf {
    let changed = film.with_file_name(name);
    run(ffmpeg().arg("-i").arg(film).args(["-c", "copy"]).args(options).arg(&changed));
    changed
}

#[tokio::test]
async fn odd_and_damaged_sound_is_written_down_as_far_as_it_goes() {
    let bed = Bed::start(&[]);
    let plain = bed.film("plain.mp4", 12, &[said(1.0, 3.0, 0), said(5.0, 8.0, 1)]);
    for (name, options, noted) in [
        ("surround.mp4", &["-c:a", "aac", "-af", "pan=5.1|FC=c0"][..], ""),
        ("telephone.mp4", &["-c:a", "aac", "-ar", "8000"], ""),
        ("damaged.mp4", &["-bsf:a", "noise=amount=300"], "the sound is damaged"),
    ] {
        let video = bed.server.ingest(&changed(&plain, name, options)).await;
        let job = bed.transcribed(&video).await;
        assert!(note(&job).contains(noted) && note(&job).is_empty() == noted.is_empty(), "{name}: {job}");
        let lines = bed.lines(&video).await;
        if noted.is_empty() {
            let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, [SENTENCES[0], SENTENCES[1]], "{name}");
            assert!((lines[1].0 - 5.0).abs() < 0.3, "{name}: {lines:?}");
        }
    }
}

#[tokio::test]
async fn an_hour_of_silence_is_nothing_said_and_nothing_sent() {
    let bed = Bed::start(&[]);
    let silent = bed.folder.path().join("silent.mp4");
    let mut hour = ffmpeg();
    hour.args(["-t", "3600", "-f", "lavfi", "-i", "color=c=gray:s=64x64:r=1"]);
    hour.args(["-t", "3600", "-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono"]);
    hour.args(["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]);
    run(hour.arg(&silent));
    let video = bed.server.ingest(&silent).await;
    assert_eq!(note(&bed.transcribed(&video).await), "nobody speaks in the video");
    assert!(bed.service.asked().is_empty() && bed.tracks(&video).await.is_empty());
}

async fn job(server: &Server, video: &Value) -> Value {
    let path = format!("/v1/jobs?kind=transcribe&video_id={}", id(video));
    server.get(&path).await.1["items"][0].clone()
}

/// Waits until the windows before this share of the video are stored. The next one is heard meanwhile.
async fn until_stored(server: &Server, video: &Value, share: f64) {
    let reached = async || job(server, video).await["progress"].as_f64().filter(|reached| *reached >= share);
    until("the windows are stored", reached).await;
}

fn film_without_sound(folder: &Path) -> std::path::PathBuf {
    film(folder, "mute", &["testsrc2"], Store::Web)
}

#[tokio::test]
async fn finished_windows_survive_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let service = StandIn::start(&SENTENCES);
    let server = serve(folder.path(), &service, &[]);
    // Pauses of more than 4 s part windows.
    let spoken = [said(1.0, 3.0, 0), said(10.0, 12.0, 1), said(19.0, 21.0, 2), said(28.0, 30.0, 4)];
    let film = spoken_film(folder.path(), "a.mp4", 33, &spoken);
    service.answers(Some(2));
    let video = server.ingest(&film).await;
    service.until_asked(3);
    until_stored(&server, &video, 12.0 / 33.0).await;
    server.kill();
    service.answers(None);
    let server = serve(folder.path(), &service, &[]);
    let bed = Bed { folder, service, server };
    let job = bed.transcribed(&video).await;
    assert_eq!(note(&job), "", "{job}");
    let texts: Vec<String> = bed.lines(&video).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [SENTENCES[0], SENTENCES[1], SENTENCES[2], SENTENCES[4]]);
    // Only the window that was not answered is asked again.
    let asked = bed.service.asked();
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert!(asked[4].field("prompt").is_some_and(|it| it.contains("Unigram")), "{asked:?}");
}

#[tokio::test]
async fn a_transcription_is_cancelled_and_goes_on_where_it_stopped() {
    let bed = Bed::start(&[]);
    let spoken = [said(1.0, 3.0, 0), said(10.0, 12.0, 1)];
    bed.service.answers(Some(1));
    let video = bed.server.ingest(&bed.film("a.mp4", 15, &spoken)).await;
    bed.service.until_asked(2);
    until_stored(&bed.server, &video, 3.0 / 15.0).await;
    let job = bed.job(&video).await;
    assert_eq!(job["state"], "running", "{job}");
    assert_eq!(bed.refused(&video, json!({}), 409, "being transcribed").await, Value::Null);
    let (status, _) = bed.server.post(&format!("/v1/jobs/{}/cancel", id(&job)), &json!({})).await;
    assert_eq!(status, 200);
    bed.service.answers(None);
    let (_, again) = bed.server.post(&format!("/v1/jobs/{}/retry", id(&job)), &json!({})).await;
    assert_eq!(note(&bed.server.job_end(id(&again)).await), "");
    assert_eq!(bed.lines(&video).await.len(), 2);
    assert_eq!(bed.service.asked().len(), 3, "the first window is kept");
}

/// A transcription whose service does these wrong.
async fn with_faults(bed: &Bed, film: &Path, faults: &[Fault]) -> Value {
    bed.service.fails(faults);
    let (_, added) = bed.server.upload(film, &[]).await;
    bed.server.job_end(id(&added["job"])).await;
    let job = bed.transcribed(&added["video"]).await;
    bed.server.delete(&format!("/v1/videos/{}?purge=true", id(&added["video"]))).await;
    job
}

#[tokio::test]
async fn a_service_that_fails_is_asked_again_while_that_may_help() {
    let bed = Bed::start(&["--transcribe-seconds", "2"]);
    let film = |name: &str| bed.film(name, 5, &[said(1.0, 3.0, 0)]);
    let passing = [
        Fault::Status(503, "busy"),
        Fault::Close,
        Fault::Status(429, r#"{"error": {"message": "slow down"}}"#),
    ];
    let job = with_faults(&bed, &film("a.mp4"), &passing).await;
    assert_eq!((note(&job), &job["attempts"]), ("", &json!(1)), "{job}");
    let job = with_faults(&bed, &film("b.mp4"), &[Fault::Silent]).await;
    assert_eq!(note(&job), "", "{job}");
    let busy = vec![Fault::Status(500, "out of memory"); 4];
    let job = with_faults(&bed, &film("c.mp4"), &busy).await;
    assert_eq!(
        (note(&job), &job["attempts"]),
        ("", &json!(2)),
        "the next attempt of the job succeeds: {job}"
    );
}

#[tokio::test]
async fn a_service_that_can_not_help_fails_the_job_and_says_why() {
    let bed = Bed::start(&[]);
    for (number, (fault, why)) in [
        (
            Fault::Status(401, r#"{"error": {"message": "no such key"}}"#),
            "answered 401: {\"error\": {\"message\": \"no such key\"}}",
        ),
        (Fault::Status(302, ""), "redirects are not followed"),
        (Fault::Flood(5 << 20), "more than 4194304 bytes"),
        (Fault::Body("<html>hello</html>"), "no verbose_json"),
        (Fault::Body("{}"), "neither segments nor text"),
    ]
    .into_iter()
    .enumerate()
    {
        let film = bed.film(&format!("{number}.mp4"), 5, &[said(1.0, 2.0 + 0.1 * number as f64, 0)]);
        let job = with_faults(&bed, &film, &[fault]).await;
        assert_eq!(job["state"], "failed", "{job}");
        assert!(job["reason"].as_str().unwrap().contains(why), "{why}: {job}");
    }
}

#[tokio::test]
async fn a_video_is_cut_again_at_the_pauses_of_its_transcript() {
    let bed = Bed::start(&[]);
    let video = bed.server.ingest(&bed.film("a.mp4", 24, &[said(0.2, 9.0, 0), said(11.0, 23.0, 1)])).await;
    bed.transcribed(&video).await;
    let cut = json!({"policy": "hybrid", "params": {"max_clip_seconds": 16.0, "slide_area_percent": 0}});
    let (status, answer) = bed.server.post(&format!("/v1/videos/{}/resegment", id(&video)), &cut).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(bed.server.job_end(id(&answer["job"])).await["state"], "succeeded");
    let (_, clips) = bed.server.get(&format!("/v1/videos/{}/clips", id(&video))).await;
    let starts: Vec<f64> =
        clips["items"].as_array().unwrap().iter().map(|it| it["start"].as_f64().unwrap()).collect();
    assert!(starts.iter().any(|start| (9.0..11.3).contains(start)), "{starts:?}");
    assert_eq!(bed.tracks(&video).await.len(), 1, "the transcript stays");
}

#[tokio::test]
async fn a_server_without_a_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film_without_sound(folder.path())).await;
    let path = format!("/v1/videos/{}/transcribe", id(&video));
    let problem = server.refused(server.request("POST", &path).json(&json!({})), 409).await;
    assert!(problem["detail"].as_str().unwrap().contains("--transcribe-url"), "{problem}");
    drop(server);
    for (arguments, why) in [
        (["--transcribe-url", "ftp://example.com"], "must be a URL like"),
        (["--transcribe-url", "http://u:p@example.com"], "no user and no password"),
        (["--transcribe", "/nowhere/at/all"], "/nowhere/at/all"),
    ] {
        let said = Server::try_start(folder.path(), &arguments).err().expect("it does not start");
        assert!(said.contains(why), "{why}: {said}");
    }
}
