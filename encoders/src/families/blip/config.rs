//! BLIP (arXiv 2201.12086): the contrastive vision transformer and BERT. BLIP-CoVR (arXiv 2308.14746) adds composed
//! queries: its BERT reads a modification text with cross-attention to a picture. The matching head and the caption
//! decoder are not read.

use std::sync::Arc;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::bert::{self, Bert};
use crate::blocks::openai_names::thirds;
use crate::blocks::patches::Sides;
use crate::blocks::transformer::{Activation, Extras, Linear, Shape};
use crate::blocks::two_towers::Texts;
use crate::blocks::vision_transformer::{self, Pooling, Projection};
use crate::loading::Weights;

/// Values of config.json; the defaults are those of transformers' `BlipConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// Values per vector.
    pub(crate) image_text_hidden_size: usize,
    pub(crate) text_config: TextConfig,
    pub(crate) vision_config: VisionConfig,
    /// Our own field: the model was trained for composed queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) composed_queries: Option<ComposedQueries>,
}

/// Settings for BLIP-CoVR's modification texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComposedQueries {
    /// The id of `[ENC]`, which replaces the first token; the last of BLIP's vocabulary (30523).
    pub(crate) enc_token_id: u32,
    /// The most tokens of a modification text, special tokens included.
    #[serde(default = "released_max_tokens")]
    pub(crate) max_tokens: usize,
}

/// The value of the released test.
fn released_max_tokens() -> usize {
    64
}

/// Text tower settings; its sizes come from the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TextConfig {
    pub(crate) num_attention_heads: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VisionConfig {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) image_size: usize,
    pub(crate) patch_size: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            image_text_hidden_size: 256,
            text_config: TextConfig::default(),
            vision_config: VisionConfig::default(),
            composed_queries: None,
        }
    }
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig { num_attention_heads: 8, hidden_act: Activation::Gelu, layer_norm_eps: 1e-12 }
    }
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig {
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            image_size: 384,
            patch_size: 16,
            hidden_act: Activation::Gelu,
            layer_norm_eps: 1e-5,
        }
    }
}

/// Epsilon of the vision transformer's layer norms in the released code.
const RELEASED_EPSILON: f32 = 1e-6;

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] if `weights` have the released code's names and the configuration states another
    /// epsilon than that code uses.
    pub(crate) fn check_released(&self, weights: &Weights) -> Result<(), LoadError> {
        let epsilon = self.vision_config.layer_norm_eps;
        let is_released = |name: &str| unwrapped(name).starts_with(RELEASED_VISION);
        if weights.names().any(is_released) && (epsilon - RELEASED_EPSILON).abs() > RELEASED_EPSILON / 1e3 {
            let why = format!(
                "layer_norm_eps {epsilon:e} of vision_config, which is {RELEASED_EPSILON:e} in weights with BLIP's own \
                 names (1e-5 where config.json does not say it)"
            );
            return Err(LoadError::Unsupported(why.into()));
        }
        Ok(())
    }

    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the vision tower.
    pub(crate) fn vision(&self) -> Result<vision_transformer::Config, LoadError> {
        let vision = &self.vision_config;
        let tower = vision_transformer::Config {
            sides: Sides { image: vision.image_size, patch: vision.patch_size },
            blocks: Shape {
                width: vision.hidden_size,
                inner: vision.intermediate_size,
                layers: vision.num_hidden_layers,
                heads: vision.num_attention_heads,
                activation: vision.hidden_act,
                epsilon: vision.layer_norm_eps,
                extras: Extras::default(),
            },
            dim: self.image_text_hidden_size,
            patch_bias: true,
            class_token: true,
            norm_before: false,
            rotary: None,
            pooling: Pooling::ClassToken,
            projection: Projection::Biased,
            joint_frames: None,
        };
        tower.check().map(|()| tower)
    }

    /// The text tower of `weights`.
    ///
    /// # Errors
    /// [`LoadError`] for weights without such a tower (models for captions or answers) or without the tensors for
    /// composed queries.
    pub(crate) fn texts(&self, weights: &Weights) -> Result<Texts, LoadError> {
        let TextConfig { num_attention_heads, hidden_act, layer_norm_eps } = self.text_config;
        let seen = self.composed_queries.map(|_| self.vision_config.hidden_size);
        let config =
            bert::Config { num_attention_heads, hidden_act, layer_norm_eps, seen, position_offset: 0 };
        let words = "text_encoder.embeddings.word_embeddings.weight";
        if weights.shape(words).is_none() {
            return Err(LoadError::MissingTensor { name: words.to_owned() });
        }
        let (tower, dim) = (Arc::new(Bert::load(&config, weights)?), self.image_text_hidden_size);
        let projection = Linear::load(weights, "text_proj", tower.width(), dim)?;
        let composed_token = self.composed_queries.map(|it| it.enc_token_id);
        if let Some(token) = composed_token.filter(|token| *token as usize >= tower.vocabulary()) {
            let tokens = tower.vocabulary();
            let why = format!("composed_queries: enc_token_id {token}, of {tokens} tokens");
            return Err(LoadError::Unsupported(why.into()));
        }
        Ok(Texts::Bert { tower, projection, dim, composed_token })
    }
}

/// Renames the tensors of transformers' `BlipForImageTextRetrieval`, or of the released code's models, to the towers'
/// names:
///
/// | transformers | here |
/// |---|---|
/// | `vision_model.embeddings.class_embedding`, `.position_embedding`, with axes of length 1 | without, the second `.weight` |
/// | `vision_model.encoder.layers.N.self_attn.qkv` | `self_attn.{q,k,v}_proj`, a third each |
/// | `vision_model.encoder.layers.N.self_attn.projection` | `self_attn.out_proj` |
/// | `vision_proj` | `visual_projection` |
///
/// The released code's names differ only in the vision tower, and may have the prefix `module.`:
///
/// | BLIP's and CoVR's code | here |
/// |---|---|
/// | `visual_encoder.cls_token`, `.pos_embed`, `.patch_embed.proj` | `vision_model.embeddings.*` |
/// | `visual_encoder.norm` | `vision_model.post_layernorm` |
/// | `visual_encoder.blocks.N.norm1`, `.norm2`, `.mlp` | `vision_model.encoder.layers.N.layer_norm1`, `.layer_norm2`, `.mlp` |
/// | `visual_encoder.blocks.N.attn.qkv`, `.attn.proj` | as above |
/// | `visual_encoder_m`, `text_encoder_m` and others in `_m`: moving averages of training | left out |
/// | `text_decoder`, which writes captions and has its own BERT | left out |
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that do not split into query, key and value.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    weights.changed(|whole, tensor: Tensor| {
        let name = unwrapped(whole);
        if name.split('.').next().is_some_and(|model| model.ends_with("_m") || model == "text_decoder") {
            return Ok(Vec::new());
        }
        if let Some(part) = name.strip_prefix("vision_proj.") {
            return Ok(vec![(format!("visual_projection.{part}"), tensor)]);
        }
        match name.strip_prefix(RELEASED_VISION) {
            Some(part) => vision(&released(part), whole, tensor),
            None => vision(name, whole, tensor),
        }
    })
}

/// Prefix of the vision tower in the released code's names.
const RELEASED_VISION: &str = "visual_encoder.";

/// A name without the prefix of multi-device training.
fn unwrapped(name: &str) -> &str {
    name.strip_prefix("module.").unwrap_or(name)
}

/// transformers' name for the released code's `visual_encoder.{part}`.
fn released(part: &str) -> String {
    let known = match part {
        "cls_token" => "embeddings.class_embedding".to_owned(),
        "pos_embed" => "embeddings.position_embedding".to_owned(),
        _ => {
            let part = part.replace("patch_embed.proj.", "embeddings.patch_embedding.");
            let part = part.replace("blocks.", "encoder.layers.").replace(".norm", ".layer_norm");
            part.replace(".attn.qkv.", ".self_attn.qkv.").replace(".attn.proj.", ".self_attn.projection.")
        }
    };
    match known.strip_prefix("norm.") {
        Some(kind) => format!("vision_model.post_layernorm.{kind}"),
        None => format!("vision_model.{known}"),
    }
}

/// Renames a vision tower's tensor from transformers' `name` (`whole` in the file); others stay as they are.
pub(crate) fn vision(name: &str, whole: &str, tensor: Tensor) -> Result<Vec<(String, Tensor)>, LoadError> {
    match name {
        "vision_model.embeddings.class_embedding" => {
            return Ok(vec![(name.to_owned(), tensor.flatten_all()?)]);
        }
        "vision_model.embeddings.position_embedding" if tensor.rank() == 3 => {
            return Ok(vec![(format!("{name}.weight"), tensor.flatten_to(1)?)]);
        }
        _ => {}
    }
    if let Some((attention, part)) = name.split_once(".self_attn.") {
        let attention = format!("{attention}.self_attn");
        if let Some(kind) = part.strip_prefix("qkv.") {
            return thirds(&attention, kind, whole, &tensor);
        }
        if let Some(kind) = part.strip_prefix("projection.") {
            return Ok(vec![(format!("{attention}.out_proj.{kind}"), tensor)]);
        }
    }
    Ok(vec![(name.to_owned(), tensor)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, shape: &[usize], expected: &[&str]) {
        let values = vec![0.5; shape.iter().product()];
        let weights = Weights::from_values(vec![(name.to_owned(), shape.to_vec(), values)]).unwrap();
        assert_eq!(renamed(weights).unwrap().names().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_released_codes_names_become_transformers() {
        let block = "vision_model.encoder.layers.11";
        let attention = format!("{block}.self_attn");
        let parts = ["k", "q", "v"].map(|part| format!("{attention}.{part}_proj.bias"));
        check("visual_encoder.blocks.11.attn.qkv.bias", &[3], &parts.each_ref().map(|it| &it[..]));
        check("visual_encoder.blocks.11.attn.proj.bias", &[1], &[&format!("{attention}.out_proj.bias")]);
        check("visual_encoder.blocks.11.norm2.bias", &[1], &[&format!("{block}.layer_norm2.bias")]);
        check("visual_encoder.blocks.11.mlp.fc1.bias", &[1], &[&format!("{block}.mlp.fc1.bias")]);
        check("visual_encoder.norm.bias", &[1], &["vision_model.post_layernorm.bias"]);
        check("visual_encoder.cls_token", &[1, 1, 2], &["vision_model.embeddings.class_embedding"]);
        let positions = "vision_model.embeddings.position_embedding.weight";
        check("module.visual_encoder.pos_embed", &[1, 3, 2], &[positions]);
        // Not renamed, so that loading names it as one of the wrong shape.
        let flat = "vision_model.embeddings.position_embedding";
        check("module.visual_encoder.pos_embed", &[3, 2], &[flat]);
        check("module.vision_proj.bias", &[1], &["visual_projection.bias"]);
        check("text_encoder_m.embeddings.word_embeddings.weight", &[2, 1], &[]);
        check("text_decoder.bert.embeddings.word_embeddings.weight", &[2, 1], &[]);
        check("module.text_decoder.cls.predictions.bias", &[2], &[]);
        let text = "text_encoder.encoder.layer.0.crossattention.self.key.weight";
        check(text, &[2, 1], &[text]);
    }
}
