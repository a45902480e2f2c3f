//! Subtitles through a running server: uploading, listing, playing, replacing, deleting, and reading from video
//! files.

use std::path::{Path, PathBuf};

use reprise_server::subtitles;
use reprise_tests::film::{Store, ffmpeg, film, run};
use reprise_tests::server::Server;
use reprise_tests::test_data;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::faults::bed::until;

const SRT: &str = "1\r\n00:00:00,500 --> 00:00:01,500\r\nHello <i>there</i> & you\r\n\r\n\
                   2\r\n00:00:02,000 --> soon\r\nlost\r\n\r\n\
                   3\r\n00:00:02,000 --> 00:00:03,000\r\nGoodbye 🤗\r\n";

async fn put(server: &Server, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let (status, answer) =
        server.send(server.request("PUT", path).header("content-type", kind).body(body)).await;
    (status.as_u16(), answer)
}

async fn text(server: &Server, path: &str) -> (u16, String) {
    let response = server.request("GET", path).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn tracks(server: &Server, video: &Value) -> Vec<Value> {
    let path = format!("/v1/videos/{}/subtitles", video["id"].as_str().unwrap());
    server.get(&path).await.1["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn subtitles_are_stored_shown_replaced_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film(folder.path(), "film", &["testsrc2"], Store::Web)).await;
    let base = format!("/v1/videos/{}/subtitles", video["id"].as_str().unwrap());
    let vectors = server.get("/v1/stats").await.1["vectors"].clone();

    let (status, stored) = put(&server, &format!("{base}/EN"), "application/x-subrip", SRT).await;
    assert_eq!(status, 200, "{stored}");
    let warnings =
        json!(["subtitles en, line 6: these are no two times like 00:00:01,000 --> 00:00:02,000; \
                           the cue is left out"]);
    let english = json!({"language": "en", "kind": "speech", "provenance": "upload", "machine": false, "cues": 2,
                         "warnings": warnings, "url": format!("{base}/en")});
    assert_eq!(stored, english);
    let (status, german) =
        put(&server, &format!("{base}/de"), "text/vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nHallo\n").await;
    assert_eq!((status, &german["cues"]), (200, &json!(1)), "{german}");
    assert_eq!(tracks(&server, &video).await, [german, english]);
    let path = format!("/v1/videos/{}", video["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["warnings"], warnings);

    let shown = "WEBVTT\n\n00:00:00.500 --> 00:00:01.500\nHello there &amp; you\n\n00:00:02.000 --> 00:00:03.000\nGoodbye 🤗\n";
    assert_eq!(text(&server, &format!("{base}/en")).await, (200, shown.to_owned()));
    let later = "WEBVTT\n\n00:00:02.250 --> 00:00:03.250\nHallo\n";
    assert_eq!(text(&server, &format!("{base}/de?offset=1.25")).await, (200, later.to_owned()));

    let utf16: Vec<u8> =
        "\u{feff}00:00:01,0 --> 00:00:02,0\nneu".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (status, replaced) = put(&server, &format!("{base}/en"), "application/octet-stream", utf16).await;
    assert_eq!((status, &replaced["cues"]), (200, &json!(1)), "{replaced}");
    assert_eq!(server.get(&path).await.1["warnings"], json!([]));
    assert_eq!(server.delete(&format!("{base}/en")).await.0, 204);
    assert_eq!(text(&server, &format!("{base}/en")).await.0, 404);
    assert_eq!(server.delete(&format!("{base}/en")).await.0, 404);
    assert_eq!(tracks(&server, &video).await.len(), 1);
    assert_eq!(server.get("/v1/stats").await.1["vectors"], vectors, "no vector was touched");
}

#[tokio::test]
async fn what_can_not_be_read_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film(folder.path(), "film", &["testsrc2"], Store::Web)).await;
    let base = format!("/v1/videos/{}/subtitles", video["id"].as_str().unwrap());
    put(&server, &format!("{base}/en"), "text/plain", SRT).await;
    let before = tracks(&server, &video).await;
    let large = vec![b'x'; (8 << 20) + 1];
    let nobody = "/v1/videos/0190163d-8694-739b-aea5-966c26f8ad91/subtitles/en";
    for (path, kind, body, status, said) in [
        (format!("{base}/en"), "text/vtt", &b""[..], 422, "line 1"),
        (format!("{base}/en"), "text/vtt", b"WEBVTT\n\n\nhello", 422, "line 4: not one cue"),
        (format!("{base}/en"), "text/plain", b"1\n00:00:01,000 --> x\n", 422, "line 2: not one cue"),
        (format!("{base}/en"), "text/plain", &[0xff, 0xfe, 0xff], 422, "line 1"),
        (format!("{base}/en"), "text/plain", &large, 413, "bytes"),
        (format!("{base}/en"), "application/json", b"{}", 415, "text/vtt"),
        (format!("{base}/en--US"), "text/vtt", SRT.as_bytes(), 422, "language tag"),
        (format!("{base}/x"), "text/vtt", SRT.as_bytes(), 422, "language tag"),
        (nobody.to_owned(), "text/vtt", SRT.as_bytes(), 404, "no video"),
        ("/v1/videos/7/subtitles/en".to_owned(), "text/vtt", SRT.as_bytes(), 404, "uuid"),
    ] {
        let request = server.request("PUT", &path).header("content-type", kind).body(body.to_vec());
        let problem = server.refused(request, status).await;
        assert!(problem["detail"].as_str().unwrap().contains(said), "{said}: {problem}");
    }
    assert_eq!(tracks(&server, &video).await, before);
}

#[tokio::test]
async fn a_video_is_added_with_its_subtitles() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let file = film(folder.path(), "film", &["testsrc2"], Store::Web);
    let part = |text: &'static str, name: &'static str| Part::text(text).file_name(name);
    let form = async |parts: Vec<Part>| {
        let mut form = Form::new();
        for it in parts {
            form = form.part("subtitles", it);
        }
        form.file("file", &file).await.unwrap()
    };
    let send = async |parts: Vec<Part>| server.request("POST", "/v1/videos").multipart(form(parts).await);
    let twice = vec![part(SRT, "a.en.srt"), part(SRT, "a.eng.srt")];
    let problem = server.refused(send(twice).await, 422).await;
    assert!(problem["detail"].as_str().unwrap().contains("two subtitle files"), "{problem}");

    let both =
        vec![part(SRT, "../film 🎬.pt-BR.srt"), part("WEBVTT\n\n00:01.000 --> 00:02.000\nx", "film.vtt")];
    let (status, answer) = server.send(send(both).await).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["video"]["warnings"].as_array().unwrap().len(), 1, "{answer}");
    server.job_end(answer["job"]["id"].as_str().unwrap()).await;
    let (_, video) = server.get(&format!("/v1/videos/{}", answer["video"]["id"].as_str().unwrap())).await;
    assert_eq!(video["warnings"].as_array().unwrap().len(), 1, "ingest keeps them: {video}");
    let shown: Vec<_> = tracks(&server, &video).await;
    let shown: Vec<_> = shown.iter().map(|it| (it["language"].clone(), it["provenance"].clone())).collect();
    assert_eq!(shown, [(json!("pt-BR"), json!("film 🎬.pt-BR.srt")), (json!("und"), json!("film.vtt"))]);

    let more = vec![part("00:01.000 --> 00:02.000\nneu", "film.de.srt")];
    let (status, answer) = server.send(send(more).await).await;
    assert_eq!((status.as_u16(), &answer["duplicate"]), (202, &json!(true)), "{answer}");
    assert_eq!(tracks(&server, &video).await.len(), 3, "a duplicate gets what it lacks");
}

#[tokio::test]
async fn text_streams_of_the_file_are_taken_at_ingest() {
    let Some(file) = test_data("video/clips/tc_nasa_13013.mp4") else { return };
    let Some(beside) = test_data("video/clips/tc_nasa_13013.en.srt") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&file).await;
    let expected = subtitles::parse(&std::fs::read(beside).unwrap()).unwrap().lines;
    let shown = tracks(&server, &video).await;
    assert_eq!(shown.len(), 1, "its two streams say the same: {shown:?}");
    assert_eq!((&shown[0]["language"], &shown[0]["provenance"]), (&json!("en"), &json!("embedded")));
    let (_, file) = text(&server, shown[0]["url"].as_str().unwrap()).await;
    assert_eq!(subtitles::parse(file.as_bytes()).unwrap().lines, expected);
    let (status, own) = put(&server, shown[0]["url"].as_str().unwrap(), "text/plain", SRT).await;
    assert_eq!((status, &own["provenance"]), (200, &json!("upload")));
    assert_eq!(tracks(&server, &video).await, [own]);
}

/// A film with a subtitle stream of each codec. The container's clock begins at 1.5 s.
fn film_that_speaks(folder: &Path) -> PathBuf {
    let (said, styled) = (folder.join("said.srt"), folder.join("styled.ass"));
    std::fs::write(&said, "1\n00:00:02,000 --> 00:00:03,000\n<b>gesagt</b>\n").unwrap();
    let ass = "[Script Info]\nScriptType: v4.00+\n\n[Events]\n\
               Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n\
               Dialogue: 0,0:00:02.00,0:00:03.50,Default,,0,0,0,,{\\an8\\i1}styled{\\i0} text\n";
    std::fs::write(&styled, ass).unwrap();
    let shots = film(folder, "shots", &["testsrc2", "smptebars"], Store::Web);
    let file = folder.join("speaks.mkv");
    let mut mux = ffmpeg();
    mux.args(["-itsoffset", "1.5", "-i"]).arg(shots).arg("-i").arg(said).arg("-i").arg(styled);
    mux.args(["-map", "0:v", "-map", "1", "-map", "2", "-c", "copy", "-metadata:s:s:0", "language=ger"]);
    mux.args(["-metadata:s:s:1", "language=eng", "-avoid_negative_ts", "disabled"]).arg(&file);
    run(&mut mux);
    file
}

#[tokio::test]
async fn cues_keep_the_clock_of_the_file_and_are_answered_on_the_players() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film_that_speaks(folder.path())).await;
    assert_eq!(video["media_offset"], 1.5, "{video}");
    let shown = tracks(&server, &video).await;
    let tags: Vec<&str> = shown.iter().map(|it| it["language"].as_str().unwrap()).collect();
    assert_eq!(tags, ["de", "en"]);
    for (track, query, expected) in [
        (0, "", "00:00:02.000 --> 00:00:03.000\ngesagt"),
        (1, "", "00:00:02.000 --> 00:00:03.500\nstyled text"),
        (0, "?offset=1.5", "00:00:02.000 --> 00:00:03.000\ngesagt"),
        (0, "?offset=0", "00:00:00.500 --> 00:00:01.500\ngesagt"),
    ] {
        let (status, file) =
            text(&server, &format!("{}{query}", shown[track]["url"].as_str().unwrap())).await;
        assert_eq!((status, file), (200, format!("WEBVTT\n\n{expected}\n")));
    }
}

/// A model that encodes text only.
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/sentence/mean");

async fn reader(server: &Server) -> Value {
    let (_, spaces) = server.get("/v1/spaces").await;
    let all = spaces["items"].as_array().unwrap();
    all.iter().find(|it| it["model"] == READER).unwrap_or_else(|| panic!("{spaces}")).clone()
}

async fn reader_holds(server: &Server, passages: u64) -> Value {
    let holds = async || {
        let space = reader(server).await;
        (space["passages"] == passages && space["coverage"] == 1.0).then_some(space)
    };
    until("all passages are encoded", holds).await
}

#[tokio::test]
async fn passages_are_encoded_in_the_background_by_the_model_that_reads() {
    let folder = tempfile::tempdir().unwrap();
    let models = ["--model", "builtin:tiny", "--model", READER];
    let server = Server::start(folder.path(), &models[..2]);
    let file = film(folder.path(), "film", &["color=c=red", "color=c=blue"], Store::Web);
    let video = server.ingest_with(&file, &[]).await;
    let path = format!("/v1/videos/{}/subtitles", video["id"].as_str().unwrap());
    put(&server, &format!("{path}/en"), "text/plain", SRT).await;
    assert!(server.stop(), "it did not stop well");

    // A new model encodes the existing passages.
    let server = Server::start(folder.path(), &models);
    let space = reader_holds(&server, 1).await;
    assert_eq!(
        (&space["active_for"], &space["clips"], &space["videos"]),
        (&json!(["spoken"]), &json!(0), &json!(0))
    );
    put(&server, &format!("{path}/de"), "text/plain", SRT).await;
    reader_holds(&server, 2).await;
    put(&server, &format!("{path}/de"), "text/plain", "00:01.0 --> 00:02.0\nneu\n").await;
    reader_holds(&server, 2).await;
    assert_eq!(server.delete(&format!("{path}/de")).await.0, 204);
    assert_eq!(reader(&server).await["passages"], 1, "gone at once");
    let (_, spaces) = server.get("/v1/spaces").await;
    let seen = spaces["items"].as_array().unwrap().iter().find(|it| it["model"] == "builtin:tiny").unwrap();
    assert_eq!((&seen["passages"], &seen["clips"], &seen["coverage"]), (&json!(0), &json!(2), &json!(1.0)));
    let (_, failed) = server.get("/v1/jobs?state=failed").await;
    assert_eq!(failed["items"], json!([]));
    assert_eq!(
        server.search_hits(json!({"query": {"text": "x"}, "sources": ["visual"]})).await.len(),
        2,
        "what is seen is found as before"
    );
}

#[tokio::test]
async fn what_is_said_is_found_where_no_model_sees_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--model", READER]);
    let file = film(folder.path(), "film", &["color=c=red", "color=c=blue"], Store::Web);
    let video = server.ingest_with(&file, &[]).await;
    let path = format!("/v1/videos/{}/subtitles/en", video["id"].as_str().unwrap());
    put(&server, &path, "text/plain", "00:02.5 --> 00:03.5\nthe telling word\n").await;
    let hits = server.search_hits(json!({"query": {"text": "telling word"}})).await;
    assert_eq!((&hits[0]["start"], &hits[0]["end"]), (&json!(2.0), &json!(4.0)), "{hits:?}");
    assert_eq!(hits[0]["evidence"][0]["source"], "spoken");
    // No model compares a change of a clip with pictures. Who asks for pictures is not answered without them.
    let query = json!({"clip": {"video_id": video["id"], "start": 0.5, "end": 1.5}, "modification": "word"});
    for (sources, expected) in
        [(json!(["spoken"]), 200), (json!(["visual"]), 409), (json!(["visual", "spoken"]), 409)]
    {
        let (status, answer) = server.post("/v1/search", &json!({"query": query, "sources": sources})).await;
        assert_eq!(status, expected, "{sources}: {answer}");
    }
}

/// A film of four shots of 2 s, with one cue in the first and one in the last shot.
async fn lecture(server: &Server, folder: &Path, number: u32, cue: &str) -> Value {
    let colour = format!("color=c=0x{:06x}", 0x0010_4070 * number % 0x0100_0000);
    let shots = [colour.as_str(), "testsrc2", "color=c=blue", "smptebars"];
    let video = server.ingest_with(&film(folder, &colour, &shots, Store::Lossless), &[]).await;
    let path = format!("/v1/videos/{}/subtitles/en", video["id"].as_str().unwrap());
    let cues = format!("00:00.5 --> 00:01.5\n{cue}\n\n00:06.5 --> 00:07.5\nbias and {cue}\n");
    assert_eq!(put(server, &path, "text/plain", cues).await.0, 200);
    video
}

/// The hits of all pages, or the videos of their groups. Calls `between` after each page.
async fn pages(server: &Server, body: &Value, mut between: impl AsyncFnMut()) -> Vec<Value> {
    let mut answer = server.search(body).await;
    let mut shown = Vec::new();
    loop {
        let groups = answer["groups"].as_array().into_iter().flatten().map(|it| it["video_id"].clone());
        shown.extend(groups);
        shown.extend(answer["results"].as_array().unwrap().iter().map(|it| it["clip_id"].clone()));
        let Some(cursor) = answer["next_cursor"].as_str() else { return shown };
        between().await;
        answer = server.search(&json!({"cursor": cursor})).await;
    }
}

#[tokio::test]
async fn pages_of_pictures_and_subtitles_show_everything_once_whatever_comes_between() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    for (number, cue) in [(1, "bias of a model"), (2, "a model of bias"), (3, "a telling word")] {
        lecture(&server, folder.path(), number, cue).await;
    }
    let mut number = 3;
    let query = json!({"query": {"text": "the bias of a model"}, "limit": 2});
    let grouped = json!({"query": {"text": "the bias of a model"}, "limit": 1, "group_by": "video"});
    for body in [&query, &grouped] {
        let mut whole = body.clone();
        whole["limit"] = json!(1000);
        let whole = pages(&server, &whole, async || ()).await;
        assert_eq!(pages(&server, body, async || ()).await, whole, "{body}");
        // After each of two pages a better match is added, which moves all others down.
        let last = number + 2;
        let shown = pages(&server, body, async || {
            if number < last {
                number += 1;
                lecture(&server, folder.path(), number, "the bias of a model").await;
            }
        });
        let shown = shown.await;
        let distinct: std::collections::HashSet<String> = shown.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), shown.len(), "nothing twice: {shown:?}");
        assert!(whole.iter().all(|it| shown.contains(it)), "nothing is skipped: {shown:?}");
    }
}

#[test]
fn every_cue_of_real_lectures_is_read() {
    let Some(folder) = test_data("text/lectures") else { return };
    let (mut files, mut cues) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "srt") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let arrows: Vec<&str> = text.lines().filter(|line| line.contains("-->")).collect();
        let parsed = subtitles::parse(&bytes).unwrap();
        assert_eq!(parsed.warnings, [""; 0], "{}", path.display());
        let times = parsed.lines.iter().map(|line| {
            let written = |ms: i64| {
                let (s, ms) = (ms / 1000, ms % 1000);
                format!("{:02}:{:02}:{:02},{ms:03}", s / 3600, s / 60 % 60, s % 60)
            };
            format!("{} --> {}", written(line.start_ms), written(line.end_ms))
        });
        assert_eq!(times.collect::<Vec<_>>(), arrows, "{}", path.display());
        (files, cues) = (files + 1, cues + parsed.lines.len());
    }
    assert_eq!((files, cues), (76, 6497));
}

/// Reads a transcript and checks start, end and text of each line.
async fn check_transcript(server: &Server, path: &str, expected: &[(f64, f64, &str)]) {
    let (status, page) = server.get(path).await;
    assert_eq!(status, 200, "{path}: {page}");
    let line = |it: &Value| {
        let text = it["text"].as_str().unwrap().to_owned();
        (it["start"].as_f64().unwrap(), it["end"].as_f64().unwrap(), text)
    };
    let lines: Vec<_> = page["items"].as_array().unwrap().iter().map(line).collect();
    let lines: Vec<_> = lines.iter().map(|it| (it.0, it.1, it.2.as_str())).collect();
    assert_eq!(lines, expected, "{path}");
}

#[tokio::test]
async fn a_transcript_is_read_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film(folder.path(), "film", &["testsrc2"], Store::Web)).await;
    let base = format!("/v1/videos/{}", video["id"].as_str().unwrap());
    let path = format!("{base}/transcript");
    check_transcript(&server, &path, &[]).await;
    put(&server, &format!("{base}/subtitles/en"), "text/plain", SRT).await;
    let german = "WEBVTT\n\n00:01.000 --> 00:02.000\nHallo\n";
    put(&server, &format!("{base}/subtitles/de"), "text/vtt", german).await;
    let (hello, hallo, bye) =
        ((0.5, 1.5, "Hello there & you"), (1.0, 2.0, "Hallo"), (2.0, 3.0, "Goodbye 🤗"));
    for (query, expected) in [
        ("", &[hello, hallo, bye][..]),
        ("?language=EN", &[hello, bye]),
        ("?kind=speech&start=1.5", &[hallo, bye]),
        ("?start=0&end=1", &[hello]),
        ("?kind=ocr", &[]),
        ("?unit=passage&language=de", &[hallo]),
        ("?limit=1", &[hello]),
    ] {
        check_transcript(&server, &format!("{path}{query}"), expected).await;
    }
    let (_, page) = server.get(&format!("{path}?limit=2")).await;
    let line = json!({"kind": "speech", "language": "de", "provenance": "upload", "machine": false});
    let shown = page["items"][1].as_object().unwrap();
    assert!(line.as_object().unwrap().iter().all(|(name, value)| &shown[name] == value), "{page}");
    let next = format!("{path}?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    check_transcript(&server, &next, &[bye]).await;

    let first = server.request("GET", &path).send().await.unwrap();
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let ask = || server.request("GET", &path).header("if-none-match", &tag);
    assert_eq!(ask().send().await.unwrap().status(), 304);
    assert_eq!(server.delete(&format!("{base}/subtitles/de")).await.0, 204);
    assert_eq!(ask().send().await.unwrap().status(), 200);
    for wrong in ["start=2&end=1", "language=x", "kind=song", "cursor=7", "limit=0", "start=-1", "x=1"] {
        server.refused(server.request("GET", &format!("{path}?{wrong}")), 422).await;
    }
    server.refused(server.request("GET", "/v1/videos/7/transcript"), 404).await;
}
