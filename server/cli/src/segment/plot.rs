//! The score over time as a picture: the curve, the threshold, the cuts, and below them the clips.

use std::path::Path;

use anyhow::anyhow;
use reprise_encoders::video::segment::{ClipRange, DetectorSettings, FrameScores};

use reprise_research::eval::letters;
use reprise_research::synth::canvas::{Canvas, Color};
use reprise_research::terminal::clock;

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 400;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 1180.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 320.0;
/// The row of clips.
const CLIPS: (f64, f64) = (330.0, 350.0);
const LABELS: u32 = 362;

const PAPER: Color = Color([1.0, 1.0, 1.0]);
const INK: Color = Color([0.15, 0.15, 0.15]);
const GRID: Color = Color([0.88, 0.88, 0.88]);
const CURVE: Color = Color([0.1, 0.35, 0.75]);
const THRESHOLD: Color = Color([0.85, 0.5, 0.1]);
const CUT: Color = Color([0.8, 0.15, 0.1]);
const SHADES: [Color; 2] = [Color([0.6, 0.75, 0.65]), Color([0.75, 0.85, 0.8])];

/// What is drawn.
pub(crate) struct Picture<'a> {
    pub(crate) scores: &'a [FrameScores],
    pub(crate) detector: &'a DetectorSettings,
    pub(crate) clips: &'a [ClipRange],
    /// Frame and time of each.
    pub(crate) cuts: &'a [(u64, i64)],
}

impl Picture<'_> {
    /// Writes the PNG.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn write(&self, path: &Path, duration_ms: i64) -> anyhow::Result<()> {
        let mut canvas = Canvas::new(WIDTH, HEIGHT)?;
        canvas.fill(PAPER);
        let x = |ms: i64| LEFT + (RIGHT - LEFT) * ms as f64 / duration_ms.max(1) as f64;
        let scored: Vec<(f64, f64)> =
            self.scores.iter().map(|it| (x(it.time_ms), self.detector.score(it).0)).collect();
        let threshold = self.detector.score(&FrameScores::default()).1;
        let highest = scored.iter().map(|it| it.1).fold(threshold * 1.25, f64::max).max(1.0);
        let y = |score: f64| BOTTOM - (BOTTOM - TOP) * score / highest;
        draw_grid(&mut canvas, highest, duration_ms);
        for (at, clip) in self.clips.iter().enumerate() {
            let (from, until) = (x(clip.start_ms), x(clip.end_ms));
            let corners = [[from, CLIPS.0], [until, CLIPS.0], [until, CLIPS.1], [from, CLIPS.1]];
            canvas.polygon(&corners, SHADES[at % SHADES.len()]);
        }
        for (_, time_ms) in self.cuts {
            canvas.line([x(*time_ms), TOP], [x(*time_ms), CLIPS.1], 1.0, CUT);
        }
        canvas.line([LEFT, y(threshold)], [RIGHT, y(threshold)], 1.5, THRESHOLD);
        for (from, until) in columns(&scored).windows(2).map(|pair| (pair[0], pair[1])) {
            canvas.line([from.0, y(from.1)], [until.0, y(until.1)], 1.2, CURVE);
        }
        let png = canvas.png().map_err(|error| anyhow!(error))?;
        Ok(std::fs::write(path, png)?)
    }
}

/// The highest score of each column of pixels: of an hour's frames many share one.
fn columns(scored: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut columns: Vec<(f64, f64)> = Vec::new();
    for &(x, score) in scored {
        match columns.last_mut() {
            Some(last) if last.0.floor() >= x.floor() => last.1 = last.1.max(score),
            _ => columns.push((x, score)),
        }
    }
    columns
}

/// Quarters of the scores, tenths of the time.
fn draw_grid(canvas: &mut Canvas, highest: f64, duration_ms: i64) {
    for quarter in 0..=4 {
        let part = f64::from(quarter) / 4.0;
        let y = BOTTOM - (BOTTOM - TOP) * part;
        canvas.line([LEFT, y], [RIGHT, y], 1.0, GRID);
        letters::write(canvas, (6, y as u32 - 7), &format!("{:.0}", highest * part), INK);
    }
    for fifth in 0..=5 {
        let part = f64::from(fifth) / 5.0;
        let x = LEFT + (RIGHT - LEFT) * part;
        canvas.line([x, TOP], [x, BOTTOM], 1.0, GRID);
        let time = clock(duration_ms as f64 * part / 1000.0);
        let left = (x - 6.0 * time.len() as f64).clamp(0.0, f64::from(WIDTH) - 12.0 * time.len() as f64);
        letters::write(canvas, (left as u32, LABELS), &time, INK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_frames_that_share_a_column_the_highest_is_drawn() {
        assert_eq!(
            columns(&[(60.0, 1.0), (60.4, 9.0), (60.9, 2.0), (63.0, 4.0)]),
            [(60.0, 9.0), (63.0, 4.0)]
        );
    }
}
