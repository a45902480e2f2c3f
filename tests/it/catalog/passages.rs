//! Passages: built from subtitles, filled separately from the pictures, deleted with their track.

use reprise_server::catalog::{CueKind, JobName, Line, NewVector, PassageText, Subtitles, Track, Video};
use reprise_server::terms::{KeySet, Level, SpanKey};

use super::samples::{LEASE, add, add_ready, filled, ingested, lease, space, vector, video};
use super::vectors::{followed, of_space};
use super::{ALL, Opened, on_both, spoken};

on_both!(
    passages_are_made_where_the_clock_is_known_and_filled_in_their_space_alone,
    passages_go_with_their_track_and_stay_when_clips_are_cut_anew,
    a_passage_counts_for_the_clip_that_holds_its_start,
    a_fill_is_enqueued_once,
);

/// One cue every five seconds; every fourth cue ends a sentence. The container's clock is 1,075 ms ahead.
fn speech(cues: i64, language: &str) -> Subtitles {
    let line = |number: i64| Line {
        start_ms: number * 5000 + 1075,
        end_ms: number * 5000 + 6075,
        text: format!("cue {number}{}", if number % 4 == 3 { "." } else { "" }),
    };
    let track = Track {
        kind: CueKind::Speech,
        language: language.to_owned(),
        provenance: "a.srt".to_owned(),
        is_machine: false,
    };
    Subtitles { track, lines: (0..cues).map(line).collect(), warnings: vec![] }
}

fn texts(passages: &[PassageText]) -> Vec<String> {
    passages.iter().map(|it| it.text.replace('\n', " ")).collect()
}

/// Runs a fill job that gives a vector to each passage without one.
async fn fill(opened: &Opened, stored: &Video, space: u32, dim: usize) -> Vec<PassageText> {
    let catalog = &*opened.catalog;
    let lacking = catalog.passages_without_vector(stored.id, space).await.unwrap();
    assert!(catalog.enqueue_fill(stored.id).await.unwrap());
    let leased = lease(catalog).await;
    let new = |it: &PassageText| {
        let (unit, norm) = vector(it.span.number() as u32, dim);
        NewVector { span: it.span, space, unit, norm }
    };
    catalog.finish_fill(&leased.lease, filled(lacking.iter().map(new).collect())).await.unwrap();
    lacking
}

async fn passages_are_made_where_the_clock_is_known_and_filled_in_their_space_alone(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (seen, read) = (space(catalog, "seen", 4).await, space(catalog, "read", 3).await);
    let new = reprise_server::catalog::NewVideo { subtitles: vec![speech(8, "en")], ..video("a") };
    let (stored, _) = add(catalog, new).await;
    assert_eq!(catalog.passages_without_vector(stored.id, read.key).await.unwrap(), []);
    let leased = lease(catalog).await;
    catalog.finish_ingest(&leased.lease, ingested(60, &[&seen])).await.unwrap();
    assert_eq!(catalog.view(ALL).counts().await.unwrap().passages, 2);
    assert_eq!(catalog.enqueue_fills(&[seen.key]).await.unwrap(), 0, "no clip lacks anything");
    assert_eq!(catalog.spans_without_vector(stored.id, seen.key).await.unwrap(), []);
    assert_eq!(catalog.videos_lacking_passages(read.key).await.unwrap(), [stored.id]);
    let filled = fill(opened, &stored, read.key, 3).await;
    assert_eq!(texts(&filled), ["cue 0 cue 1 cue 2 cue 3.", "cue 3. cue 4 cue 5 cue 6 cue 7."]);
    assert!(catalog.videos_lacking_passages(read.key).await.unwrap().is_empty());
    assert_eq!(catalog.passages_without_vector(stored.id, read.key).await.unwrap(), []);
    let vectors = of_space(catalog, read.key).await;
    let levels: Vec<_> = vectors.iter().map(|it| (it.span, it.level)).collect();
    let expected: Vec<_> = filled.iter().map(|it| (it.span, Level::Passage)).collect();
    assert_eq!(levels, expected);
}

async fn passages_go_with_their_track_and_stay_when_clips_are_cut_anew(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (seen, read) = (space(catalog, "seen", 4).await, space(catalog, "read", 3).await);
    let stored = add_ready(catalog, video("a"), 60, &[&seen]).await;
    for language in ["en", "de"] {
        assert!(catalog.view(ALL).replace_cues(stored.id, &speech(8, language)).await.unwrap());
    }
    assert_eq!(fill(opened, &stored, read.key, 3).await.len(), 4);
    let held = async || {
        let vectors = of_space(catalog, read.key).await;
        let keys: Vec<SpanKey> = vectors.iter().map(|it| it.span).collect();
        let followed: Vec<SpanKey> =
            followed(catalog, 1000).await.into_keys().filter(|at| at.0 == read.key).map(|at| at.1).collect();
        assert_eq!(followed, keys, "whoever follows the changes has the same");
        keys
    };
    let before = held().await;
    assert_eq!(before.len(), 4);
    assert!(catalog.view(ALL).replace_cues(stored.id, &speech(4, "de")).await.unwrap());
    let english = held().await;
    assert_eq!(english, before[..2]);
    assert_eq!(catalog.passages_without_vector(stored.id, read.key).await.unwrap().len(), 1);
    assert!(catalog.view(ALL).delete_track(stored.id, CueKind::Speech, "de").await.unwrap());
    assert_eq!((held().await, catalog.view(ALL).counts().await.unwrap().passages), (english, 2));
    catalog.view(ALL).delete_video(stored.id).await.unwrap().unwrap();
    assert_eq!(held().await, []);
}

async fn a_passage_counts_for_the_clip_that_holds_its_start(opened: &Opened) {
    let catalog = &*opened.catalog;
    let seen = space(catalog, "seen", 4).await;
    for name in ["a", "b"] {
        let stored = add_ready(catalog, video(name), 60, &[&seen]).await;
        catalog.view(ALL).replace_cues(stored.id, &speech(8, "en")).await.unwrap();
    }
    let first = &catalog.view(ALL).videos(None, 1).await.unwrap()[0];
    let clips = catalog.view(ALL).clips(first.id, None, 100).await.unwrap();
    let only: KeySet = clips.iter().map(|it| it.key).collect();
    let within = catalog.view(ALL).passages_within(CueKind::Speech, &only).await.unwrap();
    let mut passages: Vec<SpanKey> = within.iter().collect();
    passages.reverse();
    assert_eq!(passages.len(), 2);
    let view = catalog.view(ALL);
    let of_speech = view.passages_of(CueKind::Speech).await.unwrap();
    assert!(within.iter().all(|key| of_speech.contains(key)));
    assert!(view.passages_of(CueKind::Ocr).await.unwrap().is_empty());
    for (kind, count) in [(CueKind::Speech, 2), (CueKind::Ocr, 0)] {
        assert_eq!(view.passages_among(kind, &passages).await.unwrap(), count, "{kind:?}");
    }
    let hits = catalog.view(ALL).passage_hits(&passages, &spoken(Level::Clip, Some(&only))).await.unwrap();
    let found: Vec<(SpanKey, i64, i64)> = hits.iter().map(|it| (it.span, it.start_ms, it.end_ms)).collect();
    assert_eq!(found, [(clips[15].key, 15_000, 40_000), (clips[0].key, 0, 20_000)]);
    assert!(hits[0].text.ends_with("cue 7.") && hits[0].video == first.id && hits[0].track.language == "en");
    let whole = catalog.view(ALL).passage_hits(&passages, &spoken(Level::Video, None)).await.unwrap();
    assert_eq!((whole.len(), whole[0].passage), (1, passages[0]), "one a span, the first");
    let last: KeySet = [clips[59].key].into_iter().collect();
    assert_eq!(
        catalog.view(ALL).passage_hits(&passages, &spoken(Level::Clip, Some(&last))).await.unwrap(),
        []
    );
}

async fn a_fill_is_enqueued_once(opened: &Opened) {
    let catalog = &*opened.catalog;
    let seen = space(catalog, "seen", 4).await;
    let stored = add_ready(catalog, video("a"), 2, &[&seen]).await;
    assert!(catalog.enqueue_fill(stored.id).await.unwrap());
    assert!(!catalog.enqueue_fill(stored.id).await.unwrap());
    let leased = catalog.lease_job(uuid::Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap().unwrap();
    assert!(catalog.enqueue_fill(stored.id).await.unwrap(), "the running one may have looked already");
    catalog.finish_fill(&leased.lease, filled(vec![])).await.unwrap();
    assert!(!catalog.enqueue_fill(uuid::Uuid::now_v7()).await.unwrap());
}
