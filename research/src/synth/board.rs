//! A film with a score board over it whose names and digits change, and the truth of each line on it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::broadcast::broadcast;
use super::canvas::{Canvas, Color};
use super::draw::{Draw, Purpose};
use super::encode::Film;
use super::letters;
use super::motion::FRAMES_PER_SECOND;
use super::plan::Settings;
use super::{SynthError, check_size};

/// Without letters that look like others.
const NAMES: [&str; 10] =
    ["ROSSI", "TANAKA", "MEYER", "HANSEN", "KOWALSKA", "DUBREUIL", "FERRARI", "PARKER", "NGUYEN", "BAKER"];
const ROWS: usize = 2;
/// Seconds between two changes, and between two pairs of names.
const CHANGE: [f64; 2] = [3.0, 8.0];
const PAIR: f64 = 30.0;
/// The least frames of a line: what looks at a board once a second can't see a shorter one.
const LEAST: usize = FRAMES_PER_SECOND as usize;
/// Shares of the picture: the height of letters, the distance of rows, the margins of the board.
const LETTER: f64 = 0.045;
const ROW: f64 = 0.075;
const MARGIN: f64 = 0.03;

/// A line of the board while it stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its row, from the top.
    pub row: usize,
    /// First frame.
    pub start: usize,
    /// End frame (exclusive).
    pub end: usize,
    /// A name and a number.
    pub text: String,
}

/// A line of the truth: times in seconds from the first frame.
#[derive(Debug, Serialize)]
struct Truth<'a> {
    row: usize,
    start: f64,
    end: f64,
    text: &'a str,
}

/// What a board shows in a film of `frames` frames, in order of start.
pub fn shown(settings: &Settings, frames: usize) -> Vec<Shown> {
    let mut draw = settings.draw(Purpose::Board, 0);
    let mut lines = Vec::new();
    let (mut start, mut pair) = (0, 0);
    while start < frames {
        pair = frames.min(pair + (PAIR * FRAMES_PER_SECOND) as usize);
        lines.extend(lines_of_pair(&mut draw, start, pair));
        start = pair;
    }
    lines.sort_by_key(|it| (it.start, it.row));
    lines
}

/// The lines of two names, whose numbers grow in turns.
fn lines_of_pair(draw: &mut Draw, start: usize, end: usize) -> Vec<Shown> {
    let first = draw.below(NAMES.len());
    let second = (first + 1 + draw.below(NAMES.len() - 1)) % NAMES.len();
    let line = |name: usize, row: usize, points: usize| Shown {
        row,
        start,
        end,
        text: format!("{} {points}", NAMES[name]),
    };
    let mut points = [10 + draw.below(40), 10 + draw.below(40)];
    let mut now = [line(first, 0, points[0]), line(second, 1, points[1])];
    let mut lines = Vec::new();
    let mut at = start;
    loop {
        at += (draw.within(CHANGE[0], CHANGE[1]) * FRAMES_PER_SECOND) as usize;
        if at + LEAST > end {
            lines.extend(now);
            return lines;
        }
        let row = draw.below(ROWS);
        points[row] += 1 + draw.below(3);
        let name = [first, second][row];
        let next = Shown { start: at, ..line(name, row, points[row]) };
        let before = std::mem::replace(&mut now[row], next);
        lines.push(Shown { end: at, ..before });
    }
}

/// Renders a film of athletes with a board over it. Writes its truth beside it, under its name with `.jsonl` appended:
/// one JSON object a line. Returns the number of lines.
///
/// # Errors
/// See [`SynthError`].
pub fn render(file: &Path, settings: &Settings, seconds: u32) -> Result<usize, SynthError> {
    check_size(settings.size)?;
    let frames = f64::from(seconds) * FRAMES_PER_SECOND;
    let lines = shown(settings, frames as usize);
    let shots = broadcast(settings, 0).shots;
    let pictures = shots.iter().cycle().flat_map(|shot| (0..shot.frames).map(move |frame| (shot, frame)));
    let mut film = Film::one(file, settings.size)?;
    let mut canvas = Canvas::new(settings.size, settings.size)?;
    for (at, (shot, frame)) in pictures.take(frames as usize).enumerate() {
        shot.draw(&mut canvas, frame);
        draw_board(&mut canvas, lines.iter().filter(|it| it.start <= at && at < it.end));
        film.push(&canvas)?;
    }
    film.finish()?;
    let mut truth = file.as_os_str().to_owned();
    truth.push(".jsonl");
    let truth = PathBuf::from(truth);
    write_truth(&truth, &lines).map_err(|source| SynthError::Io { path: truth, source })?;
    Ok(lines.len())
}

fn draw_board<'a>(canvas: &mut Canvas, lines: impl Iterator<Item = &'a Shown>) {
    let side = f64::from(canvas.width());
    let (left, top) = (MARGIN * side, (1.0 - MARGIN - ROW * ROWS as f64) * side);
    let widest = NAMES.iter().map(|it| it.len()).max().unwrap_or(0) + 4;
    let right = left + letters::width(&"0".repeat(widest), LETTER * side);
    let bottom = top + ROW * ROWS as f64 * side;
    canvas.polygon(&[[left, top], [right, top], [right, bottom], [left, bottom]], Color([0.05, 0.08, 0.2]));
    for line in lines {
        let above = top + (line.row as f64 * ROW + (ROW - LETTER) / 2.0) * side;
        let from = [left + MARGIN * side, above];
        letters::write(canvas, &line.text, from, LETTER * side, Color([1.0; 3]));
    }
}

fn write_truth(file: &Path, lines: &[Shown]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for Shown { row, start, end, text } in lines {
        let seconds = |frame: &usize| *frame as f64 / FRAMES_PER_SECOND;
        let truth = Truth { row: *row, start: seconds(start), end: seconds(end), text };
        writeln!(out, "{}", serde_json::to_string(&truth)?)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::plan::Split;
    use super::*;

    /// The lines of a row cover the film, and each differs from the one before.
    #[track_caller]
    fn check(seconds: usize) {
        let frames = seconds * FRAMES_PER_SECOND as usize;
        let lines = shown(&Settings::new(5, Split::Test), frames);
        for row in 0..ROWS {
            let of_row: Vec<_> = lines.iter().filter(|it| it.row == row).collect();
            assert_eq!((of_row[0].start, of_row[of_row.len() - 1].end), (0, frames), "row {row}");
            assert!(of_row.windows(2).all(|two| two[0].end == two[1].start && two[0].text != two[1].text));
            assert!(of_row.iter().all(|it| it.end - it.start >= LEAST), "row {row}");
        }
    }

    #[test]
    fn a_board_always_shows_two_lines_and_every_line_is_new() {
        check(2);
        check(30);
        check(200);
    }
}
