//! The loss over time: a CSV during training, and a picture of it at the end.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use plotters::prelude::{BLACK, ChartBuilder, LineSeries, WHITE};

use super::TrainError;
use crate::picture::{Picture, font};

/// The files `curve.csv` (step, loss, further figures of the stage) and `curve.png` of a folder.
pub(super) struct Curve {
    path: PathBuf,
    file: File,
    empty: bool,
}

impl Curve {
    /// Opens the curve of `folder` and drops the points after `step`: a run that resumes from a checkpoint
    /// repeats them.
    pub(super) fn open(folder: &Path, step: usize) -> Result<Self, TrainError> {
        let path = folder.join("curve.csv");
        let why = |error: std::io::Error| TrainError::file(&path, error);
        let known = match std::fs::read_to_string(&path) {
            Ok(text) if step > 0 => text,
            _ => String::new(),
        };
        let keep = |line: &&str| {
            line.split(',').next().and_then(|it| it.parse().ok()).is_none_or(|at: usize| at <= step)
        };
        let kept: String = known.lines().filter(keep).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, &kept).map_err(why)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(why)?;
        Ok(Curve { path, file, empty: kept.is_empty() })
    }

    pub(super) fn push(
        &mut self,
        step: usize,
        loss: f32,
        parts: &[(&'static str, f32)],
    ) -> Result<(), TrainError> {
        let mut text = String::new();
        if std::mem::take(&mut self.empty) {
            text =
                format!("step,loss{}\n", parts.iter().map(|part| format!(",{}", part.0)).collect::<String>());
        }
        let _ = write!(text, "{step},{loss:.5}");
        parts.iter().for_each(|part| {
            let _ = write!(text, ",{:.5}", part.1);
        });
        writeln!(self.file, "{text}").map_err(|error| TrainError::file(&self.path, error))
    }

    /// Draws the loss so far as `curve.png`.
    pub(super) fn draw(&self) -> Result<(), TrainError> {
        let why = |error: std::io::Error| TrainError::file(&self.path, error);
        let text = std::fs::read_to_string(&self.path).map_err(why)?;
        let row = |line: &str| -> Option<(f32, f32)> {
            let mut cells = line.split(',').map(|cell| cell.parse().ok());
            Some((cells.next()??, cells.next()??))
        };
        let points: Vec<(f32, f32)> = text.lines().filter_map(row).collect();
        draw(&points, &self.path.with_extension("png"))
    }
}

const WIDTH: u32 = 640;
const HEIGHT: u32 = 360;
/// Pixels around the plot, below it and left of it, and of a letter's height.
const MARGIN: u32 = 20;
const BELOW: u32 = 30;
const LEFT: u32 = 60;
const LETTERS: u32 = 14;

/// Writes a PNG of the loss over the steps.
fn draw(points: &[(f32, f32)], path: &Path) -> Result<(), TrainError> {
    let last = points.iter().map(|it| it.0).fold(1.0, f32::max);
    let (low, high) =
        points.iter().fold((0_f32, 1e-6_f32), |(low, high), it| (low.min(it.1), high.max(it.1)));
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let drawn = picture.draw(|area| {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..last, low..high)?;
        let axes = &mut chart.configure_mesh();
        axes.label_style(font(LETTERS)).x_label_formatter(&|step| format!("{step:.0}")).draw()?;
        chart.draw_series(LineSeries::new(points.iter().copied(), BLACK))?;
        Ok(())
    });
    drawn.and_then(|()| picture.write(path)).map_err(TrainError::Picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_goes_on_drops_what_comes_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut curve = Curve::open(folder.path(), 0).unwrap();
        (1..5).for_each(|step| curve.push(step * 10, 1.0 / step as f32, &[("right", 0.5)]).unwrap());
        let mut curve = Curve::open(folder.path(), 20).unwrap();
        curve.push(30, 0.25, &[("right", 1.0)]).unwrap();
        let text = std::fs::read_to_string(folder.path().join("curve.csv")).unwrap();
        assert_eq!(text, "step,loss,right\n10,1.00000,0.50000\n20,0.50000,0.50000\n30,0.25000,1.00000\n");
        curve.draw().unwrap();
        let png = std::fs::read(folder.path().join("curve.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        let decoder = png::Decoder::new(std::io::Cursor::new(&png));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).unwrap();
        let black = pixels.chunks_exact(3).filter(|pixel| **pixel == [0, 0, 0]).count();
        assert!(black > 300, "{black} black pixels are no line");
    }
}
