//! Signed links to reels: what they show to people without a key, and when they end.

use serde_json::{Value, json};

use super::{Guarded, Holder, ROOT};
use crate::faults::bed::until;

/// A link that was made.
struct Shared<'a> {
    guarded: &'a Guarded,
    query: String,
}

impl Shared<'_> {
    async fn status(&self, method: &str, path: &str) -> u16 {
        let mark = if path.contains('?') { '&' } else { '?' };
        let request = self.guarded.server.request(method, &format!("{path}{mark}{}", self.query));
        request.send().await.unwrap().status().as_u16()
    }

    /// Checks what the link answers for each path.
    async fn check(&self, expected: u16, paths: &[String]) {
        for path in paths {
            assert_eq!(self.status("GET", path).await, expected, "{path}");
        }
    }
}

async fn share<'a>(guarded: &'a Guarded, holder: Holder<'_>, reel: &str) -> Shared<'a> {
    let link = holder.good("POST", &format!("/v1/reels/{reel}/links"), Some(&json!({"seconds": 60}))).await;
    let query = link["query"].as_str().unwrap().to_owned();
    assert_eq!(link["url"], format!("/v1/reels/{reel}?{query}"));
    assert!(link["expires_at"].as_str().unwrap().ends_with('Z'), "{link}");
    Shared { guarded, query }
}

/// Adds a video. Returns its id and the id of its first clip.
async fn video(guarded: &Guarded, holder: Holder<'_>, shot: &str, team: &str) -> (String, String) {
    let added = holder.ingest(&guarded.film(shot, &[shot]), json!({"team": team})).await;
    let id = added["video"]["id"].as_str().unwrap().to_owned();
    let clips = holder.good("GET", &format!("/v1/videos/{id}/clips"), None).await;
    (id, clips["items"][0]["id"].as_str().unwrap().to_owned())
}

async fn reel(holder: Holder<'_>, videos: &[&str]) -> String {
    let made = holder.good("POST", "/v1/reels", Some(&body(videos))).await;
    made["id"].as_str().unwrap().to_owned()
}

fn body(videos: &[&str]) -> Value {
    let ranges: Vec<_> =
        videos.iter().map(|id| json!({"video_id": id, "start": 0.1, "end": 0.5, "note": "best"})).collect();
    json!({"name": "Shared", "ranges": ranges})
}

fn media((video, clip): &(String, String)) -> [String; 4] {
    [
        format!("/v1/videos/{video}/media"),
        format!("/v1/videos/{video}/thumbnail"),
        format!("/v1/clips/{clip}/preview"),
        format!("/v1/clips/{clip}/thumbnail"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_shows_its_reel_and_the_media_of_its_videos() {
    let guarded = Guarded::start(&[]);
    let key = guarded.team_key("a").await;
    let holder = guarded.as_holder(&key);
    let (shown, other) =
        (video(&guarded, holder, "testsrc2", "a").await, video(&guarded, holder, "smptebars", "a").await);
    let (id, hidden) = (reel(holder, &[&shown.0]).await, reel(holder, &[&other.0]).await);
    let link = share(&guarded, holder, &id).await;
    let path = format!("/v1/reels/{id}");
    let read = guarded.server.request("GET", &format!("{path}?{}", link.query)).send().await.unwrap();
    let read: Value = serde_json::from_slice(&read.bytes().await.unwrap()).unwrap();
    assert_eq!((&read["name"], &read["ranges"][0]["note"]), (&json!("Shared"), &json!("best")), "{read}");
    link.check(200, &media(&shown)).await;
    link.check(200, &[format!("/v1/videos/{}/media?rendition=web", shown.0)]).await;
    assert_eq!(link.status("HEAD", &path).await, 200);
    let part = format!("/v1/videos/{}/media?{}", shown.0, link.query);
    let part = guarded.server.request("GET", &part).header("range", "bytes=10-19").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.bytes().await.unwrap().len()), (206, 10));
    link.check(401, &media(&other)).await;
    let video = format!("/v1/videos/{}", shown.0);
    let closed = [
        "/v1/reels".to_owned(),
        format!("/v1/reels/{hidden}"),
        format!("{path}/links"),
        "/v1/videos".to_owned(),
        video.clone(),
        format!("{video}/clips"),
        format!("{video}/subtitles"),
        format!("{video}/timeline"),
        format!("/v1/clips/{}", shown.1),
        "/v1/audit".to_owned(),
    ];
    link.check(401, &closed).await;
    for (method, path) in [("PUT", &path), ("DELETE", &path), ("DELETE", &video), ("PATCH", &video)] {
        assert_eq!(link.status(method, path).await, 401, "{method} {path}");
    }
    for (from, to) in [("expires=", "expires=9"), ("signature=", "signature=0"), ("key=", "other=")] {
        let query = link.query.replace(from, to);
        Shared { guarded: &guarded, query }.check(401, &[path.clone(), format!("{video}/media")]).await;
    }
    let query = link.query.replace(&id, &hidden);
    Shared { guarded: &guarded, query }
        .check(401, &[format!("/v1/reels/{hidden}"), media(&other)[0].clone()])
        .await;
    let (_, listed) = guarded.as_holder(ROOT).send("GET", "/v1/audit?limit=1000", None).await;
    let made = format!("{path}/links");
    assert!(listed["items"].as_array().unwrap().iter().any(|it| it["path"] == made.as_str()), "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_ends_with_its_videos_its_reel_its_key_and_its_time() {
    let guarded = Guarded::start(&[]);
    let root = guarded.as_holder(ROOT);
    let made = guarded.add_key(&json!({"name": "editor", "scopes": ["read", "write"]})).await;
    let editor = guarded.as_holder(made["key"].as_str().unwrap());
    let (one, two) =
        (video(&guarded, root, "testsrc2", "a").await, video(&guarded, root, "smptebars", "a").await);
    let id = reel(root, &[&one.0]).await;
    let path = format!("/v1/reels/{id}");
    let links = format!("{path}/links");
    for seconds in [0, -1, 90 * 24 * 3600 + 1] {
        let (status, problem) = root.send("POST", &links, Some(&json!({"seconds": seconds}))).await;
        let said = (status.as_u16(), &problem["errors"][0]["pointer"]);
        assert_eq!(said, (422, &json!("/seconds")), "{problem}");
    }
    let (of_root, of_editor) = (share(&guarded, root, &id).await, share(&guarded, editor, &id).await);
    // Another video takes the first one's place.
    let change = root.request("PUT", &path).header("if-match", "*").json(&body(&[&two.0]));
    assert_eq!(change.send().await.unwrap().status(), 200);
    for link in [&of_root, &of_editor] {
        link.check(401, &media(&one)).await;
        link.check(200, &media(&two)).await;
    }
    guarded.server.send(root.request("DELETE", &format!("/v1/keys/{}", made["id"].as_str().unwrap()))).await;
    let ended = async || (of_editor.status("GET", &path).await == 401).then_some(());
    until("the key's links have ended", ended).await;
    of_root.check(200, std::slice::from_ref(&path)).await;
    assert_eq!(root.send("DELETE", &links, None).await.0, 204);
    of_root.check(401, &[path.clone(), media(&two)[0].clone()]).await;
    let again = share(&guarded, root, &id).await;
    again.check(200, &[path.clone(), media(&two)[0].clone()]).await;
    let short = root.good("POST", &links, Some(&json!({"seconds": 1}))).await;
    let short = Shared { guarded: &guarded, query: short["query"].as_str().unwrap().to_owned() };
    until("it has expired", async || (short.status("GET", &path).await == 401).then_some(())).await;
    again.check(200, std::slice::from_ref(&path)).await;
    assert_eq!(root.request("DELETE", &path).header("if-match", "*").send().await.unwrap().status(), 204);
    again.check(401, &[path.clone(), media(&two)[0].clone()]).await;
    for (method, body) in [("POST", Some(json!({}))), ("DELETE", None)] {
        assert_eq!(root.send(method, &links, body.as_ref()).await.0, 404, "{method}");
    }
}
