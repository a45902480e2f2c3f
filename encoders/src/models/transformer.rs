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
    pub(crate) fn apply(self, x: &Tensor) -> Result<Tensor> {
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

impl Shape {
    /// # Errors
    /// [`LoadError::Unsupported`] for numbers that make no transformer.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.to_owned()));
        if self.heads == 0 || self.width == 0 || !self.width.is_multiple_of(self.heads) {
            return unsupported("hidden_size is not a multiple of num_attention_heads");
        }
        if self.layers > 1000 || self.inner == 0 {
            return unsupported("num_hidden_layers or intermediate_size is out of range");
        }
        Ok(())
    }
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
pub(crate) struct Linear {
    /// (inputs, outputs).
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Reads `{name}.weight` of (outputs, inputs), and `{name}.bias`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        (inputs, outputs): (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let weight = tensor(weights, &format!("{name}.weight"), &[outputs, inputs], device)?;
        let bias = tensor(weights, &format!("{name}.bias"), &[outputs], device)?;
        Ok(Linear { weight: weight.t()?.contiguous()?, bias })
    }

    /// (rows, inputs) to (rows, outputs).
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        rows.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// Attention of every token to all tokens of its sequence, or to those that a mask leaves.
#[derive(Debug)]
pub(crate) struct Attention {
    /// Queries (already scaled), keys and values by one product.
    qkv: Linear,
    out: Linear,
    heads: usize,
}

impl Attention {
    /// Reads the layers of these `names`: query, key, value, output; `heads` divides `width`.
    pub(crate) fn load(
        weights: &Weights,
        names: [&str; 4],
        (width, heads): (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let [query, key, value, out] = names;
        let linear = |name: &str| Linear::load(weights, name, (width, width), device);
        let scale = 1.0 / ((width / heads) as f64).sqrt();
        let query = linear(query)?;
        let query = Linear { weight: (query.weight * scale)?, bias: (query.bias * scale)? };
        let (key, value) = (linear(key)?, linear(value)?);
        let qkv = Linear {
            weight: Tensor::cat(&[&query.weight, &key.weight, &value.weight], 1)?,
            bias: Tensor::cat(&[&query.bias, &key.bias, &value.bias], 0)?,
        };
        Ok(Attention { qkv, out: linear(out)?, heads })
    }

    /// `rows`: (batch * tokens, width), sequence after sequence, and so the result; `mask` is added to the
    /// scores of (batch, heads, tokens, tokens).
    pub(crate) fn forward(&self, rows: &Tensor, tokens: usize, mask: Option<&Tensor>) -> Result<Tensor> {
        let (count, width) = rows.dims2()?;
        let (batch, heads, size) = (count / tokens, self.heads, width / self.heads);
        let qkv = self.qkv.forward(rows)?.reshape((batch, tokens, 3, heads, size))?;
        let qkv = qkv.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (query, key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
        let mut scores = query.matmul(&key.t()?)?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let attended = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&value)?;
        self.out.forward(&attended.transpose(1, 2)?.contiguous()?.reshape((count, width))?)
    }
}

/// One block: attention, then an MLP, each with its norm before and a residual around.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) norm1: LayerNorm,
    pub(super) attention: Attention,
    pub(super) norm2: LayerNorm,
    up: Linear,
    down: Linear,
    activation: Activation,
}

impl Block {
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        shape: Shape,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let Shape { width, inner, heads, epsilon, activation, .. } = shape;
        let part = |part: &str| format!("{name}.{part}");
        let names = ["q_proj", "k_proj", "v_proj", "out_proj"].map(|it| part(&format!("self_attn.{it}")));
        Ok(Block {
            norm1: LayerNorm::load(weights, &part("layer_norm1"), width, epsilon, device)?,
            attention: Attention::load(weights, names.each_ref().map(|it| &it[..]), (width, heads), device)?,
            norm2: LayerNorm::load(weights, &part("layer_norm2"), width, epsilon, device)?,
            up: Linear::load(weights, &part("mlp.fc1"), (width, inner), device)?,
            down: Linear::load(weights, &part("mlp.fc2"), (inner, width), device)?,
            activation,
        })
    }

    /// `x`: (batch, tokens, width).
    fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let x = x.reshape((batch * tokens, width))?;
        let x = (&x + self.attention.forward(&self.norm1.forward(&x)?, tokens, mask)?)?;
        (&x + self.mlp(&self.norm2.forward(&x)?)?)?.reshape((batch, tokens, width))
    }

    /// (rows, width) to the same.
    pub(super) fn mlp(&self, rows: &Tensor) -> Result<Tensor> {
        self.down.forward(&self.activation.apply(&self.up.forward(rows)?)?)
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
