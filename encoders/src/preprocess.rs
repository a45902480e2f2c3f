//! Preprocessing: decoded frames to a vision model's pixels, by preprocessor_config.json.
//!
//! The pixels equal those of transformers' image processors with Pillow.

use serde::{Deserialize, Serialize};

pub use crate::resize::Resampling;
use crate::resize::{Pixels, resize};
use crate::{Cause, EncodeError, Frame, FrameSize, Scaling};

/// The preprocessing steps of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preprocessing {
    /// Size after resizing, the first step.
    pub size: FrameSize,
    /// Filter of the first step.
    pub resampling: Resampling,
    /// Width and height of the centre crop; a smaller picture gets a black margin.
    pub crop: (u32, u32),
    /// Rounding of the crop's offset.
    #[serde(skip_serializing_if = "Middle::is_down")]
    pub middle: Middle,
    /// Factor for the bytes.
    pub scale: f32,
    /// Subtracted after scaling, per channel.
    pub mean: [f32; 3],
    /// Divisor after subtraction, per channel.
    pub std: [f32; 3],
}

/// Rounding of half an odd number of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Middle {
    /// Down, as transformers' image processors do.
    #[default]
    Down,
    /// To the even number, as torchvision's `CenterCrop` does.
    ToEven,
}

impl Middle {
    /// The default is not serialised, so that existing spaces keep their ids.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
    fn is_down(&self) -> bool {
        *self == Middle::Down
    }

    /// Offset of the crop in pixels of the picture; negative if the picture is smaller.
    fn offset(self, size: u32, crop: u32) -> i64 {
        let lost = i64::from(size) - i64::from(crop);
        // Rounds a cut margin down, and an added margin up.
        let down = lost.div_euclid(2);
        match self {
            Middle::ToEven if lost > 0 && lost % 2 == 1 => down + down % 2,
            Middle::Down | Middle::ToEven => down,
        }
    }
}

/// Longest side after resizing; the crop would drop most of a longer one, so it is refused.
const LONGEST_SIDE: u64 = 65_535;

impl Preprocessing {
    /// The steps that the decoder performs for videos.
    pub fn scaling(&self) -> Scaling {
        Scaling { size: self.size, resampling: self.resampling }
    }

    /// Reads a preprocessor_config.json; missing fields have CLIP's values.
    ///
    /// # Errors
    /// In plain words, what the file asks for that is not supported.
    pub fn from_json(json: &[u8]) -> Result<Self, Cause> {
        Preprocessing::of(serde_json::from_slice(json)?)
    }

    /// Reads a preprocessor_config.json; missing fields have SigLIP's values, which ignore the aspect ratio.
    ///
    /// # Errors
    /// As [`Preprocessing::from_json`].
    pub fn from_siglip_json(json: &[u8]) -> Result<Self, Cause> {
        Preprocessing::from_json_over(
            json,
            serde_json::json!({
                "size": {"height": 224, "width": 224},
                "do_center_crop": false,
                "image_mean": [0.5, 0.5, 0.5],
                "image_std": [0.5, 0.5, 0.5],
            }),
        )
    }

    /// Reads a preprocessor_config.json; missing fields have BLIP's values, which ignore the aspect ratio.
    ///
    /// # Errors
    /// As [`Preprocessing::from_json`].
    pub fn from_blip_json(json: &[u8]) -> Result<Self, Cause> {
        let own = serde_json::json!({"size": {"height": 384, "width": 384}, "do_center_crop": false});
        Preprocessing::from_json_over(json, own)
    }

    /// Reads the file's values. Missing ones come from `defaults`, then from CLIP.
    fn from_json_over(json: &[u8], mut defaults: serde_json::Value) -> Result<Self, Cause> {
        let given: serde_json::Map<_, _> = serde_json::from_slice(json)?;
        defaults.as_object_mut().into_iter().for_each(|all| all.extend(given.clone()));
        Preprocessing::of(serde_json::from_value(defaults)?)
    }

    /// Reads the `preprocess_cfg` of an open_clip_config.json. The default size is `side`; other missing fields have
    /// CLIP's values.
    ///
    /// # Errors
    /// As [`Preprocessing::from_json`].
    pub fn from_open_clip(config: &serde_json::Value, side: u32) -> Result<Self, Cause> {
        let config = OpenClip::deserialize(config)?;
        if config.mode.as_deref().unwrap_or("RGB") != "RGB" {
            return Err("pictures of another mode than RGB".into());
        }
        let (height, width) = match config.size.unwrap_or(OpenClipSize::Number(side)) {
            OpenClipSize::Number(side) => (side, side),
            OpenClipSize::Pair(height, width) => (height, width),
        };
        let size = match config.resize_mode.as_deref().unwrap_or("shortest") {
            "shortest" if height == width => FrameSize::ShortEdge(height),
            "squash" => FrameSize::Exact { width, height },
            mode => return Err(format!("resize_mode {mode} to {width}x{height}").into()),
        };
        // OpenCLIP treats every other value as bicubic.
        let resampling = match config.interpolation.as_deref() {
            Some("bilinear") => Resampling::Bilinear,
            _ => Resampling::Bicubic,
        };
        let clip = Config::default();
        let mean = config.mean.unwrap_or(clip.image_mean);
        let std = config.std.unwrap_or(clip.image_std);
        let (crop, middle, scale) = ((width, height), Middle::ToEven, clip.rescale_factor);
        Preprocessing { size, resampling, crop, middle, scale, mean, std }.checked()
    }

    fn of(config: Config) -> Result<Self, Cause> {
        if !config.do_resize {
            return Err("do_resize is false; frames of any size are not supported".into());
        }
        let size = config.size.as_frame_size()?;
        let crop = match (config.do_center_crop, size) {
            (true, _) => config.crop_size.as_square_or_exact()?,
            (false, FrameSize::Exact { width, height }) => (width, height),
            (false, FrameSize::ShortEdge(_) | FrameSize::Area(_)) => {
                return Err("frames are neither cropped nor resized to an exact size".into());
            }
        };
        let (mean, std) = match config.do_normalize {
            true => (config.image_mean, config.image_std),
            false => ([0.0; 3], [1.0; 3]),
        };
        let scale = if config.do_rescale { config.rescale_factor } else { 1.0 };
        let (resampling, middle) = (resampling(config.resample)?, Middle::Down);
        Preprocessing { size, resampling, crop, middle, scale, mean, std }.checked()
    }

    fn checked(self) -> Result<Self, Cause> {
        let finite = self.mean.iter().chain([&self.scale]).all(|value| value.is_finite());
        if !finite || !self.std.iter().all(|value| value.is_finite() && *value != 0.0) {
            return Err("mean, std or rescale factor is not a usable number".into());
        }
        if self.crop.0 == 0 || self.crop.1 == 0 {
            return Err("size is 0".into());
        }
        Ok(self)
    }

    /// The size of `frame` after resizing, before cropping.
    fn resized(&self, frame: &Frame) -> Result<(u32, u32), EncodeError> {
        let (width, height) = (u64::from(frame.width), u64::from(frame.height));
        let size = match self.size {
            FrameSize::Exact { width, height } => return Ok((width, height)),
            FrameSize::Area(rule) => {
                let to = rule.of(Pixels { width: frame.width, height: frame.height })?;
                return Ok((to.width, to.height));
            }
            FrameSize::ShortEdge(short) if width <= height => {
                (u64::from(short), u64::from(short) * height / width)
            }
            FrameSize::ShortEdge(short) => (u64::from(short) * width / height, u64::from(short)),
        };
        match (u32::try_from(size.0), u32::try_from(size.1)) {
            (Ok(width), Ok(height)) if size.0.max(size.1) <= LONGEST_SIDE => Ok((width, height)),
            _ => Err(EncodeError::BadInput(
                format!("a picture of {width}x{height} pixels is too narrow").into(),
            )),
        }
    }

    /// Appends the model's input for one frame: `[crop.1, crop.0, 3]`, f32, normalised.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for a frame without pixels, with a wrong number of bytes, or far too narrow.
    pub fn append(&self, frame: &Frame, to: &mut Vec<f32>) -> Result<(), EncodeError> {
        let mut bytes = vec![0; 3 * self.crop.0 as usize * self.crop.1 as usize];
        self.crop_into(frame, &mut bytes)?;
        let tables: [[f32; 256]; 3] = std::array::from_fn(|channel| {
            let value = |byte: usize| (byte as f32 * self.scale - self.mean[channel]) / self.std[channel];
            std::array::from_fn(value)
        });
        let from = to.len();
        to.resize(from + bytes.len(), 0.0);
        let pixels = to[from..].as_chunks_mut::<3>().0.iter_mut().zip(bytes.as_chunks::<3>().0);
        for (values, bytes) in pixels {
            *values = std::array::from_fn(|channel| tables[channel][usize::from(bytes[channel])]);
        }
        Ok(())
    }

    /// Writes one frame, resized and cropped, to `into`: `[crop.1, crop.0, 3]`, all zeros before.
    ///
    /// # Errors
    /// As [`Preprocessing::append`].
    pub(crate) fn crop_into(&self, frame: &Frame, into: &mut [u8]) -> Result<(), EncodeError> {
        let expected = frame.width as usize * frame.height as usize * 3;
        if expected == 0 || frame.rgb.len() != expected {
            let (width, height, bytes) = (frame.width, frame.height, frame.rgb.len());
            return Err(EncodeError::BadInput(
                format!("{bytes} bytes are no {width}x{height} picture").into(),
            ));
        }
        let (width, height) = self.resized(frame)?;
        if (width, height) == (frame.width, frame.height) {
            self.crop(&frame.rgb, width, height, into);
            return Ok(());
        }
        let from = Pixels { width: frame.width, height: frame.height };
        let resized = resize(&frame.rgb, from, Pixels { width, height }, self.resampling);
        self.crop(&resized, width, height, into);
        Ok(())
    }

    /// Copies the rows and columns that both the picture and the crop have.
    fn crop(&self, rgb: &[u8], width: u32, height: u32, into: &mut [u8]) {
        let shared = |size: u32, crop: u32| {
            let offset = self.middle.offset(size, crop);
            // The first one of the picture, of the crop, and their number.
            let (first, margin) = (offset.max(0) as usize, (-offset).max(0) as usize);
            (first, margin, (size as usize - first).min(crop as usize - margin))
        };
        let ((left, right_by, columns), (top, down_by, rows)) =
            (shared(width, self.crop.0), shared(height, self.crop.1));
        for row in 0..rows {
            let from = ((top + row) * width as usize + left) * 3;
            let to = ((down_by + row) * self.crop.0 as usize + right_by) * 3;
            into[to..to + 3 * columns].copy_from_slice(&rgb[from..from + 3 * columns]);
        }
    }
}

/// Pillow's numbers.
fn resampling(number: u32) -> Result<Resampling, Cause> {
    match number {
        0 => Ok(Resampling::Nearest),
        1 => Ok(Resampling::Lanczos),
        2 => Ok(Resampling::Bilinear),
        3 => Ok(Resampling::Bicubic),
        4 => Ok(Resampling::Box),
        5 => Ok(Resampling::Hamming),
        other => Err(format!("resample {other} is not one of 0 to 5").into()),
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    do_resize: bool,
    size: Size,
    resample: u32,
    do_center_crop: bool,
    crop_size: Size,
    do_rescale: bool,
    rescale_factor: f32,
    do_normalize: bool,
    image_mean: [f32; 3],
    image_std: [f32; 3],
}

impl Default for Config {
    fn default() -> Self {
        Config {
            do_resize: true,
            size: Size::Number(224),
            resample: 3,
            do_center_crop: true,
            crop_size: Size::Number(224),
            do_rescale: true,
            rescale_factor: 1.0 / 255.0,
            do_normalize: true,
            image_mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
            image_std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
        }
    }
}

/// The `preprocess_cfg` of an open_clip_config.json.
#[derive(Deserialize)]
struct OpenClip {
    size: Option<OpenClipSize>,
    mode: Option<String>,
    mean: Option<[f32; 3]>,
    std: Option<[f32; 3]>,
    interpolation: Option<String>,
    resize_mode: Option<String>,
}

/// One side of a square, or height and width.
#[derive(Deserialize)]
#[serde(untagged)]
enum OpenClipSize {
    Number(u32),
    Pair(u32, u32),
}

/// Both common layouts: a number, or an object.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Size {
    Number(u32),
    Short { shortest_edge: u32 },
    Exact { width: u32, height: u32 },
    Other(serde_json::Value),
}

impl Size {
    fn as_frame_size(&self) -> Result<FrameSize, Cause> {
        match *self {
            Size::Number(0) | Size::Short { shortest_edge: 0 } => Err("size is 0".into()),
            Size::Number(short) | Size::Short { shortest_edge: short } => Ok(FrameSize::ShortEdge(short)),
            Size::Exact { width, height } if width > 0 && height > 0 => {
                Ok(FrameSize::Exact { width, height })
            }
            ref other => Err(format!("size {} is not supported", other.json()).into()),
        }
    }

    fn as_square_or_exact(&self) -> Result<(u32, u32), Cause> {
        match *self {
            Size::Number(side) | Size::Short { shortest_edge: side } if side > 0 => Ok((side, side)),
            Size::Exact { width, height } if width > 0 && height > 0 => Ok((width, height)),
            ref other => Err(format!("crop_size {} is not supported", other.json()).into()),
        }
    }

    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(width: u32, height: u32, byte: impl Fn(u32, u32) -> u8) -> Frame {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let rgb: Vec<u8> = pixels.flat_map(|(x, y)| [byte(x, y), 0, 255]).collect();
        Frame { time_ms: 0, width, height, rgb: rgb.into() }
    }

    /// Leaves bytes unchanged: scale 1, mean 0, std 1.
    fn plain(size: FrameSize, crop: (u32, u32)) -> Preprocessing {
        let resampling = Resampling::Bicubic;
        Preprocessing {
            size,
            resampling,
            crop,
            middle: Middle::Down,
            scale: 1.0,
            mean: [0.0; 3],
            std: [1.0; 3],
        }
    }

    /// Checks the red channel of a frame whose red is `10 * row + column`.
    #[track_caller]
    fn check(size: FrameSize, crop: (u32, u32), (width, height): (u32, u32), expected: &[f32]) {
        let frame = frame(width, height, |x, y| (10 * y + x) as u8);
        let mut pixels = vec![7.0];
        plain(size, crop).append(&frame, &mut pixels).unwrap();
        let red: Vec<f32> = pixels[1..].iter().step_by(3).copied().collect();
        assert_eq!((pixels[0], pixels.len(), &red[..]), (7.0, 1 + 3 * expected.len(), expected));
    }

    #[test]
    fn a_frame_of_the_right_size_is_only_cropped() {
        check(FrameSize::ShortEdge(2), (2, 2), (5, 2), &[1.0, 2.0, 11.0, 12.0]);
    }

    #[test]
    fn an_odd_margin_loses_the_larger_half_at_the_end() {
        check(FrameSize::ShortEdge(3), (2, 2), (3, 3), &[0.0, 1.0, 10.0, 11.0]);
    }

    #[test]
    fn an_odd_margin_goes_where_the_reference_has_its_middle() {
        let offsets = |middle: Middle| [30, 31, 32, 33, 35, 37, 39].map(|size| middle.offset(size, 32));
        assert_eq!(offsets(Middle::Down), [-1, -1, 0, 0, 1, 2, 3]);
        assert_eq!(offsets(Middle::ToEven), [-1, -1, 0, 0, 2, 2, 4]);
    }

    #[test]
    fn open_clips_way_of_saying_it_is_read() {
        let read = |json: &str| Preprocessing::from_open_clip(&serde_json::from_str(json).unwrap(), 20);
        let plain = read("{}").unwrap();
        assert_eq!(
            (plain.size, plain.crop, plain.middle),
            (FrameSize::ShortEdge(20), (20, 20), Middle::ToEven)
        );
        let squashed =
            read(r#"{"size": [16, 24], "resize_mode": "squash", "interpolation": "bilinear"}"#).unwrap();
        assert_eq!(squashed.size, FrameSize::Exact { width: 24, height: 16 });
        assert_eq!((squashed.crop, squashed.resampling), ((24, 16), Resampling::Bilinear));
        for refused in
            [r#"{"resize_mode": "longest"}"#, r#"{"size": [16, 24]}"#, r#"{"size": 0}"#, r#"{"mode": "L"}"#]
        {
            assert!(read(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_frame_smaller_than_the_crop_gets_a_black_margin() {
        check(FrameSize::Exact { width: 1, height: 2 }, (3, 2), (1, 2), &[0.0, 0.0, 0.0, 0.0, 10.0, 0.0]);
    }

    #[track_caller]
    fn refused(frame: Frame) {
        let error = plain(FrameSize::ShortEdge(8), (8, 8)).append(&frame, &mut Vec::new());
        assert!(matches!(error, Err(EncodeError::BadInput(_))), "{error:?}");
    }

    #[test]
    fn frames_that_are_no_pictures_are_refused() {
        refused(frame(0, 3, |_, _| 0));
        refused(Frame { width: 2, ..frame(1, 1, |_, _| 0) });
        refused(frame(100_000, 1, |_, _| 0));
    }

    #[track_caller]
    fn reads(json: &str, expected: Result<(FrameSize, (u32, u32)), &str>) {
        let got = Preprocessing::from_json(json.as_bytes()).map(|it| (it.size, it.crop));
        match (got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(got), Err(expected)) => assert!(got.to_string().contains(expected), "{got}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn both_layouts_of_sizes_are_read() {
        reads(r#"{"size": 32, "crop_size": 30}"#, Ok((FrameSize::ShortEdge(32), (30, 30))));
        let json = r#"{"size": {"shortest_edge": 32}, "crop_size": {"height": 28, "width": 30}}"#;
        reads(json, Ok((FrameSize::ShortEdge(32), (30, 28))));
        let json = r#"{"size": {"height": 28, "width": 30}, "do_center_crop": false}"#;
        reads(json, Ok((FrameSize::Exact { width: 30, height: 28 }, (30, 28))));
        reads("{}", Ok((FrameSize::ShortEdge(224), (224, 224))));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        reads(r#"{"do_resize": false}"#, Err("do_resize"));
        reads(r#"{"do_center_crop": false}"#, Err("neither cropped"));
        reads(r#"{"resample": 9}"#, Err("resample 9"));
        reads(r#"{"size": {"longest_edge": 9}}"#, Err("size"));
        reads(r#"{"size": 0}"#, Err("size is 0"));
        reads(r#"{"image_std": [0.0, 1.0, 1.0]}"#, Err("std"));
        reads("[", Err("EOF"));
    }

    #[test]
    fn values_are_scaled_and_normalised_by_channel() {
        let preprocessing = Preprocessing {
            scale: 0.1,
            mean: [1.0, 2.0, 0.5],
            std: [2.0, 4.0, 0.5],
            ..plain(FrameSize::ShortEdge(1), (1, 1))
        };
        let mut pixels = Vec::new();
        preprocessing.append(&frame(1, 1, |_, _| 30), &mut pixels).unwrap();
        let expected = [1.0, -0.5, 50.0];
        assert!(pixels.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{pixels:?}");
    }
}
