//! Cues: replaced per track, searched by words, deleted with their track and video.

use reprise_server::catalog::{
    CatalogError, Cue, CueHit, CueKind, CueQuery, EMBEDDED, Line, Subtitles, Track, TranscriptPart,
};
use reprise_server::terms::{KeySet, Level, SpanKey};
use uuid::Uuid;

use super::samples::{add, add_ready, clip, lease, space, video};
use super::{ALL, Opened, on_both, spoken};

on_both!(
    cues_are_replaced_track_by_track,
    a_line_without_length_is_refused,
    a_video_comes_with_its_subtitles_and_a_duplicate_gets_them,
    embedded_tracks_make_room_for_those_of_users,
    words_are_found_whatever_their_case_and_accents,
    words_in_sequence_come_first_and_may_run_on_into_the_next_cues,
    a_hit_counts_for_the_clip_that_holds_its_start,
    a_filter_acts_inside_the_search,
    what_is_deleted_or_replaced_is_not_found_any_more,
    queries_of_any_length_are_answered,
    a_transcript_is_read_by_kind_language_and_time,
);

fn track(kind: CueKind, language: &str) -> Track {
    Track { kind, language: language.to_owned(), provenance: "lecture.srt".to_owned(), is_machine: false }
}

fn numbered(track: &Track, count: i64, text: &str) -> Subtitles {
    let line = |n| Line { start_ms: n * 700, end_ms: n * 700 + 900, text: format!("{text} {n}") };
    Subtitles { track: track.clone(), lines: (0..count).map(line).collect(), warnings: vec![] }
}

/// An English track with one line per second. The container's clock is 1,075 ms ahead, as in the samples.
fn said(lines: &[&str]) -> Subtitles {
    let line = |(at, text): (i64, &&str)| Line {
        start_ms: at * 1000 + 1075,
        end_ms: at * 1000 + 2075,
        text: (*text).to_owned(),
    };
    let lines = (0..).zip(lines).map(line).collect();
    Subtitles { track: track(CueKind::Speech, "en"), lines, warnings: vec![] }
}

async fn cues_are_replaced_track_by_track(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let (english, captions) = (track(CueKind::Speech, "en"), track(CueKind::Caption, "en"));
    let latest = Subtitles {
        warnings: vec!["line 3: é\n2".to_owned()],
        ..numbered(&english, 5, "said again, é\"'")
    };
    for subtitles in [&numbered(&english, 300, "said"), &numbered(&captions, 2, "seen"), &latest] {
        assert!(catalog.view(ALL).replace_cues(stored.id, subtitles).await.unwrap());
    }
    assert!(!catalog.view(ALL).replace_cues(Uuid::now_v7(), &latest).await.unwrap());

    let all = catalog.view(ALL).cues(stored.id, None, 100).await.unwrap();
    assert!(all.is_sorted_by_key(|cue| (cue.line.start_ms, cue.id)));
    let of = |wanted: &Track| -> Vec<Line> {
        all.iter().filter(|cue| cue.track == *wanted).map(|cue| cue.line.clone()).collect()
    };
    assert_eq!((of(&english), of(&captions)), (latest.lines.clone(), numbered(&captions, 2, "seen").lines));
    let mut paged: Vec<Cue> = vec![];
    loop {
        let after = paged.last().map(|cue| (cue.line.start_ms, cue.id));
        let page = catalog.view(ALL).cues(stored.id, after, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);

    let tracks = catalog.view(ALL).tracks(stored.id).await.unwrap();
    let shown: Vec<_> = tracks.iter().map(|it| (&it.track, it.cues, it.warnings.len())).collect();
    assert_eq!(shown, [(&captions, 2, 0), (&english, 5, 1)]);
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().warnings, ["line 3: é 2"]);
    assert_eq!(catalog.view(ALL).track_lines(stored.id, CueKind::Speech, "en").await.unwrap(), latest.lines);
    assert_eq!(catalog.view(ALL).track_lines(stored.id, CueKind::Speech, "de").await.unwrap(), []);

    assert!(catalog.view(ALL).delete_track(stored.id, CueKind::Speech, "en").await.unwrap());
    assert!(!catalog.view(ALL).delete_track(stored.id, CueKind::Speech, "en").await.unwrap());
    assert_eq!(catalog.view(ALL).cues(stored.id, None, 100).await.unwrap().len(), 2);
    catalog.view(ALL).delete_video(stored.id).await.unwrap().unwrap();
    assert_eq!(catalog.view(ALL).cues(stored.id, None, 100).await.unwrap(), []);
    assert_eq!(catalog.view(ALL).tracks(stored.id).await.unwrap(), []);
}

async fn a_line_without_length_is_refused(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let mut bad = numbered(&track(CueKind::Ocr, ""), 3, "x");
    bad.lines[1].end_ms = bad.lines[1].start_ms;
    let refused = catalog.view(ALL).replace_cues(stored.id, &bad).await;
    assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
    assert_eq!(catalog.view(ALL).cues(stored.id, None, 10).await.unwrap(), []);
}

async fn a_video_comes_with_its_subtitles_and_a_duplicate_gets_them(opened: &Opened) {
    let catalog = &*opened.catalog;
    let with = |lines: &[&str]| {
        let subtitles = Subtitles { warnings: vec!["line 7: odd".to_owned()], ..said(lines) };
        reprise_server::catalog::NewVideo { subtitles: vec![subtitles], ..video("a") }
    };
    let (stored, _) = add(catalog, with(&["first"])).await;
    assert_eq!(stored.warnings, ["line 7: odd"]);
    assert_eq!(catalog.view(ALL).cues(stored.id, None, 10).await.unwrap()[0].line.text, "first");
    let again = catalog.view(ALL).add_video(with(&["second", "third"]), None).await.unwrap();
    assert!(
        matches!(again, reprise_server::catalog::Added::Duplicate(ref it, _) if it.id == stored.id),
        "{again:?}"
    );
    let lines = catalog.view(ALL).track_lines(stored.id, CueKind::Speech, "en").await.unwrap();
    assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["second", "third"]);
}

async fn embedded_tracks_make_room_for_those_of_users(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let embedded = |language: &str, text: &str| {
        let track = Track { provenance: EMBEDDED.to_owned(), ..track(CueKind::Speech, language) };
        numbered(&track, 1, text)
    };
    let texts = async || -> Vec<(String, String)> {
        let cues = catalog.view(ALL).cues(stored.id, None, 100).await.unwrap();
        let mut texts: Vec<_> = cues.into_iter().map(|cue| (cue.track.language, cue.line.text)).collect();
        texts.sort();
        texts
    };
    let pair = |language: &str, text: &str| (language.to_owned(), format!("{text} 0"));
    assert!(catalog.keep_embedded(stored.id, &[embedded("de", "a"), embedded("en", "b")]).await.unwrap());
    catalog
        .view(ALL)
        .replace_cues(stored.id, &numbered(&track(CueKind::Speech, "en"), 1, "own"))
        .await
        .unwrap();
    assert_eq!(texts().await, [pair("de", "a"), pair("en", "own")]);
    assert!(catalog.keep_embedded(stored.id, &[embedded("en", "c"), embedded("fr", "d")]).await.unwrap());
    assert_eq!(texts().await, [pair("en", "own"), pair("fr", "d")]);
    assert!(catalog.keep_embedded(stored.id, &[]).await.unwrap());
    assert_eq!(texts().await, [pair("en", "own")]);
    assert!(!catalog.keep_embedded(Uuid::now_v7(), &[]).await.unwrap());
}

async fn search(opened: &Opened, text: &str, level: Level, only: Option<&[SpanKey]>) -> Vec<CueHit> {
    let only = only.map(|keys| keys.iter().copied().collect::<KeySet>());
    opened.catalog.view(ALL).cue_hits(&CueQuery::new(text), &spoken(level, only.as_ref()), 10).await.unwrap()
}

/// Adds a ready video with a clip of one second per subtitle line.
async fn add_said(opened: &Opened, name: &str, lines: &[&str]) -> Uuid {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let stored = add_ready(catalog, video(name), u32::try_from(lines.len()).unwrap(), &[&tiny]).await;
    assert!(catalog.view(ALL).replace_cues(stored.id, &said(lines)).await.unwrap());
    stored.id
}

/// Checks text and start of each hit at level clip.
#[track_caller]
fn check_hits(hits: &[CueHit], expected: &[(&str, i64)]) {
    let got: Vec<(&str, i64)> = hits.iter().map(|hit| (hit.text.as_str(), hit.start_ms)).collect();
    assert_eq!(got, expected, "{hits:#?}");
}

async fn words_are_found_whatever_their_case_and_accents(opened: &Opened) {
    let lines =
        ["Das CAFÉ an der Straße", "it's a naïve model", "深度学习 🤗", "a\tb; c'est <la> \"vie\"", "♪"];
    add_said(opened, "a", &lines).await;
    for (query, expected) in [
        ("cafe strasse", 0),
        ("Its", 1),
        ("NAIVE?", 1),
        ("学习", 2),
        ("C’EST la vie' OR x", 3),
        ("b\" AND c", 3),
    ] {
        let hits = search(opened, query, Level::Clip, None).await;
        check_hits(&hits, &[(lines[expected], i64::try_from(expected).unwrap() * 1000)]);
        assert!(hits[0].score > 0.0 && hits[0].track == track(CueKind::Speech, "en"));
    }
    for nothing in ["", "🤗", "caf", "!?", "\0", "' | 'x", "* NEAR(y)"] {
        check_hits(&search(opened, nothing, Level::Clip, None).await, &[]);
    }
}

async fn words_in_sequence_come_first_and_may_run_on_into_the_next_cues(opened: &Opened) {
    let lines = [
        "encoding encoding pair",
        "this is what we call the byte",
        "pair",
        "encoding of words",
        "and this is it",
        "byte pair byte pair encoding",
    ];
    add_said(opened, "a", &lines).await;
    let hits = search(opened, "Byte-pair encoding", Level::Clip, None).await;
    let over_three = "this is what we call the byte\npair\nencoding of words";
    assert_eq!(hits.iter().map(|hit| hit.in_sequence).collect::<Vec<_>>(), [true, true, false, false, false]);
    check_hits(&hits[..2], &[(lines[5], 5000), (over_three, 1000)]);
    assert_eq!(hits[1].end_ms, 4000);
    // The hit's text begins with words that are not in the query.
    let hits = search(opened, "of words and this", Level::Clip, None).await;
    assert!(hits[0].in_sequence);
    check_hits(&hits[..1], &[("encoding of words\nand this is it", 3000)]);
    let hits = search(opened, "this is it", Level::Clip, None).await;
    check_hits(&hits[..1], &[(lines[4], 4000)]);
}

async fn a_hit_counts_for_the_clip_that_holds_its_start(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let new = reprise_server::catalog::NewVideo {
        given: vec![clip(500, 2500, serde_json::json!({}))],
        ..video("a")
    };
    let stored = add_ready(catalog, new, 2, &[&tiny]).await;
    let clips = catalog.view(ALL).clips(stored.id, None, 10).await.unwrap();
    let given = clips.iter().find(|it| it.given).unwrap();
    let line = |start_ms, text: &str| Line { start_ms, end_ms: start_ms + 100, text: text.to_owned() };
    let lines = vec![
        line(0, "before the first frame"),
        line(2074, "at the end of the first clip"),
        line(2075, "at the start of the second clip"),
        line(9000, "after the video"),
    ];
    let subtitles = Subtitles { track: track(CueKind::Speech, "en"), lines, warnings: vec![] };
    catalog.view(ALL).replace_cues(stored.id, &subtitles).await.unwrap();
    let span = async |query: &str, only: Option<&[SpanKey]>| {
        let hits = search(opened, query, Level::Clip, only).await;
        hits.first().map(|hit| (hit.span, hit.start_ms))
    };
    let at = |start_ms| clips.iter().find(|it| !it.given && it.start_ms == start_ms).unwrap().key;
    assert_eq!(span("before", None).await, Some((at(0), 0)));
    assert_eq!(span("end of the first", None).await, Some((at(0), 999)));
    assert_eq!(span("start of the second", None).await, Some((at(1000), 1000)));
    assert_eq!(span("start of the second", Some(&[given.key])).await, Some((given.key, 1000)));
    assert_eq!(span("after the video", None).await, None);
    let hits = search(opened, "video first clip", Level::Video, None).await;
    assert_eq!(hits.len(), 1, "one hit a span: {hits:?}");
    let whole = catalog.view(ALL).span_at(stored.id, 0, 2000, tiny.key).await.unwrap().unwrap();
    assert_eq!((hits[0].span, hits[0].video), (whole.key, stored.id));
}

async fn a_filter_acts_inside_the_search(opened: &Opened) {
    let catalog = &*opened.catalog;
    for name in ["a", "b", "c"] {
        add_said(opened, name, &["needle and thread", "hay"]).await;
    }
    let all = search(opened, "needle", Level::Clip, None).await;
    assert_eq!(all.len(), 3);
    let only = search(opened, "needle", Level::Clip, Some(&[all[2].span, SpanKey::new(1 << 40)])).await;
    assert_eq!(only, [all[2].clone()]);
    assert_eq!(search(opened, "needle", Level::Clip, Some(&[])).await, []);
    let first =
        catalog.view(ALL).cue_hits(&CueQuery::new("needle"), &spoken(Level::Clip, None), 1).await.unwrap();
    assert_eq!(first, [all[0].clone()]);
    assert_eq!(
        catalog.view(ALL).cue_hits(&CueQuery::new("needle"), &spoken(Level::Clip, None), 0).await.unwrap(),
        []
    );
}

async fn what_is_deleted_or_replaced_is_not_found_any_more(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (one, two) =
        (add_said(opened, "a", &["needle", "hay"]).await, add_said(opened, "b", &["needle"]).await);
    let seq = catalog.last_seq().await.unwrap();
    let videos = async || -> Vec<Uuid> {
        search(opened, "needle", Level::Video, None).await.iter().map(|hit| hit.video).collect()
    };
    assert_eq!(videos().await, [one, two]);
    catalog.view(ALL).replace_cues(one, &said(&["thread"])).await.unwrap();
    assert_eq!(videos().await, [two]);
    assert_eq!(catalog.last_seq().await.unwrap(), seq, "no vector was touched");
    catalog.view(ALL).replace_cues(one, &said(&["needle"])).await.unwrap();
    catalog.view(ALL).delete_video(two).await.unwrap();
    assert_eq!(videos().await, [one]);
    catalog.view(ALL).delete_track(one, CueKind::Speech, "en").await.unwrap();
    assert!(videos().await.is_empty());
    // A video that isn't searchable yet has no hits.
    let new = reprise_server::catalog::NewVideo { subtitles: vec![said(&["needle"])], ..video("c") };
    let (pending, _) = add(catalog, new).await;
    assert!(videos().await.is_empty());
    let tiny = space(catalog, "tiny", 4).await;
    let leased = lease(catalog).await;
    catalog.finish_ingest(&leased.lease, super::samples::ingested(1, &[&tiny])).await.unwrap();
    assert_eq!(videos().await, [pending.id]);
}

async fn queries_of_any_length_are_answered(opened: &Opened) {
    add_said(opened, "a", &["the one about whales", "the one about the sea"]).await;
    let long: Vec<String> = (0..2000).map(|number| format!("word{number}")).collect();
    let hits = search(opened, &format!("{} whales", long.join(" ")), Level::Clip, None).await;
    check_hits(&hits, &[("the one about whales", 0)]);
    let hits = search(opened, &"the about ".repeat(1000), Level::Clip, None).await;
    assert_eq!(hits.len(), 2, "stop words alone are looked for: {hits:?}");
    assert!(search(opened, &"x".repeat(100_000), Level::Clip, None).await.is_empty());
}

async fn a_transcript_is_read_by_kind_language_and_time(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let stored = add_ready(catalog, video("a"), 4, &[&tiny]).await;
    let tracks = [(CueKind::Speech, "en"), (CueKind::Speech, "de"), (CueKind::Ocr, "en")];
    for (kind, language) in tracks {
        let subtitles = numbered(&track(kind, language), 3, &format!("{kind:?} {language}"));
        catalog.view(ALL).replace_cues(stored.id, &subtitles).await.unwrap();
    }
    let read = async |part: TranscriptPart| -> Vec<String> {
        let lines = catalog.view(ALL).transcript(stored.id, &part, 100).await.unwrap();
        let mut texts: Vec<String> = lines.into_iter().map(|cue| cue.line.text).collect();
        texts.sort();
        texts
    };
    let (kind, language) = (Some(CueKind::Speech), Some("en".to_owned()));
    let all = TranscriptPart::default();
    assert_eq!(read(all.clone()).await.len(), 9);
    let part = TranscriptPart { kind, language, ..all.clone() };
    assert_eq!(read(part.clone()).await, ["Speech en 0", "Speech en 1", "Speech en 2"]);
    // Lines of 900 ms begin at 0, 700 and 1400 ms; a line that ends where the part begins is not in it.
    let part = TranscriptPart { from_ms: Some(900), until_ms: Some(1400), ..part };
    assert_eq!(read(part.clone()).await, ["Speech en 1"]);
    assert_eq!(read(TranscriptPart { until_ms: Some(1401), ..part }).await, ["Speech en 1", "Speech en 2"]);
    assert!(read(TranscriptPart { kind: Some(CueKind::Caption), ..all.clone() }).await.is_empty());
    assert!(read(TranscriptPart { language: Some("'; --".to_owned()), ..all.clone() }).await.is_empty());

    let part = TranscriptPart { kind, ..all };
    let passages = catalog.view(ALL).passages(stored.id, &part, 10).await.unwrap();
    let shown: Vec<_> = passages.iter().map(|it| (it.track.language.as_str(), it.line.start_ms)).collect();
    assert_eq!(passages.len(), 2, "{passages:?}");
    assert!(shown.contains(&("en", 0)) && shown.contains(&("de", 0)), "{shown:?}");
    let after = passages.first().map(|it| (it.line.start_ms, it.id));
    let rest = catalog.view(ALL).passages(stored.id, &TranscriptPart { after, ..part }, 10).await.unwrap();
    assert_eq!(rest, passages[1..]);
}
