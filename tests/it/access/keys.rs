//! Keys: scopes, ends, limits, links, the audit log.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use reprise_tests::server::binary;
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};

use super::{Guarded, Holder, ROOT};
use crate::faults::bed::until;

/// Sends a request with a key of these scopes.
async fn check(scopes: Value, requests: &[(&str, &str, u16)]) {
    let guarded = Guarded::start(&[]);
    let key = guarded.add_key(&json!({"name": "x", "scopes": scopes})).await;
    let holder = guarded.as_holder(key["key"].as_str().unwrap());
    for (method, path, expected) in requests {
        let (status, answer) = holder.send(method, path, None).await;
        assert_eq!(status, *expected, "{scopes}: {method} {path}: {answer}");
    }
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say() {
    let missing = "/v1/videos/01890000-0000-7000-8000-000000000000";
    check(
        json!(["read"]),
        &[
            ("GET", "/v1/videos", 200),
            ("DELETE", missing, 403),
            ("GET", "/v1/keys", 403),
            ("GET", "/metrics", 200),
        ],
    )
    .await;
    check(
        json!(["write"]),
        &[("GET", "/v1/videos", 403), ("DELETE", missing, 404), ("GET", "/v1/audit", 403)],
    )
    .await;
    check(
        json!(["admin"]),
        &[
            ("GET", "/v1/videos", 200),
            ("DELETE", missing, 404),
            ("GET", "/v1/keys", 200),
            ("GET", "/v1/audit", 200),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_key_ends_when_it_expires_or_is_revoked() {
    let guarded = Guarded::start(&[]);
    let expired = json!({"name": "old", "scopes": ["read"], "expires_at": "2020-01-01"});
    let expired = guarded.add_key(&expired).await;
    let revoked = guarded.add_key(&json!({"name": "lost", "scopes": ["read"]})).await;
    let holder = guarded.as_holder(revoked["key"].as_str().unwrap());
    holder.good("GET", "/v1/videos", None).await;
    let root = guarded.as_holder(ROOT);
    root.good("DELETE", &format!("/v1/keys/{}", revoked["id"].as_str().unwrap()), None).await;
    for key in [&expired, &revoked] {
        let holder = guarded.as_holder(key["key"].as_str().unwrap());
        assert_eq!(holder.send("GET", "/v1/videos", None).await.0, 401);
    }
    let listed = root.good("GET", "/v1/keys", None).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert!(listed["items"][1]["revoked_at"].is_string() && listed["items"][1]["last_used_at"].is_string());
    assert!(!listed.to_string().contains("rpr_"), "a list shows no key: {listed}");
}

#[tokio::test]
async fn wrong_keys_are_refused_with_the_place() {
    let guarded = Guarded::start(&[]);
    for (body, pointer) in [
        (json!({"name": " ", "scopes": ["read"]}), "/name"),
        (json!({"name": "x", "scopes": []}), "/scopes"),
        (json!({"name": "x", "scopes": ["root"]}), "/scopes/0"),
        (json!({"name": "x", "scopes": ["admin"], "only": {"all": []}}), "/only"),
        (json!({"name": "x", "scopes": ["read"], "only": {"field": "title", "eq": "x"}}), "/only"),
        (json!({"name": "x", "scopes": ["read"], "only": {"field": "metadata.x"}}), "/only"),
        (json!({"name": "x", "scopes": ["read"], "expires_at": "soon"}), "/expires_at"),
        (
            json!({"name": "x", "scopes": ["read"], "limits": {"searches_at_once": 0}}),
            "/limits/searches_at_once",
        ),
    ] {
        let request = guarded.server.request("POST", "/v1/keys").bearer_auth(ROOT).json(&body);
        let problem = guarded.server.refused(request, 422).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
}

#[tokio::test]
async fn the_command_line_makes_keys_and_the_first_one_closes_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = reprise_tests::server::Server::start(folder.path(), &[]);
    assert_eq!(server.get("/v1/videos").await.0, 200);
    let keys = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.arg("keys").args(more).arg("--data-dir").arg(folder.path()).env_remove("DATABASE_URL");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let key = keys(&["add", "--name", "first", "--scope", "read,write"]);
    let closed = async || (server.get("/v1/videos").await.0 != 200).then_some(());
    until("the first key closes the server", closed).await;
    let with_key = || server.request("GET", "/v1/videos").bearer_auth(key.trim());
    assert_eq!(server.send(with_key()).await.0, 200);
    let listed: Value = serde_json::from_str(&keys(&["list", "--json"])).unwrap();
    assert_eq!((&listed["name"], &listed["scopes"]), (&json!("first"), &json!(["read", "write"])));
    assert!(keys(&["revoke", listed["id"].as_str().unwrap()]).contains("revoked"));
    let revoked = async || (server.send(with_key()).await.0 != 200).then_some(());
    until("the revoked key opens nothing", revoked).await;
    // A revoked key does not open the server again.
    assert_eq!(server.get("/v1/videos").await.0, 401);
    let admin = keys(&["add", "--name", "admin", "--scope", "admin"]);
    let (_, log) = server.send(server.request("GET", "/v1/audit").bearer_auth(admin.trim())).await;
    let read: Vec<_> = log["items"].as_array().unwrap().iter().map(|it| &it["request_id"]).collect();
    assert_eq!(read, ["reprise keys add", "reprise keys revoke", "reprise keys add"], "{log}");
}

#[tokio::test]
async fn a_key_has_its_rate_and_its_quota() {
    let guarded = Guarded::start(&[]);
    let limited = async |limits: Value| {
        let key = guarded.add_key(&json!({"name": "x", "scopes": ["read", "write"], "limits": limits})).await;
        key["key"].as_str().unwrap().to_owned()
    };
    let rated = limited(json!({"requests_per_minute": 2})).await;
    let rated = guarded.as_holder(&rated);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer = rated.request("GET", "/v1/videos").send().await.unwrap();
        statuses.push((answer.status().as_u16(), answer.headers().contains_key("retry-after")));
    }
    assert_eq!(statuses, [(200, false), (200, false), (429, true)]);

    let file = guarded.film("one", &["testsrc2"]);
    for limits in [json!({"stored_bytes": 10}), json!({"stored_seconds": 1})] {
        let key = limited(limits).await;
        let (status, problem) = guarded.as_holder(&key).upload(&file, json!({})).await;
        assert_eq!((status.as_u16(), &problem["title"]), (403, &json!("over quota")), "{problem}");
    }
    let root = guarded.as_holder(ROOT);
    assert_eq!(root.good("GET", "/v1/videos", None).await["items"], json!([]), "nothing was stored");
    let key = limited(json!({"stored_bytes": 10_000_000, "stored_seconds": 3})).await;
    let holder = guarded.as_holder(&key);
    let added = holder.ingest(&file, json!({})).await;
    let other = guarded.film("two", &["smptebars"]);
    assert_eq!(holder.upload(&other, json!({})).await.0, 403);
    let video = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    assert_eq!(holder.send("DELETE", &video, None).await.0, 204);
    assert_eq!(holder.upload(&other, json!({})).await.0, 403, "a video in the trash uses its quota");
    assert_eq!(holder.send("DELETE", &format!("{video}?purge=true"), None).await.0, 204);
    assert_eq!(holder.upload(&other, json!({})).await.0, 202, "a deleted video frees its quota");
}

#[tokio::test]
async fn a_key_searches_so_many_times_at_once() {
    let guarded = Guarded::start(&[]);
    let limits = json!({"searches_at_once": 1});
    let key = guarded.add_key(&json!({"name": "x", "scopes": ["read", "write"], "limits": limits})).await;
    let holder = guarded.as_holder(key["key"].as_str().unwrap());
    let added = holder.ingest(&guarded.film("slow", &["mandelbrot", "testsrc2"]), json!({})).await;
    let mut starts = (0..).map(|at| 0.3 + f64::from(at) / 1000.0);
    let refused = until("the key's place is held", || {
        // The first one holds the place while its clip is decoded, which is done once for each range.
        let clip = json!({"video_id": added["video"]["id"], "start": starts.next(), "end": 3.7});
        let ask =
            async |query: Value| holder.send("POST", "/v1/search", Some(&json!({"query": query}))).await;
        async move {
            let (_, (status, answer)) = tokio::join!(ask(json!({"clip": clip})), ask(json!({"text": "x"})));
            (status == 429).then_some(answer)
        }
    });
    let refused = refused.await;
    assert!(refused["detail"].as_str().unwrap().contains("your key"), "{refused}");
}

/// Signs links to every kind of picture of a video, and follows them without a key.
async fn sign_pictures(guarded: &Guarded, holder: Holder<'_>, video: &str) {
    let video = format!("/v1/videos/{video}");
    let clips = holder.good("GET", &format!("{video}/clips"), None).await;
    let clip = format!("/v1/clips/{}", clips["items"][0]["id"].as_str().unwrap());
    let (facts, sheet) = (format!("{video}/sprites"), format!("{video}/sprites/0"));
    let thumbnails = [format!("{video}/thumbnail"), format!("{clip}/thumbnail")];
    let paths = [&facts, &sheet, &thumbnails[0], &thumbnails[1], &format!("{clip}/preview")];
    let links = holder.good("POST", "/v1/media-links", Some(&json!({"paths": paths}))).await;
    let types = ["application/json", "image/jpeg", "image/jpeg", "image/jpeg", "video/mp4"];
    for ((item, path), expected) in links["items"].as_array().unwrap().iter().zip(paths).zip(types) {
        let url = item["url"].as_str().unwrap();
        let answer = guarded.server.request("GET", url).send().await.unwrap();
        let content_type = answer.headers()["content-type"].to_str().unwrap();
        assert_eq!((answer.status().as_u16(), content_type), (200, expected), "{url}");
        let unsigned = guarded.server.request("GET", path).send().await.unwrap();
        assert_eq!(unsigned.status(), 401, "{path}");
    }
    // The signature of one sheet opens no other, nor what lists them.
    let url = links["items"][1]["url"].as_str().unwrap();
    for other in [url.replace("/sprites/0", "/sprites/1"), url.replace("/sprites/0", "/sprites")] {
        assert_eq!(guarded.server.request("GET", &other).send().await.unwrap().status(), 401, "{other}");
    }
    for wrong in [format!("{facts}/x"), format!("{sheet}/0")] {
        let body = json!({"paths": [wrong]});
        assert_eq!(holder.send("POST", "/v1/media-links", Some(&body)).await.0, 422, "{body}");
    }
}

#[tokio::test]
async fn a_signed_link_shows_one_file_to_anybody_until_its_key_ends() {
    let guarded = Guarded::start(&[]);
    let key = guarded.add_key(&json!({"name": "player", "scopes": ["read", "write"]})).await;
    let holder = guarded.as_holder(key["key"].as_str().unwrap());
    let added = holder.ingest(&guarded.film("one", &["testsrc2"]), json!({})).await;
    let media = format!("/v1/videos/{}/media", added["video"]["id"].as_str().unwrap());
    let thumbnail = media.replace("/media", "/thumbnail");
    let body = json!({"paths": [&media, format!("{media}?rendition=web")], "seconds": 60});
    let links = holder.good("POST", "/v1/media-links", Some(&body)).await;
    let url = |place: usize| links["items"][place]["url"].as_str().unwrap().to_owned();
    let get = |path: String| async move { guarded_status(path).await };
    let statuses = [
        (url(0), 200),
        (url(1), 200),
        (media.clone(), 401),
        (url(0).replace("/media", "/thumbnail"), 401),
        (url(0).replace("expires=", "expires=9"), 401),
        (url(0).replace("signature=", "signature=0"), 401),
    ];
    for (path, expected) in statuses {
        assert_eq!(get(format!("{}{path}", guarded.server.base())).await, expected, "{path}");
    }
    let part = guarded.server.request("GET", &url(0)).header("range", "bytes=10-19").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.bytes().await.unwrap().len()), (206, 10));
    sign_pictures(&guarded, holder, added["video"]["id"].as_str().unwrap()).await;
    // A link reads, whatever its key may do.
    let delete = url(0).replace("/media", "");
    assert_eq!(guarded.server.send(guarded.server.request("DELETE", &delete)).await.0, 401);
    for wrong in ["/v1/videos", "x", "/v1/videos/x/media"] {
        let body = json!({"paths": [&thumbnail, wrong]});
        let (status, problem) = holder.send("POST", "/v1/media-links", Some(&body)).await;
        assert_eq!(
            (status.as_u16(), &problem["errors"][0]["pointer"]),
            (422, &json!("/paths/1")),
            "{problem}"
        );
    }
    let id = key["id"].as_str().unwrap();
    guarded.as_holder(ROOT).good("DELETE", &format!("/v1/keys/{id}"), None).await;
    assert_eq!(get(format!("{}{}", guarded.server.base(), url(0))).await, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_client_hangs_up_is_in_the_audit_log() {
    let guarded = Guarded::start(&[]);
    let root = guarded.as_holder(ROOT);
    let added = root.ingest(&guarded.film("one", &["testsrc2"]), json!({})).await;
    let video = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    let url = reprise_server::catalog::embedded_url(&guarded.folder.path().join("data"));
    let address = guarded.server.base().strip_prefix("http://").unwrap();
    let body = json!({"title": "new"}).to_string();
    let request = format!(
        "PATCH {video} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ROOT}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client may hang up before the server looks at its request, or just when the change is made. Then another one does.
    for _ in 0..100 {
        let mut writer = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        assert!(client.read(&mut [0; 10]).is_err(), "it was answered while the database was locked");
        drop(client);
        sqlx::raw_sql("ROLLBACK").execute(&mut writer).await.unwrap();
        let log = root.good("GET", "/v1/audit", None).await;
        let newest = &log["items"][0];
        if newest["status"] == 499 {
            assert_eq!([&newest["method"], &newest["path"]], ["PATCH", &video], "{log}");
            return;
        }
    }
    panic!("no client that hung up is in the log");
}

async fn guarded_status(url: String) -> u16 {
    let client = reprise_server::https::client().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_audit_log_names_changes_and_downloads() {
    let guarded = Guarded::start(&[]);
    let key = guarded.add_key(&json!({"name": "editor", "scopes": ["read", "write"]})).await;
    let holder = guarded.as_holder(key["key"].as_str().unwrap());
    let added = holder.ingest(&guarded.film("one", &["testsrc2"]), json!({})).await;
    let video = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    holder.good("GET", &video, None).await;
    let media = format!("{video}/media");
    // A player's ranges are one download, wherever the first one begins.
    for range in ["bytes=1-", "bytes=-100", "bytes=0-"] {
        let part = guarded.server.request("GET", &media).bearer_auth(key["key"].as_str().unwrap());
        assert_eq!(part.header("range", range).send().await.unwrap().status(), 206, "{range}");
    }
    holder.good("POST", "/v1/search", Some(&json!({"query": {"text": "x"}}))).await;
    assert_eq!(holder.send("PATCH", &video, Some(&json!({"title": ""}))).await.0, 422);
    holder.good("PATCH", &video, Some(&json!({"title": "new"}))).await;
    assert_eq!(holder.send("DELETE", &video, None).await.0, 204);
    let root = guarded.as_holder(ROOT);
    let log = root.good("GET", "/v1/audit?limit=4", None).await;
    let more =
        root.good("GET", &format!("/v1/audit?cursor={}", log["next_cursor"].as_str().unwrap()), None).await;
    let entries = log["items"].as_array().unwrap().iter().chain(more["items"].as_array().unwrap());
    let read: Vec<_> =
        entries.map(|it| json!([it["method"], it["path"], it["status"], it["key_name"]])).collect();
    assert_eq!(
        read,
        [
            json!(["DELETE", video, 204, "editor"]),
            json!(["PATCH", video, 200, "editor"]),
            json!(["GET", media, 206, "editor"]),
            json!(["POST", "/v1/videos", 202, "editor"]),
            json!(["POST", "/v1/keys", 201, null]),
        ]
    );
}
