//! The protocol's headers and statuses, and what a complete upload becomes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::{Uploading, header};
use crate::faults::bed::until;

#[tokio::test]
async fn a_server_says_what_it_can() {
    let it = Uploading::start(&["--api-key", "root", "--max-upload-bytes", "1000"]);
    let answer = it.server.request("OPTIONS", "/v1/uploads").send().await.unwrap();
    assert_eq!(answer.status(), 204);
    for (name, expected) in [
        ("tus-resumable", "1.0.0"),
        ("tus-version", "1.0.0"),
        ("tus-extension", "creation,creation-with-upload,expiration,checksum,termination"),
        ("tus-checksum-algorithm", "sha1,sha256"),
        ("tus-max-size", "1000"),
    ] {
        assert_eq!(header(&answer, name).as_deref(), Some(expected), "{name}");
    }
    let refused = it.request("POST", "/v1/uploads").header("upload-length", 9).send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), header(&refused, "tus-resumable").as_deref()),
        (401, Some("1.0.0"))
    );
}

#[tokio::test]
async fn another_version_is_refused() {
    let it = Uploading::start(&[]);
    let path = it.begin(9).await;
    for (method, path) in [("POST", "/v1/uploads"), ("HEAD", &path), ("PATCH", &path), ("DELETE", &path)] {
        for version in [None, Some("0.2.2"), Some("2.0.0")] {
            let request = it.server.request(method, path).header("upload-length", 9);
            let request =
                version.into_iter().fold(request, |request, it| request.header("tus-resumable", it));
            let answer = request.send().await.unwrap();
            let said = (answer.status().as_u16(), header(&answer, "tus-version"));
            assert_eq!(said, (412, Some("1.0.0".to_owned())), "{method} {version:?}");
        }
    }
    assert_eq!(it.offset(&path).await, Some(0));
}

#[tokio::test]
async fn wrong_requests_are_problems() {
    let it = Uploading::start(&["--max-upload-bytes", "5000", "--unfinished-uploads", "2"]);
    let new = || it.request("POST", "/v1/uploads");
    it.server.refused(new(), 422).await;
    it.server.refused(new().header("upload-defer-length", 1), 422).await;
    for wrong in ["-1", "x", "1.5", "99999999999999999999"] {
        let problem = it.server.refused(new().header("upload-length", wrong), 422).await;
        assert_eq!(problem["errors"][0]["pointer"], "Upload-Length", "{problem}");
    }
    for (said, pointer) in [
        ("filename %%%", "Upload-Metadata"),
        ("colour cmVk", "Upload-Metadata"),
        ("title ", "/title"),
        ("metadata WzFd", "/metadata"),
        ("recorded_at eA==", "/recorded_at"),
        ("segmentation eyJwb2xpY3kiOiAieCJ9", "/segmentation/policy"),
    ] {
        let request = new().header("upload-length", 9).header("upload-metadata", said);
        let problem = it.server.refused(request, 422).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{said}: {problem}");
    }
    let large = new().header("upload-length", 5001).header("upload-metadata", "filename YS5tcDQ=");
    let problem = it.server.refused(large, 413).await;
    let (_, job) = it.server.get(&format!("/v1/jobs/{}", problem["job_id"].as_str().unwrap())).await;
    assert_eq!(job["refused_file"], json!({"file_name": "a.mp4", "bytes": 5001}), "{job}");

    let path = it.begin(100).await;
    let other = "/v1/uploads/01890000-0000-7000-8000-000000000000";
    it.server.refused(it.part(other, 0, b"x"), 404).await;
    it.server.refused(it.request("DELETE", other), 404).await;
    it.server.refused(it.part(&path, 0, &[0; 101]), 413).await;
    let sum = |sum: &str| it.part(&path, 0, b"x").header("upload-checksum", sum);
    for (request, status, pointer) in [
        (it.request("PATCH", &path).header("upload-offset", 0).body("x"), 415, "Content-Type"),
        (it.part(&path, 1, b"x"), 409, "Upload-Offset"),
        (sum("md5 eA=="), 400, "Upload-Checksum"),
        (sum("sha1 eA=="), 422, "Upload-Checksum"),
    ] {
        let problem = it.server.refused(request, status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    it.server.refused(it.request("POST", &path), 405).await;
    assert_eq!(it.offset(&path).await, Some(0));
    it.begin(9).await;
    it.server.refused(new().header("upload-length", 9), 409).await;
    assert_eq!(it.request("DELETE", &path).send().await.unwrap().status(), 204);
    assert_eq!(it.offset(&path).await, None);
    it.begin(9).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_with_a_wrong_checksum_is_dropped() {
    let it = Uploading::start(&[]);
    let (_, bytes) = it.film("film", 1000);
    let path = it.begin(bytes.len()).await;
    let half = bytes.len() / 2;
    let sha1 = |bytes: &[u8]| format!("sha1 {}", STANDARD.encode(Sha1::digest(bytes)));
    let sha256 = |bytes: &[u8]| format!("sha256 {}", STANDARD.encode(Sha256::digest(bytes)));
    let right = it.part(&path, 0, &bytes[..half]).header("upload-checksum", sha1(&bytes[..half]));
    assert_eq!(right.send().await.unwrap().status(), 204);
    for sum in [sha1(b"other"), sha256(b"other")] {
        let wrong = it.part(&path, half, &bytes[half..]).header("upload-checksum", sum);
        it.server.refused(wrong, 460).await;
        assert_eq!(it.offset(&path).await, Some(half));
    }
    let last = it.part(&path, half, &bytes[half..]).header("upload-checksum", sha256(&bytes[half..]));
    it.check_made(&last.send().await.unwrap(), &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_upload_is_like_a_plain_one() {
    let it = Uploading::start(&[]);
    let (path, bytes) = it.film("film", 1000);
    // The bytes come with the creation, and each field as in a plain upload.
    let fields = [
        ("filename", "dive.mp4"),
        ("filetype", "video/mp4"),
        ("title", "Dive"),
        ("metadata", r#"{"event": "dive"}"#),
        ("recorded_at", "2024-07-01"),
        ("segmentation", r#"{"policy": "fixed", "params": {"every_seconds": 1}}"#),
    ];
    let said: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name} {}", STANDARD.encode(value))).collect();
    let begin = || {
        let request = it.request("POST", "/v1/uploads").header("upload-length", bytes.len());
        let request = request.header("upload-metadata", said.join(",")).header("idempotency-key", "k");
        request.header("content-type", "application/offset+octet-stream").body(bytes.clone())
    };
    let made = begin().send().await.unwrap();
    assert_eq!(
        (made.status().as_u16(), header(&made, "upload-offset")),
        (201, Some(bytes.len().to_string()))
    );
    let video = it.check_made(&made, &bytes).await;
    let shown = json!([video["title"], video["file_name"], video["metadata"], video["recorded_at"]]);
    assert_eq!(shown, json!(["Dive", "dive.mp4", {"event": "dive"}, "2024-07-01"]));
    assert_eq!(video["segmentation"]["policy"], "fixed");
    // The answer can be had again, and a repeated upload with the key gets the first one.
    let upload = header(&made, "location").unwrap();
    let names = |answer: &reqwest::Response| {
        ["reprise-video-id", "reprise-job-id", "reprise-duplicate"].map(|name| header(answer, name))
    };
    assert_eq!(names(&it.request("HEAD", &upload).send().await.unwrap()), names(&made));
    assert_eq!(names(&it.send(&upload, bytes.len(), b"").await), names(&made));
    assert_eq!(names(&begin().send().await.unwrap()), names(&made));
    it.server.refused(it.part(&upload, 0, b"x"), 409).await;
    // A plain upload of these bytes gets the stored video, and so does another resumable one.
    let form = Form::new().part("file", Part::bytes(std::fs::read(path).unwrap()).file_name("x.mp4"));
    let (_, plain) = it.server.send(it.server.request("POST", "/v1/videos").multipart(form)).await;
    assert_eq!((&plain["duplicate"], &plain["video"]["id"]), (&json!(true), &video["id"]));
    let again = it.begin(bytes.len()).await;
    let last = it.send(&again, 0, &bytes).await;
    assert_eq!(header(&last, "reprise-duplicate").as_deref(), Some("true"));
    assert_eq!(header(&last, "reprise-video-id").as_deref(), video["id"].as_str());
    assert_eq!(it.parts(), 0);
    // Ending a complete upload leaves its video.
    assert_eq!(it.request("DELETE", &upload).send().await.unwrap().status(), 204);
    it.check_video(video["id"].as_str().unwrap(), &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_file_is_a_failed_job_and_its_upload_is_gone() {
    let it = Uploading::start(&[]);
    let path = it.begin(8).await;
    it.send(&path, 0, b"no").await;
    let problem = it.server.refused(it.part(&path, 2, b" video"), 415).await;
    let (_, job) = it.server.get(&format!("/v1/jobs/{}", problem["job_id"].as_str().unwrap())).await;
    assert_eq!(job["refused_file"], json!({"file_name": "film.mp4", "bytes": 8}), "{job}");
    assert_eq!((it.offset(&path).await, it.parts()), (None, 0));
    let empty = it.request("POST", "/v1/uploads").header("upload-length", 0);
    it.server.refused(empty, 415).await;
    assert_eq!(it.server.get("/v1/videos").await.1["items"], json!([]));
}

#[tokio::test]
async fn a_file_larger_than_the_free_disk_is_refused_before_its_bytes() {
    let it = Uploading::start(&["--max-upload-bytes", "9000000000000000000"]);
    let request = it.request("POST", "/v1/uploads").header("upload-length", "8000000000000000000");
    it.server.refused(request, 507).await;
    assert_eq!(it.parts(), 0);
}

#[tokio::test]
async fn pages_of_listed_origins_speak_the_protocol() {
    let origin = "https://editor.example";
    let it = Uploading::start(&["--api-key", "root", "--cors-origin", origin]);
    let ask = it.server.request("OPTIONS", "/v1/uploads").header("origin", origin);
    let ask = ask.header("access-control-request-method", "PATCH");
    let ask = ask.header("access-control-request-headers", "tus-resumable,upload-offset,authorization");
    let allowed = header(&ask.send().await.unwrap(), "access-control-allow-headers").unwrap().to_lowercase();
    for name in ["tus-resumable", "upload-length", "upload-offset", "upload-metadata", "authorization"] {
        assert!(allowed.split(',').any(|it| it.trim() == name), "{name}: {allowed}");
    }
    let begin = it.request("POST", "/v1/uploads").bearer_auth("root").header("origin", origin);
    let begun = begin.header("upload-length", 9).send().await.unwrap();
    assert_eq!((begun.status().as_u16(), header(&begun, "location").is_some()), (201, true));
    let shown = header(&begun, "access-control-expose-headers").unwrap().to_lowercase();
    for name in ["location", "tus-resumable", "upload-offset", "upload-length", "reprise-video-id"] {
        assert!(shown.split(',').any(|it| it.trim() == name), "{name}: {shown}");
    }
}

#[tokio::test]
async fn other_methods_can_be_sent_as_post() {
    let it = Uploading::start(&[]);
    let path = it.begin(9).await;
    let request =
        it.request("POST", &path).header("x-http-method-override", "PATCH").header("upload-offset", 0);
    let request = request.header("content-type", "application/offset+octet-stream").body("abc");
    assert_eq!(request.send().await.unwrap().status(), 204);
    assert_eq!(it.offset(&path).await, Some(3));
    let delete = it.request("POST", &path).header("x-http-method-override", "DELETE");
    assert_eq!(delete.send().await.unwrap().status(), 204);
    assert_eq!(it.offset(&path).await, None);
}

#[tokio::test]
async fn an_abandoned_upload_expires() {
    let it = Uploading::start(&["--unfinished-hours", "0.001"]);
    let path = it.begin(9).await;
    it.send(&path, 0, b"abc").await;
    // Parts without bytes do not hold up its end.
    until("it has expired", async || it.offset(&path).await.is_none().then_some(())).await;
    it.server.refused(it.part(&path, 3, b"def"), 404).await;
    assert_eq!(it.parts(), 1);
    let Uploading { folder, server } = it;
    assert!(server.stop(), "it did not stop well");
    let server = reprise_tests::server::Server::start(&folder.path().join("data"), &[]);
    let it = Uploading { folder, server };
    until("its file is swept", async || (it.parts() == 0).then_some(())).await;
    let (_, stats) = it.server.get("/v1/stats").await;
    assert_eq!(stats["videos"], Value::from(0));
}
