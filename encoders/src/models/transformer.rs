//! The pre-norm transformer that the towers share. Inference only: candle's fused layer norm and
//! softmax drop gradients without a word.

use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::weights::Weights;

/// The nonlinearity between the two layers of an MLP, by the names that config.json files use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Activation {
    /// `x * sigmoid(1.702 x)`.
    QuickGelu,
    /// With the error function.
    #[serde(alias = "gelu_python")]
    Gelu,
    /// With the tanh approximation.
    #[serde(alias = "gelu_pytorch_tanh", alias = "gelu_fast", alias = "gelu_accurate")]
    GeluNew,
    /// `max(x, 0)`.
    Relu,
    /// `x * sigmoid(x)`.
    #[serde(alias = "swish")]
    Silu,
}

impl Activation {
    fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
            Activation::Gelu => x.gelu_erf(),
            Activation::GeluNew => x.gelu(),
            Activation::Relu => x.relu(),
            Activation::Silu => x.silu(),
        }
    }
}

/// The numbers that shape a transformer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Values per token.
    pub(crate) width: usize,
    /// Values in the middle of an MLP.
    pub(crate) inner: usize,
    /// Blocks.
    pub(crate) layers: usize,
    /// Attention heads; divides `width`.
    pub(crate) heads: usize,
    /// In every MLP.
    pub(crate) activation: Activation,
    /// Of every layer norm.
    pub(crate) epsilon: f32,
}

/// Scales and shifts each token to what was learnt.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f32,
}

impl LayerNorm {
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        epsilon: f32,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let get = |part: &str| tensor(weights, &format!("{name}.{part}"), &[width], device);
        Ok(LayerNorm { weight: get("weight")?, bias: get("bias")?, epsilon })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(&x.contiguous()?, &self.weight, &self.bias, self.epsilon)
    }
}

/// `x W + b` on rows.
#[derive(Debug)]
struct Linear {
    /// (inputs, outputs).
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn load(
        weights: &Weights,
        name: &str,
        (inputs, outputs): (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let weight = tensor(weights, &format!("{name}.weight"), &[outputs, inputs], device)?;
        let bias = tensor(weights, &format!("{name}.bias"), &[outputs], device)?;
        Ok(Linear { weight: weight.t()?.contiguous()?, bias })
    }

    fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        rows.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// One block: attention, then an MLP, each with its norm before and a residual around.
#[derive(Debug)]
struct Block {
    norm1: LayerNorm,
    /// Queries (already scaled), keys and values by one product.
    qkv: Linear,
    out: Linear,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
    shape: Shape,
}

impl Block {
    fn load(
        weights: &Weights,
        name: &str,
        shape: Shape,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let Shape { width, inner, epsilon, .. } = shape;
        let norm = |part: &str| LayerNorm::load(weights, &format!("{name}.{part}"), width, epsilon, device);
        let linear = |part: &str, size| Linear::load(weights, &format!("{name}.{part}"), size, device);
        let query = linear("self_attn.q_proj", (width, width))?;
        let scale = 1.0 / ((width / shape.heads) as f64).sqrt();
        let query = Linear { weight: (query.weight * scale)?, bias: (query.bias * scale)? };
        let key = linear("self_attn.k_proj", (width, width))?;
        let value = linear("self_attn.v_proj", (width, width))?;
        Ok(Block {
            norm1: norm("layer_norm1")?,
            qkv: Linear {
                weight: Tensor::cat(&[&query.weight, &key.weight, &value.weight], 1)?,
                bias: Tensor::cat(&[&query.bias, &key.bias, &value.bias], 0)?,
            },
            out: linear("self_attn.out_proj", (width, width))?,
            norm2: norm("layer_norm2")?,
            up: linear("mlp.fc1", (width, inner))?,
            down: linear("mlp.fc2", (inner, width))?,
            shape,
        })
    }

    /// `x`: (batch, tokens, width).
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let x = x.reshape((batch * tokens, width))?;
        let qkv = self.qkv.forward(&self.norm1.forward(&x)?)?;
        let attended = self.attention(&qkv.reshape((batch, tokens, 3 * width))?, mask)?;
        let x = (x + self.out.forward(&attended.reshape((batch * tokens, width))?)?)?;
        let inner = self.shape.activation.apply(&self.up.forward(&self.norm2.forward(&x)?)?)?;
        (x + self.down.forward(&inner)?)?.reshape((batch, tokens, width))
    }

    /// `qkv`: (batch, tokens, 3 width); gives (batch, tokens, width).
    fn attention(&self, qkv: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let (batch, tokens, _) = qkv.dims3()?;
        let (heads, size) = (self.shape.heads, self.shape.width / self.shape.heads);
        let qkv = qkv.reshape((batch, tokens, 3, heads, size))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (query, key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
        let mut scores = query.matmul(&key.t()?)?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let attended = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&value)?;
        attended.transpose(1, 2)?.contiguous()?.reshape((batch, tokens, heads * size))
    }
}

/// A stack of blocks.
#[derive(Debug)]
pub(crate) struct Transformer {
    blocks: Vec<Block>,
}

impl Transformer {
    /// Reads `{name}.{number}.*`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        shape: Shape,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let blocks =
            (0..shape.layers).map(|layer| Block::load(weights, &format!("{name}.{layer}"), shape, device));
        Ok(Transformer { blocks: blocks.collect::<std::result::Result<_, _>>()? })
    }

    /// `x`: (batch, tokens, width); `mask` is added to the attention scores.
    pub(crate) fn forward(&self, x: Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        self.blocks.iter().try_fold(x, |x, block| block.forward(&x, mask))
    }
}

/// The tensor `name` on `device`.
pub(crate) fn tensor(
    weights: &Weights,
    name: &str,
    shape: &[usize],
    device: &Device,
) -> std::result::Result<Tensor, LoadError> {
    Ok(weights.get(name, shape)?.to_device(device)?)
}

/// (tokens, tokens): no token sees a later one.
pub(crate) fn causal_mask(tokens: usize, device: &Device) -> Result<Tensor> {
    let sees = |row: usize, column: usize| if column <= row { 0.0 } else { f32::NEG_INFINITY };
    let mask: Vec<f32> = (0..tokens * tokens).map(|at| sees(at / tokens, at % tokens)).collect();
    Tensor::from_vec(mask, (tokens, tokens), device)
}
