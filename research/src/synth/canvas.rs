//! A picture to draw on: filled, anti-aliased shapes, in pixels from the top left.

use reprise_encoders::Cause;
use tiny_skia::{FillRule, LineCap, Paint, PathBuilder, Pixmap, PixmapPaint, Stroke, Transform};

/// Red, green, blue, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Color(pub [f64; 3]);

impl Color {
    /// From hue (in turns), saturation and value, each 0 to 1.
    pub fn hsv(hue: f64, saturation: f64, value: f64) -> Color {
        let channel = |offset: f64| {
            let k = (offset + hue.rem_euclid(1.0) * 6.0).rem_euclid(6.0);
            value - value * saturation * k.min(4.0 - k).clamp(0.0, 1.0)
        };
        Color([channel(5.0), channel(3.0), channel(1.0)])
    }

    /// Brighter or darker by a factor.
    pub fn times(self, factor: f64) -> Color {
        Color(self.0.map(|it| (it * factor).clamp(0.0, 1.0)))
    }

    /// Interpolates from `self` (0) to `other` (1).
    pub fn towards(self, other: Color, part: f64) -> Color {
        let mut mixed = self;
        for (into, from) in mixed.0.iter_mut().zip(other.0) {
            *into += (from - *into) * part;
        }
        mixed
    }

    fn with_alpha(self, alpha: f64) -> tiny_skia::Color {
        let [red, green, blue] = self.0.map(|it| it.clamp(0.0, 1.0) as f32);
        tiny_skia::Color::from_rgba(red, green, blue, alpha.clamp(0.0, 1.0) as f32)
            .unwrap_or(tiny_skia::Color::BLACK)
    }
}

/// A point in pixels.
pub type Point = [f64; 2];

/// An opaque picture.
#[derive(Debug, Clone)]
pub struct Canvas {
    pixels: Pixmap,
}

/// A size that no picture can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a picture of {0}x{1} pixels can't be made")]
pub struct BadSize(pub u32, pub u32);

impl Canvas {
    /// A black picture.
    ///
    /// # Errors
    /// A side is 0, or the picture is too large for memory to address.
    pub fn new(width: u32, height: u32) -> Result<Canvas, BadSize> {
        let mut pixels = Pixmap::new(width, height).ok_or(BadSize(width, height))?;
        pixels.fill(tiny_skia::Color::BLACK);
        Ok(Canvas { pixels })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.pixels.width()
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.pixels.height()
    }

    /// RGBA pixels: rows from the top, four bytes per pixel, alpha 255.
    pub fn rgba(&self) -> &[u8] {
        self.pixels.data()
    }

    /// See [`Canvas::rgba`]. The fourth byte of each pixel must stay 255.
    pub fn rgba_mut(&mut self) -> &mut [u8] {
        self.pixels.data_mut()
    }

    /// Fills the whole picture.
    pub fn fill(&mut self, color: Color) {
        self.pixels.fill(color.with_alpha(1.0));
    }

    /// Draws a filled polygon; nothing for fewer than three points.
    pub fn polygon(&mut self, points: &[Point], color: Color) {
        self.veil(points, color, 1.0);
    }

    /// Draws a translucent polygon of opacity `alpha`.
    pub fn veil(&mut self, points: &[Point], color: Color, alpha: f64) {
        let [first, rest @ ..] = points else { return };
        let mut path = PathBuilder::new();
        path.move_to(first[0] as f32, first[1] as f32);
        rest.iter().for_each(|it| path.line_to(it[0] as f32, it[1] as f32));
        path.close();
        if let Some(path) = path.finish() {
            self.fill_path(&path, color, alpha);
        }
    }

    /// Draws a filled circle.
    pub fn circle(&mut self, middle: Point, radius: f64, color: Color) {
        let circle = PathBuilder::from_circle(middle[0] as f32, middle[1] as f32, radius as f32);
        if let Some(path) = circle {
            self.fill_path(&path, color, 1.0);
        }
    }

    /// Draws a line with round ends.
    pub fn line(&mut self, from: Point, to: Point, width: f64, color: Color) {
        let mut path = PathBuilder::new();
        path.move_to(from[0] as f32, from[1] as f32);
        path.line_to(to[0] as f32, to[1] as f32);
        let Some(path) = path.finish() else { return };
        let stroke = Stroke { width: width as f32, line_cap: LineCap::Round, ..Stroke::default() };
        self.pixels.stroke_path(&path, &paint(color, 1.0), &stroke, Transform::identity(), None);
    }

    /// Copies another picture to a position.
    pub fn paste(&mut self, other: &Canvas, left: i32, top: i32) {
        let paint = PixmapPaint::default();
        self.pixels.draw_pixmap(left, top, other.pixels.as_ref(), &paint, Transform::identity(), None);
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// The encoder's.
    pub fn png(&self) -> Result<Vec<u8>, Cause> {
        Ok(self.pixels.encode_png()?)
    }

    fn fill_path(&mut self, path: &tiny_skia::Path, color: Color, alpha: f64) {
        self.pixels.fill_path(path, &paint(color, alpha), FillRule::Winding, Transform::identity(), None);
    }
}

fn paint(color: Color, alpha: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(color.with_alpha(alpha));
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(color: Color, expected: [f64; 3]) {
        let close = color.0.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-9);
        assert!(close, "{color:?} is not {expected:?}");
    }

    #[test]
    fn hues_turn_from_red_over_green_to_blue() {
        check(Color::hsv(0.0, 1.0, 1.0), [1.0, 0.0, 0.0]);
        check(Color::hsv(1.0 / 3.0, 1.0, 0.5), [0.0, 0.5, 0.0]);
        check(Color::hsv(2.0 / 3.0, 1.0, 1.0), [0.0, 0.0, 1.0]);
        check(Color::hsv(0.4, 0.0, 0.7), [0.7, 0.7, 0.7]);
    }

    #[test]
    fn shapes_outside_the_picture_and_broken_numbers_draw_nothing() {
        let mut canvas = Canvas::new(8, 8).unwrap();
        let empty = canvas.rgba().to_vec();
        let white = Color([1.0; 3]);
        canvas.circle([100.0, 100.0], 3.0, white);
        canvas.circle([4.0, 4.0], f64::NAN, white);
        canvas.line([-5.0, -5.0], [-9.0, -5.0], 2.0, white);
        canvas.polygon(&[[1.0, 1.0], [2.0, 2.0]], white);
        assert_eq!(canvas.rgba(), empty);
    }
}
