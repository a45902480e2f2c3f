//! Plots and captioned pictures as PNG files, drawn by plotters with an embedded font.
//!
//! Frames of rendered films come from `synth::canvas` instead: their bytes depend on the seed alone.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{BitMapBackend, DrawingArea, IntoDrawingArea};
use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// Roboto Mono, under the SIL Open Font License (beside it).
const FONT: &[u8] = include_bytes!("picture/RobotoMono-Regular.ttf");
const FAMILY: &str = "sans-serif";

/// The area of a picture, in pixels from the upper left corner.
pub type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// An RGB picture.
pub struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Picture {
    /// A black picture.
    #[must_use]
    pub fn new(width: u32, height: u32) -> Picture {
        Picture { width, height, rgb: vec![0; width as usize * height as usize * 3] }
    }

    /// Draws on the picture with `paint`.
    ///
    /// # Errors
    /// The errors of `paint`.
    pub fn draw(&mut self, paint: impl FnOnce(&Area<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        register_font(FAMILY, FontStyle::Normal, FONT)
            .map_err(|_| anyhow!("the embedded font is damaged"))?;
        let area = BitMapBackend::with_buffer(&mut self.rgb, (self.width, self.height)).into_drawing_area();
        paint(&area)?;
        Ok(area.present()?)
    }

    /// Writes a PNG file.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let encode = || -> Result<(), png::EncodingError> {
            let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), self.width, self.height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.write_header()?.write_image_data(&self.rgb)
        };
        encode().with_context(|| path.display().to_string())
    }
}

/// The font, `pixels` high.
#[must_use]
pub fn font(pixels: u32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(pixels), FontStyle::Normal)
}

#[cfg(test)]
mod tests {
    use plotters::prelude::{BLACK, Text, WHITE};

    use super::*;

    /// Number of pixels that a text darkens on a white picture.
    fn dark(text: &str) -> usize {
        let mut picture = Picture::new(40, 20);
        picture
            .draw(|area| {
                area.fill(&WHITE)?;
                Ok(area.draw(&Text::new(text.to_owned(), (1, 1), font(16).color(&BLACK)))?)
            })
            .unwrap();
        picture.rgb.chunks_exact(3).filter(|rgb| rgb[0] < 128).count()
    }

    #[test]
    fn letters_are_drawn_and_a_text_too_long_for_the_picture_is_cut_off() {
        assert_eq!(dark(""), 0);
        assert!(dark(".") < dark("M"));
        assert!(dark("é") > dark("."));
        assert!(dark("hello there, hello there") > dark("he"));
    }

    #[test]
    fn the_file_is_a_png() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        Picture::new(3, 2).write(&path).unwrap();
        let decoder = png::Decoder::new(File::open(&path).unwrap());
        let info = decoder.read_info().unwrap().info().clone();
        assert_eq!((info.width, info.height), (3, 2));
    }
}
