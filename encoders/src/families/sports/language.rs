//! The text transformer, and the gated fusion of a clip's vector with a modification text.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};

use super::config::{Config, FusionInputs};
use super::layers::{Block, Linear, Norm, Shape, unit};
use super::parameters::{Parameters, Start};
use crate::LoadError;

/// Texts of different lengths, padded to one block of ids.
#[derive(Debug, Clone)]
pub struct PaddedTexts {
    /// (texts * longest).
    ids: Tensor,
    /// (texts * longest): each token's position.
    places: Tensor,
    /// (texts, longest, 1): 1 / length for the tokens of a text, 0 after it.
    shares: Tensor,
    lengths: Arc<[usize]>,
    longest: usize,
}

impl PaddedTexts {
    /// `texts`: the ids of each text and the position of its first token; no text may be empty.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn new(texts: &[(&[u32], usize)], device: &Device) -> Result<Self> {
        let longest = texts.iter().map(|(ids, _)| ids.len()).max().unwrap_or(0);
        let (mut ids, mut places, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for (text, first) in texts {
            for at in 0..longest {
                let inside = at < text.len();
                ids.push(text.get(at).copied().unwrap_or(0));
                places.push(if inside { (first + at) as u32 } else { 0 });
                shares.push(if inside { 1.0 / text.len() as f32 } else { 0.0 });
            }
        }
        Ok(PaddedTexts {
            ids: Tensor::new(ids, device)?,
            places: Tensor::new(places, device)?,
            shares: Tensor::from_vec(shares, (texts.len(), longest, 1), device)?,
            lengths: texts.iter().map(|(ids, _)| ids.len()).collect(),
            longest,
        })
    }
}

/// Encodes texts twice: for the fusion, and for the embedding space of clips.
#[derive(Debug, Clone)]
pub struct TextEncoder {
    /// (vocabulary, width).
    tokens: Tensor,
    /// (longest text, width).
    positions: Tensor,
    blocks: Vec<Block>,
    norm: Norm,
    output: Linear,
    aligned: Linear,
}

/// Encoded texts, one row per text.
pub struct EncodedText {
    /// (texts, dim): input of the fusion.
    pub meaning: Tensor,
    /// (texts, dim): in the embedding space of clips.
    pub aligned: Tensor,
}

impl TextEncoder {
    /// `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(parameters: &mut dyn Parameters, config: &Config) -> std::result::Result<Self, LoadError> {
        let width = config.width;
        let shape = Shape { width, inner: config.inner, heads: config.heads, adapters: false };
        let block = |layer: usize, parameters: &mut dyn Parameters| {
            Block::new(parameters, &format!("text.blocks.{layer}"), shape)
        };
        let (tokens, longest) = (config.vocab_size, config.max_position_embeddings);
        Ok(TextEncoder {
            tokens: parameters.get("text.tokens", &[tokens, width], Start::Noise(0.05))?,
            positions: parameters.get("text.positions", &[longest, width], Start::Noise(0.02))?,
            blocks: (0..config.text_layers)
                .map(|layer| block(layer, parameters))
                .collect::<std::result::Result<_, _>>()?,
            norm: Norm::new(parameters, "text.norm", width)?,
            output: Linear::new(parameters, "text.output", width, config.dim)?,
            aligned: Linear::new(parameters, "text.aligned", config.dim, config.dim)?,
        })
    }

    /// The vectors of the texts.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, texts: &PaddedTexts) -> Result<EncodedText> {
        let count = texts.lengths.len();
        let embedded = self.tokens.index_select(&texts.ids, 0)?;
        let embedded = (embedded + self.positions.index_select(&texts.places, 0)?)?;
        let width = embedded.dim(1)?;
        let mut x = embedded.reshape((count, texts.longest, width))?;
        for block in &self.blocks {
            x = block.forward(&x, Some(&texts.lengths))?;
        }
        let pooled = self.norm.forward(&x)?.broadcast_mul(&texts.shares)?.sum(1)?;
        let meaning = self.output.forward(&pooled)?;
        Ok(EncodedText { aligned: self.aligned.forward(&meaning)?, meaning })
    }
}

/// Fuses a clip's vector with a modification text: a learnt vector plus a gated mean of both. It has the form of
/// TF-CoVR's Combiner (arXiv 2506.05274), with one more layer and unit vectors as inputs.
#[derive(Debug, Clone)]
pub struct Fusion {
    first: Linear,
    second: Linear,
    last: Linear,
    gate: Linear,
    inputs: FusionInputs,
}

impl Fusion {
    /// `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(parameters: &mut dyn Parameters, config: &Config) -> std::result::Result<Self, LoadError> {
        let (dim, inner) = (config.dim, config.fusion_inner);
        let mut linear =
            |part: &str, inputs, outputs| Linear::new(parameters, &format!("fusion.{part}"), inputs, outputs);
        Ok(Fusion {
            first: linear("first", 2 * dim, inner)?,
            second: linear("second", inner, inner)?,
            last: linear("last", inner, dim)?,
            gate: linear("gate", inner, 1)?,
            inputs: config.fusion,
        })
    }

    /// Unit vectors (queries, dim) of raw clip vectors (queries, dim) and as many texts.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, clips: &Tensor, texts: &EncodedText) -> Result<Tensor> {
        let clips = unit(clips)?;
        let (clips, meaning, aligned) = match self.inputs {
            FusionInputs::Both => (clips, texts.meaning.clone(), unit(&texts.aligned)?),
            FusionInputs::Text => (clips.zeros_like()?, texts.meaning.clone(), unit(&texts.aligned)?),
            FusionInputs::Video => {
                let none = clips.zeros_like()?;
                (clips, none.clone(), none)
            }
        };
        let hidden = self.first.forward_relu(&Tensor::cat(&[&meaning, &clips], 1)?)?;
        let gate = (self.gate.forward(&hidden)?.neg()?.exp()? + 1.0)?.recip()?;
        let learnt = self.last.forward(&self.second.forward_relu(&hidden)?)?;
        let mixed = (&clips + (aligned - &clips)?.broadcast_mul(&gate)?)?;
        unit(&(learnt + mixed)?)
    }
}
