//! Pictures and frames to patches: resize, normalise, cut. By preprocessor_config.json and
//! video_preprocessor_config.json.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{FRAMES_PER_PATCH, VisionConfig};
use super::grid::{Grid, Visual, VisualKind};
use crate::area::{BadSize, Lift, SizeRule};
use crate::resize::{Pixels, Resampling, resize, resize_with_short_weights};
use crate::{Cause, EncodeError, Frame, LoadError};

/// The steps from pixels to patches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Patching {
    pub(super) patch: u32,
    pub(super) merge: u32,
    pub(super) mean: [f32; 3],
    pub(super) std: [f32; 3],
    /// Sizes of pictures: each rule resizes what the one before it gave.
    pub(crate) pictures: Vec<SizeRule>,
    /// Sizes of a video's frames.
    pub(crate) frames: FrameSizes,
}

/// What the bounds of a video's frames hold for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FrameSizes {
    /// Each frame.
    Each(SizeRule),
    /// Each frame, and `total` pixels at most in all frames together, as qwen-vl-utils does.
    Within { each: SizeRule, total: u64 },
    /// All frames together, as transformers does for Qwen3-VL.
    Together(SizeRule),
}

impl FrameSizes {
    fn of(self, from: Pixels, frames: usize) -> Result<Pixels, BadSize> {
        match self {
            FrameSizes::Each(rule) => rule.of(from),
            FrameSizes::Within { each, total } => {
                let share = total * FRAMES_PER_PATCH as u64 / frames.max(1) as u64;
                // Bounds that fall together would leave no size.
                let least = each.min_pixels + each.min_pixels / 20;
                SizeRule { max_pixels: each.max_pixels.min(share).max(least), ..each }.of(from)
            }
            FrameSizes::Together(rule) => rule.of_clip(from, frames),
        }
    }

    /// The same bounds, and `most` pixels at most in a frame.
    fn within(self, most: u64) -> FrameSizes {
        match self {
            FrameSizes::Each(rule) => FrameSizes::Each(rule.within(most)),
            FrameSizes::Within { each, total } => FrameSizes::Within { each: each.within(most), total },
            FrameSizes::Together(rule) => FrameSizes::Together(rule),
        }
    }
}

/// The values of preprocessor_config.json that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PreprocessorFile {
    min_pixels: Option<u64>,
    max_pixels: Option<u64>,
    size: Option<Edges>,
    image_mean: Option<[f32; 3]>,
    image_std: Option<[f32; 3]>,
    patch_size: Option<u32>,
    merge_size: Option<u32>,
    resample: Option<u32>,
    do_resize: Option<bool>,
    do_rescale: Option<bool>,
    do_normalize: Option<bool>,
}

/// Bounds of the area in pixels, whatever the names say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Edges {
    shortest_edge: Option<u64>,
    longest_edge: Option<u64>,
}

impl PreprocessorFile {
    /// The bounds of areas: the file's, else those of qwen-vl-utils.
    pub(super) fn bounds(&self, factor: u32) -> SizeRule {
        let area = u64::from(factor) * u64::from(factor);
        let edges = self.size.as_ref();
        let least = self.min_pixels.or(edges.and_then(|it| it.shortest_edge));
        let most = self.max_pixels.or(edges.and_then(|it| it.longest_edge));
        SizeRule {
            factor,
            min_pixels: least.unwrap_or(4 * area),
            max_pixels: most.unwrap_or(16_384 * area),
            lift: Lift::Before,
        }
    }
}

/// CLIP's values, of Qwen2-VL and Qwen2.5-VL.
const CLIP: [[f32; 3]; 2] =
    [[0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]];

/// The most merged tokens of a video's frames, each frame counted for itself: 0.9 of a context of 128,000.
const VIDEO_TOKENS: u64 = 115_200;

/// Pillow's number of the bicubic filter.
const BICUBIC: u32 = 3;

impl Patching {
    /// The steps of a model by its preprocessor_config.json. Bounds that the file leaves out are qwen-vl-utils 0.0.14's.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] or [`LoadError::Unsupported`].
    pub(super) fn new(file: &PreprocessorFile, config: &VisionConfig) -> Result<Patching, LoadError> {
        let unsupported = |why: &str| LoadError::Unsupported(why.into());
        let [patch, merge] = [config.patch as u32, config.merge as u32];
        if file.patch_size.is_some_and(|size| size != patch) || file.merge_size.is_some_and(|it| it != merge)
        {
            return Err(unsupported(
                "preprocessor_config.json cuts other patches than config.json's tower takes",
            ));
        }
        if [file.do_resize, file.do_rescale, file.do_normalize].contains(&Some(false)) {
            return Err(unsupported(
                "do_resize, do_rescale or do_normalize is false in preprocessor_config.json",
            ));
        }
        if file.resample.is_some_and(|number| number != BICUBIC) {
            return Err(unsupported("resample of preprocessor_config.json is not bicubic"));
        }
        let [mean, std] = [file.image_mean.unwrap_or(CLIP[0]), file.image_std.unwrap_or(CLIP[1])];
        let usable = |value: &f32| value.is_finite();
        if !mean.iter().all(usable) || !std.iter().all(|value| usable(value) && *value != 0.0) {
            return Err(unsupported("image_mean or image_std is not usable"));
        }
        let (factor, pictures) = (patch * merge, file.bounds(patch * merge));
        let area = u64::from(factor) * u64::from(factor);
        if pictures.min_pixels > pictures.max_pixels || pictures.max_pixels < area {
            return Err(unsupported("min_pixels and max_pixels of preprocessor_config.json leave no size"));
        }
        let each = SizeRule { min_pixels: 128 * area, max_pixels: 768 * area, ..pictures };
        let frames = FrameSizes::Within { each, total: VIDEO_TOKENS * area };
        Ok(Patching { patch, merge, mean, std, pictures: vec![pictures], frames })
    }

    /// What every side is a multiple of, in pixels.
    pub(super) fn factor(&self) -> u32 {
        self.patch * self.merge
    }

    /// A rule for areas between `least` and `most` merged tokens.
    pub(super) fn tokens(&self, least: u64, most: u64) -> SizeRule {
        let factor = self.factor();
        let area = u64::from(factor) * u64::from(factor);
        SizeRule { factor, min_pixels: least * area, max_pixels: most * area, lift: Lift::Before }
    }

    /// The same steps with at most this many pixels in a picture or frame.
    pub(super) fn within(self, most: u64) -> Patching {
        let pictures = self.pictures.iter().map(|rule| rule.within(most)).collect();
        Patching { pictures, frames: self.frames.within(most), ..self }
    }

    /// The rule for what a decoder gives: pictures, or frames of short videos, then need no second resize.
    pub(super) fn decoded(&self, reads_pictures: bool) -> Option<SizeRule> {
        match (reads_pictures, self.frames) {
            (true, _) => self.pictures.last().copied(),
            (false, FrameSizes::Each(rule) | FrameSizes::Within { each: rule, .. }) => Some(rule),
            (false, FrameSizes::Together(_)) => None,
        }
    }

    /// The grid of a picture of this size.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for pictures without pixels or far too narrow.
    pub(crate) fn picture_grid(&self, from: Pixels) -> Result<Grid, EncodeError> {
        let size = self.pictures.iter().try_fold(from, |size, rule| rule.of(size))?;
        Ok(self.grid(1, size))
    }

    /// The grid of a video of `frames` frames of this size.
    ///
    /// # Errors
    /// As [`Patching::picture_grid`].
    pub(crate) fn video_grid(&self, frames: usize, from: Pixels) -> Result<Grid, EncodeError> {
        Ok(self.grid(frames.div_ceil(FRAMES_PER_PATCH), self.frames.of(from, frames)?))
    }

    fn grid(&self, frames: usize, size: Pixels) -> Grid {
        Grid {
            frames,
            rows: (size.height / self.patch) as usize,
            columns: (size.width / self.patch) as usize,
        }
    }

    /// A picture, resized as Pillow does. It is its own second frame.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for a frame without pixels, with a wrong number of bytes, or far too narrow.
    pub(crate) fn picture(&self, frame: &Frame) -> Result<Visual, EncodeError> {
        let (mut size, mut rgb) = (checked(frame)?, frame.rgb.to_vec());
        for rule in &self.pictures {
            let to = rule.of(size)?;
            if to != size {
                (size, rgb) = (to, resize(&rgb, size, to, Resampling::Bicubic));
            }
        }
        let grid = self.grid(1, size);
        let mut patches = Vec::new();
        self.cut(&[&rgb, &rgb], grid, &mut patches);
        Ok(Visual { kind: VisualKind::Picture, grid, patches, times: Vec::new(), step: 0.0 })
    }

    /// A video of `frames`, at least one and all of one size, resized as torchvision does. The last frame counts twice
    /// if their number is odd. `per_second`: sampled frames per second.
    ///
    /// # Errors
    /// As [`Patching::picture`].
    pub(crate) fn video(
        &self,
        frames: &[&Frame],
        times: Vec<f64>,
        per_second: f64,
    ) -> Result<Visual, EncodeError> {
        let bad = |why: &str| EncodeError::BadInput(why.into());
        let first = frames.first().ok_or_else(|| bad("a video without frames"))?;
        let (from, mut times) = (checked(first)?, times);
        let to = self.frames.of(from, frames.len())?;
        let mut resized = Vec::with_capacity(frames.len() + 1);
        for frame in frames {
            if checked(frame)? != from {
                return Err(bad("frames of one video that differ in size"));
            }
            resized.push(resize_with_short_weights(&frame.rgb, from, to, Resampling::Bicubic));
        }
        let last = times.last().copied().unwrap_or_default();
        times.resize(frames.len().next_multiple_of(FRAMES_PER_PATCH), last);
        let grid = self.grid(frames.len().div_ceil(FRAMES_PER_PATCH), to);
        let mut patches = Vec::new();
        for pair in resized.chunks(FRAMES_PER_PATCH) {
            let (first, last) = (&pair[0], &pair[pair.len() - 1]);
            self.cut(&[first, last], grid, &mut patches);
        }
        let step = FRAMES_PER_PATCH as f64 / per_second;
        Ok(Visual { kind: VisualKind::Video, grid, patches, times, step })
    }

    /// Appends the patches of two frames: patch by patch in the tower's order; channel, frame, row, column within.
    fn cut(&self, frames: &[&Vec<u8>; FRAMES_PER_PATCH], grid: Grid, patches: &mut Vec<f32>) {
        let (side, width) = (self.patch as usize, grid.columns * self.patch as usize);
        patches.reserve(grid.area() * 3 * FRAMES_PER_PATCH * side * side);
        let values: [[f32; 256]; 3] = std::array::from_fn(|channel| {
            std::array::from_fn(|byte| (byte as f32 / 255.0 - self.mean[channel]) / self.std[channel])
        });
        for [row, column] in grid.places(self.merge as usize) {
            for (channel, values) in values.iter().enumerate() {
                for frame in frames {
                    for y in row * side..(row + 1) * side {
                        let start = (y * width + column * side) * 3 + channel;
                        let line = frame[start..].iter().step_by(3).take(side);
                        patches.extend(line.map(|byte| values[usize::from(*byte)]));
                    }
                }
            }
        }
    }
}

/// The size of a frame whose bytes fit it.
fn checked(frame: &Frame) -> Result<Pixels, EncodeError> {
    let expected = frame.width as usize * frame.height as usize * 3;
    if expected == 0 || frame.rgb.len() != expected {
        let (width, height, bytes) = (frame.width, frame.height, frame.rgb.len());
        return Err(EncodeError::BadInput(format!("{bytes} bytes are no {width}x{height} picture").into()));
    }
    Ok(Pixels { width: frame.width, height: frame.height })
}

/// Reads the fields of a preprocessor_config.json.
///
/// # Errors
/// What is wrong, in plain words.
pub(super) fn parse(json: &[u8]) -> Result<PreprocessorFile, Cause> {
    let value: Value = serde_json::from_slice(json)?;
    Ok(PreprocessorFile::deserialize(value)?)
}
