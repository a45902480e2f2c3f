//! Checks that the questions about real lectures name existing cues.

use std::collections::BTreeSet;

use reprise_tests::lectures::{Answer, Part, Question, bank, questions};
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

/// Longest stretch that may answer a question of the bank, in seconds.
const LONGEST_ANSWER: f64 = 70.0;

#[track_caller]
fn check_answer(answer: &Answer, text: &str) {
    let Answer { file, start, end } = answer;
    assert!(starts(text).contains(&((start * 1000.0).round() as u64)), "{file} has no cue at {start}");
    assert!(*start < *end && *end - *start < LONGEST_ANSWER, "{file}: {start} to {end}");
}

#[test]
fn the_bank_has_a_hundred_questions_a_half_about_different_lectures() {
    let bank = bank();
    let of = |part: Part| bank.iter().filter(move |it| it.part == part);
    assert!(of(Part::Development).count() >= 100 && of(Part::HeldOut).count() >= 100);
    let asked: BTreeSet<&str> = bank.iter().map(|it| &it.text[..]).collect();
    let first = |part| of(part).map(|it| &it.answers[0].file[..]).collect::<BTreeSet<&str>>();
    let (development, held_out) = (first(Part::Development), first(Part::HeldOut));
    let lectures: BTreeSet<&str> = bank.iter().flat_map(|it| &it.answers).map(|it| &it.file[..]).collect();
    assert_eq!((asked.len(), lectures.len()), (bank.len(), 76));
    assert!(development.is_disjoint(&held_out));
    assert!(questions().iter().all(|it| !asked.contains(&it.text[..])));
    let Some(folder) = test_data("text/lectures") else { return };
    for answer in bank.iter().flat_map(|it| &it.answers) {
        check_answer(answer, &std::fs::read_to_string(folder.join(&answer.file)).unwrap());
    }
}
