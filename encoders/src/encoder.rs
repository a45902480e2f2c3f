//! The interface between model families and the rest of the program: inputs, vectors and embedding spaces.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Cause;
use crate::area::{BadSize, SizeRule};
use crate::device::Precision;
use crate::resize::Resampling;
use crate::sample::Sampler;
use crate::text::Tokens;

/// One decoded picture: `height * width * 3` bytes, RGB, row by row, 0 to 255.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Milliseconds since the first presented frame of the video, rounded down.
    pub time_ms: i64,
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The pixels; shared, because several spaces can use one frame.
    pub rgb: Arc<[u8]>,
}

/// The sampled frames of one span, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// At least one frame.
    pub frames: Vec<Frame>,
}

/// How ffmpeg scales frames: the first step of a model's preprocessing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Scaling {
    /// Size of the scaled frames.
    pub size: FrameSize,
    /// The scaling filter.
    pub resampling: Resampling,
}

/// Bicubic, the most common filter in training.
impl From<FrameSize> for Scaling {
    fn from(size: FrameSize) -> Scaling {
        Scaling { size, resampling: Resampling::Bicubic }
    }
}

/// Size of the decoder's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameSize {
    /// The short side has this many pixels, the long side `floor(short * long / short side)`.
    ShortEdge(u32),
    /// Exactly this size; the aspect ratio is not kept.
    Exact {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Sides and area by a rule of the model's.
    Area(SizeRule),
}

/// One input of an encoder.
#[derive(Debug, Clone)]
pub enum Input {
    /// One window of a text, as ids with special tokens.
    Text(Tokens),
    /// The frames of a span.
    Frames(Clip),
    /// One frame for the frame stage; gives a feature of [`Space::frame_stage`] values.
    Frame(Frame),
    /// The frame stage's features of a span's frames, at least one, in order of time. Gives the same raw vector as
    /// [`Input::Frames`] of these frames.
    Features(Vec<Arc<[f32]>>),
    /// A query video changed by a modification text.
    Composed {
        /// The query video.
        query: Source,
        /// The modification text, as ids with special tokens.
        modification: Tokens,
    },
}

/// The video half of a composed query.
#[derive(Debug, Clone)]
pub enum Source {
    /// Frames to encode.
    Frames(Clip),
    /// The stored raw (not normalised) vector of a span; a space with [`Space::composed_frames`] does not accept it.
    Raw(Vec<f32>),
}

/// The kinds of input that an encoder accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Abilities {
    /// [`Input::Text`].
    pub text: bool,
    /// [`Input::Frames`].
    pub frames: bool,
    /// [`Input::Composed`], with a trained fusion head.
    pub composed: bool,
}

/// One embedding space. Vectors of different spaces are never compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Space {
    /// 64 hex digits: SHA-256 over weights, family and its version, preprocessing, sampler, pooling.
    pub id: String,
    /// Readable name: the model's short name and the first six digits of the id, e.g. `tiny-3fa9c1`.
    pub name: String,
    /// The model as the user named it.
    pub model: String,
    /// The model family, e.g. `clip`.
    pub family: String,
    /// Values per vector.
    pub dim: usize,
    /// The rule that picks the frames of a span.
    pub sampler: Sampler,
    /// The decoder's scaling of these frames.
    pub scaling: Scaling,
    /// Longest text in tokens, specials included; 0 if the space takes no text.
    pub max_text_tokens: usize,
    /// Whether the order of frames matters; if so, moments inside clips get their own vectors.
    pub temporal: bool,
    /// Values of one frame's feature, for families that encode each frame alone first. Stored features allow cutting a
    /// video again without decoding. `None`: no such stage; every new span is decoded.
    pub frame_stage: Option<usize>,
    /// The accepted kinds of input.
    pub can: Abilities,
    /// The sampler for the frames of a composed query's clip. `None`: the query uses the clip's raw vector, so a stored
    /// span needs no decoding.
    pub composed_frames: Option<Sampler>,
    /// The weights' training data.
    pub trained_on: TrainedOn,
    /// Precision of the layers inside the towers.
    pub precision: Precision,
}

/// Training data of the weights, as far as it affects trust in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainedOn {
    /// The weights are seeded noise.
    Nothing,
    /// Rendered drawings of sports; real footage is outside this domain.
    RenderedClips,
    /// Unknown.
    #[default]
    Unstated,
}

/// One model on one device; one thread owns it.
pub trait Encoder: Send {
    /// The space of its vectors.
    fn space(&self) -> &Space;

    /// Cost of `input` in a batch, in tokens (text tokens or patches of frames).
    fn cost(&self, input: &Input) -> usize;

    /// Floating-point operations for `input`: two per multiplication in matrix products. Norms, activations and
    /// preprocessing are excluded. `None` if the family does not compute them.
    fn operations(&self, input: &Input) -> Option<f64> {
        let _ = input;
        None
    }

    /// Limits each forward pass to inputs with this total [`Encoder::cost`], or a single input. Larger batches take
    /// several passes. Families with small passes ignore the limit.
    fn bound_pass(&mut self, cost: usize) {
        let _ = cost;
    }

    /// Another encoder on the same weights, with the same pass size. Loads nothing; both give the same vectors.
    fn share(&self) -> Box<dyn Encoder>;

    /// One raw (not normalised) vector of `space().dim` values per input, in order; for [`Input::Frame`] its feature.
    ///
    /// The caller normalises. For CLIP-like families a clip's raw vector is the mean of its frames' unit vectors. Means
    /// over several clips, weighted by frames, therefore stay exact.
    ///
    /// # Errors
    /// [`EncodeError::Unsupported`] for an input that [`Space::can`] excludes; [`EncodeError::Failed`] if the device
    /// fails.
    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError>;

    /// The same vectors as [`Encoder::encode`]. Families whose inputs take long call `pause` between the steps of their
    /// layers; other inputs are encoded by a [`Encoder::share`] of this encoder meanwhile.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    fn encode_pausing(&mut self, batch: &[Input], pause: &dyn Fn()) -> Result<Vec<Vec<f32>>, EncodeError> {
        let _ = pause;
        self.encode(batch)
    }
}

impl From<BadSize> for EncodeError {
    fn from(error: BadSize) -> Self {
        EncodeError::BadInput(error.to_string().into())
    }
}

/// Why encoding failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EncodeError {
    /// Too many requests are waiting; the caller should retry later.
    #[error("{capacity} inputs are already waiting; try again later")]
    Overloaded {
        /// The most waiting requests.
        capacity: usize,
    },
    /// The service is stopping and takes no new work.
    #[error("the encoder is closed")]
    Closed,
    /// The space does not accept this kind of input; the caller should choose another space.
    #[error("space {space} does not encode {what}")]
    Unsupported {
        /// The space's readable name.
        space: String,
        /// The requested kind, e.g. `composed queries`.
        what: &'static str,
    },
    /// The input can't be encoded (no frames, too many tokens, a vector of norm 0); the caller's fault.
    #[error("the input can't be encoded: {0}")]
    BadInput(#[source] Cause),
    /// The model did not finish in time, and another worker took its place; ours. Another attempt may succeed.
    #[error("the model did not finish a batch within {seconds} s; another worker took its place")]
    Stuck {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The model or its device failed; ours.
    #[error("the encoder failed: {0}")]
    Failed(#[source] Cause),
}
