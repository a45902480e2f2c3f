//! Where the fault of a refused request is: a JSON pointer into its body, or the name of a parameter, header or part.

use reqwest::RequestBuilder;
use serde_json::json;

use super::Maker;

/// Each refusal points at the member, parameter or part that it is about.
pub(super) async fn refusals_name_the_place_of_the_fault(maker: &Maker<'_>) {
    let server = maker.server;
    let check = async |request: RequestBuilder, (status, pointer): (u16, &str)| {
        let problem = server.refused(request, status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    };
    let (video, nobody) = (&maker.video, "01890000-0000-7000-8000-000000000000");
    for (path, body, expected) in [
        ("/v1/search", r#"{"query": {"text": "x"#, (400, "/query/text")),
        (
            "/v1/search",
            r#"{"query": {"like": [{"text": "x"}, {"text": 1e999}]}}"#,
            (400, "/query/like/1/text"),
        ),
        ("/v1/search", r#"{"query": {"text": "x"}} {}"#, (400, "")),
        ("/v1/search", r#"{"query": {"text": 7}}"#, (422, "/query/text")),
        ("/v1/search", r#"{"query": {"clip_id": "NOBODY"}}"#, (404, "/query/clip_id")),
        ("/v1/search", r#"{"query": {"text": "x"}, "fusion": {"mode": "loudest"}}"#, (422, "/fusion/mode")),
        (
            "/v1/embeddings",
            r#"{"input": {"clip": {"video_id": "NOBODY", "start": 0, "end": 1}}}"#,
            (404, "/input/clip/video_id"),
        ),
        (
            "/v1/embeddings",
            r#"{"input": {"clip": {"video_id": "VIDEO", "start": 90, "end": 91}}}"#,
            (422, "/input/clip"),
        ),
        (
            "/v1/alerts",
            r#"{"name": "a", "search": {"query": {"clip_id": "NOBODY"}}}"#,
            (404, "/search/query/clip_id"),
        ),
        (
            "/v1/exports",
            r#"{"format": "edl", "search": {"query": {"clip_id": "NOBODY"}}}"#,
            (404, "/search/query/clip_id"),
        ),
        ("/v1/exports", r#"{"format": "edl", "reel_id": "NOBODY"}"#, (404, "/reel_id")),
        ("/v1/videos", r#"{"path": "/etc/passwd"}"#, (403, "/path")),
        ("/v1/videos", r#"{"url": "https://example.com/a.mp4"}"#, (403, "/url")),
        ("/v1/spaces", r#"{"model": "/etc"}"#, (403, "/model")),
        ("/v1/videos/NOBODY/resegment", r#"{"policy": "hybrid"}"#, (404, "id")),
    ] {
        let put = |text: &str| text.replace("NOBODY", nobody).replace("VIDEO", video);
        check(maker.json(&put(path), &put(body)), expected).await;
    }
    for (method, path, expected) in [
        ("GET", "/v1/videos/7", (404, "id")),
        ("GET", "/v1/videos/NOBODY", (404, "id")),
        ("GET", "/v1/clips/NOBODY/preview", (404, "id")),
        ("DELETE", "/v1/clips/NOBODY", (404, "id")),
        ("GET", "/v1/jobs/NOBODY", (404, "id")),
        ("GET", "/v1/reels/NOBODY", (404, "id")),
        ("DELETE", "/v1/reels/NOBODY", (428, "If-Match")),
        ("POST", "/v1/spaces/no/pause", (404, "id")),
        ("GET", "/v1/videos/VIDEO/sprites/x", (404, "sheet")),
        ("GET", "/v1/videos/VIDEO/sprites/900", (404, "sheet")),
        ("GET", "/v1/videos/VIDEO/subtitles/en", (404, "lang")),
        ("GET", "/v1/videos/VIDEO/timeline", (422, "text")),
        ("GET", "/v1/videos/VIDEO/timeline?text=x&points=0", (422, "points")),
        ("GET", "/v1/videos/VIDEO/timeline?text=x&space=no", (422, "space")),
        ("GET", "/v1/videos/VIDEO/timeline?clip_id=NOBODY", (404, "clip_id")),
        ("GET", "/v1/videos/VIDEO/timeline?clip_video_id=NOBODY&start=0&end=1", (404, "clip_video_id")),
        ("GET", "/v1/videos/VIDEO/timeline?clip_video_id=VIDEO&start=90&end=91", (422, "start")),
        ("GET", "/v1/videos/VIDEO/timeline?clip_video_id=VIDEO&start=2&end=1", (422, "end")),
        ("POST", "/v1/search", (415, "Content-Type")),
        ("POST", "/v1/uploads", (412, "Tus-Resumable")),
    ] {
        let path = path.replace("NOBODY", nobody).replace("VIDEO", video);
        check(server.request(method, &path), expected).await;
    }
    let line = format!("/v1/videos/{video}/transcript");
    for (line, expected) in
        [(format!("{line}/7"), (404, "line")), (format!("{line}/{nobody}"), (404, "line"))]
    {
        check(server.request("PATCH", &line).json(&json!({"text": "x"})), expected).await;
    }
    let other_version =
        server.request("PATCH", &format!("/v1/videos/{video}")).header("if-match", "\"other\"");
    check(other_version.json(&json!({"title": "x"})), (412, "If-Match")).await;
    let no_video = maker.form(&[("file", b"just a text")]);
    check(maker.multipart("/v1/videos", &no_video), (415, "file")).await;
    let too_large = maker.form(&[("file", &vec![0; 300_000])]);
    check(maker.multipart("/v1/videos", &too_large), (413, "file")).await;
    let wrong_part = maker.form(&[("metadata", br#"{"a": {"b": 1"#), ("file", &maker.film)]);
    check(maker.multipart("/v1/videos", &wrong_part), (400, "/metadata/a")).await;
    // The film is stored already, so the request makes nothing.
    let titled = |title: &[u8]| {
        let body = maker.form(&[("title", title), ("file", &maker.film)]);
        maker.multipart("/v1/videos", &body).header("idempotency-key", "once")
    };
    let (status, first) = server.send(titled(b"one")).await;
    assert_eq!((status.as_u16(), &first["duplicate"]), (202, &json!(true)), "{first}");
    check(titled(b"another"), (409, "Idempotency-Key")).await;
}
