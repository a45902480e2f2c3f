//! Differentiable operations of the sports family: fused on a CPU, candle's basic operations on other devices.
//!
//! candle's fused layer norm and softmax have no gradient, and its basic operations slow a training step on a CPU
//! several times: each writes a tensor, and adds its gradient to one of zeros. These have a fast forward pass and an
//! exact gradient. Tests compare both with [`basic`].

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp3, D, Layout, Result, Shape, Tensor};

use crate::kernels::differentiable::stored;
use crate::kernels::{Processor, differentiable, values_of};

/// Epsilon of every layer norm.
pub(super) const EPSILON: f32 = 1e-5;

/// `x W + b` on the last dimension, then ReLU if `relu`; `weight` is (inputs, outputs), `bias` (outputs).
pub(crate) fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
    match processor(x) {
        Some(processor) => differentiable::linear(processor, &x.contiguous()?, weight, bias, relu),
        None => basic::linear(x, weight, bias, relu),
    }
}

/// Layer normalisation of each row (last dimension).
pub(crate) fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return basic::layer_norm(x, weight, bias);
    }
    x.contiguous()?.apply_op3(weight, bias, LayerNorm)
}

/// Multi-head attention on packed rows: (batch, tokens, 3 width) to (batch, tokens, width).
///
/// `lengths`: the unpadded length of each sequence, at least 1, for the attention mask; `None`: no mask.
pub(crate) fn attention(qkv: &Tensor, heads: usize, lengths: Option<Arc<[usize]>>) -> Result<Tensor> {
    match processor(qkv) {
        Some(processor) => differentiable::attention(processor, &qkv.contiguous()?, heads, lengths),
        None => basic::attention(qkv, heads, lengths.as_deref()),
    }
}

/// The processor whose kernels run operations on `x`, if there is one.
fn processor(x: &Tensor) -> Option<Processor> {
    if x.device().is_cpu() { Processor::detect() } else { None }
}

/// The windows of a convolution, one row each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConvPatches {
    /// Pixels along one side of the picture.
    pub(crate) side: usize,
    /// Side of the kernel in pixels.
    pub(crate) kernel: usize,
    /// Stride in pixels.
    pub(crate) stride: usize,
}

impl ConvPatches {
    /// Rows and columns of zeros on each side of the picture.
    fn padding(&self) -> usize {
        self.kernel.saturating_sub(self.stride).div_ceil(2)
    }

    /// Windows along one side.
    pub(crate) fn out(&self) -> usize {
        (self.side + 2 * self.padding()).saturating_sub(self.kernel) / self.stride + 1
    }

    /// The pixel for every value of every window, in order; `None` outside the picture.
    fn pixels(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        let ConvPatches { side, kernel, stride } = *self;
        let (padding, out) = (self.padding(), self.out());
        (0..out * out * kernel * kernel).map(move |at| {
            let (place, offset) = (at / (kernel * kernel), at % (kernel * kernel));
            let row = (place / out * stride + offset / kernel).checked_sub(padding)?;
            let column = (place % out * stride + offset % kernel).checked_sub(padding)?;
            (row < side && column < side).then_some(row * side + column)
        })
    }

    /// (batch, side * side, channels) to (batch, out * out, kernel * kernel * channels).
    pub(crate) fn gather(&self, x: &Tensor) -> Result<Tensor> {
        if !x.device().is_cpu() {
            return basic::gather(self, x);
        }
        x.contiguous()?.apply_op1(Gather::new(*self))
    }
}

fn like(values: Vec<f32>, tensor: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(values, tensor.shape(), tensor.device())
}

/// Eight partial sums, which the compiler can keep in one register.
fn lanes(values: impl Iterator<Item = [f32; 8]>, rest: impl Iterator<Item = f32>) -> f32 {
    let mut sums = [0_f32; 8];
    for eight in values {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += value;
        }
    }
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_eights, b_eights) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a_eights.remainder().iter().zip(b_eights.remainder()).map(|(a, b)| a * b);
    lanes(a_eights.zip(b_eights).map(|(a, b)| std::array::from_fn(|at| a[at] * b[at])), rest)
}

fn sum(a: &[f32]) -> f32 {
    let eights = a.chunks_exact(8);
    let rest = eights.remainder().iter().copied();
    lanes(eights.map(|a| std::array::from_fn(|at| a[at])), rest)
}

/// `to += from`.
fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

struct LayerNorm;

/// Mean and inverse standard deviation.
fn moments(row: &[f32]) -> (f32, f32) {
    let count = row.len() as f32;
    let mean = sum(row) / count;
    let eights = row.chunks_exact(8);
    let rest = eights.remainder().iter().map(|x| (x - mean) * (x - mean));
    let squares = lanes(eights.map(|x| std::array::from_fn(|at| (x[at] - mean) * (x[at] - mean))), rest);
    (mean, 1.0 / (squares / count + EPSILON).sqrt())
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm-with-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, weight) = (values_of(x, x_layout)?, values_of(weight, weight_layout)?);
        let bias = values_of(bias, bias_layout)?;
        let mut normed = Vec::with_capacity(x.len());
        for row in x.chunks_exact(weight.len().max(1)) {
            let (mean, scale) = moments(row);
            let values = row.iter().zip(weight).zip(bias);
            normed.extend(values.map(|((x, weight), bias)| (x - mean) * scale * weight + bias));
        }
        Ok((CpuStorage::F32(normed), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        _result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?;
        let (g_storage, g_layout) = gradient.storage_and_layout();
        let (x_storage, x_layout) = x.storage_and_layout();
        let (w_storage, w_layout) = weight.storage_and_layout();
        let weights = stored(&w_storage, w_layout)?;
        let width = weights.len();
        let (mut for_weight, mut for_bias) = (vec![0.0; width], vec![0.0; width]);
        let (mut unit, mut weighted) = (vec![0.0; width], vec![0.0; width]);
        let mut for_x = Vec::with_capacity(x.elem_count());
        let rows = stored(&x_storage, x_layout)?.chunks_exact(width.max(1));
        for (row, g) in rows.zip(stored(&g_storage, g_layout)?.chunks_exact(width.max(1))) {
            let (mean, scale) = moments(row);
            for at in 0..width {
                unit[at] = (row[at] - mean) * scale;
                weighted[at] = g[at] * weights[at];
                for_weight[at] += g[at] * unit[at];
                for_bias[at] += g[at];
            }
            let mean = sum(&weighted) / width as f32;
            let along = dot(&weighted, &unit) / width as f32;
            let values = weighted.iter().zip(&unit);
            for_x.extend(values.map(|(weighted, unit)| scale * (weighted - mean - unit * along)));
        }
        Ok((Some(like(for_x, x)?), Some(like(for_weight, weight)?), Some(like(for_bias, bias)?)))
    }
}

/// Pixels that follow each other in the windows and in the picture.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first pixel; `None` outside the picture.
    pixel: Option<usize>,
    pixels: usize,
}

struct Gather {
    windows: ConvPatches,
    /// All windows' pixels, in order.
    runs: Vec<Run>,
}

impl Gather {
    fn new(windows: ConvPatches) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for pixel in windows.pixels() {
            match runs.last_mut() {
                Some(run) if run.pixel.map(|first| first + run.pixels) == pixel => run.pixels += 1,
                _ => runs.push(Run { pixel, pixels: 1 }),
            }
        }
        Gather { windows, runs }
    }

    /// Pixels of all windows.
    fn pixels(&self) -> usize {
        let ConvPatches { kernel, .. } = self.windows;
        self.windows.out().pow(2) * kernel * kernel
    }
}

impl CustomOp1 for Gather {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, places, channels) = layout.shape().dims3()?;
        let ConvPatches { side, kernel, .. } = self.windows;
        if places != side * side {
            candle_core::bail!("{places} places are no picture of {side} by {side}");
        }
        let x = values_of(x, layout)?;
        let mut gathered = Vec::with_capacity(batch * self.pixels() * channels);
        for picture in x.chunks_exact((places * channels).max(1)) {
            for Run { pixel, pixels } in &self.runs {
                match pixel {
                    Some(pixel) => {
                        gathered.extend_from_slice(&picture[pixel * channels..][..pixels * channels]);
                    }
                    None => gathered.resize(gathered.len() + pixels * channels, 0.0),
                }
            }
        }
        let out = self.windows.out();
        Ok((CpuStorage::F32(gathered), Shape::from((batch, out * out, kernel * kernel * channels))))
    }

    fn bwd(&self, x: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let gradients = stored(&storage, layout)?;
        let (batch, places, channels) = x.dims3()?;
        let mut back = vec![0.0; batch * places * channels];
        let pictures = back.chunks_exact_mut((places * channels).max(1));
        for (picture, gradients) in pictures.zip(gradients.chunks_exact((self.pixels() * channels).max(1))) {
            let mut rest = gradients;
            for Run { pixel, pixels } in &self.runs {
                let (g, others) = rest.split_at(pixels * channels);
                rest = others;
                if let Some(pixel) = pixel {
                    add(&mut picture[pixel * channels..][..g.len()], g);
                }
            }
        }
        Ok(Some(like(back, x)?))
    }
}

/// The same operations with candle's basic ones, which have gradients on every device.
pub(crate) mod basic {
    use super::{ConvPatches, D, EPSILON, Result, Tensor};

    pub(crate) fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
        let sum = x.broadcast_matmul(weight)?.broadcast_add(bias)?;
        if relu { sum.relu() } else { Ok(sum) }
    }

    pub(crate) fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let unit = centred.broadcast_div(&(variance + f64::from(EPSILON))?.sqrt()?)?;
        unit.broadcast_mul(weight)?.broadcast_add(bias)
    }

    pub(crate) fn attention(qkv: &Tensor, heads: usize, lengths: Option<&[usize]>) -> Result<Tensor> {
        let (batch, tokens, row) = qkv.dims3()?;
        let (width, size) = (row / 3, row / 3 / heads);
        let split = qkv.reshape((batch, tokens, 3, heads, size))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (query, key, value) = (split.get(0)?, split.get(1)?, split.get(2)?);
        let mut scores = (query.matmul(&key.t()?)? * (1.0 / (size as f64).sqrt()))?;
        if let Some(lengths) = lengths {
            scores = scores.broadcast_add(&mask(lengths, tokens, qkv)?)?;
        }
        let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?.exp()?;
        let shares = scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)?;
        shares.matmul(&value)?.transpose(1, 2)?.contiguous()?.reshape((batch, tokens, width))
    }

    /// (batch, 1, 1, tokens): the additive attention mask, -1e9 at padding.
    fn mask(lengths: &[usize], tokens: usize, like: &Tensor) -> Result<Tensor> {
        let hidden = |length: usize, token: usize| if token < length.max(1) { 0_f32 } else { -1e9 };
        let mask = lengths.iter().flat_map(|length| (0..tokens).map(move |token| hidden(*length, token)));
        Tensor::from_vec(mask.collect(), (lengths.len(), 1, 1, tokens), like.device())
    }

    pub(crate) fn gather(windows: &ConvPatches, x: &Tensor) -> Result<Tensor> {
        let (batch, places, channels) = x.dims3()?;
        let zeros = Tensor::zeros((batch, 1, channels), x.dtype(), x.device())?;
        let rows: Vec<u32> = windows.pixels().map(|pixel| pixel.unwrap_or(places) as u32).collect();
        let rows = Tensor::new(rows, x.device())?;
        let gathered = Tensor::cat(&[x, &zeros], 1)?.index_select(&rows, 1)?;
        let (out, kernel) = (windows.out(), windows.kernel);
        gathered.reshape((batch, out * out, kernel * kernel * channels))
    }
}
