//! A picture of the score over time: the curve, the threshold, the cuts, and the clips below.

use std::path::Path;

use plotters::prelude::{ChartBuilder, Color, LineSeries, PathElement, RGBColor, Rectangle, WHITE};
use reprise_encoders::video::segment::{ClipRange, DetectorSettings, FrameScores};
use reprise_research::picture::{Area, Picture, font};
use reprise_research::terminal::clock;

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 400;
/// Pixels: margin around the plot, space below and left of it, height of the letters.
const MARGIN: u32 = 20;
const BELOW: u32 = 40;
const LEFT: u32 = 60;
const LETTERS: u32 = 16;
/// Lower and upper end of the row of clips, relative to the highest score.
const CLIPS: [f64; 2] = [-0.1, -0.03];

const CURVE: RGBColor = RGBColor(26, 89, 191);
const THRESHOLD: RGBColor = RGBColor(217, 128, 26);
const CUT: RGBColor = RGBColor(204, 38, 26);
const SHADES: [RGBColor; 2] = [RGBColor(153, 191, 166), RGBColor(191, 217, 204)];

/// The content of the plot.
pub(super) struct Plot<'a> {
    pub(super) scores: &'a [FrameScores],
    pub(super) detector: &'a DetectorSettings,
    pub(super) clips: &'a [ClipRange],
    /// Frame number of each cut, and its time in milliseconds.
    pub(super) cuts: &'a [(u64, i64)],
}

impl Plot<'_> {
    /// Writes the PNG.
    ///
    /// # Errors
    /// The file can't be written.
    pub(super) fn write(&self, path: &Path, duration_ms: i64) -> anyhow::Result<()> {
        let mut picture = Picture::new(WIDTH, HEIGHT);
        picture.draw(|area| self.draw(area, seconds(duration_ms.max(1))))?;
        picture.write(path)
    }

    fn draw(&self, area: &Area<'_>, duration: f64) -> anyhow::Result<()> {
        let scored = || self.scores.iter().map(|it| (seconds(it.time_ms), self.detector.score(it).0));
        let threshold = self.detector.score(&FrameScores::default()).1;
        let highest = scored().map(|it| it.1).fold(threshold * 1.25, f64::max).max(1.0);
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..duration, CLIPS[0] * highest..highest)?;
        chart
            .configure_mesh()
            .label_style(font(LETTERS))
            .x_labels(6)
            .y_labels(5)
            .x_label_formatter(&|at| clock(*at))
            .y_label_formatter(&|score| if *score < 0.0 { String::new() } else { format!("{score:.0}") })
            .draw()?;
        let [low, high] = CLIPS.map(|part| part * highest);
        chart.draw_series(self.clips.iter().zip(SHADES.iter().cycle()).map(|(clip, shade)| {
            let corners = [(seconds(clip.start_ms), low), (seconds(clip.end_ms), high)];
            Rectangle::new(corners, shade.filled())
        }))?;
        chart.draw_series(self.cuts.iter().map(|(_, time_ms)| {
            let at = seconds(*time_ms);
            PathElement::new([(at, low), (at, highest)], CUT)
        }))?;
        chart.draw_series(LineSeries::new([(0.0, threshold), (duration, threshold)], THRESHOLD))?;
        chart.draw_series(LineSeries::new(scored(), CURVE))?;
        Ok(())
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
