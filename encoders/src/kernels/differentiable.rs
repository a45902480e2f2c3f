//! Layers with a gradient, for training, on the kernels.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};

use super::attention::{AttentionMask, Heads, attend, gradient_of_attention};
use super::finish::Finish;
use super::matrix::{Rows, Target, written};
use super::norm::Input;
use super::ops::{Weight, values_of};
use super::sharing::threads_for;
use super::{Activation, Cores, Processor};

/// `x W + b` on the last dimension of contiguous `x`, then ReLU if `relu`. `weight` is (inputs, outputs), `bias`
/// (outputs), all f32 on the CPU.
///
/// # Errors
/// Other types, shapes or devices.
pub(crate) fn linear(
    processor: Processor,
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    relu: bool,
) -> Result<Tensor> {
    x.apply_op3(weight, bias, Linear { processor, relu })
}

/// Multi-head self-attention on contiguous packed rows: (batch, tokens, 3 width) to (batch, tokens, width), f32 on the CPU.
///
/// `lengths`: the unpadded length of each sequence, at least 1, for the attention mask; `None`: no mask.
///
/// # Errors
/// Other types, shapes or devices.
pub(crate) fn attention(
    processor: Processor,
    qkv: &Tensor,
    heads: usize,
    lengths: Option<Arc<[usize]>>,
) -> Result<Tensor> {
    qkv.apply_op1(Attention { processor, heads, lengths })
}

/// The values of a contiguous f32 tensor on the CPU.
pub(crate) fn stored<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        Storage::Cpu(storage) => values_of(storage, layout),
        _ => bail!("the tensor is not on the CPU"),
    }
}

struct Linear {
    processor: Processor,
    relu: bool,
}

impl Linear {
    /// `rows W`, of `weight` row after row, and the steps of `finish`.
    fn product(&self, rows: Rows<'_>, weight: &[f32], outputs: usize, finish: Finish<'_>) -> Vec<f32> {
        let (count, inputs) = (rows.rows, rows.columns);
        let weight = Weight::of_floats(self.processor, weight, inputs, outputs);
        let cores = Cores { processor: self.processor, threads: threads_for(count * inputs * outputs) };
        written(count, outputs, |to| weight.multiply(cores, Input::new(rows, None), to, finish))
    }
}

impl CustomOp3 for Linear {
    fn name(&self) -> &'static str {
        "linear with gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        of_x: &Layout,
        weight: &CpuStorage,
        of_weight: &Layout,
        bias: &CpuStorage,
        of_bias: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (inputs, outputs) = of_weight.shape().dims2()?;
        let (x, weight, bias) =
            (values_of(x, of_x)?, values_of(weight, of_weight)?, values_of(bias, of_bias)?);
        let mut shape = of_x.dims().to_vec();
        match shape.last_mut() {
            Some(last) if *last == inputs && inputs * outputs > 0 && bias.len() == outputs => *last = outputs,
            _ => bail!("rows of {:?} do not fit a layer from {inputs} to {outputs} values", of_x.dims()),
        }
        let activation = self.relu.then_some(Activation::Relu);
        let finish = Finish { bias: Some(bias), activation, ..Finish::default() };
        let rows = Rows::new(x, x.len() / inputs, inputs, inputs);
        Ok((CpuStorage::F32(self.product(rows, weight, outputs, finish)), Shape::from(shape)))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (inputs, outputs) = weight.dims2()?;
        let rows = x.elem_count() / inputs;
        let gradient = gradient.contiguous()?.reshape((rows, outputs))?;
        let gradient = if self.relu { passed(result, &gradient)? } else { gradient };
        let of_bias = column_sums(&gradient)?;
        let of_weight = x.detach().reshape((rows, inputs))?.t()?.matmul(&gradient)?;
        let of_x = match x.track_op() {
            false => None,
            true => Some(self.gradient_of_rows(&gradient, weight)?.reshape(x.shape())?),
        };
        Ok((of_x, Some(of_weight), Some(of_bias.reshape(bias.shape())?)))
    }
}

impl Linear {
    /// `gradient W^T`, (rows, inputs).
    fn gradient_of_rows(&self, gradient: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let (inputs, outputs) = weight.dims2()?;
        let turned: Vec<f32> = weight.detach().t()?.flatten_all()?.to_vec1()?;
        let (storage, layout) = gradient.storage_and_layout();
        let values = stored(&storage, layout)?;
        let rows = Rows::new(values, values.len() / outputs, outputs, outputs);
        let product = self.product(rows, &turned, inputs, Finish::default());
        Tensor::from_vec(product, (rows.rows, inputs), gradient.device())
    }
}

/// `gradient` where `result` is positive, otherwise 0.
fn passed(result: &Tensor, gradient: &Tensor) -> Result<Tensor> {
    let (of_result, of_gradient) = (result.storage_and_layout(), gradient.storage_and_layout());
    let results = stored(&of_result.0, of_result.1)?;
    let gradients = stored(&of_gradient.0, of_gradient.1)?;
    let passed = gradients.iter().zip(results).map(|(g, y)| if *y > 0.0 { *g } else { 0.0 });
    Tensor::from_vec(passed.collect(), gradient.shape(), gradient.device())
}

/// The sum of each column of contiguous (rows, columns).
fn column_sums(matrix: &Tensor) -> Result<Tensor> {
    let columns = matrix.dim(1)?;
    let (storage, layout) = matrix.storage_and_layout();
    let mut sums = vec![0.0; columns];
    for row in stored(&storage, layout)?.chunks_exact(columns.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    Tensor::from_vec(sums, columns, matrix.device())
}

struct Attention {
    processor: Processor,
    heads: usize,
    lengths: Option<Arc<[usize]>>,
}

impl Attention {
    /// The processor and threads, and the layout of packed rows.
    fn of(&self, layout: &Layout) -> Result<(Cores, Heads<'_>)> {
        let (batch, tokens, row) = layout.shape().dims3()?;
        let heads = self.heads;
        let fits = heads > 0 && row > 0 && tokens > 0 && row % (3 * heads) == 0;
        if !fits || self.lengths.as_ref().is_some_and(|lengths| lengths.len() != batch) {
            bail!("{batch} sequences of {tokens} rows of {row} do not fit {heads} heads");
        }
        let size = row / 3 / heads;
        let mask = self.lengths.as_deref().map_or(AttentionMask::All, AttentionMask::Within);
        let scale = 1.0 / (size as f32).sqrt();
        let cores = Cores {
            processor: self.processor,
            threads: threads_for(2 * batch * tokens * tokens * heads * size),
        };
        let (angles, is_bf16) = (None, false);
        Ok((cores, Heads { batch, tokens, heads, kv_heads: heads, size, mask, angles, scale, is_bf16 }))
    }
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "attention with gradient"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (cores, heads) = self.of(layout)?;
        let (packed, rows, width) = (values_of(qkv, layout)?, heads.batch * heads.tokens, heads.width());
        let attended = written(rows, width, |to| attend(cores, packed, to, heads));
        Ok((CpuStorage::F32(attended), Shape::from((heads.batch, heads.tokens, width))))
    }

    fn bwd(&self, qkv: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.contiguous()?;
        let (of_packed, of_gradient) = (qkv.storage_and_layout(), gradient.storage_and_layout());
        let (cores, heads) = self.of(of_packed.1)?;
        let packed = stored(&of_packed.0, of_packed.1)?;
        let gradients = stored(&of_gradient.0, of_gradient.1)?;
        let back = |to: Target| gradient_of_attention(cores, packed, gradients, to, heads);
        let back = written(heads.batch * heads.tokens, heads.across(), back);
        Ok(Some(Tensor::from_vec(back, qkv.shape(), qkv.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Device, Var};

    use super::*;

    fn variable(shape: &[usize], salt: usize) -> Var {
        let value = |at: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
        let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
        Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu).unwrap()).unwrap()
    }

    #[track_caller]
    fn close(got: &Tensor, expected: &Tensor) {
        assert_eq!(got.dims(), expected.dims());
        let worst = (got - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-4, "{worst}");
    }

    /// Compares results and gradients on every instruction set with those of candle's operations.
    #[track_caller]
    fn check(
        shapes: &[&[usize]],
        got: impl Fn(Processor, &[Var]) -> Result<Tensor>,
        expected: impl Fn(&[Var]) -> Result<Tensor>,
    ) {
        let inputs: Vec<Var> = shapes.iter().zip(1..).map(|(shape, salt)| variable(shape, salt)).collect();
        let expected = expected(&inputs).unwrap();
        let weights = variable(expected.dims(), 9);
        let gradients = |of: &Tensor| (of * weights.as_tensor()).unwrap().sum_all().unwrap().backward();
        let wanted = gradients(&expected).unwrap();
        for processor in Processor::all() {
            let got = got(processor, &inputs).unwrap();
            close(&got, &expected);
            let gradients = gradients(&got).unwrap();
            for input in &inputs {
                close(gradients.get(input).unwrap(), wanted.get(input).unwrap());
            }
        }
    }

    #[test]
    fn a_linear_layer_has_candles_gradient() {
        for (outputs, relu) in [(17, false), (130, false), (130, true)] {
            check(
                &[&[3, 11, 40], &[40, outputs], &[outputs]],
                |processor, x| linear(processor, &x[0], &x[1], &x[2], relu),
                |x| {
                    let y = x[0].broadcast_matmul(&x[1])?.broadcast_add(&x[2])?;
                    if relu { y.relu() } else { Ok(y) }
                },
            );
        }
    }

    /// Attention in candle's operations; `hidden` is added to the scores.
    fn attended(qkv: &Tensor, heads: usize, hidden: &Tensor) -> Result<Tensor> {
        let (batch, tokens, row) = qkv.dims3()?;
        let size = row / 3 / heads;
        let split = qkv.reshape((batch, tokens, 3, heads, size))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let scores = (split.get(0)?.matmul(&split.get(1)?.t()?)? * (1.0 / (size as f64).sqrt()))?;
        let scores = scores.broadcast_add(hidden)?.exp()?;
        let weights = scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)?;
        weights.matmul(&split.get(2)?)?.transpose(1, 2)?.contiguous()?.reshape((batch, tokens, row / 3))
    }

    #[test]
    fn attention_has_candles_gradient() {
        for (tokens, size) in [(1_usize, 8), (17, 32), (33, 40), (70, 6)] {
            for lengths in [vec![tokens; 3], vec![tokens, 1, tokens.div_ceil(2)]] {
                let places = lengths.iter().flat_map(|length| (0..tokens).map(|at| (at, *length)));
                let hidden: Vec<f32> =
                    places.map(|(at, length)| if at < length { 0_f32 } else { -1e9 }).collect();
                let hidden = Tensor::from_vec(hidden, (3, 1, 1, tokens), &Device::Cpu).unwrap();
                let masks = lengths.iter().any(|length| *length < tokens);
                let mask: Option<Arc<[usize]>> = masks.then(|| lengths.into());
                check(
                    &[&[3, tokens, 6 * size]],
                    |processor, x| attention(processor, &x[0], 2, mask.clone()),
                    |x| attended(&x[0], 2, &hidden),
                );
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let Some(processor) = Processor::detect() else { return };
        let [x, weight, bias] = [variable(&[2, 5, 12], 1), variable(&[12, 7], 2), variable(&[7], 3)];
        assert!(linear(processor, &x, &weight, &bias, false).is_ok());
        assert!(linear(processor, &x, &weight, &weight, false).is_err());
        assert!(linear(processor, &weight, &weight, &bias, false).is_err());
        assert!(attention(processor, &x, 2, None).is_ok());
        assert!(attention(processor, &x, 5, None).is_err());
        assert!(attention(processor, &x, 2, Some([5].into())).is_err());
    }
}
