//! What is said in 76 real lectures, found in both databases: phrases, long texts, and words in any order.

use std::collections::HashMap;

use reprise::catalog::{Catalog, CueKind, CueQuery, Ingested, IngestedSpan, Line, Subtitles, Track};
use reprise::subtitles::{self, words};
use reprise_index::Level;
use reprise_tests::test_data;
use uuid::Uuid;

use crate::catalog::samples::{add, facts, lease, video};
use crate::catalog::{Opened, on_both};

/// Length of a clip of the stored lectures.
const CLIP_MS: i64 = 20_000;
const PHRASES: usize = 100;

on_both!(what_is_said_in_lectures_is_found_where_it_is_said);

struct Lecture {
    id: Uuid,
    lines: Vec<Line>,
}

/// A ready video of the lecture's length, cut every 20 s; the container's clock is 1,075 ms ahead.
async fn store(catalog: &dyn Catalog, number: usize, lines: Vec<Line>) -> Lecture {
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
    let track = Track { kind: CueKind::Speech, language: "en".to_owned(), provenance: "a.srt".to_owned() };
    let subtitles = Subtitles { track, lines: lines.clone(), warnings: vec![] };
    assert!(catalog.replace_cues(stored.id, &subtitles).await.unwrap());
    Lecture { id: stored.id, lines }
}

fn read() -> Option<Vec<Vec<Line>>> {
    let mut files: Vec<_> =
        std::fs::read_dir(test_data("text/lectures")?).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "srt"));
    files.sort();
    Some(files.iter().map(|path| subtitles::parse(&std::fs::read(path).unwrap()).unwrap().lines).collect())
}

/// A phrase inside a cue: its lecture, its cue, its words.
struct Phrase {
    lecture: usize,
    cue: usize,
    text: String,
}

/// Phrases of 4 to 8 words, two of them no stop words, that are said once in all lectures.
fn phrases(lectures: &[Lecture]) -> Vec<Phrase> {
    let said = lectures.iter().map(|it| it.lines.iter().map(|line| words::words(&line.text)).collect());
    let said: Vec<Vec<Vec<String>>> = said.collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for lecture in &said {
        let whole: Vec<&str> = lecture.iter().flatten().map(String::as_str).collect();
        for length in 4..=8 {
            whole.windows(length).for_each(|window| *counts.entry(window.join(" ")).or_default() += 1);
        }
    }
    // xorshift: the same phrases on every run.
    let mut state = 0x5eed_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut phrases = Vec::new();
    while phrases.len() < PHRASES {
        let (lecture, length) = (next(said.len()), 4 + next(5));
        let cue = next(said[lecture].len());
        let words = &said[lecture][cue];
        if words.len() < length {
            continue;
        }
        let from = next(words.len() - length + 1);
        let phrase = &words[from..from + length];
        let telling = phrase.iter().filter(|word| !words::is_stop_word(word)).count();
        let text = phrase.join(" ");
        if telling >= 2 && counts[&text] == 1 {
            phrases.push(Phrase { lecture, cue, text });
        }
    }
    phrases
}

async fn what_is_said_in_lectures_is_found_where_it_is_said(opened: &Opened) {
    let Some(read) = read() else { return };
    let catalog = &*opened.catalog;
    let mut lectures = Vec::new();
    for (number, lines) in read.into_iter().enumerate() {
        lectures.push(store(catalog, number, lines).await);
    }
    for phrase in phrases(&lectures) {
        let lecture = &lectures[phrase.lecture];
        let line = &lecture.lines[phrase.cue];
        let hits = catalog.cue_hits(&CueQuery::new(&phrase.text), Level::Clip, None, 3).await.unwrap();
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
    for lecture in lectures.iter().step_by(10) {
        long_texts_find_their_lecture(catalog, lecture).await;
    }
}

/// Every third sentence of a lecture, up to 2,000 words of them, in another order.
async fn long_texts_find_their_lecture(catalog: &dyn Catalog, lecture: &Lecture) {
    let mut some: Vec<&str> = lecture.lines.iter().rev().step_by(3).map(|line| line.text.as_str()).collect();
    while some.iter().map(|text| text.split_whitespace().count()).sum::<usize>() < 2000 {
        some.extend_from_within(..);
    }
    let hits = catalog.cue_hits(&CueQuery::new(&some.join(" ")), Level::Video, None, 5).await.unwrap();
    assert!(hits.iter().take(3).any(|hit| hit.video == lecture.id), "{hits:?}");
}
