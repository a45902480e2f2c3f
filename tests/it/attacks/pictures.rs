//! Renders that take long, and files that they would leave behind.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reprise_tests::film::{Store, film};
use reprise_tests::server::{PATIENCE, Server};
use serde_json::Value;
use tempfile::TempDir;

use crate::faults::bed::until;

/// A server whose ffmpeg renders for browsers at the film's own speed.
struct SlowRenders {
    folder: TempDir,
    server: Server,
}

impl SlowRenders {
    fn start() -> SlowRenders {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let script = "#!/bin/sh\ncase \"$*\" in *veryfast*) set -- -re \"$@\";; esac\nexec ffmpeg \"$@\"\n";
        let ffmpeg = folder.path().join("ffmpeg");
        std::fs::write(&ffmpeg, script).unwrap();
        std::fs::set_permissions(&ffmpeg, std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        let environment = [("REPRISE_FFMPEG", ffmpeg.as_path()), ("REPRISE_NO_SANDBOX", Path::new("true"))];
        let server = Server::try_start_with(&data, &[], &environment).unwrap();
        SlowRenders { folder, server }
    }

    /// Starts a rendition of eight seconds; returns its request.
    async fn render(&self, video: &Value) -> tokio::task::JoinHandle<u16> {
        let path = format!("{}?rendition=web", video["media_url"].as_str().unwrap());
        let request = self.server.request("GET", &path).timeout(PATIENCE);
        let rendering = tokio::spawn(async move { request.send().await.unwrap().status().as_u16() });
        let is_rendered = || files(&self.data().join("incoming")).iter().any(|name| name.ends_with(".mp4"));
        until("ffmpeg renders", async || is_rendered().then_some(())).await;
        rendering
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renditions_hold_up_no_thumbnail() {
    let slow = SlowRenders::start();
    let film = film(slow.folder.path(), "film", &["testsrc2", "color=c=red"].repeat(2), Store::Lossless);
    let video = slow.server.ingest(&film).await;
    let rendering = slow.render(&video).await;
    let thumbnail = format!("/v1/videos/{}/thumbnail", video["id"].as_str().unwrap());
    let response = slow.server.request("GET", &thumbnail).timeout(PATIENCE).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!rendering.is_finished(), "the thumbnail waited for the rendition");
    assert_eq!(rendering.await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_that_is_deleted_during_a_render_leaves_no_file() {
    let slow = SlowRenders::start();
    let film = film(slow.folder.path(), "film", &["testsrc2", "color=c=red"], Store::Lossless);
    let video = slow.server.ingest(&film).await;
    let rendering = slow.render(&video).await;
    let path = format!("/v1/videos/{}", video["id"].as_str().unwrap());
    assert_eq!(slow.server.delete(&path).await.0, 204);
    assert_eq!(rendering.await.unwrap(), 404);
    for folder in ["renditions", "incoming"] {
        assert_eq!(files(&slow.data().join(folder)), [""; 0], "{folder}");
    }
}
