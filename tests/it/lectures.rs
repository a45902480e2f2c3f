//! Subtitle search in 76 real lectures, on both databases: phrases, long texts, and words in any order.

use reprise_server::catalog::{Catalog, CueKind, CueQuery, Ingested, IngestedSpan, Line, Subtitles, Track};
use reprise_server::terms::Level;
use reprise_tests::lectures::{lectures, phrases};
use uuid::Uuid;

use crate::catalog::samples::{add, facts, lease, video};
use crate::catalog::{ALL, spoken};
use crate::catalog::{Opened, on_both};

/// Length of a clip in a stored lecture, in milliseconds.
const CLIP_MS: i64 = 20_000;
const PHRASES: usize = 100;

on_both!(what_is_said_in_lectures_is_found_where_it_is_said);

struct Stored {
    id: Uuid,
    lines: Vec<Line>,
}

/// A ready video of the lecture's length with a clip every 20 s. The container's clock is 1,075 ms ahead.
async fn store(catalog: &Catalog, number: usize, lines: Vec<Line>) -> Stored {
    let (stored, _) = add(catalog, video(&format!("lecture {number}"))).await;
    let duration_ms = lines.iter().map(|line| line.end_ms).max().unwrap();
    let span =
        |level, start_ms, end_ms| IngestedSpan { given: None, level, start_ms, end_ms, vectors: vec![] };
    let mut spans = vec![span(Level::Video, 0, duration_ms)];
    let starts = (0..).map(|clip| clip * CLIP_MS).take_while(|start| *start < duration_ms);
    spans.extend(starts.map(|start| span(Level::Clip, start, (start + CLIP_MS).min(duration_ms))));
    let leased = lease(catalog).await;
    let ingested = Ingested { facts: facts(duration_ms), warnings: vec![], spans };
    catalog.finish_ingest(&leased.lease, ingested).await.unwrap();
    let track = Track {
        kind: CueKind::Speech,
        language: "en".to_owned(),
        provenance: "a.srt".to_owned(),
        is_machine: false,
    };
    let subtitles = Subtitles { track, lines: lines.clone(), warnings: vec![] };
    assert!(catalog.view(ALL).replace_cues(stored.id, &subtitles).await.unwrap());
    Stored { id: stored.id, lines }
}

async fn what_is_said_in_lectures_is_found_where_it_is_said(opened: &Opened) {
    let Some(lectures) = lectures() else { return };
    let phrases = phrases(&lectures, PHRASES);
    let catalog = &*opened.catalog;
    let mut stored = Vec::new();
    for (number, lecture) in lectures.into_iter().enumerate() {
        stored.push(store(catalog, number, lecture.lines).await);
    }
    for phrase in phrases {
        let lecture = &stored[phrase.lecture];
        let line = &lecture.lines[phrase.cue];
        let hits = catalog
            .view(ALL)
            .cue_hits(&CueQuery::new(&phrase.text), &spoken(Level::Clip, None), 3)
            .await
            .unwrap();
        let first = hits.first().unwrap_or_else(|| panic!("{:?} is not found", phrase.text));
        assert!(first.in_sequence && first.video == lecture.id, "{:?}: {first:?}", phrase.text);
        assert_eq!(
            (first.start_ms, &first.text),
            ((line.start_ms - 1075).max(0), &line.text),
            "{:?}",
            phrase.text
        );
        assert!(hits[1..].iter().all(|other| !other.in_sequence), "{:?} is said once: {hits:?}", phrase.text);
    }
    for lecture in stored.iter().step_by(10) {
        long_texts_find_their_lecture(catalog, lecture).await;
    }
}

/// Searches with every third sentence of a lecture in reverse order, repeated to at least 2,000 words.
async fn long_texts_find_their_lecture(catalog: &Catalog, lecture: &Stored) {
    let mut some: Vec<&str> = lecture.lines.iter().rev().step_by(3).map(|line| line.text.as_str()).collect();
    while some.iter().map(|text| text.split_whitespace().count()).sum::<usize>() < 2000 {
        some.extend_from_within(..);
    }
    let hits = catalog
        .view(ALL)
        .cue_hits(&CueQuery::new(&some.join(" ")), &spoken(Level::Video, None), 5)
        .await
        .unwrap();
    assert!(hits.iter().take(3).any(|hit| hit.video == lecture.id), "{hits:?}");
}
