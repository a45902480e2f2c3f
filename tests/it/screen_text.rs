//! Text on screen, read from rendered films by `reprise read-text` and the real Tesseract, in the sandbox.

mod broken;

use std::path::Path;
use std::process::{Command, Output};

use reprise_tests::film::{Store, film};
use reprise_tests::server::binary;
use reprise_tests::skip;
use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::Value;
use tempfile::tempdir;

/// How far the times may be off: text is seen at the next picture that is compared, and one more shows that it rests.
const SECONDS: f64 = 1.0;
/// How far a box may be off, as a fraction of the picture.
const PLACE: f64 = 0.02;

pub(crate) fn reading(file: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args(["read-text", "--json"]).arg(file);
    command
}

/// What was read, as JSON.
#[track_caller]
pub(crate) fn read(command: &mut Command) -> Value {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// A line that must be read: its text and times in seconds.
struct Line<'a>(&'a str, f64, f64);

/// Expects exactly these lines, in order.
#[track_caller]
fn check(found: &Value, expected: &[Line<'_>]) {
    let lines = found["lines"].as_array().unwrap();
    let texts: Vec<&str> = lines.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(texts, expected.iter().map(|it| it.0).collect::<Vec<_>>(), "{found}");
    for (line, Line(text, start, end)) in lines.iter().zip(expected) {
        for (field, expected) in [("start", start), ("end", end)] {
            let seconds = line[field].as_f64().unwrap();
            assert!((seconds - expected).abs() <= SECONDS, "{text}: {field} {seconds}, not {expected}");
        }
        assert!(line["confidence"].as_f64().is_some_and(|it| (0.6..=1.0).contains(&it)), "{line}");
        let side = |name: &str| line["box"][name].as_f64().unwrap();
        assert!(side("left") + side("width") <= 1.0 && side("top") + side("height") <= 1.0, "{line}");
    }
}

const FIRST: Slide<'_> = Slide {
    lines: &[
        "Backpropagation through time",
        "",
        "Gradients vanish with long sequences",
        "Clip the norm at 5.0",
    ],
    seconds: 6,
};
const SECOND: Slide<'_> =
    Slide { lines: &["Gated recurrent units", "", "Fewer weights than an LSTM cell"], seconds: 4 };
const LINES: [Line<'_>; 5] = [
    Line("Backpropagation through time", 0.0, 6.0),
    Line("Gradients vanish with long sequences", 0.0, 6.0),
    Line("Clip the norm at 5.0", 0.0, 6.0),
    Line("Gated recurrent units", 6.0, 10.0),
    Line("Fewer weights than an LSTM cell", 6.0, 10.0),
];

#[test]
fn slides_are_read_once_each_in_one_run() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let dark = Look { ground: "0x202030", ink: "white", ..Look::default() };
    let looks = [
        Look::default(),
        dark,
        Look { font: "Serif", ..dark },
        Look { font: "Mono", size: (640, 360), ..Look::default() },
        Look { size: (640, 360), ..dark },
    ];
    for (number, look) in looks.iter().enumerate() {
        let file = written(folder.path(), &number.to_string(), look, &[FIRST, SECOND]);
        let found = read(&mut reading(&file));
        check(&found, &LINES);
        // Title and body lie apart.
        assert!(found["regions"].as_u64().is_some_and(|it| it <= 4), "{look:?}: {found}");
        assert_eq!(found["runs"], 1, "{look:?}: {found}");
        let left = found["lines"][0]["box"]["left"].as_f64().unwrap();
        let top = found["lines"][0]["box"]["top"].as_f64().unwrap();
        assert!((left - 0.1).abs() < PLACE && (top - 0.1).abs() < PLACE, "{look:?}: {found}");
    }
}

/// A slide gets a further line, and something small moves over it all the time.
#[test]
fn only_what_changes_is_read_again() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let then = "null[a];color=gray:s=80x80:r=25:d=9[b];[a][b]overlay=x='mod(t*200,1000)':y=560";
    let look = Look { then, ..Look::default() };
    let more = Slide {
        lines: &["Convolution", "", "A kernel slides over the input", "Weights are shared"],
        seconds: 5,
    };
    let less = Slide { lines: &more.lines[..3], seconds: 4 };
    let found = read(&mut reading(&written(folder.path(), "moving", &look, &[less, more])));
    let [title, first, second] = [
        Line("Convolution", 0.0, 9.0),
        Line("A kernel slides over the input", 0.0, 9.0),
        Line("Weights are shared", 4.0, 9.0),
    ];
    check(&found, &[title, first, second]);
}

/// A clock and a score, over a picture in which something moves.
#[test]
fn a_score_board_is_followed_within_a_second() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let then = "null[a];color=white:s=60x60:r=25:d=9[b];[a][b]overlay=x='mod(t*300,1100)':y=500";
    let look = Look { ground: "0x206020", ink: "white", then, ..Look::default() };
    let scores = [["ROVERS 1 UNITED 0"], ["ROVERS 1 UNITED 1"], ["ROVERS 2 UNITED 1"]];
    let slides = scores.each_ref().map(|lines| Slide { lines, seconds: 3 });
    let found = read(&mut reading(&written(folder.path(), "score", &look, &slides)));
    check(
        &found,
        &[
            Line("ROVERS 1 UNITED 0", 0.0, 3.0),
            Line("ROVERS 1 UNITED 1", 3.0, 6.0),
            Line("ROVERS 2 UNITED 1", 6.0, 9.0),
        ],
    );
}

/// A board over athletes, as the benchmark has it. What else is read in the moving picture is left out.
#[test]
fn a_board_over_moving_footage_is_read_within_a_second() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("board.mp4");
    let made =
        Command::new(binary()).args(["synth", "board", "--seconds", "20"]).arg(&file).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let truth = std::fs::read_to_string(folder.path().join("board.mp4.jsonl")).unwrap();
    let truth: Vec<Value> = truth.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seconds = |line: &Value, field: &str| line[field].as_f64().unwrap();
    let text = |line: &Value| line["text"].as_str().unwrap().to_owned();
    let names: Vec<String> =
        truth.iter().filter_map(|it| Some(text(it).split_once(' ')?.0.to_owned())).collect();
    let mut found = read(&mut reading(&file));
    let lines = found["lines"].as_array_mut().unwrap();
    lines.retain(|line| names.iter().any(|name| text(line).contains(name)));
    let texts: Vec<String> = truth.iter().map(text).collect();
    let expected: Vec<Line<'_>> = truth
        .iter()
        .zip(&texts)
        .map(|(line, text)| Line(text, seconds(line, "start"), seconds(line, "end")))
        .collect();
    assert!(expected.len() >= 4, "{truth:?}");
    check(&found, &expected);
}

#[test]
fn a_film_without_legible_text_has_no_lines() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let plain = film(folder.path(), "plain", &["color=c=red", "smptebars", "color=c=blue"], Store::Web);
    check(&read(&mut reading(&plain)), &[]);
    let vertical = Look { then: "transpose=clock", ..Look::default() };
    let file = written(folder.path(), "vertical", &vertical, &[FIRST]);
    let found = read(&mut reading(&file));
    assert!(!found.to_string().contains("Gradients"), "{found}");
}

#[test]
fn a_picture_of_8192_pixels_is_read() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let look = Look { size: (8192, 2304), then: "fps=2", ..Look::default() };
    let file = written(folder.path(), "wide", &look, &[Slide { lines: FIRST.lines, seconds: 2 }]);
    let found = read(&mut reading(&file));
    let [title, first, second, ..] = LINES;
    check(&found, &[title, first, second].map(|it| Line(it.0, 0.0, 2.0)));
}

#[test]
fn the_sandbox_changes_nothing() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let file = written(folder.path(), "slides", &Look::default(), &[SECOND]);
    assert_eq!(read(&mut reading(&file)), read(reading(&file).arg("--no-sandbox")));
}
