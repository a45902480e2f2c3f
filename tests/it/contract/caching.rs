//! What clients may keep and what they need not load: ETags, Cache-Control, HEAD, compression, conditional changes.

use reqwest::Response;
use serde_json::{Value, json};

use super::contract;
use super::library::Library;

const VIDEO: &str = "/v1/videos/01980f5e-7c3a-7b12-9a44-5d2f8c1e0a01";
const CLIP: &str = "/v1/clips/01980f5e-8d10-7c3e-8f27-a1b2c3d4e502";

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|it| it.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn clients_keep_answers_and_ask_whether_they_changed() {
    let library = Library::start().await;
    let media = "private, max-age=3600";
    for (path, kept) in [
        (format!("{VIDEO}/media"), media),
        (format!("{VIDEO}/thumbnail"), media),
        (format!("{CLIP}/thumbnail"), media),
        (format!("{CLIP}/preview"), media),
        (format!("{VIDEO}/sprites/0"), media),
        (format!("{VIDEO}/sprites"), "no-cache"),
        (VIDEO.to_owned(), "no-cache"),
        (CLIP.to_owned(), "no-cache"),
        ("/".to_owned(), "no-cache"),
        ("/static/js/core/api.js".to_owned(), "no-cache"),
    ] {
        let first = library.request("GET", &path).send().await.unwrap();
        assert_eq!(
            (first.status().as_u16(), header(&first, "cache-control").as_deref()),
            (200, Some(kept)),
            "{path}"
        );
        let tag = header(&first, "etag").unwrap_or_else(|| panic!("{path} has no ETag"));
        let again = library.request("GET", &path).header("if-none-match", &tag).send().await.unwrap();
        assert_eq!((again.status().as_u16(), header(&again, "etag")), (304, Some(tag)), "{path}");
        assert!(again.bytes().await.unwrap().is_empty(), "{path}");
        let other = library.request("GET", &path).header("if-none-match", "\"other\"").send().await.unwrap();
        assert_eq!(other.status(), 200, "{path}");
    }
    every_get_answers_head(&library).await;
    texts_are_compressed_and_media_are_not(&library).await;
}

async fn every_get_answers_head(library: &Library) {
    let file = contract();
    let gets = file["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object());
    for (path, item) in gets {
        let mut place = path.clone();
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten() {
            let example = &parameter["example"];
            let value = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            place = place.replace(&format!("{{{}}}", parameter["name"].as_str().unwrap_or_default()), &value);
        }
        if path.ends_with("/timeline") {
            place.push_str("?text=a");
        }
        let head = library.request("HEAD", &place).send().await.unwrap();
        let get = library.request("GET", &place).send().await.unwrap();
        assert_eq!(head.status(), 200, "{place}");
        assert_eq!(header(&head, "content-type"), header(&get, "content-type"), "{place}");
        assert!(head.bytes().await.unwrap().is_empty(), "{place}");
    }
}

async fn texts_are_compressed_and_media_are_not(library: &Library) {
    for (path, is_compressed) in [
        ("/openapi.json", true),
        ("/static/js/core/api.js", true),
        (VIDEO, true),
        ("/metrics", true),
        ("/v1/nothing", true),
        (&format!("{VIDEO}/media"), false),
        (&format!("{CLIP}/thumbnail"), false),
    ] {
        let plain = library.request("GET", path).send().await.unwrap();
        assert_eq!(header(&plain, "content-encoding"), None, "{path}");
        let response = library.request("GET", path).header("accept-encoding", "gzip").send().await.unwrap();
        let encoding = header(&response, "content-encoding");
        assert_eq!(encoding.as_deref(), is_compressed.then_some("gzip"), "{path}");
        let bytes = response.bytes().await.unwrap();
        assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), is_compressed, "{path}");
    }
}

#[tokio::test]
async fn a_change_holds_for_the_version_that_it_names() {
    let library = Library::start().await;
    check_change(&library, VIDEO, [json!({"title": "One"}), json!({"title": "Two"})]).await;
    check_change(&library, CLIP, [json!({"metadata": {"a": 1}}), json!({"metadata": {"a": 2}})]).await;
    a_correction_holds_for_the_text_that_it_names(&library).await;
}

async fn a_correction_holds_for_the_text_that_it_names(library: &Library) {
    let transcript = format!("{VIDEO}/transcript");
    let line = library.get(&transcript).await["items"][0].clone();
    let path = format!("{transcript}/{}", line["id"].as_str().unwrap());
    let (one, two) = (json!({"text": "one"}), json!({"text": "two"}));
    let patch = |body: &Value, tag: &str| library.request("PATCH", &path).header("if-match", tag).json(body);
    let old = line["etag"].as_str().unwrap();
    let changed = patch(&one, old).send().await.unwrap();
    let new = header(&changed, "etag").unwrap();
    let changed: Value = changed.json().await.unwrap();
    assert_eq!((&changed["text"], &changed["etag"]), (&json!("one"), &json!(new)));
    assert_eq!(library.get(&transcript).await["items"][0], changed);
    check_stale(library, patch(&two, old), &new).await;
    assert_eq!(library.get(&transcript).await["items"][0]["text"], "one", "a refused change changes nothing");
    for request in [patch(&two, &format!("\"other\", {new}")), patch(&one, "*")] {
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    assert_eq!(library.request("PATCH", &path).json(&two).send().await.unwrap().status(), 200);
    let passages = library.get(&format!("{transcript}?unit=passage")).await;
    assert!(passages["items"][0]["text"].is_string() && passages["items"][0]["etag"].is_null(), "{passages}");
}

/// The refusal of a change for a version that is gone tells the version that is there.
async fn check_stale(library: &Library, request: reqwest::RequestBuilder, now: &str) {
    let refused = request.try_clone().unwrap().send().await.unwrap();
    assert_eq!(header(&refused, "etag").as_deref(), Some(now));
    library.server.refused(request, 412).await;
}

async fn check_change(library: &Library, path: &str, [one, two]: [Value; 2]) {
    let before = library.request("GET", path).send().await.unwrap();
    let old = header(&before, "etag").unwrap();
    let patch = |body: &Value, tag: &str| library.request("PATCH", path).header("if-match", tag).json(body);
    let changed = patch(&one, &old).send().await.unwrap();
    assert_eq!(changed.status(), 200, "{path}");
    let new = header(&changed, "etag").unwrap();
    assert_ne!(old, new, "{path}");
    check_stale(library, patch(&two, &old), &new).await;
    let (name, value) = one.as_object().unwrap().iter().next().unwrap();
    assert_eq!(&library.get(path).await[name], value, "{path}: a refused change changes nothing");
    assert_eq!(patch(&two, &format!("\"other\", {new}")).send().await.unwrap().status(), 200, "{path}");
    assert_eq!(patch(&one, "*").send().await.unwrap().status(), 200, "{path}");
    assert_eq!(library.request("PATCH", path).json(&two).send().await.unwrap().status(), 200, "{path}");
}
