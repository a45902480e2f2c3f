//! A picture of some queries, their texts and first answers, as the paper's Figure 4.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plotters::prelude::{BitMapElement, Color, RGBColor, Rectangle, Text, WHITE};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Frame, FrameSize};

use super::benchmark::{Benchmark, ComposedQuery};
use crate::encode::{self, Stretch};
use crate::picture::{Area, Picture, font};

/// Number of queries; below: number of answers per query.
const QUERIES: usize = 8;
const ANSWERS: usize = 3;
/// Frames per clip; below: side of a frame in pixels.
const FRAMES: usize = 3;
const SIDE: u32 = 96;
/// Pixels: width of a clip's border, gap between clips, height of a text line, size of its letters.
const BORDER: u32 = 4;
const GAP: u32 = 12;
const LINE: u32 = 22;
const LETTERS: u32 = 18;
const CLIP: u32 = SIDE * FRAMES as u32 + 2 * BORDER;
const WIDTH: u32 = GAP + (CLIP + GAP) * (1 + ANSWERS as u32);
const ROW: u32 = 2 * LINE + SIDE + 2 * BORDER + GAP;

const INK: RGBColor = RGBColor(25, 25, 25);
const RIGHT: RGBColor = RGBColor(25, 153, 51);
const WRONG: RGBColor = RGBColor(204, 38, 25);

/// Writes the PNG with queries spread evenly over the benchmark. `answers` holds the ranked clips of each query.
///
/// # Errors
/// A clip that can't be decoded, a file that can't be written.
pub(super) fn write(path: &Path, benchmark: &Benchmark, answers: &[Vec<usize>]) -> anyhow::Result<()> {
    let count = benchmark.composed.len().min(answers.len());
    let shown: Vec<usize> = (0..count.min(QUERIES)).map(|at| at * count / count.min(QUERIES)).collect();
    let pictures = Pictures::of(benchmark, &shown, answers)?;
    let mut sheet = Picture::new(WIDTH, GAP + ROW * shown.len() as u32);
    sheet.draw(|sheet| {
        sheet.fill(&WHITE)?;
        for (row, &at) in shown.iter().enumerate() {
            let row = Row { sheet, pictures: &pictures, top: (GAP + row as u32 * ROW) as i32 };
            row.draw(&benchmark.composed[at], &answers[at])?;
        }
        Ok(())
    })?;
    sheet.write(path)
}

/// Frames of the shown clips.
struct Pictures(BTreeMap<usize, Vec<Frame>>);

impl Pictures {
    fn of(benchmark: &Benchmark, shown: &[usize], answers: &[Vec<usize>]) -> anyhow::Result<Pictures> {
        let answered = shown.iter().flat_map(|at| answers[*at].iter().take(ANSWERS).copied());
        let asked = shown.iter().map(|at| benchmark.composed[*at].clip);
        let clips: BTreeSet<usize> = answered.chain(asked).collect();
        let files: Vec<Stretch> = clips.iter().map(|clip| Stretch::whole(&benchmark.clips[*clip])).collect();
        let size = FrameSize::Exact { width: SIDE, height: SIDE };
        let frames = encode::frames(&files, Sampler::Middles { frames: FRAMES }, size.into())?;
        Ok(Pictures(clips.into_iter().zip(frames).collect()))
    }

    fn frames(&self, clip: usize) -> &[Frame] {
        self.0.get(&clip).map_or(&[], Vec::as_slice)
    }
}

/// A query and its answers on the sheet.
struct Row<'a, 'sheet> {
    sheet: &'a Area<'sheet>,
    pictures: &'a Pictures,
    top: i32,
}

impl Row<'_, '_> {
    fn draw(&self, query: &ComposedQuery, answers: &[usize]) -> anyhow::Result<()> {
        let line = LINE as i32;
        self.text(GAP as i32, self.top, &query.modification, INK)?;
        self.text(GAP as i32, self.top + line, "query", INK)?;
        self.clip(GAP as i32, query.clip, INK)?;
        for (rank, &clip) in answers.iter().take(ANSWERS).enumerate() {
            let (word, color) = if query.valid.contains(&clip) { ("right", RIGHT) } else { ("wrong", WRONG) };
            let left = (GAP + (CLIP + GAP) * (1 + rank as u32)) as i32;
            self.text(left, self.top + line, &format!("{}: {word}", rank + 1), color)?;
            self.clip(left, clip, color)?;
        }
        Ok(())
    }

    fn text(&self, left: i32, top: i32, text: &str, color: RGBColor) -> anyhow::Result<()> {
        Ok(self.sheet.draw(&Text::new(text, (left, top), font(LETTERS).color(&color)))?)
    }

    /// Draws the frames of a clip on a border.
    fn clip(&self, left: i32, clip: usize, border: RGBColor) -> anyhow::Result<()> {
        let top = self.top + 2 * LINE as i32;
        let end = (left + CLIP as i32, top + (SIDE + 2 * BORDER) as i32);
        self.sheet.draw(&Rectangle::new([(left, top), end], border.filled()))?;
        for (at, frame) in self.pictures.frames(clip).iter().take(FRAMES).enumerate() {
            let corner = (left + BORDER as i32 + at as i32 * SIDE as i32, top + BORDER as i32);
            if let Some(picture) = BitMapElement::with_ref(corner, (frame.width, frame.height), &frame.rgb) {
                self.sheet.draw(&picture)?;
            }
        }
        Ok(())
    }
}
