//! Layers of the sports family: linear layers, layer norms and transformer blocks.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::operations::{add_bias, attention, layer_norm};
use super::parameters::{Parameters, Start};
use crate::LoadError;

/// `x W + b` on the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    /// (inputs, outputs).
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Takes `{name}.weight` and `{name}.bias` from `parameters`.
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(
        parameters: &mut dyn Parameters,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        let noise = Start::Noise((1.0 / inputs as f32).sqrt());
        let weight = parameters.get(&format!("{name}.weight"), &[inputs, outputs], noise)?;
        let bias = parameters.get(&format!("{name}.bias"), &[outputs], Start::Constant(0.0))?;
        Ok(Linear { weight, bias })
    }

    /// (..., inputs) to (..., outputs).
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, false)
    }

    /// [`Linear::forward`] followed by ReLU.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward_relu(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, true)
    }

    fn apply(&self, x: &Tensor, relu: bool) -> Result<Tensor> {
        let (inputs, outputs) = self.weight.dims2()?;
        let mut shape = x.dims().to_vec();
        let rows = x.elem_count() / inputs.max(1);
        let y = add_bias(&x.reshape((rows, inputs))?.matmul(&self.weight)?, &self.bias, relu)?;
        if let Some(last) = shape.last_mut() {
            *last = outputs;
        }
        y.reshape(shape)
    }
}

/// Layer normalisation.
#[derive(Debug, Clone)]
pub struct Norm {
    weight: Tensor,
    bias: Tensor,
}

impl Norm {
    /// Takes `{name}.weight` and `{name}.bias` from `parameters`.
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(
        parameters: &mut dyn Parameters,
        name: &str,
        width: usize,
    ) -> std::result::Result<Self, LoadError> {
        let weight = parameters.get(&format!("{name}.weight"), &[width], Start::Constant(1.0))?;
        let bias = parameters.get(&format!("{name}.bias"), &[width], Start::Constant(0.0))?;
        Ok(Norm { weight, bias })
    }

    /// Normalises `x` on its last dimension.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        layer_norm(x, &self.weight, &self.bias)
    }
}

/// Dimensions and variants of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Hidden size.
    pub(crate) width: usize,
    /// Hidden size of the MLP.
    pub(crate) inner: usize,
    /// Attention heads; divides `width`.
    pub(crate) heads: usize,
    /// Whether the block has AIM's adapters.
    pub(crate) adapters: bool,
}

/// A bottleneck MLP of a quarter of the width (AIM, arXiv 2302.03024, here with ReLU).
#[derive(Debug, Clone)]
struct Adapter {
    down: Linear,
    up: Linear,
}

impl Adapter {
    fn new(
        parameters: &mut dyn Parameters,
        name: &str,
        width: usize,
    ) -> std::result::Result<Self, LoadError> {
        let inner = (width / 4).max(1);
        let down = Linear::new(parameters, &format!("{name}.down"), width, inner)?;
        Ok(Adapter { down, up: Linear::new(parameters, &format!("{name}.up"), inner, width)? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.up.forward(&self.down.forward_relu(x)?)
    }
}

/// Scale of the adapter beside the MLP (AIM's s).
const ADAPTER_SCALE: f64 = 0.5;

/// Attention, then an MLP, each with a layer norm before it and a residual.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    norm1: Norm,
    /// Queries, keys and values in one product.
    qkv: Linear,
    out: Linear,
    norm2: Norm,
    up: Linear,
    down: Linear,
    /// The adapters after the attention and beside the MLP.
    adapters: Option<(Adapter, Adapter)>,
    heads: usize,
}

impl Block {
    pub(crate) fn new(
        parameters: &mut dyn Parameters,
        name: &str,
        shape: Shape,
    ) -> std::result::Result<Self, LoadError> {
        let Shape { width, inner, heads, adapters } = shape;
        let mut linear =
            |part: &str, inputs, outputs| Linear::new(parameters, &format!("{name}.{part}"), inputs, outputs);
        let qkv = linear("attention.qkv", width, 3 * width)?;
        let out = linear("attention.out", width, width)?;
        let up = linear("mlp.up", width, inner)?;
        let down = linear("mlp.down", inner, width)?;
        let norm1 = Norm::new(parameters, &format!("{name}.norm1"), width)?;
        let norm2 = Norm::new(parameters, &format!("{name}.norm2"), width)?;
        let mut adapter = |part: &str| Adapter::new(parameters, &format!("{name}.{part}"), width);
        let adapters = match adapters {
            true => Some((adapter("adapter.attention")?, adapter("adapter.mlp")?)),
            false => None,
        };
        Ok(Block { norm1, qkv, out, norm2, up, down, adapters, heads })
    }

    /// `x`: (batch, tokens, width); `lengths`: the unpadded length of each sequence.
    pub(crate) fn forward(&self, x: &Tensor, lengths: Option<&Arc<[usize]>>) -> Result<Tensor> {
        let qkv = self.qkv.forward(&self.norm1.forward(x)?)?;
        let mut attended = self.out.forward(&attention(&qkv, self.heads, lengths.cloned())?)?;
        if let Some((adapter, _)) = &self.adapters {
            attended = (&attended + adapter.forward(&attended)?)?;
        }
        let x = (x + attended)?;
        let normed = self.norm2.forward(&x)?;
        let changed = (&x + self.down.forward(&self.up.forward_relu(&normed)?)?)?;
        match &self.adapters {
            Some((_, adapter)) => changed + (adapter.forward(&normed)? * ADAPTER_SCALE)?,
            None => Ok(changed),
        }
    }
}

/// L2-normalised rows.
///
/// # Errors
/// Failures of the device.
pub fn unit(x: &Tensor) -> Result<Tensor> {
    let norm = (x.sqr()?.sum_keepdim(candle_core::D::Minus1)? + 1e-12)?.sqrt()?;
    x.broadcast_div(&norm)
}
