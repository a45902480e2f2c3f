//! Faults while a video's text and speech are written down: an error or the end of the process at each write. Afterwards a
//! track is whole, or it is not there and can be asked for.

use std::ops::Range;
use std::path::{Path, PathBuf};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;
use reprise_tests::speech::{Said, StandIn, sound};
use reprise_tests::written::{Look, Slide, can_read, written};
use reprise_tests::{is_full, skip};
use reqwest::StatusCode;
use serde_json::json;

use super::bed::{Bed, assert_consistent, assert_whole, on_both, see_through, text};
use super::walk::{QUICK, TRIED, finish_jobs, try_send};

const SENTENCES: [&str; 3] = [
    "welcome back to the lecture on tokenizers",
    "byte pair encoding merges the pair that occurs most often",
    "next week we train our own model",
];
const SLIDES: [[&str; 2]; 2] =
    [["Byte pair encoding", "Merge the most frequent pair"], ["Unigram", "Drop the least useful piece"]];
/// Seconds of a slide, and when each sentence begins. Pauses of more than 4 s part windows of speech.
const SECONDS: u32 = 11;
const STARTS: [f64; 3] = [1.0, 10.0, 19.0];
/// What is asked for, and the kind of its track.
const ASKED: [(&str, &str); 2] = [("read-text", "ocr"), ("transcribe", "speech")];

on_both!(an_error_at_any_write_of_a_track_loses_nothing, a_death_at_any_write_of_a_track_loses_nothing);

async fn an_error_at_any_write_of_a_track_loses_nothing(bed: &Bed) {
    walk(bed, "error").await;
}

async fn a_death_at_any_write_of_a_track_loses_nothing(bed: &Bed) {
    walk(bed, "kill").await;
}

async fn walk(bed: &Bed, kind: &str) {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let lecture = Lecture::new(bed.folder());
    let writes = lecture.writes(bed).await;
    // Two jobs, three windows of speech, two tracks.
    assert!(writes.end - writes.start >= 14, "only the writes {writes:?} were counted");
    let step = if is_full() { 1 } else { ((writes.end - writes.start) / TRIED).max(1) };
    for number in writes.step_by(step as usize) {
        let fault = format!("{kind}:{number}");
        let fresh = bed.fresh().await;
        let video = lecture.store(&fresh).await;
        let mut accepted = Vec::new();
        if let Ok(server) = lecture.try_start(&fresh, &fault) {
            let _ = ask(&server, &video, &mut accepted).await;
            server.stop();
        }
        let server = fresh.start(&lecture.arguments());
        check(&server, &video, &accepted, &fault).await;
        server.stop();
        let windows = fresh.number("SELECT count(*) FROM transcript_windows").await;
        assert_eq!(windows, 0, "{fault}: windows of ended transcriptions are left");
    }
}

/// A film of slides with speech, and the service that understands it.
struct Lecture {
    film: PathBuf,
    service: StandIn,
}

impl Lecture {
    fn new(folder: &Path) -> Lecture {
        let slides = SLIDES.each_ref().map(|lines| Slide { lines, seconds: SECONDS });
        let look = Look { size: (640, 360), rate: 5, ..Look::default() };
        let silent = written(folder, "slides", &look, &slides);
        let said = |(sentence, start): (usize, f64)| Said { start, end: start + 2.0, sentence };
        let said: Vec<Said> = STARTS.into_iter().enumerate().map(said).collect();
        let film = folder.join("lecture.mp4");
        let mut mux = ffmpeg();
        mux.arg("-i").arg(&silent).args(["-f", "lavfi", "-i", &sound(&said)]);
        run(mux.args(["-c:v", "copy", "-c:a", "aac", "-b:a", "64k", "-shortest"]).arg(&film));
        Lecture { film, service: StandIn::start(&SENTENCES) }
    }

    fn arguments(&self) -> Vec<&str> {
        [&QUICK[..], &["--transcribe-url", &self.service.url]].concat()
    }

    fn try_start(&self, bed: &Bed, fault: &str) -> Result<Server, String> {
        bed.try_start(&self.arguments(), &[("REPRISE_FAULT", Path::new(fault))])
    }

    /// Stores the film by a server that writes nothing down. Returns the video's id.
    async fn store(&self, bed: &Bed) -> String {
        let server = bed.start(&QUICK);
        let video = text(&server.ingest(&self.film).await, "/id").to_owned();
        assert!(server.stop());
        video
    }

    /// The numbers of the writes from the first request to the last track.
    async fn writes(&self, bed: &Bed) -> Range<u64> {
        let fresh = bed.fresh().await;
        let video = self.store(&fresh).await;
        let list = fresh.folder().join("writes");
        let server = self.try_start(&fresh, &format!("list:{}", list.display())).expect("nothing fails");
        let count = || std::fs::read_to_string(&list).unwrap_or_default().lines().count() as u64;
        let before = count();
        let mut accepted = Vec::new();
        ask(&server, &video, &mut accepted).await.expect("nothing fails");
        assert_eq!(accepted, ASKED.map(|(_, kind)| kind));
        before + 1..count() + 1
    }
}

/// Asks for both tracks, one after the other, and notes the kinds that are accepted. `None`: the server has died.
async fn ask(server: &Server, video: &str, accepted: &mut Vec<&'static str>) -> Option<()> {
    for (path, kind) in ASKED {
        let request = server.request("POST", &format!("/v1/videos/{video}/{path}"));
        let (status, _) = try_send(request.json(&json!({}))).await?;
        if status == StatusCode::ACCEPTED {
            accepted.push(kind);
        }
        finish_jobs(server).await?;
    }
    Some(())
}

async fn check(server: &Server, video: &str, accepted: &[&str], fault: &str) {
    for (_, kind) in ASKED {
        let lines = lines(server, video, kind).await;
        assert!(lines.is_empty() || lines == expected(kind), "{fault}: a track is half there: {lines:?}");
    }
    finish_jobs(server).await.expect("this server has no faults");
    let (_, jobs) = server.get("/v1/jobs?state=failed").await;
    for job in jobs["items"].as_array().expect("a list") {
        see_through(server, text(job, "/id")).await;
    }
    for (path, kind) in ASKED {
        if lines(server, video, kind).await.is_empty() {
            assert!(!accepted.contains(&kind), "{fault}: {kind} was accepted and is lost");
            let (status, answer) = server.post(&format!("/v1/videos/{video}/{path}"), &json!({})).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{fault}: {answer}");
            see_through(server, text(&answer, "/job/id")).await;
        }
        assert_eq!(lines(server, video, kind).await, expected(kind), "{fault}");
    }
    assert_whole(server, video).await;
    assert_consistent(server).await;
}

/// The texts of a track, in order.
async fn lines(server: &Server, video: &str, kind: &str) -> Vec<String> {
    let (status, page) = server.get(&format!("/v1/videos/{video}/transcript?kind={kind}")).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let lines = page["items"].as_array().expect("a list");
    lines.iter().map(|line| text(line, "/text").to_owned()).collect()
}

fn expected(kind: &str) -> Vec<String> {
    let written = SLIDES.iter().flatten().copied();
    let all: Vec<&str> = if kind == "ocr" { written.collect() } else { SENTENCES.to_vec() };
    all.into_iter().map(str::to_owned).collect()
}
