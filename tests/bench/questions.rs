//! The weights of what is shown, said and written, chosen on one half of a question bank and judged on the other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use reprise_server::catalog::Line;
use reprise_server::subtitles::{passages::passages, words};
use reprise_tests::lectures::{Asked, Lecture, Part, bank, lectures};
use reprise_tests::server::Server;
use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::{Value, json};

use super::report::Report;

const MODEL: &str = "REPRISE_TEXT_MODEL";
/// A model without training: what it shows for a question is chance.
const DEFAULT: &str = "builtin:tiny";
const LIMIT: usize = 10;
/// Words of a slide, and of one of its lines.
const WORDS: usize = 12;
const WORDS_OF_LINE: usize = 3;
/// Weights that are compared. What is said has the weight 1.
const SHOWN: [f64; 3] = [0.0, 0.25, 1.0];
const WRITTEN: [f64; 7] = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0];
const SOURCES: [&str; 3] = ["visual", "spoken", "screen"];

/// Weights of what is shown, said and written.
type Weights = [f64; 3];

/// Ranks of right answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Score {
    pub(crate) questions: usize,
    pub(crate) first: usize,
    pub(crate) in_five: usize,
    /// Sum of the reciprocal ranks among the first ten.
    reciprocals: f64,
}

impl Score {
    fn add(&mut self, rank: Option<usize>) {
        self.questions += 1;
        self.first += usize::from(rank == Some(0));
        self.in_five += usize::from(rank.is_some_and(|it| it < 5));
        self.reciprocals += rank.map_or(0.0, |it| 1.0 / (it + 1) as f64);
    }

    /// Mean reciprocal rank.
    pub(crate) fn mean(&self) -> f64 {
        self.reciprocals / self.questions as f64
    }
}

struct Bed {
    server: Server,
    /// The video id of each lecture's subtitle file.
    ids: HashMap<String, String>,
    questions: Vec<Asked>,
}

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let Some(lectures) = lectures() else { return };
    assert!(can_read(), "needs tesseract with English, and an ffmpeg that draws text");
    let data = folder.join("questions");
    std::fs::create_dir_all(&data).unwrap();
    let server = Server::start(&data, &["--model", DEFAULT]);
    let mut bed = Bed { server, ids: HashMap::new(), questions: bank() };
    let slides = slides(&lectures);
    for (lecture, slides) in lectures.iter().zip(&slides) {
        bed.add(folder, lecture, slides).await;
    }
    bed.judge("words alone", report).await;
    let Some(model) = std::env::var_os(MODEL) else {
        report.question_note("Meaning was not measured: REPRISE_TEXT_MODEL names no model.");
        return;
    };
    let spoken = format!("spoken={}", model.to_str().unwrap());
    assert!(bed.server.stop(), "the server did not stop well");
    bed.server = Server::start(&data, &["--model", DEFAULT, "--model", &spoken]);
    bed.filled().await;
    bed.judge("words and meaning", report).await;
}

/// A slide's lines, and how long it is shown.
struct Written {
    lines: Vec<String>,
    seconds: u32,
}

/// A slide for each passage: its most telling words, in the order in which they are said.
fn slides(lectures: &[Lecture]) -> Vec<Vec<Written>> {
    let said: Vec<Vec<Vec<String>>> = lectures.iter().map(|it| words_of_passages(&it.lines)).collect();
    let mut passages_with: HashMap<&str, usize> = HashMap::new();
    for passage in said.iter().flatten() {
        let mut distinct: Vec<&str> = passage.iter().map(String::as_str).collect();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.into_iter().for_each(|word| *passages_with.entry(word).or_default() += 1);
    }
    let of_lecture = |(lecture, said): (&Lecture, &Vec<Vec<String>>)| {
        let seconds = seconds_of_passages(&lecture.lines);
        let written = said.iter().map(|words| telling(words, &passages_with)).zip(seconds);
        written.map(|(lines, seconds)| Written { lines, seconds }).collect()
    };
    lectures.iter().zip(&said).map(of_lecture).collect()
}

fn words_of_passages(lines: &[Line]) -> Vec<Vec<String>> {
    let words_of = |passage: std::ops::Range<usize>| {
        lines[passage].iter().flat_map(|line| words::words(&line.text)).collect()
    };
    passages(lines).into_iter().map(words_of).collect()
}

/// Whole seconds from each passage to the next. The first begins with the film, the last ends with it.
fn seconds_of_passages(lines: &[Line]) -> Vec<u32> {
    let mut bounds: Vec<i64> =
        passages(lines).iter().skip(1).map(|it| lines[it.start].start_ms / 1000).collect();
    bounds.push(lines.iter().map(|line| line.end_ms).max().unwrap() / 1000 + 1);
    let mut from = 0;
    let mut lasts = |to: i64| {
        let seconds = u32::try_from(to - from).unwrap().max(1);
        from += i64::from(seconds);
        seconds
    };
    bounds.into_iter().map(&mut lasts).collect()
}

/// The words of a passage that are frequent in it and rare elsewhere, in lines.
fn telling(said: &[String], passages_with: &HashMap<&str, usize>) -> Vec<String> {
    let mut distinct: Vec<&str> = Vec::new();
    for word in said {
        if word.len() > 2 && !words::is_stop_word(word) && !distinct.contains(&word.as_str()) {
            distinct.push(word);
        }
    }
    let weight = |word: &str| {
        let count = said.iter().filter(|it| *it == word).count() as f64;
        count / (1.0 + passages_with[word] as f64).ln()
    };
    let mut best = distinct.clone();
    best.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    best.truncate(WORDS);
    distinct.retain(|word| best.contains(word));
    distinct.chunks(WORDS_OF_LINE).map(|words| words.join(" ")).collect()
}

impl Bed {
    /// Adds a lecture as a film of its slides with its subtitles, and reads the slides.
    async fn add(&mut self, folder: &Path, lecture: &Lecture, slides: &[Written]) {
        let file = film(folder, slides);
        let video = self.server.ingest_with(&file, &[("title", json!(lecture.file))]).await;
        std::fs::remove_file(file).unwrap();
        let id = video["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/videos/{id}/subtitles/en");
        let put = self.server.request("PUT", &path).header("content-type", "application/x-subrip");
        let (status, answer) = self.server.send(put.body(lecture.bytes.clone())).await;
        assert!(status.is_success(), "{}: {answer}", lecture.file);
        let (_, asked) = self.server.post(&format!("/v1/videos/{id}/read-text"), &json!({})).await;
        let job = self.server.job_end(asked["job"]["id"].as_str().unwrap()).await;
        assert_eq!(job["state"], "succeeded", "{job}");
        self.ids.insert(lecture.file.clone(), id);
    }

    /// Waits until all passages are encoded.
    async fn filled(&self) {
        loop {
            let (_, spaces) = self.server.get("/v1/spaces").await;
            let mut spaces = spaces["items"].as_array().unwrap().iter();
            let reader = spaces.find(|it| it["active_for"] == json!(["spoken"])).unwrap();
            if reader["coverage"] == 1.0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    /// Chooses weights on the development part, then compares them with others on both parts.
    async fn judge(&self, how: &str, report: &mut Report) {
        let mut best = ([0.0, 1.0, 1.0], Score::default());
        for shown in SHOWN {
            for written in WRITTEN {
                let weights = [shown, 1.0, written];
                let score = self.score(Part::Development, weights).await;
                report.question_grid(how, weights, score);
                if best.1.questions == 0 || score.mean() > best.1.mean() {
                    best = (weights, score);
                }
            }
        }
        let compared = [
            ("what is said alone", [0.0, 1.0, 0.0]),
            ("what is written alone", [0.0, 0.0, 1.0]),
            ("said and written, equal weights", [0.0, 1.0, 1.0]),
            ("all three, equal weights", [1.0, 1.0, 1.0]),
            ("**chosen**", best.0),
        ];
        for (what, weights) in compared {
            let development = self.score(Part::Development, weights).await;
            let held_out = self.score(Part::HeldOut, weights).await;
            report.questions(&format!("{how}: {what}"), weights, [development, held_out]);
        }
    }

    async fn score(&self, part: Part, weights: Weights) -> Score {
        let mut score = Score::default();
        for question in self.questions.iter().filter(|it| it.part == part) {
            let counts: Vec<(&str, f64)> =
                SOURCES.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0).collect();
            let sources: Vec<&str> = counts.iter().map(|(source, _)| *source).collect();
            let weights: serde_json::Map<String, Value> =
                counts.iter().map(|(source, weight)| ((*source).to_owned(), json!(weight))).collect();
            let body = json!({
                "query": {"text": question.text}, "sources": sources, "fusion": {"weights": weights}, "limit": LIMIT,
            });
            let hits = self.server.search_hits(body).await;
            score.add(hits.iter().position(|hit| self.is_right(hit, question)));
        }
        score
    }

    /// Whether what a hit quotes is in an answer; of a hit that quotes nothing, whether it is there itself.
    fn is_right(&self, hit: &Value, question: &Asked) -> bool {
        let evidence = hit["evidence"].as_array().into_iter().flatten();
        let quoted: Vec<&Value> =
            evidence.filter(|it| it["source"] != "visual" && it["start"].is_number()).collect();
        let shown = if quoted.is_empty() { vec![hit] } else { quoted };
        question.answers.iter().any(|answer| {
            hit["video_id"] == self.ids[&answer.file].as_str()
                && shown.iter().any(|it| {
                    it["start"].as_f64().unwrap() < answer.end && answer.start < it["end"].as_f64().unwrap()
                })
        })
    }
}

fn film(folder: &Path, slides: &[Written]) -> PathBuf {
    let lines: Vec<Vec<&str>> =
        slides.iter().map(|it| it.lines.iter().map(String::as_str).collect()).collect();
    let slides: Vec<Slide<'_>> =
        slides.iter().zip(&lines).map(|(it, lines)| Slide { lines, seconds: it.seconds }).collect();
    written(folder, "lecture", &Look { size: (640, 360), rate: 4, ..Look::default() }, &slides)
}
