//! Layers of the sports family: linear layers, layer norms and transformer blocks.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::operations::{EPSILON, attention, layer_norm, linear};
use super::parameters::{Parameters, Start};
use crate::LoadError;
use crate::kernels::{self, Activation, AttentionMask, Beside, PackedLinear, Processor};

/// The processor whose kernels run the layers of `parameters`; `None`: differentiable operations run them.
fn processor(parameters: &dyn Parameters, of: &Tensor) -> Option<Processor> {
    (parameters.are_for_inference() && of.device().is_cpu()).then(Processor::detect).flatten()
}

/// `x W + b` on the last dimension.
#[derive(Debug, Clone)]
pub struct Linear {
    inputs: usize,
    outputs: usize,
    weights: LinearWeights,
}

#[derive(Debug, Clone)]
enum LinearWeights {
    /// `weight` is (inputs, outputs).
    Trainable {
        weight: Tensor,
        bias: Tensor,
    },
    Packed(Arc<PackedLinear>),
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
        let weights = match processor(parameters, &weight) {
            Some(processor) => {
                let weight = weight.contiguous()?;
                LinearWeights::Packed(Arc::new(PackedLinear::of_floats(processor, &weight, Some(&bias))?))
            }
            None => LinearWeights::Trainable { weight, bias },
        };
        Ok(Linear { inputs, outputs, weights })
    }

    /// (..., inputs) to (..., outputs).
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, None, false)
    }

    /// [`Linear::forward`] followed by ReLU.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward_relu(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, None, true)
    }

    /// [`Linear::forward`] plus `residual` of (..., outputs).
    fn forward_onto(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor> {
        self.apply(x, Some(residual), false)
    }

    fn apply(&self, x: &Tensor, residual: Option<&Tensor>, relu: bool) -> Result<Tensor> {
        match &self.weights {
            LinearWeights::Packed(packed) => self.apply_packed(packed, x, residual, relu),
            LinearWeights::Trainable { weight, bias } => {
                let y = linear(x, weight, bias, relu)?;
                residual.map_or(Ok(y.clone()), |residual| residual + y)
            }
        }
    }

    fn apply_packed(
        &self,
        packed: &PackedLinear,
        x: &Tensor,
        residual: Option<&Tensor>,
        relu: bool,
    ) -> Result<Tensor> {
        let mut shape = x.dims().to_vec();
        let rows = x.elem_count() / self.inputs.max(1);
        let residual = residual.map(|residual| residual.reshape((rows, self.outputs))).transpose()?;
        let beside = residual.as_ref().map_or(Beside::Nothing, Beside::Added);
        let activation = relu.then_some(Activation::Relu);
        let y = packed.forward(&x.reshape((rows, self.inputs))?, None, activation, beside)?;
        if let Some(last) = shape.last_mut() {
            *last = self.outputs;
        }
        y.reshape(shape)
    }
}

/// Layer normalisation.
#[derive(Debug, Clone)]
pub struct Norm(NormWeights);

#[derive(Debug, Clone)]
enum NormWeights {
    Trainable { weight: Tensor, bias: Tensor },
    Packed(Arc<kernels::Norm>, Processor),
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
        Ok(Norm(match processor(parameters, &weight) {
            Some(processor) => {
                NormWeights::Packed(Arc::new(kernels::Norm::new(&weight, &bias, EPSILON)?), processor)
            }
            None => NormWeights::Trainable { weight, bias },
        }))
    }

    fn processor(&self) -> Option<Processor> {
        match &self.0 {
            NormWeights::Trainable { .. } => None,
            NormWeights::Packed(_, processor) => Some(*processor),
        }
    }

    /// Normalises `x` on its last dimension.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match &self.0 {
            NormWeights::Trainable { weight, bias } => layer_norm(x, weight, bias),
            NormWeights::Packed(norm, processor) => norm.forward(*processor, &x.contiguous()?),
        }
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

    /// [`Adapter::forward`] of `x`, plus `x`.
    fn forward_onto_itself(&self, x: &Tensor) -> Result<Tensor> {
        self.up.forward_onto(&self.down.forward_relu(x)?, x)
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
    /// Runs attention by its kernels, if the layers run theirs.
    processor: Option<Processor>,
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
        let processor = norm1.processor();
        Ok(Block { norm1, qkv, out, norm2, up, down, adapters, heads, processor })
    }

    /// `x`: (batch, tokens, width); `lengths`: the unpadded length of each sequence.
    pub(crate) fn forward(&self, x: &Tensor, lengths: Option<&Arc<[usize]>>) -> Result<Tensor> {
        let attended = self.attend(&self.qkv.forward(&self.norm1.forward(x)?)?, lengths)?;
        let x = match &self.adapters {
            Some((adapter, _)) => (x + adapter.forward_onto_itself(&self.out.forward(&attended)?)?)?,
            None => self.out.forward_onto(&attended, x)?,
        };
        let normed = self.norm2.forward(&x)?;
        let changed = self.down.forward_onto(&self.up.forward_relu(&normed)?, &x)?;
        match &self.adapters {
            Some((_, adapter)) => changed + (adapter.forward(&normed)? * ADAPTER_SCALE)?,
            None => Ok(changed),
        }
    }

    /// The heads' attention on `qkv`, (batch, tokens, 3 width), to (batch, tokens, width).
    fn attend(&self, qkv: &Tensor, lengths: Option<&Arc<[usize]>>) -> Result<Tensor> {
        let Some(processor) = self.processor else { return attention(qkv, self.heads, lengths.cloned()) };
        let (batch, tokens, row) = qkv.dims3()?;
        let (heads, width) = (self.heads, row / 3);
        let packed = kernels::Attention {
            processor,
            tokens,
            heads,
            kv_heads: heads,
            mask: lengths.map_or(AttentionMask::All, |lengths| AttentionMask::Within(lengths)),
            angles: None,
            scale: 1.0 / ((width / heads) as f32).sqrt(),
            is_bf16: false,
        };
        packed.of(&qkv.reshape((batch * tokens, row))?)?.reshape((batch, tokens, width))
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
