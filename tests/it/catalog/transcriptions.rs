//! Transcriptions: requested, kept window by window, stored as tracks below a person's; and lines that people correct.

use reprise_server::catalog::{
    Catalog, CatalogError, CueKind, CueQuery, JobState, Leased, Line, LineChange, NewTranscription,
    Subtitles, Track, Transcript, TranscriptPart, TranscriptWindow, Video, WindowsOf,
};
use reprise_server::terms::Level;
use serde_json::json;
use uuid::Uuid;

use super::samples::{add, add_ready, lease, space, video};
use super::{ALL, Opened, on_both, spoken};

on_both!(
    a_video_is_transcribed_once_at_a_time_and_again_on_request,
    new_videos_are_transcribed_once_and_only_without_subtitles,
    windows_are_kept_until_the_job_succeeds,
    a_machines_track_replaces_those_of_machines_alone,
    a_corrected_line_keeps_its_place_and_makes_the_track_a_persons,
);

fn spoken_in(language: &str, is_machine: bool, lines: &[&str]) -> Subtitles {
    let provenance = if is_machine { "whisper" } else { "a.srt" }.to_owned();
    let track = Track { kind: CueKind::Speech, language: language.to_owned(), provenance, is_machine };
    let line = |(at, text): (i64, &&str)| Line {
        start_ms: 1075 + at * 1000,
        end_ms: 2075 + at * 1000,
        text: (*text).to_owned(),
    };
    Subtitles { track, lines: (0..).zip(lines).map(line).collect(), warnings: vec![] }
}

fn heard(language: &str, lines: &[&str]) -> Transcript {
    Transcript { subtitles: Some(spoken_in(language, true, lines)), note: None }
}

async fn ready(catalog: &Catalog, name: &str) -> Video {
    let tiny = space(catalog, "tiny", 4).await;
    add_ready(catalog, video(name), 3, &[&tiny]).await
}

/// Asks for a transcription, and leases its job.
async fn asked(catalog: &Catalog, of: &Video, asked: NewTranscription) -> Leased {
    let job = catalog.view(ALL).transcribe(of.id, &asked).await.unwrap().unwrap();
    let leased = lease(catalog).await;
    assert_eq!((leased.job.id, leased.job.asked_language()), (job.id, asked.language.as_deref()));
    leased
}

fn again() -> NewTranscription {
    NewTranscription { replace: true, ..NewTranscription::default() }
}

#[track_caller]
fn check_conflict<T: std::fmt::Debug>(answer: Result<T, CatalogError>, why: &str) {
    match answer {
        Err(CatalogError::Conflict(said) | CatalogError::ConflictOf { reason: said, .. }) => {
            assert!(said.contains(why), "{why}: {said}");
        }
        other => panic!("{why}: {other:?}"),
    }
}

/// The tracks of a video as (language, provenance, is a machine's).
async fn tracks(catalog: &Catalog, of: &Video) -> Vec<(String, String, bool)> {
    let rows = catalog.view(ALL).tracks(of.id).await.unwrap();
    rows.into_iter().map(|row| (row.track.language, row.track.provenance, row.track.is_machine)).collect()
}

fn shown(language: &str, provenance: &str, is_machine: bool) -> (String, String, bool) {
    (language.to_owned(), provenance.to_owned(), is_machine)
}

/// How often the words are found.
async fn found(catalog: &Catalog, words: &str) -> usize {
    let scope = spoken(Level::Clip, None);
    catalog.view(ALL).cue_hits(&CueQuery::new(words), &scope, 10).await.unwrap().len()
}

async fn a_video_is_transcribed_once_at_a_time_and_again_on_request(opened: &Opened) {
    let catalog = &*opened.catalog;
    let view = catalog.view(ALL);
    let plain = NewTranscription::default();
    assert_eq!(view.transcribe(Uuid::now_v7(), &plain).await.unwrap(), None);
    let of = ready(catalog, "a").await;
    let leased = asked(catalog, &of, plain.clone()).await;
    check_conflict(view.transcribe(of.id, &again()).await, "being transcribed");
    catalog.finish_transcription(&leased.lease, &heard("en", &["hello"])).await.unwrap();
    check_conflict(view.transcribe(of.id, &plain).await, "a transcript in `en` by whisper");
    let german = NewTranscription { language: Some("de".to_owned()), replace: true };
    let leased = asked(catalog, &of, german).await;
    let quiet = Transcript { subtitles: None, note: Some("nobody speaks".to_owned()) };
    catalog.finish_transcription(&leased.lease, &quiet).await.unwrap();
    let job = view.job(leased.job.id).await.unwrap().unwrap();
    assert_eq!((job.state, job.note.as_deref()), (JobState::Succeeded, Some("nobody speaks")));
    assert_eq!(tracks(catalog, &of).await, [shown("en", "whisper", true)], "nothing heard replaces nothing");
    let cancelled = view.transcribe(of.id, &again()).await.unwrap().unwrap();
    view.cancel_job(cancelled.id).await.unwrap().unwrap();
    let later = asked(catalog, &of, again()).await;
    check_conflict(view.retry_job(cancelled.id).await, "a later one");
    catalog.finish_transcription(&later.lease, &heard("en", &["hello again"])).await.unwrap();
    check_conflict(view.retry_job(cancelled.id).await, "a later one");
}

async fn new_videos_are_transcribed_once_and_only_without_subtitles(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (with, _) = add(catalog, video("with")).await;
    assert!(catalog.view(ALL).replace_cues(with.id, &spoken_in("en", false, &["hello"])).await.unwrap());
    assert!(!catalog.transcribe_new(with.id).await.unwrap());
    assert!(!catalog.transcribe_new(Uuid::now_v7()).await.unwrap());
    let (without, _) = add(catalog, video("without")).await;
    assert!(catalog.transcribe_new(without.id).await.unwrap());
    assert!(!catalog.transcribe_new(without.id).await.unwrap(), "a repeated ingest");
}

async fn windows_are_kept_until_the_job_succeeds(opened: &Opened) {
    let catalog = &*opened.catalog;
    let of = ready(catalog, "a").await;
    let leased = asked(catalog, &of, NewTranscription::default()).await;
    let window = |place: i64| TranscriptWindow {
        until_ms: place * 1000,
        lines: spoken_in("en", true, &["é\"'"]).lines,
        state: json!({"at": place}),
    };
    let kept = async |model: &str| catalog.transcript_windows(leased.job.id, model).await.unwrap();
    let keep = async |model: &str, place: usize, number: i64| {
        let of = WindowsOf { model, place };
        catalog.keep_transcript_window(&leased.lease, of, &window(number)).await.unwrap();
    };
    for place in 0..12 {
        keep("one", place, place as i64).await;
    }
    assert_eq!(kept("one").await, (0..12).map(window).collect::<Vec<_>>());
    keep("one", 2, 70).await;
    assert_eq!(kept("one").await, [window(0), window(1), window(70)], "what came after it is made anew");
    keep("two", 0, 1).await;
    assert_eq!((kept("one").await.len(), kept("two").await.len()), (0, 1), "another model begins anew");
    catalog.finish_transcription(&leased.lease, &heard("en", &["hello"])).await.unwrap();
    assert!(kept("two").await.is_empty());
    let of = WindowsOf { model: "two", place: 1 };
    let late = catalog.keep_transcript_window(&leased.lease, of, &window(1)).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
}

async fn a_machines_track_replaces_those_of_machines_alone(opened: &Opened) {
    let catalog = &*opened.catalog;
    let of = ready(catalog, "a").await;
    let leased = asked(catalog, &of, NewTranscription::default()).await;
    catalog.finish_transcription(&leased.lease, &heard("en", &["hello harmonica"])).await.unwrap();
    assert_eq!(found(catalog, "harmonica").await, 1);
    let person = spoken_in("fr", false, &["bonjour"]);
    assert!(catalog.view(ALL).replace_cues(of.id, &person).await.unwrap());
    let leased = asked(catalog, &of, again()).await;
    catalog.finish_transcription(&leased.lease, &heard("de", &["hallo"])).await.unwrap();
    assert_eq!(tracks(catalog, &of).await, [shown("de", "whisper", true), shown("fr", "a.srt", false)]);
    assert_eq!(found(catalog, "harmonica").await, 0);

    // A person's comes while the machine listens.
    let leased = asked(catalog, &of, again()).await;
    assert!(catalog.view(ALL).replace_cues(of.id, &spoken_in("de", false, &["von Hand"])).await.unwrap());
    catalog.finish_transcription(&leased.lease, &heard("de-CH", &["hallo"])).await.unwrap();
    let note = catalog.view(ALL).job(leased.job.id).await.unwrap().unwrap().note.unwrap();
    assert!(note.contains("a person's subtitles in `de` (a.srt) stay"), "{note}");
    assert_eq!(tracks(catalog, &of).await, [shown("de", "a.srt", false), shown("fr", "a.srt", false)]);
}

fn change(text: &str) -> LineChange {
    LineChange { text: text.to_owned(), expected: None }
}

async fn a_corrected_line_keeps_its_place_and_makes_the_track_a_persons(opened: &Opened) {
    let catalog = &*opened.catalog;
    let view = catalog.view(ALL);
    let of = ready(catalog, "a").await;
    let leased = asked(catalog, &of, NewTranscription::default()).await;
    catalog
        .finish_transcription(&leased.lease, &heard("en", &["a fur", "a her monica", "a bye"]))
        .await
        .unwrap();
    let before = view.cues(of.id, None, 10).await.unwrap();
    let wrong = &before[1];
    let text = "a harmonica\n\"é\"";
    let now = view.correct_line(of.id, wrong.id, &change(text)).await.unwrap().unwrap();
    assert_eq!(view.line(of.id, wrong.id).await.unwrap().as_ref(), Some(&now));
    assert_eq!((now.id, now.line.start_ms, now.line.end_ms), (wrong.id, 2075, 3075));
    let after = view.cues(of.id, None, 10).await.unwrap();
    let texts: Vec<&str> = after.iter().map(|cue| cue.line.text.as_str()).collect();
    assert_eq!(texts, ["a fur", text, "a bye"]);
    assert_eq!(after[1], now);
    assert_eq!(tracks(catalog, &of).await, [shown("en", "whisper, corrected", false)]);
    assert_eq!((found(catalog, "harmonica").await, found(catalog, "monica").await), (1, 0));
    let passages = view.passages(of.id, &TranscriptPart::default(), 10).await.unwrap();
    assert_eq!(passages.len(), 1, "{passages:?}");
    assert!(passages[0].line.text.contains("harmonica"), "{passages:?}");

    view.correct_line(of.id, wrong.id, &change("a tuba")).await.unwrap().unwrap();
    assert_eq!(tracks(catalog, &of).await, [shown("en", "whisper, corrected", false)], "it is said once");
    let in_english = NewTranscription { language: Some("en".to_owned()), replace: true };
    check_conflict(view.transcribe(of.id, &in_english).await, "a person's subtitles in `en`");
    let other = ready(catalog, "b").await;
    for (video, line) in [(of.id, Uuid::now_v7()), (other.id, wrong.id), (Uuid::now_v7(), wrong.id)] {
        assert_eq!(view.correct_line(video, line, &change("x")).await.unwrap(), None);
        assert_eq!(view.line(video, line).await.unwrap(), None);
    }
    let expecting = |text: &str| LineChange { expected: Some(text.to_owned()), ..change("a flute") };
    let stale = view.correct_line(of.id, wrong.id, &expecting("a harmonica")).await;
    assert!(matches!(stale, Err(CatalogError::Stale)), "{stale:?}");
    assert_eq!(view.line(of.id, wrong.id).await.unwrap().unwrap().line.text, "a tuba");
    let expected = view.correct_line(of.id, wrong.id, &expecting("a tuba")).await.unwrap();
    assert_eq!(expected.unwrap().line.text, "a flute");
}
