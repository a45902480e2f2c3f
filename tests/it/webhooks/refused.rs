//! Wrong requests for webhooks and alerts, with the place of the fault.

use reprise_tests::server::Server;
use serde_json::{Value, json};

const MISSING: &str = "01890000-0000-7000-8000-000000000000";

#[tokio::test]
async fn wrong_webhooks_and_alerts_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--max-alerts", "1"]);
    let check = async |path: &str, (base, more): (&Value, Value), (status, pointer): (u16, &str)| {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let problem = server.refused(server.request("POST", path).json(&body), status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    };
    let hook = json!({"url": "https://example.com/hooks", "events": ["video.ready"]});
    for (more, expected) in [
        (json!({"url": "hooks"}), (422, "/url")),
        (json!({"url": "http://example.com"}), (422, "/url")),
        (json!({"url": "https://127.0.0.1/"}), (422, "/url")),
        (json!({"url": "https://[fe80::1]/"}), (422, "/url")),
        (json!({"url": "https://user:password@example.com"}), (422, "/url")),
        (json!({"url": format!("https://example.com/{}", "x".repeat(2000))}), (422, "/url")),
        (json!({"events": []}), (422, "/events")),
        (json!({"events": ["video.gone"]}), (422, "/events/0")),
        (json!({"description": "x".repeat(501)}), (422, "/description")),
        (json!({"description": "a\u{0}"}), (422, "/description")),
        (json!({"secret": "mine"}), (422, "/secret")),
    ] {
        check("/v1/webhooks", (&hook, more), expected).await;
    }
    let (_, made) = server.post("/v1/webhooks", &hook).await;
    let alert = json!({"name": "Goals", "search": {"query": {"text": "a goal"}}});
    let clip = json!({"query": {"clip_id": MISSING}});
    let range = json!({"query": {"clip": {"video_id": MISSING, "start": 0, "end": 1}}});
    let both = json!({"query": {"text": "a goal"}, "sources": ["visual", "spoken"]});
    for (more, expected) in [
        (json!({"name": " "}), (422, "/name")),
        (json!({"search": []}), (422, "/search")),
        (json!({"search": {}}), (422, "/search/query")),
        (json!({"search": {"query": {"text": " "}}}), (422, "/search/query/text")),
        (json!({"search": {"query": {"upload": true}}}), (422, "/search/query/upload")),
        (json!({"search": {"cursor": "x"}}), (422, "/search/cursor")),
        (json!({"search": {"query": {"text": "x"}, "limit": 21}}), (422, "/search/limit")),
        (json!({"search": {"query": {"text": "x"}, "limits": 2}}), (422, "/search/limits")),
        (json!({"search": {"query": {"text": "x"}, "group_by": "video"}}), (422, "/search/group_by")),
        (
            json!({"search": {"query": {"text": "x"}, "filter": {"field": "x"}}}),
            (422, "/search/filter/field"),
        ),
        (json!({"search": {"query": {"text": "x"}, "space": "x"}}), (422, "/search/space")),
        (json!({"search": {"query": {"text": "x".repeat(70_000)}}}), (422, "/search")),
        (json!({"search": clip}), (404, "/search/query/clip_id")),
        (json!({"search": range}), (404, "/search/query/clip/video_id")),
        (json!({"min_score": 0.5}), (422, "/min_score")),
        (json!({"min_score": 0.5, "search": both}), (422, "/min_score")),
        (
            json!({"min_score": 1e9, "search": {"query": {"text": "x"}, "sources": ["visual"]}}),
            (422, "/min_score"),
        ),
        (json!({"webhooks": [MISSING]}), (404, "/webhooks/0")),
        (json!({"webhooks": [made["id"]]}), (422, "/webhooks/0")),
        (json!({"webhooks": vec![MISSING; 11]}), (422, "/webhooks")),
    ] {
        check("/v1/alerts", (&alert, more), expected).await;
    }
    assert_eq!(server.get("/v1/alerts").await.1["items"], json!([]));
    assert_eq!(server.post("/v1/alerts", &alert).await.0, 201);
    server.refused(server.request("POST", "/v1/alerts").json(&alert), 409).await;
    for path in ["/v1/alerts", "/v1/webhooks"] {
        server.refused(server.request("GET", &format!("{path}?limit=0")), 422).await;
        server.refused(server.request("GET", &format!("{path}/{MISSING}")), 404).await;
        server.refused(server.request("DELETE", &format!("{path}/{MISSING}")), 404).await;
    }
}
