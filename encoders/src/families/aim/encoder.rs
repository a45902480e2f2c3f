//! TF-CoVR-Base (arXiv 2506.05274) as an [`Encoder`]: AIM encodes clips. With a text tower and a Combiner, the model
//! also encodes composed queries.
//!
//! A clip's raw vector is AIM's output; a composed query's vector has norm 1. The space takes no plain texts, because
//! the paper trains none.

use std::sync::Arc;

use candle_core::Tensor;

use super::combiner::Combiner;
use super::text::TextTower;
use super::tower::Aim;
use crate::blocks::checks::{check_ids, failed};
use crate::blocks::pixels::PixelBatch;
use crate::preprocess::Preprocessing;
use crate::sample::Sampler;
use crate::{Clip, EncodeError, Encoder, Frame, Input, LoadError, Source, Space};

/// Default number of clips in one pass through AIM: bounds memory for any batch.
const CLIPS_PER_PASS: usize = 4;

/// The parts that all encoders of a device share.
#[derive(Debug)]
pub(super) struct Covr {
    pub(super) aim: Aim,
    pub(super) composition: Option<Composition>,
}

/// A text tower and a Combiner.
#[derive(Debug)]
pub(super) struct Composition {
    text: TextTower,
    combiner: Combiner,
    longest: usize,
}

impl Composition {
    /// `longest`: most tokens of a text.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] if the Combiner's vectors do not have `dim` values.
    pub(super) fn new(
        text: TextTower,
        combiner: Combiner,
        dim: usize,
        longest: usize,
    ) -> Result<Self, LoadError> {
        let takes = combiner.widths().dim;
        if takes != dim {
            let why = format!("the combiner takes vectors of {takes} values, the model gives {dim}");
            return Err(LoadError::Unsupported(why.into()));
        }
        Ok(Composition { text, combiner, longest })
    }

    /// Longest text in tokens, specials included.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Query vectors of `dim` values and norm 1.
    fn forward(&self, videos: &[Vec<f32>], texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, EncodeError> {
        check_ids(texts, self.text.vocabulary(), self.longest)?;
        let composed = || -> candle_core::Result<_> {
            let text = self.text.forward(texts)?;
            let video =
                Tensor::from_vec(videos.concat(), (videos.len(), self.combiner.widths().dim), text.device())?;
            self.combiner.forward(&video, &text)?.to_vec2()
        };
        composed().map_err(failed)
    }
}

/// One TF-CoVR model as an [`Encoder`].
#[derive(Clone)]
pub(super) struct CovrEncoder {
    model: Arc<Covr>,
    space: Space,
    preprocessing: Preprocessing,
    clips_per_pass: usize,
}

impl CovrEncoder {
    pub(super) fn new(model: Arc<Covr>, space: Space, preprocessing: Preprocessing) -> Self {
        CovrEncoder { model, space, preprocessing, clips_per_pass: CLIPS_PER_PASS }
    }

    /// One raw vector per clip.
    fn clips(&self, clips: &[&Clip]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut vectors = Vec::with_capacity(clips.len());
        for chunk in clips.chunks(self.clips_per_pass) {
            let mut frames = Vec::new();
            for clip in chunk {
                frames.extend(self.picked(clip)?);
            }
            let pixels = PixelBatch::new(&self.preprocessing, &frames)?;
            let rows = self.model.aim.forward(&pixels).and_then(|rows| rows.to_vec2::<f32>());
            vectors.extend(rows.map_err(failed)?);
        }
        Ok(vectors)
    }

    /// The frames that the sampler picks; it repeats those of a short clip.
    fn picked<'a>(&self, clip: &'a Clip) -> Result<impl Iterator<Item = &'a Frame> + use<'a>, EncodeError> {
        let frames = self.model.aim.sizes().frames;
        let times: Vec<i64> = clip.frames.iter().map(|frame| frame.time_ms).collect();
        let wanted = Sampler::Middles { frames }.pick(&times, 0);
        if wanted.is_empty() {
            return Err(EncodeError::BadInput("a clip without frames".into()));
        }
        Ok(wanted.into_iter().map(|at| &clip.frames[at]))
    }

    fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError::Unsupported { space: self.space.name.clone(), what }
    }

    /// Checks a vector from a caller.
    fn checked(&self, raw: &[f32]) -> Result<Vec<f32>, EncodeError> {
        if raw.len() != self.space.dim || !raw.iter().all(|value| value.is_finite()) {
            let (got, dim) = (raw.len(), self.space.dim);
            return Err(EncodeError::BadInput(
                format!("{got} values are no vector of {dim} finite values").into(),
            ));
        }
        Ok(raw.to_vec())
    }
}

/// The clip of an input that AIM must encode.
fn footage(input: &Input) -> Option<&Clip> {
    match input {
        Input::Frames(clip) | Input::Composed { query: Source::Frames(clip), .. } => Some(clip),
        _ => None,
    }
}

impl Encoder for CovrEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        let sizes = self.model.aim.sizes();
        let frames = footage(input).map_or(0, |_| sizes.frames * sizes.tokens());
        match input {
            Input::Text(tokens) => tokens.ids.len(),
            Input::Frames(_) | Input::Frame(_) | Input::Features(_) => frames,
            Input::Composed { modification, .. } => frames + modification.ids.len(),
        }
    }

    fn bound_pass(&mut self, cost: usize) {
        let sizes = self.model.aim.sizes();
        self.clips_per_pass = (cost / (sizes.frames * sizes.tokens())).max(1);
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
        for input in batch {
            match input {
                Input::Text(_) => return Err(self.unsupported("plain texts")),
                Input::Frame(_) | Input::Features(_) => return Err(self.unsupported("frames one by one")),
                Input::Composed { .. } if self.model.composition.is_none() => {
                    return Err(self.unsupported("composed queries"));
                }
                _ => {}
            }
        }
        let clips: Vec<&Clip> = batch.iter().filter_map(footage).collect();
        let mut seen = self.clips(&clips)?.into_iter();
        let mut vectors = Vec::with_capacity(batch.len());
        for input in batch {
            vectors.push(match input {
                Input::Composed { query: Source::Raw(raw), .. } => self.checked(raw)?,
                _ => seen.next().ok_or_else(|| EncodeError::Failed("fewer vectors than clips".into()))?,
            });
        }
        self.compose(batch, &mut vectors)?;
        Ok(vectors)
    }
}

impl CovrEncoder {
    /// Replaces the video vectors of the composed inputs in `batch` by their query vectors.
    fn compose(&self, batch: &[Input], vectors: &mut [Vec<f32>]) -> Result<(), EncodeError> {
        let Some(composition) = &self.model.composition else { return Ok(()) };
        let (mut places, mut videos, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (at, input) in batch.iter().enumerate() {
            if let Input::Composed { modification, .. } = input {
                places.push(at);
                videos.push(vectors[at].clone());
                texts.push(&modification.ids[..]);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        for (at, query) in places.into_iter().zip(composition.forward(&videos, &texts)?) {
            vectors[at] = query;
        }
        Ok(())
    }
}
