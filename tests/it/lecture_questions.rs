//! Checks that the questions about real lectures name existing cues.

use std::collections::BTreeSet;

use reprise_tests::lectures::{Question, questions};
use reprise_tests::test_data;

/// Start times of the cues of a SubRip file, in milliseconds.
fn starts(text: &str) -> BTreeSet<u64> {
    let start = |line: &str| {
        let (start, _) = line.split_once(" --> ")?;
        let numbers: Vec<u64> = start.split([':', ',']).map(|part| part.trim().parse().unwrap()).collect();
        Some(((numbers[0] * 60 + numbers[1]) * 60 + numbers[2]) * 1000 + numbers[3])
    };
    text.lines().filter_map(start).collect()
}

#[track_caller]
fn check(question: &Question, starts: &BTreeSet<u64>) {
    let Question { file, start, text } = question;
    let start_ms = (start * 1000.0).round() as u64;
    assert!(starts.contains(&start_ms), "{file} has no cue at {start}");
    assert!(text.ends_with('?') && text.split_whitespace().count() > 4, "{text}");
}

#[test]
fn every_question_names_a_cue_and_none_is_asked_twice() {
    let questions = questions();
    let distinct: BTreeSet<&str> = questions.iter().map(|it| &it.text[..]).collect();
    let files: BTreeSet<&str> = questions.iter().map(|it| &it.file[..]).collect();
    assert_eq!((questions.len(), distinct.len()), (100, 100));
    assert!(files.len() >= 60, "{}", files.len());
    let Some(folder) = test_data("text/lectures") else { return };
    for question in &questions {
        check(question, &starts(&std::fs::read_to_string(folder.join(&question.file)).unwrap()));
    }
}
