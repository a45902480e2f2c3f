//! CLIP (arXiv 2103.00020) in Hugging Face's layout: a vision and a text tower into one space.
//!
//! The raw vector of a clip is the mean of its frames' unit vectors; that of a text is its projected
//! vector.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::text_tower::check_ids;
use super::transformer::{Activation, LayerNorm, Shape, Transformer, causal_mask, tensor};
use crate::preprocess::Preprocessing;
use crate::weights::Weights;
use crate::{Clip, EncodeError, Encoder, Frame, Input, LoadError, Space};

/// Frames in one pass through the vision tower: bounds memory, whatever the batch.
const FRAMES_PER_PASS: usize = 32;

/// What config.json says; what it leaves out is as in transformers' `CLIPConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) projection_dim: usize,
    pub(crate) text_config: TextConfig,
    pub(crate) vision_config: VisionConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TextConfig {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) max_position_embeddings: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
    pub(crate) bos_token_id: Option<u32>,
    pub(crate) eos_token_id: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VisionConfig {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) num_channels: usize,
    pub(crate) image_size: usize,
    pub(crate) patch_size: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl Default for Config {
    fn default() -> Self {
        let (text_config, vision_config) = (TextConfig::default(), VisionConfig::default());
        Config { projection_dim: 512, text_config, vision_config }
    }
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig {
            vocab_size: 49_408,
            hidden_size: 512,
            intermediate_size: 2048,
            num_hidden_layers: 12,
            num_attention_heads: 8,
            max_position_embeddings: 77,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            bos_token_id: Some(49_406),
            eos_token_id: 49_407,
        }
    }
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig {
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            num_channels: 3,
            image_size: 224,
            patch_size: 32,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
        }
    }
}

/// Files with this id were made before the id was right: there the end of a text is its largest id.
const LEGACY_EOS: u32 = 2;

impl TextConfig {
    /// Where a text's vector is read off: the first end-of-text token, as transformers'
    /// `CLIPTextModel` finds it.
    pub(crate) fn end_of_text(&self, ids: &[u32]) -> usize {
        let end = if self.eos_token_id == LEGACY_EOS { ids.iter().max() } else { Some(&self.eos_token_id) };
        ids.iter().position(|id| Some(id) == end).unwrap_or(0)
    }

    /// What a tokenizer that adds no special tokens is to put around a text.
    pub(crate) fn specials(&self) -> crate::text::Specials {
        let legacy = self.eos_token_id == LEGACY_EOS;
        let known = |id: Option<u32>| id.filter(|_| !legacy);
        crate::text::Specials { bos: known(self.bos_token_id), eos: known(Some(self.eos_token_id)) }
    }

    /// # Errors
    /// [`LoadError::Unsupported`] for numbers that make no tower.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        self.shape().check()?;
        if self.vocab_size == 0 || self.max_position_embeddings == 0 {
            return Err(LoadError::Unsupported("a vocab_size or max_position_embeddings of 0".to_owned()));
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        Shape {
            width: self.hidden_size,
            inner: self.intermediate_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            activation: self.hidden_act,
            epsilon: self.layer_norm_eps,
        }
    }
}

impl VisionConfig {
    fn shape(&self) -> Shape {
        Shape {
            width: self.hidden_size,
            inner: self.intermediate_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            activation: self.hidden_act,
            epsilon: self.layer_norm_eps,
        }
    }

    /// Patches along one side.
    fn grid(&self) -> usize {
        self.image_size / self.patch_size
    }
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for numbers that make no model.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.to_owned()));
        let (text, vision) = (&self.text_config, &self.vision_config);
        text.check()?;
        vision.shape().check()?;
        if vision.num_channels != 3 {
            return unsupported("num_channels other than 3");
        }
        if vision.patch_size == 0 || vision.grid() == 0 {
            return unsupported("a patch_size of 0 or over image_size");
        }
        if self.projection_dim == 0 {
            return unsupported("a projection_dim of 0");
        }
        Ok(())
    }
}

/// Both towers; shared by the encoders of one device.
#[derive(Debug)]
pub(crate) struct Model {
    config: Config,
    vision: Vision,
    text: Text,
    device: Device,
}

#[derive(Debug)]
struct Vision {
    /// (3 * patch * patch, width).
    patches: Tensor,
    /// (1, 1, width).
    class: Tensor,
    /// (patches + 1, width).
    positions: Tensor,
    norm_before: LayerNorm,
    blocks: Transformer,
    norm_after: LayerNorm,
    /// (width, dim).
    projection: Tensor,
}

/// The text tower alone.
#[derive(Debug)]
pub(super) struct Text {
    /// (vocabulary, width).
    tokens: Tensor,
    /// (longest text, width).
    positions: Tensor,
    blocks: Transformer,
    norm: LayerNorm,
    /// (width, dim).
    projection: Tensor,
}

impl Model {
    /// Reads both towers; `config` must have passed [`Config::check`].
    pub(crate) fn load(
        config: Config,
        weights: &Weights,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let vision = Vision::load(&config, weights, device)?;
        let text = Text::load(&config.text_config, config.projection_dim, weights, device)?;
        Ok(Model { config, vision, text, device: device.clone() })
    }

    /// (frames, dim) of (frames, 3, side, side) pixels, frame after frame in one slice.
    fn vision(&self, pixels: &[f32]) -> Result<Tensor> {
        let config = &self.config.vision_config;
        let (grid, patch) = (config.grid(), config.patch_size);
        let patches = patchify(pixels, config.image_size, patch);
        let row = 3 * patch * patch;
        let frames = patches.len() / (grid * grid * row);
        let patches = Tensor::from_vec(patches, (frames * grid * grid, row), &self.device)?;
        self.vision.forward(&patches, frames)
    }

    /// (texts, dim).
    fn text(&self, texts: &[&[u32]]) -> Result<Tensor> {
        self.text.vectors(&self.config.text_config, texts)
    }
}

/// Square patches, row by row: each `3 * patch * patch` values, channel by channel. Pixels right of
/// and below the last whole patch are left out.
pub(super) fn patchify(pixels: &[f32], side: usize, patch: usize) -> Vec<f32> {
    let grid = side / patch;
    let mut patches = Vec::with_capacity(pixels.len());
    for frame in pixels.chunks_exact(3 * side * side) {
        for (top, left) in (0..grid * grid).map(|at| (at / grid * patch, at % grid * patch)) {
            for (channel, row) in (0..3 * patch).map(|at| (at / patch, at % patch)) {
                let start = (channel * side + top + row) * side + left;
                patches.extend_from_slice(&frame[start..start + patch]);
            }
        }
    }
    patches
}

impl Vision {
    fn load(config: &Config, weights: &Weights, device: &Device) -> std::result::Result<Self, LoadError> {
        let vision = &config.vision_config;
        let (width, patch) = (vision.hidden_size, vision.patch_size);
        let get = |name: &str, shape: &[usize]| tensor(weights, name, shape, device);
        let norm = |name: &str| LayerNorm::load(weights, name, width, vision.layer_norm_eps, device);
        let patches = get("vision_model.embeddings.patch_embedding.weight", &[width, 3, patch, patch])?;
        let positions = vision.grid() * vision.grid() + 1;
        Ok(Vision {
            patches: patches.flatten_from(1)?.t()?.contiguous()?,
            class: get("vision_model.embeddings.class_embedding", &[width])?.reshape((1, 1, width))?,
            positions: get("vision_model.embeddings.position_embedding.weight", &[positions, width])?,
            // The misspelling is the format's.
            norm_before: norm("vision_model.pre_layrnorm")?,
            blocks: Transformer::load(weights, "vision_model.encoder.layers", vision.shape(), device)?,
            norm_after: norm("vision_model.post_layernorm")?,
            projection: get("visual_projection.weight", &[config.projection_dim, width])?
                .t()?
                .contiguous()?,
        })
    }

    /// `patches`: (frames * patches, values of a patch).
    fn forward(&self, patches: &Tensor, frames: usize) -> Result<Tensor> {
        let embedded = patches.matmul(&self.patches)?;
        let (rows, width) = embedded.dims2()?;
        let embedded = embedded.reshape((frames, rows / frames, width))?;
        let class = self.class.broadcast_as((frames, 1, width))?;
        let x = Tensor::cat(&[&class, &embedded], 1)?.broadcast_add(&self.positions)?;
        let x = self.blocks.forward(self.norm_before.forward(&x)?, None)?;
        let class = x.narrow(1, 0, 1)?.squeeze(1)?;
        self.norm_after.forward(&class)?.matmul(&self.projection)
    }
}

impl Text {
    /// Reads the tower; `text` must have passed [`TextConfig::check`].
    pub(super) fn load(
        text: &TextConfig,
        dim: usize,
        weights: &Weights,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let width = text.hidden_size;
        let get = |name: &str, shape: &[usize]| tensor(weights, name, shape, device);
        Ok(Text {
            tokens: get("text_model.embeddings.token_embedding.weight", &[text.vocab_size, width])?,
            positions: get(
                "text_model.embeddings.position_embedding.weight",
                &[text.max_position_embeddings, width],
            )?,
            blocks: Transformer::load(weights, "text_model.encoder.layers", text.shape(), device)?,
            norm: LayerNorm::load(
                weights,
                "text_model.final_layer_norm",
                width,
                text.layer_norm_eps,
                device,
            )?,
            projection: get("text_projection.weight", &[dim, width])?.t()?.contiguous()?,
        })
    }

    /// (texts, dim); `config` is that of [`Text::load`], all ids are in the vocabulary, no text is empty or too long.
    pub(super) fn vectors(&self, config: &TextConfig, texts: &[&[u32]]) -> Result<Tensor> {
        let device = self.tokens.device();
        let ends: Vec<usize> = texts.iter().map(|ids| config.end_of_text(ids)).collect();
        // No token sees a later one, so nothing after the last end of text matters.
        let tokens = ends.iter().max().map_or(0, |end| end + 1);
        let padded = texts.iter().flat_map(|ids| (0..tokens).map(|at| ids.get(at).copied().unwrap_or(0)));
        let ids = Tensor::from_vec(padded.collect::<Vec<u32>>(), texts.len() * tokens, device)?;
        let rows: Vec<u32> =
            ends.iter().enumerate().map(|(text, end)| (text * tokens + end) as u32).collect();
        let rows = Tensor::from_vec(rows, texts.len(), device)?;
        self.forward(&ids, &rows, texts.len())
    }

    /// `ids`: (texts * tokens); `ends`: the rows of the end-of-text tokens in it.
    fn forward(&self, ids: &Tensor, ends: &Tensor, texts: usize) -> Result<Tensor> {
        let tokens = ids.elem_count() / texts;
        let embedded = self.tokens.index_select(ids, 0)?;
        let width = embedded.dim(1)?;
        let x =
            embedded.reshape((texts, tokens, width))?.broadcast_add(&self.positions.narrow(0, 0, tokens)?)?;
        let x = self.blocks.forward(x, Some(&causal_mask(tokens, ids.device())?))?;
        let ends = x.reshape((texts * tokens, width))?.index_select(ends, 0)?;
        self.norm.forward(&ends)?.matmul(&self.projection)
    }
}

/// One CLIP model as an [`Encoder`].
pub(crate) struct ClipEncoder {
    model: Arc<Model>,
    space: Space,
    preprocessing: Preprocessing,
}

impl ClipEncoder {
    pub(crate) fn new(model: Arc<Model>, space: Space, preprocessing: Preprocessing) -> Self {
        ClipEncoder { model, space, preprocessing }
    }

    fn texts(&self, texts: &[&[u32]]) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        let config = &self.model.config.text_config;
        check_ids(texts, config.vocab_size, config.max_position_embeddings)?;
        let vectors = self.model.text(texts).and_then(|vectors| vectors.to_vec2());
        vectors.map_err(|error| failed(&error))
    }

    /// Raw vectors of clips: the means of their frames' unit vectors.
    fn clips(&self, clips: &[&Clip]) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        if clips.iter().any(|clip| clip.frames.is_empty()) {
            return Err(EncodeError::BadInput("a clip without frames".to_owned()));
        }
        let frames: Vec<&Frame> = clips.iter().flat_map(|clip| &clip.frames).collect();
        let mut units = self.frames(&frames)?.into_iter();
        let of_clip = |clip: &&Clip| units.by_ref().take(clip.frames.len()).collect::<Vec<_>>();
        Ok(clips.iter().map(of_clip).map(|units| mean(&units, self.space.dim)).collect())
    }

    /// The unit vector of each frame.
    fn frames(&self, frames: &[&Frame]) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        let mut units = Vec::with_capacity(frames.len());
        for chunk in frames.chunks(FRAMES_PER_PASS) {
            let mut pixels = Vec::new();
            for frame in chunk {
                pixels.extend(self.preprocessing.pixels(frame)?);
            }
            let vectors = self.model.vision(&pixels).and_then(|vectors| vectors.to_vec2::<f32>());
            for vector in vectors.map_err(|error| failed(&error))? {
                units.push(unit(vector)?);
            }
        }
        Ok(units)
    }
}

fn unit(mut vector: Vec<f32>) -> std::result::Result<Vec<f32>, EncodeError> {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm == 0.0 || !norm.is_finite() {
        return Err(EncodeError::BadInput(format!("a frame's vector has norm {norm}")));
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

/// # Errors
/// [`EncodeError::BadInput`] for what the frame stage can't have made.
pub(super) fn check_features(rows: &[Arc<[f32]>], width: usize) -> std::result::Result<(), EncodeError> {
    let whole = |row: &Arc<[f32]>| row.len() == width && row.iter().all(|value| value.is_finite());
    if rows.is_empty() || !rows.iter().all(whole) {
        let rows = rows.len();
        return Err(EncodeError::BadInput(format!("{rows} features, not all of {width} finite values")));
    }
    Ok(())
}

pub(super) fn failed(error: &candle_core::Error) -> EncodeError {
    EncodeError::Failed(error.to_string())
}

impl Encoder for ClipEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        let grid = self.model.config.vision_config.grid();
        match input {
            Input::Text(tokens) => tokens.ids.len(),
            Input::Frames(clip) => clip.frames.len() * (grid * grid + 1),
            Input::Frame(_) => grid * grid + 1,
            Input::Features(_) | Input::Composed { .. } => 1,
        }
    }

    fn encode(&mut self, batch: &[Input]) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        let (mut texts, mut clips, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        for input in batch {
            match input {
                Input::Text(tokens) => texts.push(&tokens.ids[..]),
                Input::Frames(clip) => clips.push(clip),
                Input::Frame(frame) => frames.push(frame),
                Input::Features(rows) => check_features(rows, self.space.dim)?,
                Input::Composed { .. } => {
                    let space = self.space.name.clone();
                    return Err(EncodeError::Unsupported { space, what: "composed queries" });
                }
            }
        }
        let texts = if texts.is_empty() { Vec::new() } else { self.texts(&texts)? };
        let (clips, frames) = (self.clips(&clips)?, self.frames(&frames)?);
        let (mut texts, mut clips, mut frames) = (texts.into_iter(), clips.into_iter(), frames.into_iter());
        let vectors = batch.iter().map(|input| match input {
            Input::Text(_) => texts.next(),
            Input::Frame(_) => frames.next(),
            Input::Features(rows) => Some(mean(rows, self.space.dim)),
            Input::Frames(_) | Input::Composed { .. } => clips.next(),
        });
        let vectors: Option<Vec<_>> = vectors.collect();
        vectors.ok_or_else(|| EncodeError::Failed("fewer vectors than inputs".to_owned()))
    }
}
