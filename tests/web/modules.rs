//! The page's pure functions, run where they live.

use serde_json::{Value, json};

use crate::Setting;
use crate::page::Page;

async fn check(page: &Page, module: &str, expression: &str, expected: Value) {
    // The page's own policy forbids evaluating text, so the expression is part of the driver's script.
    let script = format!(
        "const [done] = arguments; import('/static/js/{module}.js').then((it) => done({expression})).catch((error) => done(String(error)))"
    );
    let answer = page.client.execute_async(&script, Vec::new()).await;
    assert_eq!(answer.expect("an answer"), expected, "{module}: {expression}");
}

#[tokio::test]
async fn times_addresses_and_clocks_are_what_they_should_be() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/").await;
        for (expression, expected) in [
            ("it.formatTime(0)", json!("0:00")),
            ("it.formatTime(59.9996, { fraction: true })", json!("1:00")),
            ("it.formatTime(59.9994, { fraction: true })", json!("0:59.999")),
            ("it.formatTime(65.25, { fraction: true })", json!("1:05.25")),
            ("it.formatTime(3725.5)", json!("1:02:05")),
            ("it.formatTime(null)", json!("–")),
            ("it.formatTime(NaN)", json!("–")),
            ("it.formatRange(754.2, 761)", json!("12:34.2–12:41")),
            ("it.formatRemaining(0.2)", json!("1 s")),
            ("it.formatRemaining(200)", json!("3 min")),
            ("it.formatRemaining(7300)", json!("2 h")),
            ("it.formatRemaining(null)", json!("")),
            // A time survives both clocks, and never comes before the first frame.
            ("[0, 0.001, 1.034, 7201.5].every((t) => [0, 1.075, 3600].every((offset) => { const clock = new it.MediaClock(offset); return it.toMilliseconds(clock.fromElement(clock.toElement(t))) === t; }))", json!(true)),
            ("new it.MediaClock(1.075).fromElement(0)", json!(0)),
        ] {
            check(page, "time", expression, expected).await;
        }
        let id = "01a1f920-9db7-77bd-8b85-ed1215761a9e";
        for (address, expected) in [
            (format!("/v/{id}?t=12.5"), json!({"name": "video", "id": id, "at": 12.5})),
            (format!("/v/{id}"), json!({"name": "video", "id": id, "at": null})),
            (format!("/v/{id}?t=-1"), json!({"name": "video", "id": id, "at": null})),
            (format!("/v/{id}?t=soon"), json!({"name": "video", "id": id, "at": null})),
            ("/v/1".to_owned(), json!(null)),
            ("/docs".to_owned(), json!(null)),
        ] {
            check(page, "router", &format!("it.parse(new URL('http://x{address}'))"), expected).await;
        }
        for (hit, expected) in [
            // From the server's moment, but never from before the hit.
            ("{video_id: 'v', start: 5, end: 9, page_url: '/v/v?t=6.5'}", "/v/v?t=6.5"),
            ("{video_id: 'v', start: 5, end: 9, page_url: '/v/v?t=4'}", "/v/v?t=5"),
            ("{video_id: 'v', start: 5.0015, end: 9}", "/v/v?t=5.002"),
        ] {
            check(page, "results", &format!("it.hitPath({hit})"), json!(expected)).await;
        }
    })
    .await;
}
