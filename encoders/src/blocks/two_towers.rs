//! A picture tower and a text tower with a common embedding space, as an [`Encoder`]; shared by all two-tower families.
//!
//! The raw vector of a clip is the mean of its frames' unit vectors, or the tower's vector if frames attend to each
//! other. The raw vector of a text is its projected vector. A composed query is a modification text that the text tower
//! reads with cross-attention to one frame of the clip.

use std::sync::Arc;

use candle_core::Tensor;

use super::bert::Bert;
use super::checks::{check_features, check_ids, failed};
use super::pictures::Pictures;
use super::pixels::PixelBatch;
use super::text_transformer::{Reading, TextTransformer};
use super::transformer::Linear;
use crate::preprocess::Preprocessing;
use crate::sample::Sampler;
use crate::{Clip, EncodeError, Encoder, Frame, Input, Source, Space};

/// Default number of frames in one pass through the vision tower: bounds memory for any batch.
const FRAMES_PER_PASS: usize = 32;

/// Both towers; all encoders of one device share them.
#[derive(Debug)]
pub(crate) struct TwoTowers {
    pub(crate) vision: Pictures,
    pub(crate) text: Texts,
}

/// The text tower.
#[derive(Debug)]
pub(crate) enum Texts {
    /// A CLIP-like tower.
    Transformer(TextTransformer),
    /// BERT; its first token goes through a projection to `dim` values.
    Bert {
        tower: Arc<Bert>,
        projection: Linear,
        dim: usize,
        /// The first token of a modification text, in a model for composed queries. Cross-attention then reads tokens
        /// of the vision tower's hidden size.
        composed_token: Option<u32>,
    },
}

impl TwoTowers {
    /// The sampler for a composed query's frames; `None`: the model takes no composed queries.
    pub(crate) fn composed_frames(&self) -> Option<Sampler> {
        let Texts::Bert { composed_token: Some(_), .. } = &self.text else { return None };
        Some(Sampler::Spread { frames: 1 })
    }

    /// Encodes composed queries, one picture and one text each, to (queries, dim). The ids must have passed
    /// [`check_ids`]. `None`: the model takes no composed queries.
    fn composed(&self, pixels: &PixelBatch, texts: &[&[u32]]) -> Option<candle_core::Result<Tensor>> {
        let Pictures::Transformer(vision) = &self.vision else { return None };
        let Texts::Bert { tower, projection, composed_token: Some(first), .. } = &self.text else {
            return None;
        };
        let texts: Vec<Vec<u32>> =
            texts.iter().map(|ids| [&[*first], ids.get(1..).unwrap_or_default()].concat()).collect();
        let texts: Vec<&[u32]> = texts.iter().map(|ids| &ids[..]).collect();
        let pictures = vision.hidden(pixels);
        Some(pictures.and_then(|pictures| projection.forward(&tower.grounded(&texts, &pictures)?)))
    }
}

impl Texts {
    /// Size of the vocabulary.
    pub(crate) fn vocabulary(&self) -> usize {
        match self {
            Texts::Transformer(tower) => tower.config().vocabulary,
            Texts::Bert { tower, .. } => tower.vocabulary(),
        }
    }

    /// Longest text in tokens, specials included.
    pub(crate) fn longest(&self) -> usize {
        match self {
            Texts::Transformer(tower) => tower.config().longest,
            Texts::Bert { tower, .. } => tower.positions(),
        }
    }

    /// Values per vector.
    pub(crate) fn dim(&self) -> usize {
        match self {
            Texts::Transformer(tower) => tower.config().dim,
            Texts::Bert { dim, .. } => *dim,
        }
    }

    /// Whether the tower reads `ids` at the last position; always true for BERT, which reads the first.
    pub(crate) fn ends(&self, ids: &[u32]) -> bool {
        match self {
            Texts::Transformer(tower) => tower.config().reading.at(ids) + 1 == ids.len(),
            Texts::Bert { .. } => true,
        }
    }

    /// Whether the tower pads every text to the longest.
    fn pads(&self) -> bool {
        matches!(self, Texts::Transformer(tower) if matches!(tower.config().reading, Reading::LastOfPadded { .. }))
    }

    /// Cost of a text of `tokens` tokens, padding included.
    fn cost(&self, tokens: usize) -> usize {
        match self {
            Texts::Transformer(tower) => tower.cost(tokens),
            Texts::Bert { .. } => tokens,
        }
    }

    /// Floating-point operations of a text of `tokens` tokens, if known.
    fn operations(&self, tokens: usize) -> Option<f64> {
        match self {
            Texts::Transformer(tower) => Some(tower.operations(tokens)),
            Texts::Bert { .. } => None,
        }
    }

    /// Encodes texts to (texts, dim). The ids must have passed [`check_ids`].
    fn forward(&self, texts: &[&[u32]]) -> candle_core::Result<Tensor> {
        match self {
            Texts::Transformer(tower) => tower.forward(texts),
            Texts::Bert { tower, projection, .. } => projection.forward(&tower.forward(texts)?),
        }
    }
}

/// An [`Encoder`] over two towers.
#[derive(Clone)]
pub(crate) struct TwoTowersEncoder {
    towers: Arc<TwoTowers>,
    space: Space,
    preprocessing: Preprocessing,
    frames_per_pass: usize,
}

impl TwoTowersEncoder {
    pub(crate) fn new(towers: Arc<TwoTowers>, space: Space, preprocessing: Preprocessing) -> Self {
        TwoTowersEncoder { towers, space, preprocessing, frames_per_pass: FRAMES_PER_PASS }
    }

    fn texts(&self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let tower = &self.towers.text;
        // A tower that pads accepts a text without tokens: it is all padding.
        let checked: Vec<&[u32]> =
            texts.iter().copied().filter(|ids| !(tower.pads() && ids.is_empty())).collect();
        check_ids(&checked, tower.vocabulary(), tower.longest())?;
        let vectors = tower.forward(texts).and_then(|vectors| vectors.to_vec2());
        vectors.map_err(failed)
    }

    /// Raw vectors of clips whose frames are encoded one by one.
    fn clips(&self, clips: &[&Clip]) -> Result<Vec<Vec<f32>>, EncodeError> {
        if clips.iter().any(|clip| clip.frames.is_empty()) {
            return Err(EncodeError::BadInput("a clip without frames".into()));
        }
        if let Some(frames) = self.towers.vision.frames() {
            return self.clips_of(frames, clips);
        }
        let frames: Vec<&Frame> = clips.iter().flat_map(|clip| &clip.frames).collect();
        let mut units = self.frames(&frames)?.into_iter();
        let of_clip = |clip: &&Clip| units.by_ref().take(clip.frames.len()).collect::<Vec<_>>();
        Ok(clips.iter().map(of_clip).map(|units| mean(&units, self.space.dim)).collect())
    }

    /// Raw vectors of clips whose frames attend to each other; `frames` frames of each clip are sampled.
    fn clips_of(&self, frames: usize, clips: &[&Clip]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut vectors = Vec::with_capacity(clips.len());
        for chunk in clips.chunks((self.frames_per_pass / frames).max(1)) {
            // The sampler repeats frames of short clips, so the count is always `frames`.
            let picked = |clip: &&'_ Clip| (Sampler::Spread { frames }).pick(&vec![0; clip.frames.len()], 0);
            let frames = chunk.iter().flat_map(|clip| picked(clip).into_iter().map(|at| &clip.frames[at]));
            let pixels = PixelBatch::new(&self.preprocessing, &frames.collect::<Vec<_>>())?;
            let rows = self.towers.vision.forward(&pixels).and_then(|rows| rows.to_vec2::<f32>());
            vectors.extend(rows.map_err(failed)?);
        }
        Ok(vectors)
    }

    /// Raw vectors of composed queries.
    fn composed(&self, queries: &[(&Source, &[u32])]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let sampler = self.towers.composed_frames().ok_or_else(|| self.unsupported("composed queries"))?;
        let texts: Vec<&[u32]> = queries.iter().map(|(_, ids)| *ids).collect();
        check_ids(&texts, self.towers.text.vocabulary(), self.towers.text.longest())?;
        let mut vectors = Vec::with_capacity(queries.len());
        for (queries, texts) in queries.chunks(self.frames_per_pass).zip(texts.chunks(self.frames_per_pass)) {
            let frames = queries.iter().map(|(source, _)| self.frame_of(source, sampler));
            let pixels = PixelBatch::new(&self.preprocessing, &frames.collect::<Result<Vec<_>, _>>()?)?;
            let rows = self.towers.composed(&pixels, texts);
            let rows = rows.ok_or_else(|| self.unsupported("composed queries"))?;
            vectors.extend(rows.and_then(|rows| rows.to_vec2()).map_err(failed)?);
        }
        Ok(vectors)
    }

    /// The frame of the clip that a composed query attends to.
    fn frame_of<'a>(&self, query: &'a Source, sampler: Sampler) -> Result<&'a Frame, EncodeError> {
        let Source::Frames(clip) = query else {
            return Err(self.unsupported("composed queries whose clip is a vector"));
        };
        let times: Vec<i64> = clip.frames.iter().map(|frame| frame.time_ms).collect();
        let at = sampler.pick(&times, 0).first().copied();
        let frame = at.and_then(|at| clip.frames.get(at));
        frame.ok_or_else(|| EncodeError::BadInput("a clip without frames".into()))
    }

    fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError::Unsupported { space: self.space.name.clone(), what }
    }

    /// The unit vector of each frame.
    fn frames(&self, frames: &[&Frame]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut units = Vec::with_capacity(frames.len());
        for chunk in frames.chunks(self.frames_per_pass) {
            let pixels = PixelBatch::new(&self.preprocessing, chunk)?;
            let vectors = self.towers.vision.forward(&pixels).and_then(|vectors| vectors.to_vec2::<f32>());
            for vector in vectors.map_err(failed)? {
                units.push(unit(vector)?);
            }
        }
        Ok(units)
    }
}

fn unit(mut vector: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm == 0.0 || !norm.is_finite() {
        return Err(EncodeError::BadInput(format!("a frame's vector has norm {norm}").into()));
    }
    vector.iter_mut().for_each(|value| *value /= norm);
    Ok(vector)
}

fn mean<V: AsRef<[f32]>>(rows: &[V], width: usize) -> Vec<f32> {
    let mut sum = vec![0_f32; width];
    for row in rows {
        sum.iter_mut().zip(row.as_ref()).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|sum| *sum /= rows.len() as f32);
    sum
}

impl Encoder for TwoTowersEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        let picture = self.towers.vision.tokens();
        match input {
            Input::Text(tokens) => self.towers.text.cost(tokens.ids.len()),
            Input::Frames(clip) => {
                self.towers.vision.frames().unwrap_or(clip.frames.len()).saturating_mul(picture)
            }
            Input::Frame(_) => picture,
            Input::Features(_) => 1,
            Input::Composed { modification, .. } => picture + self.towers.text.cost(modification.ids.len()),
        }
    }

    fn operations(&self, input: &Input) -> Option<f64> {
        let vision = &self.towers.vision;
        match input {
            Input::Text(tokens) => self.towers.text.operations(tokens.ids.len()),
            Input::Frames(clip) => {
                let frames = vision.frames().unwrap_or(clip.frames.len()) as f64;
                vision.operations().map(|each| frames * each)
            }
            Input::Frame(_) => vision.operations(),
            Input::Features(_) | Input::Composed { .. } => None,
        }
    }

    fn bound_pass(&mut self, cost: usize) {
        self.frames_per_pass = (cost / self.towers.vision.tokens()).max(1);
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let (mut texts, mut clips, mut frames, mut queries) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for input in batch {
            match input {
                Input::Frame(_) | Input::Features(_) if self.space.frame_stage.is_none() => {
                    return Err(self.unsupported("frames one by one"));
                }
                Input::Text(tokens) => texts.push(&tokens.ids[..]),
                Input::Frames(clip) => clips.push(clip),
                Input::Frame(frame) => frames.push(frame),
                Input::Features(rows) => check_features(rows, self.space.dim)?,
                Input::Composed { query, modification } => queries.push((query, &modification.ids[..])),
            }
        }
        let texts = if texts.is_empty() { Vec::new() } else { self.texts(&texts)? };
        let queries = if queries.is_empty() { Vec::new() } else { self.composed(&queries)? };
        let (clips, frames) = (self.clips(&clips)?, self.frames(&frames)?);
        let (mut texts, mut clips, mut frames) = (texts.into_iter(), clips.into_iter(), frames.into_iter());
        let mut queries = queries.into_iter();
        let vectors = batch.iter().map(|input| match input {
            Input::Text(_) => texts.next(),
            Input::Frame(_) => frames.next(),
            Input::Features(rows) => Some(mean(rows, self.space.dim)),
            Input::Frames(_) => clips.next(),
            Input::Composed { .. } => queries.next(),
        });
        let vectors: Option<Vec<_>> = vectors.collect();
        vectors.ok_or_else(|| EncodeError::Failed("fewer vectors than inputs".into()))
    }
}
