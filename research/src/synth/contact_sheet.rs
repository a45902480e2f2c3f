//! The contact sheet: one row per clip, frames from left to right.

use super::SynthError;
use super::canvas::Canvas;
use super::shot::Shot;

/// Frames per clip.
const ACROSS: usize = 10;
/// Side of a picture in pixels.
const SIDE: u32 = 96;

/// Draws the shots below each other; returns a PNG file.
///
/// # Errors
/// No shots, or the encoder's error.
pub(super) fn contact_sheet(shots: &[Shot]) -> Result<Vec<u8>, SynthError> {
    let width = SIDE * ACROSS as u32;
    let mut sheet = Canvas::new(width, SIDE * shots.len() as u32)?;
    let mut picture = Canvas::new(SIDE, SIDE)?;
    for (row, shot) in shots.iter().enumerate() {
        for column in 0..ACROSS {
            shot.draw(&mut picture, (2 * column + 1) * shot.frames / (2 * ACROSS));
            sheet.paste(&picture, (column as u32 * SIDE) as i32, (row as u32 * SIDE) as i32);
        }
    }
    sheet.png().map_err(SynthError::Png)
}
