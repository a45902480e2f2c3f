//! Linear layers and layer norms. A [`Placement`] with a processor runs our kernels; others run candle's operations,
//! also in half precision. Each layer decides at load; models use both the same way.
//!
//! Inference only: no layer keeps gradients.

use candle_core::{DType, Result, Tensor};

use crate::LoadError;
use crate::device::{Placement, Precision};
pub(crate) use crate::kernels::Activation;
use crate::kernels::{Beside, Norm, PackedLinear, Processor};
use crate::loading::Weights;

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

/// Layer normalisation; computes in f32 whatever the input type.
#[derive(Debug)]
pub(crate) enum LayerNorm {
    /// Runs the processor's kernels.
    Packed(Norm, Processor),
    /// Runs candle's operations: weight, bias, epsilon.
    Plain(Tensor, Tensor, f32),
}

impl LayerNorm {
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        epsilon: f32,
    ) -> std::result::Result<Self, LoadError> {
        let get = |part: &str| weights.get(&format!("{name}.{part}"), &[width]);
        let (weight, bias) = (get("weight")?, get("bias")?);
        Ok(match weights.placement().processor() {
            Some(processor) => LayerNorm::Packed(Norm::new(&weight, &bias, epsilon)?, processor),
            None => LayerNorm::Plain(weight, bias, epsilon),
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.to_dtype(DType::F32)?.contiguous()?;
        match self {
            LayerNorm::Packed(norm, processor) => norm.forward(*processor, &x),
            LayerNorm::Plain(weight, bias, epsilon) => candle_nn::ops::layer_norm(&x, weight, bias, *epsilon),
        }
    }
}

/// Weight and bias of a linear layer before [`Affine::ready`]: they can still be scaled or joined.
#[derive(Debug)]
pub(crate) struct Affine {
    /// (inputs, outputs).
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Affine {
    /// Reads `{name}.weight` of (outputs, inputs), and `{name}.bias`.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        let bias = weights.get(&format!("{name}.bias"), &[outputs])?;
        let weight = weights.get(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Affine::of_rows(&weight, Some(bias))?)
    }

    /// Computes in the weight's type.
    fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        // candle's GPU product needs contiguous rows.
        let product = rows.contiguous()?.to_dtype(self.weight.dtype())?.matmul(&self.weight)?;
        self.bias.as_ref().map_or(Ok(product.clone()), |bias| product.broadcast_add(bias))
    }

    /// `weight`: (outputs, inputs); `bias`: (outputs).
    pub(crate) fn of_rows(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Ok(Affine { weight: weight.t()?.contiguous()?, bias })
    }

    /// One layer that concatenates the outputs of `layers`. Either all have a bias or none has.
    pub(crate) fn joined(layers: &[&Affine]) -> Result<Self> {
        let weights: Vec<&Tensor> = layers.iter().map(|layer| &layer.weight).collect();
        let biases: Option<Vec<&Tensor>> = layers.iter().map(|layer| layer.bias.as_ref()).collect();
        let bias = biases.map(|biases| Tensor::cat(&biases, 0)).transpose()?;
        Ok(Affine { weight: Tensor::cat(&weights, 1)?, bias })
    }

    pub(crate) fn scaled(&self, scale: f64) -> Result<Self> {
        let bias = self.bias.as_ref().map(|bias| bias * scale).transpose()?;
        Ok(Affine { weight: (&self.weight * scale)?, bias })
    }

    /// The layer in the form that `placement` runs.
    pub(crate) fn ready(self, placement: &Placement) -> Result<Linear> {
        let Affine { weight, bias } = self;
        let bias = bias.as_ref();
        let packed = match (placement.processor(), placement.precision()) {
            (None, _) => {
                let bias = bias.map(|bias| bias.to_dtype(placement.float())).transpose()?;
                return Ok(Linear::Plain(Affine { weight: weight.to_dtype(placement.float())?, bias }));
            }
            (Some(processor), Precision::Int8) => PackedLinear::of_bytes(processor, &weight, bias),
            (Some(processor), Precision::Bf16) => PackedLinear::of_bf16(processor, &weight, bias),
            (Some(processor), _) => PackedLinear::of_floats(processor, &weight, bias),
        };
        packed.map(Linear::Packed)
    }
}

/// `x W + b` on rows.
#[derive(Debug)]
pub(crate) enum Linear {
    /// Runs the processor's kernels.
    Packed(PackedLinear),
    /// Runs candle's operations, in the weight's type.
    Plain(Affine),
}

impl Linear {
    /// Reads `{name}.weight` of (outputs, inputs), and `{name}.bias`. Computes in f32 whatever the model's precision:
    /// for the first and last layers of a tower.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        Ok(Affine::load(weights, name, inputs, outputs)?.ready(&weights.placement().in_f32())?)
    }

    /// Like [`Linear::load`], in the model's precision: for layers inside a tower.
    pub(crate) fn load_inner(
        weights: &Weights,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        Ok(Affine::load(weights, name, inputs, outputs)?.ready(weights.placement())?)
    }

    /// Reads `{name}.weight` of (outputs, inputs); computes in f32.
    pub(crate) fn load_without_bias(
        weights: &Weights,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        let weight = weights.get(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Linear::of_rows(weights.placement(), &weight, None)?)
    }

    /// `weight`: (outputs, inputs); `bias`: (outputs); computes in f32.
    pub(crate) fn of_rows(placement: &Placement, weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Affine::of_rows(weight, bias)?.ready(&placement.in_f32())
    }

    /// As [`Linear::of_rows`], for rows of pixels: see [`Placement::for_pixels`].
    pub(crate) fn of_pixels(placement: &Placement, weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Affine::of_rows(weight, bias)?.ready(&placement.for_pixels())
    }

    /// `weight`: (inputs, outputs); computes in the precision of `placement`.
    pub(crate) fn without_bias(placement: &Placement, weight: &Tensor) -> Result<Self> {
        Affine { weight: weight.clone(), bias: None }.ready(placement)
    }

    /// (rows, inputs) to (rows, outputs), f32.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.forward_onto(rows, None)
    }

    /// Like [`Linear::forward`], plus `residual` of (rows, outputs), f32.
    pub(crate) fn forward_onto(&self, rows: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        match self {
            Linear::Packed(packed) => {
                let beside = residual.map_or(Beside::Nothing, Beside::Added);
                packed.forward(&rows.contiguous()?, None, None, beside)
            }
            Linear::Plain(affine) => {
                let wide = affine.forward(rows)?.to_dtype(DType::F32)?;
                residual.map_or(Ok(wide.clone()), |residual| wide + residual)
            }
        }
    }

    /// `activation(x W + b)` as input of another layer: stays in the type that this layer computes in.
    pub(crate) fn forward_inner(&self, rows: &Tensor, activation: Option<Activation>) -> Result<Tensor> {
        match self {
            Linear::Packed(packed) => packed.forward(&rows.contiguous()?, None, activation, Beside::Nothing),
            Linear::Plain(affine) => {
                let biased = affine.forward(rows)?;
                activation.map_or(Ok(biased.clone()), |activation| activation.apply(&biased))
            }
        }
    }

    /// `(x W + b) * factor` as input of another layer; `factor` is (rows, outputs), in the type that this layer computes
    /// in.
    pub(crate) fn forward_times(&self, rows: &Tensor, factor: &Tensor) -> Result<Tensor> {
        match self {
            Linear::Packed(packed) => {
                packed.forward(&rows.contiguous()?, None, None, Beside::Multiplied(factor))
            }
            Linear::Plain(affine) => affine.forward(rows)? * factor,
        }
    }

    /// Like [`Linear::forward_inner`], with the layer norm `norm` before it.
    pub(crate) fn forward_normed(
        &self,
        rows: &Tensor,
        norm: &LayerNorm,
        activation: Option<Activation>,
    ) -> Result<Tensor> {
        match (self, norm) {
            (Linear::Packed(packed), LayerNorm::Packed(norm, _)) => {
                packed.forward(&rows.contiguous()?, Some(norm), activation, Beside::Nothing)
            }
            _ => self.forward_inner(&norm.forward(rows)?, activation),
        }
    }
}

/// L2-normalised rows; a row of zeros stays zero.
pub(crate) fn divided_by_norm(rows: &Tensor) -> Result<Tensor> {
    // The same epsilon as torch.nn.functional.normalize.
    rows.broadcast_div(&rows.sqr()?.sum_keepdim(1)?.sqrt()?.maximum(1e-12)?)
}
