//! Sizes of pictures whose area is bounded: `smart_resize` of qwen-vl-utils 0.0.14 and of transformers 5.23. Sides become
//! multiples of a factor, the area stays within bounds, and the shape is nearly kept.

use serde::Serialize;

use crate::resize::Pixels;

/// Longest side of a decoded picture.
const LONGEST_SIDE: u32 = 1 << 14;

/// Longest side over shortest that the models take.
const LARGEST_RATIO: f64 = 200.0;

/// When a side that rounds to 0 becomes one factor. The two references differ for very narrow pictures only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lift {
    /// Before the area is compared with the bounds, as qwen-vl-utils does.
    Before,
    /// After shrinking alone, as transformers does.
    After,
}

/// Why a picture can't be resized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadSize(String);

/// The bounds of a picture's or frame's area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct SizeRule {
    /// Every side is a multiple of it: patch times merge size.
    pub factor: u32,
    /// Least area, in pixels.
    pub min_pixels: u64,
    /// Largest area, in pixels.
    pub max_pixels: u64,
    /// How very narrow pictures are read.
    pub lift: Lift,
}

impl SizeRule {
    /// The size that a picture is resized to.
    ///
    /// # Errors
    /// [`BadSize`] for pictures without pixels or with a ratio of sides over 200.
    pub(crate) fn of(&self, from: Pixels) -> Result<Pixels, BadSize> {
        self.scaled(from, 1.0, 1.0)
    }

    /// The size that the `frames` of a video are resized to, where the bounds hold for all of them together, as
    /// transformers does for Qwen3-VL. An odd last frame counts twice.
    ///
    /// # Errors
    /// As [`SizeRule::of`].
    pub(crate) fn of_clip(&self, from: Pixels, frames: usize) -> Result<Pixels, BadSize> {
        let even = frames.next_multiple_of(2) as f64;
        self.scaled(self.enlarged(from), frames as f64, even)
    }

    /// The size that a decoder scales pictures to. A picture that the rule refuses stays as it is, and its encoder says why.
    pub(crate) fn decoded(&self, from: Pixels) -> Pixels {
        let side = |side: u32| side.clamp(1, LONGEST_SIDE);
        let kept = Pixels { width: side(from.width), height: side(from.height) };
        self.of(from).ok().filter(|to| to.width.max(to.height) <= LONGEST_SIDE).unwrap_or(kept)
    }

    /// Width and height of a picture that is neither large nor small for the rule.
    pub fn usual(&self) -> (u32, u32) {
        let to = self.decoded(Pixels { width: 640, height: 360 });
        (to.width, to.height)
    }

    /// The same rule with areas of `most` pixels at most, but at least one factor.
    pub(crate) fn within(self, most: u64) -> SizeRule {
        let max_pixels = self.max_pixels.min(most).max(u64::from(self.factor) * u64::from(self.factor));
        // Bounds that fall together would leave no size between them.
        SizeRule { max_pixels, min_pixels: self.min_pixels.min(max_pixels / 2), ..self }
    }

    /// A picture that is smaller than one factor grows to it first.
    fn enlarged(&self, from: Pixels) -> Pixels {
        let shortest = from.width.min(from.height);
        if shortest == 0 || shortest >= self.factor {
            return from;
        }
        let scale = f64::from(self.factor) / f64::from(shortest);
        let side = |side: u32| (f64::from(side) * scale) as u32;
        Pixels { width: side(from.width), height: side(from.height) }
    }

    /// `frames`: what the picture's area is multiplied by; `even`: what the rounded area is multiplied by.
    fn scaled(&self, from: Pixels, frames: f64, even: f64) -> Result<Pixels, BadSize> {
        let (width, height) = (f64::from(from.width), f64::from(from.height));
        let bad = |why: String| BadSize(why);
        if width == 0.0 || height == 0.0 {
            return Err(bad(format!("a picture of {}x{} pixels is empty", from.width, from.height)));
        }
        if width.max(height) / width.min(height) > LARGEST_RATIO {
            let why = "is too narrow: the model takes ratios of sides up to 200";
            return Err(bad(format!("a picture of {}x{} pixels {why}", from.width, from.height)));
        }
        let factor = f64::from(self.factor);
        let least = if self.lift == Lift::Before { factor } else { 0.0 };
        // Halves go to the even multiple, as Python's round does.
        let rounded = |side: f64| ((side / factor).round_ties_even() * factor).max(least);
        let area = even * rounded(width) * rounded(height);
        let (least, most) = (self.min_pixels as f64, self.max_pixels as f64);
        let [width, height] = if area > most {
            let shrink = (frames * height * width / most).sqrt();
            [width, height].map(|side| ((side / shrink / factor).floor() * factor).max(factor))
        } else if area < least {
            let grow = (least / (frames * height * width)).sqrt();
            [width, height].map(|side| (side * grow / factor).ceil() * factor)
        } else {
            [rounded(width), rounded(height)]
        };
        match (width as u32, height as u32) {
            (0, _) | (_, 0) => Err(bad(format!("a picture of {}x{} is too narrow", from.width, from.height))),
            (width, height) => Ok(Pixels { width, height }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QWEN2: SizeRule =
        SizeRule { factor: 28, min_pixels: 3136, max_pixels: 1_003_520, lift: Lift::Before };

    #[track_caller]
    fn check(width: u32, height: u32, expected: Option<[u32; 2]>) {
        let size = QWEN2.of(Pixels { width, height }).ok();
        assert_eq!(size.map(|it| [it.width, it.height]), expected);
    }

    #[test]
    fn halves_go_to_the_even_multiple() {
        check(70, 42, Some([56, 56]));
        check(350, 350, Some([336, 336]));
    }

    #[test]
    fn areas_stay_within_their_bounds() {
        check(1920, 1080, Some([1316, 728]));
        check(10, 10, Some([56, 56]));
        check(3840, 2160, Some([1316, 728]));
    }

    #[test]
    fn a_lower_bound_holds_and_a_refused_picture_is_decoded_as_it_is() {
        let small = QWEN2.within(100_000);
        let to = small.of(Pixels { width: 1920, height: 1080 }).unwrap();
        assert_eq!([to.width, to.height], [420, 224]);
        assert_eq!(
            QWEN2.within(1).of(Pixels { width: 900, height: 900 }).unwrap(),
            Pixels { width: 28, height: 28 }
        );
        assert_eq!(QWEN2.within(u64::MAX).max_pixels, QWEN2.max_pixels);
        for (from, to) in [((4001, 20), (4001, 20)), ((0, 0), (1, 1)), ((1920, 1080), (1316, 728))] {
            let decoded = QWEN2.decoded(Pixels { width: from.0, height: from.1 });
            assert_eq!((decoded.width, decoded.height), to);
        }
    }

    #[test]
    fn narrow_and_empty_pictures_are_the_callers_fault() {
        check(0, 10, None);
        check(2001, 10, None);
        check(2000, 10, Some([1988, 28]));
    }
}
