//! Malformed requests: every answer names the fault and where it is, and the server stores nothing.

mod places;

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::{Server, problem_of};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

/// Number of requests. The table below repeats with other random parts.
const REQUESTS: usize = 500;

/// A xorshift generator: the same requests in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.next(of.len())]
    }
}

/// The parts of the requests.
struct Maker<'a> {
    server: &'a Server,
    random: Random,
    video: String,
    clip: String,
    cursor: String,
    film: Vec<u8>,
}

type Make = fn(&mut Maker) -> RequestBuilder;

#[tokio::test]
async fn malformed_requests_are_refused_and_leave_nothing_behind() {
    refused_and_forgotten(&[]).await;
}

#[tokio::test]
async fn malformed_requests_are_refused_and_leave_nothing_behind_on_postgres() {
    let Some(url) = reprise_tests::postgres::database().await else { return };
    refused_and_forgotten(&["--database-url", &url]).await;
}

async fn refused_and_forgotten(more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &[&["--max-upload-bytes", "200000"], more].concat());
    let file = film(folder.path(), "film", &["testsrc2", "color=c=red"], Store::Web);
    let video = server.ingest(&file).await;
    server.after_jobs().await;
    let (_, clips) = server.get(&format!("/v1/videos/{}/clips", video["id"].as_str().unwrap())).await;
    let page = server.search(&json!({"query": {"text": "x"}, "limit": 1})).await;
    let mut maker = Maker {
        server: &server,
        random: Random(0x5eed_cafe),
        video: video["id"].as_str().unwrap().to_owned(),
        clip: clips["items"][0]["id"].as_str().unwrap().to_owned(),
        cursor: page["next_cursor"].as_str().unwrap().to_owned(),
        film: std::fs::read(&file).unwrap(),
    };
    let (_, before) = server.get("/v1/stats").await;
    let files_before = files(&data);
    for number in 0..REQUESTS {
        let (name, make) = MALFORMED[number % MALFORMED.len()];
        let request = make(&mut maker);
        let response = request.send().await.unwrap_or_else(|error| panic!("{name}: no answer: {error}"));
        let status = response.status();
        assert!(status.is_client_error(), "{name}: {status}: {}", response.text().await.unwrap_or_default());
        let problem = problem_of(response, status.as_u16()).await;
        let is_placed = problem["errors"].as_array().is_some_and(|errors| !errors.is_empty());
        assert!(is_placed || WRONG_AS_A_WHOLE.contains(&name), "{name}: {problem}");
    }
    places::refusals_name_the_place_of_the_fault(&maker).await;
    let (_, mut after) = server.get("/v1/stats").await;
    let refused = after["jobs_failed"].take();
    assert!(refused.as_u64() > Some(0), "refused files are listed as failed jobs: {refused}");
    after["jobs_failed"] = before["jobs_failed"].clone();
    assert_eq!(before, after);
    assert_eq!(files_before, files(&data), "no file is left of a refused request");
    assert_eq!(server.search_hits(json!({"query": {"text": "x"}})).await.len(), 2);
    strange_but_right_requests_are_answered(&server, &maker.video).await;
}

/// Valid requests with characters that one of the databases cannot store.
async fn strange_but_right_requests_are_answered(server: &Server, video: &str) {
    for text in ["\0", "a\0b", "'; DROP TABLE videos; --", "%", "\u{10ffff}", "\\u0000", "\u{202e}"] {
        assert_eq!(server.search_hits(json!({"query": {"text": text}})).await.len(), 2, "{text:?}");
        let filter = json!({"field": "metadata.a", "eq": text});
        assert_eq!(
            server.search_hits(json!({"query": {"text": "x"}, "filter": filter})).await.len(),
            0,
            "{text:?}"
        );
    }
    let path = format!("/v1/videos/{video}");
    for text in ["'; DROP TABLE videos; --", "\u{10ffff}", "\\u0000", "\u{1}"] {
        let patch = server.request("PATCH", &path).json(&json!({"title": text, "metadata": {text: text}}));
        let (status, changed) = server.send(patch).await;
        assert_eq!(
            (status.as_u16(), &changed["title"], &changed["metadata"][text]),
            (200, &json!(text), &json!(text))
        );
        let filter = json!({"field": "title", "eq": text});
        assert_eq!(
            server.search_hits(json!({"query": {"text": "x"}, "filter": filter})).await.len(),
            2,
            "{text:?}"
        );
    }
}

fn files(data: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["videos", "incoming", "thumbnails", "previews", "renditions"] {
        for entry in std::fs::read_dir(data.join(folder)).unwrap() {
            names.push(format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()));
        }
    }
    names.sort();
    names
}

/// Requests of which no member, parameter or part is wrong, but the path, the method, or the body as it arrives.
const WRONG_AS_A_WHOLE: [&str; 7] = [
    "a wrong method",
    "something that the service never does",
    "a path that leads nowhere",
    "a JSON body over the limit",
    "multipart with another boundary than said",
    "a multipart search cut in the middle",
    "an upload cut in the middle",
];

const MALFORMED: [(&str, Make); 51] = [
    ("JSON cut in the middle", |it| {
        let body = json!({"query": {"text": "a red floor"}}).to_string();
        let cut = 1 + it.random.next(body.len() - 2);
        it.json("/v1/search", &body[..cut])
    }),
    ("JSON with a character changed", |it| {
        let mut body = json!({"query": {"text": "x"}, "limit": 5}).to_string().into_bytes();
        let at = it.random.next(2);
        body[at] = b'a' + it.random.next(26) as u8;
        it.json("/v1/search", &String::from_utf8(body).unwrap())
    }),
    ("a number that JSON has not", |it| {
        let number = *it.random.pick(&["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01", "+1", ".5"]);
        it.json(
            "/v1/search",
            &format!(
                r#"{{"query": {{"clip": {{"video_id": "{}", "start": {number}, "end": 2}}}}}}"#,
                it.video
            ),
        )
    }),
    ("a huge number", |it| {
        let number = *it.random.pick(&["1e300", "1e8", "99999999999999999999", "-1e300"]);
        it.json(
            "/v1/search",
            &format!(
                r#"{{"query": {{"clip": {{"video_id": "{}", "start": 0, "end": {number}}}}}}}"#,
                it.video
            ),
        )
    }),
    ("a body of another type", |it| {
        let body = (*it.random.pick(&["[]", "null", "7", "\"text\"", "true", "[{}]"])).to_owned();
        it.json("/v1/search", &body)
    }),
    ("a field of another type", |it| {
        let wrong = it.wrong_value();
        let field = *it
            .random
            .pick(&["query", "level", "limit", "group_by", "exclude", "fusion", "sources", "exact"]);
        let mut body = json!({"query": {"text": "x"}});
        body[field] = wrong;
        it.json("/v1/search", &body.to_string())
    }),
    ("a query field of another type", |it| {
        let wrong = it.wrong_value();
        let field = *it.random.pick(&["text", "clip", "clip_id", "upload"]);
        it.json("/v1/search", &json!({"query": {field: wrong}}).to_string())
    }),
    ("a field that is not there", |it| {
        let field = *it.random.pick(&["q", "Query", "offset", "top_k", "rerank", "__proto__", "", "query "]);
        it.json("/v1/search", &json!({"query": {"text": "x"}, field: 1}).to_string())
    }),
    ("a limit out of bounds", |it| {
        let limit =
            it.random.pick(&[json!(0), json!(-1), json!(1001), json!(1e18), json!(1.5), json!("5")]).clone();
        it.json("/v1/search", &json!({"query": {"text": "x"}, "limit": limit}).to_string())
    }),
    ("an inverted range", |it| {
        let (start, end) = (it.random.next(4000) as f64 / 1000.0, -(it.random.next(3) as f64));
        it.range(start, end)
    }),
    ("an empty range", |it| {
        let at = it.random.next(4000) as f64 / 1000.0;
        it.range(at, at + 0.0004)
    }),
    ("a range before or after the video", |it| {
        let (start, end) =
            *it.random.pick(&[(-2.0, -1.0), (-1.0, 1.0), (4.0, 5.0), (100.0, 101.0), (9e6, 9.9e6)]);
        it.range(start, end)
    }),
    ("an id that is none", |it| {
        let id = it.wrong_id();
        it.json("/v1/search", &json!({"query": {"clip_id": id}}).to_string())
    }),
    ("an id of nothing", |it| {
        let id = it.unknown_id();
        it.json("/v1/search", &json!({"query": {"clip": {"video_id": id, "start": 0, "end": 1}}}).to_string())
    }),
    ("two queries at once", |it| {
        let clip = it.clip.clone();
        it.json("/v1/search", &json!({"query": {"text": "x", "clip_id": clip}}).to_string())
    }),
    ("no query", |it| it.json("/v1/search", "{}")),
    ("an empty text", |it| {
        let text = *it.random.pick(&["", " ", "\n\t", "\u{2003}"]);
        it.json("/v1/search", &json!({"query": {"text": text}}).to_string())
    }),
    ("a text of too many windows", |it| {
        it.json("/v1/search", &json!({"query": {"text": "leap ".repeat(60_000)}}).to_string())
    }),
    ("a space that is not there", |it| {
        let space = *it.random.pick(&["", "nowhere", "../../etc/passwd", "tiny-000000", "';--"]);
        it.json("/v1/search", &json!({"query": {"text": "x"}, "space": space}).to_string())
    }),
    ("a source that is not there", |it| {
        let sources = it
            .random
            .pick(&[json!(["heard"]), json!([]), json!(["visual", "smell"]), json!("visual")])
            .clone();
        it.json("/v1/search", &json!({"query": {"text": "x"}, "sources": sources}).to_string())
    }),
    ("a filter that is none", |it| {
        let filter = it
            .random
            .pick(&[
                json!({}),
                json!([]),
                json!({"all": {}}),
                json!({"field": "x"}),
                json!({"field": "metadata.", "eq": 1}),
                json!({"field": "metadata.a", "eq": [1]}),
                json!({"field": "metadata.a", "lt": true}),
                json!({"field": "metadata.a", "eq": 1, "lt": 2}),
                json!({"field": "duration", "eq": "long"}),
                json!({"field": "created_at", "gt": "yesterday"}),
                json!({"field": "video_id", "eq": "7"}),
                json!({"field": "level", "eq": "shot"}),
                json!({"not": []}),
                json!({"xor": []}),
            ])
            .clone();
        it.json("/v1/search", &json!({"query": {"text": "x"}, "filter": filter}).to_string())
    }),
    ("a filter nested too deeply", |it| {
        let depth = 40 + it.random.next(2000);
        let filter = format!("{}{}{}", r#"{"not":"#.repeat(depth), r#"{"all":[]}"#, "}".repeat(depth));
        it.json("/v1/search", &format!(r#"{{"query": {{"text": "x"}}, "filter": {filter}}}"#))
    }),
    ("a filter of too many values", |it| {
        let values: Vec<usize> = (0..60_000).collect();
        it.json(
            "/v1/search",
            &json!({"query": {"text": "x"}, "filter": {"field": "metadata.a", "in": values}}).to_string(),
        )
    }),
    ("a cursor with a character changed", |it| {
        let mut cursor = it.cursor.clone().into_bytes();
        let at = it.random.next(cursor.len() - 1);
        cursor[at] = if cursor[at] == b'A' { b'B' } else { b'A' };
        it.json("/v1/search", &json!({"cursor": String::from_utf8(cursor).unwrap()}).to_string())
    }),
    ("a cursor cut short", |it| {
        let cut = it.random.next(it.cursor.len());
        it.json("/v1/search", &json!({"cursor": &it.cursor[..cut]}).to_string())
    }),
    ("a cursor with company", |it| {
        it.json("/v1/search", &json!({"cursor": it.cursor, "limit": 2}).to_string())
    }),
    ("a search without a content type", |it| {
        it.server.request("POST", "/v1/search").body(r#"{"query": {"text": "x"}}"#)
    }),
    ("a search of another content type", |it| {
        let kind =
            *it.random.pick(&["text/plain", "application/xml", "application/jsonx", "video/mp4", "a", ";"]);
        it.server
            .request("POST", "/v1/search")
            .header("content-type", kind)
            .body(r#"{"query": {"text": "x"}}"#)
    }),
    ("bytes that are no text", |it| {
        let bytes: Vec<u8> = (0..200).map(|_| 0x80 + it.random.next(0x80) as u8).collect();
        it.server.request("POST", "/v1/search").header("content-type", "application/json").body(bytes)
    }),
    ("a JSON body over the limit", |it| {
        let path = *it.random.pick(&["/v1/search", "/v1/embeddings", "/v1/videos"]);
        it.json(path, &format!(r#"{{"query": {{"text": "{}"}}}}"#, "x".repeat(1 << 20)))
    }),
    ("multipart without a boundary", |it| {
        let path = *it.random.pick(&["/v1/search", "/v1/videos", "/v1/embeddings"]);
        it.server.request("POST", path).header("content-type", "multipart/form-data").body("--x\r\n\r\n--x--")
    }),
    ("multipart with another boundary than said", |it| {
        it.multipart(
            "/v1/search",
            b"--other\r\ncontent-disposition: form-data; name=\"query\"\r\n\r\n{}\r\n--other--",
        )
    }),
    ("a multipart search cut in the middle", |it| {
        let body = it.form(&[("query", br#"{"query": {"upload": true}}"#), ("file", &it.film)]);
        let cut = it.random.next(body.len() - 8);
        it.multipart("/v1/search", &body[..cut])
    }),
    ("an upload cut in the middle", |it| {
        let body = it.form(&[("metadata", b"{}"), ("file", &it.film)]);
        let cut = it.random.next(body.len() - 8);
        it.multipart("/v1/videos", &body[..cut])
    }),
    ("a multipart search without a file", |it| {
        let body = it.form(&[("query", br#"{"query": {"upload": true}}"#)]);
        it.multipart("/v1/search", &body)
    }),
    ("a multipart search without a query", |it| {
        let body = it.form(&[("file", &it.film)]);
        it.multipart("/v1/search", &body)
    }),
    ("a multipart search with two files", |it| {
        let body = it.form(&[("file", &it.film), ("file", &it.film)]);
        it.multipart("/v1/search", &body)
    }),
    ("a multipart search that uploads nothing", |it| {
        let body = it.form(&[("query", br#"{"query": {"text": "x"}}"#), ("file", &it.film)]);
        it.multipart("/v1/search", &body)
    }),
    ("a query part over the limit", |it| {
        let query = format!(r#"{{"query": {{"upload": true}}, "space": "{}"}}"#, "x".repeat(256 << 10));
        let body = it.form(&[("query", query.as_bytes()), ("file", &it.film)]);
        it.multipart("/v1/search", &body)
    }),
    ("an upload over the limit", |it| {
        let path = *it.random.pick(&["/v1/search", "/v1/videos"]);
        let zeros = vec![0; 300_000];
        let body = it.form(&[("query", br#"{"query": {"upload": true}}"#), ("file", &zeros)]);
        let body = if path == "/v1/videos" { it.form(&[("file", &zeros)]) } else { body };
        it.multipart(path, &body)
    }),
    ("a file that is no video", |it| {
        let noise: Vec<u8> = (0..1000).map(|_| it.random.next(256) as u8).collect();
        let bytes = it.random.pick(&[b"just a text".to_vec(), Vec::new(), noise]).clone();
        if it.random.next(2) == 0 {
            let body = it.form(&[("query", br#"{"query": {"upload": true}}"#), ("file", &bytes)]);
            it.multipart("/v1/search", &body)
        } else {
            let body = it.form(&[("file", &bytes)]);
            it.multipart("/v1/videos", &body)
        }
    }),
    ("an upload with a wrong part", |it| {
        let (name, value) = *it.random.pick(&[
            ("metadata", "[]"),
            ("metadata", "{"),
            ("metadata", r#"{"a": "\u0000"}"#),
            ("segmentation", r#"{"policy": "fixed", "params": {"threshold": 3}}"#),
            ("segmentation", r#"{"policy": "given"}"#),
            ("segmentation", r#"{"params": {"threshold": -1}}"#),
            ("segmentation", r#"{"policy": "given", "clips": [{"start": 2, "end": 1}]}"#),
            ("subtitles", "hello"),
            ("subtitles", "1\n00:00:00,000 --> soon\nhello"),
            ("subtitles", "WEBVTT\n\n00:02.000 --> 00:01.000\nhello"),
            ("recorded_at", "yesterday"),
            ("title", ""),
            ("labels", "[]"),
        ]);
        let body = it.form(&[(name, value.as_bytes()), ("file", &it.film)]);
        it.multipart("/v1/videos", &body)
    }),
    ("a video to add that is not named well", |it| {
        let body = it
            .random
            .pick(&[
                json!({}),
                json!({"path": "/etc/passwd"}),
                json!({"path": "../../etc/passwd"}),
                json!({"path": ""}),
                json!({"path": 7}),
                json!({"url": "https://example.com/a.mp4"}),
                json!({"url": "file:///etc/passwd"}),
                json!({"path": "/a", "url": "https://example.com/a.mp4"}),
                json!({"path": "/a", "metadata": 1}),
                json!({"path": "/a", "colour": 1}),
            ])
            .clone();
        it.json("/v1/videos", &body.to_string())
    }),
    ("a wrong id in the path", |it| {
        let (id, method) = (it.wrong_id(), *it.random.pick(&["GET", "DELETE"]));
        let path = format!("/v1/{}/{id}", it.random.pick(&["videos", "clips", "jobs"]));
        it.server.request(if path.contains("jobs") { "GET" } else { method }, &path)
    }),
    ("an unknown id in the path", |it| {
        let id = it.unknown_id();
        let (method, path) = *it.random.pick(&[
            ("GET", "/v1/videos/ID"),
            ("DELETE", "/v1/videos/ID"),
            ("DELETE", "/v1/videos/ID?purge=true"),
            ("POST", "/v1/videos/ID/restore"),
            ("GET", "/v1/videos/ID/clips"),
            ("GET", "/v1/videos/ID/media"),
            ("GET", "/v1/videos/ID/thumbnail"),
            ("GET", "/v1/clips/ID"),
            ("DELETE", "/v1/clips/ID"),
            ("GET", "/v1/clips/ID/preview"),
            ("GET", "/v1/jobs/ID/events"),
            ("POST", "/v1/jobs/ID/cancel"),
            ("POST", "/v1/jobs/ID/retry"),
        ]);
        it.server.request(method, &path.replace("ID", &id))
    }),
    ("a wrong method", |it| {
        let method = *it.random.pick(&["PUT", "DELETE", "PATCH", "BREW", "TRACE"]);
        let path = *it.random.pick(&[
            "/v1/search",
            "/v1/videos",
            "/v1/jobs",
            "/v1/stats",
            "/livez",
            "/",
            "/openapi.json",
        ]);
        it.server.request(method, path)
    }),
    ("a path that leads nowhere", |it| {
        let path = *it.random.pick(&[
            "/v1",
            "/v2/videos",
            "/v1/video",
            "/v1/videos/",
            "/static/../../Cargo.toml",
            "/static/%2e%2e/%2e%2e/Cargo.toml",
            "/static/..%2f..%2fCargo.toml",
            "/static//etc/passwd",
            "/%00",
            "/v1/videos/%ff",
        ]);
        it.server.request("GET", path)
    }),
    ("a wrong query string", |it| {
        let query = *it.random.pick(&[
            "videos?limit=0",
            "videos?limit=1001",
            "videos?limit=-1",
            "videos?limit=x",
            "videos?cursor=7",
            "videos?colour=red",
            "jobs?state=done",
            "jobs?kind=magic",
            "jobs?video_id=7",
            "videos/VIDEO/clips?cursor=7",
            "videos/VIDEO/clips?cursor=x.y",
            "videos/VIDEO/media?rendition=4k",
        ]);
        let path = format!("/v1/{}", query.replace("VIDEO", &it.video));
        it.server.request("GET", &path)
    }),
    ("a change that can't be made", |it| {
        let (path, body) = it
            .random
            .pick(&[
                ("/v1/videos/VIDEO", json!({"title": ""})),
                ("/v1/videos/VIDEO", json!({"title": null})),
                ("/v1/videos/VIDEO", json!({"title": "a\u{0}b"})),
                ("/v1/videos/VIDEO", json!({"metadata": [1]})),
                ("/v1/videos/VIDEO", json!({"metadata": {"a": "x".repeat(70_000)}})),
                ("/v1/videos/VIDEO", json!({"recorded_at": "2024-13-01"})),
                ("/v1/videos/VIDEO", json!({"id": "7"})),
                ("/v1/clips/CLIP", json!({})),
                ("/v1/clips/CLIP", json!({"start": 1})),
            ])
            .clone();
        let path = path.replace("VIDEO", &it.video).replace("CLIP", &it.clip);
        it.server.request("PATCH", &path).json(&body)
    }),
    ("something that is not there yet or can't be done", |it| {
        let (method, path) = *it.random.pick(&[
            ("PUT", "/v1/videos/VIDEO/subtitles/en"),
            ("GET", "/v1/videos/VIDEO/subtitles/en"),
            ("DELETE", "/v1/videos/VIDEO/subtitles/en"),
            ("PUT", "/v1/videos/VIDEO/subtitles/english"),
            ("GET", "/v1/videos/VIDEO/subtitles/e?offset=1"),
            ("GET", "/v1/videos/VIDEO/subtitles/en?offset=-1"),
            ("GET", "/v1/videos/CLIP/subtitles"),
            ("PUT", "/v1/videos/CLIP/subtitles/en"),
            ("GET", "/v1/videos/VIDEO/timeline"),
            ("GET", "/v1/videos/VIDEO/timeline?text=x&points=0"),
            ("GET", "/v1/videos/VIDEO/timeline?text=x&clip_id=CLIP"),
            ("GET", "/v1/videos/VIDEO/timeline?text=x&modification=y"),
            ("GET", "/v1/videos/CLIP/timeline?text=x"),
            ("POST", "/v1/videos/VIDEO/resegment"),
            ("POST", "/v1/spaces"),
            ("POST", "/v1/spaces/tiny/activate"),
            ("POST", "/v1/spaces/no/pause"),
            ("POST", "/v1/spaces/no/resume"),
        ]);
        it.server.request(method, &path.replace("VIDEO", &it.video).replace("CLIP", &it.clip))
    }),
    ("something that the service never does", |it| {
        let (method, path) = *it.random.pick(&[
            ("POST", "/v1/videos/VIDEO/subtitles"),
            ("DELETE", "/v1/clips/CLIP"),
            ("PATCH", "/v1/clips/CLIP"),
        ]);
        let path = path.replace("VIDEO", &it.video).replace("CLIP", &it.clip);
        it.server.request(method, &path).json(&json!({"metadata": {}}))
    }),
];

const BOUNDARY: &str = "boundary-of-the-test";

impl Maker<'_> {
    fn json(&self, path: &str, body: &str) -> RequestBuilder {
        self.server.request("POST", path).header("content-type", "application/json").body(body.to_owned())
    }

    fn range(&self, start: f64, end: f64) -> RequestBuilder {
        let clip = json!({"video_id": self.video, "start": start, "end": end});
        self.json("/v1/search", &json!({"query": {"clip": clip}}).to_string())
    }

    fn multipart(&self, path: &str, body: &[u8]) -> RequestBuilder {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        self.server.request("POST", path).header("content-type", kind).body(body.to_vec())
    }

    fn form(&self, parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, content) in parts {
            let file = if *name == "file" { "; filename=\"a.mp4\"" } else { "" };
            let head =
                format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        body
    }

    fn wrong_value(&mut self) -> Value {
        self.random.pick(&[json!(7), json!(-1.5), json!("seven"), json!([[]]), json!({"a": {}})]).clone()
    }

    fn wrong_id(&mut self) -> String {
        (*self.random.pick(&["7", "null", "..%2f..", "00000000-0000-0000-0000-00000000000g", "%20", "a'b"]))
            .to_owned()
    }

    fn unknown_id(&mut self) -> String {
        format!("0189{:04x}-0000-7000-8000-{:012x}", self.random.next(1 << 16), self.random.next(1 << 40))
    }
}
