//! Search in the subtitles of real lectures through a running server: phrases, paraphrased questions, and long texts.
//!
//! Semantic search is measured if `REPRISE_TEXT_MODEL` names the folder of a sentence encoder.

use std::collections::HashMap;
use std::path::Path;

use reprise_index::Background;
use reprise_index::eval::auroc;
use reprise_server::subtitles::passages::passages;
use reprise_tests::lectures::{Lecture, Phrase, Question, lectures, phrases, questions};
use reprise_tests::server::Server;
use reprise_tests::slides::slides;
use serde_json::{Value, json};

use super::report::Report;

const PHRASES: usize = 100;
/// Largest distance in seconds between the hit's evidence and the cue: for a phrase; below: for a question.
const PHRASE_SECONDS: f64 = 0.5;
const QUESTION_SECONDS: f64 = 15.0;
/// Number of words of the longest query.
const MANY_WORDS: usize = 2000;
const MODEL: &str = "REPRISE_TEXT_MODEL";
/// The default model.
const DEFAULT: &str = "builtin:sports";

/// Lectures in a running server.
struct Bed {
    server: Server,
    /// The video id of each lecture.
    ids: Vec<String>,
    lectures: Vec<Lecture>,
}

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let Some(lectures) = lectures() else { return };
    let data = folder.join("lectures");
    std::fs::create_dir_all(&data).unwrap();
    let server = Server::start(&data, &["--model", DEFAULT]);
    let mut bed = Bed { server, ids: Vec::new(), lectures };
    bed.ingest(folder).await;
    bed.phrases(report).await;
    bed.whole(report).await;
    let questions = questions();
    let (clips, videos) = bed.asked(&questions).await;
    report.lectures("questions: the words of cues, no text model", clips);
    report.lectures("questions, lecture: the words of cues, no text model", videos);
    let Some(model) = std::env::var_os(MODEL) else {
        report.note("Meaning was not measured: REPRISE_TEXT_MODEL names no model.");
        return;
    };
    let spoken = format!("spoken={}", model.to_str().unwrap());
    assert!(bed.server.stop(), "the server did not stop well");
    bed.server = Server::start(&data, &["--model", DEFAULT, "--model", &spoken]);
    let reader = bed.filled().await;
    let (found, standing) = bed.meaning(&reader, &questions).await;
    report.lectures("questions: the meaning of passages alone", found);
    report.note(&standing.sentence());
    let (clips, videos) = bed.asked(&questions).await;
    report.lectures("questions: **both, fused**", clips);
    report.lectures("questions, lecture: **both, fused**", videos);
}

/// Number of queries, and number of queries with the answer first or among the first five.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) queries: usize,
    pub(crate) first: usize,
    pub(crate) in_five: usize,
}

impl Found {
    fn add(&mut self, rank: Option<usize>) {
        self.queries += 1;
        self.first += usize::from(rank == Some(0));
        self.in_five += usize::from(rank.is_some_and(|rank| rank < 5));
    }
}

/// The best passage's z of each question.
#[derive(Default)]
struct Standing {
    present: Vec<f32>,
    /// After the passages that answer it were removed.
    without_answers: Vec<f32>,
    /// After the whole lecture was removed.
    without_lecture: Vec<f32>,
}

impl Standing {
    fn sentence(&self) -> String {
        let auroc = |absent: &[f32]| auroc(&self.present, absent).unwrap();
        format!(
            "AUROC of the best passage's z: {:.3} against the same {} questions without the passages that answer them, {:.3} \
             without the lecture.",
            auroc(&self.without_answers),
            self.present.len(),
            auroc(&self.without_lecture)
        )
    }
}

/// As the service takes it: from an even sample. `None` for too few passages.
fn best_z(scores: Vec<f32>) -> Option<f32> {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (all, most) = (scores.len(), scores.len().min(Background::SAMPLE));
    let sample = (0..most).map(|place| scores[place * all / most]).collect();
    Some(Background::of(sample, all as u64)?.z(best))
}

impl Bed {
    /// Adds each lecture as slides of its length, with its subtitles.
    async fn ingest(&mut self, folder: &Path) {
        for (number, lecture) in self.lectures.iter().enumerate() {
            let file = folder.join(format!("lecture{number}.mp4"));
            let end_ms = lecture.lines.iter().map(|line| line.end_ms).max().unwrap();
            slides(&file, (end_ms / 1000 + 1) as usize, number as u64);
            let video = self.server.ingest_with(&file, &[("title", json!(lecture.file))]).await;
            let id = video["id"].as_str().unwrap().to_owned();
            let path = format!("/v1/videos/{id}/subtitles/en");
            let put = self.server.request("PUT", &path).header("content-type", "application/x-subrip");
            let (status, answer) = self.server.send(put.body(lecture.bytes.clone())).await;
            assert!(status.is_success(), "{}: {answer}", lecture.file);
            self.ids.push(id);
            std::fs::remove_file(file).unwrap();
        }
    }

    async fn phrases(&self, report: &mut Report) {
        let phrases = phrases(&self.lectures, PHRASES);
        for (what, sources) in [
            ("phrases of 4 to 8 words, `sources: [\"spoken\"]`", Some(json!(["spoken"]))),
            ("phrases of 4 to 8 words, by default", None),
        ] {
            let mut found = Found::default();
            for phrase in &phrases {
                let mut body = json!({"query": {"text": phrase.text}, "limit": 5});
                if let Some(sources) = &sources {
                    body["sources"] = sources.clone();
                }
                let hits = self.server.search_hits(body).await;
                found.add(hits.iter().position(|hit| self.says(hit, phrase)));
            }
            report.lectures(what, found);
        }
    }

    /// Whether the spoken evidence of `hit` begins at the cue of `phrase`.
    fn says(&self, hit: &Value, phrase: &Phrase) -> bool {
        let start = self.lectures[phrase.lecture].lines[phrase.cue].start_ms as f64 / 1000.0;
        hit["video_id"] == self.ids[phrase.lecture].as_str()
            && said(hit).is_some_and(|it| (it - start).abs() <= PHRASE_SECONDS)
    }

    /// Searches with every fourth cue of a lecture as one text. No text may be truncated, whatever its length.
    async fn whole(&self, report: &mut Report) {
        let mut found = Found::default();
        for (lecture, id) in self.lectures.iter().zip(&self.ids) {
            let some: Vec<&str> = lecture.lines.iter().step_by(4).map(|line| line.text.as_str()).collect();
            let answer = self.of_videos(&some.join(" ")).await;
            assert_eq!(answer["query_info"]["truncated"], false, "{}", lecture.file);
            found.add(place(&answer, id));
        }
        report.lectures("lecture from every fourth of its cues", found);
        let all =
            self.lectures.iter().flat_map(|it| it.lines.iter().flat_map(|line| line.text.split_whitespace()));
        let many: Vec<&str> = all.take(MANY_WORDS).collect();
        let body = json!({"query": {"text": many.join(" ")}, "level": "video", "limit": 5});
        let answer = self.server.search(&body).await;
        let info = &answer["query_info"];
        assert_eq!(info["truncated"], false, "{info}");
        report.note(&format!(
            "A query of {MANY_WORDS} words: {} windows, {} of {} tokens, not truncated.",
            info["windows"], info["tokens_used"], info["tokens_total"]
        ));
    }

    async fn of_videos(&self, text: &str) -> Value {
        let body = json!({"query": {"text": text}, "level": "video", "sources": ["spoken"], "limit": 5});
        self.server.search(&body).await
    }

    /// Asks the questions in a subtitle search. Finds clips with the cue or with evidence near it, and lectures.
    async fn asked(&self, questions: &[Question]) -> (Found, Found) {
        let (mut clips, mut videos) = (Found::default(), Found::default());
        for question in questions {
            let id = self.id_of(question);
            let body = json!({"query": {"text": question.text}, "sources": ["spoken"], "limit": 5});
            let hits = self.server.search_hits(body).await;
            clips.add(hits.iter().position(|hit| hit["video_id"] == *id && answers(hit, question)));
            videos.add(place(&self.of_videos(&question.text).await, id));
        }
        (clips, videos)
    }

    fn id_of(&self, question: &Question) -> &str {
        &self.ids[self.lectures.iter().position(|it| it.file == question.file).unwrap()]
    }

    /// Waits until all passages are encoded; returns the name of the text space.
    async fn filled(&self) -> String {
        loop {
            let (_, spaces) = self.server.get("/v1/spaces").await;
            let spaces = spaces["items"].as_array().unwrap().clone();
            let reader = spaces.iter().find(|it| it["active_for"] == json!(["spoken"])).unwrap();
            if reader["coverage"] == 1.0 {
                return reader["name"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    /// Ranks all passages for each question by cosine, and says how far the best stands above the others.
    async fn meaning(&self, space: &str, questions: &[Question]) -> (Found, Standing) {
        let mut all = Vec::new();
        for (number, lecture) in self.lectures.iter().enumerate() {
            for passage in passages(&lecture.lines) {
                let lines = &lecture.lines[passage];
                let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
                let (first, last) = (lines.first().unwrap(), lines.last().unwrap());
                let hit = json!({"start": seconds(first.start_ms), "end": seconds(last.end_ms)});
                all.push((number, hit, self.vector(space, &text.join("\n")).await));
            }
        }
        let number: HashMap<&str, usize> =
            self.lectures.iter().enumerate().map(|(at, it)| (it.file.as_str(), at)).collect();
        let (mut found, mut standing) = (Found::default(), Standing::default());
        for question in questions {
            let asked = self.vector(space, &question.text).await;
            let cosine = |other: &[f64]| asked.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
            let scores: Vec<f64> = all.iter().map(|it| cosine(&it.2)).collect();
            let mut ranked: Vec<usize> = (0..all.len()).collect();
            ranked.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
            let is_of_lecture = |at: usize| all[at].0 == number[&question.file[..]];
            let is_right = |at: usize| is_of_lecture(at) && answers(&all[at].1, question);
            found.add(ranked.iter().take(5).position(|at| is_right(*at)));
            let z = |is_there: &dyn Fn(usize) -> bool| {
                best_z((0..all.len()).filter(|at| is_there(*at)).map(|at| scores[at] as f32).collect())
            };
            standing.present.extend(z(&|_| true));
            standing.without_answers.extend(z(&|at| !is_right(at)));
            standing.without_lecture.extend(z(&|at| !is_of_lecture(at)));
        }
        (found, standing)
    }

    async fn vector(&self, space: &str, text: &str) -> Vec<f64> {
        let body = json!({"input": {"text": text}, "space": space});
        let (status, answer) = self.server.post("/v1/embeddings", &body).await;
        assert!(status.is_success(), "{answer}");
        answer["vector"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect()
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// Start of a hit's spoken evidence, in seconds.
fn said(hit: &Value) -> Option<f64> {
    hit["evidence"].as_array()?.iter().find(|it| it["source"] == "spoken")?["start"].as_f64()
}

/// Whether a hit contains the cue, or its spoken evidence begins near it.
fn answers(hit: &Value, question: &Question) -> bool {
    let near = said(hit).or(hit["start"].as_f64());
    let holds =
        hit["start"].as_f64().unwrap() <= question.start && question.start < hit["end"].as_f64().unwrap();
    holds || near.is_some_and(|it| (it - question.start).abs() <= QUESTION_SECONDS)
}

/// The rank of the video in an answer, from 0.
fn place(answer: &Value, video: &str) -> Option<usize> {
    answer["results"].as_array().unwrap().iter().position(|hit| hit["video_id"] == video)
}
