//! Linear layers and norms, by the kernels of the processor where there are some, else by candle's own operations.
//! Inference only: neither keeps gradients.

use candle_core::{Device, Result, Tensor};

use super::transformer::tensor;
use crate::LoadError;
pub(crate) use crate::kernels::Activation;
use crate::kernels::{self, PackedLinear, Precision};
use crate::weights::Weights;

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
        let x = x.contiguous()?;
        match kernels::layer_norm(&x, &self.weight, &self.bias, self.epsilon)? {
            Some(normed) => Ok(normed),
            None => candle_nn::ops::layer_norm(&x, &self.weight, &self.bias, self.epsilon),
        }
    }
}

/// The learnt part of a linear layer, as long as it may still change: read, scaled, joined with others.
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
        (inputs, outputs): (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let bias = tensor(weights, &format!("{name}.bias"), &[outputs], device)?;
        let weight = tensor(weights, &format!("{name}.weight"), &[outputs, inputs], device)?;
        Ok(Affine::of_rows(&weight, Some(bias))?)
    }

    /// `weight`: (outputs, inputs); `bias`: (outputs).
    fn of_rows(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Ok(Affine { weight: weight.t()?.contiguous()?, bias })
    }

    /// One layer with the outputs of several, one after the other; all have a bias or none has.
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

    /// Ready to run.
    pub(crate) fn packed(self, precision: Precision) -> Result<Linear> {
        match PackedLinear::new(&self.weight, self.bias.as_ref(), precision)? {
            Some(packed) => Ok(Linear(Kind::Packed(packed))),
            None => Ok(Linear(Kind::Plain(self))),
        }
    }
}

/// `x W + b` on rows.
#[derive(Debug)]
pub(crate) struct Linear(Kind);

#[derive(Debug)]
enum Kind {
    Packed(PackedLinear),
    Plain(Affine),
}

impl Linear {
    /// Reads `{name}.weight` of (outputs, inputs), and `{name}.bias`; multiplied in f32 whatever the precision of the
    /// model: for layers at either end of a tower.
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        sizes: (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        Ok(Affine::load(weights, name, sizes, device)?.packed(Precision::F32)?)
    }

    /// The same in the precision that the weights are to be multiplied in: for layers inside a tower.
    pub(crate) fn load_inner(
        weights: &Weights,
        name: &str,
        sizes: (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        Ok(Affine::load(weights, name, sizes, device)?.packed(weights.precision())?)
    }

    /// Reads `{name}.weight` of (outputs, inputs); in f32.
    pub(crate) fn load_without_bias(
        weights: &Weights,
        name: &str,
        (inputs, outputs): (usize, usize),
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let weight = tensor(weights, &format!("{name}.weight"), &[outputs, inputs], device)?;
        Ok(Linear::of_rows(&weight, None)?)
    }

    /// `weight`: (outputs, inputs); `bias`: (outputs); in f32.
    pub(crate) fn of_rows(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Affine::of_rows(weight, bias)?.packed(Precision::F32)
    }

    /// (rows, inputs) to (rows, outputs).
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.forward_with(rows, None, None)
    }

    /// `activation(x W + b) + residual`: (rows, inputs) to (rows, outputs), of which the residual is too.
    pub(crate) fn forward_with(
        &self,
        rows: &Tensor,
        activation: Option<Activation>,
        residual: Option<&Tensor>,
    ) -> Result<Tensor> {
        let Affine { weight, bias } = match &self.0 {
            Kind::Packed(packed) => return packed.forward(&rows.contiguous()?, activation, residual),
            Kind::Plain(affine) => affine,
        };
        let product = rows.matmul(weight)?;
        let biased = bias.as_ref().map_or(Ok(product.clone()), |bias| product.broadcast_add(bias))?;
        let active = activation.map_or(Ok(biased.clone()), |activation| activation.apply(&biased))?;
        residual.map_or(Ok(active.clone()), |residual| active + residual)
    }
}
