//! Media over HTTP: originals in ranges, renditions, previews and thumbnails, checked with ffprobe.

use std::path::Path;

use reprise_tests::film::{Store, ffprobe, film};
use reprise_tests::server::Server;
use reqwest::Response;
use serde_json::Value;

async fn fetch(server: &Server, path: &str, range: Option<&str>) -> Response {
    let mut request = server.request("GET", path);
    if let Some(range) = range {
        request = request.header("range", range);
    }
    request.send().await.unwrap()
}

/// Fetches a whole media file and probes it; returns content type and first stream.
async fn probed(server: &Server, path: &str, folder: &Path) -> (String, Value) {
    let response = fetch(server, path, None).await;
    assert_eq!(response.status(), 200, "{path}");
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let file = folder.join("fetched");
    std::fs::write(&file, response.bytes().await.unwrap()).unwrap();
    (kind, ffprobe(&file)["streams"][0].clone())
}

fn seconds(stream: &Value) -> f64 {
    stream["nb_read_frames"].as_str().unwrap().parse::<f64>().unwrap() / 25.0
}

#[tokio::test]
async fn media_is_served_as_browsers_ask_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &[]);
    let file = film(folder.path(), "plays", &["testsrc2", "color=c=red"], Store::Web);
    let plays = server.ingest(&file).await;
    let strange =
        server.ingest(&film(folder.path(), "strange", &["smptebars", "color=c=blue"], Store::Lossless)).await;
    originals_come_whole_and_in_ranges(&server, &plays, &std::fs::read(&file).unwrap()).await;
    a_file_that_no_browser_plays_has_a_rendition(&server, &strange, folder.path()).await;
    clips_have_pictures_and_previews(&server, &strange, folder.path()).await;
}

async fn originals_come_whole_and_in_ranges(server: &Server, video: &Value, bytes: &[u8]) {
    let path = video["media_url"].as_str().unwrap();
    let whole = fetch(server, path, None).await;
    assert_eq!(
        (whole.status().as_u16(), &whole.headers()["accept-ranges"]),
        (200, &"bytes".parse().unwrap())
    );
    assert_eq!(whole.headers()["content-type"], "video/mp4");
    assert_eq!(whole.headers()["x-content-type-options"], "nosniff");
    assert_eq!(whole.bytes().await.unwrap(), bytes);
    let length = bytes.len();
    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=10-99".to_owned(), 10, 100),
        ("bytes=100-".to_owned(), 100, length),
        ("bytes=-50".to_owned(), length - 50, length),
        (format!("bytes=10-{}", length * 2), 10, length),
    ] {
        let part = fetch(server, path, Some(&range)).await;
        assert_eq!(part.status(), 206, "{range}");
        let content_range = format!("bytes {from}-{}/{length}", to - 1);
        assert_eq!(part.headers()["content-range"], content_range.as_str());
        assert_eq!(part.bytes().await.unwrap(), bytes[from..to], "{range}");
    }
    let beyond = server.request("GET", path).header("range", format!("bytes={length}-"));
    let answer = beyond.try_clone().unwrap().send().await.unwrap();
    assert_eq!(answer.headers()["content-range"], format!("bytes */{length}").as_str());
    server.refused(beyond, 416).await;
    let head = server.request("HEAD", path).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-length"]),
        (200, &length.to_string().parse().unwrap())
    );
}

async fn a_file_that_no_browser_plays_has_a_rendition(server: &Server, video: &Value, folder: &Path) {
    assert_eq!(video["plays_in_browsers"], false);
    let (kind, original) = probed(server, video["media_url"].as_str().unwrap(), folder).await;
    assert_eq!((kind.as_str(), &original["codec_name"]), ("video/x-matroska", &"ffv1".into()));
    let path = video["rendition_url"].as_str().unwrap();
    // Two concurrent requests share one rendering.
    let (first, second) = tokio::join!(fetch(server, path, None), fetch(server, path, None));
    assert_eq!(first.bytes().await.unwrap(), second.bytes().await.unwrap());
    let (kind, web) = probed(server, path, folder).await;
    assert_eq!(
        (kind.as_str(), &web["codec_name"], &web["pix_fmt"]),
        ("video/mp4", &"h264".into(), &"yuv420p".into())
    );
    assert!((seconds(&web) - 4.0).abs() < 0.1, "{web}");
    assert_eq!((&web["width"], &web["height"]), (&160.into(), &120.into()));
    assert_eq!(fetch(server, path, Some("bytes=0-99")).await.status(), 206);
}

async fn clips_have_pictures_and_previews(server: &Server, video: &Value, folder: &Path) {
    let (_, clips) = server.get(&format!("/v1/videos/{}/clips", video["id"].as_str().unwrap())).await;
    let clip = &clips["items"][1];
    for path in [video["thumbnail_url"].as_str().unwrap(), clip["thumbnail_url"].as_str().unwrap()] {
        let (kind, picture) = probed(server, path, folder).await;
        assert_eq!((kind.as_str(), &picture["codec_name"]), ("image/jpeg", &"mjpeg".into()), "{path}");
        let shape = picture["width"].as_f64().unwrap() / picture["height"].as_f64().unwrap();
        assert!((shape - 4.0 / 3.0).abs() < 0.05, "{picture}");
    }
    let (kind, preview) = probed(server, clip["preview_url"].as_str().unwrap(), folder).await;
    assert_eq!((kind.as_str(), &preview["codec_name"]), ("video/mp4", &"h264".into()));
    assert!((seconds(&preview) - 2.0).abs() < 0.2, "{preview}");
    let before = std::fs::read_dir(folder.join("data/incoming")).unwrap().count();
    assert_eq!(before, 0, "nothing half made is left");
}
