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
async fn times_numbers_and_titles_are_written_as_people_write_them() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        for (expression, expected) in [
            ("it.formatTime(0)", json!("0:00")),
            ("it.formatTime(59.9996, { fraction: true })", json!("1:00")),
            ("it.formatTime(59.9994, { fraction: true })", json!("0:59.999")),
            ("it.formatTime(65.25, { fraction: true })", json!("1:05.25")),
            ("it.formatTime(3725.5)", json!("1:02:05")),
            ("it.formatTime(null)", json!("–")),
            ("it.formatTime(NaN)", json!("–")),
            ("it.formatRange(754.2, 761)", json!("12:34.2–12:41")),
            ("['754', '754.25s', '12m34s', '1h2m3s', '1H3.5', '90m', '12:34', '1:02:03', '1:02:03.5', ' 0:07 '].map(it.parseTime)", json!([754, 754.25, 754, 3723, 3603.5, 5400, 754, 3723, 3723.5, 7])),
            ("['', 'soon', '-1', '3s2m', '1e3', 'h', '1:2:3:4', ':30', '12:345', 'Infinity'].map(it.parseTime)", json!([null, null, null, null, null, null, null, null, null, null])),
            // A time is the same after a conversion to the element's clock and back, and never before the first
            // frame.
            ("[0, 0.001, 1.034, 7201.5].every((t) => [0, 1.075, 3600].every((offset) => { const clock = new it.MediaClock(offset); return it.toMilliseconds(clock.fromElement(clock.toElement(t))) === t; }))", json!(true)),
            ("new it.MediaClock(1.075).fromElement(0)", json!(0)),
        ] {
            check(page, "core/time", expression, expected).await;
        }
        for (expression, expected) in [
            ("it.titleOf({title: 'Finals', file_name: 'x.mp4'})", json!("Finals")),
            ("it.titleOf({title: 'long_jump-2', file_name: 'long_jump-2.mp4'})", json!("Long jump 2")),
            ("it.titleOf({title: '', file_name: '000214.mp4', folder: 'sports/clips'})", json!("Clip 214")),
            ("it.titleOf({title: '02', file_name: '02.mp4', folder: 'broadcasts'})", json!("Broadcast 2")),
            ("it.titleOf({title: '', file_name: '7.mp4', folder: null})", json!("Clip 7")),
            ("it.titleOf({title: '', file_name: ''})", json!("Untitled")),
            ("[0, 999, 1000, 1234567.89, 0.25].map(it.formatNumber)", json!(["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567.9", "0.3"])),
            ("[it.count(1, 'moment'), it.count(17, 'moment'), it.count(2, 'search', 'searches')]", json!(["1 moment", "17 moments", "2 searches"])),
            ("[0, 999, 149000, 8500000, 12000000, 3.2e9].map(it.formatBytes)", json!(["0 B", "999 B", "149 kB", "8.5 MB", "12 MB", "3.2 GB"])),
            ("[1, 59.94, 190, null].map(it.formatLength)", json!(["1.0 s", "59.9 s", "3:10", "–"])),
            ("[0.2, 89, 200, 7300].map(it.formatEstimate)", json!(["1 s", "89 s", "about 3 min", "about 2 h"])),
        ] {
            check(page, "core/words", expression, expected).await;
        }
        check(page, "screens/search/ask", "['', ' a  b\\nc ', 'one'].map(it.countWords)", json!([0, 3, 1])).await;
        for (name, expected) in [
            ("talk.srt", "und"), ("talk.en.srt", "en"), ("talk.pt-BR.VTT", "pt-BR"), ("talk.final.srt", "und"), ("talk.v2.srt", "und"), ("en.srt", "und"),
        ] {
            check(page, "core/languages", &format!("it.languageOfFile('{name}')"), json!(expected)).await;
        }
        check(page, "core/languages", "[it.languageName('de'), it.languageName('und'), it.languageName('not a tag')]", json!(["German", "Subtitles", "not a tag"])).await;
    })
    .await;
}

#[tokio::test]
async fn addresses_lead_to_their_screens_and_say_what_is_asked() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        let id = "01a1f920-9db7-77bd-8b85-ed1215761a9e";
        for (address, expected) in [
            ("/".to_owned(), json!(["search", "", null])),
            (format!("/v/{id}?t=12.5"), json!(["watch", id, 12.5])),
            (format!("/v/{id}/"), json!(["watch", id, null])),
            (format!("/v/{id}?t=1m2s&q=bias"), json!(["watch", id, 62])),
            (format!("/v/{id}?t=1:02:03"), json!(["watch", id, 3723])),
            (format!("/v/{id}?t=soon"), json!(["watch", id, null])),
            ("/library?view=list".to_owned(), json!(["library", "", null])),
            ("/reels".to_owned(), json!(["reels", "", null])),
            (format!("/reels/{id}"), json!(["reel", id, null])),
            (format!("/shared/{id}?signature=x"), json!(["shared", id, null])),
            ("/activity".to_owned(), json!(["activity", "", null])),
            ("/insights/".to_owned(), json!(["insights", "", null])),
            ("/models".to_owned(), json!(["models", "", null])),
            ("/v/1".to_owned(), json!(null)),
            ("/docs".to_owned(), json!(null)),
        ] {
            let parsed = format!("((route) => route && [route.name, route.id, it.timeOf(route.parameters)])(it.parse(new URL('http://x{address}')))");
            check(page, "core/router", &parsed, expected).await;
        }
        let query = "new URLSearchParams('q=a+b&sources=spoken&t=9')";
        check(page, "core/router", &format!("it.videoPath('v', 1.0015, {query})"), json!("/v/v?t=1.002&q=a+b&sources=spoken")).await;
        check(page, "core/router", "it.videoPath('v')", json!("/v/v")).await;

        let parameters = |address: &str| format!("new URLSearchParams('{address}')");
        for (address, expected) in [
            ("q=a+b", json!({"text": "a b"})),
            ("q=+", json!(null)),
            ("clip=v&start=1&end=2.5", json!({"clip": {"video_id": "v", "start": 1, "end": 2.5}})),
            ("clip=v&start=1&end=2.5&mod=but+red", json!({"clip": {"video_id": "v", "start": 1, "end": 2.5}, "modification": "but red"})),
            ("clip_id=c", json!({"clip_id": "c"})),
            ("image=v&at=3", json!({"image": {"video_id": "v", "at": 3}})),
            ("like=a&unlike=b", json!({"like": [{"text": "a"}], "unlike": [{"text": "b"}]})),
            ("upload=7", json!(null)),
        ] {
            check(page, "parts/query", &format!("it.queryOf({})?.query ?? null", parameters(address)), expected).await;
        }
        for (address, expected) in [
            ("q=a&sources=spoken", json!(["spoken"])),
            ("q=a&sources=visual,spoken", json!(["visual", "spoken"])),
            ("q=a&sources=screen", json!(["screen"])),
            ("q=a&sources=heard", json!(null)),
            ("q=a", json!(null)),
        ] {
            check(page, "parts/query", &format!("it.sourcesOf({})", parameters(address)), expected).await;
        }
        for (address, expected) in [
            ("q=a", json!(null)),
            ("q=a&tag=x", json!({"field": "tags", "eq": "x"})),
            ("q=a&tag=x&tag=y&folder=f", json!({"all": [{"any": [{"field": "tags", "eq": "x"}, {"field": "tags", "eq": "y"}]}, {"field": "folder", "under": "f"}]})),
            ("q=a&length=s", json!({"all": [{"field": "duration", "gte": 0}, {"field": "duration", "lt": 10}]})),
            ("q=a&day=2026-02-28", json!({"all": [{"field": "recorded_at", "gte": "2026-02-28T00:00:00Z"}, {"field": "recorded_at", "lt": "2026-03-01T00:00:00Z"}]})),
        ] {
            check(page, "parts/query", &format!("it.filterOf({})", parameters(address)), expected).await;
        }
        check(page, "parts/query", "it.searchPath(new URLSearchParams('q=a&tag=x&tag=y'), {tag: ['z'], q: 'b', sort: null})", json!("/?tag=z&q=b")).await;
        check(page, "parts/query", "['', 'q=', 'sort=time', 'q=a', 'like=a'].map((text) => it.isSearch(new URLSearchParams(text)))", json!([false, false, false, true, true])).await;
    })
    .await;
}

#[tokio::test]
async fn snippets_hits_and_subtitle_files_are_read_as_they_should_be() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        for (html, expected) in [
            ("the <mark>bias</mark> of it", json!(["the ", "MARK bias", " of it"])),
            ("&lt;b&gt; &amp;lt; <mark>&quot;a&quot;</mark> &#39;", json!(["<b> &lt; ", "MARK \"a\"", " '"])),
            // Markup that the server never sends stays text.
            ("<img src=x onerror=alert(1)> <mark><b>x</b></mark>", json!(["<img src=x onerror=alert(1)> ", "MARK <b>x</b>", ""])),
            ("<mark>open", json!(["<mark>open"])),
        ] {
            let nodes = format!("it.snippetNodes({}).map((node) => (node.nodeName ? `${{node.nodeName}} ${{node.children.length ? 'markup' : node.textContent}}` : node))", json!(html));
            check(page, "parts/card", &nodes, expected).await;
        }
        for (hit, expected) in [
            // Playback starts where the server says, with its lead-in; otherwise a second before the best match.
            ("{video_id: 'v', start: 5, end: 9, evidence: [], page_url: '/v/v?t=4.000'}", "/v/v?t=4"),
            ("{video_id: 'v', start: 5, end: 9, peak: 7.5, evidence: [], page_url: '/v/v'}", "/v/v?t=6.5"),
            ("{video_id: 'v', start: 5, end: 9, peak: 7.5, evidence: [{source: 'visual'}, {source: 'spoken', text: 'a', start: 6.25}], page_url: '/v/v'}", "/v/v?t=5.25"),
            ("{video_id: 'v', start: 0.5, end: 9, evidence: [], page_url: '/v/v'}", "/v/v?t=0"),
        ] {
            check(page, "parts/hits", &format!("it.hitPath({hit})"), json!(expected)).await;
        }
        for (subtitles, videos, expected) in [
            (json!(["talk.srt"]), json!(["talk.mp4", "other.mp4"]), json!([["talk.mp4", true]])),
            (json!(["Talk.en.vtt", "talk.pt-BR.srt"]), json!(["talk.MKV", "talk2.mp4"]), json!([["talk.MKV", true], ["talk.MKV", true]])),
            (json!(["week 3 notes.srt"]), json!(["lecture_03.mp4", "lecture_04.mp4"]), json!([["lecture_03.mp4", false]])),
            (json!(["my-talk.srt"]), json!(["my_talk.mp4", "x.mp4"]), json!([["my_talk.mp4", false]])),
            (json!(["a.srt"]), json!(["only.mp4"]), json!([["only.mp4", false]])),
            (json!(["a.srt"]), json!(["b.mp4", "c.mp4"]), json!([[null, false]])),
        ] {
            let paired = format!("it.pair({subtitles}.map((name) => new File([], name)), {videos}, (name) => name).map(({{ video, sure }}) => [video, sure])");
            check(page, "parts/pairs", &paired, expected).await;
        }
        for (search, expected) in [
            ("{kind: 'text', query: {text: 'a b'}}", json!("/?q=a+b")),
            ("{kind: 'composed', query: {video_id: 'v', start: 1, end: 2, text: 'red'}}", json!("/?clip=v&start=1&end=2&mod=red")),
            ("{kind: 'clip', query: {uploaded: true}}", json!(null)),
            (
                "{kind: 'examples', query: {examples: {like: [{text: 'a'}, {video_id: 'v', start: 1, end: 2.5}], unlike: [{text: 'b'}]}}}",
                json!("/?like=a&like=v%3A1-2.5&unlike=b"),
            ),
            ("{kind: 'examples', query: {examples: {like: [{uploaded: true}], unlike: []}}}", json!(null)),
        ] {
            check(page, "parts/searchlink", &format!("it.againPath({search})"), expected).await;
        }
    })
    .await;
}
