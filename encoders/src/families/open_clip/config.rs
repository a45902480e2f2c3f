//! OpenCLIP's open_clip_config.json, and its supported settings.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::timm::Preset;
use crate::LoadError;
use crate::blocks::transformer::Activation;
use crate::families::clip::config::{self as clip, LEGACY_EOS};

#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) model_cfg: Config,
    #[serde(default)]
    pub(super) preprocess_cfg: Value,
}

/// Missing fields have the defaults of OpenCLIP's `CLIP`, `CLIPVisionCfg` and `CLIPTextCfg`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Config {
    pub(super) embed_dim: usize,
    #[serde(default)]
    quick_gelu: bool,
    pub(super) vision_cfg: Vision,
    pub(super) text_cfg: Text,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Vision {
    pub(super) image_size: usize,
    patch_size: usize,
    width: usize,
    /// A list of numbers marks a ResNet.
    layers: Value,
    head_width: usize,
    mlp_ratio: f64,
    norm_kwargs: Option<Norm>,
    act_kwargs: Option<Act>,
    pub(super) timm_model_name: Option<String>,
    timm_pool: Option<String>,
    timm_proj: Option<String>,
    pub(super) timm_model_args: Option<TimmArgs>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Text {
    context_length: usize,
    vocab_size: usize,
    width: usize,
    heads: usize,
    layers: usize,
    mlp_ratio: f64,
    norm_kwargs: Option<Norm>,
    act_kwargs: Option<Act>,
    pub(super) hf_tokenizer_name: Option<String>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimmArgs {
    pub(super) num_heads: usize,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Norm {
    eps: f32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Act {
    approximate: String,
}

/// Settings without a field of their own.
type Rest = BTreeMap<String, Value>;

impl Default for Vision {
    fn default() -> Self {
        Vision {
            image_size: 224,
            patch_size: 16,
            width: 768,
            layers: json!(12),
            head_width: 64,
            mlp_ratio: 4.0,
            norm_kwargs: None,
            act_kwargs: None,
            timm_model_name: None,
            timm_pool: None,
            timm_proj: None,
            timm_model_args: None,
            rest: Rest::new(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Text {
            context_length: 77,
            vocab_size: 49_408,
            width: 512,
            heads: 8,
            layers: 12,
            mlp_ratio: 4.0,
            norm_kwargs: None,
            act_kwargs: None,
            hf_tokenizer_name: None,
            rest: Rest::new(),
        }
    }
}

/// Settings that do not change vectors: they affect training or additional outputs only.
const HARMLESS: [&str; 17] = [
    "custom_text",
    "init_logit_scale",
    "init_logit_bias",
    "nonscalar_logit_scale",
    "cast_dtype",
    "output_dict",
    "output_tokens",
    "patch_dropout",
    "timm_model_pretrained",
    "timm_drop",
    "timm_drop_path",
    "timm_proj_bias",
    "hf_model_pretrained",
    "hf_proj_type",
    "hf_pooler_type",
    // Both affect only pooling and masks that are refused anyway.
    "pad_id",
    "eos_id",
];

/// Whether a setting has its default value.
fn is_default(key: &str, value: &Value) -> bool {
    match key {
        "pos_embed_type" => *value == "learnable",
        "pool_type" => *value == "tok" || *value == "argmax",
        "proj_type" => *value == "linear",
        "block_type" => *value == "default",
        "attn_pooler_queries" | "attn_pooler_heads" => true,
        _ => value.is_null() || *value == false,
    }
}

/// The settings of SigLIP's text tower: no causal mask, reads the last position of the padded text, a projection with a
/// bias, canonical texts. The tower needs all of them.
static SIGLIP: LazyLock<[(&str, Value); 4]> = LazyLock::new(|| {
    [
        ("no_causal_mask", json!(true)),
        ("pool_type", json!("last")),
        ("proj_bias", json!(true)),
        ("tokenizer_kwargs", json!({"clean": "canonicalize"})),
    ]
});

impl Text {
    /// Whether the first two settings mark SigLIP's text tower; [`Text::check`] requires the others.
    pub(super) fn is_siglips(&self) -> bool {
        SIGLIP[..2].iter().all(|(key, value)| self.rest.get(*key) == Some(value))
    }

    /// # Errors
    /// [`LoadError::Unsupported`] for unknown settings that could change the vectors.
    fn check(&self) -> Result<(), LoadError> {
        if !self.is_siglips() {
            return refuse("text_cfg", &self.rest, |_, _| false);
        }
        refuse("text_cfg", &self.rest, |key, value| {
            SIGLIP.iter().any(|known| *known == (key, value.clone()))
        })?;
        match SIGLIP.iter().find(|(key, value)| self.rest.get(*key) != Some(value)) {
            Some((key, value)) => Err(LoadError::Unsupported(
                format!("a text tower like SigLIP's without text_cfg.{key}: {value}").into(),
            )),
            None => Ok(()),
        }
    }
}

/// # Errors
/// Names the first setting of `part` that is neither `known` nor without effect.
fn refuse(part: &str, rest: &Rest, known: impl Fn(&str, &Value) -> bool) -> Result<(), LoadError> {
    let odd = rest
        .iter()
        .find(|(key, value)| !HARMLESS.contains(&&key[..]) && !is_default(key, value) && !known(key, value));
    odd.map_or(Ok(()), |(key, value)| Err(LoadError::Unsupported(format!("{part}.{key}: {value}").into())))
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for unknown settings that could change the vectors.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        refuse("model_cfg", &self.rest, |_, _| false)?;
        refuse("vision_cfg", &self.vision_cfg.rest, |_, _| false)?;
        self.text_cfg.check()?;
        let Vision { timm_model_name, timm_pool, timm_proj, timm_model_args, .. } = &self.vision_cfg;
        let unsupported = |what: String| Err(LoadError::Unsupported(what.into()));
        let projection = timm_proj.as_deref().unwrap_or_default();
        match timm_model_name {
            Some(name) => {
                let pool = timm_pool.as_deref().unwrap_or("avg");
                let wanted = Preset::named(name)?.head();
                if pool != wanted.pool {
                    return unsupported(format!("vision_cfg.timm_pool: {pool}"));
                }
                // Otherwise OpenCLIP adds a projection of its own, or none, after timm's tower.
                match projection == wanted.projection {
                    true => Ok(()),
                    false => unsupported(format!("vision_cfg.timm_proj: {projection}")),
                }
            }
            None if timm_model_args.is_some() => unsupported("vision_cfg.timm_model_args".to_owned()),
            None => Ok(()),
        }
    }

    /// CLIP's form of this configuration; its vision tower is meaningless if the model has timm's.
    pub(super) fn clip(&self) -> Result<clip::Config, LoadError> {
        let (vision, text) = (&self.vision_cfg, &self.text_cfg);
        let layers = vision.layers.as_u64().ok_or_else(|| {
            LoadError::Unsupported(format!("vision_cfg.layers: {} (a ResNet)", vision.layers).into())
        })?;
        if vision.head_width == 0 {
            return Err(LoadError::Unsupported("vision_cfg.head_width: 0".into()));
        }
        let inner = |width: usize, ratio: f64| (width as f64 * ratio) as usize;
        Ok(clip::Config {
            projection_dim: self.embed_dim,
            text_config: clip::TextConfig {
                vocab_size: text.vocab_size,
                hidden_size: text.width,
                intermediate_size: inner(text.width, text.mlp_ratio),
                num_hidden_layers: text.layers,
                num_attention_heads: text.heads,
                max_position_embeddings: text.context_length,
                hidden_act: self.activation("text_cfg", text.act_kwargs.as_ref())?,
                layer_norm_eps: text.norm_kwargs.map_or(1e-5, |norm| norm.eps),
                bos_token_id: None,
                // OpenCLIP reads the largest id of a text.
                eos_token_id: LEGACY_EOS,
            },
            vision_config: clip::VisionConfig {
                hidden_size: vision.width,
                intermediate_size: inner(vision.width, vision.mlp_ratio),
                num_hidden_layers: layers as usize,
                num_attention_heads: vision.width / vision.head_width,
                num_channels: 3,
                image_size: vision.image_size,
                patch_size: vision.patch_size,
                hidden_act: self.activation("vision_cfg", vision.act_kwargs.as_ref())?,
                layer_norm_eps: vision.norm_kwargs.map_or(1e-5, |norm| norm.eps),
            },
        })
    }

    fn activation(&self, part: &str, act: Option<&Act>) -> Result<Activation, LoadError> {
        match (act.map(|act| &act.approximate[..]), self.quick_gelu) {
            (None, true) => Ok(Activation::QuickGelu),
            (None | Some("none"), false) => Ok(Activation::Gelu),
            (Some("tanh"), false) => Ok(Activation::GeluNew),
            (Some(other), _) => {
                Err(LoadError::Unsupported(format!("{part}.act_kwargs: approximate {other}").into()))
            }
        }
    }
}
