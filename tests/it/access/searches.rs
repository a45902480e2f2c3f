//! Who sees which searches, and who gives feedback.

use serde_json::{Value, json};

use super::{Guarded, Holder, ROOT};

async fn listed(holder: Holder<'_>, query: &str) -> Vec<Value> {
    let page = holder.good("GET", &format!("/v1/searches{query}"), None).await;
    page["items"].as_array().unwrap().iter().map(|it| json!([it["id"], it["key_name"]])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_sees_its_own_searches_and_an_admin_sees_all() {
    let guarded = Guarded::start(&[]);
    let reader = guarded.add_key(&json!({"name": "reader", "scopes": ["read"]})).await;
    let admin = guarded.add_key(&json!({"name": "admin", "scopes": ["admin"]})).await;
    let text = |key: &Value| key["key"].as_str().unwrap().to_owned();
    let (a, reader_key, admin_key) = (guarded.team_key("a").await, text(&reader), text(&admin));
    let [a, reader, admin, root] = [&a[..], &reader_key, &admin_key, ROOT].map(|key| guarded.as_holder(key));
    let added = a.ingest(&guarded.film("one", &["testsrc2"]), json!({"team": "a"})).await;
    let body = json!({"query": {"text": "x"}});
    let mut ids = Vec::new();
    for (holder, name) in [(a, json!("a")), (reader, json!("reader")), (root, Value::Null)] {
        let answer = holder.good("POST", "/v1/search", Some(&body)).await;
        ids.push(json!([answer["search_id"], name]));
    }
    let all: Vec<Value> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(admin, "").await, all);
    assert_eq!(listed(root, "").await, all);
    assert_eq!(listed(a, "").await, [ids[0].clone()]);
    assert_eq!(listed(reader, "").await, [ids[1].clone()]);
    let of_reader = format!("?key_id={}", reader_key_id(&guarded).await);
    assert_eq!(listed(admin, &of_reader).await, [ids[1].clone()]);
    assert_eq!(listed(a, &of_reader).await, Vec::<Value>::new());

    let path = |at: usize| format!("/v1/searches/{}", ids[at][0].as_str().unwrap());
    let hit = admin.good("GET", &path(1), None).await["hits"][0]["clip_id"].clone();
    let feedback = json!({"clip_id": hit, "verdict": "opened"});
    let give = async |holder: Holder<'_>, at: usize| {
        holder.send("POST", &format!("{}/feedback", path(at)), Some(&feedback)).await.0.as_u16()
    };
    assert_eq!((give(reader, 1).await, give(a, 1).await, give(admin, 1).await), (204, 404, 204));
    let (status, _) = guarded.server.get(&path(1)).await;
    assert_eq!(status, 401, "without a key there is nothing to see");

    // A video that leaves a key's reach takes its hits along.
    let before = a.good("GET", &path(0), None).await;
    assert!(!before["hits"].as_array().unwrap().is_empty(), "{before}");
    let video = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    root.good("PATCH", &video, Some(&json!({"metadata": {"team": "b"}}))).await;
    let after = a.good("GET", &path(0), None).await;
    assert_eq!(after["hits"], json!([]), "{after}");
    assert_eq!(give(a, 0).await, 422);
    assert_eq!(root.good("GET", &path(0), None).await["hits"], before["hits"]);
    let log = root.good("GET", "/v1/audit", None).await.to_string();
    assert!(!log.contains("/feedback"), "feedback is in the query log, not in the audit log: {log}");
}

async fn reader_key_id(guarded: &Guarded) -> String {
    let keys = guarded.as_holder(ROOT).good("GET", "/v1/keys", None).await;
    let reader = keys["items"].as_array().unwrap().iter().find(|key| key["name"] == "reader").unwrap();
    reader["id"].as_str().unwrap().to_owned()
}
