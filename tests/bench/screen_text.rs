//! Text on screen: how much of rendered slides is read, and what reading costs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use reprise_server::subtitles::words::words;
use reprise_tests::lectures::lectures;
use reprise_tests::server::{Server, binary};
use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::{Value, json};

use super::cpu::{Cost, Meter};
use super::report::Report;

/// Slides of a film whose reading is judged, and the seconds of each.
const SLIDES: usize = 20;
const SECONDS: u32 = 4;
/// A lecture of 100 slides an hour, for a part of an hour.
const LECTURE: usize = 17;
const LECTURE_SECONDS: u32 = 36;
/// Length of the film with a score board, and the seconds within which its changes should be found.
const BOARD_SECONDS: u32 = 180;
const SOON: f64 = 1.0;
/// Slides that are searched.
const SEARCHED: usize = 100;
/// Letters of a line.
const LINE: usize = 42;
const LINES: usize = 6;
/// A small picture that changes and moves about in the lower right corner, as a speaker does; for each size. Its first ten
/// seconds are repeated: minutes deep in the set a picture takes half a second.
const SPEAKERS: [&str; 2] = [
    "null[a];mandelbrot=s=240x180:r=25,loop=-1:250[b];[a][b]overlay=x='W-w-60-30*sin(t)':y=H-h-20:shortest=1",
    "null[a];mandelbrot=s=120x90:r=25,loop=-1:250[b];[a][b]overlay=x='W-w-30-15*sin(t)':y=H-h-10:shortest=1",
];

/// The lines of a slide.
type Page = Vec<String>;

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    assert!(can_read(), "needs tesseract with English, and an ffmpeg that draws text");
    let pages = pages(SEARCHED);
    for font in ["Sans", "Serif", "Mono"] {
        for (ground, ink) in [("white", "black"), ("0x202030", "white")] {
            for (size, speaker) in [(1280, 720), (640, 360)].into_iter().zip(SPEAKERS) {
                let look = Look { size, font, ground, ink, then: speaker, ..Look::default() };
                judge(folder, &look, &pages[..SLIDES], report);
            }
        }
    }
    cost(folder, &pages[..LECTURE], report);
    board(folder, report);
    search(folder, &pages, report).await;
}

/// Pages of words of the lectures. A lecture that is too short to fill one gives none.
fn pages(count: usize) -> Vec<Page> {
    let lectures = lectures().expect("the lectures are there");
    let page = |number: usize| {
        let lecture = &lectures[number % lectures.len()];
        let cues = lecture.lines.iter().skip(40 + 30 * (number / lectures.len()));
        let text: String = cues.take(12).map(|line| line.text.replace('\n', " ") + " ").collect();
        let plain: String = text.chars().filter(|c| c.is_ascii() && !c.is_ascii_control()).collect();
        wrapped(&plain)
    };
    let full = (0..10 * lectures.len()).map(page).filter(|page| page.len() == LINES);
    let pages: Vec<Page> = full.take(count).collect();
    assert_eq!(pages.len(), count, "the lectures have too few words");
    pages
}

fn wrapped(text: &str) -> Page {
    let mut lines: Page = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < LINE => {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.truncate(LINES);
    lines
}

fn film(folder: &Path, look: &Look, pages: &[Page], seconds: u32) -> PathBuf {
    let lines: Vec<Vec<&str>> = pages.iter().map(|page| page.iter().map(String::as_str).collect()).collect();
    let slides: Vec<Slide<'_>> = lines.iter().map(|lines| Slide { lines, seconds }).collect();
    written(folder, "slides", look, &slides)
}

fn read(file: &Path) -> Value {
    let output = Command::new(binary()).args(["read-text", "--json"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn judge(folder: &Path, look: &Look, pages: &[Page], report: &mut Report) {
    let file = film(folder, look, pages, SECONDS);
    let kbit =
        std::fs::metadata(&file).unwrap().len() as f64 / 125.0 / f64::from(SECONDS) / pages.len() as f64;
    let found = read(&file);
    let (mut wrong, mut characters, mut known, mut all) = (0, 0, 0, 0);
    for (number, page) in pages.iter().enumerate() {
        let middle = (number as f64 + 0.5) * f64::from(SECONDS);
        let text = shown(&found, middle);
        let truth = page.join(" ");
        wrong += distance(&truth, &text);
        characters += truth.chars().count();
        let mut there: HashMap<String, usize> = HashMap::new();
        words(&text).into_iter().for_each(|word| *there.entry(word).or_default() += 1);
        for word in words(&truth) {
            all += 1;
            if let Some(left) = there.get_mut(&word).filter(|left| **left > 0) {
                *left -= 1;
                known += 1;
            }
        }
    }
    let ground = if look.ground == "white" { "light" } else { "dark" };
    let (width, height) = look.size;
    let (errors, share) =
        (100.0 * wrong as f64 / characters as f64, 100.0 * f64::from(known) / f64::from(all));
    report.screen_text(&format!(
        "| {width}x{height}, {} kbit/s | {} | {ground} | {errors:.2} | {share:.2} | {} |",
        kbit.round(),
        look.font,
        found["regions"]
    ));
}

/// The lines on screen at a time, in order.
fn shown(found: &Value, seconds: f64) -> String {
    let is_there =
        |line: &&Value| line["start"].as_f64().unwrap() <= seconds && seconds < line["end"].as_f64().unwrap();
    let lines = found["lines"].as_array().unwrap().iter().filter(is_there);
    lines.map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// The edit distance of two texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (number, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = number + 1;
        for (column, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

/// The cost of reading a lecture, beside that of decoding it.
fn cost(folder: &Path, pages: &[Page], report: &mut Report) {
    for (size, then) in [((1280, 720), SPEAKERS[0]), ((1280, 720), "")] {
        let look = Look { size, then, ..Look::default() };
        let file = film(folder, &look, pages, LECTURE_SECONDS);
        let hours = pages.len() as f64 * f64::from(LECTURE_SECONDS) / 3600.0;
        let meter = Meter::own();
        let mut decode = reprise_tests::film::ffmpeg();
        reprise_tests::film::run(decode.arg("-i").arg(&file).args(["-f", "null", "-"]));
        let floor = meter.read().per(hours);
        let meter = Meter::own();
        let found = read(&file);
        let cost = meter.read().per(hours);
        let what = if then.is_empty() { "slides alone" } else { "slides and a speaker who moves" };
        report.reading(&format!(
            "| {what} | {:.0} | {:.1} | {:.0} | {:.0} | {} | {} |",
            cost.cpu,
            share(cost),
            cost.wall,
            floor.cpu,
            found["regions"],
            found["runs"]
        ));
    }
}

/// The share of an hour's time on two cores that an hour of video takes, in per cent.
fn share(cost: Cost) -> f64 {
    100.0 * cost.cpu / (2.0 * 3600.0)
}

/// A score board over athletes: the changes that are found within [`SOON`], and what an hour of it costs.
fn board(folder: &Path, report: &mut Report) {
    let file = folder.join("board.mp4");
    let seconds = BOARD_SECONDS.to_string();
    let made = Command::new(binary()).args(["synth", "board", "--seconds", &seconds]).arg(&file).status();
    assert!(made.unwrap().success());
    let meter = Meter::own();
    let found = read(&file);
    let cost = meter.read().per(f64::from(BOARD_SECONDS) / 3600.0);
    let truth = std::fs::read_to_string(folder.join("board.mp4.jsonl")).unwrap();
    let truth: Vec<Value> = truth.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let soon = truth.iter().filter(|change| is_read(&found, change)).count();
    report.board(&format!(
        "| {} | {soon} | {:.0} | {:.1} | {:.0} | {} | {} |",
        truth.len(),
        cost.cpu,
        share(cost),
        cost.wall,
        found["regions"],
        found["runs"]
    ));
}

/// Whether a line with the name and the number begins within [`SOON`] of the change.
fn is_read(found: &Value, change: &Value) -> bool {
    let start = |it: &Value| it["start"].as_f64().unwrap();
    let expected = words(change["text"].as_str().unwrap());
    found["lines"].as_array().unwrap().iter().any(|line| {
        let read = words(line["text"].as_str().unwrap());
        (start(line) - start(change)).abs() <= SOON && expected.iter().all(|word| read.contains(word))
    })
}

/// Queries of 4 to 8 words of a slide, asked of what was read: whether the best clip is the slide's.
async fn search(folder: &Path, pages: &[Page], report: &mut Report) {
    let file = film(folder, &Look { then: SPEAKERS[0], ..Look::default() }, pages, SECONDS);
    let data = folder.join("screen-text");
    std::fs::create_dir_all(&data).unwrap();
    let server = Server::start(&data, &[]);
    let video = server.ingest(&file).await["id"].as_str().unwrap().to_owned();
    let (_, asked) = server.post(&format!("/v1/videos/{video}/read-text"), &json!({})).await;
    let job = server.job_end(asked["job"]["id"].as_str().unwrap()).await;
    assert_eq!(job["state"], "succeeded", "{job}");
    let queries: Vec<(usize, String)> =
        (0..pages.len()).filter_map(|number| Some((number, own_words(pages, number)?))).collect();
    let mut right = 0;
    for (number, text) in &queries {
        let body = json!({"query": {"text": text}, "sources": ["screen"], "limit": 1});
        let hits = server.search_hits(body).await;
        let at = hits.first().and_then(|hit| hit["evidence"][0]["start"].as_f64());
        let slide = *number as f64 * f64::from(SECONDS);
        right += usize::from(at.is_some_and(|at| (at - slide).abs() < 1.0));
    }
    let note = format!(
        "Of {} queries of 4 to 8 words of a slide, in {} slides at 1280x720, {right} have the slide's clip first.",
        queries.len(),
        pages.len()
    );
    report.screen_note(&note);
}

/// A query: four to eight words that only this slide has. Some lectures are held twice, so two slides may have the same words;
/// `None` if another slide has all of these.
fn own_words(pages: &[Page], number: usize) -> Option<String> {
    let all: Vec<&str> = pages[number].iter().flat_map(|line| line.split(' ')).collect();
    let length = (4 + number % 5).min(all.len());
    let count = all.len() - length + 1;
    let lacks = |page: &Page, text: &str| !page.join(" ").contains(text);
    let is_own = |text: &String| pages.iter().enumerate().all(|(at, page)| at == number || lacks(page, text));
    (0..count).map(|at| all[(at + number * 7) % count..][..length].join(" ")).find(is_own)
}
