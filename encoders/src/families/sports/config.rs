//! Dimensions and variants of a sports model, from config.json.

use serde::{Deserialize, Serialize};

use super::operations::ConvPatches;
use crate::{LoadError, TrainedOn};

/// `model_type` in config.json.
pub(crate) const MODEL_TYPE: &str = "reprise-sports";

/// Values of config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Always "reprise-sports".
    pub model_type: String,
    /// Pixels along one side of a frame.
    pub image_size: usize,
    /// Frames per clip, sampled at the middles of equal parts.
    pub frames: usize,
    /// Hidden size.
    pub width: usize,
    /// Hidden size of each block's MLP.
    pub inner: usize,
    /// Attention heads; divides `width`.
    pub heads: usize,
    /// The convolutions before the frame encoder's blocks; the last one has `width` output channels.
    pub stem: Vec<StemLayer>,
    /// Blocks of the frame encoder.
    pub frame_layers: usize,
    /// Blocks of the temporal transformer.
    pub temporal_layers: usize,
    /// Blocks of the text transformer.
    pub text_layers: usize,
    /// Hidden size of the fusion.
    pub fusion_inner: usize,
    /// Values per vector.
    pub dim: usize,
    /// Size of the tokenizer's vocabulary.
    pub vocab_size: usize,
    /// Longest text in tokens, specials included.
    pub max_position_embeddings: usize,
    /// How the features of frames become a clip's vector.
    pub time: TimeModel,
    /// Inputs of a composed query's fusion.
    pub fusion: FusionInputs,
    /// The weights' training data.
    pub trained_on: TrainedOn,
}

/// One convolution of the stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StemLayer {
    /// Side of the kernel in pixels.
    pub kernel: usize,
    /// Stride in pixels.
    pub stride: usize,
    /// Output channels.
    pub channels: usize,
}

impl Default for Config {
    fn default() -> Self {
        let layer = |kernel, stride, channels| StemLayer { kernel, stride, channels };
        Config {
            model_type: MODEL_TYPE.to_owned(),
            image_size: 64,
            frames: 16,
            width: 128,
            inner: 256,
            heads: 4,
            stem: vec![layer(3, 2, 16), layer(3, 2, 32), layer(3, 2, 64), layer(3, 2, 128)],
            frame_layers: 1,
            temporal_layers: 4,
            text_layers: 2,
            fusion_inner: 512,
            dim: 128,
            vocab_size: 1,
            max_position_embeddings: 80,
            time: TimeModel::Ordered,
            fusion: FusionInputs::Both,
            trained_on: TrainedOn::Unstated,
        }
    }
}

/// Upper bound on every number of a configuration, so that a file cannot make the program allocate all memory.
const LARGEST: usize = 1 << 16;

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions.
    pub fn check(&self) -> Result<(), LoadError> {
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.into()));
        let sizes = [self.image_size, self.width, self.inner, self.heads, self.fusion_inner, self.dim];
        let counts = [self.vocab_size, self.max_position_embeddings];
        if sizes.iter().chain(&counts).any(|size| !(1..=LARGEST).contains(size)) {
            return unsupported("a size of 0 or far too large");
        }
        if !self.width.is_multiple_of(self.heads) {
            return unsupported("width is not a multiple of heads");
        }
        if self.image_size > 1024 || !(2..=256).contains(&self.frames) {
            return unsupported("image_size over 1024, or frames outside of 2 to 256");
        }
        if [self.frame_layers, self.temporal_layers, self.text_layers].into_iter().any(|it| it > 100) {
            return unsupported("more than 100 layers");
        }
        if self.time == TimeModel::Mean && self.dim != self.width {
            return unsupported("a mean over frames whose dim is not the width");
        }
        self.check_stem()
    }

    fn check_stem(&self) -> Result<(), LoadError> {
        let mut side = self.image_size;
        for layer in &self.stem {
            let windows = ConvPatches { side, kernel: layer.kernel, stride: layer.stride };
            let usable = (1..=layer.kernel).contains(&layer.stride) && layer.kernel <= side;
            if !usable || !(1..=LARGEST).contains(&layer.channels) {
                return Err(LoadError::Unsupported(
                    "a stem layer whose kernel, stride or channels are out of range".into(),
                ));
            }
            side = windows.out();
        }
        match self.stem.last() {
            Some(last) if last.channels == self.width => Ok(()),
            _ => Err(LoadError::Unsupported("a stem that does not end with width channels".into())),
        }
    }
}

/// How the features of frames become a clip's vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeModel {
    /// A temporal transformer over the frames in order of time.
    Ordered,
    /// The same transformer over frames ordered by their content: a baseline without temporal order.
    Shuffled,
    /// The mean of the frames' features: a baseline without temporal training.
    Mean,
}

/// Inputs of a composed query's fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FusionInputs {
    /// The query video and the modification text.
    Both,
    /// The text alone: a baseline.
    Text,
    /// The video alone: a baseline.
    Video,
}
