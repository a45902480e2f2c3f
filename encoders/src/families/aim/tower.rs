//! AIM (arXiv 2302.03024): CLIP's vision tower with adapters in every block. The same attention layer runs first over
//! time, then over space.
//!
//! Inference only, as [`transformer`](super::transformer).

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::patches::{Patches, Sides};
use crate::blocks::pixels::PixelBatch;
use crate::blocks::transformer::{Activation, AttentionMask, Block, Extras, LayerNorm, Linear, Shape};
use crate::blocks::vision_transformer::PATCHES;
use crate::loading::Weights;

/// Values of config.json; the defaults are the published models'. Sizes come from the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// `None`: one head per 64 values of the hidden size, as in all of CLIP's vision transformers.
    pub(crate) num_attention_heads: Option<usize>,
    /// Frames per clip for weights without a temporal embedding, that is, CLIP's own.
    pub(crate) num_frames: usize,
    /// AIM's s: scale of a block's MLP adapter.
    pub(crate) adapter_scale: f64,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
    /// Whether blocks have adapters. Without them the weights are CLIP's own, and the order of frames has no effect.
    pub(crate) adapters: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            num_attention_heads: None,
            num_frames: 12,
            adapter_scale: 0.5,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            adapters: true,
        }
    }
}

/// Upper bounds on sizes from files.
const MOST_LAYERS: usize = 1000;
const MOST_FRAMES: usize = 1024;
const LARGEST_IMAGE: usize = 4096;

/// The video encoder.
#[derive(Debug)]
pub(crate) struct Aim {
    sizes: Sizes,
    patches: Patches,
    /// (1, 1, width).
    class: Tensor,
    /// (patches + 1, width).
    positions: Tensor,
    /// (frames, 1, width).
    times: Option<Tensor>,
    norm_before: LayerNorm,
    blocks: Vec<AdaptedBlock>,
    norm_after: LayerNorm,
}

/// Sizes that the shapes of the weights give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Hidden size, also the size of a clip's vector.
    pub(crate) width: usize,
    /// Pixels along one side of a patch.
    pub(crate) patch: usize,
    /// Patches along one side of a picture.
    pub(crate) grid: usize,
    /// Frames per clip.
    pub(crate) frames: usize,
    heads: usize,
    layers: usize,
    inner: usize,
}

impl Sizes {
    /// Pixels along one side of a picture.
    pub(crate) fn image(&self) -> usize {
        self.grid * self.patch
    }

    /// Tokens of a picture: its patches and the class token.
    pub(crate) fn tokens(&self) -> usize {
        self.grid * self.grid + 1
    }

    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    fn of(config: &Config, weights: &Weights) -> std::result::Result<Sizes, LoadError> {
        let embeddings = |name: &str| format!("vision_model.embeddings.{name}");
        let (name, wanted) = (embeddings("patch_embedding.weight"), 4);
        let kernel = dims(weights, &name, wanted)?;
        let (width, patch) = (kernel[0], kernel[2]);
        let positions = dims(weights, &embeddings("position_embedding.weight"), 2)?[0];
        let grid = positions.saturating_sub(1).isqrt();
        let unsupported = |why: String| Err(LoadError::Unsupported(why.into()));
        if grid * grid + 1 != positions || patch == 0 || grid == 0 || grid * patch > LARGEST_IMAGE {
            return unsupported(format!("{positions} positions of {patch} pixels make no square picture"));
        }
        let times = embeddings("temporal_embedding");
        let frames = match weights.shape(&times) {
            Some(_) => dims(weights, &times, 3)?[1],
            None if config.adapters => return Err(LoadError::MissingTensor { name: times }),
            None => config.num_frames,
        };
        if frames == 0 || frames > MOST_FRAMES {
            return unsupported(format!("{frames} frames"));
        }
        let up = |layer: usize| format!("{}.mlp.fc1.weight", block(layer));
        let layers = (0..MOST_LAYERS).take_while(|layer| weights.shape(&up(*layer)).is_some()).count();
        let inner = dims(weights, &up(0), 2)?[0];
        let heads = config.num_attention_heads.unwrap_or(width / 64);
        let sizes = Sizes { width, patch, grid, frames, heads, layers, inner };
        sizes.shape(config).check()?;
        Ok(sizes)
    }

    fn shape(&self, config: &Config) -> Shape {
        Shape {
            width: self.width,
            inner: self.inner,
            layers: self.layers,
            heads: self.heads,
            activation: config.hidden_act,
            epsilon: config.layer_norm_eps,
            extras: Extras::default(),
        }
    }
}

fn block(layer: usize) -> String {
    format!("vision_model.encoder.layers.{layer}")
}

/// The shape of a tensor with `count` dimensions.
fn dims<'a>(weights: &'a Weights, name: &str, count: usize) -> std::result::Result<&'a [usize], LoadError> {
    match weights.shape(name) {
        Some(dims) if dims.len() == count => Ok(dims),
        Some(other) => {
            let (name, found) = (name.to_owned(), other.to_vec());
            Err(LoadError::WrongShape { name, expected: vec![0; count], found })
        }
        None => Err(LoadError::MissingTensor { name: name.to_owned() }),
    }
}

impl Aim {
    /// Reads the encoder by the names that [`openai_names::vision`](super::openai_names::vision) gives.
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        if !config.adapter_scale.is_finite() {
            return Err(LoadError::Unsupported("adapter_scale is no number".into()));
        }
        let sizes = Sizes::of(config, weights)?;
        let Sizes { width, patch, .. } = sizes;
        let sides = Sides { image: sizes.image(), patch };
        let get = |name: &str, shape: &[usize]| weights.get(name, shape);
        let norm = |name: &str| LayerNorm::load(weights, name, width, config.layer_norm_eps);
        let blocks = (0..sizes.layers).map(|layer| AdaptedBlock::load(config, &sizes, weights, layer));
        let times = "vision_model.embeddings.temporal_embedding";
        let times = match weights.shape(times) {
            Some(_) => Some(get(times, &[1, sizes.frames, width])?.reshape((sizes.frames, 1, width))?),
            None => None,
        };
        let aim = Aim {
            patches: Patches::load(weights, PATCHES, width, false, sides)?,
            class: get("vision_model.embeddings.class_embedding", &[width])?.reshape((1, 1, width))?,
            positions: get("vision_model.embeddings.position_embedding.weight", &[sizes.tokens(), width])?,
            times,
            norm_before: norm("vision_model.pre_layrnorm")?,
            blocks: blocks.collect::<std::result::Result<_, _>>()?,
            norm_after: norm("vision_model.post_layernorm")?,
            sizes,
        };
        // CLIP's own weights have a projection, which AIM leaves out.
        weights.check_taken(&["vision_model"], &["position_ids"])?;
        Ok(aim)
    }

    /// The model's sizes.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Encodes the pictures of clips, clip after clip, to (clips, width). The result is not normalised.
    pub(crate) fn forward(&self, pixels: &PixelBatch) -> Result<Tensor> {
        let Sizes { width, frames, .. } = self.sizes;
        let tokens = self.sizes.tokens();
        let embedded = self.patches.forward(pixels)?;
        let pictures = embedded.dim(0)?;
        let clips = pictures / frames;
        let class = self.class.broadcast_as((pictures, 1, width))?;
        let mut x = Tensor::cat(&[&class, &embedded], 1)?.broadcast_add(&self.positions)?;
        if let Some(times) = &self.times {
            x = x.reshape((clips, frames, tokens, width))?.broadcast_add(times)?;
        }
        let x = self.norm_before.forward(&x.reshape((pictures * tokens, width))?)?;
        let x = self.blocks.iter().try_fold(x, |x, block| block.forward(&x, clips, &self.sizes))?;
        let class = x.reshape((pictures, tokens, width))?.narrow(1, 0, 1)?;
        let class = self.norm_after.forward(&class)?;
        class.reshape((clips, frames, width))?.mean(1)
    }
}

/// A bottleneck MLP: down, GELU, up. Its inner size comes from the weights.
#[derive(Debug)]
struct Adapter {
    down: Linear,
    up: Linear,
}

impl Adapter {
    fn load(weights: &Weights, name: &str, width: usize) -> std::result::Result<Self, LoadError> {
        let inner = dims(weights, &format!("{name}.D_fc1.weight"), 2)?[0];
        Ok(Adapter {
            down: Linear::load_inner(weights, &format!("{name}.D_fc1"), width, inner)?,
            up: Linear::load_inner(weights, &format!("{name}.D_fc2"), inner, width)?,
        })
    }

    /// Without a residual.
    fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.up.forward(&self.down.forward_inner(rows, Some(Activation::Gelu))?)
    }
}

/// CLIP's block with AIM's three adapters.
#[derive(Debug)]
struct AdaptedBlock {
    clip: Block,
    adapters: Option<Adapters>,
}

#[derive(Debug)]
struct Adapters {
    /// Between the norm and attention over time, with a residual: `num_tadapter=2` of the released code.
    before_time: Option<Adapter>,
    time: Adapter,
    space: Adapter,
    mlp: Adapter,
    scale: f64,
}

impl AdaptedBlock {
    fn load(
        config: &Config,
        sizes: &Sizes,
        weights: &Weights,
        layer: usize,
    ) -> std::result::Result<Self, LoadError> {
        let name = block(layer);
        let adapter = |kind: &str| Adapter::load(weights, &format!("{name}.{kind}"), sizes.width);
        let adapters = match config.adapters {
            true => Some(Adapters {
                before_time: match weights.shape(&format!("{name}.T_Adapter_in.D_fc1.weight")) {
                    Some(_) => Some(adapter("T_Adapter_in")?),
                    None => None,
                },
                time: adapter("T_Adapter")?,
                space: adapter("S_Adapter")?,
                mlp: adapter("MLP_Adapter")?,
                scale: config.adapter_scale,
            }),
            false => None,
        };
        Ok(AdaptedBlock { clip: Block::load(weights, &name, sizes.shape(config))?, adapters })
    }

    /// `x`: (clips * frames * tokens, width).
    fn forward(&self, x: &Tensor, clips: usize, sizes: &Sizes) -> Result<Tensor> {
        let tokens = sizes.tokens();
        let attend = |x: &Tensor, tokens| {
            self.clip.attention.forward(&self.clip.norm1.forward(x)?, tokens, AttentionMask::All)
        };
        let Some(adapters) = &self.adapters else {
            let x = (x + attend(x, tokens)?)?;
            return &x + self.clip.mlp(&self.clip.norm2.forward(&x)?)?;
        };
        let along_time = self.clip.norm1.forward(&swapped(x, clips, sizes.frames, tokens)?)?;
        let along_time = match &adapters.before_time {
            Some(adapter) => (&along_time + adapter.forward(&along_time)?)?,
            None => along_time,
        };
        let attended = self.clip.attention.forward(&along_time, sizes.frames, AttentionMask::All)?;
        let along_time = adapters.time.forward(&attended)?;
        let x = (x + swapped(&along_time, clips, tokens, sizes.frames)?)?;
        let along_space = attend(&x, tokens)?;
        let x = ((x + &along_space)? + adapters.space.forward(&along_space)?)?;
        let normed = self.clip.norm2.forward(&x)?;
        let change = (self.clip.mlp(&normed)? + (adapters.mlp.forward(&normed)? * adapters.scale)?)?;
        x + change
    }
}

/// Rows ordered by (clip, outer, inner) in the order (clip, inner, outer).
fn swapped(rows: &Tensor, clips: usize, outer: usize, inner: usize) -> Result<Tensor> {
    let (count, width) = rows.dims2()?;
    rows.reshape((clips, outer, inner, width))?.transpose(1, 2)?.contiguous()?.reshape((count, width))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::blocks::openai_names;

    /// Written by tests/parity/covr.py and aim_two.py: one block of width 32 with 4 heads, and its output for two clips
    /// of 3 frames with 5 tokens.
    fn reference(file: &str) -> Weights {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/parity/data/covr");
        let read = Weights::read(&[data.join(file)]).unwrap();
        // Adds the tensor by which the renaming recognises a vision tower.
        let marked = read.changed(|name, tensor| match name {
            "x" => Ok(vec![(name.to_owned(), tensor.clone()), ("conv1.weight".to_owned(), tensor)]),
            _ => Ok(vec![(name.to_owned(), tensor)]),
        });
        openai_names::vision(marked.unwrap()).unwrap()
    }

    const ONE: &str = "aim_block.safetensors";
    const SIZES: Sizes = Sizes { width: 32, patch: 1, grid: 2, frames: 3, heads: 4, layers: 1, inner: 40 };

    #[track_caller]
    fn check(file: &str, config: &Config, matches: bool) {
        let weights = reference(file);
        let block = AdaptedBlock::load(config, &SIZES, &weights, 0).unwrap();
        let x = weights.get("x", &[6, 5, 32]).unwrap().reshape((30, 32)).unwrap();
        let expected = weights.get("y", &[6, 5, 32]).unwrap().reshape((30, 32)).unwrap();
        let off = (block.forward(&x, 2, &SIZES).unwrap() - expected).unwrap().abs().unwrap();
        let off = off.flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(off < 1e-5, matches, "{off} off");
    }

    #[test]
    fn a_block_gives_what_pytorch_gives() {
        check(ONE, &Config::default(), true);
    }

    #[test]
    fn a_block_with_an_adapter_before_attention_over_time_gives_what_the_released_code_gives() {
        check("aim_block_two.safetensors", &Config::default(), true);
    }

    #[test]
    fn every_setting_of_a_block_matters() {
        check(ONE, &Config { adapter_scale: 0.4, ..Config::default() }, false);
        check(ONE, &Config { hidden_act: Activation::Gelu, ..Config::default() }, false);
        check(ONE, &Config { layer_norm_eps: 1e-2, ..Config::default() }, false);
        check(ONE, &Config { adapters: false, ..Config::default() }, false);
    }
}
