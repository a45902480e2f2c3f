//! Text on screen: stored with its place, searched by words, read again.

use reprise_server::catalog::{
    CatalogError, CueBox, CueKind, CueQuery, CueScope, JobName, Lease, Line, ReadText, ScreenCue, Subtitles,
    Track, Video,
};
use reprise_server::terms::Level;
use uuid::Uuid;

use super::samples::{add, add_ready, lease, space, video};
use super::{ALL, Opened, on_both, spoken};

on_both!(
    a_line_is_found_with_its_place,
    what_is_read_again_replaces_what_machines_read_and_no_person,
    a_reading_is_enqueued_once_and_waits_for_the_ingest,
    what_appears_together_is_a_passage,
);

const BOX: CueBox = CueBox { left: 0.1, top: 0.25, width: 0.5, height: 0.05 };
const ON_SCREEN: CueScope<'static> = CueScope { kind: CueKind::Ocr, level: Level::Clip, only: None };

fn track(is_machine: bool) -> Track {
    Track { kind: CueKind::Ocr, language: "en".to_owned(), provenance: "tesseract".to_owned(), is_machine }
}

/// Lines that are on screen together, in the second second. The container's clock is 1,075 ms ahead, as in the samples.
fn read(lines: &[&str]) -> ReadText {
    let line = |text: &&str| Line { start_ms: 2075, end_ms: 9075, text: (*text).to_owned() };
    let cue = |text: &&str| ScreenCue { line: line(text), region: BOX };
    ReadText { track: track(true), cues: lines.iter().map(cue).collect(), warnings: Vec::new() }
}

async fn lease_reading(opened: &Opened, stored: &Video) -> Lease {
    let job = opened.catalog.view(ALL).read_text(stored.id).await.unwrap().unwrap();
    assert_eq!((job.kind, job.video), (JobName::ReadText, Some(stored.id)));
    let leased = lease(&opened.catalog).await;
    assert_eq!(leased.job.id, job.id);
    leased.lease
}

async fn finish(opened: &Opened, stored: &Video, read: &ReadText) -> Option<String> {
    let lease = lease_reading(opened, stored).await;
    opened.catalog.finish_reading(&lease, read).await.unwrap();
    // Again: no change.
    opened.catalog.finish_reading(&lease, read).await.unwrap();
    opened.catalog.view(ALL).job(lease.job).await.unwrap().unwrap().note
}

async fn texts(opened: &Opened, stored: &Video) -> Vec<String> {
    let cues = opened.catalog.view(ALL).cues(stored.id, None, 100).await.unwrap();
    cues.into_iter().map(|cue| cue.line.text).collect()
}

async fn a_line_is_found_with_its_place(opened: &Opened) {
    let catalog = &*opened.catalog;
    let seen = space(catalog, "seen", 4).await;
    let stored = add_ready(catalog, video("a"), 10, &[&seen]).await;
    let upside_down = Line { start_ms: 5, end_ms: 5, text: "x".to_owned() };
    let bad = ReadText { cues: vec![ScreenCue { line: upside_down, region: BOX }], ..read(&[]) };
    let held = lease_reading(opened, &stored).await;
    assert!(matches!(catalog.finish_reading(&held, &bad).await, Err(CatalogError::Invalid(_))));
    catalog.finish_reading(&held, &read(&["Gated recurrent", "units forget", "little"])).await.unwrap();
    let found =
        catalog.view(ALL).cue_hits(&CueQuery::new("recurrent units forget"), &ON_SCREEN, 5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].start_ms, found[0].region, found[0].in_sequence), (1000, Some(BOX), true));
    let said = catalog.view(ALL).cue_hits(&CueQuery::new("units"), &spoken(Level::Clip, None), 5).await;
    assert_eq!(said.unwrap(), [], "nobody says it");
    let cues = catalog.view(ALL).cues(stored.id, None, 100).await.unwrap();
    assert!(cues.iter().all(|cue| cue.region == Some(BOX) && cue.track == track(true)), "{cues:?}");
}

async fn what_is_read_again_replaces_what_machines_read_and_no_person(opened: &Opened) {
    let catalog = &*opened.catalog;
    let seen = space(catalog, "seen", 4).await;
    let stored = add_ready(catalog, video("a"), 10, &[&seen]).await;
    assert_eq!(finish(opened, &stored, &read(&["one", "two"])).await, None);
    assert_eq!(finish(opened, &stored, &read(&["three"])).await, None);
    assert_eq!(texts(opened, &stored).await, ["three"]);
    assert_eq!(finish(opened, &stored, &read(&[])).await.as_deref(), Some("no text is on screen"));
    assert_eq!(texts(opened, &stored).await, Vec::<String>::new());
    let line = Line { start_ms: 2075, end_ms: 3075, text: "mine".to_owned() };
    let of_person = Subtitles { track: track(false), lines: vec![line], warnings: vec![] };
    assert!(catalog.view(ALL).replace_cues(stored.id, &of_person).await.unwrap());
    let note = finish(opened, &stored, &read(&["four"])).await;
    assert!(note.is_some_and(|it| it.contains("a person's track")));
    assert_eq!(texts(opened, &stored).await, ["mine"]);
}

async fn a_reading_is_enqueued_once_and_waits_for_the_ingest(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, ingest) = add(catalog, video("a")).await;
    assert!(catalog.read_text_of_new(stored.id).await.unwrap());
    assert!(!catalog.read_text_of_new(stored.id).await.unwrap());
    assert!(!catalog.read_text_of_new(Uuid::now_v7()).await.unwrap());
    let again = catalog.view(ALL).read_text(stored.id).await;
    assert!(matches!(again, Err(CatalogError::Conflict(_))), "{again:?}");
    assert!(catalog.view(ALL).read_text(Uuid::now_v7()).await.unwrap().is_none());
    assert_eq!(lease(catalog).await.job.id, ingest.id, "the pictures come first");
}

async fn what_appears_together_is_a_passage(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (seen, reader) = (space(catalog, "seen", 4).await, space(catalog, "read", 3).await);
    let stored = add_ready(catalog, video("a"), 60, &[&seen]).await;
    let mut slides = read(&["Title", "a point", "another"]);
    slides.cues.extend(read(&["Next title", "its point"]).cues);
    for later in &mut slides.cues[3..] {
        (later.line.start_ms, later.line.end_ms) = (9075, 50_075);
    }
    finish(opened, &stored, &slides).await;
    let lacking = catalog.passages_without_vector(stored.id, reader.key).await.unwrap();
    let texts: Vec<&str> = lacking.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["Title\na point\nanother", "Next title\nits point"]);
}
