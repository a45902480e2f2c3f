//! Differentiable operations of the sports family: fused on a CPU, candle's basic operations on other devices.
//!
//! candle's fused layer norm and softmax have no gradient, and its basic operations slow a training step on a CPU
//! several times. These have a fast forward pass and an exact gradient. Tests compare both with [`basic`].

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, D, Layout, Result, Shape, Storage, Tensor};

/// Epsilon of every layer norm.
pub(super) const EPSILON: f32 = 1e-5;

/// `x + bias` on the last dimension, then ReLU if `relu`.
pub(crate) fn add_bias(x: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return basic::add_bias(x, bias, relu);
    }
    x.contiguous()?.apply_op2(bias, AddBias { relu })
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
    if !qkv.device().is_cpu() {
        return basic::attention(qkv, heads, lengths.as_deref());
    }
    qkv.contiguous()?.apply_op1(Attention { heads, lengths })
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
        x.contiguous()?.apply_op1(Gather { windows: *self, pixels: self.pixels().collect() })
    }
}

fn of_layout<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&values[start..end]),
        None => candle_core::bail!("the values are not contiguous"),
    }
}

fn of_storage<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        Storage::Cpu(storage) => of_layout(storage, layout),
        _ => candle_core::bail!("the values are not on the CPU"),
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

/// `to += scale * from`.
fn add_scaled(to: &mut [f32], scale: f32, from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}

struct AddBias {
    relu: bool,
}

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, bias) = (of_layout(x, x_layout)?, of_layout(bias, bias_layout)?);
        let mut sums = Vec::with_capacity(x.len());
        let floor = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        for row in x.chunks_exact(bias.len().max(1)) {
            sums.extend(row.iter().zip(bias).map(|(x, bias)| (x + bias).max(floor)));
        }
        Ok((CpuStorage::F32(sums), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _x: &Tensor,
        bias: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let values = of_storage(&storage, layout)?;
        let mut sums = vec![0.0; bias.elem_count()];
        if !self.relu {
            values.chunks_exact(sums.len().max(1)).for_each(|row| add_scaled(&mut sums, 1.0, row));
            drop(storage);
            return Ok((Some(gradient.clone()), Some(like(sums, bias)?)));
        }
        let (result_storage, result_layout) = result.storage_and_layout();
        let results = of_storage(&result_storage, result_layout)?;
        let passed = values.iter().zip(results).map(|(g, y)| if *y > 0.0 { *g } else { 0.0 });
        let passed: Vec<f32> = passed.collect();
        passed.chunks_exact(sums.len().max(1)).for_each(|row| add_scaled(&mut sums, 1.0, row));
        Ok((Some(like(passed, result)?), Some(like(sums, bias)?)))
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
        let (x, weight) = (of_layout(x, x_layout)?, of_layout(weight, weight_layout)?);
        let bias = of_layout(bias, bias_layout)?;
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
        let weights = of_storage(&w_storage, w_layout)?;
        let width = weights.len();
        let (mut for_weight, mut for_bias) = (vec![0.0; width], vec![0.0; width]);
        let (mut unit, mut weighted) = (vec![0.0; width], vec![0.0; width]);
        let mut for_x = Vec::with_capacity(x.elem_count());
        let rows = of_storage(&x_storage, x_layout)?.chunks_exact(width.max(1));
        for (row, g) in rows.zip(of_storage(&g_storage, g_layout)?.chunks_exact(width.max(1))) {
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

struct Attention {
    heads: usize,
    lengths: Option<Arc<[usize]>>,
}

/// One head of one sequence: the layout of its rows in the packed values, and its attention weights.
struct Head {
    tokens: usize,
    size: usize,
    seen: usize,
    /// Stride from one token to the next.
    row: usize,
    /// Attention weights, (tokens, attended tokens).
    shares: Vec<f32>,
}

impl Head {
    fn query<'a>(&self, values: &'a [f32], token: usize) -> &'a [f32] {
        &values[token * self.row..][..self.size]
    }

    fn key<'a>(&self, values: &'a [f32], token: usize) -> &'a [f32] {
        &values[token * self.row + self.row / 3..][..self.size]
    }

    fn value<'a>(&self, values: &'a [f32], token: usize) -> &'a [f32] {
        &values[token * self.row + self.row / 3 * 2..][..self.size]
    }

    fn scale(&self) -> f32 {
        1.0 / (self.size as f32).sqrt()
    }

    /// Computes `shares` from the packed values, which begin at this head's first query.
    fn look(&mut self, values: &[f32]) {
        let scale = self.scale();
        for token in 0..self.tokens {
            let query = self.query(values, token);
            let mut largest = f32::NEG_INFINITY;
            let at = token * self.seen;
            for other in 0..self.seen {
                let score = dot(query, self.key(values, other)) * scale;
                self.shares[at + other] = score;
                largest = largest.max(score);
            }
            let shares = &mut self.shares[at..at + self.seen];
            shares.iter_mut().for_each(|share| *share = (*share - largest).exp());
            let total = 1.0 / sum(shares);
            shares.iter_mut().for_each(|share| *share *= total);
        }
    }
}

impl Attention {
    fn head(&self, sequence: usize, tokens: usize, row: usize) -> Head {
        let seen = self.lengths.as_ref().map_or(tokens, |lengths| lengths[sequence].clamp(1, tokens));
        let size = row / 3 / self.heads;
        Head { tokens, size, seen, row, shares: vec![0.0; tokens * seen] }
    }

    fn dims(&self, layout: &Layout) -> Result<(usize, usize, usize)> {
        let (batch, tokens, row) = layout.shape().dims3()?;
        let fits = self.heads > 0 && row % (3 * self.heads) == 0;
        if !fits || self.lengths.as_ref().is_some_and(|lengths| lengths.len() != batch) {
            candle_core::bail!("{batch} sequences of rows of {row} do not fit {} heads", self.heads);
        }
        Ok((batch, tokens, row))
    }
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, tokens, row) = self.dims(layout)?;
        let (values, width) = (of_layout(qkv, layout)?, row / 3);
        let mut attended = vec![0.0; batch * tokens * width];
        for sequence in 0..batch {
            let mut head = self.head(sequence, tokens, row);
            for number in 0..self.heads {
                let values = &values[sequence * tokens * row + number * head.size..];
                head.look(values);
                for token in 0..tokens {
                    let out = (sequence * tokens + token) * width + number * head.size;
                    let out = &mut attended[out..out + head.size];
                    for other in 0..head.seen {
                        add_scaled(out, head.shares[token * head.seen + other], head.value(values, other));
                    }
                }
            }
        }
        Ok((CpuStorage::F32(attended), Shape::from((batch, tokens, width))))
    }

    fn bwd(&self, qkv: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.contiguous()?;
        let (g_storage, g_layout) = gradient.storage_and_layout();
        let (storage, layout) = qkv.storage_and_layout();
        let (batch, tokens, row) = self.dims(layout)?;
        let (values, gradients) = (of_storage(&storage, layout)?, of_storage(&g_storage, g_layout)?);
        let mut back = vec![0.0; values.len()];
        for sequence in 0..batch {
            let mut head = self.head(sequence, tokens, row);
            for number in 0..self.heads {
                let start = sequence * tokens * row + number * head.size;
                head.look(&values[start..]);
                let gradients = &gradients[sequence * tokens * row / 3 + number * head.size..];
                backwards(&head, &values[start..], gradients, &mut back[start..]);
            }
        }
        Ok(Some(like(back, qkv)?))
    }
}

/// Adds one head's gradient to `back`, which has the layout of `values`.
fn backwards(head: &Head, values: &[f32], gradients: &[f32], back: &mut [f32]) {
    let (width, scale) = (head.row / 3, head.scale());
    let mut pulls = vec![0.0; head.seen];
    for token in 0..head.tokens {
        let g = &gradients[token * width..][..head.size];
        let shares = &head.shares[token * head.seen..][..head.seen];
        for (other, pull) in pulls.iter_mut().enumerate() {
            *pull = dot(g, head.value(values, other));
            add_scaled(&mut back[other * head.row + 2 * width..][..head.size], shares[other], g);
        }
        let common = dot(&pulls, shares);
        let query = head.query(values, token);
        for other in 0..head.seen {
            let pull = shares[other] * (pulls[other] - common) * scale;
            add_scaled(&mut back[token * head.row..][..head.size], pull, head.key(values, other));
            add_scaled(&mut back[other * head.row + width..][..head.size], pull, query);
        }
    }
}

struct Gather {
    windows: ConvPatches,
    pixels: Vec<Option<usize>>,
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
        let x = of_layout(x, layout)?;
        let mut gathered = Vec::with_capacity(batch * self.pixels.len() * channels);
        for picture in x.chunks_exact((places * channels).max(1)) {
            for pixel in &self.pixels {
                match pixel {
                    Some(pixel) => gathered.extend_from_slice(&picture[pixel * channels..][..channels]),
                    None => gathered.resize(gathered.len() + channels, 0.0),
                }
            }
        }
        let out = self.windows.out();
        Ok((CpuStorage::F32(gathered), Shape::from((batch, out * out, kernel * kernel * channels))))
    }

    fn bwd(&self, x: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let gradients = of_storage(&storage, layout)?;
        let (batch, places, channels) = x.dims3()?;
        let mut back = vec![0.0; batch * places * channels];
        let pictures = back.chunks_exact_mut((places * channels).max(1));
        for (picture, gradients) in
            pictures.zip(gradients.chunks_exact((self.pixels.len() * channels).max(1)))
        {
            for (pixel, g) in self.pixels.iter().zip(gradients.chunks_exact(channels.max(1))) {
                if let Some(pixel) = pixel {
                    add_scaled(&mut picture[pixel * channels..][..channels], 1.0, g);
                }
            }
        }
        Ok(Some(like(back, x)?))
    }
}

/// The same operations with candle's basic ones, which have gradients on every device.
pub(crate) mod basic {
    use super::{ConvPatches, D, EPSILON, Result, Tensor};

    pub(crate) fn add_bias(x: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
        let sum = x.broadcast_add(bias)?;
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
