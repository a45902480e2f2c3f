//! The loss over time: a CSV during training, and a picture of it at the end.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::TrainError;

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
        let path = self.path.with_extension("png");
        std::fs::write(&path, Picture::of(&points).png()).map_err(|error| TrainError::file(&path, error))
    }
}

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
const MARGIN: usize = 36;

/// A position in the picture, in pixels.
#[derive(Clone, Copy)]
struct Point {
    x: f32,
    y: f32,
}

/// Grey pixels, row by row.
struct Picture(Vec<u8>);

impl Picture {
    /// Draws a line through `points` over a grid of tenths, with numbers at both ends.
    fn of(points: &[(f32, f32)]) -> Picture {
        let mut picture = Picture(vec![255; WIDTH * HEIGHT]);
        let last = points.iter().map(|it| it.0).fold(1.0, f32::max);
        let (low, high) =
            points.iter().fold((0_f32, 1e-6_f32), |(low, high), it| (low.min(it.1), high.max(it.1)));
        let (wide, tall) = ((WIDTH - 2 * MARGIN) as f32, (HEIGHT - 2 * MARGIN) as f32);
        let place = |(x, y): (f32, f32)| Point {
            x: MARGIN as f32 + x / last * wide,
            y: MARGIN as f32 + (high - y) / (high - low) * tall,
        };
        for tenth in 0..=10 {
            let (x, y) = (last * tenth as f32 / 10.0, low + (high - low) * tenth as f32 / 10.0);
            picture.line(place((x, low)), place((x, high)), 225);
            picture.line(place((0.0, y)), place((last, y)), 225);
        }
        for pair in points.windows(2) {
            picture.line(place(pair[0]), place(pair[1]), 0);
        }
        picture.number(high, 4, MARGIN - 16);
        picture.number(low, 4, HEIGHT - MARGIN + 6);
        picture.number(last, WIDTH - 2 * MARGIN, HEIGHT - MARGIN + 6);
        picture
    }

    fn line(&mut self, from: Point, to: Point, grey: u8) {
        let steps = (to.x - from.x).abs().max((to.y - from.y).abs()).ceil().max(1.0) as usize;
        for step in 0..=steps {
            let part = step as f32 / steps as f32;
            let (x, y) = (from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part);
            self.dot(x.round() as usize, y.round() as usize, grey);
        }
    }

    fn dot(&mut self, x: usize, y: usize, grey: u8) {
        if x < WIDTH && y < HEIGHT {
            self.0[y * WIDTH + x] = self.0[y * WIDTH + x].min(grey);
        }
    }

    /// Writes a number with two decimals, or none from 100 on. Each pixel of a glyph becomes 2 by 2 pixels.
    fn number(&mut self, value: f32, left: usize, top: usize) {
        let text = if value.abs() < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
        for (place, letter) in text.chars().enumerate() {
            let Some((_, rows)) = GLYPHS.iter().find(|(known, _)| *known == letter) else { continue };
            for (y, x) in (0..10).flat_map(|y| (0..6).map(move |x| (y, x))) {
                if rows[y / 2] >> (2 - x / 2) & 1 == 1 {
                    self.dot(left + place * 8 + x, top + y, 60);
                }
            }
        }
    }

    /// PNG (RFC 2083) with stored blocks: compression gains little at this size.
    fn png(&self) -> Vec<u8> {
        let mut rows = Vec::with_capacity((WIDTH + 1) * HEIGHT);
        for row in self.0.chunks_exact(WIDTH) {
            rows.push(0);
            rows.extend_from_slice(row);
        }
        let mut header = Vec::new();
        header.extend((WIDTH as u32).to_be_bytes());
        header.extend((HEIGHT as u32).to_be_bytes());
        header.extend([8, 0, 0, 0, 0]);
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", header), (b"IDAT", stored(&rows)), (b"IEND", Vec::new())] {
            png.extend((data.len() as u32).to_be_bytes());
            let body = [&kind[..], &data].concat();
            png.extend_from_slice(&body);
            png.extend(crc(&body).to_be_bytes());
        }
        png
    }
}

/// zlib (RFC 1950) around stored blocks (RFC 1951).
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = bytes.chunks(65_535).count();
    for (number, block) in bytes.chunks(65_535).enumerate() {
        let length = block.len() as u16;
        out.push(u8::from(number + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    let add = |(a, b): (u32, u32), byte: &u8| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    };
    let (a, b) = bytes.iter().fold((1, 0), add);
    out.extend((b << 16 | a).to_be_bytes());
    out
}

fn crc(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

/// Glyphs of 3 by 5 pixels; each row is a number of three bits.
const GLYPHS: [(char, [u8; 5]); 12] = [
    ('0', [7, 5, 5, 5, 7]),
    ('1', [2, 6, 2, 2, 7]),
    ('2', [7, 1, 7, 4, 7]),
    ('3', [7, 1, 7, 1, 7]),
    ('4', [5, 5, 7, 1, 1]),
    ('5', [7, 4, 7, 1, 7]),
    ('6', [7, 4, 7, 5, 7]),
    ('7', [7, 1, 2, 2, 2]),
    ('8', [7, 5, 7, 5, 7]),
    ('9', [7, 5, 7, 1, 7]),
    ('.', [0, 0, 0, 0, 2]),
    ('-', [0, 0, 7, 0, 0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc(b"123456789"), 0xCBF4_3926);
        assert_eq!(stored(b"Wikipedia")[2 + 5 + 9..], 0x11E6_0398_u32.to_be_bytes());
    }

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
        let picture = Picture::of(&[(10.0, 1.0), (20.0, 0.5)]);
        assert!(picture.0.contains(&0), "no line");
    }
}
