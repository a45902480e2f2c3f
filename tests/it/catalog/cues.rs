//! Cues: replaced track by track, paged, gone with their video.

use reprise::catalog::{CatalogError, Cue, CueKind, Line, Track};
use uuid::Uuid;

use super::samples::{add, video};
use super::{Opened, on_both};

on_both!(cues_are_replaced_track_by_track, a_line_without_length_is_refused);

fn track(kind: CueKind, language: &str) -> Track {
    Track { kind, language: language.to_owned(), provenance: "lecture.srt".to_owned() }
}

fn lines(count: i64, text: &str) -> Vec<Line> {
    (0..count)
        .map(|n| Line { start_ms: n * 700, end_ms: n * 700 + 900, text: format!("{text} {n}") })
        .collect()
}

async fn cues_are_replaced_track_by_track(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let (english, captions) = (track(CueKind::Speech, "en"), track(CueKind::Caption, "en"));
    assert!(catalog.replace_cues(stored.id, &english, &lines(300, "said")).await.unwrap());
    assert!(catalog.replace_cues(stored.id, &captions, &lines(2, "seen")).await.unwrap());
    assert!(catalog.replace_cues(stored.id, &english, &lines(5, "said again, é\"'")).await.unwrap());
    assert!(!catalog.replace_cues(Uuid::now_v7(), &english, &[]).await.unwrap());

    let all = catalog.cues(stored.id, None, 100).await.unwrap();
    assert!(all.is_sorted_by_key(|cue| (cue.line.start_ms, cue.id)));
    let of = |wanted: &Track| -> Vec<Line> {
        all.iter().filter(|cue| cue.track == *wanted).map(|cue| cue.line.clone()).collect()
    };
    assert_eq!((of(&english), of(&captions)), (lines(5, "said again, é\"'"), lines(2, "seen")));
    let mut paged: Vec<Cue> = vec![];
    loop {
        let after = paged.last().map(|cue| (cue.line.start_ms, cue.id));
        let page = catalog.cues(stored.id, after, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    catalog.delete_video(stored.id).await.unwrap().unwrap();
    assert_eq!(catalog.cues(stored.id, None, 100).await.unwrap(), []);
}

async fn a_line_without_length_is_refused(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let mut bad = lines(3, "x");
    bad[1].end_ms = bad[1].start_ms;
    let refused = catalog.replace_cues(stored.id, &track(CueKind::Ocr, ""), &bad).await;
    assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
    assert_eq!(catalog.cues(stored.id, None, 10).await.unwrap(), []);
}
