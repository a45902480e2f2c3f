//! Resumable uploads by the tus protocol.

mod clients;
mod cutter;
mod deaths;
mod protocol;

use std::path::PathBuf;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use crate::faults::bed::Random;

/// A server, and a folder for films.
struct Uploading {
    folder: TempDir,
    server: Server,
}

impl Uploading {
    fn start(more: &[&str]) -> Uploading {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let server = Server::start(&folder.path().join("data"), more);
        Uploading { folder, server }
    }

    /// The files that the server has for unfinished uploads.
    fn parts(&self) -> usize {
        std::fs::read_dir(self.data().join("uploads")).unwrap().count()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A film, made long by bytes that players skip.
    fn film(&self, name: &str, more: usize) -> (PathBuf, Vec<u8>) {
        let path = film(self.folder.path(), name, &["testsrc2", "color=c=red"], Store::Web);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(u32::try_from(more + 8).unwrap().to_be_bytes());
        bytes.extend(b"free");
        let mut random = Random(more as u64);
        bytes.extend((0..more).map(|_| random.below(256) as u8));
        std::fs::write(&path, &bytes).unwrap();
        (path, bytes)
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.server.request(method, path).header("tus-resumable", "1.0.0")
    }

    /// Begins an upload. Returns its path.
    async fn begin(&self, length: usize) -> String {
        let request = self.request("POST", "/v1/uploads").header("upload-length", length);
        let begun = request.header("upload-metadata", "filename ZmlsbS5tcDQ=").send().await.unwrap();
        assert_eq!(begun.status(), 201, "{begun:?}");
        assert!(header(&begun, "upload-expires").is_some_and(|it| it.ends_with(" GMT")));
        header(&begun, "location").unwrap()
    }

    fn part(&self, path: &str, offset: usize, bytes: &[u8]) -> RequestBuilder {
        let request = self.request("PATCH", path).header("upload-offset", offset);
        request.header("content-type", "application/offset+octet-stream").body(bytes.to_vec())
    }

    /// Sends a part, which must be taken. Returns the answer.
    async fn send(&self, path: &str, offset: usize, bytes: &[u8]) -> Response {
        let sent = self.part(path, offset, bytes).send().await.unwrap();
        let status = sent.status();
        assert_eq!(status, 204, "{}", sent.text().await.unwrap());
        assert_eq!(header(&sent, "upload-offset"), Some((offset + bytes.len()).to_string()));
        sent
    }

    /// The offset that the server tells; `None` if it knows no such upload.
    async fn offset(&self, path: &str) -> Option<usize> {
        let answer = self.request("HEAD", path).send().await.unwrap();
        if answer.status() == StatusCode::NOT_FOUND {
            assert_eq!(header(&answer, "upload-offset"), None);
            return None;
        }
        assert_eq!(
            (answer.status(), header(&answer, "cache-control").as_deref()),
            (StatusCode::OK, Some("no-store"))
        );
        header(&answer, "upload-offset").unwrap().parse().ok()
    }

    /// Checks that the answer to the last part names a video with these bytes, which becomes searchable.
    async fn check_made(&self, last: &Response, bytes: &[u8]) -> Value {
        let job = header(last, "reprise-job-id").expect("a job");
        assert_eq!(self.server.job_end(&job).await["state"], "succeeded");
        self.check_video(&header(last, "reprise-video-id").expect("a video"), bytes).await
    }

    /// Checks that a stored video has these bytes. Returns it.
    async fn check_video(&self, id: &str, bytes: &[u8]) -> Value {
        let media = self.server.request("GET", &format!("/v1/videos/{id}/media")).send().await.unwrap();
        assert!(media.bytes().await.unwrap() == bytes, "the stored file has other bytes");
        assert_eq!(self.parts(), 0);
        self.server.get(&format!("/v1/videos/{id}")).await.1
    }
}

fn header(answer: &Response, name: &str) -> Option<String> {
    answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}
