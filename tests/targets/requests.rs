//! HTTP requests to the service: JSON, multipart bodies, query strings, `Range`, keys, signed links.
//!
//! An input is a request as text: `METHOD PATH`, headers, an empty line, the body. `{video}` in the path is the id of the
//! stored video.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use reprise_server::app::App;
use reprise_server::config::Config;
use reprise_server::{http, start};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::film::{Store, film};

/// Longest answer that is looked at.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests beside reading ones. Others would change the service for the requests after them.
const POSTS: [&str; 5] = ["/v1/search", "/v1/embeddings", "/v1/media-links", "/v1/videos", "/v1/uploads"];

/// The service in this process, without its background tasks.
struct Service {
    runtime: Runtime,
    app: Arc<App>,
    video: String,
    video_bytes: u64,
    _folder: TempDir,
}

/// The command line of a service.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    config: Config,
}

fn service() -> &'static Mutex<Service> {
    static SERVICE: OnceLock<Mutex<Service>> = OnceLock::new();
    SERVICE.get_or_init(|| Mutex::new(Service::start()))
}

impl Service {
    fn start() -> Service {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data").to_string_lossy().into_owned();
        let flags = ["reprise", "--data-dir", &data, "--model", "builtin:tiny"];
        let config = Flags::try_parse_from(flags).expect("flags of the service").config;
        let app = runtime.block_on(start::open(config)).expect("the service opens");
        let file = film(folder.path(), "film", &["testsrc2"], Store::Web);
        let content = std::fs::read(file).expect("the film was rendered");
        let mut service = Service {
            runtime,
            app,
            video: String::new(),
            video_bytes: content.len() as u64,
            _folder: folder,
        };
        service.video = service.upload(&content);
        service
    }

    fn upload(&self, content: &[u8]) -> String {
        let head = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"film.mp4\"\r\n\r\n";
        let body = [&head[..], content, b"\r\n--x--\r\n"].concat();
        let request = Request::post("/v1/videos").header("content-type", "multipart/form-data; boundary=x");
        let answer = self.send(request.body(Full::from(body)).expect("a request"));
        assert_eq!(answer.status(), StatusCode::ACCEPTED, "{:?}", answer.body());
        let added: Value = serde_json::from_slice(answer.body()).expect("JSON");
        added["video"]["id"].as_str().expect("a video has an id").to_owned()
    }

    fn send(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        self.runtime.block_on(async {
            let answered =
                tokio::time::timeout(PATIENCE, http::router(Arc::clone(&self.app)).oneshot(request));
            let answer = answered.await.expect("an answer in time").unwrap_or_else(|never| match never {});
            let (head, body) = answer.into_parts();
            let body = tokio::time::timeout(PATIENCE, body.collect()).await.expect("an answer in time");
            Response::from_parts(head, body.expect("the answer comes whole").to_bytes())
        })
    }

    /// The request of an input; `None` if it is none, or would change the service.
    fn request(&self, bytes: &[u8]) -> Option<Request<Full<Bytes>>> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).replace("{video}", &self.video);
        let body = bytes.get(end + 2..).unwrap_or_default();
        let mut lines = head.lines();
        let (method, path) = lines.next()?.split_once(' ')?;
        let method: Method = method.parse().ok()?;
        let reads = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        let posts = method == Method::POST && POSTS.contains(&path.split('?').next()?);
        // An event stream has no end.
        if !(reads || posts) || path.contains("events") || path.contains("preview") {
            return None;
        }
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            request = request.header(name.trim(), value.trim());
        }
        request.body(Full::from(body.to_vec())).ok()
    }
}

/// The service answers; a refusal is a problem with its reason, and a part of a file is the part that was asked for.
pub(super) fn run(bytes: &[u8]) {
    let service = service().lock().unwrap_or_else(PoisonError::into_inner);
    let Some(request) = service.request(bytes) else { return };
    let (uri, method) = (request.uri().clone(), request.method().clone());
    let answer = service.send(request);
    let status = answer.status();
    assert!(!status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE, "{uri}: {answer:?}");
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    if status == StatusCode::PARTIAL_CONTENT {
        let range = header("content-range").and_then(|it| it.strip_prefix("bytes ")).expect("a range");
        let (range, all) = range.split_once('/').expect("the file's length");
        let (first, last) = range.split_once('-').expect("first and last byte");
        let [first, last, all]: [u64; 3] = [first, last, all].map(|number| number.parse().expect("a number"));
        assert!(first <= last && last < all && all == service.video_bytes, "{uri}: {answer:?}");
        assert!(
            method == Method::HEAD || answer.body().len() as u64 == last - first + 1,
            "{uri}: {answer:?}"
        );
    } else if status.is_client_error() && method != Method::HEAD {
        let problem: Value = serde_json::from_slice(answer.body()).expect("a problem is JSON");
        assert_eq!(problem["status"], status.as_u16(), "{uri}: {problem}");
    }
}
