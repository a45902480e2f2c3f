//! The sports family as an [`Encoder`].

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::config::{Config, TimeModel};
use super::language::PaddedTexts;
use super::parts::Parts;
use crate::blocks::checks::check_features;
use crate::preprocess::Preprocessing;
use crate::sample::spread;
use crate::text::Tokens;
use crate::{Clip, EncodeError, Encoder, Frame, Input, Source, Space};

/// Frames in one pass through the frame encoder; small enough for a core's cache.
pub const FRAMES_PER_PASS: usize = 32;

/// A sports model as an [`Encoder`].
#[derive(Clone)]
pub(crate) struct SportsEncoder {
    model: Arc<Parts>,
    config: Config,
    space: Space,
    preprocessing: Preprocessing,
    device: Device,
}

impl SportsEncoder {
    pub(crate) fn new(
        model: Arc<Parts>,
        config: Config,
        space: Space,
        preprocessing: Preprocessing,
        device: Device,
    ) -> Self {
        SportsEncoder { model, config, space, preprocessing, device }
    }

    fn texts(&self, texts: &[&Tokens]) -> Result<PaddedTexts, EncodeError> {
        for text in texts {
            let (tokens, limit) = (text.ids.len(), self.config.max_position_embeddings);
            if tokens == 0 || tokens > limit {
                return Err(EncodeError::BadInput(
                    format!("{tokens} tokens; the model takes 1 to {limit}").into(),
                ));
            }
            if let Some(id) = text.ids.iter().find(|id| **id as usize >= self.config.vocab_size) {
                return Err(EncodeError::BadInput(format!("the model has no token {id}").into()));
            }
        }
        let texts: Vec<(&[u32], usize)> = texts.iter().map(|text| (&text.ids[..], 0)).collect();
        PaddedTexts::new(&texts, &self.device).map_err(failed)
    }

    /// (clips, dim).
    fn clips(&self, clips: &[&Clip]) -> Result<Tensor, EncodeError> {
        let mut pictures = Pictures::default();
        let mut rows: Vec<u32> = Vec::new();
        for clip in clips {
            if clip.frames.is_empty() {
                return Err(EncodeError::BadInput("a clip without frames".into()));
            }
            let chosen = spread(clip.frames.len(), self.config.frames);
            let chosen: Vec<&Frame> = chosen.into_iter().map(|at| &clip.frames[at]).collect();
            let chosen = match self.config.time {
                TimeModel::Shuffled => shuffled(chosen),
                _ => chosen,
            };
            rows.extend(chosen.into_iter().map(|frame| pictures.number(frame)));
        }
        let features = self.features(&pictures.frames)?;
        let rows = Tensor::new(rows, &self.device).and_then(|rows| features.index_select(&rows, 0));
        self.ordered(&rows.map_err(failed)?, clips.len())
    }

    /// Encodes frame features (clips * frames, width) to (clips, dim).
    fn ordered(&self, features: &Tensor, clips: usize) -> Result<Tensor, EncodeError> {
        let encoded = features
            .reshape((clips, self.config.frames, self.config.width))
            .and_then(|features| self.model.clips.forward(&features));
        Ok(encoded.map_err(failed)?.clips)
    }

    /// Encodes stored frame features, one list per clip, to (clips, dim).
    fn spans(&self, spans: &[&Vec<Arc<[f32]>>]) -> Result<Tensor, EncodeError> {
        let (frames, width) = (self.config.frames, self.config.width);
        let mut values = Vec::with_capacity(spans.len() * frames * width);
        for rows in spans {
            check_features(rows, width)?;
            values.extend(spread(rows.len(), frames).into_iter().flat_map(|at| rows[at].iter().copied()));
        }
        let features = Tensor::from_vec(values, (spans.len() * frames, width), &self.device);
        self.ordered(&features.map_err(failed)?, spans.len())
    }

    /// (frames, width).
    fn features(&self, frames: &[&Frame]) -> Result<Tensor, EncodeError> {
        let mut parts = Vec::new();
        for chunk in frames.chunks(FRAMES_PER_PASS) {
            let pixels = pixels(&self.preprocessing, chunk, &self.device)?;
            parts.push(self.model.frames.forward(&pixels).map_err(failed)?);
        }
        Tensor::cat(&parts, 0).map_err(failed)
    }

    fn composed(&self, queries: &[(&Source, &Tokens)]) -> Result<Tensor, EncodeError> {
        let clips: Vec<&Clip> = queries.iter().filter_map(|(source, _)| clip_of(source)).collect();
        let mut encoded = match clips.is_empty() {
            true => Vec::new(),
            false => vectors(&self.clips(&clips)?)?,
        }
        .into_iter();
        let mut raw = Vec::with_capacity(queries.len() * self.config.dim);
        for (source, _) in queries {
            match source {
                Source::Raw(vector) => raw.extend(self.checked(vector)?),
                Source::Frames(_) => raw.extend(encoded.next().unwrap_or_default()),
            }
        }
        let texts: Vec<&Tokens> = queries.iter().map(|(_, text)| *text).collect();
        let texts = self.texts(&texts)?;
        let fused = Tensor::from_vec(raw, (queries.len(), self.config.dim), &self.device)
            .and_then(|clips| self.model.fusion.forward(&clips, &self.model.text.forward(&texts)?));
        fused.map_err(failed)
    }

    fn checked(&self, raw: &[f32]) -> Result<Vec<f32>, EncodeError> {
        let dim = self.config.dim;
        if raw.len() != dim || !raw.iter().all(|value| value.is_finite()) {
            let found = raw.len();
            return Err(EncodeError::BadInput(
                format!("a vector of {found} values; {dim} finite ones are needed").into(),
            ));
        }
        Ok(raw.to_vec())
    }
}

fn clip_of(source: &Source) -> Option<&Clip> {
    match source {
        Source::Frames(clip) => Some(clip),
        Source::Raw(_) => None,
    }
}

/// Orders frames by a hash of their pixels: an order without temporal information.
pub(crate) fn shuffled(frames: Vec<&Frame>) -> Vec<&Frame> {
    let mut keyed: Vec<(u64, &Frame)> = frames.into_iter().map(|frame| (hash(&frame.rgb), frame)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, frame)| frame).collect()
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The distinct frames of a batch: overlapping moments share frames.
#[derive(Default)]
struct Pictures<'a> {
    frames: Vec<&'a Frame>,
    known: HashMap<(*const u8, u32), u32>,
}

impl<'a> Pictures<'a> {
    fn number(&mut self, frame: &'a Frame) -> u32 {
        let key = (frame.rgb.as_ptr(), frame.width);
        *self.known.entry(key).or_insert_with(|| {
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        })
    }
}

/// The frame encoder's input: (frames, side * side, 3).
///
/// # Errors
/// [`EncodeError::BadInput`] for invalid pictures.
pub fn pixels(
    preprocessing: &Preprocessing,
    frames: &[&Frame],
    device: &Device,
) -> Result<Tensor, EncodeError> {
    let places = preprocessing.crop.0 as usize * preprocessing.crop.1 as usize;
    let mut values = Vec::with_capacity(frames.len() * places * 3);
    for frame in frames {
        preprocessing.append(frame, &mut values)?;
    }
    Tensor::from_vec(values, (frames.len(), places, 3), device).map_err(failed)
}

fn vectors(rows: &Tensor) -> Result<Vec<Vec<f32>>, EncodeError> {
    rows.to_vec2().map_err(failed)
}

fn failed(error: candle_core::Error) -> EncodeError {
    EncodeError::Failed(error.into())
}

impl Encoder for SportsEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        let clip = 17 * self.config.frames;
        match input {
            Input::Text(tokens) => tokens.ids.len(),
            Input::Frames(_) => clip,
            Input::Frame(_) => 17,
            Input::Features(_) => self.config.frames,
            Input::Composed { query: Source::Frames(_), modification } => clip + modification.ids.len(),
            Input::Composed { query: Source::Raw(_), modification } => modification.ids.len(),
        }
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut sorted = Sorted::default();
        batch.iter().for_each(|input| sorted.take(input));
        let mut texts = match sorted.texts.is_empty() {
            true => Vec::new(),
            false => {
                let encoded = self.model.text.forward(&self.texts(&sorted.texts)?);
                vectors(&encoded.map_err(failed)?.aligned)?
            }
        }
        .into_iter();
        let mut clips = all(&sorted.clips, |clips| self.clips(clips))?;
        let mut frames = all(&sorted.frames, |frames| self.features(frames))?;
        let mut spans = all(&sorted.spans, |spans| self.spans(spans))?;
        let mut queries = all(&sorted.queries, |queries| self.composed(queries))?;
        let vectors: Option<Vec<_>> = batch
            .iter()
            .map(|input| match input {
                Input::Text(_) => texts.next(),
                Input::Frames(_) => clips.next(),
                Input::Frame(_) => frames.next(),
                Input::Features(_) => spans.next(),
                Input::Composed { .. } => queries.next(),
            })
            .collect();
        vectors.ok_or_else(|| EncodeError::Failed("fewer vectors than inputs".into()))
    }
}

/// A batch's inputs by kind, each kind in order.
#[derive(Default)]
struct Sorted<'a> {
    texts: Vec<&'a Tokens>,
    clips: Vec<&'a Clip>,
    frames: Vec<&'a Frame>,
    spans: Vec<&'a Vec<Arc<[f32]>>>,
    queries: Vec<(&'a Source, &'a Tokens)>,
}

impl<'a> Sorted<'a> {
    fn take(&mut self, input: &'a Input) {
        match input {
            Input::Text(tokens) => self.texts.push(tokens),
            Input::Frames(clip) => self.clips.push(clip),
            Input::Frame(frame) => self.frames.push(frame),
            Input::Features(rows) => self.spans.push(rows),
            Input::Composed { query, modification } => self.queries.push((query, modification)),
        }
    }
}

/// The vectors of all inputs of one kind, in order.
fn all<T>(
    inputs: &[T],
    encode: impl Fn(&[T]) -> Result<Tensor, EncodeError>,
) -> Result<std::vec::IntoIter<Vec<f32>>, EncodeError> {
    let rows = if inputs.is_empty() { Vec::new() } else { vectors(&encode(inputs)?)? };
    Ok(rows.into_iter())
}
