//! The lectures of the test data: their subtitles, phrases that occur once, and questions about them.

use std::collections::HashMap;
use std::path::Path;

use reprise_server::catalog::Line;
use reprise_server::subtitles::{self, words};
use serde_json::Value;

use crate::test_data;

/// One lecture's subtitles.
#[derive(Debug)]
pub struct Lecture {
    /// Name of the subtitle file.
    pub file: String,
    /// Contents of the subtitle file.
    pub bytes: Vec<u8>,
    /// Cues in order.
    pub lines: Vec<Line>,
}

/// All lectures, in order of their names; `None` after [`crate::skip`].
///
/// # Panics
/// If a file cannot be read.
pub fn lectures() -> Option<Vec<Lecture>> {
    let folder = test_data("text/lectures")?;
    let entries = std::fs::read_dir(folder).expect("a folder of lectures");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "srt"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).expect("a subtitle file");
        let lines = subtitles::parse(&bytes).expect("subtitles").lines;
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        Lecture { file, bytes, lines }
    };
    Some(files.iter().map(read).collect())
}

/// A phrase inside a cue.
#[derive(Debug)]
pub struct Phrase {
    /// Index of the lecture.
    pub lecture: usize,
    /// Index of the cue in the lecture.
    pub cue: usize,
    /// The words.
    pub text: String,
}

/// `count` phrases of 4 to 8 words that occur once in all `lectures`. At least two words of each are no stop words.
pub fn phrases(lectures: &[Lecture], count: usize) -> Vec<Phrase> {
    let said = lectures.iter().map(|it| it.lines.iter().map(|line| words::words(&line.text)).collect());
    let said: Vec<Vec<Vec<String>>> = said.collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for lecture in &said {
        let whole: Vec<&str> = lecture.iter().flatten().map(String::as_str).collect();
        for length in 4..=8 {
            whole.windows(length).for_each(|window| *counts.entry(window.join(" ")).or_default() += 1);
        }
    }
    // A xorshift generator: the same phrases in every run.
    let mut state = 0x5eed_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut phrases = Vec::new();
    while phrases.len() < count {
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

/// A question that paraphrases its answer.
#[derive(Debug)]
pub struct Question {
    /// The lecture's subtitle file.
    pub file: String,
    /// Start of the answering cue, in seconds.
    pub start: f64,
    /// The question.
    pub text: String,
}

/// The questions in `data/lecture_questions.jsonl`.
///
/// # Panics
/// If the file is damaged.
pub fn questions() -> Vec<Question> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/lecture_questions.jsonl");
    let text = std::fs::read_to_string(path).expect("the questions");
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let word = |name: &str| line[name].as_str().expect("a string").to_owned();
        Question {
            file: word("file"),
            start: line["start"].as_f64().expect("seconds"),
            text: word("question"),
        }
    };
    text.lines().map(read).collect()
}

/// A half of the bank of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Weights are chosen on it.
    Development,
    /// Chosen weights are judged on it. No choice may look at it.
    HeldOut,
}

/// A stretch of a lecture that answers a question.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The lecture's subtitle file.
    pub file: String,
    /// Start of its first cue, in seconds.
    pub start: f64,
    /// End of its last cue, in seconds.
    pub end: f64,
}

/// A question of a student, with every stretch that answers it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The half to which it belongs.
    pub part: Part,
    /// The question.
    pub text: String,
    /// At least one.
    pub answers: Vec<Answer>,
}

/// The questions in `data/lecture_bank.jsonl`.
///
/// # Panics
/// If the file is damaged.
pub fn bank() -> Vec<Asked> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/lecture_bank.jsonl");
    let text = std::fs::read_to_string(path).expect("the bank of questions");
    text.lines().map(|line| asked(&serde_json::from_str(line).expect("a line is JSON"))).collect()
}

fn asked(line: &Value) -> Asked {
    let part = match line["part"].as_str() {
        Some("development") => Part::Development,
        Some("held_out") => Part::HeldOut,
        other => panic!("no part of the bank: {other:?}"),
    };
    let answer = |it: &Value| Answer {
        file: it["file"].as_str().expect("a file").to_owned(),
        start: it["start"].as_f64().expect("seconds"),
        end: it["end"].as_f64().expect("seconds"),
    };
    let answers = line["answers"].as_array().expect("answers").iter().map(answer).collect();
    Asked { part, text: line["question"].as_str().expect("a question").to_owned(), answers }
}
