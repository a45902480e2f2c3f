//! timm's vision towers: EVA-CLIP's (arXiv 2303.15389, 2303.11331) and PE-Core's (arXiv 2504.13181) in its `Eva` class,
//! SigLIP's (arXiv 2303.15343, 2502.14786) in its `VisionTransformer`.
//!
//! The weights' shapes give width, layers, MLPs, patches, norms, gates, biases and tokens. The model's name in timm
//! gives the rest ([`PRESETS`]): heads, rotary position embedding, placement of norms, activation.

use candle_core::{Device, Tensor};

use crate::LoadError;
use crate::blocks::openai_names::thirds;
use crate::blocks::patches::Sides;
use crate::blocks::transformer::{Activation, Extras, Shape};
use crate::blocks::vision_transformer::{self, Grid, Pooling, Projection};
use crate::families::siglip;
use crate::loading::{FamilyId, Weights};

/// Properties of a named timm model that its tensors do not show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Preset {
    name: &'static str,
    pub(crate) family: FamilyId,
    head: Head,
    /// Size of a head.
    head_width: usize,
    rotary: Option<Grid>,
    norms_after: bool,
    epsilon: f32,
    /// Activation of MLPs without a gate.
    activation: Activation,
    /// Heads of attention pooling; `None`: as many as in the tower.
    pool_heads: Option<usize>,
}
/// Upper bound on the layers that the loader looks for.
const MOST_LAYERS: usize = 1000;

/// OpenCLIP's text tower beside an EVA or EVA-02 vision tower.
pub(super) const EVA_CLIP: FamilyId = FamilyId { name: "eva-clip", version: 1 };
/// The Perception Encoder's image and text towers.
pub(super) const PE_CORE: FamilyId = FamilyId { name: "pe-core", version: 1 };

/// OpenCLIP's `timm_pool` and `timm_proj` of a family's towers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) pool: &'static str,
    /// If empty, timm's own last layer is the projection.
    pub(crate) projection: &'static str,
}

const fn eva(name: &'static str, head_width: usize, rotary: Option<Grid>) -> Preset {
    let head = Head { pool: "token", projection: "" };
    Preset { rotary, head, ..vit(name, EVA_CLIP, head_width, 1e-6) }
}

const fn pe(name: &'static str, head_width: usize, reference: usize, offset: f32) -> Preset {
    let rotary = Some(Grid { reference, offset, columns_first: true });
    let head = Head { pool: "map", projection: "" };
    Preset { rotary, head, pool_heads: Some(8), ..vit(name, PE_CORE, head_width, 1e-5) }
}

const fn siglip(name: &'static str, head_width: usize, activation: Activation) -> Preset {
    Preset { activation, ..vit(name, siglip::ID, head_width, 1e-6) }
}

const fn vit(name: &'static str, family: FamilyId, head_width: usize, epsilon: f32) -> Preset {
    let head = Head { pool: "map", projection: "none" };
    let (rotary, norms_after, pool_heads) = (None, false, None);
    let activation = Activation::Gelu;
    Preset { name, family, head, head_width, rotary, norms_after, epsilon, activation, pool_heads }
}

/// The two activations of SigLIP's towers.
const EXACT: Activation = Activation::Gelu;
const TANH: Activation = Activation::GeluNew;

const EVA02: Option<Grid> = Some(Grid { reference: 16, offset: 0.0, columns_first: false });

/// All supported models; the numbers are timm's.
const PRESETS: [Preset; 27] = [
    eva("eva02_base_patch16_clip_224", 64, EVA02),
    eva("eva02_large_patch14_clip_224", 64, EVA02),
    eva("eva02_large_patch14_clip_336", 64, EVA02),
    Preset { norms_after: true, ..eva("eva02_enormous_patch14_clip_224", 112, None) },
    eva("eva_giant_patch14_clip_224", 88, None),
    eva("eva_giant_patch14_224", 88, None),
    pe("vit_pe_core_tiny_patch16_384", 64, 24, 1.0),
    pe("vit_pe_core_small_patch16_384", 64, 24, 1.0),
    pe("vit_pe_core_base_patch16_224", 64, 14, 1.0),
    pe("vit_pe_core_large_patch14_336", 64, 24, 1.0),
    pe("vit_pe_core_gigantic_patch14_448", 96, 32, 0.0),
    siglip("vit_base_patch32_siglip_256", 64, TANH),
    siglip("vit_base_patch16_siglip_224", 64, EXACT),
    siglip("vit_base_patch16_siglip_256", 64, EXACT),
    siglip("vit_base_patch16_siglip_384", 64, EXACT),
    siglip("vit_base_patch16_siglip_512", 64, EXACT),
    siglip("vit_large_patch16_siglip_256", 64, EXACT),
    siglip("vit_large_patch16_siglip_384", 64, EXACT),
    siglip("vit_large_patch16_siglip_512", 64, TANH),
    siglip("vit_so400m_patch14_siglip_224", 72, EXACT),
    siglip("vit_so400m_patch14_siglip_378", 72, EXACT),
    siglip("vit_so400m_patch14_siglip_384", 72, EXACT),
    siglip("vit_so400m_patch16_siglip_256", 72, TANH),
    siglip("vit_so400m_patch16_siglip_384", 72, TANH),
    siglip("vit_so400m_patch16_siglip_512", 72, TANH),
    siglip("vit_giantopt_patch16_siglip_256", 96, TANH),
    siglip("vit_giantopt_patch16_siglip_384", 96, TANH),
];

impl Preset {
    /// # Errors
    /// [`LoadError::Unsupported`] for an unknown name.
    pub(crate) fn named(name: &str) -> Result<&'static Preset, LoadError> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            LoadError::Unsupported(
                format!("timm_model_name {name}; {} are supported", known.join(", ")).into(),
            )
        })
    }

    /// The pooling and projection after the tower.
    pub(crate) fn head(&self) -> Head {
        self.head
    }
}

/// Properties of a tower that its weights do not show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tower {
    /// The preset of the tower's name in timm.
    pub(super) preset: &'static Preset,
    /// Pixels along one side of a picture.
    pub(super) image: usize,
    /// Values per vector.
    pub(super) dim: usize,
    /// Attention heads, if the configuration states them.
    pub(super) heads: Option<usize>,
}

impl Tower {
    /// The tower of `weights`, which must have passed [`renamed`].
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(super) fn config(self, weights: &Weights) -> Result<vision_transformer::Config, LoadError> {
        let Tower { preset, image, dim, heads } = self;
        let has = |name: &str| weights.shape(name).is_some();
        let block = |layer: usize, part: &str| format!("vision_model.encoder.layers.{layer}.{part}");
        let patches = weights.dims::<4>(&format!("{}.weight", vision_transformer::PATCHES))?;
        let (width, patch) = (patches[0], patches[2]);
        let is_there = |layer: &usize| has(&block(*layer, "mlp.fc2.weight"));
        let gate = has(&block(0, "mlp.gate.weight"));
        let unknown = || {
            let (name, head) = (preset.name, preset.head_width);
            let why = format!(
                "{width} values are no multiple of {name}'s {head} a head; give timm_model_args: {{\"num_heads\": ...}}"
            );
            LoadError::Unsupported(why.into())
        };
        let by_name = width.is_multiple_of(preset.head_width).then(|| width / preset.head_width);
        let blocks = Shape {
            width,
            inner: weights.dims::<2>(&block(0, "mlp.fc1.weight"))?[0],
            layers: (0..MOST_LAYERS).take_while(is_there).count(),
            heads: heads.or(by_name).ok_or_else(unknown)?,
            activation: if gate { Activation::Silu } else { preset.activation },
            epsilon: preset.epsilon,
            extras: Extras {
                attention_norm: has(&block(0, "self_attn.norm.weight")),
                gate,
                mlp_norm: has(&block(0, "mlp.norm.weight")),
                norms_after: preset.norms_after,
                frames: None,
            },
        };
        let pooling = match has("vision_model.head.probe") {
            true => Pooling::Attention {
                heads: preset.pool_heads.unwrap_or(blocks.heads),
                inner: weights.dims::<2>("vision_model.head.mlp.fc1.weight")?[0],
                activation: preset.activation,
            },
            false => Pooling::ClassToken,
        };
        let tower = vision_transformer::Config {
            sides: Sides { image, patch },
            blocks,
            dim,
            patch_bias: has(&format!("{}.bias", vision_transformer::PATCHES)),
            class_token: has("vision_model.embeddings.class_embedding"),
            norm_before: has("vision_model.pre_layrnorm.weight"),
            rotary: preset.rotary,
            pooling,
            projection: match preset.head().projection {
                "none" => Projection::None,
                _ => Projection::Biased,
            },
            joint_frames: None,
        };
        tower.check().map(|()| tower)
    }
}

/// Prefix of timm's towers in OpenCLIP's checkpoints.
const TRUNK: &str = "visual.trunk.";

/// Name prefixes outside the blocks: timm's, Hugging Face's CLIP.
const NAMES: [(&str, &str); 10] = [
    ("patch_embed.proj.", "vision_model.embeddings.patch_embedding."),
    ("norm_pre.", "vision_model.pre_layrnorm."),
    ("norm.", "vision_model.post_layernorm."),
    ("head.", "visual_projection."),
    ("attn_pool.latent", "vision_model.head.probe"),
    ("attn_pool.q.", "vision_model.head.attention.q_proj."),
    ("attn_pool.proj.", "vision_model.head.attention.out_proj."),
    ("attn_pool.norm.", "vision_model.head.layernorm."),
    ("attn_pool.mlp.fc1.", "vision_model.head.mlp.fc1."),
    ("attn_pool.mlp.fc2.", "vision_model.head.mlp.fc2."),
];

/// Name prefixes inside a block: timm's, Hugging Face's CLIP.
const BLOCK: [(&str, &str); 11] = [
    ("norm1.", "layer_norm1."),
    ("norm2.", "layer_norm2."),
    ("attn.q_proj.", "self_attn.q_proj."),
    ("attn.k_proj.", "self_attn.k_proj."),
    ("attn.v_proj.", "self_attn.v_proj."),
    ("attn.norm.", "self_attn.norm."),
    ("attn.proj.", "self_attn.out_proj."),
    ("mlp.fc1_g.", "mlp.gate."),
    ("mlp.fc1.", "mlp.fc1."),
    ("mlp.fc1_x.", "mlp.fc1."),
    ("mlp.norm.", "mlp.norm."),
];

/// Renames the tower's tensors to the names of Hugging Face's CLIP. Splits joined attention weights, and gives keys
/// without a bias a zero bias.
///
/// # Errors
/// [`LoadError::Unsupported`] for a tensor that the towers do not have, [`LoadError::WrongShape`] for one that does not
/// split.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    let with_key_bias: Vec<String> = weights
        .names()
        .filter_map(|name| name.strip_suffix("attn.k_proj.bias").or(name.strip_suffix("attn.k_bias")))
        .map(str::to_owned)
        .collect();
    weights.changed(|whole, tensor| {
        let Some(name) = whole.strip_prefix(TRUNK) else { return Ok(vec![(whole.to_owned(), tensor)]) };
        let Some((layer, part)) = name.strip_prefix("blocks.").and_then(|rest| rest.split_once('.')) else {
            return outside(name, whole, tensor);
        };
        let block = format!("vision_model.encoder.layers.{layer}");
        let has_key_bias = with_key_bias.contains(&format!("{TRUNK}blocks.{layer}."));
        inside(&block, part, whole, tensor, has_key_bias)
    })
}

fn outside(name: &str, whole: &str, tensor: Tensor) -> Result<Vec<(String, Tensor)>, LoadError> {
    match name {
        "cls_token" => {
            return Ok(vec![("vision_model.embeddings.class_embedding".to_owned(), tensor.flatten_all()?)]);
        }
        // Older files store the angles of the rotary position embedding, which follow from the sizes.
        _ if name.starts_with("rope.") => return Ok(Vec::new()),
        "pos_embed" if tensor.rank() == 3 => {
            let name = "vision_model.embeddings.position_embedding.weight".to_owned();
            return Ok(vec![(name, tensor.flatten_to(1)?)]);
        }
        _ => {}
    }
    if let Some(kind) = name.strip_prefix("attn_pool.kv.") {
        let rows = tensor.dims().first().copied().unwrap_or(0);
        let half = |(at, part): (usize, &str)| {
            let half = tensor.narrow(0, at * (rows / 2), rows / 2)?.contiguous()?;
            Ok((format!("vision_model.head.attention.{part}_proj.{kind}"), half))
        };
        return ["k", "v"].into_iter().enumerate().map(half).collect();
    }
    match replaced(name, &NAMES) {
        Some(new) => Ok(vec![(new, tensor)]),
        None => Err(unknown(whole)),
    }
}

fn inside(
    block: &str,
    part: &str,
    whole: &str,
    tensor: Tensor,
    has_key_bias: bool,
) -> Result<Vec<(String, Tensor)>, LoadError> {
    let attention = format!("{block}.self_attn");
    if let Some(kind) = part.strip_prefix("attn.qkv.") {
        return thirds(&attention, kind, whole, &tensor);
    }
    match part {
        "attn.k_bias" => return Ok(vec![(format!("{attention}.k_proj.bias"), tensor)]),
        "attn.v_bias" => return Ok(vec![(format!("{attention}.v_proj.bias"), tensor)]),
        "attn.q_bias" | "attn.q_proj.bias" if !has_key_bias => {
            let zeros = Tensor::zeros(tensor.dims(), tensor.dtype(), &Device::Cpu)?;
            let (query, key) = (format!("{attention}.q_proj.bias"), format!("{attention}.k_proj.bias"));
            return Ok(vec![(query, tensor), (key, zeros)]);
        }
        "attn.q_bias" => return Ok(vec![(format!("{attention}.q_proj.bias"), tensor)]),
        _ => {}
    }
    let known = replaced(part, &BLOCK).or_else(|| part.starts_with("mlp.fc2.").then(|| part.to_owned()));
    match known {
        Some(new) => Ok(vec![(format!("{block}.{new}"), tensor)]),
        None => Err(unknown(whole)),
    }
}

/// Replaces the first matching prefix of `name`; `None` if none matches.
fn replaced(name: &str, beginnings: &[(&str, &str)]) -> Option<String> {
    beginnings.iter().find_map(|(old, new)| name.strip_prefix(old).map(|rest| format!("{new}{rest}")))
}

/// Refuses an unknown tensor: without it, vectors would be wrong.
fn unknown(name: &str) -> LoadError {
    LoadError::Unsupported(
        format!("the tensor {name}, which the towers of EVA-CLIP, PE-Core and SigLIP don't have").into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the new names and first values of tensors with three rows each.
    #[track_caller]
    fn check(names: &[&str], expected: &[(&str, f32)]) {
        let tensor = |name: &&str| (format!("{TRUNK}{name}"), vec![3], vec![1.0, 2.0, 3.0]);
        let weights = Weights::from_values(names.iter().map(tensor).collect()).unwrap();
        let changed = renamed(weights).unwrap();
        let first = |name: &str| {
            let shape = changed.shape(name).unwrap().to_vec();
            changed.get(name, &shape).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()[0]
        };
        let got: Vec<(&str, f32)> = changed.names().map(|name| (name, first(name))).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn keys_get_a_bias_of_zeros_only_where_they_have_none() {
        let block = "vision_model.encoder.layers.7.self_attn";
        let (query, key) = (format!("{block}.q_proj.bias"), format!("{block}.k_proj.bias"));
        check(&["blocks.7.attn.q_proj.bias"], &[(&key, 0.0), (&query, 1.0)]);
        check(&["blocks.7.attn.q_bias"], &[(&key, 0.0), (&query, 1.0)]);
        check(&["blocks.7.attn.q_proj.bias", "blocks.7.attn.k_proj.bias"], &[(&key, 1.0), (&query, 1.0)]);
        check(&["blocks.7.attn.q_bias", "blocks.7.attn.k_bias"], &[(&key, 1.0), (&query, 1.0)]);
    }

    #[test]
    fn attention_in_one_product_becomes_three() {
        let part = |part: &str| format!("vision_model.encoder.layers.0.self_attn.{part}_proj.bias");
        let (key, query, value) = (part("k"), part("q"), part("v"));
        check(&["blocks.0.attn.qkv.bias"], &[(&key, 2.0), (&query, 1.0), (&value, 3.0)]);
    }

    #[test]
    fn angles_are_left_out_and_other_unknown_parts_refused() {
        check(&["rope.freqs_cos", "norm.bias"], &[("vision_model.post_layernorm.bias", 1.0)]);
        for name in ["blocks.0.gamma_1", "fc_norm.weight", "reg_token"] {
            let odd = Weights::from_values(vec![(format!("{TRUNK}{name}"), vec![1], vec![0.0])]).unwrap();
            let error = renamed(odd).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
