//! A picture of some queries, their texts and first answers, as the paper's Figure 4.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, anyhow};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Frame, FrameSize};

use super::benchmark::{Benchmark, ComposedQuery};
use super::letters;
use crate::encode::{self, Stretch};
use crate::synth::canvas::{Canvas, Color};

/// Queries, and answers of each.
const QUERIES: usize = 8;
const ANSWERS: usize = 3;
/// Frames of a clip and the side of one, in pixels.
const FRAMES: usize = 3;
const SIDE: u32 = 96;
/// Pixels of a clip's frame, between clips, and for a line of text.
const BORDER: u32 = 4;
const GAP: u32 = 12;
const LINE: u32 = 22;
const CLIP: u32 = SIDE * FRAMES as u32 + 2 * BORDER;
const WIDTH: u32 = GAP + (CLIP + GAP) * (1 + ANSWERS as u32);
const ROW: u32 = 2 * LINE + SIDE + 2 * BORDER + GAP;

const PAPER: Color = Color([1.0, 1.0, 1.0]);
const INK: Color = Color([0.1, 0.1, 0.1]);
const RIGHT: Color = Color([0.1, 0.6, 0.2]);
const WRONG: Color = Color([0.8, 0.15, 0.1]);

/// Writes the PNG: queries spread evenly over the benchmark; `answers` are the ranked clips of each.
///
/// # Errors
/// A clip that can't be decoded, a file that can't be written.
pub(super) fn write(path: &Path, benchmark: &Benchmark, answers: &[Vec<usize>]) -> anyhow::Result<()> {
    let count = benchmark.composed.len().min(answers.len());
    let shown: Vec<usize> = (0..count.min(QUERIES)).map(|at| at * count / count.min(QUERIES)).collect();
    let pictures = Pictures::of(benchmark, &shown, answers)?;
    let mut sheet = Canvas::new(WIDTH, GAP + ROW * shown.len() as u32)?;
    sheet.fill(PAPER);
    for (row, &at) in shown.iter().enumerate() {
        let top = GAP + row as u32 * ROW;
        draw_row(&mut sheet, top, &pictures, &benchmark.composed[at], &answers[at])?;
    }
    let png = sheet.png().map_err(|error| anyhow!(error))?;
    std::fs::write(path, png).with_context(|| path.display().to_string())
}

/// The frames of the clips that are shown.
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

fn draw_row(
    sheet: &mut Canvas,
    top: u32,
    pictures: &Pictures,
    query: &ComposedQuery,
    answers: &[usize],
) -> anyhow::Result<()> {
    letters::write(sheet, (GAP, top), &query.modification, INK);
    letters::write(sheet, (GAP, top + LINE), "query", INK);
    draw_clip(sheet, (GAP, top + 2 * LINE), pictures.frames(query.clip), INK)?;
    for (rank, &clip) in answers.iter().take(ANSWERS).enumerate() {
        let (word, color) = if query.valid.contains(&clip) { ("right", RIGHT) } else { ("wrong", WRONG) };
        let left = GAP + (CLIP + GAP) * (1 + rank as u32);
        letters::write(sheet, (left, top + LINE), &format!("{}: {word}", rank + 1), color);
        draw_clip(sheet, (left, top + 2 * LINE), pictures.frames(clip), color)?;
    }
    Ok(())
}

fn draw_clip(
    sheet: &mut Canvas,
    (left, top): (u32, u32),
    frames: &[Frame],
    border: Color,
) -> anyhow::Result<()> {
    let [x, y] = [f64::from(left), f64::from(top)];
    let (right, bottom) = (x + f64::from(CLIP), y + f64::from(SIDE + 2 * BORDER));
    sheet.polygon(&[[x, y], [right, y], [right, bottom], [x, bottom]], border);
    for (at, frame) in frames.iter().take(FRAMES).enumerate() {
        let mut picture = Canvas::new(frame.width, frame.height)?;
        for (pixel, rgb) in picture.rgba_mut().chunks_exact_mut(4).zip(frame.rgb.chunks_exact(3)) {
            pixel[..3].copy_from_slice(rgb);
        }
        sheet.paste(&picture, (left + BORDER + at as u32 * SIDE) as i32, (top + BORDER) as i32);
    }
    Ok(())
}
