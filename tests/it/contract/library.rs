//! A server whose library holds the ids of the contract's examples.

use std::path::{Path, PathBuf};

use reprise_server::catalog;
use reprise_tests::film::{Store, ffmpeg, film, run};
use reprise_tests::server::Server;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// The server's own key.
pub(super) const KEY: &str = "the key of the contract's tests";

/// The ids of the examples.
const VIDEO: &str = "01980f5e-7c3a-7b12-9a44-5d2f8c1e0a01";
const CLIP: &str = "01980f5e-8d10-7c3e-8f27-a1b2c3d4e502";
const JOB: &str = "01980f5e-7c41-7a05-b3d9-6e7f80912a03";
const QUEUED_JOB: &str = "01980f60-11d2-7e6b-a8c4-0f1e2d3c4b04";
const LINE: &str = "01980f5f-aa10-7c33-b255-6f708192ac06";
const API_KEY: &str = "01980f5d-30b8-7d44-8e12-c0ffee12ab05";
const REEL: &str = "01980f62-44aa-7c10-8b2d-9d8e7f605107";
const EXPORT: &str = "01980f63-55bb-7d21-9c3e-0e9f8a716208";
const SEARCH: &str = "01980f64-66cc-7e32-8d4f-1fa09b827309";
const WEBHOOK: &str = "01980f64-66cc-7e32-8d4f-1f0a9b827309";
const ALERT: &str = "01980f65-77dd-7f43-9e50-2a1b0c938410";
const UPLOAD: &str = "01980f66-88ee-7054-8f61-3b2c1da49511";
const EVALUATION: &str = "01980f66-88ee-7054-8f61-3b2c1d0e9511";
const CANCELLED_JOB: &str = "01980f60-2a77-7f19-9c5d-7b6a59483706";

/// A server with one video, its clips, subtitles, jobs and an API key.
pub(super) struct Library {
    pub(super) server: Server,
    folder: TempDir,
}

impl Library {
    /// Ingests a video, gives its rows the ids of the examples, and serves it with [`KEY`].
    pub(super) async fn start() -> Library {
        let folder = tempfile::tempdir().unwrap();
        let (data, videos) = (folder.path().join("data"), folder.path().join("videos"));
        std::fs::create_dir(&data).unwrap();
        std::fs::create_dir(&videos).unwrap();
        let file = film(&videos, "vault", &["testsrc2", "color=c=red"], Store::Web);
        let made = fill(&data, &file).await;
        rename(&data, &made).await;
        let root = videos.to_str().unwrap();
        // Nobody listens there. The film has no sound to be sent.
        let arguments = ["--api-key", KEY, "--media-root", root, "--transcribe-url", "http://127.0.0.1:9"];
        let server = Server::start(&data, &arguments);
        Library { server, folder }
    }

    /// The film.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("videos/vault.mp4")
    }

    /// The film's first frame as a JPEG.
    pub(super) fn picture(&self) -> PathBuf {
        let picture = self.folder.path().join("vault.jpg");
        run(ffmpeg().arg("-i").arg(self.file()).args(["-frames:v", "1"]).arg(&picture));
        picture
    }

    /// A request with the key.
    pub(super) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.server.request(method, path).bearer_auth(KEY)
    }

    /// The JSON of a request that succeeds.
    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.server.send(self.request("GET", path)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// Waits for the end of a job.
    pub(super) async fn job_end(&self, id: &str) {
        let events = self.request("GET", &format!("/v1/jobs/{id}/events")).send().await.unwrap();
        events.text().await.unwrap();
    }
}

/// Fills a library over HTTP. Returns each new row's id with the id of the examples.
async fn fill(data: &Path, file: &Path) -> Vec<(String, &'static str)> {
    let server = Server::start(data, &[]);
    let details = [("metadata", json!({"event": "vault", "team": "a"}))];
    let (_, added) = server.upload(file, &details).await;
    let id = |of: &Value| of["id"].as_str().unwrap().to_owned();
    let (video, job) = (id(&added["video"]), id(&added["job"]));
    assert_eq!(server.job_end(&job).await["state"], "succeeded");
    let path = format!("/v1/videos/{video}");
    let (_, clip) = server.post(&format!("{path}/clips"), &json!({"start": 0.5, "end": 1.5})).await;
    server.job_end(&id(&clip["job"])).await;
    let cue = "WEBVTT\n\n00:00.500 --> 00:01.500\nShe runs up to the vault.\n";
    let subtitles = server.request("PUT", &format!("{path}/subtitles/en")).body(cue);
    assert_eq!(server.send(subtitles.header("content-type", "text/vtt")).await.0, 200);
    let (_, said) = server.get(&format!("{path}/transcript")).await;
    let ranges = json!([{"video_id": video, "start": 0.5, "end": 1.5}]);
    let (_, reel) = server.post("/v1/reels", &json!({"name": "Vaults", "ranges": ranges})).await;
    let (_, export) = server.post("/v1/exports", &json!({"format": "csv", "reel_id": id(&reel)})).await;
    assert_eq!(server.job_end(&id(&export)).await["state"], "succeeded");
    let searched =
        server.search(&json!({"query": {"clip_id": clip["clip"]["id"]}, "exclude": {"self": false}})).await;
    let hook = json!({"url": "https://example.com/hooks", "events": ["alert.matched"]});
    let (_, hook) = server.post("/v1/webhooks", &hook).await;
    let alert = json!({"name": "Vaults", "search": {"query": {"text": "a vault"}}, "webhooks": [hook["id"]]});
    let (_, alert) = server.post("/v1/alerts", &alert).await;
    let begin = server.request("POST", "/v1/uploads").header("tus-resumable", "1.0.0");
    let begun = begin.header("upload-length", "1000000").send().await.unwrap();
    let upload = begun.headers()["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let relevant = json!([{"video_id": video, "start": 0.5, "end": 1.5}]);
    let queries = json!([{"text": "a vault", "relevant": relevant}]);
    let evaluation = json!({"name": "Vaults", "spaces": ["tiny-1ade90"], "queries": queries});
    let (_, evaluation) = server.post("/v1/evaluations", &evaluation).await;
    assert_eq!(server.job_end(&id(&evaluation)).await["state"], "succeeded");
    // Evaluations take their queries from what was judged.
    let worded = server.search(&json!({"query": {"text": "a vault"}})).await;
    let feedback = json!({"clip_id": worded["results"][0]["clip_id"], "verdict": "relevant"});
    let path = format!("/v1/searches/{}/feedback", worded["search_id"].as_str().unwrap());
    assert_eq!(server.post(&path, &feedback).await.0, 204);
    // Last: from then on the server wants a key.
    let (_, key) = server.post("/v1/keys", &json!({"name": "Team B", "scopes": ["read"]})).await;
    let mut made = vec![(video, VIDEO), (id(&clip["clip"]), CLIP), (job, JOB), (id(&key), API_KEY)];
    made.extend([(id(&reel), REEL), (id(&export), EXPORT), (id(&hook), WEBHOOK), (id(&alert), ALERT)]);
    made.extend([(id(&evaluation), EVALUATION), (id(&said["items"][0]), LINE)]);
    made.push((searched["search_id"].as_str().unwrap().to_owned(), SEARCH));
    made.push((upload, UPLOAD));
    assert!(server.stop(), "a server that was asked to stop leaves with 0");
    made
}

/// Gives rows the ids of the examples, and adds a job that waits and one that was cancelled.
async fn rename(data: &Path, made: &[(String, &str)]) {
    let mut database = SqliteConnection::connect(&catalog::embedded_url(data)).await.unwrap();
    sqlx::query("PRAGMA foreign_keys = OFF").execute(&mut database).await.unwrap();
    let columns = [
        "videos.id",
        "spans.id",
        "spans.video",
        "video_attributes.video",
        "tracks.video",
        "cues.id",
        "jobs.id",
        "jobs.video",
        "idempotency_keys.video",
        "api_keys.id",
        "reels.id",
        "reel_ranges.reel",
        "reel_ranges.video",
        "evaluations.id",
        "evaluation_queries.evaluation",
        "exports.id",
        "export_videos.export",
        "export_videos.video",
        "searches.id",
        "searches.clip",
        "searches.video",
        "search_hits.search",
        "search_hits.span",
        "search_hits.video",
        "webhooks.id",
        "alerts.id",
        "alert_webhooks.alert",
        "alert_webhooks.webhook",
        "uploads.id",
    ];
    for (old, new) in made {
        for (table, column) in columns.iter().filter_map(|it| it.split_once('.')) {
            let sql = format!("UPDATE {table} SET {column} = ? WHERE {column} = ?");
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(bytes(new)).bind(bytes(old));
            query.execute(&mut database).await.unwrap();
        }
    }
    for (id, state) in [(QUEUED_JOB, "queued"), (CANCELLED_JOB, "cancelled")] {
        let sql = "INSERT INTO jobs (id, kind, video, state, not_before_ms, created_at_ms, updated_at_ms) \
                   VALUES (?, 'fill', ?, ?, ?, 0, 0)";
        let query = sqlx::query(sql).bind(bytes(id)).bind(bytes(VIDEO)).bind(state);
        query.bind(i64::MAX / 2).execute(&mut database).await.unwrap();
    }
    database.close().await.unwrap();
}

fn bytes(id: &str) -> Vec<u8> {
    id.parse::<Uuid>().unwrap().as_bytes().to_vec()
}
