//! The page's pure functions, run in the browser.

use serde_json::{Value, json};

use crate::Setting;
use crate::page::Page;

async fn check(page: &Page, module: &str, expression: &str, expected: Value) {
    // The page's policy forbids evaluating text, so the driver's script contains the expression.
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
            ("it.parseTime('754')", json!(754)),
            ("it.parseTime('754.25s')", json!(754.25)),
            ("it.parseTime('12m34s')", json!(754)),
            ("it.parseTime('1h2m3s')", json!(3723)),
            ("it.parseTime('1H3.5')", json!(3603.5)),
            ("it.parseTime('90m')", json!(5400)),
            ("['', 'soon', '-1', '3s2m', '1e3', 'h', '12:34', 'Infinity'].map(it.parseTime)", json!([null, null, null, null, null, null, null, null])),
            ("it.formatRemaining(0.2)", json!("1 s")),
            ("it.formatRemaining(200)", json!("3 min")),
            ("it.formatRemaining(7300)", json!("2 h")),
            ("it.formatRemaining(null)", json!("")),
            // A time is the same after a conversion to the element's clock and back, and never before the first
            // frame.
            ("[0, 0.001, 1.034, 7201.5].every((t) => [0, 1.075, 3600].every((offset) => { const clock = new it.MediaClock(offset); return it.toMilliseconds(clock.fromElement(clock.toElement(t))) === t; }))", json!(true)),
            ("new it.MediaClock(1.075).fromElement(0)", json!(0)),
        ] {
            check(page, "time", expression, expected).await;
        }
        let id = "01a1f920-9db7-77bd-8b85-ed1215761a9e";
        for (address, expected) in [
            (format!("/v/{id}?t=12.5"), json!({"name": "video", "id": id, "at": 12.5})),
            (format!("/v/{id}"), json!({"name": "video", "id": id, "at": null})),
            (format!("/v/{id}?t=1m2s&q=bias"), json!({"name": "video", "id": id, "at": 62})),
            (format!("/v/{id}?t=-1"), json!({"name": "video", "id": id, "at": null})),
            (format!("/v/{id}?t=soon"), json!({"name": "video", "id": id, "at": null})),
            ("/v/1".to_owned(), json!(null)),
            ("/docs".to_owned(), json!(null)),
        ] {
            let parsed = format!("(({{ parameters, ...route }}) => (route.name ? route : null))(it.parse(new URL('http://x{address}')) ?? {{}})");
            check(page, "router", &parsed, expected).await;
        }
        for (hit, expected) in [
            // Playback starts where the server says, with its lead-in; otherwise a second before the best match.
            ("{video_id: 'v', start: 5, end: 9, page_url: '/v/v?t=4.000'}", "/v/v?t=4"),
            ("{video_id: 'v', start: 5, end: 9, peak: 7.5}", "/v/v?t=6.5"),
            ("{video_id: 'v', start: 5, end: 9, peak: 7.5, evidence: [{source: 'visual'}, {source: 'spoken', text: 'a', start: 6.25}]}", "/v/v?t=5.25"),
            ("{video_id: 'v', start: 0.5, end: 9}", "/v/v?t=0"),
        ] {
            check(page, "results", &format!("it.hitPath({hit})"), json!(expected)).await;
        }
        let query = "new URLSearchParams('q=a+b&sources=spoken')";
        check(page, "router", &format!("it.videoPath('v', 1.0015, {query})"), json!("/v/v?t=1.002&q=a+b&sources=spoken")).await;
    })
    .await;
}

#[tokio::test]
async fn snippets_scores_queries_and_file_names_are_read_as_they_should_be() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/").await;
        for (html, expected) in [
            ("the <mark>bias</mark> of it", json!(["the ", "MARK bias", " of it"])),
            ("&lt;b&gt; &amp;lt; <mark>&quot;a&quot;</mark> &#39;", json!(["<b> &lt; ", "MARK \"a\"", " '"])),
            // Markup that the server never sends stays text.
            ("<img src=x onerror=alert(1)> <mark><b>x</b></mark>", json!(["<img src=x onerror=alert(1)> ", "MARK <b>x</b>", ""])),
            ("<mark>open", json!(["<mark>open"])),
        ] {
            let nodes = format!("it.snippetNodes({}).map((node) => (node.nodeName ? `${{node.nodeName}} ${{node.innerHTML.includes('<') ? 'markup' : node.textContent}}` : node))", json!(html));
            check(page, "evidence", &nodes, expected).await;
        }
        for (scores, expected) in [
            ("[0, 1]", "M0 1V0.9200H1V0.0000H2V1Z"),
            ("[null, 0.5, null, 0.25]", "M1 1V0.0000H2V1ZM3 1V0.9200H4V1Z"),
            ("[0.3, 0.3]", "M0 1V0.5000H1V0.5000H2V1Z"),
            ("[null]", ""),
            ("[]", ""),
        ] {
            check(page, "timeline", &format!("it.areaPath({scores})"), json!(expected)).await;
        }
        for (hits, duration, expected) in [
            // Equal moments, overlapping moments, and adjacent moments.
            ("[{start: 0, end: 4, peak: 2}, {start: 1, end: 3, peak: 2.5}]", 60, json!([0])),
            ("[{start: 0, end: 4, peak: 1}, {start: 1, end: 5, peak: 3}]", 60, json!([0, 1])),
            ("[{start: 0, end: 4, peak: 3.75}, {start: 4, end: 5, peak: 4.5}]", 60, json!([0, 4])),
            // In an hour of video, a visual hit a few seconds later is the same slide; a spoken one is not.
            ("[{start: 0, end: 4}, {start: 20, end: 24}, {start: 40, end: 44}]", 3600, json!([0, 40])),
            ("[{start: 0, end: 4}, {start: 20, end: 24, evidence: [{text: 'a', start: 21}]}]", 3600, json!([0, 20])),
            ("Array.from({length: 20}, (_, at) => ({start: at, end: at + 1}))", 60, json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])),
        ] {
            let starts = format!("it.distinctHits({hits}, {duration}).map((hit) => hit.start)");
            check(page, "hits", &starts, expected).await;
        }
        for (address, expected) in [
            ("q=a&sources=spoken", json!({"sources": ["spoken"]})),
            ("q=a&sources=visual,spoken", json!({"sources": ["visual", "spoken"]})),
            ("q=a&sources=heard", json!({})),
            ("q=a", json!({})),
            // A clip query has no spoken source.
            ("clip=v&start=0&end=1&sources=spoken", json!({})),
            ("clip=v&start=0&end=1&mod=x&sources=spoken", json!({"sources": ["spoken"]})),
        ] {
            check(page, "query", &format!("it.sourcesOf(new URLSearchParams('{address}'))"), expected).await;
        }
        for (name, expected) in [
            ("talk.srt", "und"),
            ("talk.en.srt", "en"),
            ("talk.pt-BR.VTT", "pt-BR"),
            ("talk.final.srt", "und"),
            ("talk.v2.srt", "und"),
            ("en.srt", "und"),
        ] {
            check(page, "languages", &format!("it.languageOfFile('{name}')"), json!(expected)).await;
        }
    })
    .await;
}
