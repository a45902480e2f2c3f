//! The kernels as operations on candle's tensors.

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail, utils::get_num_threads,
};
use rayon::prelude::*;

use super::attention::{Heads, Sight, attend};
use super::elementwise::normalise;
use super::float::{self, Finish};
use super::int8::{self, BytePanels};
use super::matrix::{Panels, Rows, Target};
use super::{Activation, Processor};

/// `x W + b` on rows of f32 on the CPU, its weights packed.
#[derive(Debug)]
pub(crate) struct PackedLinear {
    processor: Processor,
    weight: Weight,
    bias: Option<Vec<f32>>,
}

#[derive(Debug)]
enum Weight {
    Float(Panels),
    Bytes(BytePanels),
}

impl PackedLinear {
    /// Packs a contiguous f32 `weight` of (inputs, outputs) on the CPU and its `bias`.
    ///
    /// # Errors
    /// Tensors of other types, shapes or devices.
    pub(crate) fn of_floats(processor: Processor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let (inputs, outputs) = weight.dims2()?;
        let weight = Weight::Float(Panels::new(&weight.flatten_all()?.to_vec1()?, inputs, outputs));
        PackedLinear { processor, weight, bias: None }.biased(bias)
    }

    /// The same, to be multiplied in bytes where the processor does so; else in floats.
    ///
    /// # Errors
    /// As [`PackedLinear::of_floats`].
    pub(crate) fn of_bytes(processor: Processor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let Processor::Avx512 { vnni: true } = processor else {
            return PackedLinear::of_floats(processor, weight, bias);
        };
        let (inputs, outputs) = weight.dims2()?;
        let weight = Weight::Bytes(BytePanels::new(&weight.flatten_all()?.to_vec1()?, inputs, outputs));
        PackedLinear { processor, weight, bias: None }.biased(bias)
    }

    fn biased(self, bias: Option<&Tensor>) -> Result<Self> {
        let bias = bias.map(|bias| bias.to_vec1::<f32>()).transpose()?;
        if bias.as_ref().is_some_and(|bias| bias.len() != self.outputs()) {
            bail!("a bias of another length than the layer's output");
        }
        Ok(PackedLinear { bias, ..self })
    }

    fn outputs(&self) -> usize {
        match &self.weight {
            Weight::Float(panels) => panels.columns,
            Weight::Bytes(panels) => panels.columns,
        }
    }

    /// `activation(x W + b) + residual`: `rows` are (rows, inputs), the residual and the result (rows, outputs).
    ///
    /// # Errors
    /// Tensors of other types, shapes or devices, or that are not contiguous.
    pub(crate) fn forward(
        &self,
        rows: &Tensor,
        activation: Option<Activation>,
        residual: Option<&Tensor>,
    ) -> Result<Tensor> {
        let op = Product { linear: self, activation };
        match residual {
            None => rows.apply_op1_no_bwd(&op),
            Some(residual) => rows.apply_op2_no_bwd(residual, &op),
        }
    }
}

struct Product<'a> {
    linear: &'a PackedLinear,
    activation: Option<Activation>,
}

impl Product<'_> {
    fn run(
        &self,
        (values, shape): (&[f32], &Shape),
        residual: Option<&[f32]>,
    ) -> Result<(CpuStorage, Shape)> {
        let ((rows, inputs), outputs) = (shape.dims2()?, self.linear.outputs());
        let depth = match &self.linear.weight {
            Weight::Float(panels) => panels.depth,
            Weight::Bytes(panels) => panels.depth,
        };
        if inputs != depth {
            bail!("{inputs} values per row for a layer of {depth}");
        }
        let mut result = vec![0_f32; rows * outputs];
        let residual = residual.map(|values| Rows::new(values, (rows, outputs), outputs));
        let finish = Finish { bias: self.linear.bias.as_deref(), activation: self.activation, residual };
        let (from, to) =
            (Rows::new(values, (rows, inputs), inputs), Target::new(&mut result, (rows, outputs), outputs));
        match &self.linear.weight {
            Weight::Float(panels) => {
                float::multiply(self.linear.processor, from, panels, to, finish, get_num_threads());
            }
            Weight::Bytes(panels) => int8::multiply(from, panels, to, finish, get_num_threads()),
        }
        Ok((CpuStorage::F32(result), Shape::from((rows, outputs))))
    }
}

impl CustomOp1 for Product<'_> {
    fn name(&self) -> &'static str {
        "packed linear"
    }

    fn cpu_fwd(&self, rows: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.run((values(rows, layout)?, layout.shape()), None)
    }
}

impl CustomOp2 for Product<'_> {
    fn name(&self) -> &'static str {
        "packed linear and residual"
    }

    fn cpu_fwd(
        &self,
        rows: &CpuStorage,
        layout: &Layout,
        residual: &CpuStorage,
        of_residual: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        if of_residual.shape().dims2()? != (layout.shape().dims2()?.0, self.linear.outputs()) {
            bail!("a residual of another shape than the result");
        }
        self.run((values(rows, layout)?, layout.shape()), Some(values(residual, of_residual)?))
    }
}

/// Attention of the tokens of each sequence to each other, by whole heads.
///
/// `packed`: (batch * tokens, 3 * width), contiguous f32 on the CPU: queries (scaled already), keys and values of all
/// heads; the result is (batch * tokens, width).
///
/// # Errors
/// Tensors of other types, shapes or devices.
pub(crate) fn attention(
    processor: Processor,
    packed: &Tensor,
    tokens: usize,
    heads: usize,
    sight: Sight<'_>,
) -> Result<Tensor> {
    packed.apply_op1_no_bwd(&Attention { processor, tokens, heads, sight })
}

struct Attention<'a> {
    processor: Processor,
    tokens: usize,
    heads: usize,
    sight: Sight<'a>,
}

impl CustomOp1 for Attention<'_> {
    fn name(&self) -> &'static str {
        "packed attention"
    }

    fn cpu_fwd(&self, packed: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, across) = layout.shape().dims2()?;
        let Attention { processor, tokens, heads, sight } = self;
        if *tokens == 0 || rows % tokens != 0 || across % (3 * heads) != 0 {
            bail!("{rows} rows of {across} values are no {heads} heads of sequences of {tokens} tokens");
        }
        let (batch, size) = (rows / tokens, across / (3 * heads));
        if matches!(sight, Sight::Within(lengths) if lengths.len() != batch) {
            bail!("lengths of another number of sequences than {batch}");
        }
        let mut result = vec![0_f32; rows * heads * size];
        let target = Target::new(&mut result, (rows, heads * size), heads * size);
        let shape = Heads { batch, tokens: *tokens, heads: *heads, size, sight: *sight };
        attend(*processor, values(packed, layout)?, target, shape, get_num_threads());
        Ok((CpuStorage::F32(result), Shape::from((rows, heads * size))))
    }
}

/// Rows that one thread normalises at a time.
const ROWS_AT_ONCE: usize = 16;

/// Scales each row of `x` (any shape, contiguous f32 on the CPU) to mean 0 and variance 1, then by `weight` and `bias`
/// of its last dimension.
///
/// # Errors
/// Tensors of other types, shapes or devices.
pub(crate) fn layer_norm(
    processor: Processor,
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    epsilon: f32,
) -> Result<Tensor> {
    x.apply_op3_no_bwd(weight, bias, &Norm { processor, epsilon })
}

struct Norm {
    processor: Processor,
    epsilon: f32,
}

impl CustomOp3 for Norm {
    fn name(&self) -> &'static str {
        "layer norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        of_weight: &Layout,
        bias: &CpuStorage,
        of_bias: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, weight, bias) = (values(x, layout)?, values(weight, of_weight)?, values(bias, of_bias)?);
        let width = layout.shape().dims().last().copied().unwrap_or_default();
        if width == 0 || weight.len() != width || bias.len() != width {
            bail!("a layer norm of another width than its rows");
        }
        let mut result = vec![0_f32; x.len()];
        let (from, to) = (x.chunks(ROWS_AT_ONCE * width), result.chunks_mut(ROWS_AT_ONCE * width));
        let some = |(from, to): (&[f32], &mut [f32])| {
            normalise_rows(self.processor, (from, to), (weight, bias), self.epsilon);
        };
        match get_num_threads() {
            0 | 1 => from.zip(to).for_each(some),
            _ => x
                .par_chunks(ROWS_AT_ONCE * width)
                .zip(result.par_chunks_mut(ROWS_AT_ONCE * width))
                .for_each(some),
        }
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

fn normalise_rows(processor: Processor, rows: (&[f32], &mut [f32]), learnt: (&[f32], &[f32]), epsilon: f32) {
    match processor {
        // SAFETY: the processor has what the functions ask for; a `Processor` says so.
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 { .. } => unsafe { normalise_512(rows, learnt, epsilon) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 => unsafe { normalise_256(rows, learnt, epsilon) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => unreachable!("there is no Processor here"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn normalise_512(rows: (&[f32], &mut [f32]), learnt: (&[f32], &[f32]), epsilon: f32) {
    normalise_with(rows, learnt, epsilon);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn normalise_256(rows: (&[f32], &mut [f32]), learnt: (&[f32], &[f32]), epsilon: f32) {
    normalise_with(rows, learnt, epsilon);
}

#[inline(always)]
fn normalise_with((from, to): (&[f32], &mut [f32]), learnt: (&[f32], &[f32]), epsilon: f32) {
    let width = learnt.0.len();
    // A plain loop: a closure would be compiled by itself, without this function's instructions.
    for (row, into) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
        normalise(row, into, learnt, epsilon);
    }
}

/// The values of a contiguous f32 tensor on the CPU.
fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((from, to)) = layout.contiguous_offsets() else { bail!("a tensor that is not contiguous") };
    Ok(&storage.as_slice::<f32>()?[from..to])
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn tensor(shape: (usize, usize), salt: usize) -> Tensor {
        let value = |at: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
        let values: Vec<f32> = (0..shape.0 * shape.1).map(value).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    /// Equal to what candle's own operations give, to f32's rounding.
    #[track_caller]
    fn check(got: Result<Tensor>, expected: &Tensor) {
        let got = got.unwrap();
        assert_eq!(got.dims(), expected.dims());
        let values = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (at, (got, expected)) in values(&got).iter().zip(values(expected)).enumerate() {
            assert!((got - expected).abs() < 1e-4, "{at}: {got} instead of {expected}");
        }
    }

    #[test]
    fn a_packed_layer_is_the_layer() {
        let (x, weight, bias) = (tensor((37, 100), 1), tensor((100, 70), 2), tensor((1, 70), 3));
        let bias = bias.flatten_all().unwrap();
        let residual = tensor((37, 70), 4);
        let plain = x.matmul(&weight).unwrap().broadcast_add(&bias).unwrap();
        let Some(processor) = Processor::detect() else { return };
        let layer = PackedLinear::of_floats(processor, &weight, Some(&bias)).unwrap();
        check(layer.forward(&x, None, None), &plain);
        check(
            layer.forward(&x, Some(Activation::Relu), Some(&residual)),
            &(plain.relu().unwrap() + &residual).unwrap(),
        );
        // Rows of a larger tensor.
        let part = x.narrow(0, 5, 20).unwrap();
        check(layer.forward(&part, None, None), &plain.narrow(0, 5, 20).unwrap());
        for wrong in [x.t().unwrap(), tensor((37, 99), 1), x.to_dtype(candle_core::DType::F64).unwrap()] {
            assert!(layer.forward(&wrong, None, None).is_err());
        }
        assert!(layer.forward(&x, None, Some(&x)).is_err());
    }

    #[test]
    fn a_layer_norm_is_candles() {
        let (x, weight, bias) = (tensor((40, 65), 1), tensor((1, 65), 2), tensor((1, 65), 3));
        let (weight, bias) = (weight.flatten_all().unwrap(), bias.flatten_all().unwrap());
        let expected = candle_nn::ops::layer_norm(&x, &weight, &bias, 1e-5).unwrap();
        let Some(processor) = Processor::detect() else { return };
        check(layer_norm(processor, &x, &weight, &bias, 1e-5), &expected);
        let cube = x.reshape((8, 5, 65)).unwrap();
        check(layer_norm(processor, &cube, &weight, &bias, 1e-5), &expected.reshape((8, 5, 65)).unwrap());
    }
}
