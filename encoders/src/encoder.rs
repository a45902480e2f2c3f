//! The seam between model families and everything else: what goes into an encoder, what comes out,
//! and how the space that its vectors live in is described.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Cause;
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
    /// The pixels; shared, so that several spaces can hold one frame.
    pub rgb: Arc<[u8]>,
}

/// The sampled frames of one span, in order of time; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// At least one frame.
    pub frames: Vec<Frame>,
}

/// How frames come out of the decoder: the first step of a model's preprocessing, done by ffmpeg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Scaling {
    /// How large they are.
    pub size: FrameSize,
    /// How pixels between those of the video are made.
    pub resampling: Resampling,
}

/// Bicubic, as most models are trained.
impl From<FrameSize> for Scaling {
    fn from(size: FrameSize) -> Scaling {
        Scaling { size, resampling: Resampling::Bicubic }
    }
}

/// How large frames come out of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameSize {
    /// The short side has this many pixels, the long side `floor(short * long / short side)`.
    ShortEdge(u32),
    /// Squashed to exactly this size; the aspect ratio is not kept.
    Exact {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
    },
}

/// Something to encode.
#[derive(Debug, Clone)]
pub enum Input {
    /// One window of a text, as ids with the special tokens.
    Text(Tokens),
    /// The frames of a span.
    Frames(Clip),
    /// One frame, for the frame stage alone: gives its feature, [`Space::frame_stage`] values.
    Frame(Frame),
    /// What the frame stage made of the frames of a span, in order of time, at least one: gives the same
    /// raw vector as [`Input::Frames`] of these frames.
    Features(Vec<Arc<[f32]>>),
    /// A query video changed by a modification text.
    Composed {
        /// The query video.
        query: Source,
        /// The modification text, as ids with the special tokens.
        modification: Tokens,
    },
}

/// The video half of a composed query.
#[derive(Debug, Clone)]
pub enum Source {
    /// Frames that still need the video encoder.
    Frames(Clip),
    /// The raw (not normalised) vector of a span that was encoded before; nothing to a space that has
    /// [`Space::composed_frames`].
    Raw(Vec<f32>),
}

/// Which inputs an encoder takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Abilities {
    /// [`Input::Text`].
    pub text: bool,
    /// [`Input::Frames`].
    pub frames: bool,
    /// [`Input::Composed`], by a trained fusion head.
    pub composed: bool,
}

/// One embedding space. Vectors of two spaces are never compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Space {
    /// 64 hex digits: SHA-256 over weights, family and its code version, preprocessing, sampler, pooling.
    pub id: String,
    /// Readable name: the model's short name and the first six digits of the id, e.g. `tiny-3fa9c1`.
    pub name: String,
    /// The model as the user named it.
    pub model: String,
    /// The model family, e.g. `clip`.
    pub family: String,
    /// Values per vector.
    pub dim: usize,
    /// Which frames of a span are encoded.
    pub sampler: Sampler,
    /// How the decoder makes them.
    pub scaling: Scaling,
    /// Longest text in tokens, specials included; 0 if the space takes no text.
    pub max_text_tokens: usize,
    /// Whether the order of frames matters, so that moments inside clips get vectors of their own.
    pub temporal: bool,
    /// Values of one frame's feature, for families that look at every frame by itself first: features are
    /// kept, so that a video can be cut again without decoding. `None`: there is no such stage, and every new
    /// span is decoded.
    pub frame_stage: Option<usize>,
    /// What it takes.
    pub can: Abilities,
    /// Which frames of its clip a composed query looks at. `None`: none, it is made from the clip's raw vector, and
    /// that of a stored span needs no decoder.
    pub composed_frames: Option<Sampler>,
    /// What the weights have learnt from.
    pub trained_on: TrainedOn,
    /// In which numbers the layers inside its towers multiply.
    pub precision: Precision,
}

/// What weights have learnt from, as far as it tells how far to trust their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainedOn {
    /// The weights are seeded noise.
    Nothing,
    /// Drawings of sports: real footage means nothing to it.
    RenderedClips,
    /// The model does not say.
    #[default]
    Unstated,
}

/// One model on one device, owned by one thread.
pub trait Encoder: Send {
    /// The space of its vectors.
    fn space(&self) -> &Space;

    /// What `input` takes of a batch's budget, in tokens (text tokens, or patches of frames).
    fn cost(&self, input: &Input) -> usize;

    /// Floating-point operations that `input` takes, two for each multiplication inside a matrix product, by the
    /// model's shape; norms, activations and preprocessing are left out. `None` where the family does not tell.
    fn operations(&self, input: &Input) -> Option<f64> {
        let _ = input;
        None
    }

    /// Has one pass through the model hold inputs of this much [`Encoder::cost`] at most, or a single one; a batch of more
    /// goes in several passes. Families whose passes are always small keep theirs.
    fn bound_pass(&mut self, cost: usize) {
        let _ = cost;
    }

    /// One raw (not normalised) vector of `space().dim` values per input, in order; for [`Input::Frame`] its
    /// feature.
    ///
    /// The caller normalises. For CLIP-type families the raw vector of a clip is the mean of its
    /// frames' unit vectors, so that means over several clips, weighted by frames, stay exact.
    ///
    /// # Errors
    /// [`EncodeError::Unsupported`] for an input that [`Space::can`] rules out; [`EncodeError::Failed`]
    /// when the device fails.
    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError>;
}

/// Why there is no vector.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EncodeError {
    /// Too many requests are waiting; the caller should come back later.
    #[error("{capacity} inputs are already waiting; try again later")]
    Overloaded {
        /// The places that there are.
        capacity: usize,
    },
    /// The service is stopping; nothing new is taken.
    #[error("the encoder is closed")]
    Closed,
    /// The space does not take such an input; the caller should pick another space.
    #[error("space {space} does not encode {what}")]
    Unsupported {
        /// The space's readable name.
        space: String,
        /// What it was asked for, e.g. `composed queries`.
        what: &'static str,
    },
    /// This input can't be encoded (no frames, too many tokens, a vector of norm 0); the caller's fault.
    #[error("the input can't be encoded: {0}")]
    BadInput(#[source] Cause),
    /// The model or its device failed; ours.
    #[error("the encoder failed: {0}")]
    Failed(#[source] Cause),
}
